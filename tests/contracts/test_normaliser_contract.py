"""Every policy's normaliser, by whatever fast way, is the plain sum over all cells."""

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.situations import GRID, MEMORY, dataset_on, one_set, parameter_sets
from contracts.table import Row, rows_of
from foveate.data.grid import Extent, Grid
from foveate.model.factors import Factor
from foveate.model.likelihood import (
    has_fast_normaliser,
    is_modulated_sum,
    log_normalisers,
    plain_log_normaliser,
    target_log_weights,
)
from foveate.model.parts import with_values
from foveate.model.policies import Policy
from foveate.model.steps import Steps

# Large enough for windows and tables to be of use, small enough to be quick; one axis has the finer cells.
MIDDLE = Grid(40, 52, Extent(25.0, 19.0))


@cache
def steps_on(grid: Grid, way: str) -> dict[str, Steps]:
    """By map: each alone, so that the fast way is not given up on all because it fails on one."""
    data = dataset_on(grid)
    longest = int(data.paths.length.max()) - 2
    steps = {name: Steps.of(data.select(pictures=[name]), memory=MEMORY, steps=longest) for name in data.paths.pictures}
    prepared = {"cells": lambda some: some, "table": Steps.tabulated, "batches": Steps.in_batches}[way]
    return {name: prepared(some) for name, some in steps.items()}


@eqx.filter_jit
def log_probabilities(policy: Policy, values: dict, steps: Steps):
    """Of every step, with the fast and with the plain normaliser, and the derivatives of their sums."""

    def summed(values, normaliser):
        changed = with_values(policy, values)
        found = jnp.where(steps.real, target_log_weights([changed], steps)[..., 0] - normaliser(changed), 0.0)
        return found.sum(), found

    def fast(policy):
        return log_normalisers([policy], steps)[0]

    def plain(policy):
        return plain_log_normaliser(policy, steps)

    both = [jax.value_and_grad(partial(summed, normaliser=it), has_aux=True)(values) for it in (fast, plain)]
    return [(found, gradient) for (_, found), gradient in both]


def random_sets(row: Row, count: int) -> list[dict[str, np.ndarray]]:
    """Standard deviations from a twentieth of a cell to twice the picture, spread evenly over magnitudes."""
    rng = np.random.default_rng(11)
    own = {name: np.asarray(value, dtype=np.float64) for name, value in row.parameters.items()}
    return [
        {
            name: np.exp(rng.uniform(np.log(1e-3), np.log(3e3), 2)) if value.ndim else value
            for name, value in own.items()
        }
        for _ in range(count)
    ]


def ways() -> list:
    """Every policy in every way that may differ; a table matters only to policies that have a way of their own."""
    rows = [it.values[0] for it in rows_of(Policy, Factor)]
    own = [row for row in rows if has_fast_normaliser(row.policy())]
    others = [row for row in rows if not has_fast_normaliser(row.policy())]
    slow = pytest.mark.slow
    return [
        *(pytest.param(row, GRID, way, id=f"{row.name}-small-{way}") for row in rows for way in ("cells", "batches")),
        *(pytest.param(row, MIDDLE, "table", id=f"{row.name}-middle-table") for row in own),
        *(pytest.param(row, GRID, "table", id=f"{row.name}-small-table", marks=slow) for row in own),
        *(pytest.param(row, MIDDLE, "cells", id=f"{row.name}-middle-cells", marks=slow) for row in (*own, *others)),
    ]


@pytest.mark.parametrize(("row", "grid", "way"), ways())
def test_fast_normaliser_is_the_plain_sum_also_in_its_derivative(row: Row, grid: Grid, way: str):
    extreme = parameter_sets(row.model())
    sets = [one_set(extreme, index) for index in range(len(next(iter(extreme.values()), [()])))]
    sets = (
        [*sets, *random_sets(row, 60)]
        if has_fast_normaliser(row.policy()) or is_modulated_sum(row.policy())
        else sets[:2]
    )  # where there is no fast way, little can go wrong
    for values in sets:
        for name, steps in steps_on(grid, way).items():
            with jax.enable_x64(True):
                found = log_probabilities(row.policy(), values, steps)
            (fast, fast_gradient), (plain, plain_gradient) = jax.tree.map(np.asarray, found)
            assert np.isfinite(plain).all()
            message = f"{row.name} {values} on {name}"
            # the smallest variance makes exponents of 1e8, which leave their rounding behind where they cancel
            tiny = min((np.min(value) for value in values.values() if np.ndim(value)), default=1.0) < 1e-3
            np.testing.assert_allclose(fast, plain, rtol=1e-10, atol=1e-8 if tiny else 1e-10, err_msg=message)
            for parameter, expected in plain_gradient.items():
                # scaled by the variance: the derivative in its logarithm, a number of the order of the steps
                slope, expected = fast_gradient[parameter] * values[parameter], expected * values[parameter]
                scale = max(1.0, np.abs(plain).max())
                np.testing.assert_allclose(slope, expected, rtol=1e-8, atol=1e-9 * scale, err_msg=message)


XI = np.array([31.0, 52.0])

OWN = [it.values[0] for it in rows_of(Policy) if has_fast_normaliser(it.values[0].policy()) and it.values[0].parameters]


@eqx.filter_jit
def log_sums(policy: Policy, values: dict, steps: Steps):
    return log_normalisers([with_values(policy, values)], steps)[0]


@pytest.mark.parametrize("row", OWN, ids=lambda row: row.name)
def test_a_normaliser_in_single_precision_is_good_to_a_millionth(row: Row):
    """Fits ask for it. Sums that would lose digits are done in double precision, which extreme parameters and odd maps
    put to the test."""
    extreme = parameter_sets(row.model())
    sets = [*(one_set(extreme, index) for index in range(len(next(iter(extreme.values()))))), *random_sets(row, 200)]
    if "epsilon" in row.parameters and "xi" in row.parameters:  # both Gaussians nearly the same: hardly any digits left
        for near in (1e-3, 1e-5, 1e-7):
            sets.append({**sets[-1], "xi": XI, "epsilon": 4 * XI * (1 + np.array([near, -near]))})
    differ = 0
    for values in sets:
        for name, steps in steps_on(MIDDLE, "table").items():
            with jax.enable_x64(True):
                double = np.asarray(log_sums(row.policy(), values, steps))
                single = np.asarray(log_sums(row.policy(), values, steps.in_single_precision()))
            np.testing.assert_allclose(single, double, rtol=0, atol=2e-5, err_msg=f"{row.name} {values} on {name}")
            assert np.median(np.abs(single - double)) < 1e-6
            differ += not np.array_equal(single, double)
    # Only a repelled policy has sums over all cells; that they were in fact done in single precision shows.
    assert (differ > 50) == ("epsilon" in row.parameters and "xi" in row.parameters)
