"""The Gibbs sampler as it is called: what it returns, what it refuses, and that padding does not count.

Whether the draws are right is held in tests/statistical/test_gibbs_joint.py.
"""

import json
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import hmc

from foveate.data.dataset import Dataset
from foveate.data.grid import PUBLISHED_PX_DEG, Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError
from foveate.inference import gibbs_sweep
from foveate.inference.gibbs import gibbs
from foveate.inference.hmc_within_gibbs import PAPER_STEPS, trajectory
from foveate.inference.target import Target, log_densities
from foveate.model import catalogue
from foveate.model.priors import Beta, LogNormal, Normal
from foveate.simulation.simulate import simulate

GRID = Grid(14, 12, Extent(10.0, 16.0))
KEY = jax.random.key(17)


@pytest.fixture(scope="module")
def data() -> Dataset:
    """Two observers whose steps take up the same padded shape, though not the same steps in it."""
    rng = np.random.default_rng(31)
    weights = {picture: rng.gamma(2.0, size=GRID.shape) + 0.1 for picture in ("beach", "wood", "pier")}
    maps = SaliencyMaps.from_arrays(weights, GRID.extent, normalise=True)
    model = catalogue.full(epsilon=(1.0, 2.0), xi=(10.0, 20.0), b=0.5, s0=2.0)
    return Dataset(simulate({"ann": model, "bob": model}, maps, 12, jax.random.key(1)), maps)


@pytest.fixture(scope="module")
def ann(data) -> Target:
    return Target.of(catalogue.fixed_choice(), data.select(observers=["ann"]))


@pytest.fixture(scope="module")
def samples(ann):
    return gibbs(ann, KEY, chains=2, warmup=40, draws=15, thin=2)


def test_draws_come_with_what_the_sampler_knows(ann, samples):
    assert samples.real.shape == (2, 15, len(ann.model.labels))
    assert samples.sampler == "gibbs"
    assert set(samples.statistics) == {"lp", "acceptance_rate", "diverging", "local_share"}
    for value in samples.statistics.values():
        assert value.shape == (2, 15)
        assert value.dtype == np.float64
        assert isinstance(value, np.ndarray)
    assert isinstance(samples.real, np.ndarray)
    assert np.isfinite(samples.real).all()
    assert set(np.unique(samples.statistics["diverging"])) <= {0.0, 1.0}
    assert ((samples.statistics["local_share"] >= 0) & (samples.statistics["local_share"] <= 1)).all()
    json.dumps([samples.settings, samples.facts])
    assert samples.settings["scheme"] == "adapted"
    assert 2 * 70 * 2 <= samples.evaluations <= 2 * 70 * 6  # two chains of 70 sweeps, of one to five leapfrog steps


def test_lp_is_the_marginal_posterior_density_of_the_draw(ann, samples):
    exact = Target(ann.model, replace(ann.steps, single=False))
    expected = log_densities(exact, samples.real.reshape(-1, samples.real.shape[-1]))
    np.testing.assert_allclose(samples.statistics["lp"].ravel(), expected, rtol=1e-10)


def test_every_number_moves_in_every_chain_and_chains_differ(samples):
    assert (samples.real.std(axis=1) > 0).all()
    assert not np.isin(samples.real[0], samples.real[1]).any()
    assert (np.asarray(samples.facts["inverse_mass"]) != 1).all()


def test_a_key_gives_the_same_draws_and_another_key_others(ann, samples):
    again = gibbs(ann, KEY, chains=2, warmup=40, draws=15, thin=2)
    np.testing.assert_array_equal(samples.real, again.real)
    for name, value in samples.statistics.items():
        np.testing.assert_array_equal(value, again.statistics[name])
    other = gibbs(ann, jax.random.key(18), chains=2, warmup=40, draws=15, thin=2)
    assert not np.isin(samples.real, other.real).any()


def test_thinning_and_more_draws_change_none_of_the_others(ann, samples):
    every = gibbs(ann, KEY, chains=2, warmup=40, draws=32)
    np.testing.assert_array_equal(samples.real, every.real[:, 1:30:2])


def test_what_stands_in_the_padding_does_not_count(ann, samples):
    """Other steps of the same observer in its place: the draws stay the same to the last bit."""
    real = np.asarray(ann.steps.real)
    assert not real.all()
    row = np.where(real.any(axis=1), np.arange(len(real)), 0)[:, None]
    column = np.where(real, np.arange(real.shape[1]), 1)

    def other_padding(leaf):
        return np.asarray(leaf)[row, column]

    steps = ann.steps
    changed = eqx.tree_at(
        lambda it: (it.history, it.target, it.row, it.column),
        steps,
        jax.tree.map(other_padding, (steps.history, steps.target, steps.row, steps.column)),
    )
    with jax.enable_x64(True):
        changed = jax.tree.map(jnp.asarray, eqx.tree_at(lambda it: it.table, changed, None).tabulated())
    assert not np.array_equal(changed.history.position_deg, steps.history.position_deg)
    again = gibbs(Target(ann.model, changed), KEY, chains=2, warmup=40, draws=15, thin=2)
    np.testing.assert_array_equal(samples.real, again.real)


def test_another_observer_of_the_same_shape_is_not_compiled_again(data, samples, monkeypatch):
    traced = []
    right = gibbs_sweep.draw_rho
    monkeypatch.setattr(gibbs_sweep, "draw_rho", lambda *arguments: traced.append(1) or right(*arguments))
    bob = Target.of(catalogue.fixed_choice(), data.select(observers=["bob"]))
    others = gibbs(bob, KEY, chains=1, warmup=20, draws=5)
    assert not traced
    assert not np.isin(others.real, samples.real).any()


def test_chains_begin_where_they_are_told(ann):
    starts = np.array([[-1.0, 0.5, 1.5, 2.0, 0.3], [0.7, 1.1, 3.0, 3.5, -0.2]])
    reports = []
    found = gibbs(ann, KEY, chains=2, warmup=20, draws=1, starts=starts, report=reports.append)
    elsewhere = gibbs(ann, KEY, chains=2, warmup=20, draws=1, starts=starts[::-1])
    assert not np.isin(found.real, elsewhere.real).any()
    assert [(it.stage, it.done, it.total) for it in reports] == [("drawing", 21, 42), ("drawing", 42, 42)]


def test_progress_is_told_between_blocks_and_can_stop_the_sampler(ann):
    reports = []

    def stop(progress):
        reports.append(progress)
        if progress.done >= 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gibbs(ann, KEY, chains=1, warmup=120, draws=100, report=stop)
    assert [it.stage for it in reports] == ["warm-up", "warm-up", "drawing"]
    assert reports[-1].total == 220
    assert set(reports[0].facts) == {"divergences", "acceptance_rate"}


def test_the_papers_scheme_moves_by_small_steps_of_px2(data):
    model = catalogue.full(priors="published", repulsion="none")
    target = Target.of(model, data.select(observers=["ann"]))
    start = np.array([0.5, 1.0, 2.5, 3.0, 0.5, 2.0])
    found = gibbs(target, KEY, chains=1, warmup=0, draws=40, scheme="paper", starts=start[None])
    assert found.real.shape == (1, 40, 6)
    assert found.evaluations == 40 * 2 * (PAPER_STEPS + 1)
    assert found.facts == {}
    assert found.statistics["acceptance_rate"].mean() > 0.9  # "100 %", says the paper
    px2 = np.exp(found.real[0, :, :4]) / np.tile(np.square(PUBLISHED_PX_DEG), 2)
    moved = abs(np.diff(px2, axis=0, prepend=np.exp(start[None, :4]) / np.tile(np.square(PUBLISHED_PX_DEG), 2)))
    assert (moved.max(axis=0) > [0.1, 0.1, 2, 2]).all()
    assert (moved.max(axis=0) < [2, 2, 30, 30]).all()


def test_a_trajectory_is_that_of_blackjax():
    """On a crooked density: the same key, the same end, accepted or not."""

    def log_density(position):
        return -jnp.sum(jnp.cosh(position * jnp.array([1.0, 0.3]))) - 0.5 * position[0] * position[1]

    position, inverse_mass = jnp.array([0.4, -1.0]), jnp.array([0.7, 2.5])
    with jax.enable_x64(True):
        position, inverse_mass = position.astype(float), inverse_mass.astype(float)
        kernel = hmc.build_kernel()
        accepted = []
        for seed, steps in enumerate([1, 3, 7, 7, 7, 7]):
            key = jax.random.key(seed)
            ours = trajectory(
                key,
                lambda it: (log_density(it), it.sum()),
                position,
                jnp.asarray(0.9),
                inverse_mass,
                jnp.asarray(steps),
            )
            state, info = kernel(key, hmc.init(position, log_density), log_density, 0.9, inverse_mass, steps)
            np.testing.assert_allclose(ours.position, state.position, rtol=1e-12)
            np.testing.assert_allclose(ours.extra, state.position.sum(), rtol=1e-12)
            np.testing.assert_allclose(ours.acceptance_rate, info.acceptance_rate, rtol=1e-10)
            assert bool(ours.diverging) == bool(info.is_divergent)
            accepted.append(bool(info.is_accepted))
        assert len(set(accepted)) == 2  # both happened


# --- what is refused --------------------------------------------------------------------------------------------------


def test_other_models_are_left_to_other_samplers(data):
    target = Target.of(catalogue.local_saliency(), data)
    with pytest.raises(InputError, match=r"'local_saliency'.*NUTS and importance sampling fit any model"):
        gibbs(target, KEY)


@pytest.mark.parametrize(
    ("name", "priors", "message"),
    [
        ("full", {"b": LogNormal(1.0, 1.0)}, "prior of b must be Normal, and it is LogNormal"),
        ("local_choice", {"s0": Beta(1.0, 1.0)}, "prior of s0 must be Normal, and it is Beta"),
        ("fixed_choice", {"rho": Normal(0.0, 1.0)}, "prior of rho must be Beta, and it is Normal"),
        ("fixed_choice", {"xi": Normal(9.0, 1.0)}, "prior of xi must be one over positive numbers"),
    ],
)
def test_priors_without_a_conditional_are_named(data, name, priors, message):
    target = Target.of(catalogue.named_model(name).with_priors(priors), data)
    with pytest.raises(InputError, match=message):
        gibbs(target, KEY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheme": "best"}, "scheme = 'best': there are 'adapted' and 'paper'"),
        ({"chains": 0}, "chains = 0: give a whole number, 1 or more"),
        ({"draws": 2.5}, "draws = 2.5: give a whole number, 1 or more"),
        ({"thin": 0}, "thin = 0: give a whole number, 1 or more"),
        ({"warmup": 5}, "warmup = 5: give a whole number, 20 or more"),
        ({"warmup": -1, "scheme": "paper"}, "warmup = -1: give a whole number, 0 or more"),
        ({"chains": 2, "starts": np.zeros((2, 3))}, r"starts have shape \(2, 3\): give one vector of 5 numbers"),
        ({"chains": 1, "starts": np.full((1, 5), np.nan)}, "starts of chain 0: numbers must be finite"),
    ],
)
def test_settings_that_make_no_sense_are_named(ann, settings, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        gibbs(ann, KEY, **settings)


def test_a_start_without_density_is_named(ann):
    starts = np.zeros((2, 5))
    starts[1, 0] = -800.0  # a variance that is zero in double precision
    with pytest.raises(InputError, match="chain 1 starts where the posterior density is not finite"):
        gibbs(ann, KEY, chains=2, warmup=20, draws=1, starts=starts)


def test_a_seed_is_no_key(ann, unchecked_types):
    with pytest.raises(InputError, match="make one from a seed"):
        gibbs(ann, 3)
