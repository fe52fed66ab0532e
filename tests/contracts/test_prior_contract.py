"""Every prior: the density and the draws of its distribution, and a smooth way to the real line and back."""

import jax
import numpy as np
import pytest
from scipy import stats

from contracts.table import Row, rows_of
from foveate.model.priors import Prior

every_prior = pytest.mark.parametrize("row", rows_of(Prior))

# Quantiles of the distribution at which things are compared.
LEVELS = np.array([1e-6, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-4])


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def quantiles(row: Row) -> np.ndarray:
    return row.oracle(**row.parameters).ppf(LEVELS)


@every_prior
def test_log_density_is_that_of_the_distribution(row: Row):
    prior, distribution = row.make(), row.oracle(**row.parameters)
    for value in quantiles(row):
        assert float(prior.log_density(np.array(value))) == pytest.approx(distribution.logpdf(value), rel=1e-12)


@every_prior
def test_components_of_a_pair_are_independent(row: Row):
    prior, (first, second) = row.make(), quantiles(row)[[2, 5]]
    apart = prior.log_density(np.array(first)) + prior.log_density(np.array(second))
    assert float(prior.log_density(np.array([first, second]))) == pytest.approx(float(apart), rel=1e-14)


@every_prior
def test_a_pair_may_have_a_prior_for_each_component(row: Row):
    other = {name: 1.5 * value for name, value in row.parameters.items()}
    pair = row.part(**{name: (value, other[name]) for name, value in row.parameters.items()})
    value = quantiles(row)[[2, 5]]
    expected = row.oracle(**row.parameters).logpdf(value[0]) + row.oracle(**other).logpdf(value[1])
    assert float(pair.log_density(value)) == pytest.approx(expected, rel=1e-12)
    draws = pair.sample(jax.random.key(1), (20_000, 2))
    for column, parameters in enumerate((row.parameters, other)):
        # fails by chance once in 10,000 keys
        assert stats.kstest(np.asarray(draws)[:, column], row.oracle(**parameters).cdf).pvalue > 1e-4


@every_prior
def test_draws_follow_the_distribution(row: Row):
    draws = np.asarray(row.make().sample(jax.random.key(8), (20_000,)))
    assert draws.dtype == np.float64
    assert np.isfinite(draws).all()
    # Kolmogorov-Smirnov; fails by chance once in 10,000 keys
    assert stats.kstest(draws, row.oracle(**row.parameters).cdf).pvalue > 1e-4


@every_prior
def test_draws_differ_between_keys_and_components(row: Row):
    prior = row.make()
    first, second = prior.sample(jax.random.key(1), (2,)), prior.sample(jax.random.key(2), (2,))
    assert len(set(map(float, [*first, *second]))) == 4
    assert prior.sample(jax.random.key(1), ()).shape == ()


@every_prior
def test_a_value_survives_the_way_to_the_real_line_and_back(row: Row):
    prior, values = row.make(), quantiles(row)
    real = np.asarray(prior.to_real(values))
    assert np.isfinite(real).all()
    assert (np.diff(real) > 0).all()
    np.testing.assert_allclose(prior.from_real(real), values, rtol=1e-12)
    for far in (-30.0, 30.0):
        assert float(prior.to_real(prior.from_real(np.array(far)))) == pytest.approx(far, abs=2e-2)


@every_prior
def test_log_jacobian_is_the_derivative_of_the_way_back(row: Row):
    prior = row.make()
    for real in np.asarray(prior.to_real(quantiles(row))):
        step = 1e-5 * max(1.0, abs(real))
        difference = float(prior.from_real(np.array(real + step)) - prior.from_real(np.array(real - step))) / (2 * step)
        assert float(prior.log_jacobian(np.array(real))) == pytest.approx(np.log(difference), abs=1e-5)


@every_prior
def test_log_jacobians_of_components_add_up(row: Row):
    prior = row.make()
    real = np.asarray(prior.to_real(quantiles(row)[[2, 5]]))
    apart = sum(float(prior.log_jacobian(np.array(value))) for value in real)
    assert float(prior.log_jacobian(real)) == pytest.approx(apart, rel=1e-14)
