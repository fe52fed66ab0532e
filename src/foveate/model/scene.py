"""A scene: the pictures and gazes of a set of steps, and the sums over their cells that policies are divided by."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Float

from foveate.data.grid import Grid
from foveate.model import kernels, tables
from foveate.model.history import Array
from foveate.model.kernels import Factors, Sum
from foveate.model.tables import Table


class Scene(eqx.Module):
    """Each path's map and where each of its steps starts; with a table the sums do not visit the cells."""

    saliency: Float[Array, "path row column"]
    gaze: Float[Array, "path step 2"]
    table: Table | None
    grid: Grid = eqx.field(static=True)

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


def differentiable_salient_value(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """`salient_value` with a derivative in the variances."""
    # Which panel of the table serves depends on the variances, so a batch of them is taken one by one: under a plain
    # vmap every branch would be computed for every member.
    plain, full = sequential_vmap(salient_value), sequential_vmap(salient_sum)

    @jax.custom_jvp
    def differentiable(scene, variances):
        return plain(scene, variances)

    @differentiable.defjvp
    def _(primals, tangents):
        found = full(*primals)
        return found.value, found.along(tangents[1])

    return differentiable(scene, variances)


def log_gaussian_sum(scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Log of the sum over all cells of n(z; gaze, variances), differentiable in the variances."""
    by_axis = [_differentiable_axis_sum(scene, axis, variances[axis]) for axis in (0, 1)]
    return by_axis[0] + by_axis[1]


def _axis_sum(axis: int, scene: Scene, variance: Float[Array, ""]) -> tuple[Array, Array]:
    centres = (scene.grid.row_centres_deg, scene.grid.column_centres_deg)[axis]

    def over_cells() -> tuple[Array, Array]:
        return kernels.log_axis_sum(centres - scene.gaze[..., axis, None], variance, scene.grid.cell_deg[axis])

    if scene.table is None:
        return over_cells()
    return tables.log_axis_sum(scene.grid, scene.table, axis, variance, over_cells)


def _differentiable_axis_sum(scene: Scene, axis: int, variance: Float[Array, ""]) -> Float[Array, "path step"]:
    both = sequential_vmap(partial(_axis_sum, axis))

    @jax.custom_jvp
    def differentiable(scene, variance):
        return both(scene, variance)[0]

    @differentiable.defjvp
    def _(primals, tangents):
        value, slope = both(*primals)
        return value, slope * tangents[1]

    return differentiable(scene, jnp.asarray(variance))
