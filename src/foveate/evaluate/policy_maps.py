"""The map of one policy before every step of a row, for all steps at once: where its parts have factors, from those.

`Model.log_density` defines the same map for one step; a test holds scores from here to it.
"""

from functools import partial, singledispatch

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from foveate.model.densities import density
from foveate.model.history import Array, History, Picture
from foveate.model.kernels import total
from foveate.model.likelihood import has_fast_normaliser, log_normaliser
from foveate.model.policies import Global, Local, Policy, nearest_centre, squared_beyond
from foveate.model.scene import Scene
from foveate.model.steps import Steps

# Where the logarithm of a sum of weights lies below this (gaze far from all that is salient), weights come near the
# smallest numbers there are, and the map is worked out in logarithms.
SMALLEST_LOG_SUM = -300.0


def normalised(
    policy: Policy, row: Steps, scene: Scene, history: History, picture: Picture
) -> tuple[Float[Array, " step"], Float[Array, "step row column"]]:
    """The logarithm of the sum of the policy's weights, and its map, before every step of a row."""
    if has_fast_normaliser(policy):
        log_sums = log_normaliser(policy, row, scene)[0]
        return log_sums, _densities(policy, history, picture, log_sums)
    # Nobody has a faster way to this policy's sum: it is taken from the map, so that weights are worked out once.
    weights = jax.vmap(policy.log_weight, in_axes=(0, None))(history, picture)
    weights = jnp.broadcast_to(weights, (row.real.shape[1], *row.grid.shape))
    largest = weights.max(axis=1).max(axis=1)
    relative = jnp.exp(weights - largest[:, None, None])
    sums = total(total(relative))
    return jnp.log(sums) + largest, relative / sums[:, None, None]


@singledispatch
def _densities(
    policy: Policy, history: History, picture: Picture, log_normalisers: Float[Array, " step"]
) -> Float[Array, "step row column"]:
    """The policy's map before every step of a row; where a Gaussian has factors, without an exponential per cell."""
    of_step = partial(density, policy)
    maps = jax.vmap(of_step, in_axes=(0, None, 0))(history, picture, log_normalisers)
    return jnp.broadcast_to(maps, (len(log_normalisers), *picture.grid.shape))


@_densities.register
def _(policy: Local, history: History, picture: Picture, log_normalisers: Array) -> Float[Array, "step row column"]:
    # The nearest cell's weight is one, so the normaliser is at least that, and its inverse finite.
    return _gaussians(history, picture, policy.variances, jnp.exp(-log_normalisers))


@_densities.register
def _(policy: Global, history: History, picture: Picture, log_normalisers: Array) -> Float[Array, "step row column"]:
    return lax.cond(
        jnp.all(log_normalisers > SMALLEST_LOG_SUM),
        lambda: _gaussians(history, picture, policy.variances, jnp.exp(-log_normalisers)) * picture.saliency,
        lambda: _densities.dispatch(Policy)(policy, history, picture, log_normalisers),
    )


def _gaussians(
    history: History, picture: Picture, variances: Float[Array, "2"], scale: Float[Array, " step"]
) -> Float[Array, "step row column"]:
    """`policies.log_gaussian` around each gaze without the logarithm, times `scale`."""

    def of_step(history: History, scale: Array) -> Float[Array, "row column"]:
        near = nearest_centre(picture.grid, history.gaze)
        rows = jnp.exp((-0.5 / variances[0]) * squared_beyond(picture.y_deg, near[0], history.gaze[0]))
        columns = jnp.exp((-0.5 / variances[1]) * squared_beyond(picture.x_deg, near[1], history.gaze[1]))
        return (scale * rows) * columns

    return jax.vmap(of_step)(history, scale)
