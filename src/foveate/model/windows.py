"""Which cells around the gaze a repulsion covers: the ellipse where its narrow Gaussian exceeds its wide one."""

import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array

# Windows of one shape, as shares of the grid's sides, for steps without a table or beyond what one keeps. A larger
# ellipse takes the whole grid.
WINDOWS = (0.13, 0.19, 0.27, 0.38, 0.55)
KEPT = 3  # the window whose cells are kept with a table


def half_windows(grid: Grid) -> list[tuple[int, int]]:
    """Half-sizes (rows, columns) of the windows, smallest first."""
    return [(int(grid.rows * share / 2), int(grid.columns * share / 2)) for share in WINDOWS]


def half_needed(grid: Grid, wide: Array, narrow: Array) -> tuple[Int[Array, "2"], Bool[Array, ""]]:
    """Half-sizes (rows, columns) of the smallest window that covers {narrow > wide} wherever the gaze is in its middle
    cell, and whether there is one: none does unless the narrow Gaussian is narrower on both axes."""
    steepness = 0.5 * (1 / narrow - 1 / wide)
    height = 0.5 * jnp.log(jnp.prod(wide / narrow))
    bounded = jnp.all(steepness > 0)
    reach = jnp.sqrt(jnp.maximum(height, 0) / jnp.where(bounded, steepness, 1.0)) / jnp.asarray(grid.cell_deg)
    # The nearest centre outside a window of half-size k lies at least k + 1/2 cells from a gaze in its middle cell.
    largest = jnp.asarray(grid.shape)  # covers everything, and can be written as a whole number
    return jnp.minimum(jnp.floor(reach + 0.5), largest).astype(int), bounded


def smallest_window(grid: Grid, wide: Array, narrow: Array) -> Int[Array, ""]:
    """Index of the smallest of the windows that covers {narrow > wide}; behind the last one: none does."""
    half, bounded = half_needed(grid, wide, narrow)
    return jnp.sum(~(jnp.all(half <= jnp.asarray(half_windows(grid)), axis=1) & bounded))


def middle_cell(grid: Grid, gaze: Float[Array, "*batch 2"]) -> Int[Array, "*batch 2"]:
    """Row and column of the cell that holds each gaze."""
    return jnp.clip(jnp.floor(gaze / jnp.asarray(grid.cell_deg)).astype(int), 0, jnp.asarray(grid.shape) - 1)


def window_corner(grid: Grid, gaze: Float[Array, "path step 2"], half: tuple[int, int]) -> Int[Array, "path step 2"]:
    """First row and column of the window around each gaze, moved inward at the picture's edge."""
    last = jnp.asarray(grid.shape) - jnp.asarray(window_size(grid, half))
    return jnp.clip(middle_cell(grid, gaze) - jnp.asarray(half), 0, last)


def window_size(grid: Grid, half: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of a window."""
    return min(2 * half[0] + 1, grid.rows), min(2 * half[1] + 1, grid.columns)
