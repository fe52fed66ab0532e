"""`foveate reproduce`: the paper's experiments on its own data; resumes where it stopped."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.compare import FITS, closing_words, run_study, study_job
from foveate.commands.options import (
    COMPARED,
    Compared,
    Observers,
    Ordered,
    Potsdam35,
    Predicting,
    Results,
    Run,
    grouped,
)
from foveate.commands.outputs import Tell, chosen
from foveate.commands.studies import PAGE, Job, fits_told, named_models, part_of, show, write_page, write_tables
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.data.dataset import Dataset
    from foveate.execution.places import Place
    from foveate.experiments.recovery import Recovery

MADE_BY, RECOVERY, TABLE_2 = "foveate reproduce", "recovery.nc", "table2"
MAPS = ("published", "leave-one-out")
HELP = (
    "Re-do the paper on potsdam35: five folds over pictures, four models and the baseline under the published priors, "
    "50 posterior draws each, all tables and figures. Coordinates, pairing of maps, scores and statistics are the "
    "corrected ones. Interrupt it as you like: the same command goes on where it stopped."
)
SHORT_HELP = "Re-do the paper's evaluation on its own data."
EXAMPLE = "Example: foveate reproduce --data potsdam35 --observers 1-6 --folds 1 --draws 20 --out reproduction"


@grouped
def reproduce(
    out: Results,
    data: Potsdam35 = None,
    models: Compared = "all",
    maps: Annotated[
        str, typer.Option(help="published, or leave-one-out: each observer's without their own fixations.")
    ] = "published",
    as_released: Annotated[
        bool, typer.Option("--as-released", help="Data and scores as in the released files, for the paper's Table 2.")
    ] = False,
    ordered: Ordered = False,
    observers: Observers = "all",
    folds: Annotated[str, typer.Option(help="'all', or numbers from 1 to 5 with commas between.")] = "all",
    draws: Predicting = 50,
    *,
    run: Run,
) -> None:
    """Fit what is missing, judge, write, print the ranking."""
    names = chosen(models, COMPARED, "model")
    if maps not in MAPS:
        raise InputError(f"--maps {maps}: say {' or '.join(MAPS)}.")
    if as_released and maps != "published":
        raise InputError("--as-released --maps: the released files have their own maps; leave --maps out.")
    asked = {"data": data, "models": names, "maps": maps, "observers": observers, "folds": folds}
    asked |= {"ordered": True} if ordered else {}
    if as_released:
        job = study_job(f"{MADE_BY} --as-released", out, asked)
        job = replace(job, files=(*job.files, f"{TABLE_2}.csv"))
        show(out, run, lambda: _as_released(job, run, draws), lambda summary: _table2_words(out, summary))
        return

    def work() -> dict[str, Any]:
        import jax

        from foveate.commands.reading import chosen_observers
        from foveate.data.readers.potsdam35 import read_potsdam35
        from foveate.evaluate.crossval import CrossValidation
        from foveate.evaluate.folds import potsdam35_folds
        from foveate.experiments.recovery import recover_once

        whole, dealt, fitted = read_potsdam35(data), potsdam35_folds(), named_models(names, "published", ordered)
        each = each_with_maps(whole, chosen_observers(whole.paths, observers), maps)
        settings = {"chosen_folds": numbers_of_folds(folds, len(dealt)), "pool": whole.paths, "seed": run.seed}
        validation = CrossValidation.of(out, fitted, each, dealt, **settings)

        def recovered() -> "Recovery":
            return recover_once(out / RECOVERY, "full", whole.maps, jax.random.key(run.seed), sampler="importance")

        return run_study(study_job(MADE_BY, out, asked), run, validation, draws, recovered)

    show(out, run, work, lambda summary: closing_words(out, summary))


def _as_released(job: Job, run: Run, draws: int) -> dict[str, Any]:
    """Fit to the released pairs, score as released, write Table 2; the summary that was written."""
    from foveate.commands.reading import chosen_observers
    from foveate.data.readers.potsdam35 import read_potsdam35
    from foveate.data.readers.released import read_released
    from foveate.experiments.as_released import judge_as_released, page, released_fits

    released = read_released(job.asked["data"])
    who = chosen_observers(read_potsdam35(job.asked["data"]).paths, job.asked["observers"])
    which = numbers_of_folds(job.asked["folds"], len(released.folds))
    models = named_models(job.asked["models"], "published", job.asked.get("ordered", False))
    fits = released_fits(job.out, released, models, who, which, run.seed)

    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        fits.fit(place, fits_told(part_of(tell, 0.0, FITS)))
        table, rows = judge_as_released(fits, released, draws, part_of(tell, FITS, 1.0))
        write_tables(job.out, {TABLE_2: table.reset_index(), "observers": rows})
        write_page(job.out, page(fits, table, rows, draws))
        return {"draws": draws, "seed": run.seed, TABLE_2: table.to_dict(orient="index")}

    return job.carry_out(run, fits.check, work)


def _table2_words(out: Path, summary: Mapping[str, Any]) -> str:
    import pandas as pd

    table = pd.DataFrame.from_dict(summary[TABLE_2], orient="index", dtype=float).rename_axis("model")
    return f"{table.round(3).to_string()}\nThe page is {out / PAGE}."


def numbers_of_folds(folds: str, count: int) -> tuple[int, ...]:
    """The folds that the user named."""
    if folds.strip() == "all":
        return tuple(range(1, count + 1))
    try:
        found = tuple(dict.fromkeys(int(part) for part in folds.split(",") if part.strip()))
    except ValueError:
        found = ()
    if not found or not all(1 <= fold <= count for fold in found):
        raise InputError(f"--folds {folds}: say 'all', or numbers from 1 to {count} with commas between.")
    return found


def each_with_maps(whole: "Dataset", observers: list, maps: str) -> "dict[Any, Dataset]":
    """Every observer's data set, with the maps that were asked for."""
    if maps == "published":
        return {observer: whole.select(observers=[observer]) for observer in observers}
    from foveate.data.dataset import Dataset
    from foveate.data.readers.potsdam35 import potsdam35_leave_one_out

    others = potsdam35_leave_one_out(whole.paths, cells=whole.maps.grid.rows)
    each = {}
    for observer in observers:
        own = whole.paths.select(observers=[observer])
        each[observer] = Dataset(own, others[observer].select(own.pictures))
    return each
