"""The repelled sum D = sum_z s(z) max(a(z) - b(z), 0) of a wide Gaussian a and a narrow one b around the gaze.

    D = sum s a - sum s b + sum_R s (b - a),      R = {b > a}

The first two are sums over the whole picture that `kernels.py` does fast. If b is narrower than a on both axes, R is
an ellipse around the gaze, so the third is a sum over a small window. The window is exact only while it covers the
ellipse, and the difference only while it does not cancel: both are checked, and where either fails the sum runs
over the whole grid. R moves with the variances, but on its edge a = b, so that adds nothing to the derivative.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_batching import sequential_vmap
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.kernels import (
    CANCELLATION,
    Factors,
    Moments,
    Scene,
    axis_terms,
    column_distances,
    derivative,
    moments_of,
    peak,
    row_distances,
    salient_moments,
    salient_value,
    total,
    value_of,
)
from foveate.model.policies import COVARIANCE_RATIO, REPELLED_WEIGHT, axis_gaussian

# Windows tried, as shares of the grid's sides. A larger ellipse takes the whole grid.
WINDOWS = (1 / 8, 3 / 16, 1 / 4, 3 / 8, 1 / 2)


# Up to this many cells a side the narrow sum is done on the cells themselves: no reduction would serve it.
DIRECT_CELLS = 80


def repelled_sum(
    grid: Grid, scene: Scene, xi: Float[Array, "2"], epsilon: Float[Array, "2"]
) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) max(n(z; gaze, xi) - n(z; gaze, epsilon / 4), floor), each n times the cell's area."""
    # One by one in a batch: which window serves depends on the variances (see `kernels.salient_sum`).
    plain = sequential_vmap(partial(_value, grid))
    moments = sequential_vmap(partial(_moments, grid))

    @jax.custom_jvp
    def differentiable(scene, xi, epsilon):
        return plain(scene, xi, epsilon)

    @differentiable.defjvp
    def _(primals, tangents):
        (scene, xi, epsilon), (_, xi_direction, epsilon_direction) = primals, tangents
        attracting, repelling, forbidden = moments(scene, xi, epsilon)
        value = attracting.zeroth - repelling.zeroth + REPELLED_WEIGHT * forbidden
        narrow, narrow_direction = epsilon / COVARIANCE_RATIO, epsilon_direction / COVARIANCE_RATIO
        change = derivative(attracting, xi, xi_direction) - derivative(repelling, narrow, narrow_direction)
        return value, change

    return differentiable(scene, xi, epsilon)


def _value(grid: Grid, scene: Scene, xi: Array, epsilon: Array) -> Float[Array, "path step"]:
    narrow, narrow_variances = _narrow(grid, scene, epsilon), epsilon / COVARIANCE_RATIO
    attracting = salient_value(grid, scene, xi)
    if max(grid.shape) <= DIRECT_CELLS:
        repelling = value_of(narrow, scene.saliency)
    else:
        repelling = salient_value(grid, scene, narrow_variances)
    branches = [partial(_overlap_value, grid, half) for half in _half_windows(grid)]
    no_window = lambda scene, xi, narrow: jnp.full_like(attracting, -jnp.inf)  # noqa: E731
    overlap = lax.switch(_window(grid, xi, narrow_variances), [*branches, no_window], scene, xi, narrow)
    fast = attracting - repelling + overlap
    exact = jnp.all(fast > CANCELLATION * jnp.maximum(peak(grid, xi), repelling))
    return lax.cond(exact, lambda: fast, lambda: _by_path(_whole_value, grid, scene, xi, narrow))


def _moments(grid: Grid, scene: Scene, xi: Array, epsilon: Array) -> tuple[Moments, Moments, Float[Array, "path step"]]:
    """Moments of both Gaussians over the cells that are not forbidden, and the saliency of those that are."""
    narrow, narrow_variances = _narrow(grid, scene, epsilon), epsilon / COVARIANCE_RATIO
    attracting = salient_moments(grid, scene, xi)
    if max(grid.shape) <= DIRECT_CELLS:
        repelling = moments_of(narrow, scene.saliency)
    else:
        repelling = salient_moments(grid, scene, narrow_variances)
    branches = [partial(_overlap_moments, grid, half) for half in _half_windows(grid)]
    never = Moments(*[jnp.full_like(attracting.zeroth, jnp.inf)] * 3)
    no_window = lambda scene, xi, narrow: (never, never)  # noqa: E731
    inside = lax.switch(_window(grid, xi, narrow_variances), [*branches, no_window], scene, xi, narrow)
    outside = attracting - inside[0], repelling - inside[1]
    difference = outside[0].zeroth - outside[1].zeroth
    exact = jnp.all(difference > CANCELLATION * jnp.maximum(peak(grid, xi), repelling.zeroth))
    return lax.cond(
        exact,
        lambda: (*outside, jnp.zeros_like(difference)),
        lambda: _by_path(_whole_moments, grid, scene, xi, narrow),
    )


def _narrow(grid: Grid, scene: Scene, epsilon: Array) -> Factors:
    """n(z; gaze, epsilon / 4) on the grid's rows and columns: the fourth power of what the local policy sums up."""
    distances = row_distances(grid, scene.gaze), column_distances(grid, scene.gaze)

    def factor(axis: int) -> Array:
        terms, nearest = axis_terms(distances[axis], epsilon[axis])
        variance = epsilon[axis] / COVARIANCE_RATIO
        square = terms * terms
        return (
            grid.cell_deg[axis]
            / jnp.sqrt(2 * jnp.pi * variance)
            * jnp.exp(-0.5 / variance * nearest)
            * (square * square)
        )

    return Factors(*distances, factor(0), factor(1))


# --- the window around the gaze ------------------------------------------------------------------------------------


def _half_windows(grid: Grid) -> list[tuple[int, int]]:
    """Half-sizes (rows, columns) of the windows, smallest first."""
    return [(int(grid.rows * share / 2), int(grid.columns * share / 2)) for share in WINDOWS]


def _window(grid: Grid, wide: Array, narrow: Array) -> Int[Array, ""]:
    """Index of the smallest window that covers the ellipse {narrow > wide} wherever the gaze is; past the last: none."""
    steepness = 0.5 * (1 / narrow - 1 / wide)
    height = 0.5 * jnp.log(jnp.prod(wide / narrow))
    bounded = (steepness > 0).all()
    reach = jnp.sqrt(jnp.maximum(height, 0) / jnp.where(bounded, steepness, 1.0))
    # The nearest centre outside a window of half-size k lies at least k + 1/2 cells from a gaze in its middle cell.
    covered = (jnp.asarray(_half_windows(grid)) + 0.5) * jnp.asarray(grid.cell_deg)
    return jnp.sum(~(jnp.all(reach < covered, axis=1) & bounded))


class _Cells(NamedTuple):
    """Some cells of each step's picture with both Gaussians, as factors on rows and columns."""

    saliency: Float[Array, "*batch row column"]
    by_row: Float[Array, "*batch row"]
    by_column: Float[Array, "*batch column"]
    wide_rows: Float[Array, "*batch row"]
    wide_columns: Float[Array, "*batch column"]
    narrow_rows: Float[Array, "*batch row"]
    narrow_columns: Float[Array, "*batch column"]

    @property
    def wide(self) -> Float[Array, "*batch row column"]:
        return self.wide_rows[..., :, None] * self.wide_columns[..., None, :]

    @property
    def narrow(self) -> Float[Array, "*batch row column"]:
        return self.narrow_rows[..., :, None] * self.narrow_columns[..., None, :]


def _in_window(grid: Grid, half: tuple[int, int], scene: Scene, xi: Array, narrow: Factors) -> _Cells:
    """The cells of a window around each gaze, moved inward at the picture's edge."""
    size = (min(2 * half[0] + 1, grid.rows), min(2 * half[1] + 1, grid.columns))
    cell = jnp.floor(scene.gaze / jnp.asarray(grid.cell_deg)).astype(int)
    corner = jnp.clip(cell - jnp.asarray(half), 0, jnp.asarray(grid.shape) - jnp.asarray(size))
    cut = jax.vmap(jax.vmap(lambda map_, at: lax.dynamic_slice(map_, at, size), (None, 0)))
    cut_rows, cut_columns = (
        jax.vmap(jax.vmap(lambda values, at, length=length: lax.dynamic_slice(values, (at,), (length,))))
        for length in size
    )
    row, column = corner[..., 0], corner[..., 1]
    height, width = grid.cell_deg
    by_row, by_column = cut_rows(narrow.by_row, row), cut_columns(narrow.by_column, column)
    return _Cells(
        cut(scene.saliency, corner),
        by_row,
        by_column,
        axis_gaussian(by_row, xi[0], height),
        axis_gaussian(by_column, xi[1], width),
        cut_rows(narrow.rows, row),
        cut_columns(narrow.columns, column),
    )


def _overlap_value(
    grid: Grid, half: tuple[int, int], scene: Scene, xi: Array, narrow: Factors
) -> Float[Array, "path step"]:
    """Sum over {narrow > wide} of s (narrow - wide)."""
    cells = _in_window(grid, half, scene, xi, narrow)
    return jnp.sum(cells.saliency * jnp.maximum(cells.narrow - cells.wide, 0), axis=(-2, -1))


def _overlap_moments(
    grid: Grid, half: tuple[int, int], scene: Scene, xi: Array, narrow: Factors
) -> tuple[Moments, Moments]:
    """Moments of both Gaussians over {narrow > wide}."""
    cells = _in_window(grid, half, scene, xi, narrow)
    return _moments_over(cells, jnp.where(cells.narrow > cells.wide, cells.saliency, 0.0))


def _moments_over(cells: _Cells, saliency: Float[Array, "*batch row column"]) -> tuple[Moments, Moments]:
    """Moments of both Gaussians with the saliency of the cells that do not count set to zero."""
    squared = cells.by_column**2
    columns = [cells.wide_columns, cells.wide_columns * squared, cells.narrow_columns, cells.narrow_columns * squared]
    sums = saliency @ jnp.stack(columns, axis=-1)

    def moments(rows: Array, plain: Array, weighted: Array) -> Moments:
        return Moments(
            total(rows * plain),
            total(rows * cells.by_row**2 * plain),
            total(rows * weighted),
        )

    return moments(cells.wide_rows, sums[..., 0], sums[..., 1]), moments(cells.narrow_rows, sums[..., 2], sums[..., 3])


# --- the whole grid ------------------------------------------------------------------------------------------------


def _by_path(function: Callable[[_Cells], Any], grid: Grid, scene: Scene, xi: Array, narrow: Factors) -> Any:
    """`function` of all cells, one path after another, so that no more than (step, row, column) is held."""
    height, width = grid.cell_deg

    def one(path: tuple[Array, Factors]):
        saliency, (by_row, by_column, rows, columns) = path
        wide = axis_gaussian(by_row, xi[0], height), axis_gaussian(by_column, xi[1], width)
        return function(_Cells(saliency, by_row, by_column, *wide, rows, columns))

    return lax.map(one, (scene.saliency, narrow))


def _whole_value(cells: _Cells) -> Float[Array, " step"]:
    return jnp.sum(cells.saliency * jnp.maximum(cells.wide - cells.narrow, REPELLED_WEIGHT), axis=(-2, -1))


def _whole_moments(cells: _Cells) -> tuple[Moments, Moments, Float[Array, " step"]]:
    allowed = jnp.where(cells.wide - cells.narrow > REPELLED_WEIGHT, cells.saliency, 0.0)
    return *_moments_over(cells, allowed), jnp.sum(cells.saliency) - jnp.sum(allowed, axis=(-2, -1))
