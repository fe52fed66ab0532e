"""`foveate confuse`: could a comparison tell the models apart? Who wins on data that each of them made."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.commands.options import COMPARED, Compared, Given, Predicting, Run, grouped
from foveate.commands.outputs import Tell, chosen, claim
from foveate.commands.studies import PAGE, Job, named_models, not_converged, part_of, show, write_page, write_tables

if TYPE_CHECKING:
    import pandas as pd

    from foveate.execution.places import Place
    from foveate.experiments.model_recovery import Confusion

SUMMARY, FIGURE, MADE_BY = "confusion.json", "confusion", "foveate confuse"
FITS, SCORES = 0.9, 0.98  # how far the bar is when fits and scores are done
HELP = (
    "Ask whether a comparison could tell the models apart at all: fit each to every observer, simulate the observer's "
    "data from every fit, then fit all models to half of the pictures of each simulated data set and score them on the "
    "other half. Who wins on whose data is the confusion matrix. With m models it takes m + m * m fits for each "
    "observer. Interrupt it as you like: the same command goes on where it stopped."
)
SHORT_HELP = "Simulate from every model and see which model wins on whose data."
EXAMPLE = "Example: foveate confuse --data example --observers ann --out confusion"


@grouped
def confuse(given: Given, models: Compared = "all", draws: Predicting = 50, *, run: Run) -> None:
    """Fit, simulate, fit again, count, write, print the matrix."""
    names = chosen(models, COMPARED, "model")
    asked = {"data": given.data, "models": names, "priors": given.priors, "observers": given.observers}
    asked |= {"draws": draws, "cells": given.cells, "seed": run.seed}
    job = Job(MADE_BY, given.out, asked, SUMMARY, (PAGE, "observed", "simulated"))

    def work() -> dict[str, Any]:
        from foveate.experiments.model_recovery import ModelRecovery

        recovery = ModelRecovery.of(given.out, named_models(names, given.priors), given.read()[1], seed=run.seed)

        def check() -> None:
            # Data sets follow from the fits: all settings must be the same, not only those that fits know.
            claim(job.out, [SUMMARY, *job.files], SUMMARY, MADE_BY, asked)
            recovery.observed.check()

        def judged(place: "Place", tell: Tell) -> dict[str, Any]:
            validation = recovery.fit(place, part_of(tell, 0.0, FITS))
            found = recovery.judge(validation, draws=draws, tell=part_of(tell, FITS, SCORES))
            tell("tables and figures", SCORES, 1.0)
            return _write(found, given.out)

        return job.carry_out(run, check, judged)

    show(given.out, run, work, lambda summary: _closing_words(given.out, summary))


# --- what is written -------------------------------------------------------------------------------------------------


def _write(found: "Confusion", folder: Path) -> dict[str, Any]:
    """Tables, the figure and a page; what the JSON file says, too."""
    import pandas as pd

    from foveate.figures.confusion import confusions
    from foveate.figures.style import journal_style, save

    matrices = {name: found.matrix(name) for name in found.criteria}
    cells = pd.concat(
        [it.assign(criterion=name, unit=found.criteria[name].unit) for name, it in matrices.items()], ignore_index=True
    )
    tables = write_tables(folder, {"confusion": cells, "data_sets": found.data_sets, "fits": found.fits})
    with journal_style():
        save(confusions({found.criteria[name].title: it for name, it in matrices.items()}), folder, FIGURE)
    write_page(folder, _page(found, matrices, tables))
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
        "tables": tables,
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
        f"{found.draws} draws of the posterior: {len(found.fits)} fits. Seed {found.seed}.",
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
        "Tables: " + ", ".join(f"[{name}]({name})" for name in tables) + ".",
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
    return "\n".join([*lines, *not_converged(summary), f"The page is {out / summary['page']}."])
