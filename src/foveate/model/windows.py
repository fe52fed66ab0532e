"""Windows of cells around the gaze: where the repulsion's narrow Gaussian exceeds its wide one."""

import jax.numpy as jnp
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array

# Windows tried, as shares of the grid's sides. A larger ellipse takes the whole grid.
WINDOWS = (0.13, 0.19, 0.27, 0.38, 0.55)


def half_windows(grid: Grid) -> list[tuple[int, int]]:
    """Half-sizes (rows, columns) of the windows, smallest first."""
    return [(int(grid.rows * share / 2), int(grid.columns * share / 2)) for share in WINDOWS]


def smallest_window(grid: Grid, wide: Array, narrow: Array) -> Int[Array, ""]:
    """Index of the smallest window that covers {narrow > wide} wherever the gaze is; behind the last one: none does."""
    steepness = 0.5 * (1 / narrow - 1 / wide)
    height = 0.5 * jnp.log(jnp.prod(wide / narrow))
    bounded = (steepness > 0).all()
    reach = jnp.sqrt(jnp.maximum(height, 0) / jnp.where(bounded, steepness, 1.0))
    # The nearest centre outside a window of half-size k lies at least k + 1/2 cells from a gaze in its middle cell.
    covered = (jnp.asarray(half_windows(grid)) + 0.5) * jnp.asarray(grid.cell_deg)
    return jnp.sum(~(jnp.all(reach < covered, axis=1) & bounded))


def window_corner(grid: Grid, gaze: Float[Array, "path step 2"], half: tuple[int, int]) -> Int[Array, "path step 2"]:
    """First row and column of the window around each gaze, moved inward at the picture's edge."""
    cell = jnp.floor(gaze / jnp.asarray(grid.cell_deg)).astype(int)
    return jnp.clip(cell - jnp.asarray(half), 0, jnp.asarray(grid.shape) - jnp.asarray(window_size(grid, half)))


def window_size(grid: Grid, half: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of a window."""
    return min(2 * half[0] + 1, grid.rows), min(2 * half[1] + 1, grid.columns)
