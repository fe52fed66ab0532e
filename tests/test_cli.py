"""The real command, as a user runs it: in a process of its own."""

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
PROGRAM = typer.main.get_command(app)


def foveate(*arguments, **settings) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=400, check=False, **settings
    )


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
    (tmp_path / "report.html").write_text("mine")
    done = foveate("demo", "--out", tmp_path)
    assert done.returncode == 2
    assert "report.html" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("report.html", "mine")]


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
        while "foveate fit" not in process.stderr.readline():  # after the steps that are over at once
            assert process.poll() is None
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("foveate: interrupted")
