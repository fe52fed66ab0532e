"""Where samplers start: draws from the prior or from a mixture, on the real line and finite."""

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float, Key, PRNGKeyArray

from foveate.data.grid import Grid
from foveate.errors import InputError
from foveate.inference.mixture import Mixture
from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.model.model import Model
from foveate.model.packing import size_above
from foveate.model.priors import PositivePrior

# Draws are cut to this range: exp(700) is near the end of double precision. The priors in use put less than 1e-60 of
# their mass outside, and what lies there has no finite likelihood.
FURTHEST_DRAW = 700.0


def check_count(name: str, value: int, least: int) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r}: give a whole number, {least} or more.")


@eqx.filter_jit
def _prior_draws(model: Model, keys: Key[Array, " draw"]) -> Float[Array, "draw number"]:
    return jax.vmap(lambda key: model.draw_from_prior(key).to_real())(keys)


def prior_draws(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "draw number"]:
    """Independent draws from the prior, cut to where double precision ends."""
    draws = np.asarray(_prior_draws(target.model, jax.random.split(key, count)))
    return np.clip(draws, -FURTHEST_DRAW, FURTHEST_DRAW)


def dispersed_starts(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "draw number"]:
    """Draws from the prior with variances between those of a cell and of the picture, where data can tell of them."""
    least, most = _ranges(target.model, target.steps.grid)
    return np.clip(prior_draws(target, key, count), least, most)


def _ranges(model: Model, grid: Grid) -> tuple[Float[np.ndarray, " number"], Float[np.ndarray, " number"]]:
    cell = 2 * np.log(grid.cell_deg)
    whole = 2 * np.log([grid.extent.height_deg, grid.extent.width_deg])
    least, most = [], []
    for name, value in model.parameters.items():
        if not isinstance(model.priors[name], PositivePrior):
            bounds = np.broadcast_to([[-FURTHEST_DRAW], [FURTHEST_DRAW]], (2, np.size(value)))
        elif np.ndim(value):
            bounds = np.stack([cell, whole])
        else:
            bounds = np.array([[cell.min()], [whole.max()]])
        least.append(bounds[0])
        most.append(bounds[1])
    return np.concatenate(least), np.concatenate(most)


def spread_over(mixture: Mixture, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "draw number"]:
    """One draw from each of the components in turn, those with the largest share first."""
    rng = generator(key)
    order = np.argsort(-np.asarray(mixture.share), kind="stable")
    parts = [order[index % len(order)] for index in range(count)]
    scale, centre, freedom = mixture.scale, np.asarray(mixture.centre), np.asarray(mixture.freedom)
    alone = (Mixture.of(np.ones(1), centre[[part]], scale[[part]], freedom[[part]]) for part in parts)
    return np.concatenate([one.sample(1, rng) for one in alone])


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """NumPy's generator seeded with a key: for the parts that run outside compiled functions."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())


def padded(mixture: Mixture) -> Mixture:
    """The same mixture with components of no share, up to a common number: one compilation serves several."""
    missing = size_above(len(mixture.share)) - len(mixture.share)
    share, *rest = (np.asarray(leaf) for leaf in jax.tree.leaves(mixture))
    return Mixture(np.append(share, np.zeros(missing)), *(np.concatenate([r, r[:1].repeat(missing, 0)]) for r in rest))
