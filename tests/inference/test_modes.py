"""Modes: errors of masses are as large as masses scatter, and the top of a mode is its best draw."""

import jax
import numpy as np
import pytest
from small_problems import both_modes, six_numbers, two_modes

from foveate.inference import importance as module
from foveate.inference import modes as modes_module
from foveate.inference.fit import draw
from foveate.inference.mixture import Mixture
from foveate.inference.modes import error_of_chains, error_of_independent, error_of_replicates, find_modes
from foveate.inference.samples import Samples, silent
from foveate.inference.target import log_densities

SETS = 400  # of draws, each with its masses: their scatter is known to 4 %, errors to a few per cent more


def equal(inside: np.ndarray) -> np.ndarray:
    return np.full(inside.shape, 1 / inside.size)


def test_the_error_of_weighted_draws_is_the_scatter_of_their_masses():
    rng = np.random.default_rng(1)
    real = rng.normal(scale=1.5, size=(SETS, 2, 500))
    weight = np.exp(-0.5 * real**2 * (1 - 1 / 1.5**2))
    weight /= weight.sum(axis=(1, 2), keepdims=True)
    inside = (real > 0.7).astype(float)
    masses = (weight * inside).sum(axis=(1, 2))
    errors = [error_of_independent(one, its) for one, its in zip(inside, weight, strict=True)]
    assert np.mean(errors) == pytest.approx(masses.std(), rel=0.15)


def test_the_error_of_chains_is_the_scatter_of_their_masses():
    """Chains that change modes seldom: independent draws would have an error of a third."""
    rng = np.random.default_rng(2)
    mass, correlation = 0.3, 0.8
    inside = np.empty((SETS, 4, 500))
    inside[..., 0] = rng.random((SETS, 4)) < mass
    for turn in range(1, 500):
        anew = rng.random((SETS, 4)) > correlation
        inside[..., turn] = np.where(anew, rng.random((SETS, 4)) < mass, inside[..., turn - 1])
    expected = np.sqrt(mass * (1 - mass) / 2000 * (1 + correlation) / (1 - correlation))
    assert np.mean([error_of_chains(one, equal(one)) for one in inside]) == pytest.approx(expected, rel=0.15)


def test_chains_that_never_leave_their_modes_count_as_one_draw_each():
    inside = np.zeros((4, 500))
    inside[0] = 1
    assert error_of_chains(inside, equal(inside)) == pytest.approx(np.sqrt(0.25 * 0.75 / 4), rel=0.05)
    assert error_of_chains(np.ones((4, 500)), equal(inside)) == 0


def test_the_error_of_replicates_is_the_scatter_of_their_masses():
    """Particles of a replicate have something in common that no order shows."""
    rng = np.random.default_rng(3)
    own = rng.beta(30, 70, size=(SETS, 4, 1))
    inside = (rng.random((SETS, 4, 500)) < own).astype(float)
    scatter = inside.mean(axis=(1, 2)).std()
    errors = np.array([error_of_replicates(one, equal(one)) for one in inside])
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(scatter, rel=0.15)


def test_replicates_that_agree_by_luck_still_have_an_error():
    inside = np.tile(np.arange(500) < 100, (4, 1)).astype(float)
    assert error_of_replicates(inside, equal(inside)) == pytest.approx(np.sqrt(0.2 * 0.8 / 2000))


def test_the_top_of_a_mode_is_where_the_posterior_is_highest_not_the_proposal():
    centred = both_modes(0.5)
    aside = Mixture(centred.share, centred.centre + np.array([0.3, -3.0]), centred.factor, centred.freedom)
    real = aside.sample(400, np.random.default_rng(4)).reshape(2, 200, 2)
    heights = log_densities(two_modes(), real.reshape(-1, 2)).reshape(2, 200)
    log_weight = heights - aside.log_density(real.reshape(-1, 2)).reshape(2, 200)
    # Told that all draws weigh the same, it still has to go by the posterior.
    for weights in (log_weight, np.zeros((2, 200))):
        found = find_modes(two_modes(), real, weights, heights, aside, error_of_independent)
        assert_tops_are_best(found, real, heights)


def test_a_valley_that_rough_densities_cannot_judge_is_looked_at_with_exact_ones(monkeypatch):
    target = six_numbers()
    ends = np.array([[0.0, 0.7, 2.5, 3.2, 1.0, 1.0], [1.8, -1.6, 3.9, 2.1, 0.8, 1.1]])  # anywhere
    line = ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, modes_module.POINTS + 2)[1:-1, None]
    lowest, rough = (log_densities(it, line).min() for it in (target, target.coarsened()))
    assert 1e-9 < abs(rough - lowest) < modes_module.UNSURE_NATS  # both are good to 1e-12
    mixture = Mixture.of(np.array([0.5, 0.5]), ends, np.stack([np.eye(6)] * 2) * 1e-12, 5.0)
    heights = log_densities(target, ends)
    # The limit lies between what the two say: by exact densities the valley is deep enough if it is the lower one.
    monkeypatch.setattr(modes_module, "VALLEY_NATS", float(heights.min() - (rough + lowest) / 2))
    found = find_modes(target, ends[None], np.zeros((1, 2)), heights[None], mixture, error_of_independent)
    assert len(found.mass) == (2 if lowest < rough else 1)


def assert_tops_are_best(modes, real, heights):
    assert len(modes.mass) >= 2
    for number in range(len(modes.mass)):
        best = np.unravel_index(np.where(modes.label == number, heights, -np.inf).argmax(), heights.shape)
        np.testing.assert_array_equal(modes.top[number], real[best])
        assert modes.log_density[number] == pytest.approx(heights[best], abs=1e-9)


@pytest.mark.parametrize("sampler", ["importance", pytest.param("nuts", marks=pytest.mark.slow)])
def test_every_sampler_gives_the_best_draws_and_errors_of_its_own_kind(sampler):
    settings = {"chains": 2, "warmup": 50, "draws": 200} if sampler == "nuts" else {}
    found = draw(two_modes(), jax.random.key(2), sampler, 1, silent, settings)
    real = found.real if found.weighted is None else found.weighted.real
    heights = log_densities(two_modes(), real.reshape(-1, 2)).reshape(real.shape[:2])
    assert_tops_are_best(found.modes, real, heights)
    weight = np.exp(found.weighted.log_weight - found.weighted.log_weight.max()) if found.weighted else heights * 0 + 1
    kind = error_of_chains if sampler == "nuts" else error_of_independent
    expected = [kind((found.modes.label == mode).astype(float), weight / weight.sum()) for mode in (0, 1)]
    np.testing.assert_allclose(found.modes.mass_error[:2], expected)
    assert len(found.facts["exploration_log_evidence_nats"]) == 2


def test_where_smc_takes_over_errors_come_from_its_replicates(monkeypatch):
    def disagreeing(target, key, *, particles, replicates, start, report):
        rng = np.random.default_rng(5)
        real = np.stack([both_modes(share).sample(particles, rng) for share in (0.05, 0.1, 0.2, 0.4)])
        lp = log_densities(target, real.reshape(-1, 2)).reshape(real.shape[:2])
        return Samples(real, "smc", {}, {"lp": lp}, 1, log_evidence_nats=(0.0, 0.1))

    monkeypatch.setattr(module, "LARGEST_PARETO_K", -10.0)
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    monkeypatch.setattr(module, "tempered", disagreeing)
    found = module.importance(two_modes(), jax.random.key(2), draws=1000)
    assert_tops_are_best(found.modes, found.real, found.statistics["lp"])
    positive = (found.real[..., 0] > 0).mean(axis=1)  # nearly the same as the mode
    assert found.modes.mass_error[0] == pytest.approx(positive.std(ddof=1) / 2, rel=0.1)
