"""`foveate recover`: the paper's recovery experiment, model by model."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from foveate.commands.interruption import interruptible
from foveate.commands.options import AsJson, Seed
from foveate.commands.outputs import (
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
    from foveate.data.saliency import SaliencyMaps
    from foveate.experiments.recovery import Recovery, RecoverySampler
    from foveate.inference.samples import Progress

SAMPLERS = ("nuts", "importance", "gibbs")
SUMMARY, MADE_BY = "recovery.json", "foveate recover"
ENDINGS = (".nc", ".csv", ".png", ".svg")  # of the files of a model: posterior, table, figure
CHAIN_STAGES = ("warm-up", "drawing")  # of a sampler's progress: these count on, others start again
EXAMPLE_DATA = "example"
EXAMPLE = "Example: foveate recover --out recovery --models full --chains 10 --seed 1"
SHORT_HELP = "Simulate with known parameters and see whether a fit finds them."
HELP = (
    "The paper's recovery experiment: simulate scan paths of one observer with known parameters, fit the model to "
    "them with chains that start far apart, and see where the truth lies in the posterior. Truths and priors are the "
    "published ones; those of the small models of parts are what their parameters start from. Stopped with Ctrl-C, "
    "the same command goes on with the first model that is not done."
)


def recover(
    out: Annotated[Path, typer.Option(help="Folder for the results; made if it does not exist.")],
    data: Annotated[
        str,
        typer.Option(help="Where the maps come from: the potsdam35 folder, or 'example'.", metavar="FOLDER"),
    ] = EXAMPLE_DATA,
    models: Annotated[
        str,
        typer.Option(
            help=f"Models, with commas: {', '.join(MODELS)}, or all of these; parts: small models that hold every part "
            f"beyond the paper, {', '.join(PARTS)}."
        ),
    ] = "all",
    sampler: Annotated[str, typer.Option(help=f"One of {', '.join(SAMPLERS)}.")] = "nuts",
    chains: Annotated[int, typer.Option(min=2, max=100, help="Chains, or replicates of importance sampling.")] = 10,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Recover, write posteriors, figures and a table, and print it."""
    names = chosen_models(models, MODELS)
    if len(chosen(sampler, SAMPLERS, "sampler")) != 1:
        raise InputError(f"--sampler {sampler}: give one sampler; there are {', '.join(SAMPLERS)}.")
    without = [name for name in names if name in ("local_saliency", *PARTS)]
    if sampler == "gibbs" and without:
        raise InputError(
            f"Gibbs sampling has no conditionals for {without[0]}: say --models full,local_choice,fixed_choice."
        )
    from foveate.execution.store import locked

    maps = interruptible(lambda: _maps(data))  # a mistake in --data comes out before anything is written
    files = [f"{name}{ending}" for name in (*MODELS, *PARTS) for ending in ENDINGS]
    own_folder(out, [SUMMARY, *files], SUMMARY, MADE_BY)
    asked = {"seed": seed, "data": data, "sampler": sampler, "chains": chains}
    with locked(out):
        earlier = _claim(out, asked)
        found = resumable(out, lambda: _run(out, names, maps, asked))
        about = _summary(asked, earlier, found)
        write_json(out / SUMMARY, about)
    if as_json:
        print(json.dumps(finite(about)))
    else:
        _print_tables(out, found)


def _claim(out: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """What the folder's summary says about models that are done; a folder with something else is refused."""
    file = out / SUMMARY
    if file.exists():
        before = json.loads(file.read_text(encoding="utf-8"))
        differ = [f"--{name} {before.get(name)}" for name, value in asked.items() if before.get(name) != value]
        if differ:
            raise InputError(f"{out} holds a recovery with {' '.join(differ)}: say so, or give another folder.")
        refuse_version(out, before, MADE_BY)
        return before["models"]
    write_json(file, _summary(asked, {}, []))
    return {}


def _run(out: Path, names: list[str], maps: "SaliencyMaps", asked: dict[str, Any]) -> "list[Recovery]":
    """The recoveries, one after the other; those whose posterior is in the folder are not done again."""
    import jax

    from foveate.execution.cache import keep_compiled
    from foveate.experiments.recovery import recover_once

    keep_compiled()
    key, found = jax.random.key(asked["seed"]), []
    sampler = cast("RecoverySampler", asked["sampler"])
    with progress(f"foveate recover, seed {asked['seed']}; the results will be in {out}") as tell:
        for number, name in enumerate(names):
            furthest = 0.0

            def told(at: "Progress", number: int = number, name: str = name) -> None:
                nonlocal furthest
                share = at.done / max(at.total, 1) if at.stage in CHAIN_STAGES else 0.0
                furthest = min(max(furthest, share), 1.0)  # importance sampling may draw more than it set out to
                tell(f"{name}, {at.stage} {at.done} of {at.total}", number + 0.97 * furthest, len(names))

            tell(f"{name}, simulating", number, len(names))
            chosen = {"sampler": sampler, "chains": asked["chains"], "report": told}
            recovery = recover_once(out / f"{name}.nc", name, maps, key, **chosen)
            _write(out, recovery)
            found.append(recovery)
    return found


def _maps(source: str) -> "SaliencyMaps":
    if source == EXAMPLE_DATA:
        from foveate.example import example_data

        return example_data().data.maps
    from foveate.data.readers.potsdam35 import read_potsdam35

    return read_potsdam35(os.path.expanduser(source)).maps


def _write(out: Path, recovery: "Recovery") -> None:
    """The table and the figure of a model."""
    from foveate.figures.recovery import recovery as draw_recovery
    from foveate.figures.style import journal_style, save
    from foveate.inference.files import write_whole

    name = recovery.truth.name
    write_whole(out / f"{name}.csv", lambda temporary: recovery.table().to_csv(temporary))
    with journal_style():
        save(draw_recovery(recovery.posterior, recovery.truths), out, name)


def _summary(asked: dict[str, Any], earlier: dict[str, Any], found: "list[Recovery]") -> dict[str, Any]:
    models = earlier | {it.truth.name: it.to_dict() for it in found}
    return {"made_by": MADE_BY} | asked | {"versions": versions(), "models": models}


def _print_tables(out: Path, found: "list[Recovery]") -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from foveate.commands.verdicts import result_console
    from foveate.experiments.part_models import PART_TITLES
    from foveate.figures.labels import with_unit
    from foveate.model.catalogue import TITLES

    console = result_console()
    for it in found:
        seconds = it.posterior.provenance["seconds"]
        title = f"{(TITLES | PART_TITLES)[it.truth.name]}, {it.posterior.samples.sampler}, {seconds:.0f} s"
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("number", no_wrap=True)
        for heading in ("truth", "mean", "sd", "95 % interval", "below truth", "R-hat", "ESS"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("inside")
        for label, row in it.table().iterrows():
            table.add_row(
                with_unit(str(label)), f"{row['truth']:.3g}", f"{row['mean']:.3g}", f"{row['sd']:.2g}",
                f"{row['2.5%']:.3g} to {row['97.5%']:.3g}", f"{row['quantile']:.1%}", f"{row['rhat']:.3f}",
                f"{row['ess_bulk']:.0f}", "yes" if bool(row["inside"]) else "NO",
            )  # fmt: skip
        console.print(table)
        console.print(it.verdict, markup=False)
    console.print(
        f"'below truth' is the share of the draws below the true value, 'inside' whether that lies in the interval. "
        f"Figures, tables and posteriors are in {out}.",
        markup=False,
    )
