"""The repelled sum D = sum_z s(z) max(a(z) - b(z), 0) of a wide Gaussian a and a narrow one b around the gaze.

    D = sum s a - sum s b + sum_R s (b - a),      R = {b > a}

The first two are sums over the whole picture, which `scene.py` does fast. If b is narrower than a on both axes, R is
an ellipse around the gaze, so the third is a sum over a small window. The window is exact only while it covers the
ellipse, and the difference only while it does not cancel: both are checked, and where either fails the sum runs
over the whole grid. R moves with the variances, but on its edge a = b, so that adds nothing to the derivative.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int

from foveate.model import at_once, kernels
from foveate.model.history import Array
from foveate.model.kernels import CANCELLATION, Sum, peak, sum_from_moments, total
from foveate.model.policies import REPELLED_WEIGHT, axis_gaussian
from foveate.model.scene import Scene, differentiable, salient_sum, salient_value
from foveate.model.surroundings import half_kept, larger_sums, larger_value, overlap_sums, overlap_value
from foveate.model.windows import (
    KEPT,
    WINDOWS,
    half_needed,
    half_windows,
    smallest_window,
    window_corner,
    window_size,
)

# With more cells than this in a window, steps are taken path by path, so that their windows stay in the cache.
CACHED_CELLS = 600

# The largest side of a cell that is twice as long, in standard deviations, where sums need not be exact; of one four
# times as long it is half of that, since a map varies more in it.
SMALL_CELL = 1.0
LEAST_LEFT = 0.01  # of the wide Gaussian's peak: where less is left, neither larger cells nor fewer digits will do


def repelled_sum(scene: Scene, wide: Float[Array, "2"], narrow: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) max(n(z; gaze, wide) - n(z; gaze, narrow), floor), differentiable in the variances."""

    def with_slopes(scene: Scene, wide: Array, narrow: Array) -> tuple[Array, Sequence[Array]]:
        attracting, repelling, forbidden = _sums(scene, wide, narrow)
        value = attracting.value - repelling.value + REPELLED_WEIGHT * forbidden
        slopes = [
            jnp.stack([attracting.by_row, attracting.by_column]),
            -jnp.stack([repelling.by_row, repelling.by_column]),
        ]
        return value, slopes

    return differentiable(_value, with_slopes)(scene, wide, narrow)


def _trusted(scene: Scene, difference: Array, wide: Array, narrow: Array, repelling: Array) -> Array:
    """Whether the difference of sums has kept its digits, for all steps."""
    scale = jnp.maximum(peak(scene.grid, wide), repelling)
    if scene.table is not None:
        scale = jnp.maximum(scale, peak(scene.grid, narrow) * scene.table.largest[0])
    return jnp.all(difference > CANCELLATION * scale)


def _value(scene: Scene, wide: Array, narrow: Array) -> Float[Array, "path step"]:
    if scene.batched:
        return at_once.repelled_value(scene, wide, narrow)

    def by_window() -> tuple[Array, Array]:
        attracting, repelling = salient_value(scene, wide), salient_value(scene, narrow)
        fast = attracting - repelling - _overlap(overlap_value, _difference_over, scene, wide, narrow)
        return fast, _trusted(scene, fast, wide, narrow, repelling)

    def whole() -> Array:
        exact = partial(_by_path, _whole_value, scene, wide, narrow)
        if scene.single and scene.coarser is None:
            return _first_that_holds(jnp.array(True), partial(_in_single_precision, scene, wide, narrow), exact)
        return _over_all_cells(exact, larger_value, scene, wide, narrow)

    return _first_that_holds(_covered(scene, wide, narrow), by_window, whole)


def _in_single_precision(scene: Scene, wide: Array, narrow: Array) -> tuple[Array, Array]:
    """The sum over all cells in single precision, and whether it has kept its digits: what is left of the wide Gaussian
    is not small beside what it was, for any step."""

    def fewer_digits(cells: _Cells) -> Array:
        rounded = jax.tree.map(lambda it: it.astype(jnp.float32), cells)
        return _whole_value(rounded).astype(wide.dtype)

    found = _by_path(fewer_digits, scene, wide, narrow)
    return found, jnp.all(found > LEAST_LEFT * peak(scene.grid, wide))


def _sums(scene: Scene, wide: Array, narrow: Array) -> tuple[Sum, Sum, Float[Array, "path step"]]:
    """Sums of both Gaussians over the cells that are not forbidden, and the saliency of those that are."""
    if scene.batched:
        return at_once.repelled_sums(scene, wide, narrow)

    def by_window() -> tuple[tuple[Sum, Sum, Array], Array]:
        attracting, repelling = salient_sum(scene, wide), salient_sum(scene, narrow)
        inside = _overlap(overlap_sums, _sums_over, scene, wide, narrow)
        outside = attracting - inside[0], repelling - inside[1]
        difference = outside[0].value - outside[1].value
        trusted = _trusted(scene, difference, wide, narrow, repelling.value)
        return (*outside, jnp.zeros_like(difference)), trusted

    def whole() -> tuple[Sum, Sum, Array]:
        def rough(*cells: Any) -> tuple[Sum, Sum, Array]:
            return *larger_sums(*cells), jnp.zeros(scene.gaze.shape[:-1])

        exact = partial(_by_path, _whole_sums, scene, wide, narrow)
        return _over_all_cells(exact, rough, scene, wide, narrow)

    return _first_that_holds(_covered(scene, wide, narrow), by_window, whole)


def _first_that_holds(possible: Array, first: Callable[[], tuple[Any, Array]], second: Callable[[], Any]) -> Any:
    """What `first` finds, if that is possible at all and it says that it holds; else what `second` finds.

    Each is in the program once: a branch of a branch would compile the second twice.
    """
    nothing = jax.tree.map(lambda it: jnp.zeros(it.shape, it.dtype), jax.eval_shape(first))
    found, holds = lax.cond(possible, first, lambda: nothing)  # nothing holds nothing
    return lax.cond(holds, lambda: found, second)


# --- the window around the gaze ------------------------------------------------------------------------------------


class _Cells(NamedTuple):
    """Some cells around each gaze, with the distances and both Gaussians as factors on rows and columns."""

    saliency: Float[Array, "*batch row column"]
    row_deg: Float[Array, "*batch row"]
    column_deg: Float[Array, "*batch column"]
    wide_rows: Float[Array, "*batch row"]
    wide_columns: Float[Array, "*batch column"]
    narrow_rows: Float[Array, "*batch row"]
    narrow_columns: Float[Array, "*batch column"]
    variances: tuple[Array, Array]

    @property
    def wide(self) -> Float[Array, "*batch row column"]:
        return self.wide_rows[..., :, None] * self.wide_columns[..., None, :]

    @property
    def narrow(self) -> Float[Array, "*batch row column"]:
        return self.narrow_rows[..., :, None] * self.narrow_columns[..., None, :]


def _in_window(half: tuple[int, int], scene: Scene, wide: Array, narrow: Array) -> _Cells:
    """The cells of a window around each gaze, moved inward at the picture's edge."""
    grid = scene.grid
    size, corner = window_size(grid, half), window_corner(grid, scene.gaze, half)

    def cut(picture: Array, at: Array) -> Array:
        return lax.dynamic_slice(scene.maps, (picture, at[0], at[1]), (1, *size))[0]

    height, width = grid.cell_deg
    row_deg = (corner[..., 0, None] + jnp.arange(size[0]) + 0.5) * height - scene.gaze[..., 0, None]
    column_deg = (corner[..., 1, None] + jnp.arange(size[1]) + 0.5) * width - scene.gaze[..., 1, None]
    return _Cells(
        jax.vmap(jax.vmap(cut, (None, 0)))(scene.picture, corner),
        row_deg,
        column_deg,
        axis_gaussian(row_deg, wide[0], height),
        axis_gaussian(column_deg, wide[1], width),
        axis_gaussian(row_deg, narrow[0], height),
        axis_gaussian(column_deg, narrow[1], width),
        (wide, narrow),
    )


def _covered(scene: Scene, wide: Array, narrow: Array) -> Bool[Array, ""]:
    """Whether a window covers all cells where narrow > wide. Where larger cells do, a large window that has to be cut
    out costs more than all of them: there only the kept cells count."""
    if scene.coarser is not None and scene.table is not None:
        half, bounded = half_needed(scene.grid, wide, narrow)
        return bounded & _kept(scene.table.around, half)
    return smallest_window(scene.grid, wide, narrow) < len(WINDOWS)


def _kept(around: Array, half: Int[Array, "2"]) -> Bool[Array, ""]:
    return jnp.all(half <= jnp.asarray(half_kept(around)))


def _overlap(
    from_kept: Callable[..., Any], from_cut: Callable[[_Cells, Array], Any], scene: Scene, wide: Array, narrow: Array
) -> Any:
    """Sums over the cells where narrow > wide: of the cells that a table keeps, else of a window that is cut out."""
    window, windows = smallest_window(scene.grid, wide, narrow), half_windows(scene.grid)
    if scene.table is None:
        return lax.switch(window, [partial(_cut_out, from_cut, half) for half in windows], scene, wide, narrow)
    around, (half, _) = scene.table.around, half_needed(scene.grid, wide, narrow)
    near = partial(from_kept, scene.grid, around, scene.gaze, half, wide, narrow)
    if scene.coarser is not None:
        return near()
    far = [partial(_cut_out, from_cut, it, scene, wide, narrow) for it in windows[KEPT + 1 :]]
    return lax.switch(jnp.where(_kept(around, half), 0, window - KEPT), [near, *far])


def _cut_out(function: Callable[[_Cells, Array], Any], half: tuple[int, int], scene: Scene, wide: Array, narrow: Array):
    """`function` of the window's cells and the saliency of those where narrow > wide."""

    def of(scene: Scene):
        cells = _in_window(half, scene, wide, narrow)
        return function(cells, jnp.where(cells.narrow > cells.wide, cells.saliency, 0.0))

    if (2 * half[0] + 1) * (2 * half[1] + 1) <= CACHED_CELLS:
        return of(scene)

    def one(path: tuple[Array, Array]):
        picture, gaze = path
        return jax.tree.map(lambda it: it[0], of(Scene(scene.maps, picture[None], gaze[None], None, scene.grid)))

    return lax.map(one, (scene.picture, scene.gaze))


def _difference_over(cells: _Cells, saliency: Float[Array, "*batch row column"]) -> Float[Array, "*batch"]:
    """Sum of s (wide - narrow) with the saliency of the cells that do not count set to zero."""
    by_row = jnp.stack([cells.wide_columns, cells.narrow_columns], axis=-2) @ jnp.swapaxes(saliency, -2, -1)
    return total(cells.wide_rows * by_row[..., 0, :] - cells.narrow_rows * by_row[..., 1, :])


def _sums_over(cells: _Cells, saliency: Float[Array, "*batch row column"]) -> tuple[Sum, Sum]:
    """Sums of both Gaussians, likewise."""
    squared = cells.column_deg**2
    columns = [cells.wide_columns, cells.wide_columns * squared, cells.narrow_columns, cells.narrow_columns * squared]
    by_row = jnp.stack(columns, axis=-2) @ jnp.swapaxes(saliency, -2, -1)  # (kind, row)

    def sums(rows: Array, plain: Array, weighted: Array, variances: Array) -> Sum:
        row = total(rows * cells.row_deg**2 * plain)
        return sum_from_moments(total(rows * plain), row, total(rows * weighted), variances)

    wide, narrow = cells.variances
    return (
        sums(cells.wide_rows, by_row[..., 0, :], by_row[..., 1, :], wide),
        sums(cells.narrow_rows, by_row[..., 2, :], by_row[..., 3, :], narrow),
    )


# --- the whole grid ------------------------------------------------------------------------------------------------


def _over_all_cells(
    exact: Callable[[], Any], rough: Callable[..., Any], scene: Scene, wide: Array, narrow: Array
) -> Any:
    """`exact()`, or `rough` of the largest cells that are still small beside both Gaussians."""
    if scene.coarser is None:
        return exact()
    narrowest = jnp.sqrt(jnp.minimum(wide, narrow))
    sides = [np.divide(scene.grid.shape, it.shape[:2]) for it in scene.coarser]
    cells = jnp.asarray(sides) * jnp.asarray(scene.grid.cell_deg)
    largest = SMALL_CELL * 2 / jnp.asarray(sides) * narrowest
    smooth = jnp.all((cells <= largest) | (jnp.asarray(sides) == 1), axis=1)
    branches = [partial(rough, scene.grid, it, scene.gaze, wide, narrow) for it in scene.coarser]

    def by_larger_cells() -> tuple[Any, Array]:
        found = lax.switch(jnp.argmax(smooth), branches)
        # Where nearly all is forbidden, all of the larger cells may be, though some of the smaller ones are not.
        left = found if isinstance(found, jax.Array) else found[0].value - found[1].value
        return found, jnp.all(left > LEAST_LEFT * peak(scene.grid, wide))

    return _first_that_holds(jnp.any(smooth), by_larger_cells, exact)


def _by_path(function: Callable[[_Cells], Any], scene: Scene, wide: Array, narrow: Array) -> Any:
    """`function` of all cells, one path after another, so that no more than (step, row, column) is held."""

    def one(path: tuple[Array, Array]):
        picture, gaze = path
        a, b = kernels.factors(scene.grid, gaze, wide), kernels.factors(scene.grid, gaze, narrow)
        return function(_Cells(scene.maps[picture], *a, b.rows, b.columns, (wide, narrow)))

    return lax.map(one, (scene.picture, scene.gaze))


def _whole_value(cells: _Cells) -> Float[Array, " step"]:
    """Row by row of the picture: what is held then, (step, column), never leaves the nearest cache."""

    def add_row(sums: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
        saliency, wide, narrow = row
        difference = wide[:, None] * cells.wide_columns - narrow[:, None] * cells.narrow_columns
        return sums + saliency * jnp.maximum(difference, jnp.asarray(REPELLED_WEIGHT, sums.dtype)), None

    rows = cells.saliency, cells.wide_rows.T, cells.narrow_rows.T
    return total(lax.scan(add_row, jnp.zeros_like(cells.wide_columns), rows)[0])


def _whole_sums(cells: _Cells) -> tuple[Sum, Sum, Float[Array, " step"]]:
    """The same with derivatives: sums and row moments of both Gaussians, and the forbidden saliency, by column."""

    def add_row(sums: tuple[Array, ...], row: tuple[Array, ...]) -> tuple[tuple[Array, ...], None]:
        saliency, row_deg, wide, narrow = row
        squared = jnp.square(row_deg)[:, None]
        of_wide, of_narrow = wide[:, None] * cells.wide_columns, narrow[:, None] * cells.narrow_columns
        allowed = jnp.where(of_wide - of_narrow > REPELLED_WEIGHT, saliency, 0.0)
        a, b = allowed * of_wide, allowed * of_narrow
        terms = a, b, squared * a, squared * b, saliency - allowed
        return tuple(total + term for total, term in zip(sums, terms, strict=True)), None

    rows = cells.saliency, cells.row_deg.T, cells.wide_rows.T, cells.narrow_rows.T
    a, b, row_a, row_b, forbidden = lax.scan(add_row, (jnp.zeros_like(cells.wide_columns),) * 5, rows)[0]
    column = jnp.square(cells.column_deg)
    wide, narrow = cells.variances
    return (
        sum_from_moments(total(a), total(row_a), total(column * a), wide),
        sum_from_moments(total(b), total(row_b), total(column * b), narrow),
        total(forbidden),
    )
