"""Options that several commands have, each defined once, and groups of them that are one argument of a command."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final, get_type_hints

import typer

from foveate.commands.outputs import MODELS

if TYPE_CHECKING:
    from foveate.data.dataset import Observed
    from foveate.data.scanpaths import ScanPaths
    from foveate.execution.places import Place

COMPARED = ("saliency_baseline", *MODELS)  # models that can be set beside each other

Results = Annotated[Path, typer.Option(help="Folder for the results: a new one, or one to go on with.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="A settings file for data of your own (FILE.toml, see `foveate init`), 'example' for the built-in example "
        "data, or the potsdam35 folder; without it the one that the environment variable FOVEATE_POTSDAM35 names.",
        metavar="SOURCE",
        show_default=False,
    ),
]
Potsdam35 = Annotated[
    str | None,
    typer.Option(
        help="The potsdam35 folder; without it the one that the environment variable FOVEATE_POTSDAM35 names.",
        metavar="FOLDER",
        show_default=False,
    ),
]
Priors = Annotated[str, typer.Option(help="weak or published.", metavar="NAME")]
Ordered = Annotated[bool, typer.Option("--ordered", help="Allow epsilon below xi only, on both axes.")]
Compared = Annotated[str, typer.Option(help=f"Models, with commas: {', '.join(COMPARED)}; or all.")]
Observers = Annotated[str, typer.Option(help="'all', or names with commas between; 1-6 is a range.", metavar="NAMES")]
Predicting = Annotated[int, typer.Option(min=2, max=1000, help="Posterior draws that predict and simulate.")]
Cells = Annotated[int, typer.Option(min=2, max=1024, help="Cells of a map along each side.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything that is drawn at random.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; without it one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:PORT.", metavar="ADDRESS")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of a table.")]


# --- groups ----------------------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Given:
    """What a study is about: the folder of its results, whose data, and the priors of the models fitted to them."""

    out: Results
    data: Data = None
    priors: Priors = "weak"
    observers: Observers = "all"
    cells: Cells = 64

    def read(self) -> "tuple[ScanPaths, Observed]":
        """(Everybody's scan paths, the data of the observers that were named)."""
        from foveate.commands.reading import chosen_observers, read

        readings = read(self.data, self.cells)
        return readings.paths, readings.chosen(chosen_observers(readings.paths, self.observers))


@final
@dataclass(frozen=True)
class Run:
    """How a study is run and shown; nothing but the seed changes its results."""

    seed: Seed = 1
    workers: Workers = None
    scheduler: Scheduler = None
    as_json: AsJson = False

    def place(self) -> "Place":
        """Where its fits are computed."""
        from foveate.execution.places import place_for

        return place_for(self.workers, self.scheduler)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every group among its arguments replaced by the options in it, which Typer understands."""
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    options = []
    for name, parameter in own.items():
        if name in groups:
            of_group = inspect.signature(groups[name]).parameters.values()
            options += [it.replace(kind=inspect.Parameter.KEYWORD_ONLY) for it in of_group]
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def with_options(**chosen: Any) -> None:
        made = {name: kind(**{it.name: chosen.pop(it.name) for it in fields(kind)}) for name, kind in groups.items()}
        command(**made, **chosen)

    with_options.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_options.__annotations__ = {it.name: it.annotation for it in options}
    return with_options
