"""Groups of options: to Typer they are options like others, to the command one argument."""

import inspect
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from foveate.commands.compare import compare
from foveate.commands.confuse import confuse
from foveate.commands.options import Given, Run, grouped
from foveate.commands.reliability import reliability
from foveate.commands.reproduce import reproduce

RUN = ["seed", "workers", "scheduler", "as_json"]


def test_a_command_gets_its_groups_whole_and_its_own_options_as_they_are():
    got = []

    @grouped
    def command(given: Given, folds: Annotated[int, typer.Option(min=2)] = 5, *, run: Run) -> None:
        got.append((given, folds, run))

    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, ["--out", "there", "--cells", "8", "--folds", "3", "--workers", "2", "--json"])
    assert done.exit_code == 0, done.output
    [(given, folds, run)] = got
    assert (str(given.out), given.data, given.priors, given.observers, given.cells) == ("there", None, "weak", "all", 8)
    assert folds == 3
    assert run == Run(seed=1, workers=2, scheduler=None, as_json=True)
    assert CliRunner().invoke(app, ["--out", "there", "--seed", "-1"]).exit_code == 2
    assert CliRunner().invoke(app, []).exit_code == 2  # --out has no default


@pytest.mark.parametrize("command", [compare, confuse, reliability, reproduce])
def test_options_of_a_run_come_last(command):
    names = list(inspect.signature(command).parameters)
    assert names[0] == "out"
    assert names[-4:] == RUN
