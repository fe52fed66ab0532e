"""Sums of Gaussians over all cells of a picture, for all steps at once: the cost of a likelihood is here.

A policy's normaliser is the sum of its weight over the cells. Gaussians on a grid are separable, so no exponential
per cell is needed: without saliency the sum is a row sum times a column sum, and `sum_z s(z) n(z; gaze, v)` is a row
vector times the map times a column vector, a matrix product for all steps of a picture.

Each sum comes with its derivatives in the variances, which are second moments of the same sum:
dn/dv = n (d^2 / v - 1) / (2 v). Where many evaluations on the same steps are to come, `tables.py` replaces the sums
over cells by polynomials in the variances.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Float

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.policies import axis_gaussian, nearest_centre, squared_beyond

# A sum below this share of its Gaussian's peak may have lost too many digits to cancellation or underflow. Over cells
# the error is 1e-16 of the peak; with tables it is 1e-13 of it on maps of a single cell, the worst, and far less on
# smooth ones. So above this share the relative error stays below 1e-12 and 1e-10.
CANCELLATION = 1e-3


class Sum(NamedTuple):
    """A sum over cells for every step, and its derivatives in the row and the column variance."""

    value: Float[Array, "*batch"]
    by_row: Float[Array, "*batch"]
    by_column: Float[Array, "*batch"]

    def __sub__(self, other: "Sum") -> "Sum":
        """The sum over a set without a part of it."""
        return Sum(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))

    def along(self, direction: Float[Array, "2"]) -> Float[Array, "*batch"]:
        """Directional derivative in the variances."""
        return self.by_row * direction[0] + self.by_column * direction[1]


def sum_from_moments(
    zeroth: Float[Array, "*batch"], row: Float[Array, "*batch"], column: Float[Array, "*batch"], variances: Array
) -> Sum:
    """A sum of s n and its derivatives, from the sums of s n, s n d_row^2 and s n d_column^2."""
    by_row = (row / variances[0] - zeroth) / (2 * variances[0])
    by_column = (column / variances[1] - zeroth) / (2 * variances[1])
    return Sum(zeroth, by_row, by_column)


def total(values: Float[Array, "*batch item"]) -> Float[Array, "*batch"]:
    """Sum over the last axis, as a matrix product: XLA's reductions on the CPU add one number at a time."""
    return values @ jnp.ones(values.shape[-1], values.dtype)


class Factors(NamedTuple):
    """A Gaussian around each gaze as a factor on the rows and one on the columns, with the distances behind it."""

    row_deg: Float[Array, "*batch row"]
    column_deg: Float[Array, "*batch column"]
    rows: Float[Array, "*batch row"]
    columns: Float[Array, "*batch column"]


def factors(grid: Grid, gaze: Float[Array, "*batch 2"], variances: Float[Array, "2"]) -> Factors:
    """The factors of n(z; gaze, variances) times the cell's area on the grid's rows and columns."""
    row_deg = grid.row_centres_deg - gaze[..., 0, None]
    column_deg = grid.column_centres_deg - gaze[..., 1, None]
    height, width = grid.cell_deg
    rows, columns = axis_gaussian(row_deg, variances[0], height), axis_gaussian(column_deg, variances[1], width)
    return Factors(row_deg, column_deg, rows, columns)


def salient_value(saliency: Float[Array, "*batch row column"], gaussian: Factors) -> Float[Array, "*batch step"]:
    """Sum over all cells of s(z) n(z)."""
    return total((gaussian.rows @ saliency) * gaussian.columns)


def salient_sum(saliency: Float[Array, "*batch row column"], gaussian: Factors, variances: Float[Array, "2"]) -> Sum:
    """Sum over all cells of s(z) n(z), with derivatives."""
    row_deg, column_deg, rows, columns = gaussian
    projected = (rows @ saliency) * columns
    row = total(((rows * row_deg**2) @ saliency) * columns)
    return sum_from_moments(total(projected), row, total(projected * column_deg**2), variances)


def peak(grid: Grid, variances: Float[Array, "2"]) -> Float[Array, ""]:
    """The Gaussian at its centre, times the cell's area."""
    return grid.cell_area_deg2 / (2 * jnp.pi * jnp.sqrt(variances[0] * variances[1]))


def log_nearest(grid: Grid, gaze: Float[Array, "*batch 2"], variances: Float[Array, "2"]) -> Float[Array, "*batch"]:
    """Log of the Gaussian, times the cell's area, at the centre nearest to the gaze."""
    by_axis = [nearest_squared(grid, gaze, axis) / variances[axis] for axis in (0, 1)]
    return jnp.log(peak(grid, variances)) - 0.5 * (by_axis[0] + by_axis[1])


def log_axis_sum(
    grid: Grid, gaze: Float[Array, "*batch 2"], axis: int, variance: Float[Array, ""]
) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """Log of the sum along one axis of its Gaussian factor relative to that at the centre nearest to the gaze, and the
    derivative in the variance."""
    centres, near = (grid.row_centres_deg, grid.column_centres_deg)[axis], nearest_centre(grid, gaze)[axis]
    squared = squared_beyond(centres, near[..., None], gaze[..., axis, None])
    terms = jnp.exp((-0.5 / variance) * squared)
    mass = total(terms)
    return jnp.log(mass), 0.5 / variance * (total(terms * squared) / mass / variance)


def nearest_squared(grid: Grid, gaze: Float[Array, "*batch 2"], axis: int) -> Float[Array, "*batch"]:
    """Squared distance along an axis from the gaze to the nearest centre, in deg^2."""
    return (nearest_centre(grid, gaze)[axis] - gaze[..., axis]) ** 2
