"""`foveate compare`: models cross-validated on held-out pictures and ranked; resumes where it stopped."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import COMPARED, Compared, Given, Predicting, Run, grouped
from foveate.commands.outputs import Tell, chosen
from foveate.commands.studies import PAGE, Job, fits_told, named_models, not_converged, part_of, show

if TYPE_CHECKING:
    from foveate.evaluate.crossval import CrossValidation
    from foveate.execution.places import Place
    from foveate.experiments.recovery import Recovery

SUMMARY, MADE_BY = "study.json", "foveate compare"
FITS, SCORES = 0.9, 0.99  # how far the bar is when fits and scores are done
HELP = (
    "Compare models on pictures that they have not seen: fit each to every observer without the pictures of a fold, "
    "score it on those, and rank. Ends in a folder with tables, figures and a page. Interrupt it as you like: the same "
    "command goes on where it stopped."
)
SHORT_HELP = "Cross-validate models on held-out pictures, and rank them."
EXAMPLE = "Example: foveate compare --data example --models fixed_choice,local_saliency --folds 3 --out ranking"


@grouped
def compare(
    given: Given,
    models: Compared = "all",
    folds: Annotated[int, typer.Option(min=2, max=1000, help="Folds that the pictures are dealt into.")] = 5,
    draws: Predicting = 50,
    *,
    run: Run,
) -> None:
    """Fit what is missing, judge, write, print the ranking."""
    names = chosen(models, COMPARED, "model")
    asked = {"data": given.data, "models": names, "priors": given.priors, "observers": given.observers}
    asked |= {"folds": folds, "cells": given.cells}

    def work() -> dict[str, Any]:
        from foveate.data.dataset import each_observer
        from foveate.evaluate.crossval import CrossValidation
        from foveate.evaluate.folds import random_folds

        pool, some = given.read()
        pictures = sorted({picture for own in each_observer(some).values() for picture in own.paths.pictures})
        dealt = random_folds(pictures, folds, run.seed)
        fitted = named_models(names, given.priors)
        validation = CrossValidation.of(given.out, fitted, some, dealt, pool=pool, seed=run.seed)
        return run_study(study_job(MADE_BY, given.out, asked), run, validation, draws)

    show(given.out, run, work, lambda summary: closing_words(given.out, summary))


def study_job(made_by: str, out: Path, asked: Mapping[str, Any]) -> Job:
    """A cross-validation that ends in a folder."""
    return Job(made_by, out, asked, SUMMARY, (PAGE, "fits"))


def run_study(
    job: Job,
    run: Run,
    validation: "CrossValidation",
    draws: int,
    recovered: "Callable[[], Recovery] | None" = None,
) -> dict[str, Any]:
    """Fit, judge and write a cross-validation; the summary that was written.

    With `recovered` the paper's own tables and its recovery experiment are written, too.
    """

    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        from foveate.experiments.study import judge
        from foveate.experiments.study_files import write_study

        validation.fits.fit(place, fits_told(part_of(tell, 0.0, FITS)))
        study = judge(validation, draws=draws, tell=part_of(tell, FITS, SCORES))
        tell("tables and figures", SCORES, 1.0)
        return write_study(study, job.out, recovered() if recovered is not None else None)

    return job.carry_out(run, validation.fits.check, work)


def closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    """The ranking in a few lines, and where everything is."""
    from foveate.model.catalogue import TITLES

    column = "predictive_gain_over_uniform_bits, over fixations"
    scores = sorted(summary["scores"].items(), key=lambda item: -item[1][column])
    lines = [f"{'model':<20} {'bits':>7} {'NSS':>7} {'AUC':>7}"]
    for name, row in scores:
        nss, auc = (row[f"predictive_{it}, over fixations"] for it in ("nss", "auc"))
        lines.append(f"{TITLES.get(name, name):<20} {row[column]:7.3f} {nss:7.3f} {auc:7.3f}")
    lines += [
        *not_converged(summary),
        f"Held-out fixations: {summary['steps']:,}. The page is {out / summary['page']}.",
    ]
    return "\n".join(lines)
