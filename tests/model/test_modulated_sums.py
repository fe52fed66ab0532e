"""Sums of modulated salient Gaussians: the plain sum over all cells, whatever is common to the policies."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import logsumexp

from contracts.situations import EXTENT, GRID, MEMORY, dataset_on
from contracts.table import AHEAD, DIRECTIONS, LOOKED_AT, PEAKS, TURNS, VISITED
from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.model import axis_loops, direction_loop, directions, modulated_kernel, modulated_loop, modulated_sums
from foveate.model.directions import Cardinal, CardinalPeaks, Turning, TurningPeak
from foveate.model.factors import Modulated, SaliencyDrift
from foveate.model.history import Picture
from foveate.model.likelihood import log_normalisers, plain_log_normalisers
from foveate.model.mechanisms import CentreBias, HeavyTailedGlobal, Momentum, Return, SalientGlobal, SalientLocal
from foveate.model.packing import packed
from foveate.model.parts import with_values
from foveate.model.places import Here, VisitedBefore
from foveate.model.policies import TIE, Global, Local, Policy, RepelledGlobal, nearest_centre
from foveate.model.steps import Steps

FACTORS = (
    Cardinal(**DIRECTIONS),
    Turning(**TURNS),
    VisitedBefore(**VISITED),
    SaliencyDrift(-0.2),
    CardinalPeaks(**PEAKS),
    TurningPeak(**AHEAD),
    Here(**LOOKED_AT),
)


REPELLED = RepelledGlobal((30.0, 45.0), (6.0, 9.0))


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
        REPELLED,
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
def test_cells_that_a_map_leaves_empty_weigh_nothing_whatever_the_exponent(single):
    """Nor do they matter to any slope, though their logarithm is a huge number."""
    steps = Steps.of(dataset_on(GRID).select(pictures=["half"]), memory=MEMORY)
    bases = SalientLocal((0.6, 2.0), 1.4), SalientGlobal(9.0, 1.4), SalientGlobal(30.0, -0.5), Local((3.0, 7.0))
    given = steps.in_single_precision() if single else steps
    (fast, fast_slopes), (plain, plain_slopes) = both([Modulated(it, FACTORS[:4]) for it in bases], given)
    np.testing.assert_allclose(fast, plain, rtol=1e-10, atol=1e-5 if single else 1e-10)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4 if single else 1e-9, atol=1e-3 if single else 1e-9)


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


@pytest.mark.parametrize("variance", [1e-3, 1e-30])
def test_slopes_beside_the_fallback_are_those_of_the_definition(variance):
    """The sums underflow, so that the definition serves: what the fast ones give must not touch it."""
    saliency = np.full(GRID.shape, 1e-30)
    saliency[0, 0] = 1.0
    paths = dataset_on(GRID).select(pictures=["flat"]).paths
    maps = SaliencyMaps.from_arrays({"flat": saliency / saliency.sum()}, GRID.extent)
    steps = Steps.of(Dataset(paths, maps), memory=MEMORY)
    policies = [Modulated(SalientLocal((variance, variance), 12.0), FACTORS[:3])]
    (fast, fast_slopes), (plain, plain_slopes) = both(policies, steps.in_single_precision())
    np.testing.assert_allclose(fast, plain, rtol=1e-10)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def mixtures(policies: list[Policy], steps: Steps, log_rest: np.ndarray) -> list[tuple]:
    """(log-probabilities, slopes of a weighted sum of them), in one pass and by definition."""

    def in_one_pass(some, rest):
        assert modulated_sums.serves_mixture(some, steps)
        return modulated_sums.log_mixture(some, rest, steps, partial(plain_log_normalisers, steps=steps))

    def by_definition(some, rest):
        return logsumexp(rest - jnp.moveaxis(plain_log_normalisers(some, steps), 0, -1), axis=-1)

    def of(way):
        def total(both):
            some = [Modulated(it.base, both[0][0].factors) for it in both[0]]  # the same ones for all
            found = jnp.asarray(way(some, both[1]))
            return weighted_total([jnp.where(steps.real, found, 0.0)]), found

        with jax.enable_x64(True):
            arguments = jax.tree.map(jnp.asarray, (policies, log_rest))
            (_, found), slopes = eqx.filter_jit(eqx.filter_value_and_grad(total, has_aux=True))(arguments)
        return np.asarray(found)[np.asarray(steps.real)], [np.asarray(it) for it in jax.tree.leaves(slopes)]

    return [of(in_one_pass), of(by_definition)]


@pytest.mark.parametrize(
    ("single", "near", "repelled"), [(False, 1e-9, False), (True, 1e-4, False), (False, 1e-9, True), (True, 1e-4, True)]
)
def test_the_mixture_in_one_pass_and_its_slopes_are_those_of_the_definition(single, near, repelled):
    steps = packed(Steps.of(dataset_on(GRID).select(pictures=["lumpy", "flat"]), memory=MEMORY))
    steps, policies = steps.in_single_precision() if single else steps, several()[:8] if repelled else several()[:7]
    log_rest = np.random.default_rng(1).normal(size=(*steps.real.shape, len(policies)))
    (fast, fast_slopes), (plain, plain_slopes) = mixtures(policies, steps, log_rest)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=5e-6 if single else 1e-11)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=near, atol=near)


def test_the_mixture_beside_the_fallback_has_the_slopes_of_the_definition():
    saliency = np.full(GRID.shape, 1e-30)
    saliency[0, 0] = 1.0
    paths = dataset_on(GRID).select(pictures=["flat"]).paths
    maps = SaliencyMaps.from_arrays({"flat": saliency / saliency.sum()}, GRID.extent)
    steps = Steps.of(Dataset(paths, maps), memory=MEMORY).in_single_precision()
    policies = [Modulated(SalientLocal((1e-30, 1e-30), 12.0), FACTORS[:3])]
    (fast, fast_slopes), (plain, plain_slopes) = mixtures(policies, steps, np.zeros((*steps.real.shape, 1)))
    np.testing.assert_allclose(fast, plain, rtol=1e-10)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_padding_changes_neither_sums_nor_slopes():
    """But for the last bits, which depend on how many numbers XLA takes at a time."""
    steps = Steps.of(dataset_on(GRID).select(pictures=["lumpy", "flat"]), memory=MEMORY)

    def of(rows: int):
        some = packed(steps, (rows, 8)).in_single_precision()

        def total(policies):
            sums = jnp.stack([jnp.asarray(it) for it in log_normalisers(policies, some)])
            return jnp.sum(jnp.where(some.real, sums, 0.0)), sums

        with jax.enable_x64(True):
            (_, sums), slopes = eqx.filter_jit(eqx.filter_value_and_grad(total, has_aux=True))(
                jax.tree.map(jnp.asarray, several())
            )
        assert np.isfinite(sums).all()
        return np.asarray(sums)[:, np.asarray(some.real)], [np.asarray(it) for it in jax.tree.leaves(slopes)]

    (few, few_slopes), (many, many_slopes) = of(8), of(24)
    np.testing.assert_allclose(few, many, rtol=1e-13)
    for one, other in zip(few_slopes, many_slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_larger_cells_are_those_of_a_coarser_map():
    """Over cells of 2 x 2 the sums are the definition's on a map of means, times four, with Gaussians as they are on
    average over places in a cell, relative to those on the fine map."""
    fine = Grid(10, 12, Extent(18.0, 31.0))
    data = dataset_on(fine).select(pictures=["lumpy"])
    steps = Steps.of(data, memory=MEMORY)
    policies = [Modulated(it, FACTORS) for it in (SalientLocal((3.0, 4.0), 1.4), Momentum((8.0, 10.0), 0.6, 0.7))]
    coarse = Grid(5, 6, fine.extent)
    means = np.asarray(steps.saliency).reshape(-1, 5, 2, 6, 2).mean(axis=(2, 4))

    def by_hand(policy, history) -> float:
        with jax.enable_x64(True):
            picture = Picture(means[0], coarse.row_centres_deg[:, None], coarse.column_centres_deg, fine)
            centre = policy.policy.centre(history, picture)
            wide = np.asarray(policy.policy.variances) + 3 * np.square(fine.cell_deg) / 12
            away = [jnp.square(at - middle) / (2 * spread) for at, middle, spread in
                    zip((picture.y_deg, picture.x_deg), centre, wide, strict=True)]  # fmt: skip
            near = [jnp.square(at - middle) / (2 * spread) for at, middle, spread in
                    zip(nearest_centre(fine, centre), centre, policy.policy.variances, strict=True)]  # fmt: skip
            log_weight = policy.policy.exponent * jnp.log(means[0]) - away[0] - away[1] + near[0] + near[1]
            lower = 0.5 * np.sum(np.log(np.asarray(policy.policy.variances) / wide))
            return float(np.log(4) + lower + logsumexp(log_weight + policy.log_factor(history, picture)))

    with jax.enable_x64(True):
        found = np.stack([np.asarray(it) for it in log_normalisers(policies, steps.coarsened())])
        history = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], steps.history)
        each = [jax.tree.map(lambda leaf, at=at: leaf[at], history) for at in range(steps.count)]
    expected = [[by_hand(policy, history) for history in each] for policy in policies]
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 7), (9, 12), (3, 33)])
@pytest.mark.parametrize("which", [(), (0,), (4,), (6,), (2, 6), (1, 3)])
def test_any_grid_and_any_factors_have_the_sums_and_slopes_of_the_definition(shape, which):
    """The loop takes cells, places and harmonics several at a time: there may be some left over, or none at all."""
    grid = Grid(*shape, Extent(18.0, 31.0))
    steps = Steps.of(dataset_on(grid).select(pictures=["lumpy"]), memory=MEMORY)
    some = tuple(FACTORS[it] for it in which)
    bases = (SalientLocal((3.0, 4.0), 1.4), SalientGlobal(30.0, 1.4), Momentum((8.0, 10.0), 0.6, 1.4),
             Return(2.0, 1.4), Local((2.0, 5.0)), SalientGlobal((11.0, 9.0), 1.4))  # fmt: skip
    (fast, fast_slopes), (plain, plain_slopes) = both([Modulated(it, some) for it in bases], steps)
    np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_the_loop_has_the_constants_of_the_definition():
    assert direction_loop.NEAR_DEG == directions.NEAR_DEG
    assert modulated_loop.EMPTY == modulated_kernel.EMPTY
    assert axis_loops.TIE == TIE


def test_strong_factors_do_not_overflow():
    strong = (Cardinal(40.0, -30.0, 20.0, 0.0, 35.0), VisitedBefore(mu=60.0, omega=9.0, lambda_=0.9))
    steps = Steps.of(dataset_on(GRID).select(pictures=["lumpy"]), memory=MEMORY)
    (fast, _), (plain, _) = both([Modulated(SalientGlobal((30.0, 45.0), 1.4), strong)], steps.in_single_precision())
    np.testing.assert_allclose(fast, plain, rtol=1e-4)


@pytest.mark.parametrize("picture", ["lumpy", "half", "nearly one cell"])
def test_a_repelled_policy_under_factors_has_the_sums_of_the_definition_whatever_its_variances(picture):
    """From a tenth of a cell to twice the picture, either way round: little may be left, or nothing."""
    steps = Steps.of(dataset_on(GRID).select(pictures=[picture]), memory=MEMORY)
    rng = np.random.default_rng(5)
    policies = [
        Modulated(RepelledGlobal(*np.exp(rng.uniform(np.log(0.04), np.log(3e3), (2, 2)))), FACTORS[:4])
        for _ in range(6)
    ]
    (fast, fast_slopes), (plain, plain_slopes) = both(policies, steps)
    assert plain.min() < -5
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-9)
    for found, expected in zip(fast_slopes, plain_slopes, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_repelled_policies_on_larger_cells_are_nearly_those_of_the_definition():
    """On a smooth map, with cells of a third to two standard deviations of the repelling Gaussian."""
    grid = Grid(36, 48, EXTENT)
    rows, columns = np.meshgrid(grid.row_centres_deg, grid.column_centres_deg, indexing="ij")
    smooth = np.exp(np.sin(rows / 3) + np.cos(columns / 5))
    paths = dataset_on(GRID).select(pictures=["lumpy"]).paths
    maps = SaliencyMaps.from_arrays({"lumpy": smooth / smooth.sum()}, EXTENT)
    steps = Steps.of(Dataset(paths, maps), memory=MEMORY)
    policies = [
        Modulated(RepelledGlobal((30.0, 45.0), it), FACTORS[:2]) for it in ((1.0, 2.0), (9.0, 20.0), (80.0, 9.0))
    ]
    (rough, _), (plain, _) = both(policies, steps.coarsened())
    real = np.asarray(steps.real)
    assert 1e-6 < np.abs(rough - plain)[:, real].max() < 0.1


def test_which_policies_have_such_sums():
    heavy = HeavyTailedGlobal((30.0, 45.0), 3.0, 1.2)
    assert all(modulated_sums.known(it) for it in several())
    assert not modulated_sums.known(heavy)
    assert not modulated_sums.known(REPELLED)  # without factors it has a faster way of its own
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
