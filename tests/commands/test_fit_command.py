"""`foveate fit` as a user runs it: killed, interrupted, resumed, and given wrong arguments."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jax
import numpy as np
import pandas as pd
import pytest

from foveate import InputError, cli
from foveate.execution.store import FitStore
from foveate.inference.smc import PARTICLES_PER_NUMBER, tempered

COMMAND = Path(sys.executable).parent / "foveate"
OBSERVERS = ["ann", "ben", "cleo"]
COARSE = ["--data", "example", "--cells", "16"]
ARGUMENTS = ["fit", *COARSE, "--model", "local_saliency", "--observers", ",".join(OBSERVERS)]

# A shell that runs the tests in the background has its children ignore Ctrl-C: a person's terminal does not.
LISTEN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """One cache of compiled functions for all runs, empty at first."""
    own = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return own | {"FOVEATE_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, environment) -> tuple[Path, subprocess.CompletedProcess]:
    folder = tmp_path_factory.mktemp("undisturbed") / "fits"
    return folder, run_fit(folder, environment, "--workers", "2", "--json")


def run_fit(folder: Path, environment: dict[str, str], *more: str) -> subprocess.CompletedProcess:
    command = [COMMAND, *ARGUMENTS, "--out", folder, *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def stopped(folder: Path, environment: dict[str, str], after: str, with_signal: int) -> tuple[int, str, float]:
    """Exit code and standard error of a run that gets a signal once it has said something, and how long it took."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, COMMAND, *ARGUMENTS, "--out", folder, "--workers", "1"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        said = ""
        while after not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        began = time.monotonic()
        process.send_signal(with_signal)
        rest = process.communicate(timeout=60)[1]
        return process.returncode, said + rest, time.monotonic() - began


def test_a_run_says_what_it_does_and_prints_json_alone(undisturbed):
    folder, done = undisturbed
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert len(done.stdout.splitlines()) == 1
    assert [fit["observer"] for fit in said["fits"]] == OBSERVERS
    assert said["seed"] == 1
    assert all(Path(fit["file"]).is_file() for fit in said["fits"])
    lines = done.stderr.splitlines()
    assert str(folder) in lines[0]
    assert len(lines) == 1 + len(OBSERVERS)
    assert {line.split()[0] for line in lines[1:]} == {"1/3", "2/3", "3/3"}


def test_a_run_that_is_killed_and_interrupted_ends_with_the_same_bits(undisturbed, environment, tmp_path):
    folder = tmp_path / "fits"
    code, _, _ = stopped(folder, environment, "1/3", signal.SIGKILL)
    assert code == -signal.SIGKILL
    first = (folder / "observer-ann.nc").stat()
    (folder / f".observer-ben.nc.{'0' * 32}.tmp").write_bytes(b"what a kill in the middle of a write leaves")

    code, said, seconds = stopped(folder, environment, "2/3", signal.SIGINT)
    assert code == 130
    assert "1 of 3 observers are finished already" in said
    assert "Traceback" not in said
    last = said.splitlines()[-1]
    assert last.startswith("foveate: interrupted; 2 of 3 observers are finished")
    assert "same command" in last
    assert seconds < 5  # a second or two, on a machine that does nothing else

    done = run_fit(folder, environment)
    assert done.returncode == 0, done.stderr
    assert "All 3 fits have converged." in done.stdout
    assert (folder / "observer-ann.nc").stat().st_mtime_ns == first.st_mtime_ns
    fits = [f"observer-{it}.nc" for it in OBSERVERS]
    assert sorted(file.name for file in folder.iterdir()) == ["estimates.csv", *fits, "run.json"]
    estimates = pd.read_csv(folder / "estimates.csv", index_col=["observer", "parameter"])
    for ours, theirs in zip(FitStore.read(folder).load_all(), FitStore.read(undisturbed[0]).load_all(), strict=True):
        assert ours.observer == theirs.observer
        np.testing.assert_array_equal(ours.samples.real, theirs.samples.real)
        assert ours.samples.weighted is not None
        assert theirs.samples.weighted is not None
        np.testing.assert_array_equal(ours.samples.weighted.log_weight, theirs.samples.weighted.log_weight)
        assert ours.diagnosis == theirs.diagnosis
        own = estimates.loc[ours.observer]
        assert own["converged"].all()
        np.testing.assert_allclose(own.drop(columns="converged"), ours.table(), rtol=1e-8)


def test_compiled_functions_are_kept(undisturbed, environment):
    """The runs above read them, and gave the bits of the run that compiled them."""
    assert any("_group" in file.name for file in Path(environment["FOVEATE_CACHE"]).iterdir())


@pytest.fixture
def mistake(monkeypatch, capsys, unchecked_types):
    """The one line that a wrong command prints."""
    monkeypatch.setenv("FOVEATE_CACHE", "")
    monkeypatch.delenv("FOVEATE_POTSDAM35", raising=False)
    for variable in cli.ONE_THREAD:
        monkeypatch.setenv(variable, "1")

    def of(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["foveate", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1, said.err
        return said.err

    return of


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--data example"),
        (["--data", "nowhere"], "nowhere is not a folder"),
        (["--data", "example", "--model", "fulll"], "no model 'fulll'; do you mean 'full'?"),
        (
            ["--data", "example", "--model", "zoe"],
            "; there are full, local_choice, fixed_choice, local_saliency, wayfarer.\n",
        ),
        (["--data", "example", "--model", "saliency_baseline"], "nothing to fit"),
        (["--data", "example", "--model", "local_saliency", "--repulsion", "none"], "no setting repulsion"),
        (["--data", "example", "--observers", "ann,zoe"], "observer zoe not in the data; there are ann"),
        (["--data", "example", "--observers", ","], "--observers"),
        (["--data", "example", "--priors", "strong"], "priors = 'strong'"),
        (["--data", "example", "--sampler", "hmc"], "sampler = 'hmc'"),
        (["--data", "example", "--model", "local_saliency", "--sampler", "gibbs"], "Gibbs"),
        (["--data", "example", "--draws", "2"], "--draws"),
        (["--data", "example", "--sampler", "smc", "--draws", "59"], "needs at least 60 for the 6 numbers"),
    ],
)
def test_a_mistake_is_one_line_and_makes_nothing(mistake, tmp_path, arguments, words):
    assert words in mistake("fit", "--out", tmp_path / "fits", *arguments)
    assert not (tmp_path / "fits").exists()


def test_the_fewest_particles_are_those_that_the_sampler_takes(unchecked_types):
    """The command says it before the sampler would."""
    target = cast(Any, SimpleNamespace(size=6))  # all that is looked at before the second setting is refused
    for particles, refused in ((6 * PARTICLES_PER_NUMBER - 1, "particles"), (6 * PARTICLES_PER_NUMBER, "replicates")):
        with pytest.raises(InputError, match=refused):
            tempered(target, jax.random.key(0), particles=particles, replicates=1)


def test_folders_of_others_stay_as_they_are(mistake, undisturbed, tmp_path):
    folder, _ = undisturbed
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    said = mistake("fit", *COARSE, "--model", "full", "--seed", 2, "--out", folder)
    assert "model 'local_saliency', not 'full'; seed 1, not 2: nothing was overwritten" in said
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    (tmp_path / "notes.txt").write_text("mine")
    assert "notes.txt" in mistake(*ARGUMENTS, "--out", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
    assert "cannot be made" in mistake(*ARGUMENTS, "--out", tmp_path / "notes.txt" / "fits")


def test_a_damaged_fit_is_named(mistake, undisturbed, tmp_path):
    folder = tmp_path / "fits"
    folder.mkdir()
    for file in undisturbed[0].iterdir():
        (folder / file.name).write_bytes(file.read_bytes()[: 5000 if "ben" in file.name else None])
    for command in ([*ARGUMENTS, "--out"], ["diagnose"]):
        said = mistake(*command, folder)
        assert "observer-ben.nc" in said
        assert "delete it and fit again" in said
