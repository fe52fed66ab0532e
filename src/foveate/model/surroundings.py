"""Sums over the cells around each gaze where a narrow Gaussian exceeds a wide one, from cells that are kept.

Around every gaze the saliency is kept with the gaze's own cell in the middle and zeros outside the picture, so that any
box around the gaze is a slice. Rows are taken one after another, as many as the ellipse has; of columns there are a few
fixed numbers, each compiled. The steps come last and operations run along them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.kernels import Sum, sum_from_moments
from foveate.model.policies import axis_gaussian
from foveate.model.windows import middle_cell

WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24)  # half-sizes in columns


def kept_around(
    grid: Grid,
    saliency: Float[np.ndarray, "path height width"],
    gaze: Float[np.ndarray, "path step 2"],
    half: tuple[int, int],
) -> Float[np.ndarray, "row column path step"]:
    """The saliency in a window around each gaze, zero outside the picture."""
    rows, columns = half
    cell = np.asarray(middle_cell(grid, gaze))
    row = cell[..., 0] + np.arange(2 * rows + 1)[:, None, None, None]
    column = cell[..., 1] + np.arange(2 * columns + 1)[:, None, None]
    framed = np.pad(saliency, ((0, 0), (rows, rows), (columns, columns)))
    return framed[np.arange(len(gaze))[:, None], row, column]


def half_kept(around: Float[Array, "row column path step"]) -> tuple[int, int]:
    """Half-sizes of the window that is kept."""
    return around.shape[0] // 2, around.shape[1] // 2


class _Box(NamedTuple):
    """Some columns around each gaze, and the rows that are kept, with distances from the gaze; steps in one axis."""

    kept: Float[Array, "row column step"]
    half: int  # columns on either side of the middle one
    away: Float[Array, "2 step"]  # of the middle cell's centre from the gaze, in degrees
    cell_deg: tuple[float, float]

    @property
    def column_deg(self) -> Float[Array, "column step"]:
        return (
            self.away[1]
            + jnp.asarray(self.cell_deg[1] * np.arange(-self.half, self.half + 1), self.away.dtype)[:, None]
        )

    def columns(self, variances: Float[Array, "2"]) -> Float[Array, "column step"]:
        """A Gaussian's factor on the columns."""
        return axis_gaussian(self.column_deg, variances[1], self.cell_deg[1])

    def row(self, index: Array) -> tuple[Float[Array, "column step"], Float[Array, " step"]]:
        """(saliency, distance) of one row; cut out here, since a slice of all rows would be copied."""
        rows, columns, steps = self.kept.shape
        corner = index, columns // 2 - self.half, 0
        cells = lax.dynamic_slice(self.kept, corner, (1, 2 * self.half + 1, steps))[0]
        return cells, self.away[0] + ((index - rows // 2) * self.cell_deg[0]).astype(self.away.dtype)


def _over_box(
    function: Callable[[_Box, Array, Array, Array, Array], Any],
    grid: Grid,
    around: Float[Array, "row column path step"],
    gaze: Float[Array, "path step 2"],
    half: Int[Array, "2"],
    wide: Float[Array, "2"],
    narrow: Float[Array, "2"],
) -> Any:
    """`function(box, first row, row behind the last, wide, narrow)` of a box around each gaze that covers so much."""
    kind, (rows, columns) = around.dtype, half_kept(around)
    away = (middle_cell(grid, gaze) + 0.5) * jnp.asarray(grid.cell_deg) - gaze
    away = jnp.moveaxis(away, -1, 0).reshape(2, -1).astype(kind)
    kept = around.reshape(*around.shape[:2], -1)

    def of_width(some: int) -> Any:
        box = _Box(kept, some, away, grid.cell_deg)
        found = function(box, rows - half[0], rows + half[0] + 1, wide.astype(kind), narrow.astype(kind))
        return [it.reshape(gaze.shape[:-1]).astype(wide.dtype) for it in found]

    widths = [*(it for it in WIDTHS if it < columns), columns]
    branches = [partial(of_width, some) for some in widths]
    return lax.switch(jnp.searchsorted(jnp.asarray(widths), half[1]), branches)


def overlap_value(grid: Grid, around: Array, gaze: Array, half: Array, wide: Array, narrow: Array) -> Array:
    """Sum of s min(wide - narrow, 0) around each gaze, (path, step)."""
    return _over_box(_value, grid, around, gaze, half, wide, narrow)[0]


def overlap_sums(grid: Grid, around: Array, gaze: Array, half: Array, wide: Array, narrow: Array) -> tuple[Sum, Sum]:
    """Sums of both Gaussians, with derivatives, over the cells around each gaze where narrow > wide."""
    found = _over_box(_moments, grid, around, gaze, half, wide, narrow)
    return sum_from_moments(*found[:3], wide), sum_from_moments(*found[3:], narrow)


def _value(box: _Box, first: Array, end: Array, wide: Array, narrow: Array) -> list[Array]:
    wide_columns, narrow_columns = box.columns(wide), box.columns(narrow)

    def add_row(index: Array, sums: Array) -> Array:
        cells, row_deg = box.row(index)
        of_wide, of_narrow = (axis_gaussian(row_deg, it[0], box.cell_deg[0]) for it in (wide, narrow))
        return sums + cells * jnp.minimum(of_wide * wide_columns - of_narrow * narrow_columns, 0)

    return [_total(lax.fori_loop(first, end, add_row, jnp.zeros_like(wide_columns)))]


def _moments(box: _Box, first: Array, end: Array, wide: Array, narrow: Array) -> list[Array]:
    """Sums of s n, s n d_row^2 and s n d_column^2 of the wide Gaussian, then of the narrow one."""
    wide_columns, narrow_columns = box.columns(wide), box.columns(narrow)

    def add_row(index: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        cells, row_deg = box.row(index)
        of_wide, of_narrow = (axis_gaussian(row_deg, it[0], box.cell_deg[0]) for it in (wide, narrow))
        inside = jnp.where(of_narrow * narrow_columns > of_wide * wide_columns, cells, 0)
        a, b, squared = of_wide * inside, of_narrow * inside, jnp.square(row_deg)
        return tuple(sum_ + more for sum_, more in zip(sums, (a, squared * a, b, squared * b), strict=True))

    a, row_a, b, row_b = lax.fori_loop(first, end, add_row, (jnp.zeros_like(wide_columns),) * 4)
    squared = jnp.square(box.column_deg)
    return [
        *(_total(it) for it in (wide_columns * a, wide_columns * row_a, wide_columns * squared * a)),
        *(_total(it) for it in (narrow_columns * b, narrow_columns * row_b, narrow_columns * squared * b)),
    ]


def _total(by_column: Float[Array, "column step"]) -> Float[Array, " step"]:
    """Sum over the columns, as a product for the reason of `kernels.total`."""
    return jnp.ones(len(by_column), by_column.dtype) @ by_column
