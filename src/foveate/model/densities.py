"""The map of every step: the probability of each cell being fixated next, path by path.

The same map as `Model.log_density`, without its logarithms, which cost more than all the rest.
"""

from collections.abc import Iterator
from functools import singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from foveate.model.history import Array, History, Picture
from foveate.model.likelihood import choice_log_probability, has_fast_normaliser, log_normaliser
from foveate.model.model import Model
from foveate.model.policies import REPELLED_WEIGHT, Policy, RepelledGlobal, gaussian
from foveate.model.steps import Steps
from foveate.precision import double_precision

# Maps that are held at once, in bytes.
MOST_BYTES = 32 * 2**20


def step_densities(model: Model, steps: Steps) -> Iterator[Float[np.ndarray, "step row column"]]:
    """For each path the map before every step (padding included), each summing to one; few paths are held at a time."""
    paths, length = steps.real.shape
    group = int(np.clip(MOST_BYTES // (8 * length * steps.grid.cells), 1, paths))
    for first in range(0, paths, group):
        # The last group reaches back, so that all have one size and one compilation serves them.
        start = min(first, paths - group)
        yield from _densities(model, steps.paths(slice(start, start + group)))[first - start :]


@double_precision
@eqx.filter_jit
def _densities(model: Model, steps: Steps) -> Float[Array, "path step row column"]:
    scene, choice = steps.scene(), jnp.exp(choice_log_probability(model, steps))
    # Of policies without a fast way `density` sums the weights that it has at hand.
    sums = [log_normaliser(it, steps, scene) if has_fast_normaliser(it) else jnp.zeros(steps.real.shape)
            for it in model.policies]  # fmt: skip
    normalisers = jnp.stack(sums, axis=-1)

    def of_path(path: tuple[Array, History, Array, Array]) -> Float[Array, "step row column"]:
        picture_index, history, normalisers, choice = path
        picture = steps.picture_of(picture_index)

        def of_step(history: History, normalisers: Array, choice: Array) -> Float[Array, "row column"]:
            shares = (
                choice[index] * density(policy, history, picture, normalisers[index])
                for index, policy in enumerate(model.policies)
            )
            return jnp.broadcast_to(sum(shares, jnp.zeros(())), steps.grid.shape)

        return jax.vmap(of_step)(history, normalisers, choice)

    # One path after another: its maps stay in the cache.
    return lax.map(of_path, (jnp.asarray(steps.picture), steps.history, normalisers, choice))


@singledispatch
def density(
    policy: Policy, history: History, picture: Picture, log_normaliser: Float[Array, ""]
) -> Float[Array, "*cells"]:
    """The policy's weight divided by its sum over all cells: here by its definition, if there is no faster way."""
    log_weight = jnp.broadcast_to(policy.log_weight(history, picture), picture.grid.shape)
    if has_fast_normaliser(policy):
        return jnp.exp(log_weight - log_normaliser)
    weight = jnp.exp(log_weight - jnp.max(log_weight))
    return weight / jnp.sum(weight)


@density.register
def _(
    policy: RepelledGlobal, history: History, picture: Picture, log_normaliser: Float[Array, ""]
) -> Float[Array, "*cells"]:
    wide = gaussian(picture, history.gaze, policy.xi)
    narrow = gaussian(picture, history.gaze, policy.repelling)
    # The normaliser is at least the floor, 1e-200, so its inverse is finite.
    return jnp.exp(-log_normaliser) * picture.saliency * jnp.maximum(wide - narrow, REPELLED_WEIGHT)
