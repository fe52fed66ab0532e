"""`foveate ablate`: bits that follow from the saved draws, fits that see nothing of what is held out, the same bits
however often it was interrupted."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax

from called_commands import caller
from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.folds import random_folds
from foveate.example import example_data
from foveate.experiments.ablation import ADDED, EXTRA, REMOVED, ablation_rows, chosen_rows
from foveate.inference.posterior import Posterior
from foveate.model.composed import MECHANISMS
from oracles import beyond, paper

CELLS, DRAWS = 12, 6
ARGUMENTS = ["ablate", "--data", "example", "--rows", "local_saliency,full+momentum", "--observers", "ann,ben",
             "--cells", CELLS, "--folds", "2,4", "--draws", DRAWS, "--seed", "3", "--workers", "1"]  # fmt: skip
ROWS = ["local_saliency", "full", "full+momentum"]


@pytest.fixture(scope="module")
def data() -> Dataset:
    whole = example_data().data
    return Dataset(whole.paths, whole.maps.resample(Grid(CELLS, CELLS, whole.maps.grid.extent)))


def run(out: Path) -> str:
    """The command as a shell calls it; what it prints."""
    words = [str(Path(sys.executable).with_name("foveate")), *map(str, ARGUMENTS), "--out", str(out)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("ablate") / "ablation"
    return out, run(out)


def test_it_ends_in_tables_a_figure_and_a_page(made):
    out, said = made
    summary = json.loads((out / "ablation.json").read_text())
    assert summary["finished"]
    assert (summary["seed"], summary["sampler"], summary["fits"]) == (3, "laplace", 12)
    assert "JAX on cpu" in summary["machine"]
    assert "--rows local_saliency,full+momentum" in summary["command"]
    for name in (*summary["tables"], *summary["figures"], summary["page"], "figures/ablation.png"):
        assert (out / name).stat().st_size > 0, name
    table = pd.read_csv(out / "ablation.csv")
    assert list(dict.fromkeys(table["row"])) == ROWS  # with the base that was not asked for
    assert set(table["folds"]) == {"all"}  # no structure was chosen on these folds
    whole = table[table["folds"] == "all"].set_index("row")
    assert f"+ momentum{'':<30} {whole.loc['full+momentum', 'bits']:7.3f}" in said
    assert f"| + momentum | full | 12 | {whole.loc['full+momentum', 'bits']:.3f} |" in (out / "results.md").read_text()
    assert whole["difference"].notna().tolist() == [False, False, True]
    means = whole["bits"]
    assert whole.loc["full+momentum", "difference"] == pytest.approx(means["full+momentum"] - means["full"], abs=1e-8)
    fits = pd.read_csv(out / "fits.csv")
    assert set(fits["sampler"]) == {"laplace"}
    assert fits["pareto_k"].notna().all()


def with_momentum(scene, fixations, values) -> np.ndarray:
    """The oracle's probability of every cell under the paper's model with momentum."""
    gaze = fixations[-1]
    weights = [
        paper.local(scene, gaze, values["epsilon"]),
        paper.released(scene, gaze, values["xi"], values["epsilon"]),
        beyond.momentum(scene, fixations, values["zeta"], values["kappa"], values["alpha"]),
    ]
    ratio = np.log(scene.at(fixations[-1]) / scene.at(fixations[-2])) / 1.5
    odds = np.concatenate([[0.0], values["base"] + values["slopes"][:, 0] * ratio])
    return sum(share * paper.normalised(it) for share, it in zip(softmax(odds), weights, strict=True))


def test_bits_are_those_of_the_saved_draws_in_plain_numpy(made, data):
    out, _ = made
    folds, extent = random_folds(data.paths.pictures, 5, 3), data.maps.grid.extent
    total, steps = {"ann": 0.0, "ben": 0.0}, {"ann": 0, "ben": 0}
    for fold in (2, 4):
        for observer in total:
            file = out / "published" / "fits" / "full+momentum" / f"fold-{fold}" / f"observer-{observer}.nc"
            draws = Posterior.load(file).draws
            flat = {name: it.reshape(-1, *it.shape[2:]) for name, it in draws.items()}
            count = len(flat["kappa"])
            chosen = ((np.arange(DRAWS) + 0.5) * count / DRAWS).astype(int)
            own = data.select(observers=[observer])
            for path in own.paths:
                if path.picture not in folds.test_pictures[fold - 1]:
                    continue
                scene = paper.Scene(data.maps[path.picture], extent.height_deg, extent.width_deg)
                fixations = list(zip(path.y_deg, path.x_deg, strict=True))
                for t in range(2, len(fixations)):
                    logs = [
                        np.log(with_momentum(scene, fixations[:t], {k: v[d] for k, v in flat.items()})[
                            scene.cell(*fixations[t])])
                        for d in chosen
                    ]  # fmt: skip
                    total[observer] += (logsumexp(logs) - np.log(DRAWS) + np.log(CELLS**2)) / np.log(2)
                    steps[observer] += 1
    found = pd.read_csv(out / "observers.csv")
    mine = found[(found["row"] == "full+momentum") & (found["folds"] == "all")].set_index("observer")["bits"]
    for observer in total:
        assert mine[observer] == pytest.approx(total[observer] / steps[observer], rel=1e-7)


def test_a_run_that_was_stopped_goes_on_with_the_same_bits(made, tmp_path):
    out = tmp_path / "ablation"
    shutil.copytree(made[0], out)
    lost = out / "published" / "fits" / "full" / "fold-4" / "observer-ben.nc"
    lost.unlink()
    run(out)
    assert lost.exists()
    for name in ("ablation.csv", "observers.csv"):
        ours, theirs = (pd.read_csv(folder / name) for folder in (out, made[0]))
        pd.testing.assert_frame_equal(*(it.drop(columns="seconds", errors="ignore") for it in (ours, theirs)),
                                      check_exact=True)  # fmt: skip


def test_what_is_held_out_does_not_reach_a_fit(data, tmp_path):
    """Other fixations and other maps on the test pictures: the same training data, to the last bit."""
    model, folds = ablation_rows()["full"].model, random_folds(data.paths.pictures, 5, 3)
    own = data.select(observers=["ann"])
    held = [it for it in folds.test_pictures[1] if it in own.paths.pictures]
    mirrored = np.where(np.isin(own.paths.picture, held)[:, None], own.paths.extent.width_deg - own.paths.x_deg,
                        own.paths.x_deg)  # fmt: skip
    changed = Dataset(_with_x(own, mirrored), own.maps)
    one, other = (
        CrossValidation.of(tmp_path / name, {"full": model}, it, folds, chosen_folds=(2,), sampler="laplace").fits
        for name, it in (("one", own), ("other", changed))
    )
    trained = [fits.training("full", 2, "ann") for fits in (one, other)]
    assert trained[0].fingerprint() == trained[1].fingerprint()
    assert own.fingerprint() != changed.fingerprint()
    assert one.store("full", 2).run.sampler == "laplace"
    assert not set(trained[0].paths.pictures) & set(held)
    assert not set(trained[0].maps.pictures) & set(held)


def _with_x(own: Dataset, x_deg: np.ndarray):
    from dataclasses import replace

    return replace(own.paths, x_deg=np.where(own.paths.real, x_deg, own.paths.x_deg))


def test_every_mechanism_is_switched_in_some_row():
    rows = ablation_rows()
    assert len(chosen_rows("all")) == len(rows) - len(EXTRA)
    assert {*ADDED, *REMOVED, *EXTRA, "repulsion"} == set(MECHANISMS)
    for row in rows.values():
        assert row.base is None or row.base in rows
        assert np.isfinite(float(row.model.log_prior()))
        assert np.isfinite(np.asarray(row.model.draw_from_prior(jax.random.key(1)).to_real())).all()
    assert not any(row.model.reads_durations for row in ablation_rows(durations=False).values())
    assert rows["wayfarer"].model.reads_durations


def test_rows_bring_their_bases():
    assert list(chosen_rows("full-repulsion+exponent")) == ["full", "full-repulsion", "full-repulsion+exponent"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rows", "full+momentun"], "no row full+momentun"),
        (["--maps", "mine"], "say published, leave-one-out or both"),
        (["--maps", "both"], "only potsdam35"),
        (["--folds", "6"], "numbers from 1 to 5"),
        (["--observers", "zoe"], "observer zoe"),
    ],
)
def test_a_mistake_is_one_line(monkeypatch, capsys, unchecked_types, tmp_path, arguments, words):
    call = caller(monkeypatch, capsys)
    code, _, said = call("ablate", "--data", "example", "--cells", "12", *arguments, "--out", tmp_path / "ablation")
    assert code == 2
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "ablation").exists()
