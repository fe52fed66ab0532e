"""`foveate diagnose` on a folder with good and bad fits."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from foveate import Model, Posterior, cli, named_model
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.inference.diagnosis import diagnose
from foveate.inference.fit import observer_key
from foveate.inference.samples import Samples

pytestmark = pytest.mark.usefixtures("unchecked_types")

MODEL, SMALL = named_model("full"), named_model("local_saliency")


@pytest.fixture
def folder(tmp_path) -> Path:
    return made(tmp_path / "fits", MODEL)


def made(folder: Path, model: Model) -> Path:
    """Draws from nowhere: chains that agree, chains that do not, and a chain that never moved."""
    store = FitStore(folder, Run(model, "data", (1, 2, 3, 4), 5, "nuts", {}, "0"))
    store.folder.mkdir()
    good = np.random.default_rng(0).normal(size=(4, 500, len(model.labels)))
    for observer, real in ((1, good), (2, good + np.arange(4)[:, None, None]), (3, np.zeros_like(good))):
        statistics = {"diverging": np.zeros((4, 500)), "acceptance_rate": np.full((4, 500), 0.8)}
        keep(store, observer, Samples(real, "nuts", {"chains": 4}, statistics, 100))
    return store.folder


def keep(store: FitStore, observer: int, samples: Samples) -> None:
    key = np.asarray(jax.random.key_data(observer_key(store.run.key, observer))).ravel().tolist()
    model = store.run.model
    store.save(Posterior(model, observer, samples, diagnose(model.labels, samples), {"key": key, "seconds": 1.0}))


def output(monkeypatch, capsys, *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["foveate", "diagnose", *map(str, arguments)])
    for variable in cli.ONE_THREAD:
        monkeypatch.setenv(variable, "1")
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    said = capsys.readouterr()
    assert said.err == ""
    return said.out


def test_problems_come_first_and_are_said_in_words(folder, monkeypatch, capsys):
    lines = output(monkeypatch, capsys, folder).splitlines()
    assert all(len(line) <= 100 for line in lines)
    rows = [line.split() for line in lines if line.startswith(" ") and line.split() and line.split()[0].isdigit()]
    assert [row[0] for row in rows] == ["2", "3", "1"]
    assert rows[0][-2:] == ["NOT", "CONVERGED"]
    assert rows[2][-1] == "converged"
    assert rows[2][4:8] == ["0", "0.80", "-", "-"]  # divergences, acceptance, Pareto k, modes
    text = " ".join(" ".join(lines).split())
    assert "Observer 2: R-hat of epsilon_row" in text
    assert "2 of 3 fits have NOT CONVERGED (observer 2, 3): do not rely on them." in text
    assert "1 of the data's 4 observers" in text
    assert "took over" not in text


def test_json_is_one_object_that_any_reader_takes(folder, monkeypatch, capsys):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    said = json.loads(output(monkeypatch, capsys, folder, "--json"), parse_constant=refuse)
    assert [(fit["observer"], fit["converged"]) for fit in said["fits"]] == [(2, False), (3, False), (1, True)]
    assert said["not_converged"] == 2
    assert said["not_fitted"] == [4]
    assert said["fits"][1]["max_rhat"] is None  # infinite
    assert set(said["fits"][2]["numbers"]) == set(MODEL.labels)
    assert said["fits"][2]["numbers"]["b"]["rhat"] < 1.02


def test_fits_in_which_smc_took_over_are_marked(tmp_path, monkeypatch, capsys):
    store = FitStore(tmp_path / "fits", Run(MODEL, "data", (1, 2, 3), 5, "importance", {}, "0"))
    store.folder.mkdir()
    good = np.random.default_rng(0).normal(size=(4, 500, 6))
    taken = {"particles": 1000, "instead_of": "importance"}
    keep(store, 1, Samples(good, "importance", {}, {}, 100))
    keep(store, 2, Samples(good, "smc", taken, {}, 100))
    keep(store, 3, Samples(good + np.arange(4)[:, None, None], "smc", taken, {}, 100))
    lines = output(monkeypatch, capsys, store.folder).splitlines()
    assert all(len(line) <= 100 for line in lines)
    rows = [line.split() for line in lines if line.startswith(" ") and line.split() and line.split()[0].isdigit()]
    assert [(row[0], row[-1]) for row in rows] == [("3", "CONVERGED*"), ("1", "converged"), ("2", "converged*")]
    said = " ".join(" ".join(lines).split())
    assert "* Tempered SMC took over from importance sampling" in said
    assert "in 2 of 3 fits (observer 2, 3)." in said
    fits = json.loads(output(monkeypatch, capsys, store.folder, "--json"))["fits"]
    assert {fit["observer"]: fit["instead_of"] for fit in fits} == {1: None, 2: "importance", 3: "importance"}


def test_figures_are_drawn_for_every_fit_also_for_a_chain_that_never_moved(monkeypatch, capsys, tmp_path):
    folder, pictures = made(tmp_path / "fits", SMALL), tmp_path / "pictures"  # few numbers: few panels to draw
    said = json.loads(output(monkeypatch, capsys, folder, "--json", "--figures", pictures))
    assert len(said["figures"]) == 3 * 4
    assert all(Path(file).stat().st_size > 1000 and Path(file).with_suffix(".svg").exists() for file in said["figures"])
