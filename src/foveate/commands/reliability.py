"""`foveate reliability`: how far each observer's parameters can be trusted, and how many pictures one must see."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import AsJson, Cells, Data, Observers, Results, Scheduler, Seed, Workers
from foveate.commands.outputs import MODELS, chosen, finite, own_folder, progress, resumable, versions, write_json
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.experiments.reliability import PictureSubsets, Reliability

SUMMARY, MADE_BY = "reliability.json", "foveate reliability"
PAGE, FIGURES = "results.md", "figures"
HELP = (
    "How far each observer's parameters can be trusted: fit a model to two halves of the pictures that an observer "
    "saw, and see how well the halves agree; with --pictures also to fewer and more pictures, and see how many are "
    "needed. Ends in a folder with tables, figures and a page. Interrupt it as you like: the same command goes on "
    "where it stopped, and one with more splits or pictures adds to it."
)
SHORT_HELP = "Split-half reliability of parameters, and how many pictures are needed."
EXAMPLE = "Example: foveate reliability --data example --model local_saliency --pictures 3,all --out halves"


def reliability(
    out: Results,
    data: Data = None,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.", metavar="NAME")] = "full",
    priors: Annotated[str, typer.Option(help="weak or published.", metavar="NAME")] = "weak",
    observers: Observers = "all",
    splits: Annotated[int, typer.Option(min=1, max=499, help="How often the pictures are dealt into halves.")] = 1,
    pictures: Annotated[
        str,
        typer.Option(
            help="Fit to so many pictures, too: numbers with commas, or all for as many as there are.",
            metavar="NUMBERS",
            show_default=False,
        ),
    ] = "",
    precision: Annotated[
        float,
        typer.Option(
            min=0.0001,
            max=100.0,
            help="Posterior standard deviation wanted; of variances on the log scale, so 0.1 is about 10 %.",
        ),
    ] = 0.1,
    cells: Cells = 64,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Fit what is missing, work out the numbers, write, print the table."""
    if len(chosen(model, MODELS, "model")) != 1:
        raise InputError(f"--model {model}: give one model; there are {', '.join(MODELS)}.")
    name, wanted = model.strip(), _numbers(pictures)
    asked = {"data": data, "model": name, "priors": priors, "observers": observers, "splits": splits}
    asked |= {"pictures": pictures, "precision": precision, "cells": cells, "seed": seed}

    def work() -> dict[str, Any]:
        from foveate.commands.reading import chosen_observers, read
        from foveate.experiments.reliability import PictureSubsets
        from foveate.model.catalogue import named_model

        fitted = named_model(name, priors=priors)
        whole = read(data, cells)
        some = whole.select(observers=chosen_observers(whole, observers))
        subsets = PictureSubsets.of(out, fitted, some, splits=splits, numbers=wanted, seed=seed)
        return _run(out, subsets, precision, workers, scheduler, asked)

    summary = resumable(out, work)
    print(json.dumps(summary) if as_json else _closing_words(out, summary))


def _numbers(pictures: str) -> list[int]:
    """The numbers of pictures in a list with commas; 'all' is 0."""
    found = []
    for word in (it.strip() for it in pictures.split(",") if it.strip()):
        if word != "all" and not (word.isdecimal() and int(word) > 0):
            raise InputError(f"--pictures {word}: give numbers of pictures with commas between, or all.")
        found.append(0 if word == "all" else int(word))
    return found


def _run(
    out: Path,
    subsets: "PictureSubsets",
    precision: float,
    workers: int | None,
    scheduler: str | None,
    asked: Mapping[str, Any],
) -> dict[str, Any]:
    """Fit, judge and write with progress; the summary that was written."""
    from foveate.execution.cache import keep_compiled
    from foveate.execution.places import place_for
    from foveate.experiments.reliability import reliability

    place = place_for(workers, scheduler)
    own_folder(out, [SUMMARY, PAGE, "fits"], SUMMARY, MADE_BY)
    _same_model(out, subsets.model.name)
    subsets.fits.check()
    keep_compiled()
    claim = {"made_by": MADE_BY, "asked": dict(asked), "model": subsets.model.name}
    write_json(out / SUMMARY, claim | {"finished": False})
    with progress(f"{MADE_BY}, seed {subsets.fits.seed}; the results will be in {out}") as tell:

        def fitted(task: Any, posterior: Any, done: int, total: int) -> None:
            what = f"observer {task.where['observer']}, {subsets.called(task.where['fold'])}"
            tell(f"{done} of {total} fits; {what}", 0.98 * done, total)

        subsets.fits.fit(place, fitted)
        tell("tables and figures", 0.98, 1.0)
        about = _write(reliability(subsets, precision=precision), out)
    summary = claim | {"finished": True, "versions": versions()} | about
    write_json(out / SUMMARY, summary)
    return finite(summary)


def _same_model(out: Path, name: str) -> None:
    """Refuse a folder with the results of another model; more splits and pictures of the same are added to it."""
    before = json.loads((out / SUMMARY).read_text(encoding="utf-8"))["model"] if (out / SUMMARY).exists() else name
    if before != name:
        raise InputError(f"{out} holds the reliability of {before}: nothing was overwritten; give another folder.")


def _write(found: "Reliability", out: Path) -> dict[str, Any]:
    """Tables, figures and the page; what the JSON file says of them."""
    from foveate.figures.reliability import half_against_half, sd_by_pictures
    from foveate.figures.style import journal_style, save
    from foveate.inference.files import write_whole

    tables = {"reliability": found.parameters, "halves": found.halves, "precision": found.sizes}
    tables |= {"needed": found.needed, "fits": found.fits}
    for name, table in tables.items():
        write_whole(out / f"{name}.csv", lambda file, table=table: table.to_csv(file, index=False, float_format="%.9g"))
    (out / FIGURES).mkdir(exist_ok=True)
    model = found.subsets.model.name
    with journal_style():
        save(half_against_half(found.halves, found.parameters, model), out / FIGURES, "halves")
        save(sd_by_pictures(found.sizes, found.needed, model), out / FIGURES, "precision")
    page = _page(found, [f"{name}.csv" for name in tables])
    write_whole(out / PAGE, lambda file: file.write_text(page, encoding="utf-8"))
    return {
        "observers": len(found.subsets.data),
        "splits": len(found.subsets.splits),
        "fits": len(found.fits),
        "fits_not_converged": found.unconverged,
        "fits_with_b_on_both_sides": found.both_sides,
        "reliability": found.parameters.to_dict(orient="records"),
        "needed": found.needed.to_dict(orient="records"),
        "tables": [f"{name}.csv" for name in tables],
        "figures": [f"{FIGURES}/halves.svg", f"{FIGURES}/precision.svg"],
        "page": PAGE,
    }


# --- what is read by people ------------------------------------------------------------------------------------------


def _page(found: "Reliability", tables: list[str]) -> str:
    from foveate.experiments.study_page import markdown
    from foveate.model.catalogue import TITLES

    subsets, title = found.subsets, TITLES.get(found.subsets.model.name, found.subsets.model.name)
    saw = [len(own.paths.pictures) for own in subsets.data.values()]
    seen = f"{min(saw)}" if min(saw) == max(saw) else f"{min(saw)} to {max(saw)}"
    parts = [
        f"# Reliability of the parameters of {title}",
        f"{len(saw)} observers, {seen} pictures each, {len(subsets.splits)} split{'s' * (len(subsets.splits) > 1)} "
        f"into halves, {len(found.fits)} fits, seed {subsets.fits.seed}. Numbers are judged on the scale that each row "
        "names: the logarithm of a variance, the log-odds of a probability, others as they are.",
        _converged(found),
        "## One half of the pictures against the other",
        _halves_words(found),
        markdown(*_halves_table(found)),
        _differences(found),
        "## How many pictures are needed",
        _needed_words(found),
        markdown(*_needed_table(found)),
        "## Figures",
        *(f"![{name}]({FIGURES}/{name}.svg)" for name in ("halves", "precision")),
        "## Tables",
        ", ".join(f"[{name}]({name})" for name in tables) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _converged(found: "Reliability") -> str:
    if not found.unconverged:
        return f"All {len(found.fits)} fits have converged."
    which = [
        f"observer {row['observer']}, {row['part']}"
        for row in found.fits.to_dict(orient="records")
        if not row["converged"]
    ]
    return (
        f"**{found.unconverged} of {len(found.fits)} fits have NOT CONVERGED; they are in all numbers here, and marked "
        f"in tables and figures:** {'; '.join(which)}."
    )


def _halves_words(found: "Reliability") -> str:
    kind = found.parameters["interval"].iloc[0]
    how = {
        "Fisher z": "by Fisher's z over observers",
        "bootstrap over observers": "by the bootstrap over observers, all splits together",
    }[str(kind)]
    return (
        "r is the correlation over observers of the posterior means of the halves (mean over splits); reliability is "
        "what it means for all pictures, 2 r / (1 + r) after Spearman and Brown (mirrored where r is negative: then "
        f"there is none). Intervals are of 95 %, {how}, for new observers and the same pictures. 'Expected' is what "
        "the posteriors say of themselves: the variance between observers, divided by itself and the variance with "
        "which posterior means scatter. Where the observed reliability is far below it, parameters differ between "
        "pictures by more than the model knows, or posteriors have several modes."
    )


def _halves_table(found: "Reliability") -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            row["parameter"],
            row["scale"],
            f"{row['correlation']:.2f}",
            f"{row['reliability']:.2f}",
            f"{row['reliability_low']:.2f} to {row['reliability_high']:.2f}",
            f"{row['expected_reliability']:.2f}",
            f"{row['between_sd']:.2f}",
            f"{row['error_sd']:.2f}",
            f"{row['share_beyond_2']:.0%}",
        ]
        for row in found.parameters.to_dict(orient="records")
    ]
    columns = ["number", "scale", "r of halves", "reliability", "interval", "expected"]
    return [*columns, "sd between observers", "error of a half", "beyond 2"], rows


def _differences(found: "Reliability") -> str:
    words = (
        "'Beyond 2': share of observers and splits whose halves differ by more than two standard deviations of their "
        "difference, (m1 - m2) / sqrt(v1 + v2). It should be about 5 % if the same parameters hold in both halves, "
        "less where the prior holds them back."
    )
    if found.both_sides is not None:
        words += (
            f" {found.both_sides} of {len(found.fits)} fits have b on both sides of zero, at least 5 % of the "
            "posterior on each: their mean may lie between two modes, and differences may be large for that reason "
            "alone."
        )
    return words


def _needed_words(found: "Reliability") -> str:
    row = found.needed.iloc[0]
    few, most = row["fewest_pictures_fitted"], row["most_pictures_fitted"]
    slope = (
        "The slope of log sd on log n is fitted, with an interval of 95 % over observers; by theory it is -0.5, and "
        "nearer to zero where the prior still says much."
        if row["slope_fitted"]
        else "Numbers of pictures are too much alike to fit a slope, so it is taken to be -0.5: say --pictures to see."
    )
    return (
        f"Posterior standard deviations of fits to {few} to {most} pictures. {slope} Needed are the pictures for a "
        f"standard deviation of {found.precision:g} on the scale above (of a variance about {found.precision:.0%}), "
        f"for the median observer and for 90 % of them; a star marks what lies beyond the {most} pictures of the "
        "largest fits."
    )


def _needed_table(found: "Reliability") -> tuple[list[str], list[list[str]]]:
    rows = []
    for row in found.needed.to_dict(orient="records"):
        interval = f" ({row['slope_low']:.2f} to {row['slope_high']:.2f})" if row["slope_fitted"] else ""
        rows.append([row["parameter"], f"{row['slope']:.2f}{interval}", *_needed_numbers(row)])
    return ["number", "slope", "pictures, median observer", "pictures, 90 % of observers"], rows


def _needed_numbers(row: Mapping[Any, Any]) -> list[str]:
    """For the median observer and for 90 %, with a star for what is extrapolated; JSON has null for infinity."""
    shown = []
    for name, star in (("pictures_median_observer", "median"), ("pictures_90_percent", "90_percent")):
        number = row[name]
        many = "never" if number is None or number == float("inf") else f"{number:,.0f}"
        shown.append(f"{many}{' *' if row[f'{star}_extrapolated'] else ''}")
    return shown


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    """The table in a few lines, and where everything is."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    lines = [f"{'number':<16} {'reliability':>11} {'95 %':>14} {'expected':>9} {'pictures':>9} {'for 90 %':>9}"]
    for row, need in zip(summary["reliability"], summary["needed"], strict=True):
        interval = f"{number(row['reliability_low'])} to {number(row['reliability_high'])}"
        half, nine = _needed_numbers(need)
        of_row = f"{row['parameter']:<16} {number(row['reliability']):>11} {interval:>14}"
        lines.append(f"{of_row} {number(row['expected_reliability']):>9} {half:>9} {nine:>9}")
    wanted = summary["asked"]["precision"]
    lines.append(f"'pictures' is how many an observer must see for a posterior sd of {wanted:g}; * extrapolated.")
    if summary["fits_not_converged"]:
        lines.append(f"NOT CONVERGED: {summary['fits_not_converged']} of {summary['fits']} fits; see fits.csv.")
    if summary["fits_with_b_on_both_sides"] is not None:
        lines.append(f"b on both sides of zero: {summary['fits_with_b_on_both_sides']} of {summary['fits']} fits.")
    return "\n".join([*lines, f"The page is {out / summary['page']}."])
