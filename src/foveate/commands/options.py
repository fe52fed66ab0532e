"""Options that several commands have, each defined once."""

from pathlib import Path
from typing import Annotated

import typer

from foveate.commands.outputs import MODELS

COMPARED = ("saliency_baseline", *MODELS)  # models that can be set beside each other

Results = Annotated[Path, typer.Option(help="Folder for the results: a new one, or one to go on with.")]
Data = Annotated[
    str | None,
    typer.Option(
        help="The potsdam35 folder, or 'example' for the built-in example data; without it the folder that the "
        "environment variable FOVEATE_POTSDAM35 names.",
        metavar="FOLDER",
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
Compared = Annotated[str, typer.Option(help=f"Models, with commas: {', '.join(COMPARED)}; or all.")]
Observers = Annotated[str, typer.Option(help="'all', or names with commas between; 1-6 is a range.", metavar="NAMES")]
Predicting = Annotated[int, typer.Option(min=2, max=1000, help="Posterior draws that predict and simulate.")]
Cells = Annotated[int, typer.Option(min=2, max=1024, help="Cells of a map along each side.")]
Seed = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of everything that is drawn at random.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; without it one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:PORT.", metavar="ADDRESS")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of a table.")]
