"""`foveate confuse`: could a comparison tell the models apart? Who wins on data that each of them made."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import (
    COMPARED,
    AsJson,
    Cells,
    Compared,
    Data,
    Observers,
    Predicting,
    Results,
    Scheduler,
    Seed,
    Workers,
)
from foveate.commands.outputs import chosen, claim, finite, progress, resumable, versions, write_json

if TYPE_CHECKING:
    import pandas as pd

    from foveate.experiments.model_recovery import Confusion

SUMMARY, PAGE, FIGURE, MADE_BY = "confusion.json", "results.md", "confusion", "foveate confuse"
HELP = (
    "Ask whether a comparison could tell the models apart at all: fit each to every observer, simulate the observer's "
    "data from every fit, then fit all models to half of the pictures of each simulated data set and score them on the "
    "other half. Who wins on whose data is the confusion matrix. With m models it takes m + m * m fits for each "
    "observer. Interrupt it as you like: the same command goes on where it stopped."
)
SHORT_HELP = "Simulate from every model and see which model wins on whose data."
EXAMPLE = "Example: foveate confuse --data example --observers ann --out confusion"

# How the bar is shared out between fits and scores.
FITS, SCORES = 0.9, 0.08


def confuse(
    out: Results,
    data: Data = None,
    models: Compared = "all",
    priors: Annotated[str, typer.Option(help="weak or published.", metavar="NAME")] = "weak",
    observers: Observers = "all",
    draws: Predicting = 50,
    cells: Cells = 64,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Fit, simulate, fit again, count, write, print the matrix."""
    names = chosen(models, COMPARED, "model")
    asked = {"data": data, "models": names, "priors": priors, "observers": observers}
    asked |= {"draws": draws, "cells": cells, "seed": seed}

    def work() -> dict[str, Any]:
        from foveate.commands.compare import named_models
        from foveate.commands.reading import chosen_observers, read
        from foveate.execution.cache import keep_compiled
        from foveate.execution.places import place_for
        from foveate.experiments.model_recovery import ModelRecovery

        place = place_for(workers, scheduler)
        whole = read(data, cells)
        some = whole.select(observers=chosen_observers(whole, observers))
        recovery = ModelRecovery.of(out, named_models(names, priors), some, seed=seed)
        claim(out, [SUMMARY, PAGE, "observed", "simulated"], SUMMARY, MADE_BY, asked)
        recovery.observed.check()
        keep_compiled()
        with progress(f"{MADE_BY}, seed {seed}, {recovery.fits} fits; the results will be in {out}") as tell:
            validation = recovery.fit(place, lambda words, done, total: tell(words, FITS * done / total, 1.0))
            found = recovery.judge(
                validation, draws=draws, tell=lambda words, done, total: tell(words, FITS + SCORES * done / total, 1.0)
            )
            tell("tables and figures", FITS + SCORES, 1.0)
            about = _write(found, out)
        summary = {"made_by": MADE_BY, "asked": asked, "finished": True, "versions": versions()} | about
        write_json(out / SUMMARY, summary)
        return finite(summary)

    summary = resumable(out, work)
    print(json.dumps(summary) if as_json else _closing_words(out, summary))


# --- what is written -------------------------------------------------------------------------------------------------


def _write(found: "Confusion", folder: Path) -> dict[str, Any]:
    """Tables, the figure and a page; what the JSON file says, too."""
    import pandas as pd

    from foveate.figures.confusion import confusions
    from foveate.figures.style import journal_style, save
    from foveate.inference.files import write_whole

    matrices = {name: found.matrix(name) for name in found.criteria}
    cells = pd.concat(
        [it.assign(criterion=name, unit=found.criteria[name].unit) for name, it in matrices.items()], ignore_index=True
    )
    tables = {"confusion": cells, "data_sets": found.data_sets, "fits": found.fits}
    for name, table in tables.items():
        write_whole(folder / f"{name}.csv", lambda file, it=table: it.to_csv(file, index=False, float_format="%.9g"))
    with journal_style():
        save(confusions({found.criteria[name].title: it for name, it in matrices.items()}), folder, FIGURE)
    page = _page(found, matrices, list(tables))
    write_whole(folder / PAGE, lambda file: file.write_text(page, encoding="utf-8"))
    criteria = {}
    for name, it in matrices.items():
        share, low, high = found.recovered(name)
        criteria[name] = found.criteria[name]._asdict() | {"recovered": share, "recovered_interval": [low, high]}
        criteria[name] |= {"words": found.words(name), "matrix": it.to_dict("records")}
    return {
        "models": list(found.models),
        "observers": found.observers,
        "data_sets": len(found.data_sets),
        "draws": found.draws,
        "seed": found.seed,
        "fits": len(found.fits),
        "fits_not_converged": found.unconverged,
        "criteria": criteria,
        "tables": [f"{name}.csv" for name in tables],
        "figures": [f"{FIGURE}.svg"],
        "page": PAGE,
    }


def _page(found: "Confusion", matrices: Mapping[str, "pd.DataFrame"], tables: list[str]) -> str:
    from foveate.experiments.model_recovery import LEVEL, SURE
    from foveate.experiments.study_page import markdown
    from foveate.model.catalogue import TITLES

    titles = {name: TITLES.get(name, name) for name in found.models}
    parts = [
        "# Which model wins on whose data",
        f"{len(found.data_sets)} data sets, one from each of {len(found.models)} models fitted to each of "
        f"{found.observers} observers: the observer's pictures and path lengths, one draw of the posterior. All models "
        "were fitted to half of the pictures of each data set and scored on the other half, with "
        f"{found.draws} draws of the posterior. Seed {found.seed}.",
    ]
    if found.unconverged:
        parts.append(f"**{found.unconverged} of {len(found.fits)} fits have not converged; they are in all numbers.**")
    for name, matrix in matrices.items():
        share, low, high = found.recovered(name)
        rows = []
        for made in found.models:
            some = [row for row in matrix.to_dict("records") if row["truth"] == made]
            rows.append([titles[made], *(_cell(row) for row in some)])
        parts += [
            f"## By {found.criteria[name].title}",
            f"The model that made the data wins in {share:.0%} of all data sets ({low:.0%} to {high:.0%}; by chance "
            f"{1 / len(found.models):.0%}). {found.words(name)}",
            markdown(["made by \\ won by", *titles.values()], rows),
            f"Share of the row's data sets with Wilson's interval of {LEVEL:.0%}; in brackets by how many "
            f"{found.criteria[name].unit} the winner leads (median): over the model that made the data, or over the "
            "next best where that one wins.",
        ]
    parts += [
        "## How to read it",
        "A simpler model that wins on data of a richer one by hundredths of a bit is no failure of the criterion: with "
        "the parameters that made these data the two predict nearly the same, and the simpler one has less to learn. "
        "Nor is a richer model that can do all that the simpler one does, and loses nothing by it. The leads say how "
        "far apart models are. What would count against a criterion is a wrong winner that leads by "
        f"more than {SURE:g} standard errors, again and again.",
        f"![confusion matrices]({FIGURE}.svg)",
        "Tables: " + ", ".join(f"[{name}.csv]({name}.csv)" for name in tables) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _cell(row: Mapping[Any, Any]) -> str:
    words = f"{row['share']:.0%} ({row['low']:.0%} to {row['high']:.0%})"
    return f"{words} [{row['median_lead']:.3g}]" if row["wins"] else words


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    """The matrices in a few lines, and where everything is."""
    from foveate.model.catalogue import TITLES

    names = summary["models"]
    lines = []
    for about in summary["criteria"].values():
        lines.append(f"Data sets won by each model, by {about['title']} (rows: who made the data)")
        lines.append(" " * 20 + "".join(f"{TITLES.get(name, name):>20}" for name in names))
        shares = {(it["truth"], it["winner"]): it for it in about["matrix"]}
        for truth in names:
            cells = (shares[truth, name] for name in names)
            lines.append(
                f"{TITLES.get(truth, truth):<20}" + "".join(f"{it['wins']:>12} ({it['share']:5.0%})" for it in cells)
            )
        low, high = about["recovered_interval"]
        lines.append(f"The true model wins in {about['recovered']:.0%} ({low:.0%} to {high:.0%}). {about['words']}")
    if summary["fits_not_converged"]:
        lines.append(f"NOT CONVERGED: {summary['fits_not_converged']} of {summary['fits']} fits; see fits.csv.")
    return "\n".join([*lines, f"The page is {out / summary['page']}."])
