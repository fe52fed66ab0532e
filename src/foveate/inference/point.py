"""A point estimate: the parameters at the highest posterior density, by many short climbs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.optimize import minimize

from foveate.errors import InputError
from foveate.model.history import Array
from foveate.model.likelihood import check_model_and_steps, log_probability
from foveate.model.model import Model
from foveate.model.steps import Steps
from foveate.precision import check_key, double_precision

# A climb stops here on the real line (standard deviations from e^-9 to e^9 degrees): far outside any data, but finite.
FURTHEST = 18.0


class PointEstimate(eqx.Module):
    """The best of several climbs. Where few of them agree, there are many local tops: try more climbs."""

    model: Model
    log_posterior_nats: float  # log-likelihood plus log-prior density of the parameters themselves
    climbs_agreeing: int  # how many climbs ended within 0.01 nats of the best
    climbs: int


@eqx.filter_jit
def _objective(
    model: Model, steps: Steps, vector: Float[Array, " number"]
) -> tuple[Float[Array, ""], Float[Array, " number"]]:
    def negative(vector: Float[Array, " number"]) -> Float[Array, ""]:
        at = model.from_real(vector)
        return -(jnp.sum(jnp.where(steps.real, log_probability(at, steps), 0.0)) + at.log_prior())

    return jax.value_and_grad(negative)(vector)


@double_precision
def maximum_a_posteriori(model: Model, steps: Steps, key: PRNGKeyArray, *, climbs: int = 8) -> PointEstimate:
    """The parameters at the highest posterior density; one climb starts at `model`, the others at draws of its priors.

    Real observers' posteriors have several modes, tens of nats apart: a single climb is not to be trusted, and neither
    is a best that no other climb found. `climbs_agreeing` says how many did; a point is no posterior.
    """
    check_key(key)
    check_model_and_steps(model, steps)
    if climbs < 1:
        raise InputError(f"climbs = {climbs}: at least one is needed.")
    start = np.asarray(model.to_real())
    if start.size == 0:
        value = jnp.sum(jnp.where(steps.real, log_probability(model, steps), 0.0))
        return PointEstimate(model, float(value), 1, 1)
    draws = [np.asarray(model.draw_from_prior(k).to_real()) for k in jax.random.split(key, climbs)[1:]]
    found = []
    for first in (start, *draws):
        result = minimize(
            lambda vector: tuple(np.asarray(part) for part in _objective(model, steps, vector)),
            np.clip(first, -FURTHEST, FURTHEST),
            jac=True,
            method="L-BFGS-B",
            bounds=[(-FURTHEST, FURTHEST)] * start.size,
        )
        found.append((float(result.fun) if np.isfinite(result.fun) else np.inf, result.x))
    best, vector = min(found, key=lambda item: item[0])
    agreeing = sum(value < best + 0.01 for value, _ in found)
    return PointEstimate(model.from_real(jnp.asarray(vector)), -best, agreeing, climbs)
