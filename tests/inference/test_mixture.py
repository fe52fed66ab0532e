"""The Student-t mixture against SciPy's density, and its fits against what made the draws."""

import jax
import numpy as np
import pytest
from scipy import stats

from foveate.inference.mixture import DEGREES_OF_FREEDOM, Mixture, draw_from, log_density_at, seeded
from foveate.precision import double_precision

SCALES = np.array([[[1.0, 0.6], [0.6, 2.0]], [[0.3, -0.1], [-0.1, 0.2]]])
CENTRES = np.array([[0.0, 1.0], [4.0, -2.0]])


def mixture() -> Mixture:
    return Mixture.of(np.array([3.0, 1.0]), CENTRES, SCALES, np.array([5.0, 9.0]))


def expected_density(points: np.ndarray) -> np.ndarray:
    parts = [stats.multivariate_t(CENTRES[k], SCALES[k], df=(5.0, 9.0)[k]).pdf(points) for k in (0, 1)]
    return 0.75 * parts[0] + 0.25 * parts[1]


def test_density_is_that_of_scipy():
    points = np.random.default_rng(1).normal(size=(50, 2), scale=4)
    np.testing.assert_allclose(np.exp(mixture().log_density(points)), expected_density(points))


def test_density_inside_compiled_functions_is_the_same():
    points = np.random.default_rng(1).normal(size=(20, 2), scale=4)
    found = double_precision(jax.jit(jax.vmap(log_density_at, (None, 0))))(mixture(), points)
    np.testing.assert_allclose(found, mixture().log_density(points))


@pytest.mark.parametrize("compiled", [False, True])
def test_draws_have_the_density(compiled):
    # A test of ranks under the exact distribution of the first number; false alarm 1e-4.
    if compiled:
        keys = jax.random.split(jax.random.key(5), 4000)
        draws = np.asarray(double_precision(jax.jit(jax.vmap(draw_from, (None, 0))))(mixture(), keys))
    else:
        draws = mixture().sample(4000, np.random.default_rng(5))

    def below(values):
        parts = [
            stats.t(df=(5.0, 9.0)[k], loc=CENTRES[k, 0], scale=np.sqrt(SCALES[k, 0, 0])).cdf(values) for k in (0, 1)
        ]
        return 0.75 * parts[0] + 0.25 * parts[1]

    assert stats.kstest(draws[:, 0], below).pvalue > 1e-4


def test_a_fit_to_its_own_draws_finds_the_mixture_again():
    truth = Mixture.of(np.array([3.0, 1.0]), CENTRES, SCALES, DEGREES_OF_FREEDOM)
    rng = np.random.default_rng(7)
    draws = truth.sample(8000, rng)
    weights = np.full(8000, 1 / 8000)
    fitted = seeded(draws, weights, 2, rng).refitted(draws, weights, 0.01).refitted(draws, weights, 0.01)
    points = truth.sample(2000, rng)
    # Kullback-Leibler divergence from the truth, in nats.
    assert np.mean(truth.log_density(points) - fitted.log_density(points)) < 0.03


def test_weights_count_in_a_fit():
    rng = np.random.default_rng(8)
    draws = rng.normal(size=(6000, 1), scale=3)
    weights = stats.norm(1.0, 0.5).pdf(draws[:, 0]) / stats.norm(0, 3).pdf(draws[:, 0])
    fitted = seeded(draws, weights / weights.sum(), 1, rng).refitted(draws, weights, 0.01)
    assert fitted.centre[0, 0] == pytest.approx(1.0, abs=0.05)


def test_a_component_that_got_no_draws_keeps_its_place_and_a_share():
    draws = np.random.default_rng(9).normal(size=(500, 2))
    far = Mixture.of(np.ones(2), np.array([[0.0, 0.0], [50.0, 50.0]]), np.stack([np.eye(2)] * 2), 5.0)
    fitted = far.refitted(draws, np.full(500, 1 / 500), 0.02)
    np.testing.assert_array_equal(fitted.centre[1], [50.0, 50.0])
    assert fitted.share[1] == pytest.approx(0.02, rel=0.05)


def test_flattened_shares_are_more_alike_and_components_the_same():
    flat = mixture().flattened(0.5)
    np.testing.assert_allclose(flat.share, np.sqrt([0.75, 0.25]) / np.sqrt([0.75, 0.25]).sum())
    np.testing.assert_array_equal(flat.scale, mixture().scale)
    np.testing.assert_allclose(mixture().flattened(1.0).share, mixture().share)
