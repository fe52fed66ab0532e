"""Pooled ROC curves against scikit-learn, and the rules by which negatives are drawn."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc_curve

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.predictions import score_draws
from foveate.evaluate.roc import (
    FALSE_ALARMS,
    pooled_auc,
    pooled_predictive_roc,
    pooled_roc,
    roc_curve,
    shuffled_cells,
    uniform_cells,
)
from foveate.model.catalogue import named_model
from foveate.model.steps import Steps
from oracles import scores as oracle

EXTENT = Extent(8.0, 8.0)


def looking_apart() -> Dataset:
    """Three pictures, each looked at in a column of its own: picture 'x' in column 0, 'y' in 3, 'z' in 6."""
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame(
            {
                "observer": observer,
                "picture": picture,
                "fixation": np.arange(1, 9),
                "y_deg": rng.uniform(0, 8, 8),
                "x_deg": np.r_[7.5, 7.5, np.full(6, column + 0.5)],  # the first two are not scored
            }
        )
        for observer in "ab"
        for picture, column in (("x", 0), ("y", 3), ("z", 6))
    ]
    maps = SaliencyMaps.from_arrays({name: rng.gamma(1.0, size=(8, 8)) for name in "xyz"}, EXTENT, normalise=True)
    return Dataset(ScanPaths.from_table(pd.concat(tables), EXTENT), maps)


def samples(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Positives that tend to be larger, and negatives in several repeats; `coarse` ones have many ties."""
    rng = np.random.default_rng(3)
    positive, negative = rng.gamma(2.0, size=40), rng.gamma(1.0, size=(60, 5))
    return (np.round(positive), np.round(negative)) if kind == "coarse" else (positive, negative)


def labelled(positive: np.ndarray, negative: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.r_[np.ones(len(positive)), np.zeros(len(negative))], np.r_[positive, negative]


@pytest.mark.parametrize("kind", ["fine", "coarse"])
def test_the_area_is_that_of_scikit_learn_and_of_the_pairs(kind):
    positive, negative = samples(kind)
    found = pooled_auc(positive, negative)
    assert found.shape == (5,)
    np.testing.assert_allclose(found, [roc_auc_score(*labelled(positive, values)) for values in negative.T])
    np.testing.assert_allclose(found, [oracle.pooled_auc(positive, values) for values in negative.T])


@pytest.mark.parametrize("kind", ["fine", "coarse"])
def test_the_curve_goes_through_the_points_of_scikit_learn(kind):
    positive, negative = samples(kind)
    for values in negative.T:
        x, y, _ = sklearn_roc_curve(*labelled(positive, values), drop_intermediate=False)
        highest = {share: max(y[x == share]) for share in x}
        found = roc_curve(positive, values[:, None], np.array(list(highest)))
        np.testing.assert_allclose(found, list(highest.values()))


@pytest.mark.parametrize("kind", ["fine", "coarse"])
def test_the_mean_curve_has_the_mean_area(kind):
    positive, negative = samples(kind)
    fine = np.linspace(0, 1, 200_001)
    curve = roc_curve(positive, negative, fine)
    assert np.trapezoid(curve, fine) == pytest.approx(pooled_auc(positive, negative).mean(), abs=1e-4)
    assert curve[-1] == 1
    assert (np.diff(curve) >= 0).all()


def test_equal_densities_everywhere_lie_on_the_diagonal():
    np.testing.assert_allclose(roc_curve(np.ones(5), np.ones((7, 2))), FALSE_ALARMS)
    np.testing.assert_allclose(pooled_auc(np.ones(5), np.ones((7, 2))), 0.5)


def test_draws_are_averaged_and_the_predictive_density_stands_apart():
    data, model = looking_apart(), named_model("local_saliency")
    steps = Steps.of(data)
    vectors = np.asarray(model.to_real()) + np.array([[0.0, 0.0], [0.5, -0.5], [-1.0, 1.0]])
    scores = score_draws(model, steps, vectors, uniform_cells(steps.count, steps.grid, jax.random.key(0), repeats=7))
    found, predictive = pooled_roc(scores), pooled_predictive_roc(scores)
    areas = [
        np.mean([roc_auc_score(*labelled(fixated, other[:, repeat])) for repeat in range(7)])
        for fixated, other in zip(scores.each.density, scores.each.density_at, strict=True)
    ]
    np.testing.assert_allclose(found.auc_of_draws, areas)
    assert found.auc == pytest.approx(np.mean(areas))
    mean = scores.each.density.mean(axis=0), scores.each.density_at.mean(axis=0)
    assert predictive.auc == pytest.approx(np.mean([roc_auc_score(*labelled(mean[0], it)) for it in mean[1].T]))
    assert found.hits.shape == predictive.hits.shape == FALSE_ALARMS.shape


def test_uniform_cells_cover_the_grid_evenly():
    grid = looking_apart().maps.grid
    cells = uniform_cells(500, grid, jax.random.key(1))
    assert cells.shape == (500, 100)
    assert stats.chisquare(np.bincount(cells.ravel(), minlength=grid.cells)).pvalue > 1e-4


def test_shuffled_cells_are_the_scored_fixations_on_other_pictures():
    """Never the step's own column, never that of the first two fixations; the others with equal chances."""
    data = looking_apart()
    steps, grid = Steps.of(data), data.maps.grid
    cells = shuffled_cells(data, jax.random.key(2))
    assert cells.shape == (steps.count, 100)
    fixated = np.asarray(steps.row * grid.columns + steps.column)
    own = {"x": 0, "y": 3, "z": 6}
    pictures = np.repeat(data.paths.picture, 6)
    for picture, column in own.items():
        drawn = cells[pictures == picture].ravel()
        assert set(drawn % grid.columns) == set(own.values()) - {column}
        pool = np.bincount(fixated.ravel()[pictures != picture], minlength=grid.cells)
        counts = np.bincount(drawn, minlength=grid.cells)
        assert (counts[pool == 0] == 0).all()
        assert stats.chisquare(counts[pool > 0], pool[pool > 0] / pool.sum() * len(drawn)).pvalue > 1e-4


def test_shuffled_cells_may_come_from_a_larger_pool():
    data = looking_apart()
    some = data.select(pictures=["x"])
    cells = shuffled_cells(some, jax.random.key(3), pool=data.paths, repeats=20)
    assert cells.shape == (12, 20)
    assert set((cells % 8).ravel()) == {3, 6}


def test_one_key_one_result():
    data, grid = looking_apart(), looking_apart().maps.grid
    for draw in (lambda key: uniform_cells(9, grid, key), lambda key: shuffled_cells(data, key)):
        np.testing.assert_array_equal(draw(jax.random.key(4)), draw(jax.random.key(4)))
        assert (draw(jax.random.key(4)) != draw(jax.random.key(5))).any()


@pytest.mark.usefixtures("unchecked_types")
def test_what_cannot_be_used_is_refused():
    data, model = looking_apart(), named_model("local_saliency")
    scores = score_draws(model, Steps.of(data), np.asarray(model.to_real())[None])
    with pytest.raises(InputError, match="no negatives"):
        pooled_roc(scores)
    with pytest.raises(InputError, match="fixation on another picture"):
        shuffled_cells(data.select(pictures=["x"]), jax.random.key(0))
    with pytest.raises(InputError, match="at least one of each"):
        pooled_auc(np.zeros(0), np.zeros((3, 2)))
    with pytest.raises(InputError, match="between 0 and 1"):
        pooled_roc(score_draws(model, Steps.of(data), np.zeros((1, 2)), np.zeros((36, 1), dtype=int)), np.array([2.0]))
    with pytest.raises(InputError, match="repeats = 0"):
        uniform_cells(3, data.maps.grid, jax.random.key(0), repeats=0)
    with pytest.raises(InputError, match="needs a JAX key"):
        uniform_cells(3, data.maps.grid, 7)  # pyright: ignore[reportArgumentType]
