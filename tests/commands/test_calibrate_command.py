"""`foveate calibrate` writes ranks, figures and verdicts, says where a sampler FAILED, and goes on where it was."""

import json
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from foveate.commands.outputs import FITTED, MODELS, PARTS, chosen_models
from foveate.errors import InputError
from foveate.evaluate import calibration
from foveate.evaluate.calibration import LOG_LIKELIHOOD, Calibration
from foveate.evaluate.trials import Drawn, Store, run_trials
from foveate.execution.store import locked

pytestmark = pytest.mark.usefixtures("unchecked_types")

COMMAND = Path(sys.executable).parent / "foveate"
LISTEN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""


def fake(model, key, *, sampler, data_sets, paths, fixations, false_alarm, store, report) -> Calibration:
    """Ranks that are right, for NUTS those of draws that lie too low; a tenth has problems, and another sampler."""
    labels = (*model.labels, LOG_LIKELIHOOD)

    def trial(own, told) -> Drawn:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(own)).tolist())
        values = rng.standard_normal((100, len(labels))) - (0 if sampler == "importance" else np.eye(1, 100).T - 1)
        if rng.random() < 0.1:
            return Drawn(values[0], values[1:], ("R-hat 1.20",), {"instead_of": sampler})
        return Drawn(values[0], values[1:])

    kept = Store.open(store, {"made_by": "foveate calibrate", "sampler": sampler})
    outcomes = run_trials(trial, key, range(data_sets), draws=99, store=kept, report=report)
    return Calibration(model.name, sampler, labels, 99, tuple(outcomes), false_alarm)


@pytest.fixture
def run(monkeypatch, foveate_command):
    """The command with made-up fits: (exit code, standard output, standard error)."""
    monkeypatch.setattr(calibration, "calibrate", fake)
    return partial(foveate_command, "calibrate")


def test_verdicts_ranks_and_figures_are_written(run, tmp_path):
    code, out, err = run("--out", tmp_path, "--models", "local_saliency", "--data-sets", 60)
    assert code == 0
    assert "passed" in out
    assert "FAILED" in out
    assert str(tmp_path) in err
    about = json.loads((tmp_path / "calibration.json").read_text())
    assert about["seed"] == 1
    found = about["calibrations"]
    assert found["local_saliency_importance"]["passed"] is True
    assert found["local_saliency_nuts"]["passed"] is False
    ranks = pd.read_csv(tmp_path / "local_saliency_nuts.csv")
    assert len(ranks) == 60 * 3
    troubled = ranks[ranks["problems"].notna()]["data_set"].unique().tolist()
    assert sorted(troubled) == sorted(int(index) for index in found["local_saliency_nuts"]["unconverged"])
    assert len(troubled) > 0
    assert sorted(found["local_saliency_nuts"]["taken_over"]) == sorted(troubled)
    assert f"took over in {len(troubled)} of 60" in found["local_saliency_nuts"]["verdict"]
    row, inside = (line.split() for line in out.splitlines() if " nuts " in line)
    assert inside[-4].endswith("%")  # of the 90 % intervals, how many hold the truth
    assert row.count(str(len(troubled))) >= 2  # with problems, by SMC
    for sampler in ("importance", "nuts"):
        for ending in ("png", "svg"):
            assert (tmp_path / f"local_saliency_{sampler}.{ending}").stat().st_size > 1000


def test_json_is_the_summary_and_earlier_results_stay_in_it(run, tmp_path):
    run("--out", tmp_path, "--models", "local_saliency", "--samplers", "importance", "--data-sets", 10)
    code, out, _ = run("--out", tmp_path, "--models", "full", "--samplers", "importance", "--data-sets", 10, "--json")
    assert code == 0
    said = json.loads(out)
    assert said == json.loads((tmp_path / "calibration.json").read_text())
    assert set(said["calibrations"]) == {"local_saliency_importance", "full_importance"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "fulll"], "no model fulll; do you mean 'full'?"),
        (["--models", "zoe"], "no model zoe; there are full, local_choice"),
        (["--models", "fulll,zoe"], "no model fulll, zoe; there are full, local_choice"),
        (["--samplers", "gibbs"], "no sampler gibbs"),
        (["--models", ","], "no model ','"),
        (["--data-sets", 0], "--data-sets"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(run, tmp_path, arguments, words):
    code, out, err = run("--out", tmp_path / "new", *arguments)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err
    assert not (tmp_path / "new").exists()


def test_another_seed_or_somebody_elses_folder_is_refused(run, tmp_path):
    settings = ["--models", "local_saliency", "--samplers", "importance", "--data-sets", 5]
    run("--out", tmp_path / "mine", *settings)
    before = {file.name: file.read_bytes() for file in (tmp_path / "mine").iterdir()}
    code, _, err = run("--out", tmp_path / "mine", *settings, "--seed", 2)
    assert code == 2
    assert "seed 1" in err
    assert {file.name: file.read_bytes() for file in (tmp_path / "mine").iterdir()} == before
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "calibration.json").write_text("{}")
    code, _, err = run("--out", tmp_path / "theirs", *settings)
    assert code == 2
    assert "did not make" in err


@pytest.mark.parametrize("ending", ["jsonl", "csv", "png", "svg"])
def test_no_file_of_somebody_else_is_written_over(run, tmp_path, ending):
    theirs = tmp_path / f"local_saliency_importance.{ending}"
    theirs.write_text("mine")
    code, _, err = run("--out", tmp_path, "--models", "local_saliency")
    assert code == 2
    assert "did not make" in err
    assert [(file, file.read_text()) for file in tmp_path.iterdir()] == [(theirs, "mine")]


def test_results_of_another_version_are_refused(run, tmp_path):
    settings = ["--out", tmp_path, "--models", "local_saliency", "--samplers", "importance", "--data-sets", 5]
    run(*settings)
    about = json.loads((tmp_path / "calibration.json").read_text())
    about["versions"]["foveate"] = "0.0.1"
    (tmp_path / "calibration.json").write_text(json.dumps(about))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    code, _, err = run(*settings)
    assert code == 2
    assert "with foveate 0.0.1, not" in err
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_two_runs_do_not_write_into_one_folder_at_once(run, tmp_path):
    settings = ["--out", tmp_path, "--models", "local_saliency", "--samplers", "importance", "--data-sets", 5]
    with locked(tmp_path):
        code, _, err = run(*settings)
        assert code == 2
        assert "another run is writing into" in err
        assert not list(tmp_path.iterdir())
    assert run(*settings)[0] == 0


def test_a_run_that_died_in_its_first_calibration_goes_on(run, tmp_path, monkeypatch):
    """Its files are known for ours although no calibration was finished."""

    def dies(*arguments, report, **settings):
        def stops(progress):
            raise InputError("the power went")

        return fake(*arguments, report=stops, **settings)

    settings = ["--out", tmp_path, "--models", "local_saliency", "--samplers", "importance", "--data-sets", 5]
    monkeypatch.setattr(calibration, "calibrate", dies)
    assert "the power went" in run(*settings)[2]
    assert (tmp_path / "local_saliency_importance.jsonl").exists()
    monkeypatch.setattr(calibration, "calibrate", fake)
    assert run(*settings)[0] == 0


@pytest.mark.slow
def test_ctrl_c_and_the_same_command_again_give_what_one_run_gives(tmp_path):
    def arguments(folder: str) -> list[str]:
        return ["calibrate", "--out", str(tmp_path / folder), "--models", "local_saliency", "--data-sets", "5"]

    with subprocess.Popen(
        [sys.executable, "-c", LISTEN, COMMAND, *arguments("stopped")], stderr=subprocess.PIPE, text=True
    ) as process:
        store = tmp_path / "stopped" / "local_saliency_importance.jsonl"
        while not store.exists() or store.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1].startswith("foveate: interrupted")
    for folder in ("stopped", "whole"):
        subprocess.run([COMMAND, *arguments(folder)], check=True, capture_output=True, timeout=900)
    for file in ("local_saliency_importance.csv", "local_saliency_nuts.csv"):
        assert (tmp_path / "stopped" / file).read_text() == (tmp_path / "whole" / file).read_text()


def test_small_models_of_parts_are_asked_for_by_name_or_together(run, tmp_path):
    assert chosen_models("parts, full", FITTED) == [*PARTS, "full"]
    assert chosen_models("all", FITTED) == list(MODELS)
    assert chosen_models("momentum,wayfarer", FITTED) == ["momentum", "wayfarer"]
    code, _, err = run("--out", tmp_path / "other", "--models", "momentun")
    assert code == 2
    assert "do you mean 'momentum'?" in err


def test_a_small_model_is_calibrated_by_the_command_itself(foveate_command, tmp_path):
    """Real fits, few of them: ranks, where true values lie, and both figures."""
    sizes = ["--data-sets", 3, "--paths", 3, "--fixations", 6]
    code, out, _ = foveate_command(
        "calibrate", "--out", tmp_path, "--models", "durations_ahead", "--samplers", "laplace", *sizes
    )
    assert code == 0
    assert "True values" in out
    found = json.loads((tmp_path / "calibration.json").read_text())["calibrations"]["durations_ahead_laplace"]
    assert found["data_sets"] == 3
    assert found["passed"] is True
    effects = [f"effect_{it}" for it in ("ratio", "number", "earlier", "next_amplitude")]
    labels = ["xi_row", "xi_column", "level", *effects, "sigma"]
    assert list(found["recovery"]) == labels
    ranks = pd.read_csv(tmp_path / "durations_ahead_laplace.csv")
    assert len(ranks) == 3 * (len(labels) + 1)
    numbers = ranks[ranks["quantity"] != LOG_LIKELIHOOD]
    rank, truth, low, high = (np.asarray(numbers[name]) for name in ("rank", "truth", "5%", "95%"))
    np.testing.assert_array_equal((truth >= low) & (truth <= high), (rank >= 5) & (rank <= 94))
    for name in ("durations_ahead_laplace", "durations_ahead_laplace_recovery"):
        assert (tmp_path / f"{name}.png").stat().st_size > 1000
    code, _, err = foveate_command(
        "calibrate", "--out", tmp_path, "--models", "durations_ahead", "--samplers", "laplace", "--data-sets", 3
    )
    assert code == 2
    assert "differs in paths, fixations" in err
