"""The point estimate: a stationary point of log-likelihood plus log-prior, the same whatever helps to find it."""

import jax
import numpy as np
import pytest
from scipy.optimize import minimize

from foveate.errors import InputError
from foveate.example import example_data
from foveate.inference.point import maximum_a_posteriori
from foveate.model import catalogue
from foveate.model.likelihood import log_likelihood
from foveate.model.steps import Steps


@pytest.fixture(scope="module")
def steps():
    return Steps.of(example_data().data.select(observers=["ann"], pictures=["beach", "tower"]))


def test_it_is_the_top_of_likelihood_times_prior(steps):
    """Against a search without derivatives; neither the Jacobian nor a missing prior would end at the same place."""
    model = catalogue.named_model("local_saliency", priors="published")
    found = maximum_a_posteriori(model, steps, jax.random.key(0), climbs=2)

    def height(log_xi):
        at = model.with_parameters({"xi": np.exp(log_xi)})
        return float(log_likelihood(at, steps)) + float(at.log_prior())

    top = minimize(
        lambda v: -height(v), np.log([20.0, 40.0]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}
    )
    np.testing.assert_allclose(found.model.parameters["xi"], np.exp(top.x), rtol=1e-3)
    assert found.log_posterior_nats == pytest.approx(-top.fun, abs=1e-5)
    assert found.climbs_agreeing == found.climbs == 2
    assert isinstance(found.model.parameters["xi"], np.ndarray)


def test_a_model_without_parameters_is_its_own_estimate(steps):
    found = maximum_a_posteriori(catalogue.saliency_baseline(), steps, jax.random.key(0))
    assert found.log_posterior_nats == pytest.approx(float(log_likelihood(found.model, steps)))


def test_mistakes_are_named(steps, unchecked_types):
    with pytest.raises(InputError, match="at least one is needed"):
        maximum_a_posteriori(catalogue.full(), steps, jax.random.key(0), climbs=0)
    with pytest.raises(InputError, match=r"key = 1: randomness needs a JAX key"):
        maximum_a_posteriori(catalogue.full(), steps, 1)
