"""Draws to begin with, from the prior or from a mixture, and what samplers share around them."""

from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Key, PRNGKeyArray

from foveate.compiled import compiled_quickly
from foveate.errors import InputError
from foveate.inference.mixture import Mixture
from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.model.model import Model
from foveate.model.packing import size_above

# Draws are cut to this range: exp(700) is near the end of double precision. The priors in use put less than 1e-60 of
# their mass outside, and what lies there has no finite likelihood.
FURTHEST_DRAW = 700.0


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} = {value!r}: give a whole number, {least} or more.")


@compiled_quickly
def _prior_draws(model: Model, keys: Key[Array, " draw"]) -> Float[Array, "draw number"]:
    return jax.vmap(lambda key: model.draw_from_prior(key).to_real())(keys)


def prior_draws(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "draw number"]:
    """Independent draws from the prior, on the real line, cut to where double precision ends."""
    draws = np.asarray(_prior_draws(target.model, jax.random.split(key, count)))
    return np.clip(draws, -FURTHEST_DRAW, FURTHEST_DRAW)


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
