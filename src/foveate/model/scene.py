"""A scene: the pictures and gazes of a set of steps, and the sums over their cells that policies are divided by."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model import kernels, tables
from foveate.model.history import Array
from foveate.model.kernels import Factors, Sum
from foveate.model.tables import Table


class Scene(eqx.Module):
    """Each path's map and where each of its steps starts; with a table the sums do not visit the cells."""

    maps: Float[Array, "picture row column"]
    picture: Int[Array, " path"]  # index of each path's map
    gaze: Float[Array, "path step 2"]
    table: Table | None
    grid: Grid = eqx.field(static=True)
    coarser: Sequence[Float[Array, "_ _ path step"]] | None = None  # see `Steps.coarsened`
    batched: bool = eqx.field(static=True, default=False)  # see `Steps.in_batches`
    single: bool = eqx.field(static=True, default=False)  # see `Steps.in_single_precision`

    @property
    def saliency(self) -> Float[Array, "path row column"]:
        """The map of every path: a copy, megabytes large, that only sums over all cells are worth."""
        return self.maps[self.picture]

    def factors(self, variances: Float[Array, "2"]) -> Factors:
        """n(z; gaze, variances) on the rows and columns, for every step."""
        return kernels.factors(self.grid, self.gaze, variances)


def salient_value(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) n(z; gaze, variances)."""

    def over_cells() -> Array:
        return kernels.salient_value(scene.saliency, scene.factors(variances))

    if scene.table is None:
        return over_cells()
    return tables.salient_value(scene.grid, scene.table, variances, over_cells)


def salient_sum(scene: Scene, variances: Float[Array, "2"]) -> Sum:
    """The same with derivatives."""

    def over_cells() -> Sum:
        return kernels.salient_sum(scene.saliency, scene.factors(variances), variances)

    if scene.table is None:
        return over_cells()
    return tables.salient_sum(scene.grid, scene.table, variances, over_cells)


def log_gaussian_sum(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Log of the sum over all cells of n(z; gaze, variances), relative to its value at the nearest centre."""
    by_axis = [
        differentiable(partial(_axis_value, axis), partial(_axis_sum, axis))(scene, variances[axis]) for axis in (0, 1)
    ]
    return by_axis[0] + by_axis[1]


def _axis_value(axis: int, scene: Scene, variance: Float[Array, ""]) -> Float[Array, "path step"]:
    return _axis_both(axis, scene, variance)[0]


def _axis_sum(axis: int, scene: Scene, variance: Float[Array, ""]) -> tuple[Array, Sequence[Array]]:
    value, slope = _axis_both(axis, scene, variance)
    return value, [slope]


def _axis_both(axis: int, scene: Scene, variance: Float[Array, ""]) -> tuple[Array, Array]:
    def over_cells() -> tuple[Array, Array]:
        return kernels.log_axis_sum(scene.grid, scene.gaze, axis, variance)

    if scene.table is None:
        return over_cells()
    return tables.log_axis_sum(scene.grid, scene.table, scene.gaze, axis, variance, over_cells)


def differentiable_salient_value(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """`salient_value` with its derivative in the variances."""

    def with_slopes(scene: Scene, variances: Array) -> tuple[Array, Sequence[Array]]:
        found = salient_sum(scene, variances)
        return found.value, [jnp.stack([found.by_row, found.by_column])]

    return differentiable(salient_value, with_slopes)(scene, variances)


def differentiable(
    value: Callable[..., Array], with_slopes: Callable[..., tuple[Array, Sequence[Array]]]
) -> Callable[..., Array]:
    """`value(scene, *variances)`, whose derivative is what `with_slopes` gives: (value, one slope per argument).

    Which panel, window or fallback serves depends on the variances, so a batch of them is taken one by one: under a
    plain vmap every branch would be computed for every member. A scene for batches has no branches. Second
    derivatives, and derivatives in the scene, go through the sums over cells by automatic differentiation.
    """
    one_value, one_slopes = _one_by_one(value), _one_by_one(with_slopes)

    @jax.custom_jvp
    def function(scene, *variances):
        return (value if scene.batched else one_value)(scene, *variances)

    def rule(primals, tangents):
        scene, *variances = primals
        if all(isinstance(leaf, SymbolicZero) for leaf in jax.tree.leaves(tangents[0])):
            found, slopes = (with_slopes if scene.batched else one_slopes)(scene, *variances)
            changes = (_along(slope, tangent) for slope, tangent in zip(slopes, tangents[1:], strict=True))
            return found, sum(changes, jnp.zeros_like(found))
        whole, change = (_without_shortcuts(it) for it in (scene, _zeros(tangents[0])))
        return jax.jvp(value, (whole, *variances), (change, *_zeros(tangents[1:])))

    function.defjvp(rule, symbolic_zeros=True)
    return function


def _without_shortcuts(scene: Scene) -> Scene:
    return eqx.tree_at(lambda it: (it.table, it.coarser), scene, (None, None), is_leaf=lambda leaf: leaf is None)


def _along(slope: Array, tangent: Any) -> Array:
    if isinstance(tangent, SymbolicZero):
        return jnp.zeros(())
    return slope * tangent if jnp.ndim(tangent) == 0 else slope[0] * tangent[0] + slope[1] * tangent[1]


def _zeros(tangents: Any) -> Any:
    """The tangents with symbolic zeros written out."""

    def written_out(leaf: Any) -> Any:
        # Whole numbers, such as indices, have tangents of a type of their own.
        if not isinstance(leaf, SymbolicZero):
            return leaf
        shape, dtype = cast(Any, leaf.shape), cast(Any, leaf.dtype)
        return np.zeros(shape, dtype)

    return jax.tree.map(
        written_out,
        tangents,
        is_leaf=lambda leaf: isinstance(leaf, SymbolicZero),
    )


def _one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(scene, *variances)`, sequential under vmap; differentiated without shortcuts."""
    sequential = sequential_vmap(function)

    @jax.custom_jvp
    def wrapped(*arguments):
        return sequential(*arguments)

    @wrapped.defjvp
    def _(primals, tangents):
        scenes = [_without_shortcuts(it[0]) for it in (primals, tangents)]
        return jax.jvp(function, (scenes[0], *primals[1:]), (scenes[1], *tangents[1:]))

    return wrapped
