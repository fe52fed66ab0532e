"""Cells drawn from policies for many paths at once: first the row, then the column within that row.

One uniform number per axis, by the inverse of the cumulative sum. The mass of a row is the sum of the policy's weight
over its cells, unless a faster way to the same number is registered here; tests hold the two together. The cells of
the chosen row always come from the policy's own `log_weight`.

Everything is over a batch of paths: each field of a policy, a choice and a history carries a leading axis.
"""

from collections.abc import Callable, Sequence
from functools import singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.choices import Choice
from foveate.model.durations import Durations, amplitude_deg
from foveate.model.history import Array, History, Picture
from foveate.model.kernels import total
from foveate.model.policies import (
    REPELLED_WEIGHT,
    Global,
    Local,
    Policy,
    PrintedRepelledGlobal,
    RepelledGlobal,
    SalientGaussian,
    StaticSaliency,
    axis_gaussian,
)

# Below this sum, products of saliency and Gaussians have lost cells to underflow (1e-308) and logarithms take over.
UNDERFLOW_GUARD = 1e-250


class Views(eqx.Module):
    """The map that each path of a batch looks at."""

    saliency: Float[Array, "path row column"]
    row_saliency: Float[Array, "path row"]  # the map's mass in each row
    grid: Grid = eqx.field(static=True)

    @classmethod
    def of(cls, grid: Grid, saliency: Float[Array, "path row column"]) -> "Views":
        """The maps with the mass of their rows."""
        return cls(jnp.asarray(saliency), total(saliency), grid)

    def at(self, row: Int[Array, " path"], column: Int[Array, " path"]) -> Float[Array, " path"]:
        """Saliency of one cell per path."""
        return self.saliency[jnp.arange(len(row)), row, column]


def pick(weight: Float[Array, "path item"], uniform: Float[Array, " path"]) -> Int[Array, " path"]:
    """The item whose share of the cumulative weight holds the uniform number; never one of weight zero."""
    cumulative = jnp.cumsum(weight, axis=1)
    threshold = uniform * cumulative[:, -1]
    index = jnp.sum(cumulative <= threshold[:, None], axis=1)
    return jnp.minimum(index, weight.shape[1] - 1)


def draw_policy(choice: Choice, history: History, views: Views, uniform: Float[Array, " path"]) -> Int[Array, " path"]:
    """Which policy decides, for each path."""

    def log_probabilities(choice: Choice, history: History, saliency: Array) -> Array:
        return choice.log_probabilities(history, Picture.whole(views.grid, saliency))

    return pick(jnp.exp(jax.vmap(log_probabilities)(choice, history, views.saliency)), uniform)


def draw_durations(
    durations: Durations, normal: Float[Array, " path"], history: History, views: Views, ahead: Float[Array, "path 2"]
) -> Float[Array, " path"]:
    """How long the present fixation of each path lasts, in seconds, if gaze goes to `ahead` next."""

    def of_path(durations: Durations, normal: Array, history: History, saliency: Array, ahead: Array) -> Array:
        picture = Picture.whole(views.grid, saliency)
        return durations.draw(normal, history, picture, amplitude_deg(ahead - history.gaze))

    return jax.vmap(of_path)(durations, normal, history, views.saliency, ahead)


def draw_from_map(views: Views, uniform: Float[Array, "path 2"]) -> tuple[Int[Array, " path"], Int[Array, " path"]]:
    """Row and column of a cell drawn from each path's map."""
    row = pick(views.row_saliency, uniform[:, 0])
    return row, pick(views.saliency[jnp.arange(len(row)), row], uniform[:, 1])


def draw_cell(
    policies: Sequence[Policy],
    label: Int[Array, " path"],
    history: History,
    views: Views,
    uniform: Float[Array, "path 2"],
    row_mass: Callable[[Policy, History, Views], Array] | None = None,
) -> tuple[Int[Array, " path"], Int[Array, " path"]]:
    """Row and column of a cell drawn from the policy that decides, for each path.

    `row_mass` is the fast one, unless given.
    """
    masses = [(row_mass or fast_row_mass)(policy, history, views) for policy in policies]
    row = pick(_of_label(masses, label), uniform[:, 0])
    log_weights = [_row_log_weight(policy, history, views, row) for policy in policies]
    return row, pick(_relative(_of_label(log_weights, label)), uniform[:, 1])


def _of_label(values: list[Float[Array, "path item"]], label: Int[Array, " path"]) -> Float[Array, "path item"]:
    """For each path the values of the policy that decides."""
    chosen = values[0]
    for index, others in enumerate(values[1:], start=1):
        chosen = jnp.where((label == index)[:, None], others, chosen)
    return chosen


def _row_log_weight(
    policy: Policy, history: History, views: Views, row: Int[Array, " path"]
) -> Float[Array, "path column"]:
    """The policy's log-weight in the cells of one row per path."""
    x_deg, y_deg = views.grid.column_centres_deg[None, :], jnp.asarray(views.grid.row_centres_deg)

    def of_path(policy: Policy, history: History, saliency: Array, row: Array) -> Array:
        picture = Picture(saliency[row][None, :], y_deg[row][None, None], x_deg, views.grid)
        return jnp.broadcast_to(policy.log_weight(history, picture), (1, views.grid.columns))[0]

    return jax.vmap(of_path)(policy, history, views.saliency, row)


# --- the mass of every row -----------------------------------------------------------------------------------------


def plain_row_mass(policy: Policy, history: History, views: Views) -> Float[Array, "path row"]:
    """By definition: the weight of every cell, relative to the largest, summed over columns."""

    def of_path(policy: Policy, history: History, saliency: Array) -> Array:
        log_weight = policy.log_weight(history, Picture.whole(views.grid, saliency))
        return jnp.broadcast_to(log_weight, views.grid.shape)

    log_weight = jax.vmap(of_path)(policy, history, views.saliency)
    return total(jnp.exp(log_weight - jnp.max(log_weight, axis=(1, 2), keepdims=True)))


@singledispatch
def fast_row_mass(policy: Policy, history: History, views: Views) -> Float[Array, "path row"]:
    """The policy's weight in each row, up to a factor of its own for each path."""
    return plain_row_mass(policy, history, views)


@fast_row_mass.register
def _(policy: StaticSaliency, history: History, views: Views) -> Float[Array, "path row"]:
    return views.row_saliency


@fast_row_mass.register
def _(policy: Local, history: History, views: Views) -> Float[Array, "path row"]:
    return _row_factor(_variances(policy), history, views)


@fast_row_mass.register
def _(policy: Global, history: History, views: Views) -> Float[Array, "path row"]:
    variances = _variances(policy)
    rows, columns = _row_factor(variances, history, views), _column_factor(variances, history, views)
    mass = rows * jnp.einsum("prc,pc->pr", views.saliency, columns)
    enough = jnp.all(total(mass) > UNDERFLOW_GUARD)
    return lax.cond(enough, lambda: mass, lambda: plain_row_mass(policy, history, views))


@fast_row_mass.register
def _(policy: RepelledGlobal, history: History, views: Views) -> Float[Array, "path row"]:
    wide, narrow = (
        _gaussians(policy.xi, history, views),
        _gaussians(jax.vmap(lambda policy: policy.repelling)(policy), history, views),
    )

    return total(views.saliency * jnp.maximum(_outer(wide) - _outer(narrow), REPELLED_WEIGHT))


@fast_row_mass.register
def _(policy: PrintedRepelledGlobal, history: History, views: Views) -> Float[Array, "path row"]:
    wide, (rows, columns) = _gaussians(policy.xi, history, views), _gaussians(policy.epsilon, history, views)
    difference = views.saliency * _outer(wide) - _outer((rows / views.grid.cells, columns))
    return total(jnp.maximum(difference, views.saliency * REPELLED_WEIGHT))


def _variances(policy: SalientGaussian) -> Float[Array, "path 2"]:
    """(row, column) for each path's own parameters."""
    return jax.vmap(lambda own: own.variances)(policy)


# --- parts ---------------------------------------------------------------------------------------------------------


def _offsets(history: History, views: Views) -> tuple[Float[Array, "path row"], Float[Array, "path column"]]:
    """Distance of every row and every column from the gaze, in degrees."""
    gaze = history.position_deg[:, 0]
    return views.grid.row_centres_deg - gaze[:, :1], views.grid.column_centres_deg - gaze[:, 1:]


def _gaussians(
    variances: Float[Array, "path 2"], history: History, views: Views
) -> tuple[Float[Array, "path row"], Float[Array, "path column"]]:
    """The row's and the column's factor of a Gaussian around the gaze, as a mass per cell."""
    (rows, columns), (height, width) = _offsets(history, views), views.grid.cell_deg
    factors = axis_gaussian(rows, variances[:, :1], height), axis_gaussian(columns, variances[:, 1:], width)
    return lax.optimization_barrier(factors)  # else XLA works out the exponentials anew in every cell


def _row_factor(variances: Float[Array, "path 2"], history: History, views: Views) -> Float[Array, "path row"]:
    """The row's factor of a Gaussian around the gaze, relative to the nearest row."""
    return _relative((-0.5 / variances[:, :1]) * _offsets(history, views)[0] ** 2)


def _column_factor(variances: Float[Array, "path 2"], history: History, views: Views) -> Float[Array, "path column"]:
    """The column's factor of a Gaussian around the gaze, relative to the nearest column."""
    return _relative((-0.5 / variances[:, 1:]) * _offsets(history, views)[1] ** 2)


def _relative(log_weight: Float[Array, "path item"]) -> Float[Array, "path item"]:
    return jnp.exp(log_weight - jnp.max(log_weight, axis=1, keepdims=True))


def _outer(factors: tuple[Float[Array, "path row"], Float[Array, "path column"]]) -> Float[Array, "path row column"]:
    rows, columns = factors
    return rows[:, :, None] * columns[:, None, :]
