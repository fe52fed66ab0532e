"""A point estimate: the parameters at the highest posterior density, by many short climbs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.climb import climb_against
from foveate.model.history import Array
from foveate.model.likelihood import check_model_and_steps, joint_log_density
from foveate.model.model import Model
from foveate.model.steps import Steps
from foveate.precision import check_key, double_precision


class PointEstimate(eqx.Module):
    """The best of several climbs. Where few of them agree, there are many local tops: try more climbs."""

    model: Model
    log_posterior_nats: float  # log-likelihood plus log-prior density of the parameters themselves
    climbs_agreeing: int  # how many climbs ended within 0.01 nats of the best
    climbs: int


@eqx.filter_jit
def _downhill(
    model: Model, steps: Steps, vector: Float[Array, " number"]
) -> tuple[Float[Array, ""], Float[Array, " number"]]:
    """The negative of what is climbed, with its gradient; without a Jacobian, as the density is the parameters' own."""

    def negative(vector: Float[Array, " number"]) -> Float[Array, ""]:
        at = model.from_real(vector)
        return -(jnp.sum(jnp.where(steps.real, joint_log_density(at, steps), 0.0)) + at.log_prior())

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
        value = jnp.sum(jnp.where(steps.real, joint_log_density(model, steps), 0.0))
        return PointEstimate(model, float(value), 1, 1)
    draws = [np.asarray(model.draw_from_prior(k).to_real()) for k in jax.random.split(key, climbs)[1:]]

    def downhill(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _downhill(model, steps, vector)
        return float(value), np.asarray(slope)

    tops = [climb_against(downhill, first) for first in (start, *draws)]
    vector, best, _ = max(tops, key=lambda top: top[1])
    agreeing = sum(value > best - 0.01 for _, value, _ in tops)
    return PointEstimate(model.from_real(jnp.asarray(vector)), best, agreeing, climbs)
