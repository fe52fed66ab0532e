"""The real command, as a user runs it: in a process of its own."""

import csv
import json
import shlex
import signal
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from foveate.cli import COMMANDS, app

COMMAND = Path(sys.executable).parent / "foveate"
SEED = 3
PROGRAM = typer.main.get_command(app)


def foveate(*arguments, **settings) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=400, check=False, **settings
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    """One run of the demo, into a folder that already holds somebody's file."""
    folder = tmp_path_factory.mktemp("demo") / "results"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    return folder, foveate("demo", "--out", folder, "--seed", SEED, "--json")


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"]])
def test_help_ends_with_an_example(arguments):
    done = foveate(*arguments)
    assert done.returncode == 0
    assert done.stdout.strip().splitlines()[-1].strip().startswith("Example: foveate demo ")


every_command = pytest.mark.parametrize("name", list(PROGRAM.commands))


@every_command
def test_help_of_every_command_ends_with_an_example_that_the_command_takes(name, capsys):
    with pytest.raises(typer.Exit):
        PROGRAM.commands[name].make_context(name, ["--help"])
    _, example = " ".join(capsys.readouterr().out.split()).rsplit(" Example: ", 1)
    program, command, *arguments = shlex.split(example)
    assert (program, command) == ("foveate", name)
    PROGRAM.commands[name].make_context(name, arguments)  # refuses options and values that do not exist


@every_command
def test_every_command_and_option_is_documented(name):
    command = PROGRAM.commands[name]
    (function,) = [function for _, function in COMMANDS if function.__name__ == name]
    assert command.help
    assert command.short_help
    assert function.__doc__
    assert [parameter.name for parameter in (*PROGRAM.params, *command.params) if not parameter.help] == []


def test_help_imports_nothing_heavy():
    """Instant: what takes a second to import is not there yet."""
    code = "import sys, foveate.cli; print([name for name in ('jax', 'pandas', 'scipy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_version():
    assert foveate("--version").stdout == f"foveate {version('foveate')}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo"], "--out"),
        (["dmeo"], "dmeo"),
        (["demo", "--out", "x", "--seed", "one"], "--seed"),
        (["demo", "--out", "x", "--seed", "-1"], "--seed"),
        (["demo", "--out", __file__], "is a file"),
        (["fit"], "--out"),
        (["fit", "--out", "x", "--workers", "0"], "--workers"),
        (["diagnose"], "folder"),
        (["diagnose", "nowhere"], "no folder nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, words, tmp_path):
    done = foveate(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_files_that_foveate_did_not_make_are_not_written_over(tmp_path):
    (tmp_path / "scores.csv").write_text("mine")
    done = foveate("demo", "--out", tmp_path)
    assert done.returncode == 2
    assert "scores.csv" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("scores.csv", "mine")]


LISTEN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_ctrl_c_is_one_line(tmp_path):
    # A shell that runs the tests in the background has its children ignore Ctrl-C: a person's terminal does not.
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, COMMAND, "demo", "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "tabulating" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("foveate: interrupted")


def test_demo_writes_what_it_says_and_leaves_other_files_alone(demo):
    folder, done = demo
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {Path(file).name for file in said["files"]} == {file.name for file in folder.iterdir()} - {"notes.txt"}
    assert all(Path(file).stat().st_size > 0 for file in said["files"])
    assert (folder / "notes.txt").read_text() == "mine"


def test_demo_shows_progress(demo):
    _, done = demo
    assert "100%" in done.stderr
    assert "fitting Full" in done.stderr


def test_demo_scores_carry_seed_and_versions(demo):
    folder, _ = demo
    about = json.loads((folder / "scores.json").read_text())
    assert about["seed"] == SEED
    assert about["versions"]["foveate"] == version("foveate")
    with (folder / "scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    for name, scores in about["models"].items():
        observers = [float(row["bits_per_fixation"]) for row in rows if row["model"] == name]
        assert len(observers) == 6
        assert sum(observers) / 6 == pytest.approx(scores["mean_bits"])


def test_demo_ranks_the_model_that_made_the_data_first(demo):
    """The truth is known: paths came from the full model, so the map alone must be far behind and the rivals too."""
    folder, _ = demo
    models = json.loads((folder / "scores.json").read_text())["models"]
    means = {name: scores["mean_bits"] for name, scores in models.items()}
    assert max(means, key=lambda name: means[name]) == "full"
    assert means["saliency_baseline"] < means["local_saliency"] < means["full"] - 0.1


def test_the_demos_posterior_can_be_read_back(demo):
    from foveate import Posterior

    folder, _ = demo
    assert Posterior.load(folder / "posterior.nc").converged


def test_demo_tables_can_be_read_back(demo):
    from foveate import ScanPaths, read_table
    from foveate.example import GRID

    folder, _ = demo
    paths, report = read_table(
        folder / "simulated.csv", frame=GRID.extent, position_unit="deg", x="x_deg", y="y_deg", trial="trial"
    )
    assert isinstance(paths, ScanPaths)
    assert report.fixations == report.rows
    assert set(paths.columns["policy"][paths.real]) == {-1, 0, 1}
