"""`foveate compare`: models cross-validated on held-out pictures and ranked; resumes where it stopped."""

import json
from collections.abc import Callable, Mapping
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
from foveate.commands.outputs import chosen, finite, own_folder, progress, resumable, versions, write_json

if TYPE_CHECKING:
    from foveate.evaluate.crossval import CrossValidation
    from foveate.experiments.recovery import Recovery
    from foveate.experiments.study import Study

SUMMARY, MADE_BY = "study.json", "foveate compare"
HELP = (
    "Compare models on pictures that they have not seen: fit each to every observer without the pictures of a fold, "
    "score it on those, and rank. Ends in a folder with tables, figures and a page. Interrupt it as you like: the same "
    "command goes on where it stopped."
)
SHORT_HELP = "Cross-validate models on held-out pictures, and rank them."
EXAMPLE = "Example: foveate compare --data example --models fixed_choice,local_saliency --folds 3 --out ranking"


def compare(
    out: Results,
    data: Data = None,
    models: Compared = "all",
    priors: Annotated[str, typer.Option(help="weak or published.", metavar="NAME")] = "weak",
    observers: Observers = "all",
    folds: Annotated[int, typer.Option(min=2, max=1000, help="Folds that the pictures are dealt into.")] = 5,
    draws: Predicting = 50,
    cells: Cells = 64,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Fit what is missing, judge, write, print the ranking."""
    names = chosen(models, COMPARED, "model")
    asked = {"data": data, "models": names, "priors": priors, "observers": observers, "folds": folds, "cells": cells}

    def work() -> dict[str, Any]:
        from foveate.commands.reading import chosen_observers, read
        from foveate.evaluate.crossval import CrossValidation
        from foveate.evaluate.folds import random_folds

        whole = read(data, cells)
        some = whole.select(observers=chosen_observers(whole, observers))
        dealt = random_folds(some.paths.pictures, folds, seed)
        validation = CrossValidation.of(out, named_models(names, priors), some, dealt, pool=whole.paths, seed=seed)
        return run_study(out, validation, draws, workers, scheduler, MADE_BY, asked)

    summary = resumable(out, work)
    print(json.dumps(summary) if as_json else closing_words(out, summary))


def named_models(names: list[str], priors: str) -> dict[str, Any]:
    """The models of these names, all with these priors; the baseline has none."""
    from foveate.model.catalogue import named_model

    return {name: named_model(name, **({} if name == "saliency_baseline" else {"priors": priors})) for name in names}


def run_study(
    out: Path,
    validation: "CrossValidation",
    draws: int,
    workers: int | None,
    scheduler: str | None,
    made_by: str,
    asked: Mapping[str, Any],
    recovered: "Callable[[], Recovery] | None" = None,
) -> dict[str, Any]:
    """Fit, judge and write a cross-validation with progress; the summary that was written.

    With `recovered` the paper's own tables and its recovery experiment are written, too.
    """
    from foveate.execution.cache import keep_compiled
    from foveate.execution.places import place_for
    from foveate.experiments.study_files import write_study

    place = place_for(workers, scheduler)
    own_folder(out, [SUMMARY, "results.md", "fits"], SUMMARY, made_by)
    validation.fits.check()
    keep_compiled()
    write_json(out / SUMMARY, {"made_by": made_by, "asked": dict(asked), "finished": False})
    with progress(f"{made_by}, seed {validation.seed}; the results will be in {out}") as tell:

        def fitted(task: Any, posterior: Any, done: int, total: int) -> None:
            tell(f"{done} of {total} fits; {task.name}", 0.9 * done, total)

        validation.fits.fit(place, fitted)
        study = _judged(validation, draws, tell)
        tell("tables and figures", 0.99, 1.0)
        about = write_study(study, out, recovered() if recovered is not None else None)
    summary = {"made_by": made_by, "asked": dict(asked), "finished": True, "versions": versions()} | about
    write_json(out / SUMMARY, summary)
    return finite(summary)


def _judged(validation: "CrossValidation", draws: int, tell: Any) -> "Study":
    from foveate.experiments.study import judge

    return judge(validation, draws=draws, tell=lambda words, done, total: tell(words, 0.9 + 0.09 * done / total, 1.0))


def closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    """The ranking in a few lines, and where everything is."""
    from foveate.model.catalogue import TITLES

    column = "predictive_gain_over_uniform_bits, over fixations"
    scores = sorted(summary["scores"].items(), key=lambda item: -item[1][column])
    lines = [f"{'model':<20} {'bits':>7} {'NSS':>7} {'AUC':>7}"]
    for name, row in scores:
        nss, auc = (row[f"predictive_{it}, over fixations"] for it in ("nss", "auc"))
        lines.append(f"{TITLES.get(name, name):<20} {row[column]:7.3f} {nss:7.3f} {auc:7.3f}")
    if summary["fits_not_converged"]:
        lines.append(f"NOT CONVERGED: {summary['fits_not_converged']} of {summary['fits']} fits; see fits.csv.")
    return "\n".join([*lines, f"Held-out fixations: {summary['steps']:,}. The page is {out / summary['page']}."])
