"""`foveate demo`: the main job on built-in example data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foveate.commands.messages import INTERRUPTED, say
from foveate.commands.outputs import progress

if TYPE_CHECKING:
    from rich.console import Console

    from foveate.demo import DemoResult, Notify
    from foveate.inference.posterior import Posterior

HELP = (
    "Run the main job on built-in example data: make the data, simulate scan paths with the full model, fit the "
    "five published models to each observer, score them on held-out pictures, draw one posterior, maps, a scan path, "
    "densities and the ranking. Takes about a minute. Files of an earlier demo are written over, others never."
)
SHORT_HELP = "Run the main job on built-in example data."
EXAMPLE = "Example: foveate demo --out demo --seed 1"


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results; made if it does not exist.")],
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the data, the simulation and the fits.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON instead of a table.")] = False,
) -> None:
    """Run the demo and print its scores."""
    try:
        with progress(f"foveate demo, seed {seed}; the results will be in {out}") as tell:
            result = _run(out, seed, lambda label, share: tell(label, share, 1.0))
    except KeyboardInterrupt:  # Typer would leave without a word
        raise typer.Exit(say("interrupted; run the same command again to start over.", INTERRUPTED)) from None
    if as_json:
        print(json.dumps(result.about | {"files": [str(file) for file in result.files]}))
    else:
        _print_scores(result)


def _run(out: Path, seed: int, notify: "Notify") -> "DemoResult":
    from foveate.demo import run_demo

    return run_demo(out, seed, notify)


def _print_scores(result: "DemoResult") -> None:
    """The ranking as a table, what it means in words, and where the files are."""
    from rich.console import Console
    from rich.table import Table

    from foveate.model.catalogue import TITLES

    table = Table("model", title="Held-out bits per fixation over uniform", title_justify="left")
    table.add_column("mean ± s.e.", justify="right")
    table.add_column("behind the best ± s.e.", justify="right")
    for name, (mean, error) in sorted(result.scores.items(), key=lambda item: -item[1].mean):
        behind = result.behind_best[name]
        gap = f"{behind.mean:.2f} ± {behind.standard_error:.2f}" if behind.mean else "-"
        table.add_row(TITLES[name], f"{mean:.2f} ± {error:.2f}", gap)
    console = Console()
    console.print(table)
    observers = len(next(iter(result.about["models"].values()))["observers_bits"])
    console.print(
        f"Means and standard errors over {observers} observers, each fitted on 8 pictures and scored on "
        f"{len(result.about['held_out_pictures'])} others; the second column is paired by observer. Parameters are "
        "point estimates (highest posterior density).",
        highlight=False,
    )
    _print_posterior(console, result.posterior)
    print(f"\nFiles in {result.folder}:")
    for name, contents in CONTENTS.items():
        print(f"  {name:<21} {contents}")


def _print_posterior(console: "Console", posterior: "Posterior") -> None:
    """What a posterior says of its parameters, and whether it can be trusted."""
    from rich.table import Table

    from foveate.model.catalogue import TITLES

    title = f"Posterior of {TITLES[posterior.model.name]}, observer {posterior.observer}"
    table = Table("parameter", title=f"\n{title}", title_justify="left")
    for name in ("mean", "sd", "2.5%", "97.5%", "R-hat", "ESS"):
        table.add_column(name, justify="right")
    for name, row in posterior.table().iterrows():
        numbers = [f"{row[column]:.1f}" for column in ("mean", "sd", "2.5%", "97.5%")]
        table.add_row(str(name), *numbers, f"{row['rhat']:.3f}", f"{row['ess_bulk']:.0f}")
    console.print(table)
    console.print(f"Variances in deg². The fit has {posterior.diagnosis.verdict}", highlight=False)


CONTENTS = {
    "scores.json": "scores with seed and versions",
    "scores.csv": "score of every model and observer",
    "fixations.csv": "the example data, one row per fixation",
    "simulated.csv": "paths simulated with the full model, with the policy of each fixation",
    "posterior.nc": "draws of one posterior, as Posterior.load and ArviZ read them",
    "maps.png, .svg": "the pictures' fixation densities",
    "scanpath.png, .svg": "one simulated path, each fixation in the colour of its policy",
    "policies.png, .svg": "what each policy expects at one step, and their mixture",
    "ranking.png, .svg": "the models' scores",
}
