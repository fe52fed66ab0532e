"""Pólya-Gamma draws against theory and against the `polyagamma` package.

Keys are fixed. For another key the whole file would raise a false alarm once in ten thousand: each comparison gets its
share of that (Bonferroni), with tests that are exact, or as good as that for so many draws.
"""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from polyagamma import random_polyagamma
from scipy import integrate, stats

from foveate.errors import InputError
from foveate.inference.polya_gamma import CHANGE, polya_gamma, share_kept

FALSE_ALARM = 1e-4
DRAWS = 600_000

# Among them the two sides of the change of method, at |c| = 2 / CHANGE.
C = (0.0, 0.7, 2.0, 2 / CHANGE - 0.01, 2 / CHANGE + 0.01, -4.0, 8.0, -20.0, 50.0)
RATES = (0.3, 2.0, 10.0)  # of the Laplace transform, in units of 1 / mean
# For each: mean, variance, Laplace transform, bins, other sampler; then two correlations, and three means far out.
COMPARISONS = len(C) * (2 + len(RATES) + 2) + 5
LEAST = FALSE_ALARM / COMPARISONS


@pytest.fixture(scope="module", params=C)
def sample(request):
    c = request.param
    key = jax.random.fold_in(jax.random.key(3), C.index(c))
    return c, polya_gamma(key, np.full(DRAWS, c))


def p_of_mean(values: np.ndarray, expected: float) -> float:
    """Of the test that the values have this mean."""
    return float(2 * stats.norm.sf(abs(values.mean() - expected) / (values.std() / np.sqrt(len(values)))))


def mean_and_variance(c: float) -> tuple[float, float]:
    """tanh(c/2) / (2 c) and (sinh c - c) / (4 c^3 cosh(c/2)^2), from the derivatives of the Laplace transform."""
    if c == 0:
        return 1 / 4, 1 / 24
    return np.tanh(c / 2) / (2 * c), (np.sinh(c) - c) / (4 * c**3 * np.cosh(c / 2) ** 2)


def test_mean_and_variance_are_those_of_theory(sample):
    c, draws = sample
    mean, variance = mean_and_variance(c)
    assert p_of_mean(draws, mean) > LEAST
    assert p_of_mean((draws - mean) ** 2, variance) > LEAST


def test_the_laplace_transform_is_that_of_theory(sample):
    """E exp(-t omega) = cosh(c/2) / cosh(sqrt(c^2/4 + t/2))."""
    c, draws = sample
    for rate in RATES:
        t = rate / mean_and_variance(c)[0]
        expected = np.cosh(c / 2) / np.cosh(np.sqrt(c**2 / 4 + t / 2))
        assert p_of_mean(np.exp(-t * draws), expected) > LEAST, rate


def test_draws_fall_like_those_of_another_library(sample):
    c, draws = sample
    others = random_polyagamma(1, c, size=DRAWS, method="devroye", random_state=np.random.default_rng(4))
    assert stats.ks_2samp(draws, others).pvalue > LEAST


# --- the density itself, by its two expansions ------------------------------------------------------------------------


def by_left_series(x, terms=40):
    n = np.arange(terms)[:, None] + 0.5
    return np.sum((-1.0) ** (n - 0.5) * np.pi * n * (2 / (np.pi * x)) ** 1.5 * np.exp(-2 * n**2 / x), axis=0)


def by_right_series(x, terms=40):
    n = np.arange(terms)[:, None] + 0.5
    return np.sum((-1.0) ** (n - 0.5) * np.pi * n * np.exp(-(np.pi**2) * n**2 * x / 2), axis=0)


def density(omega: np.ndarray, c: float) -> np.ndarray:
    """Of PG(1, c): four times that of the Jacobi variable x = 4 omega, tilted."""
    x = 4 * omega
    series = np.where(x < 0.8, by_left_series(x), by_right_series(x))
    return 4 * np.exp(np.logaddexp(c / 2, -c / 2) - np.log(2) - c**2 * omega / 2) * series


def test_draws_fall_into_bins_as_the_density_says(sample):
    """A wrong share of the two sides, or a seam between them, would show."""
    c, draws = sample
    others = random_polyagamma(1, c, size=4000, random_state=np.random.default_rng(5))  # only to place the edges
    edges = np.quantile(others, np.linspace(0, 1, 41)[1:-1])
    ends = pairwise([1e-9, *edges])
    below = [integrate.quad(lambda w: density(np.array([w]), c)[0], *pair, epsabs=1e-12)[0] for pair in ends]
    probability = np.append(below, 1 - sum(below))
    count = np.histogram(draws, [0, *edges, np.inf])[0]
    assert probability.min() > 0.001
    assert stats.chisquare(count, probability * DRAWS).pvalue > LEAST


def test_the_share_that_is_kept_makes_the_first_term_the_density():
    """No chance in it: to the last digits, on either side by the series of the other side."""
    left, right = np.linspace(0.2, CHANGE, 50), np.linspace(CHANGE + 1e-9, 4, 50)
    first_left = np.sqrt(2 / np.pi) * left**-1.5 * np.exp(-1 / (2 * left))
    first_right = np.pi / 2 * np.exp(-(np.pi**2) * right / 8)
    with jax.enable_x64(True):
        kept_left, kept_right = np.asarray(share_kept(jnp.asarray(left))), np.asarray(share_kept(jnp.asarray(right)))
    np.testing.assert_allclose(first_left * kept_left, by_right_series(left), rtol=1e-11)
    np.testing.assert_allclose(first_right * kept_right, by_left_series(right), rtol=1e-11)
    assert kept_left.min() > 0.99
    assert kept_right.min() > 0.99


# --- as it is used ----------------------------------------------------------------------------------------------------


def test_any_shape_and_any_sign_and_the_same_key_the_same_draws():
    c = np.linspace(-40, 40, 24).reshape(2, 3, 4)
    key = jax.random.key(0)
    draws = polya_gamma(key, c)
    assert draws.shape == c.shape
    assert draws.dtype == np.float64
    assert isinstance(draws, np.ndarray)
    np.testing.assert_array_equal(draws, polya_gamma(key, -c))
    assert not np.isin(draws, polya_gamma(jax.random.key(1), c)).any()
    assert polya_gamma(key, np.zeros(())).shape == ()


def test_elements_are_independent_of_each_other():
    draws = polya_gamma(jax.random.key(5), np.full(DRAWS, 1.0))
    for lag in (1, DRAWS // 2):
        one, other = draws[:-lag], draws[lag:]
        assert abs(np.corrcoef(one, other)[0, 1]) < stats.norm.isf(LEAST / 2) / np.sqrt(len(one))


@pytest.mark.parametrize("c", [300.0, -800.0, 1e4])
def test_far_out_the_draws_are_finite_and_near_their_mean(c):
    draws = polya_gamma(jax.random.key(6), np.full(DRAWS, c))
    assert np.isfinite(draws).all()
    assert (draws > 0).all()
    assert p_of_mean(draws, 1 / (2 * abs(c))) > LEAST


def test_a_seed_is_no_key(unchecked_types):
    with pytest.raises(InputError, match="make one from a seed"):
        polya_gamma(3, np.zeros(2))
