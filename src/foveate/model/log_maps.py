"""Logarithms of maps, as sums of modulated policies (`modulated_sums.py`) read them: worked out once for all the
evaluations of a fit, which would else spend a quarter of their time on them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from foveate.data.grid import Grid
from foveate.model.factors import log_relative_saliency
from foveate.model.history import Array, Picture

# Log saliency of an empty cell: no real one is as small, and zero times it is a number.
EMPTY = -1e30


class LogMaps(NamedTuple):
    """All pictures, on the grid of the sums."""

    log_map: Float[Array, "picture row column"]  # relative to its largest cell; `EMPTY` where the map is empty
    log_relative: Float[Array, "picture row column"]  # what a drift multiplies
    largest: Float[Array, " picture"]  # log of the largest cell

    @classmethod
    def of(cls, saliency: Float[Array, "picture row column"], grid: Grid, summed: Grid, digits: str) -> "LogMaps":
        """Of maps on `grid`, for sums over the cells of `summed`, each of which is made of one or more of them."""
        saliency = jnp.asarray(saliency, jnp.float64)
        if summed != grid:
            several = grid.rows // summed.rows, grid.columns // summed.columns
            cut = saliency.reshape(len(saliency), summed.rows, several[0], summed.columns, several[1])
            saliency = cut.mean(axis=(2, 4))
        positive = saliency > 0
        log_map = jnp.where(positive, jnp.log(jnp.where(positive, saliency, 1.0)), -jnp.inf)
        largest = jnp.max(log_map, axis=(1, 2))
        share = saliency * (grid.cells / summed.cells)  # of a cell of the grid that is summed over
        return cls(
            jnp.where(positive, log_map - largest[:, None, None], EMPTY).astype(digits),
            jax.vmap(lambda it: log_relative_saliency(Picture.whole(summed, it)))(share).astype(digits),
            largest,
        )
