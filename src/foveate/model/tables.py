"""Sums over cells as polynomials in the variances, for many evaluations on the same steps.

For one step, `G(v) = sum_z s(z) n(z; gaze, v)` is a smooth function of two numbers, the logarithms of the variances.
So it is worked out once at Chebyshev nodes and kept as a polynomial; then a sum over thousands of cells, with its
derivatives, is a product of a few hundred numbers, and its cost does not depend on the grid. The range of variances
is cut into panels of a factor of four on each axis; a polynomial of total degree 18 on a pair of panels is good to
1e-13 of the Gaussian's peak times the largest saliency. Outside the panels (tiny or huge variances, or very unequal
ones) the sum is done over the cells.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.kernels import Sum, nearest_squared
from foveate.model.surroundings import kept_around
from foveate.model.windows import KEPT, half_windows
from foveate.precision import double_precision

DEGREE = 18
NODES = DEGREE + 2
PANEL = np.log(4.0)  # width of a panel in the logarithm of the variance
MARGIN = 1.02  # panels reach a little further than they are used, so that derivatives stay away from their ends
MOST_UNEQUAL = 2  # pairs of panels are kept where row and column differ by no more panels than this

# Standard deviations that the panels cover: from this share of the extent, or this many cells, to half the extent.
SMALLEST_SHARE, SMALLEST_CELLS, LARGEST_SHARE = 1 / 360, 0.2, 0.5

ROW_DEGREE, COLUMN_DEGREE = (
    degrees[np.add.outer(np.arange(DEGREE + 1), np.arange(DEGREE + 1)) <= DEGREE]
    for degrees in np.indices((DEGREE + 1, DEGREE + 1))
)


class Table(NamedTuple):
    """Chebyshev coefficients: of the salient sum for each pair of panels, of the plain sum for each axis' panels."""

    salient: Sequence[Float[Array, "coefficient path step"]]
    rows: Sequence[Float[Array, "degree path step"]]
    columns: Sequence[Float[Array, "degree path step"]]
    around: Float[Array, "row column path step"]  # saliency around each gaze: see `surroundings.py`
    largest: Float[Array, "1 path 1"]  # saliency of each path's most salient cell: the scale of the salient sum's error

    def paths(self, some: slice) -> "Table":
        """The table of some of the paths."""
        salient, rows, columns = ([it[:, some] for it in part] for part in (self.salient, self.rows, self.columns))
        return Table(salient, rows, columns, self.around[:, :, some], self.largest[:, some])


def _first(grid: Grid, axis: int) -> float:
    """Where the panels of an axis start: the logarithm of a variance in deg^2."""
    extent = (grid.extent.height_deg, grid.extent.width_deg)[axis]
    smallest = max(SMALLEST_SHARE * extent, SMALLEST_CELLS * grid.cell_deg[axis])
    return 2 * float(np.log(smallest))


def _panels(grid: Grid) -> int:
    """How many panels each axis has."""
    largest = 2 * np.log(LARGEST_SHARE * np.array([grid.extent.height_deg, grid.extent.width_deg]))
    return max(1, int(np.ceil(min((largest - [_first(grid, 0), _first(grid, 1)]) / PANEL))))


def _pairs(grid: Grid) -> list[tuple[int, int]]:
    """The pairs (row panel, column panel) that are tabulated."""
    panels = range(_panels(grid))
    return [(row, column) for row in panels for column in panels if abs(row - column) <= MOST_UNEQUAL]


@double_precision
def build(grid: Grid, saliency: Float[np.ndarray, "path row column"], gaze: Float[np.ndarray, "path step 2"]) -> Table:
    """The table of these steps; one path at a time, so that little more than the result is held."""
    panels, pairs = _panels(grid), _pairs(grid)
    angle = (2 * np.arange(NODES) + 1) * np.pi / (2 * NODES)
    to_coefficients = np.cos(np.outer(np.arange(DEGREE + 1), angle)) * 2 / NODES
    to_coefficients[0] /= 2
    inside = 0.5 * PANEL * (1 + MARGIN * np.cos(angle))
    variances = [np.exp(_first(grid, axis) + PANEL * np.arange(panels)[:, None] + inside).ravel() for axis in (0, 1)]
    salient = [np.empty((len(ROW_DEGREE), *gaze.shape[:2])) for _ in pairs]
    plain = [[np.empty((DEGREE + 1, *gaze.shape[:2])) for _ in range(panels)] for _ in (0, 1)]
    centres = grid.row_centres_deg, grid.column_centres_deg
    for path in range(len(gaze)):
        factor = []
        for axis in (0, 1):
            distances = centres[axis] - gaze[path, :, axis, None]
            v = variances[axis][:, None]
            scale = grid.cell_deg[axis] / np.sqrt(2 * np.pi * v)
            factor.append(scale * np.exp(-0.5 * distances[:, None, :] ** 2 / v))  # (step, node, cell)
            sums = factor[axis].sum(axis=-1).reshape(-1, panels, NODES)
            for panel in range(panels):
                plain[axis][panel][:, path] = to_coefficients @ sums[:, panel].T
        values = np.asarray(_products(factor[0], saliency[path], factor[1]))  # (step, row node, column node)
        values = values.reshape(-1, panels, NODES, panels, NODES)
        for table, (row, column) in zip(salient, pairs, strict=True):
            coefficients = to_coefficients @ values[:, row, :, column] @ to_coefficients.T
            table[:, path] = coefficients[:, ROW_DEGREE, COLUMN_DEGREE].T
    around = kept_around(grid, saliency, gaze, half_windows(grid)[KEPT])
    return Table(salient, plain[0], plain[1], around, saliency.max(axis=(1, 2))[None, :, None])


@jax.jit
def _products(rows: Array, saliency: Array, columns: Array) -> Array:
    """rows @ saliency @ columns^T for every step. Not by NumPy, whose many threads get into each other's way."""
    return (rows @ saliency) @ jnp.swapaxes(columns, 1, 2)


# --- reading the table ---------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a variance lies on its axis' panels, and the Chebyshev polynomials there with their derivatives in it."""

    panel: Int[Array, ""]
    polynomials: Float[Array, " degree"]
    slopes: Float[Array, " degree"]


def _place(grid: Grid, axis: int, variance: Float[Array, ""]) -> _Place:
    along = (jnp.log(variance) - _first(grid, axis)) / PANEL
    panel = jnp.floor(along)
    position = (2 * jnp.clip(along - panel, 0, 1) - 1) / MARGIN
    angle, degrees = jnp.arccos(position), jnp.arange(DEGREE + 1)
    slopes = degrees * jnp.sin(degrees * angle) / jnp.sin(angle) * 2 / (MARGIN * PANEL * variance)
    return _Place(panel.astype(int), jnp.cos(degrees * angle), slopes)


def _branch(grid: Grid, row: _Place, column: _Place) -> Int[Array, ""]:
    """Index of the pair of panels; behind the last one if the variances lie outside all of them."""
    pairs = jnp.asarray(_pairs(grid))
    hit = (pairs[:, 0] == row.panel) & (pairs[:, 1] == column.panel)
    return jnp.where(hit.any(), jnp.argmax(hit), len(pairs))


def _product(coefficients: Float[Array, "coefficient path step"], basis: Float[Array, "*kind coefficient"]) -> Array:
    flat = basis.astype(coefficients.dtype) @ coefficients.reshape(coefficients.shape[0], -1)
    return flat.reshape(*basis.shape[:-1], *coefficients.shape[1:]).astype(basis.dtype)


def salient_value(
    grid: Grid, table: Table, variances: Float[Array, "2"], over_cells: Callable[[], Array]
) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) n(z; gaze, variances): from the table, or `over_cells` where it does not reach."""
    row, column = _place(grid, 0, variances[0]), _place(grid, 1, variances[1])
    basis = row.polynomials[ROW_DEGREE] * column.polynomials[COLUMN_DEGREE]
    branches = [partial(_product, it) for it in table.salient]
    return lax.switch(_branch(grid, row, column), [*branches, lambda _: over_cells()], basis)


def salient_sum(grid: Grid, table: Table, variances: Float[Array, "2"], over_cells: Callable[[], Sum]) -> Sum:
    """The same with derivatives."""
    row, column = _place(grid, 0, variances[0]), _place(grid, 1, variances[1])
    pairs = (
        (row.polynomials, column.polynomials),
        (row.slopes, column.polynomials),
        (row.polynomials, column.slopes),
    )
    basis = jnp.stack([by_row[ROW_DEGREE] * by_column[COLUMN_DEGREE] for by_row, by_column in pairs])
    branches = [lambda basis, it=it: Sum(*_product(it, basis)) for it in table.salient]
    return lax.switch(_branch(grid, row, column), [*branches, lambda _: over_cells()], basis)


def log_axis_sum(
    grid: Grid,
    table: Table,
    gaze: Float[Array, "path step 2"],
    axis: int,
    variance: Float[Array, ""],
    over_cells: Callable[[], tuple[Array, Array]],
) -> tuple[Float[Array, "path step"], Float[Array, "path step"]]:
    """`kernels.log_axis_sum` from the table, or `over_cells` where it does not reach."""
    place, panels = _place(grid, axis, variance), _panels(grid)

    def from_table() -> tuple[Array, Array]:
        basis = jnp.stack([place.polynomials, place.slopes])
        branches = [partial(_product, it) for it in (table.rows, table.columns)[axis]]
        value, slope = lax.switch(place.panel, branches, basis)
        squared = nearest_squared(grid, gaze, axis)
        scale = 0.5 * jnp.log(2 * jnp.pi * variance) - jnp.log(grid.cell_deg[axis])
        relative = jnp.log(value) + scale + 0.5 * squared / variance
        return relative, slope / value + 0.5 / variance - 0.5 * squared / variance**2

    return lax.cond((place.panel >= 0) & (place.panel < panels), from_table, over_cells)
