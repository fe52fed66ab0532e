"""The target's thinned parts, and the places that climbs start from."""

import jax
import numpy as np
import pytest
from small_problems import one_mode

from foveate.example import example_data
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target, log_densities
from foveate.model.catalogue import named_model


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.of(named_model("full"), example_data().data.select(observers=["ann"]))


def test_parts_of_a_target_stand_for_all_steps_and_are_all_of_them_together(target):
    vector = np.asarray(target.model.to_real())
    parts = [target.thinned(number) for number in range(3)]  # 24 rows of steps, 8 at least in each
    assert [len(part.steps.real) for part in parts] == [8, 8, 8]
    with jax.enable_x64(True):
        whole = float(target.log_likelihood(vector))
        each = [(float(part.log_likelihood(vector)), float(part.times)) for part in parts]
        assert sum(value / times for value, times in each) == pytest.approx(whole, rel=1e-12)
        for (value, times), part in zip(each, parts, strict=True):
            assert times == pytest.approx(target.steps.count / part.steps.count)
            assert value == pytest.approx(whole, rel=0.1)
            assert float(part.log_prior(vector)) == float(target.log_prior(vector))


def test_parts_are_counted_round_and_round_and_few_steps_are_not_thinned(target):
    assert np.array_equal(target.thinned(4).steps.row, target.thinned(1).steps.row)
    assert not np.array_equal(target.thinned(0).steps.row, target.thinned(1).steps.row)
    assert len(one_mode().thinned(3).steps.real) == len(one_mode().steps.real)


def test_starts_reach_from_a_cell_to_stripes_wider_than_the_picture(target):
    starts = dispersed_starts(target, jax.random.key(3), 60)
    variances, grid = starts[:, :4], target.steps.grid
    cell, picture = 2 * np.log(min(grid.cell_deg)), 2 * np.log(2 * grid.extent.width_deg)
    assert (variances >= cell).all()
    assert (variances <= 2 * picture).all()
    for first, furthest in ((1, picture), (2, 2 * picture)):
        for column in variances[first::3].T:  # a Latin hypercube: one start in each of twenty equal parts
            part = np.floor((column - cell) / (furthest - cell) * 20)
            assert sorted(part) == list(range(20))
    assert np.isfinite(log_densities(target, starts)).mean() > 0.9
