"""`foveate predictive`: a folder whose numbers follow from the saved fits, which another run may read, and mistakes."""

import json
from pathlib import Path

import jax
import numpy as np
import pandas as pd
import pytest

from called_commands import caller
from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import FittedFolds
from foveate.evaluate.folds import random_folds
from foveate.evaluate.predictive_checks import OF_DURATIONS, TITLES, saccade_statistics
from foveate.evaluate.saccades import Saccades
from foveate.evaluate.simulated import observed_paths
from foveate.example import example_data
from foveate.experiments.ablation import ablation_rows
from foveate.experiments.predictive import copies

CELLS, DRAWS = 12, 8
ARGUMENTS = ["predictive", "--data", "example", "--models", "local_saliency,saliency_baseline", "--observers",
             "ann,ben", "--cells", CELLS, "--folds", "2,4", "--draws", DRAWS, "--seed", 3, "--workers", 1]  # fmt: skip


@pytest.fixture
def call(monkeypatch, capsys, unchecked_types):
    return caller(monkeypatch, capsys)


@pytest.fixture
def data() -> Dataset:
    whole = example_data().data
    return Dataset(whole.paths, whole.maps.resample(Grid(CELLS, CELLS, whole.maps.grid.extent)))


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(it.relative_to(folder)): it.read_bytes() for it in sorted(folder.rglob("*")) if it.is_file()}


def test_it_ends_in_tables_figures_and_a_page_that_another_run_can_make_from_its_fits(call, data, tmp_path):
    out = tmp_path / "predictive"
    code, said, errors = call(*ARGUMENTS, "--out", out)
    assert code == 0, errors
    summary = json.loads((out / "predictive.json").read_text())
    assert summary["finished"]
    assert (summary["seed"], summary["copies"]) == (3, DRAWS)
    assert summary["models"]["local_saliency"]["fits"] == 4
    assert "JAX on cpu" in summary["machine"]
    assert (summary["fits_read"], summary["fits_made"]) == ([], ["local_saliency"])
    assert "were read" not in said
    pictures = ("figures/curves.png", "figures/statistics.png")
    for name in (*summary["tables"], *summary["figures"], summary["page"], *pictures):
        assert (out / name).stat().st_size > 0, name

    # the data's side of the table is that of the held-out paths
    dealt = random_folds(data.paths.pictures, 5, 3).test_pictures
    held = data.paths.select(observers=["ann", "ben"], pictures=[*dealt[1], *dealt[3]])
    expected = saccade_statistics(Saccades.of(held, 1))
    table = pd.read_csv(out / "statistics.csv").set_index(["model", "statistic"])
    for model in ("local_saliency", "saliency_baseline"):
        assert table.loc[model]["observed"].to_dict() == pytest.approx(expected, rel=1e-8)
    assert f"{'amplitude_mean_deg':<22} {expected['amplitude_mean_deg']:8.3f}" in said
    # the model's side follows from the copies
    each = pd.read_csv(out / "copies.csv")
    mine = each[each["model"] == "local_saliency"]
    assert len(mine) == DRAWS
    for name in (it for it in TITLES if it not in OF_DURATIONS):
        row = table.loc[("local_saliency", name)]
        assert row["simulated"] == pytest.approx(mine[name].mean(), rel=1e-7)
        assert (row["low"], row["high"]) == pytest.approx((mine[name].min(), mine[name].max()), rel=1e-7)
    page = (out / "results.md").read_text()
    assert "foveate predictive --data DATA" in page
    assert str(tmp_path) not in page
    # the map alone makes saccades that are far too long
    assert not table.loc[("saliency_baseline", "amplitude_mean_deg"), "inside"]
    assert "**" in page

    # another run reads the fits, changes nothing there and ends in the same numbers
    before, again = bytes_of(out), tmp_path / "again"
    code, said, errors = call(*ARGUMENTS, "--fits", out, "--out", again)
    assert code == 0, errors
    assert f"The fits of local_saliency were read from {out}." in said
    assert "were made" not in said
    assert bytes_of(out) == before
    assert not (again / "fits").exists()
    for name in summary["tables"]:
        assert (again / name).read_bytes() == (out / name).read_bytes(), name

    # fits that are missing are not made in somebody else's folder
    next((out / "fits" / "local_saliency" / "fold-2").glob("observer-*.nc")).unlink()
    code, _, errors = call(*ARGUMENTS, "--fits", out, "--out", tmp_path / "third")
    assert code == 2
    assert "lacks 1 fit of 'local_saliency' in fold 2" in errors
    assert not (tmp_path / "third").exists()


def test_copies_begin_as_the_data_do(data, tmp_path):
    folds = random_folds(data.paths.pictures, 5, 3)
    model = ablation_rows()["saliency_baseline"].model
    validation = CrossValidation.of(
        tmp_path, {"alone": model}, data.select(observers=["ann", "ben"]), folds, chosen_folds=(2,)
    )
    observed = observed_paths(validation)
    made = list(copies(validation, FittedFolds.of(validation.fits, "alone", 3), jax.random.key(1)))
    grid = data.maps.grid
    assert len(made) == 3
    for paths in made:
        assert paths.duration_s is None
        for name in ("observer", "picture", "trial", "length"):
            np.testing.assert_array_equal(getattr(paths, name), getattr(observed, name))
        np.testing.assert_array_equal(paths.x_deg[:, :2], observed.x_deg[:, :2])
        np.testing.assert_array_equal(paths.y_deg[:, :2], observed.y_deg[:, :2])
        rest = paths.x_deg[:, 2:][paths.real[:, 2:]] / grid.cell_deg[1] % 1
        assert 0 < rest.min() < 0.5 < rest.max() < 1  # all places of a cell, not its centre alone
    assert not np.array_equal(made[0].x_deg, made[1].x_deg, equal_nan=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "wayfarrer"], "no model wayfarrer"),
        (["--folds", "6"], "numbers from 1 to 5"),
        (["--observers", "zoe"], "observer zoe"),
        (["--fits", "nowhere"], "--fits nowhere: there is no such folder"),
        (["--fits", "."], "--fits .: no fits of full or wayfarer"),
    ],
)
def test_a_mistake_is_one_line(call, tmp_path, arguments, words):
    code, _, said = call("predictive", "--data", "example", "--cells", "12", *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()
