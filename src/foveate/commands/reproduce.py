"""`foveate reproduce`: the paper's experiments on its own data; resumes where it stopped."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.compare import SUMMARY, closing_words, named_models, run_study
from foveate.commands.options import (
    COMPARED,
    AsJson,
    Compared,
    Observers,
    Potsdam35,
    Predicting,
    Results,
    Scheduler,
    Seed,
    Workers,
)
from foveate.commands.outputs import chosen, finite, own_folder, progress, resumable, versions, write_json
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.data.dataset import Dataset
    from foveate.experiments.recovery import Recovery

MADE_BY, RECOVERY = "foveate reproduce", "recovery.nc"
MAPS = ("published", "leave-one-out")
HELP = (
    "Re-do the paper on potsdam35: five folds over pictures, four models and the baseline under the published priors, "
    "50 posterior draws each, all tables and figures. Coordinates, pairing of maps, scores and statistics are the "
    "corrected ones. Interrupt it as you like: the same command goes on where it stopped."
)
SHORT_HELP = "Re-do the paper's evaluation on its own data."
EXAMPLE = "Example: foveate reproduce --data potsdam35 --observers 1-6 --folds 1 --draws 20 --out reproduction"


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
    observers: Observers = "all",
    folds: Annotated[str, typer.Option(help="'all', or numbers from 1 to 5 with commas between.")] = "all",
    draws: Predicting = 50,
    seed: Seed = 1,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Fit what is missing, judge, write, print the ranking."""
    names = chosen(models, COMPARED, "model")
    if maps not in MAPS:
        raise InputError(f"--maps {maps}: say {' or '.join(MAPS)}.")
    asked = {"data": data, "models": names, "maps": maps, "observers": observers, "folds": folds}
    if as_released:
        if maps != "published":
            raise InputError("--as-released --maps: the released files have their own maps; leave --maps out.")
        places = (workers, scheduler)
        _as_released(out, data, names, observers, folds, draws, seed, places, asked, as_json)
        return

    def work() -> dict[str, Any]:
        import jax

        from foveate.commands.reading import chosen_observers
        from foveate.data.readers.potsdam35 import read_potsdam35
        from foveate.evaluate.crossval import CrossValidation
        from foveate.evaluate.folds import potsdam35_folds
        from foveate.experiments.recovery import recover_once

        whole = read_potsdam35(data)
        who = chosen_observers(whole, observers)
        dealt = potsdam35_folds()
        which = _numbers(folds, len(dealt))
        each = _each(whole, who, maps)
        validation = CrossValidation.of(
            out, named_models(names, "published"), each, dealt, chosen_folds=which, pool=whole.paths, seed=seed
        )

        def recovered() -> "Recovery":
            settings = {"sampler": "importance"}
            return recover_once(out / RECOVERY, "full", whole.maps, jax.random.key(seed), **settings)

        return run_study(out, validation, draws, workers, scheduler, MADE_BY, asked, recovered)

    summary = resumable(out, work)
    print(json.dumps(summary) if as_json else closing_words(out, summary))


def _as_released(
    out: Path,
    data: str | None,
    names: list[str],
    observers: str,
    folds: str,
    draws: int,
    seed: int,
    places: tuple[int | None, str | None],
    asked: dict[str, Any],
    as_json: bool,
) -> None:
    """Fit to the released pairs, score as released, write and print Table 2."""
    made_by = f"{MADE_BY} --as-released"

    def work() -> str:
        from foveate.commands.reading import chosen_observers
        from foveate.data.readers.potsdam35 import read_potsdam35
        from foveate.data.readers.released import read_released
        from foveate.execution.cache import keep_compiled
        from foveate.execution.places import place_for
        from foveate.experiments.as_released import PAGE, judge_as_released, page, released_fits
        from foveate.inference.files import write_whole

        keep_compiled()
        place, released = place_for(*places), read_released(data)
        who = chosen_observers(read_potsdam35(data), observers)
        which = _numbers(folds, len(released.folds))
        fits = released_fits(out, released, named_models(names, "published"), who, which, seed)
        own_folder(out, [SUMMARY, PAGE, "table2.csv", "fits"], SUMMARY, made_by)
        fits.check()
        write_json(out / SUMMARY, {"made_by": made_by, "asked": asked, "finished": False})
        with progress(f"{made_by}, seed {seed}; the results will be in {out}") as tell:
            fits.fit(
                place, lambda task, _, done, total: tell(f"{done} of {total} fits; {task.name}", 0.9 * done, total)
            )
            table, rows = judge_as_released(
                fits, released, draws, lambda words, done, total: tell(words, 0.9 + 0.1 * done / total, 1.0)
            )
        for name, contents in (("table2", table.reset_index()), ("observers", rows)):
            write_whole(
                out / f"{name}.csv", lambda file, it=contents: it.to_csv(file, index=False, float_format="%.9g")
            )
        text = page(fits, table, rows, draws)
        write_whole(out / PAGE, lambda file: file.write_text(text, encoding="utf-8"))
        about = {"draws": draws, "seed": seed, "table2": table.to_dict(orient="index")}
        summary = {"made_by": made_by, "asked": asked, "finished": True, "versions": versions()} | about
        write_json(out / SUMMARY, summary)
        return json.dumps(finite(summary)) if as_json else f"{table.round(3).to_string()}\nThe page is {out / PAGE}."

    print(resumable(out, work))


def _numbers(folds: str, count: int) -> tuple[int, ...]:
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


def _each(whole: "Dataset", observers: list, maps: str) -> "dict[Any, Dataset]":
    """Every observer's data set, with the maps that were asked for."""
    if maps == "published":
        return {observer: whole.select(observers=[observer]) for observer in observers}
    from foveate.data.dataset import Dataset
    from foveate.data.readers.potsdam35 import potsdam35_leave_one_out

    others = potsdam35_leave_one_out(whole.paths)
    each = {}
    for observer in observers:
        own = whole.paths.select(observers=[observer])
        each[observer] = Dataset(own, others[observer].select(own.pictures))
    return each
