"""`foveate reliability`: how far each observer's parameters can be trusted, and how many pictures one must see."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import Given, Run, grouped
from foveate.commands.outputs import MODELS, Tell, chosen
from foveate.commands.studies import PAGE, Job, fits_told, not_converged, part_of, show, write_page, write_tables
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.execution.places import Place
    from foveate.experiments.picture_subsets import PictureSubsets
    from foveate.experiments.reliability import Reliability

SUMMARY, MADE_BY = "reliability.json", "foveate reliability"
FITS = 0.98  # how far the bar is when fits are done
HELP = (
    "How far each observer's parameters can be trusted: fit a model to two halves of the pictures that an observer "
    "saw, and see how well the halves agree; with --pictures also to fewer and more pictures, and see how many are "
    "needed. Ends in a folder with tables, figures and a page. Interrupt it as you like: the same command goes on "
    "where it stopped, and one with more splits or pictures adds to it."
)
SHORT_HELP = "Split-half reliability of parameters, and how many pictures are needed."
EXAMPLE = "Example: foveate reliability --data example --model local_saliency --pictures 3,all --out halves"


@grouped
def reliability(
    given: Given,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(MODELS)}.", metavar="NAME")] = "full",
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
    *,
    run: Run,
) -> None:
    """Fit what is missing, work out the numbers, write, print the table."""
    if len(chosen(model, MODELS, "model")) != 1:
        raise InputError(f"--model {model}: give one model; there are {', '.join(MODELS)}.")
    name, wanted = model.strip(), _numbers(pictures)
    asked = {"data": given.data, "model": name, "priors": given.priors, "observers": given.observers, "splits": splits}
    asked |= {"pictures": pictures, "precision": precision, "cells": given.cells, "seed": run.seed}
    job = Job(MADE_BY, given.out, asked, SUMMARY, (PAGE, "fits"))

    def work() -> dict[str, Any]:
        from foveate.experiments.picture_subsets import PictureSubsets
        from foveate.model.catalogue import named_model

        fitted = named_model(name, priors=given.priors)
        subsets = PictureSubsets.of(given.out, fitted, given.read()[1], splits=splits, numbers=wanted, seed=run.seed)
        return _run(job, run, subsets, precision)

    show(given.out, run, work, lambda summary: _closing_words(given.out, summary))


def _numbers(pictures: str) -> list[int]:
    """The numbers of pictures in a list with commas; 'all' is 0."""
    found = []
    for word in (it.strip() for it in pictures.split(",") if it.strip()):
        if word != "all" and not (word.isdecimal() and int(word) > 0):
            raise InputError(f"--pictures {word}: give numbers of pictures with commas between, or all.")
        found.append(0 if word == "all" else int(word))
    return found


def _run(job: Job, run: Run, subsets: "PictureSubsets", precision: float) -> dict[str, Any]:
    """Fit, judge and write; the summary that was written."""

    def check() -> None:
        _same_model(job.out, subsets.model.name)
        subsets.fits.check()

    def called(task: Any) -> str:
        return f"observer {task.where['observer']}, {subsets.called(task.where['fold'])}"

    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        from foveate.experiments.reliability import reliability

        subsets.fits.fit(place, fits_told(part_of(tell, 0.0, FITS), called))
        tell("tables and figures", FITS, 1.0)
        return _write(reliability(subsets, precision=precision), job.out)

    return job.carry_out(run, check, work)


def _same_model(out: Path, name: str) -> None:
    """Refuse a folder with the results of another model; more splits and pictures of the same are added to it."""
    file = out / SUMMARY
    before = json.loads(file.read_text(encoding="utf-8"))["asked"]["model"] if file.exists() else name
    if before != name:
        raise InputError(f"{out} holds the reliability of {before}: nothing was overwritten; give another folder.")


def _write(found: "Reliability", out: Path) -> dict[str, Any]:
    """Tables, figures and the page; what the JSON file says of them."""
    from foveate.experiments.reliability_page import FIGURES, page
    from foveate.figures.reliability import half_against_half, sd_by_pictures
    from foveate.figures.style import journal_style, save

    tables = {"reliability": found.parameters, "halves": found.halves, "precision": found.sizes}
    names = write_tables(out, tables | {"needed": found.needed, "fits": found.fits})
    (out / FIGURES).mkdir(exist_ok=True)
    model = found.subsets.model.name
    with journal_style():
        save(half_against_half(found.halves, found.parameters, model), out / FIGURES, "halves")
        save(sd_by_pictures(found.sizes, found.needed, model), out / FIGURES, "precision")
    figures = [f"{FIGURES}/{name}.svg" for name in ("halves", "precision")]
    write_page(out, page(found, names, figures))
    return {
        "model": model,
        "observers": len(found.subsets.data),
        "splits": len(found.subsets.splits),
        "fits": len(found.fits),
        "fits_not_converged": found.unconverged,
        "fits_with_b_on_both_sides": found.both_sides,
        "reliability": found.parameters.to_dict(orient="records"),
        "needed": found.needed.to_dict(orient="records"),
        "tables": names,
        "figures": figures,
        "page": PAGE,
    }


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    """The table in a few lines, and where everything is."""
    from foveate.experiments.reliability_page import needed_numbers

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    lines = [f"{'number':<16} {'reliability':>11} {'95 %':>14} {'expected':>9} {'pictures':>9} {'for 90 %':>9}"]
    for row, need in zip(summary["reliability"], summary["needed"], strict=True):
        interval = f"{number(row['reliability_low'])} to {number(row['reliability_high'])}"
        half, nine = needed_numbers(need)
        of_row = f"{row['parameter']:<16} {number(row['reliability']):>11} {interval:>14}"
        lines.append(f"{of_row} {number(row['expected_reliability']):>9} {half:>9} {nine:>9}")
    wanted = summary["asked"]["precision"]
    lines.append(f"'pictures' is how many an observer must see for a posterior sd of {wanted:g}; * extrapolated.")
    lines += not_converged(summary)
    if summary["fits_with_b_on_both_sides"] is not None:
        lines.append(f"b on both sides of zero: {summary['fits_with_b_on_both_sides']} of {summary['fits']} fits.")
    return "\n".join([*lines, f"The page is {out / summary['page']}."])
