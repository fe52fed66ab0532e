"""Sums over all cells for many parameter sets side by side, as a GPU likes them: no branches, nothing kept.

A processor with a few cores is best off visiting as few cells as it can, so `repulsion.py` and `tables.py` look for
the shortest way for each parameter set. On a GPU the sets of a batch would all take the longest of their ways, and
cells are cheap: here every sum visits every cell, and a compiler that fuses it holds none of them.
"""

import jax.numpy as jnp
from jaxtyping import Float

from foveate.model.history import Array
from foveate.model.kernels import Sum, sum_from_moments
from foveate.model.policies import REPELLED_WEIGHT, nearest_centre, squared_beyond
from foveate.model.scene import Scene


def log_salient_sum(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Log of the sum over all cells of s(z) n(z; gaze, variances), relative to n at the nearest centre."""
    grid, gaze, near = scene.grid, scene.gaze, nearest_centre(scene.grid, scene.gaze)
    row, column = (
        squared_beyond(centres, near[axis][..., None], gaze[..., axis, None])
        for axis, centres in enumerate((grid.row_centres_deg, grid.column_centres_deg))
    )
    rows, columns = jnp.exp((-0.5 / variances[0]) * row), jnp.exp((-0.5 / variances[1]) * column)
    return jnp.log(jnp.sum((rows @ scene.saliency) * columns, axis=-1))


def repelled_value(scene: Scene, wide: Float[Array, "2"], narrow: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) max(n(z; gaze, wide) - n(z; gaze, narrow), floor)."""
    a, b = _gaussians(scene, wide, narrow)
    return jnp.sum(scene.saliency[:, None] * jnp.maximum(a - b, REPELLED_WEIGHT), axis=(-2, -1))


def repelled_sums(scene: Scene, wide: Array, narrow: Array) -> tuple[Sum, Sum, Float[Array, "path step"]]:
    """Sums of both Gaussians over the cells that are not forbidden, and the saliency of those that are."""
    a, b = _gaussians(scene, wide, narrow)
    saliency, grid = scene.saliency[:, None], scene.grid
    allowed = jnp.where(a - b > REPELLED_WEIGHT, saliency, 0.0)
    row = jnp.square(grid.row_centres_deg[:, None] - scene.gaze[..., 0, None, None])
    column = jnp.square(grid.column_centres_deg - scene.gaze[..., 1, None, None])

    def sums(gaussian: Array, variances: Array) -> Sum:
        left = allowed * gaussian
        zeroth, by_row, by_column = (jnp.sum(it, axis=(-2, -1)) for it in (left, row * left, column * left))
        return sum_from_moments(zeroth, by_row, by_column, variances)

    return sums(a, wide), sums(b, narrow), jnp.sum(saliency - allowed, axis=(-2, -1))


def _gaussians(scene: Scene, *each: Float[Array, "2"]) -> list[Float[Array, "path step row column"]]:
    """n(z; gaze, variances) in every cell, for each pair of variances: never held where the compiler fuses it."""
    factors = (scene.factors(variances) for variances in each)
    return [it.rows[..., :, None] * it.columns[..., None, :] for it in factors]
