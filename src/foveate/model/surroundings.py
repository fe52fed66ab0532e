"""Sums over cells where one Gaussian exceeds another, step by step contiguous, from saliency that is kept so.

Around every gaze the saliency is kept with the gaze's own cell in the middle and zeros outside the picture, so that any
box around the gaze is a slice; and that of the whole picture in larger cells. Rows are taken one after another, around
the gaze as many as are needed; of columns there are a few fixed numbers, each compiled. Operations run along the steps.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.kernels import Sum, sum_from_moments
from foveate.model.policies import axis_gaussian
from foveate.model.windows import middle_cell

# Half-sizes in columns, for values and for derivatives: each takes a while to compile, derivatives the most.
WIDTHS, MOMENT_WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24), (2, 4, 6, 8, 12, 16, 24)


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


def kept_blocks(
    saliency: Float[np.ndarray, "path height width"], rows: int, columns: int, steps: int
) -> Float[np.ndarray, "row column path step"]:
    """The saliency in larger cells of so many rows and columns each, for every step: means, so that a sum over larger
    cells of mean times area is that over cells."""
    count, height, width = saliency.shape
    means = saliency.reshape(count, height // rows, rows, width // columns, columns).mean(axis=(2, 4))
    return np.repeat(np.moveaxis(means, 0, -1)[..., None].astype(np.float32), steps, axis=-1)


def half_kept(around: Float[Array, "row column path step"]) -> tuple[int, int]:
    """Half-sizes of the window that is kept."""
    return around.shape[0] // 2, around.shape[1] // 2


class _Cells(NamedTuple):
    """Cells of every step, and how far they are from the gaze; all steps in one axis."""

    kept: Float[Array, "row column step"]
    columns: slice  # of the kept ones
    row_deg: Callable[[Array], Float[Array, " step"]]
    column_deg: Float[Array, "column step"]
    cell_deg: tuple[float, float]

    def row(self, index: Array) -> tuple[Float[Array, "column step"], Float[Array, " step"]]:
        """(saliency, distance) of one row; cut out here, since a slice of all rows would be copied."""
        size = 1, self.columns.stop - self.columns.start, self.kept.shape[2]
        return lax.dynamic_slice(self.kept, (index, self.columns.start, 0), size)[0], self.row_deg(index)

    def factor(self, axis: int, distance: Array, variances: Float[Array, "2"]) -> Array:
        """A Gaussian's factor on an axis."""
        return axis_gaussian(distance, variances[axis], self.cell_deg[axis])


def _around(
    function: Callable[..., list[Array]],
    several: tuple[int, ...],
    grid: Grid,
    around: Float[Array, "row column path step"],
    gaze: Float[Array, "path step 2"],
    half: Int[Array, "2"],
    above: Float[Array, "2"],
    below: Float[Array, "2"],
) -> list[Array]:
    """`function` of a box around each gaze that covers half so many rows and columns, with one of several widths."""
    (rows, columns), (height, width), kind = half_kept(around), grid.cell_deg, around.dtype
    away = (middle_cell(grid, gaze) + 0.5) * jnp.asarray(grid.cell_deg) - gaze  # of the middle cell's centre
    away = jnp.moveaxis(away, -1, 0).reshape(2, -1).astype(kind)
    kept = around.reshape(*around.shape[:2], -1)

    def of_width(some: int) -> list[Array]:
        column_deg = away[1] + jnp.asarray(width * np.arange(-some, some + 1), kind)[:, None]
        chosen = slice(columns - some, columns + some + 1)
        cells = _Cells(kept, chosen, lambda i: away[0] + (height * (i - rows)).astype(kind), column_deg, grid.cell_deg)
        found = function(cells, rows - half[0], rows + half[0] + 1, above.astype(kind), below.astype(kind))
        return [it.reshape(gaze.shape[:-1]).astype(above.dtype) for it in found]

    widths = [*(it for it in several if it < columns), columns]
    return lax.switch(jnp.searchsorted(jnp.asarray(widths), half[1]), [partial(of_width, some) for some in widths])


def _everywhere(
    function: Callable[..., list[Array]],
    grid: Grid,
    blocks: Float[Array, "row column path step"],
    gaze: Float[Array, "path step 2"],
    above: Float[Array, "2"],
    below: Float[Array, "2"],
) -> list[Array]:
    """`function` of the whole picture, in larger cells."""
    rows, columns, *steps = blocks.shape
    larger, kind = Grid(rows, columns, grid.extent), blocks.dtype
    row, column = (gaze[..., axis].reshape(-1).astype(kind) for axis in (0, 1))
    centres = jnp.asarray(larger.row_centres_deg, kind), jnp.asarray(larger.column_centres_deg, kind)
    column_deg = centres[1][:, None] - column
    kept = blocks.reshape(rows, columns, -1)
    cells = _Cells(kept, slice(0, columns), lambda i: centres[0][i] - row, column_deg, larger.cell_deg)
    found = function(cells, 0, rows, above.astype(kind), below.astype(kind))
    return [it.reshape(steps).astype(above.dtype) for it in found]


def overlap_value(grid: Grid, around: Array, gaze: Array, half: Array, wide: Array, narrow: Array) -> Array:
    """Sum of s min(wide - narrow, 0) around each gaze, (path, step)."""
    return -_around(_value, WIDTHS, grid, around, gaze, half, narrow, wide)[0]


def overlap_sums(grid: Grid, around: Array, gaze: Array, half: Array, wide: Array, narrow: Array) -> tuple[Sum, Sum]:
    """Sums of both Gaussians, with derivatives, over the cells around each gaze where narrow > wide."""
    b, row_b, column_b, a, row_a, column_a = _around(_moments, MOMENT_WIDTHS, grid, around, gaze, half, narrow, wide)
    return sum_from_moments(a, row_a, column_a, wide), sum_from_moments(b, row_b, column_b, narrow)


def larger_value(grid: Grid, blocks: Array, gaze: Array, wide: Array, narrow: Array) -> Array:
    """Sum of s max(wide - narrow, 0) over the picture in larger cells, (path, step)."""
    return _everywhere(_value, grid, blocks, gaze, wide, narrow)[0]


def larger_sums(grid: Grid, blocks: Array, gaze: Array, wide: Array, narrow: Array) -> tuple[Sum, Sum]:
    """Sums of both Gaussians, with derivatives, over the larger cells where wide > narrow."""
    a, row_a, column_a, b, row_b, column_b = _everywhere(_moments, grid, blocks, gaze, wide, narrow)
    return sum_from_moments(a, row_a, column_a, wide), sum_from_moments(b, row_b, column_b, narrow)


def _value(cells: _Cells, first: Array | int, end: Array | int, above: Array, below: Array) -> list[Array]:
    """Sum of s max(above - below, 0)."""
    columns = [cells.factor(1, cells.column_deg, it) for it in (above, below)]

    def add_row(index: Array, sums: Array) -> Array:
        saliency, row_deg = cells.row(index)
        a, b = (cells.factor(0, row_deg, it) * column for it, column in zip((above, below), columns, strict=True))
        return sums + saliency * jnp.maximum(a - b, 0)

    return [_total(lax.fori_loop(first, end, add_row, jnp.zeros_like(columns[0])))]


def _moments(cells: _Cells, first: Array | int, end: Array | int, above: Array, below: Array) -> list[Array]:
    """Sums of s n, s n d_row^2 and s n d_column^2 where above > below, of the Gaussian above, then of the one below."""
    columns = [cells.factor(1, cells.column_deg, it) for it in (above, below)]

    def add_row(index: Array, sums: tuple[Array, ...]) -> tuple[Array, ...]:
        saliency, row_deg = cells.row(index)
        a, b = (cells.factor(0, row_deg, it) for it in (above, below))
        inside = jnp.where(a * columns[0] > b * columns[1], saliency, 0)
        of_a, of_b, squared = a * inside, b * inside, jnp.square(row_deg)
        terms = of_a, squared * of_a, of_b, squared * of_b
        return tuple(total + more for total, more in zip(sums, terms, strict=True))

    a, row_a, b, row_b = lax.fori_loop(first, end, add_row, (jnp.zeros_like(columns[0]),) * 4)
    squared = jnp.square(cells.column_deg)
    return [
        *(_total(columns[0] * it) for it in (a, row_a, squared * a)),
        *(_total(columns[1] * it) for it in (b, row_b, squared * b)),
    ]


def _total(by_column: Float[Array, "column step"]) -> Float[Array, " step"]:
    """Sum over the columns, as a product for the reason of `kernels.total`."""
    return jnp.ones(len(by_column), by_column.dtype) @ by_column
