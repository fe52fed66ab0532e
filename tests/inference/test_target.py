"""The target's thinned parts, and the places that climbs start from."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest
from small_problems import one_mode

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps
from foveate.example import example_data
from foveate.experiments.part_models import part_model
from foveate.inference import target as module
from foveate.inference.climb import value_and_gradient
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target, evaluate, log_densities
from foveate.model.catalogue import named_model
from foveate.model.steps import Steps


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.of(named_model("local_saliency"), example_data().data.select(observers=["ann"]))


def test_parts_of_a_target_stand_for_all_steps_and_are_all_of_them_together(target):
    vector = np.asarray(target.model.to_real())
    parts = [target.thinned(number) for number in range(3)]  # 24 rows of steps, 8 at least in each
    assert [len(part.steps.real) for part in parts] == [8, 8, 8]
    likelihood, prior = (partial(evaluate, it) for it in (Target.log_likelihood, Target.log_prior))
    whole = float(likelihood(target, vector[None])[0])
    each = [float(likelihood(part, vector[None])[0]) for part in parts]
    times = [target.steps.count / part.steps.count for part in parts]
    assert sum(value / n for value, n in zip(each, times, strict=True)) == pytest.approx(whole, rel=1e-12)
    assert each == pytest.approx([whole] * 3, rel=0.1)
    assert float(prior(parts[0], vector[None])[0]) == float(prior(target, vector[None])[0])


def test_parts_are_counted_round_and_round_and_few_steps_are_not_thinned(target):
    assert np.array_equal(target.thinned(4).steps.row, target.thinned(1).steps.row)
    assert not np.array_equal(target.thinned(0).steps.row, target.thinned(1).steps.row)
    assert len(one_mode().thinned(3).steps.real) == len(one_mode().steps.real)


def test_starts_reach_from_a_cell_to_stripes_wider_than_the_picture(target):
    variances, grid = dispersed_starts(target, jax.random.key(3), 60), target.steps.grid
    cell, picture = 2 * np.log(min(grid.cell_deg)), 2 * np.log(2 * grid.extent.width_deg)
    assert (variances >= cell).all()
    assert (variances[::3] <= picture).all()
    for first, furthest in ((1, picture), (2, 2 * picture)):
        for column in variances[first::3].T:  # a Latin hypercube: one start in each of twenty equal parts
            part = np.floor((column - cell) / (furthest - cell) * 20)
            assert sorted(part) == list(range(20))


def test_larger_cells_give_nearly_the_same_density_wherever_the_variances_are():
    target = Target.of(named_model("full"), example_data().data.select(observers=["ann"]))
    vectors = dispersed_starts(target, jax.random.key(1), 240)
    near = vectors[:60].copy()
    near[:, 2:4] = near[:, :2] - np.log(4) + 0.02  # the two Gaussians nearly cancel, all that is left are a few cells
    vectors = np.concatenate([vectors, near])
    exact, rough = (log_densities(it, vectors) for it in (target, target.coarsened()))
    possible = np.isfinite(exact)
    assert (np.isfinite(rough) == possible).all()
    off, below = np.abs(rough - exact)[possible], (exact.max() - exact)[possible]
    assert off[below < 200].max() < 0.5
    assert off.max() < 5  # far below nothing depends on it
    assert (off > 1e-6).mean() > 0.1  # larger cells did serve


def test_larger_cells_leave_no_gap_for_narrow_gaussians():
    """A Gaussian between the centres of larger cells would have no sum, and the density no top."""
    data = example_data().data.select(observers=["ann"])
    grid = Grid(24, 24, data.maps.grid.extent)
    target = Target.of(part_model("salient"), Dataset(data.paths, data.maps.resample(grid)))
    assert [it.startswith("epsilon") for it in target.model.labels[:2]] == [True, True]
    vectors = np.tile(np.asarray(target.model.to_real()), (40, 1))
    vectors[:, :2] = np.linspace(np.log(1e-4), np.log(4.0), 40)[:, None]
    exact, rough = (log_densities(it, vectors) for it in (target, target.coarsened()))
    wide, off = vectors[:, 0] > np.log(min(grid.cell_deg) ** 2), rough - exact
    usual = off[wide].mean()  # powers of means are not means of powers, whatever the variance
    assert np.abs(off[wide] - usual).max() < 2
    assert off[~wide].max() < usual + 2  # lower, if anything
    assert np.argmax(rough) == pytest.approx(np.argmax(exact), abs=3)


def test_larger_cells_are_those_that_fit_the_grid():
    def sides(rows: int, columns: int) -> list[tuple[int, ...]] | None:
        paths = example_data().data.paths
        grid = Grid(rows, columns, example_data().data.maps.grid.extent)
        maps = SaliencyMaps(grid, tuple(paths.pictures), np.full((len(paths.pictures), rows, columns), 1 / grid.cells))
        coarser = Steps.of(Dataset(paths, maps)).coarsened().coarser
        return None if coarser is None else [it.shape[:2] for it in coarser]

    assert sides(8, 6) == [(2, 3), (4, 3), (2, 6), (4, 6), (8, 3)]
    assert sides(8, 7) == [(2, 7), (4, 7)]
    assert sides(9, 7) is None


def test_a_target_for_batches_is_the_same_density_with_the_same_gradient():
    target = Target.of(named_model("full"), example_data().data.select(observers=["ann"]))
    batched = Target(target.model, target.steps.in_batches())
    assert batched.steps.batched
    assert batched.coarsened().steps is batched.steps
    vectors = dispersed_starts(target, jax.random.key(1), 40)  # more than a small group
    exact = Target(target.model, replace(target.steps, single=False))
    one, other, fewer_digits = (log_densities(it, vectors) for it in (exact, batched, target))
    possible = np.isfinite(one)
    assert possible.sum() > 10
    np.testing.assert_allclose(other[possible], one[possible], rtol=1e-10)
    np.testing.assert_allclose(fewer_digits[possible], one[possible], rtol=0, atol=1e-4)  # what fits work with
    with jax.enable_x64(True):
        slopes = [np.asarray(value_and_gradient(it.thinned(1), vectors[possible][0])[1]) for it in (target, batched)]
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-7, atol=1e-7)


def test_maps_with_empty_cells_keep_the_way_that_can_underflow():
    steps = Steps.of(example_data().data.select(observers=["ann"]))
    empty = np.array(steps.saliency)
    empty[0, 0, 0] = 0
    assert not replace(steps, saliency=empty).in_batches().batched


def test_batches_are_cut_to_the_memory_that_they_may_take(monkeypatch):
    target = Target.of(named_model("local_saliency"), example_data().data.select(observers=["ann"]))
    batched = Target(target.model, target.steps.in_batches())
    vectors = dispersed_starts(target, jax.random.key(1), 70)
    whole = log_densities(batched, vectors)
    each = 8 * max(4 * batched.steps.real.size * (64 + 64), 6 * batched.steps.real.shape[1] * 64 * 64)
    for held, size in ((1, 32), (each * 40, 32), (each * 70, 64), (each * 10_000, 512)):
        monkeypatch.setattr(module, "MOST_BYTES", held)
        assert module._side_by_side(batched.steps) == size
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    np.testing.assert_allclose(log_densities(batched, vectors), whole, rtol=1e-12)
