"""Cells drawn from policies for many paths at once: first the row, then the column within that row.

One uniform number per axis, by the inverse of the cumulative sum. The mass of a row is the sum of the policy's weight
over its cells, unless a faster way to the same number is registered here; tests hold the two together. The cells of
the chosen row always come from the policy's own `log_weight`.

Everything is over a batch of paths: each field of a policy, a choice and a history carries a leading axis.
"""

from collections.abc import Callable
from functools import singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.choices import Choice
from foveate.model.history import Array, History, Picture
from foveate.model.policies import (
    REPELLED_WEIGHT,
    Global,
    Local,
    Policy,
    PrintedRepelledGlobal,
    RepelledGlobal,
    StaticSaliency,
    axis_gaussian,
)

# Below this sum, products of saliency and Gaussians have lost cells to underflow (1e-308) and logarithms take over.
UNDERFLOW_GUARD = 1e-250


class Scene(eqx.Module):
    """The map that each path of a batch looks at."""

    saliency: Float[Array, "path row column"]
    row_saliency: Float[Array, "path row"]  # the map's mass in each row
    grid: Grid = eqx.field(static=True)

    @classmethod
    def of(cls, grid: Grid, saliency: Float[Array, "path row column"]) -> "Scene":
        """The maps with the mass of their rows."""
        return cls(jnp.asarray(saliency), _sum_columns(saliency), grid)

    def at(self, row: Int[Array, " path"], column: Int[Array, " path"]) -> Float[Array, " path"]:
        """Saliency of one cell per path."""
        return self.saliency[jnp.arange(len(row)), row, column]


def pick(weight: Float[Array, "path item"], uniform: Float[Array, " path"]) -> Int[Array, " path"]:
    """The item whose share of the cumulative weight holds the uniform number; never one of weight zero."""
    cumulative = jnp.cumsum(weight, axis=1)
    threshold = uniform * cumulative[:, -1]
    index = jnp.sum(cumulative <= threshold[:, None], axis=1)
    return jnp.minimum(index, weight.shape[1] - 1)


def draw_policy(choice: Choice, history: History, scene: Scene, uniform: Float[Array, " path"]) -> Int[Array, " path"]:
    """Which policy decides, for each path."""

    def log_probabilities(choice: Choice, history: History, saliency: Array) -> Array:
        return choice.log_probabilities(history, Picture.whole(scene.grid, saliency))

    return pick(jnp.exp(jax.vmap(log_probabilities)(choice, history, scene.saliency)), uniform)


def draw_from_map(scene: Scene, uniform: Float[Array, "path 2"]) -> tuple[Int[Array, " path"], Int[Array, " path"]]:
    """Row and column of a cell drawn from each path's map."""
    row = pick(scene.row_saliency, uniform[:, 0])
    return row, pick(scene.saliency[jnp.arange(len(row)), row], uniform[:, 1])


def draw_cell(
    policy: Policy,
    history: History,
    scene: Scene,
    uniform: Float[Array, "path 2"],
    row_mass: Callable[[Policy, History, Scene], Array] | None = None,
) -> tuple[Int[Array, " path"], Int[Array, " path"]]:
    """Row and column of a cell drawn from the policy, for each path (`row_mass`: the fast one, unless given)."""
    row = pick((row_mass or fast_row_mass)(policy, history, scene), uniform[:, 0])
    return row, pick(_row_weight(policy, history, scene, row), uniform[:, 1])


def _row_weight(
    policy: Policy, history: History, scene: Scene, row: Int[Array, " path"]
) -> Float[Array, "path column"]:
    """The policy's weight in the cells of one row per path, relative to the largest of them."""
    x_deg, y_deg = scene.grid.column_centres_deg[None, :], jnp.asarray(scene.grid.row_centres_deg)

    def of_path(policy: Policy, history: History, saliency: Array, row: Array) -> Array:
        picture = Picture(saliency[row][None, :], y_deg[row][None, None], x_deg, scene.grid)
        return jnp.broadcast_to(policy.log_weight(history, picture), (1, scene.grid.columns))[0]

    return _relative(jax.vmap(of_path)(policy, history, scene.saliency, row))


# --- the mass of every row -----------------------------------------------------------------------------------------


def plain_row_mass(policy: Policy, history: History, scene: Scene) -> Float[Array, "path row"]:
    """By definition: the weight of every cell, relative to the largest, summed over columns."""

    def of_path(policy: Policy, history: History, saliency: Array) -> Array:
        log_weight = policy.log_weight(history, Picture.whole(scene.grid, saliency))
        return jnp.broadcast_to(log_weight, scene.grid.shape)

    log_weight = jax.vmap(of_path)(policy, history, scene.saliency)
    return _sum_columns(jnp.exp(log_weight - jnp.max(log_weight, axis=(1, 2), keepdims=True)))


@singledispatch
def fast_row_mass(policy: Policy, history: History, scene: Scene) -> Float[Array, "path row"]:
    """The policy's weight in each row, up to a factor of its own for each path."""
    return plain_row_mass(policy, history, scene)


@fast_row_mass.register
def _(policy: StaticSaliency, history: History, scene: Scene) -> Float[Array, "path row"]:
    return scene.row_saliency


@fast_row_mass.register
def _(policy: Local, history: History, scene: Scene) -> Float[Array, "path row"]:
    return _row_factor(policy.epsilon, history, scene)


@fast_row_mass.register
def _(policy: Global, history: History, scene: Scene) -> Float[Array, "path row"]:
    rows, columns = _row_factor(policy.xi, history, scene), _column_factor(policy.xi, history, scene)
    mass = rows * jnp.einsum("prc,pc->pr", scene.saliency, columns)
    enough = jnp.all(_sum_columns(mass) > UNDERFLOW_GUARD)
    return lax.cond(enough, lambda: mass, lambda: plain_row_mass(policy, history, scene))


@fast_row_mass.register
def _(policy: RepelledGlobal, history: History, scene: Scene) -> Float[Array, "path row"]:
    wide, narrow = _gaussians(policy.xi, history, scene), _gaussians(policy.repelling, history, scene)

    return _sum_columns(scene.saliency * jnp.maximum(_outer(wide) - _outer(narrow), REPELLED_WEIGHT))


@fast_row_mass.register
def _(policy: PrintedRepelledGlobal, history: History, scene: Scene) -> Float[Array, "path row"]:
    wide, (rows, columns) = _gaussians(policy.xi, history, scene), _gaussians(policy.epsilon, history, scene)
    difference = scene.saliency * _outer(wide) - _outer((rows / scene.grid.cells, columns))
    return _sum_columns(jnp.maximum(difference, scene.saliency * REPELLED_WEIGHT))


# --- parts ---------------------------------------------------------------------------------------------------------


def _offsets(history: History, scene: Scene) -> tuple[Float[Array, "path row"], Float[Array, "path column"]]:
    """Distance of every row and every column from the gaze, in degrees."""
    gaze = history.position_deg[:, 0]
    return scene.grid.row_centres_deg - gaze[:, :1], scene.grid.column_centres_deg - gaze[:, 1:]


def _gaussians(
    variances: Float[Array, "path 2"], history: History, scene: Scene
) -> tuple[Float[Array, "path row"], Float[Array, "path column"]]:
    """The row's and the column's factor of a Gaussian around the gaze, as a mass per cell."""
    (rows, columns), (height, width) = _offsets(history, scene), scene.grid.cell_deg
    factors = axis_gaussian(rows, variances[:, :1], height), axis_gaussian(columns, variances[:, 1:], width)
    return lax.optimization_barrier(factors)  # else XLA works out the exponentials anew in every cell


def _row_factor(variances: Float[Array, "path 2"], history: History, scene: Scene) -> Float[Array, "path row"]:
    """The row's factor of a Gaussian around the gaze, relative to the nearest row."""
    return _relative((-0.5 / variances[:, :1]) * _offsets(history, scene)[0] ** 2)


def _column_factor(variances: Float[Array, "path 2"], history: History, scene: Scene) -> Float[Array, "path column"]:
    """The column's factor of a Gaussian around the gaze, relative to the nearest column."""
    return _relative((-0.5 / variances[:, 1:]) * _offsets(history, scene)[1] ** 2)


def _relative(log_weight: Float[Array, "path item"]) -> Float[Array, "path item"]:
    return jnp.exp(log_weight - jnp.max(log_weight, axis=1, keepdims=True))


def _outer(factors: tuple[Float[Array, "path row"], Float[Array, "path column"]]) -> Float[Array, "path row column"]:
    rows, columns = factors
    return rows[:, :, None] * columns[:, None, :]


def _sum_columns(values: Float[Array, "*batch column"]) -> Float[Array, "*batch"]:
    """The sum over the last axis, as a matrix product: XLA's own is not vectorised."""
    return values @ jnp.ones(values.shape[-1])
