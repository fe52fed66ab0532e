"""`foveate demo`: the whole way from a table of fixations to a report, on built-in example data."""

import json
import shlex
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands import check, compare, fit, init, report, simulate
from foveate.commands.options import Seed

if TYPE_CHECKING:
    from foveate.demo import Demo

HELP = (
    "Go the whole way on built-in example data, as you would with your own: write a table of fixations, check it, fit "
    "a model, compare two on pictures that they have not seen, simulate scan paths, and make a report to open in a "
    "browser. Every command is shown. Takes a minute or two; the same command goes on where it was stopped."
)
SHORT_HELP = "Go the whole way, from a table to a report, on example data."
EXAMPLE = "Example: foveate demo --out demo --seed 1"
STEPS = (init.init, check.check, fit.fit, compare.compare, simulate.simulate, report.report)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results: a new one, or one to go on with.")],
    seed: Seed = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON, and nothing else.")] = False,
) -> None:
    """Take the folder, run every command, say where the report is."""
    from foveate.demo import Demo

    job = Demo(out, seed)
    if as_json:
        with redirect_stdout(sys.stderr):
            summary = run(job)
        print(json.dumps(summary))
    else:
        run(job)


def run(job: "Demo") -> dict[str, Any]:
    """Run the commands of a demo, each shown as one would type it; the summary that was written."""
    from foveate.commands.outputs import claim, versions, write_json
    from foveate.demo import MADE_BY, SUMMARY

    asked = {"seed": job.seed, "observers": list(job.observers), "cells": job.cells}
    asked |= {"fitted": job.fitted, "compared": list(job.compared), "folds": job.folds, "draws": job.draws}
    claim(job.folder, [*job.contents, "check.svg", "scanpath.svg"], SUMMARY, MADE_BY, asked)
    print(f"The report will be {job.report}, in a minute or two. These are the commands that lead to it:", flush=True)
    program, steps, began = _program(), [], time.monotonic()
    job.prepare()
    for words in job.commands():
        print(f"\n$ foveate {shlex.join(words)}", flush=True)
        started = time.monotonic()
        code = program(words, standalone_mode=False)
        if isinstance(code, int) and code:
            raise typer.Exit(code)
        steps.append({"command": f"foveate {shlex.join(words)}", "seconds": round(time.monotonic() - started, 1)})
    summary = {"made_by": MADE_BY, "asked": asked, "finished": True, "versions": versions(), "seed": job.seed}
    summary |= {"report": str(job.report), "steps": steps, "seconds": round(time.monotonic() - began, 1)}
    summary |= {"files": [str(job.folder / name) for name in (*job.contents, "check.svg", "scanpath.svg")]}
    write_json(job.folder / SUMMARY, summary)
    print(f"\nIn {job.folder}, after {summary['seconds']:.0f} s:")
    for name, contents in job.contents.items():
        print(f"  {name:<14} {contents}")
    print(f"\nThe report is {job.report}: open it in a browser.")
    return summary


def _program() -> typer.Typer:
    """The commands of the demo, as the command line has them."""
    found = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    for step in STEPS:
        found.command()(step)
    return found
