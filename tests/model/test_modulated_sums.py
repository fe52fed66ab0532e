"""Sums of modulated salient Gaussians: the plain sum over all cells, whatever is common to the policies."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.situations import GRID, MEMORY, dataset_on
from contracts.table import DIRECTIONS, TURNS, VISITED
from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.model import modulated_sums
from foveate.model.factors import Cardinal, Modulated, SaliencyDrift, Turning, VisitedBefore
from foveate.model.likelihood import log_normalisers, plain_log_normalisers
from foveate.model.mechanisms import CentreBias, HeavyTailedGlobal, Momentum, Return, SalientGlobal, SalientLocal
from foveate.model.parts import with_values
from foveate.model.policies import Global, Local, Policy
from foveate.model.steps import Steps

FACTORS = (Cardinal(**DIRECTIONS), Turning(**TURNS), VisitedBefore(**VISITED), SaliencyDrift(-0.2))


def several() -> list[Policy]:
    """All with the same factors but two; one exponent is shared by two, two do without the map, one has another."""
    same = [
        SalientLocal((3.0, 4.0), 1.4),
        Local((2.0, 5.0)),
        SalientGlobal((30.0, 45.0), 1.4),
        Momentum((8.0, 10.0), 0.6, 0.7),
        Return((2.0, 3.0), 0.7),
        CentreBias((20.0, 31.0)),
        Global((21.0, 11.0)),
    ]
    some = Modulated(SalientLocal((1.0, 2.0), 0.9), (Turning(-0.5, 0.3),))
    return [*(Modulated(it, FACTORS) for it in same), some, SalientGlobal((30.0, 45.0), 1.2)]


def weighted_total(sums) -> jax.Array:
    """One number that every sum matters to, each in its own way."""
    stacked = jnp.stack([jnp.asarray(it) for it in sums])
    weights = jnp.cos(jnp.arange(stacked.size, dtype=jnp.float64)).reshape(stacked.shape)
    return jnp.sum(weights * stacked)


def both(policies: list[Policy], steps: Steps) -> tuple:
    """(the sums, the slopes of a mixture of them), fast and plain."""

    def of(way):
        def total(some):
            found = way(some, steps)
            return weighted_total(found), [jnp.asarray(it) for it in found]

        (_, found), slopes = eqx.filter_jit(eqx.filter_value_and_grad(total, has_aux=True))(
            jax.tree.map(jnp.asarray, policies)
        )
        return np.stack([np.asarray(it) for it in found]), [np.asarray(it) for it in jax.tree.leaves(slopes)]

    with jax.enable_x64(True):
        return of(log_normalisers), of(plain_log_normalisers)


@pytest.mark.parametrize("origin", ["bottom", "top"])
def test_sums_and_slopes_are_those_of_the_definition(origin):
    data = dataset_on(Grid(9, 12, Extent(18.0, 31.0, origin)))
    steps = Steps.of(data.select(pictures=["lumpy"]), memory=MEMORY)
    (fast, fast_slopes), (plain, plain_slopes) = both(several(), steps)
    np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
    assert max(np.abs(it).max() for it in plain_slopes) > 1
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_single_precision_is_good_to_a_few_millionths_of_a_step():
    steps = Steps.of(dataset_on(GRID).select(pictures=["lumpy", "flat"]), memory=MEMORY)
    (rough, rough_slopes), (plain, plain_slopes) = both(several(), steps.in_single_precision())
    assert 0 < np.abs(rough - plain).max() < 5e-6
    for found, expected in zip(rough_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("single", [False, True])
def test_where_the_sums_underflow_the_definition_takes_over(single):
    """A narrow Gaussian at a place with next to no saliency: nothing of the sum is left in these digits."""
    saliency = np.full(GRID.shape, 1e-30)
    saliency[0, 0] = 1.0
    paths = dataset_on(GRID).select(pictures=["flat"]).paths
    maps = SaliencyMaps.from_arrays({"flat": saliency / saliency.sum()}, GRID.extent)
    steps = Steps.of(Dataset(paths, maps), memory=MEMORY)
    policies = [Modulated(SalientLocal((1e-3, 1e-3), 12.0), FACTORS[:3])]
    (fast, _), (plain, _) = both(policies, steps.in_single_precision() if single else steps)
    assert plain.min() < np.log(1e-280)
    np.testing.assert_allclose(fast, plain, rtol=1e-10)


def test_strong_factors_do_not_overflow():
    strong = (Cardinal(40.0, -30.0, 20.0, 0.0, 35.0), VisitedBefore(mu=60.0, omega=9.0, lambda_=0.9))
    steps = Steps.of(dataset_on(GRID).select(pictures=["lumpy"]), memory=MEMORY)
    (fast, _), (plain, _) = both([Modulated(SalientGlobal((30.0, 45.0), 1.4), strong)], steps.in_single_precision())
    np.testing.assert_allclose(fast, plain, rtol=1e-4)


def test_which_policies_have_such_sums():
    heavy = HeavyTailedGlobal((30.0, 45.0), 3.0, 1.2)
    assert all(modulated_sums.known(it) for it in several())
    assert not modulated_sums.known(heavy)
    assert not modulated_sums.known(Modulated(heavy, FACTORS))


def test_differentiating_in_positions_gives_no_number():
    """Fixations are data; a derivative that is not worked out must not look like one."""
    steps = Steps.of(dataset_on(GRID).select(pictures=["lumpy"]), memory=MEMORY)

    def total(gaze):
        moved = eqx.tree_at(lambda it: it.history.position_deg, steps, gaze)
        return weighted_total(log_normalisers([with_values(several()[0], {})], moved))

    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(total))(jnp.asarray(steps.history.position_deg))
    assert np.isnan(slope).any()
