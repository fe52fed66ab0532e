"""`foveate ablate`: what each mechanism adds, on held-out pictures; resumes where it stopped."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import Cells, Data, Observers, Predicting, Results, Run, grouped
from foveate.commands.outputs import Tell
from foveate.commands.reading import EXAMPLE_DATA, SETTINGS_ENDING
from foveate.commands.reproduce import MAPS, each_with_maps, numbers_of_folds
from foveate.commands.studies import PAGE, Job, fits_told, part_of, show
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.data.dataset import Dataset
    from foveate.evaluate.crossval import CrossValidation
    from foveate.execution.places import Place

SUMMARY, MADE_BY, BOTH = "ablation.json", "foveate ablate", "both"
FITS = 0.9  # how far the bar is when the fits are done
FOLDS = 5  # that pictures are dealt into where the data have none of their own
HELP = (
    "Switch mechanisms on and off: fit the paper's model with each mechanism, and the recommended one without each, to "
    "every observer without the pictures of a fold, and judge them by the bits of those. Ends in a folder with tables, "
    "a figure and a page. Interrupt it as you like: the same command goes on where it stopped."
)
SHORT_HELP = "Find out what each mechanism adds on held-out pictures."
EXAMPLE = "Example: foveate ablate --data example --rows full+momentum --observers ann,ben --cells 16 --out ablation"


@grouped
def ablate(
    out: Results,
    data: Data = None,
    maps: Annotated[
        str, typer.Option(help="published, leave-one-out (each observer's without their own fixations) or both.")
    ] = "published",
    rows: Annotated[str, typer.Option(help="'all', or names with commas, such as full+momentum.")] = "all",
    observers: Observers = "all",
    folds: Annotated[str, typer.Option(help="'all', or numbers from 1 to 5 with commas between.")] = "all",
    draws: Predicting = 50,
    cells: Cells = 64,
    *,
    run: Run,
) -> None:
    """Fit what is missing, judge, write, print the differences."""
    if maps not in (*MAPS, BOTH):
        raise InputError(f"--maps {maps}: say {', '.join(MAPS)} or {BOTH}.")
    kinds = MAPS if maps == BOTH else (maps,)
    asked = {"data": data, "maps": maps, "rows": rows, "observers": observers, "folds": folds, "draws": draws}
    asked |= {"cells": cells, "seed": run.seed}

    def work() -> dict[str, Any]:
        from foveate.experiments.ablation import SAMPLER, SAMPLER_SETTINGS, chosen_rows

        whole, each, dealt = read_and_deal(data, kinds, observers, cells, run.seed)
        seconds = whole.paths.duration_s
        chosen = chosen_rows(rows, durations=seconds is not None and bool((seconds > 0).any()))
        models = {name: row.model for name, row in chosen.items()}
        settings = {"chosen_folds": numbers_of_folds(folds, len(dealt)), "pool": whole.paths, "seed": run.seed}
        from foveate.evaluate.crossval import CrossValidation

        validations = {
            kind: CrossValidation.of(
                out / kind, models, own, dealt, sampler=SAMPLER, settings=SAMPLER_SETTINGS, **settings
            )
            for kind, own in each.items()
        }
        return _run(Job(MADE_BY, out, asked, SUMMARY, (PAGE, *MAPS)), run, validations, chosen, draws)

    show(out, run, work, lambda summary: _closing_words(out, summary))


def read_and_deal(
    source: str | None, kinds: tuple[str, ...], names: str, cells: int, seed: int
) -> "tuple[Dataset, dict[str, dict[Any, Dataset]], Any]":
    """(The whole data set, every observer's data by kind of maps, the folds)."""
    from foveate.commands.reading import chosen_observers, read
    from foveate.data.dataset import Dataset
    from foveate.evaluate.folds import potsdam35_folds, random_folds

    readings = read(source, cells)
    own = source is not None and (source == EXAMPLE_DATA or source.endswith(SETTINGS_ENDING))
    if not isinstance(readings.data, Dataset):
        raise InputError(f"--data {source}: every observer has maps of their own there; this takes common ones.")
    if own and kinds != MAPS[:1]:
        raise InputError(f"--maps {' and '.join(kinds)}: only potsdam35 has maps made anew; leave --maps out.")
    whole, who = readings.data, chosen_observers(readings.paths, names)
    dealt = random_folds(whole.paths.pictures, FOLDS, seed) if own else potsdam35_folds()
    return whole, {kind: each_with_maps(whole, who, kind) for kind in kinds}, dealt


def _run(
    job: Job, run: Run, validations: "Mapping[str, CrossValidation]", rows: Mapping[str, Any], draws: int
) -> dict[str, Any]:
    def check() -> None:
        for validation in validations.values():
            validation.fits.check()

    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        from foveate.experiments.ablation import judge_rows
        from foveate.experiments.ablation_files import write_ablation

        share = 1.0 / len(validations)
        found = {}
        for index, (kind, validation) in enumerate(validations.items()):
            begin = index * share
            validation.fits.fit(place, fits_told(part_of(tell, begin, begin + FITS * share)))
            found[kind] = judge_rows(validation, rows, draws, part_of(tell, begin + FITS * share, begin + share))
        return write_ablation(found, rows, job.out, job.asked)

    return job.carry_out(run, check, work)


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    lines = []
    for kind, table in summary["rows"].items():
        lines.append(f"{kind + ' maps':<40} {'bits':>7} {'difference':>11} {'95 % interval':>18}")
        for line in (it for it in table if it["folds"] == "all"):
            words = f"{line['title']:<40} {line['bits']:7.3f}"
            if line["base"] is not None:
                words += (
                    f" {line['difference']:+11.3f}  [{line['difference_low']:+.3f}, {line['difference_high']:+.3f}]"
                )
            lines.append(words)
    return "\n".join([*lines, f"The page is {out / PAGE}."])
