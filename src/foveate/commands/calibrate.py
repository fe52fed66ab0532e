"""`foveate calibrate`: simulation-based calibration of the samplers, model by model."""

import json
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import AsJson, Seed
from foveate.commands.outputs import (
    FITTED,
    MODELS,
    PARTS,
    chosen,
    chosen_models,
    finite,
    own_folder,
    progress,
    refuse_version,
    resumable,
    versions,
    write_json,
)
from foveate.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from foveate.evaluate.calibration import Calibration
    from foveate.inference.samples import Progress
    from foveate.model.model import Model

SAMPLERS = ("importance", "nuts", "smc", "laplace")
SUMMARY, MADE_BY = "calibration.json", "foveate calibrate"
ENDINGS = (".jsonl", ".csv", ".png", ".svg")  # of the files of a model and a sampler: fits, ranks, figure
RECOVERY = "_recovery"  # before the ending of the figure of true values and those that were found
EXAMPLE = "Example: foveate calibrate --out calibration --models local_saliency --data-sets 200 --seed 1"
SHORT_HELP = "Check that posteriors are as wide as they should be."
HELP = (
    "Check that posteriors are as wide as they should be: draw parameters from the priors, simulate small data sets "
    "with them, fit, and test whether the ranks of the true values among the draws are uniform. Stopped with Ctrl-C, "
    "the same command goes on where it was. Gibbs sampling has a test of its own."
)


def calibrate(
    out: Annotated[Path, typer.Option(help="Folder for the results; made if it does not exist.")],
    models: Annotated[
        str,
        typer.Option(
            help=f"Models, with commas: {', '.join(FITTED)} (without durations); all: {', '.join(MODELS)}; parts: "
            f"small models that hold every part beyond the paper, {', '.join(PARTS)}."
        ),
    ] = "all",
    samplers: Annotated[
        str, typer.Option(help=f"Samplers, with commas: {', '.join(SAMPLERS)}; or all.")
    ] = "importance,nuts",
    data_sets: Annotated[int, typer.Option(min=1, help="Simulated data sets for each model and sampler.")] = 200,
    paths: Annotated[int, typer.Option(min=1, max=1000, help="Scan paths of a data set, each on another map.")] = 8,
    fixations: Annotated[int, typer.Option(min=3, max=1000, help="Fixations of a scan path.")] = 10,
    seed: Seed = 1,
    false_alarm: Annotated[
        float, typer.Option(min=1e-6, max=0.5, help="Probability that a sampler that is right fails.")
    ] = 0.01,
    as_json: AsJson = False,
) -> None:
    """Calibrate, write ranks and figures, and print a table with the verdicts."""
    jobs = [
        (model, sampler) for model in chosen_models(models, FITTED) for sampler in chosen(samplers, SAMPLERS, "sampler")
    ]
    from foveate.execution.store import locked

    endings = (*ENDINGS, *(f"{RECOVERY}{ending}" for ending in (".png", ".svg")))
    names = [f"{it}_{sampler}{ending}" for it in (*FITTED, *PARTS) for sampler in SAMPLERS for ending in endings]
    own_folder(out, [SUMMARY, *names], SUMMARY, MADE_BY)
    with locked(out):
        earlier = _earlier(out, seed)
        write_json(out / SUMMARY, _summary(earlier, [], seed))  # whose folder it is, from the first fit on
        sizes = {"data_sets": data_sets, "paths": paths, "fixations": fixations}
        found = resumable(out, lambda: _run(out, jobs, sizes, seed, false_alarm))
        about = _summary(earlier, found, seed)
        write_json(out / SUMMARY, about)
    if as_json:
        print(json.dumps(finite(about)))
    else:
        _print_table(found, out)


def _run(
    out: Path, jobs: list[tuple[str, str]], sizes: dict[str, Any], seed: int, false_alarm: float
) -> "list[Calibration]":
    """The calibrations one after the other; each has a file of its own in the folder, and is drawn when it is done."""
    import jax

    from foveate.evaluate.calibration import calibrate as calibrate_sampler
    from foveate.execution.cache import keep_compiled

    keep_compiled()
    found = []
    heading = f"foveate calibrate, seed {seed}; the results will be in {out}"
    with progress(heading) as tell:
        for number, (name, sampler) in enumerate(jobs):

            def told(at: "Progress", number: int = number, name: str = name, sampler: str = sampler) -> None:
                words = f"{_title(name)}, {sampler}, data set {at.done} of {at.total}"
                if at.facts["unconverged"]:
                    words += f", {at.facts['unconverged']:.0f} with problems"
                tell(words, number + at.done / at.total, len(jobs))

            calibration = calibrate_sampler(
                _model(name),
                jax.random.key(seed),
                sampler=sampler,
                **sizes,
                false_alarm=false_alarm,
                store=out / f"{name}_{sampler}.jsonl",
                report=told,
            )
            _write_ranks(out, calibration)
            _draw(out, calibration)
            found.append(calibration)
    return found


def _model(name: str) -> "Model":
    """The model of this name; the recommended one without durations, which it does not simulate."""
    from foveate.experiments.part_models import part_model
    from foveate.model.catalogue import named_model

    if name in PARTS:
        return part_model(name)
    return named_model(name, durations=False) if name == "wayfarer" else named_model(name)


def _title(name: str) -> str:
    from foveate.experiments.part_models import PART_TITLES
    from foveate.model.catalogue import TITLES

    return (TITLES | PART_TITLES)[name]


def _draw(out: Path, calibration: "Calibration") -> None:
    import numpy as np

    from foveate.figures.calibration import calibration as draw_calibration
    from foveate.figures.recovery import true_and_found
    from foveate.figures.style import journal_style, save

    band = calibration.band
    title = f"{_title(calibration.model)}, {calibration.sampler}, {len(calibration.outcomes)} data sets"
    with journal_style():
        figure = draw_calibration(
            calibration.ranks,
            calibration.draws,
            calibration.differences,
            band.low_difference,
            band.high_difference,
            calibration.labels,
            f"{title}\n{calibration.verdict}",
        )
        save(figure, out, f"{calibration.model}_{calibration.sampler}")
        if all(it.mean for it in calibration.outcomes):  # fits that an earlier version kept have none
            labels = calibration.labels[:-1]  # without the log-likelihood
            truth, mean, low, high = (
                np.array([getattr(it, name)[: len(labels)] for it in calibration.outcomes])
                for name in ("truth", "mean", "low", "high")
            )
            figure = true_and_found(truth, mean, low, high, labels, calibration.recovery(), title)
            save(figure, out, f"{calibration.model}_{calibration.sampler}{RECOVERY}")


def _write_ranks(out: Path, calibration: "Calibration") -> None:
    import pandas as pd

    from foveate.inference.files import write_whole

    rows = [
        (outcome.index, label, rank, calibration.draws, truth, "; ".join(outcome.problems), *found)
        for outcome in calibration.outcomes
        for label, rank, truth, *found in zip_longest(
            calibration.labels, outcome.ranks, outcome.truth, outcome.mean, outcome.low, outcome.high
        )
    ]
    columns = ["data_set", "quantity", "rank", "draws", "truth", "problems", "mean", "5%", "95%"]
    table = pd.DataFrame(rows, columns=pd.Index(columns))
    file = out / f"{calibration.model}_{calibration.sampler}.csv"
    write_whole(file, lambda temporary: table.to_csv(temporary, index=False))


def _summary(earlier: dict[str, Any], found: "list[Calibration]", seed: int) -> dict[str, Any]:
    """What is in the summary: these results, and what earlier runs found for other models and samplers."""
    return {
        "made_by": MADE_BY,
        "seed": seed,
        "versions": versions(),
        "test": "ranks of the truth uniform: simultaneous ECDF test, exact, Bonferroni over quantities",
        "calibrations": earlier | {f"{it.model}_{it.sampler}": it.to_dict() for it in found},
    }


def _earlier(out: Path, seed: int) -> dict[str, Any]:
    """What earlier runs with the same seed and version left in the folder."""
    file = out / SUMMARY
    if not file.exists():
        return {}
    before = json.loads(file.read_text(encoding="utf-8"))
    if before["seed"] != seed:
        raise InputError(f"{out} holds calibrations with seed {before['seed']}: give that seed, or another folder.")
    refuse_version(out, before, MADE_BY)
    return before["calibrations"]


def _recovery_table(found: "list[Calibration]") -> "Table":
    """How well true values are found, over all numbers of each model."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title="True values", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("model")
    table.add_column("sampler", no_wrap=True)
    for heading in ("in 50 %", "in 90 %", "correlations"):
        table.add_column(heading, justify="right", no_wrap=True)
    for it in found:
        numbers = it.recovery()
        half, most = (f"{numbers[column].mean():.0%}" for column in ("inside_50", "inside_90"))
        low, high = numbers["correlation"].min(), numbers["correlation"].max()
        table.add_row(_title(it.model), it.sampler, half, most, f"{low:.2f} to {high:.2f}")
    return table


def _print_table(found: "list[Calibration]", out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from foveate.commands.verdicts import result_console

    table = Table(title="Simulation-based calibration", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("model")
    table.add_column("sampler", no_wrap=True)
    for heading in ("data sets", "smallest p", "problems", "by SMC", "s a fit"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for it in found:
        worst = it.p_values.argmin()
        seconds = sum(outcome.seconds for outcome in it.outcomes) / len(it.outcomes)
        table.add_row(
            _title(it.model), it.sampler, str(len(it.outcomes)), f"{it.p_values[worst]:.2g} {it.labels[worst]}",
            str(len(it.unconverged)), "-" if it.sampler == "smc" else str(len(it.taken_over)), f"{seconds:.1f}",
            "passed" if it.passed else "FAILED",
        )  # fmt: skip
    console = result_console()
    console.print(table)
    console.print(_recovery_table(found))
    rate = found[0].false_alarm
    console.print(
        f"A row fails if its smallest p is below {rate:g} divided by the number of quantities, which happens with "
        f"probability {rate:g} or less to a sampler that is right. Fits with problems are counted and kept, and so are "
        f"those in which tempered SMC took over ('by SMC'). 'in 50 %' and 'in 90 %': how many true values lie in the "
        f"central intervals of their draws; correlations are of true values and means of draws, by ranks, the lowest "
        f"and the highest of the model's numbers. Ranks, figures and {SUMMARY} are in {out}."
    )
