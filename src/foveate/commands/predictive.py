"""`foveate predictive`: could the held-out scan paths have come from the models? Resumes where it stopped."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.ablate import read_and_deal
from foveate.commands.options import Cells, Data, Observers, Predicting, Results, Run, grouped
from foveate.commands.outputs import Tell, chosen
from foveate.commands.reproduce import MAPS, numbers_of_folds
from foveate.commands.studies import PAGE, Job, fits_told, part_of, show
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.evaluate.crossval import CrossValidation
    from foveate.execution.places import Place

SUMMARY, MADE_BY = "predictive.json", "foveate predictive"
FITS = 0.7  # how far the bar is when the fits are done
HELP = (
    "Check models against the scan paths that they were not fitted to: simulate copies of the held-out data from each "
    "observer's posterior draws, and see whether amplitudes, directions, turns, autocorrelation and returns of the "
    "data lie in the bands of the copies. Ends in a folder with tables, figures and a page. Interrupt it as you like: "
    "the same command goes on with the fits that are missing."
)
SHORT_HELP = "Check models' simulated saccades against held-out data."
EXAMPLE = "Example: foveate predictive --data example --models full --observers ann,ben --cells 16 --out predictive"


@grouped
def predictive(
    out: Results,
    data: Data = None,
    models: Annotated[str, typer.Option(help="Models with commas, or rows of `foveate ablate`.")] = "full,wayfarer",
    observers: Observers = "all",
    folds: Annotated[str, typer.Option(help="'all', or numbers from 1 to 5 with commas between.")] = "all",
    draws: Predicting = 40,
    cells: Cells = 64,
    fits: Annotated[
        Path | None,
        typer.Option(
            help="A folder with finished fits, of `foveate ablate` or of this command: models that are there are read, "
            "not fitted again.",
            metavar="FOLDER",
            show_default=False,
        ),
    ] = None,
    *,
    run: Run,
) -> None:
    """Fit what is missing, simulate, check, write, print the statistics."""
    asked = {"data": data, "models": models, "observers": observers, "folds": folds, "draws": draws, "cells": cells}
    asked |= {"fits": None if fits is None else str(fits), "seed": run.seed}

    def work() -> dict[str, Any]:
        from foveate.evaluate.crossval import CrossValidation
        from foveate.experiments.ablation import ablation_rows
        from foveate.experiments.predictive import fits_in, require_fits, sampling

        whole, each, dealt = read_and_deal(data, MAPS[:1], observers, cells, run.seed)
        seconds = whole.paths.duration_s
        rows = ablation_rows(durations=seconds is not None and bool((seconds > 0).any()))
        settings = {"chosen_folds": numbers_of_folds(folds, len(dealt)), "pool": whole.paths, "seed": run.seed}
        validations, held = {}, {}
        for name in chosen(models, tuple(rows), "model"):
            place = fits_in(fits, name, MAPS[:1]) if fits is not None else None
            held[name] = place is not None
            model = rows[name].model
            how = sampling(model, place, name, settings["chosen_folds"][0])
            validations[name] = CrossValidation.of(place or out, {name: model}, each[MAPS[0]], dealt, **how, **settings)
            if place is not None:
                require_fits(validations[name], place)
        if fits is not None and not any(held.values()):
            raise InputError(
                f"--fits {fits}: no fits of {' or '.join(held)} with {MAPS[0]} maps are there; give the folder that "
                "has some, or leave it out to fit here."
            )
        missing = {name: it for name, it in validations.items() if not held[name]}
        return _run(Job(MADE_BY, out, asked, SUMMARY, (PAGE, "fits")), run, validations, missing, draws)

    show(out, run, work, lambda summary: _closing_words(out, summary))


def _run(
    job: Job,
    run: Run,
    validations: "Mapping[str, CrossValidation]",
    missing: "Mapping[str, CrossValidation]",
    draws: int,
) -> dict[str, Any]:
    """Fit the models of `missing`, check those of `validations`, write."""

    def check() -> None:
        for validation in validations.values():
            validation.fits.check()

    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        import jax

        from foveate.experiments.predictive import check_model
        from foveate.experiments.predictive_files import write_checks

        begin = FITS if missing else 0.0
        for index, validation in enumerate(missing.values()):
            each = begin / len(missing)
            validation.fits.fit(place, fits_told(part_of(tell, index * each, (index + 1) * each)))
        found, each = {}, (1.0 - begin) / len(validations)
        for index, (name, validation) in enumerate(validations.items()):
            told = part_of(tell, begin + index * each, begin + (index + 1) * each)
            found[name] = check_model(validation, name, draws, jax.random.key(run.seed), told)
        fitted = [name for name, it in validations.items() if it.models[name].labels]  # others have nothing to fit
        read, made = ([it for it in fitted if (it in missing) is here] for here in (False, True))
        return write_checks(found, job.out, job.asked) | {"fits_read": read, "fits_made": made}

    return job.carry_out(run, check, work)


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    lines = []
    for name, found in summary["models"].items():
        lines.append(f"{name:<22} {'data':>8} {'copies':>8} {'95 % band':>18}")
        for statistic, row in found["statistics"].items():
            words = (
                f"{statistic:<22} {row['observed']:8.3f} {row['simulated']:8.3f}  [{row['low']:.3f}, {row['high']:.3f}]"
            )
            lines.append(words if row["inside"] else f"{words}  outside")
    source = summary["asked"]["fits"]
    for names, place in ((summary["fits_read"], f"read from {source}"), (summary["fits_made"], f"made in {out}")):
        if source is not None and names:  # without --fits all are made
            lines.append(f"The fits of {', '.join(names)} were {place}.")
    return "\n".join([*lines, f"The page is {out / PAGE}."])
