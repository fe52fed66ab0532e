"""`foveate recover` writes tables, figures and posteriors, and does not do again what is done."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest

from foveate.errors import InputError
from foveate.execution.store import locked
from foveate.experiments import recovery
from foveate.experiments.recovery import Recovery, recovery_data, recovery_model, split_key
from foveate.inference.diagnosis import diagnose
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples

pytestmark = pytest.mark.usefixtures("unchecked_types")

FITTED: list[str] = []


def fake(name, maps, key, *, sampler, chains, report) -> Recovery:
    """Draws around the truth: nothing is fitted, but the data are the experiment's."""
    FITTED.append(name)
    truth = recovery_model(name)
    centre = np.asarray(truth.to_real())
    real = centre + 0.1 + 0.2 * np.random.default_rng(1).standard_normal((chains, 400, len(centre)))
    samples = Samples(real, sampler, {"chains": chains}, {}, 1)
    about = {"seconds": 1.0, "data": recovery_data(truth, maps, split_key(key)[0]).fingerprint()}
    return Recovery(truth, Posterior(truth, 1, samples, diagnose(truth.labels, samples), about))


@pytest.fixture
def run(monkeypatch, foveate_command):
    """The command with made-up fits: (exit code, standard output, standard error)."""
    monkeypatch.setattr(recovery, "recover", fake)
    FITTED.clear()
    return partial(foveate_command, "recover")


def test_tables_figures_and_posteriors_are_written_and_kept(run, tmp_path):
    code, out, err = run("--out", tmp_path, "--models", "local_saliency,full", "--chains", 4)
    assert code == 0, err
    assert "true values lie in their 95% interval" in out
    assert FITTED == ["local_saliency", "full"]
    about = json.loads((tmp_path / "recovery.json").read_text())
    assert (about["seed"], about["chains"], about["sampler"]) == (1, 4, "nuts")
    table = pd.read_csv(tmp_path / "full.csv", index_col="parameter")
    assert table.loc["b", "truth"] == pytest.approx(0.2)
    assert about["models"]["full"]["numbers"]["b"]["quantile"] == pytest.approx(table.loc["b", "quantile"])
    assert (tmp_path / "full.png").stat().st_size > 1000
    assert Posterior.load(tmp_path / "full.nc").samples.real.shape[0] == 4

    code, out, _ = run("--out", tmp_path, "--models", "local_saliency,full", "--chains", 4, "--json")
    assert code == 0
    assert FITTED == ["local_saliency", "full"]  # not done again
    assert json.loads(out)["models"] == about["models"]
    code, _, err = run("--out", tmp_path, "--models", "full", "--chains", 5)
    assert code == 2
    assert "--chains 4" in err


def test_results_of_another_version_are_refused(run, tmp_path, monkeypatch):
    """Also those of a run that finished no model."""

    def dies(*_, **settings):
        raise InputError("the power went")

    monkeypatch.setattr(recovery, "recover", dies)
    assert "the power went" in run("--out", tmp_path, "--models", "full")[2]
    about = json.loads((tmp_path / "recovery.json").read_text())
    about["versions"]["foveate"] = "0.0.1"
    (tmp_path / "recovery.json").write_text(json.dumps(about))
    monkeypatch.setattr(recovery, "recover", fake)
    code, _, err = run("--out", tmp_path, "--models", "full")
    assert code == 2
    assert "with foveate 0.0.1, not" in err
    assert FITTED == []


def test_two_runs_do_not_write_into_one_folder_at_once(run, tmp_path):
    with locked(tmp_path):
        code, _, err = run("--out", tmp_path, "--models", "full")
        assert code == 2
        assert "another run is writing into" in err
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "saliency_baseline"], "no model saliency_baseline"),
        (["--sampler", "smc"], "no sampler smc"),
        (["--sampler", "gibbs"], "no conditionals for local_saliency"),
        (["--sampler", "nuts,gibbs"], "one sampler"),
        (["--chains", 1], "--chains"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line(run, tmp_path, arguments, words):
    code, out, err = run("--out", tmp_path / "new", *arguments)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err
    assert not (tmp_path / "new").exists()


def test_a_posterior_of_something_else_is_refused(run, tmp_path):
    (tmp_path / "full.nc").write_text("mine")
    code, _, err = run("--out", tmp_path, "--models", "full")
    assert code == 2
    assert "did not make" in err
    assert [file.name for file in tmp_path.iterdir()] == ["full.nc"]
