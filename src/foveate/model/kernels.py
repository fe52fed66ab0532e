"""Sums of Gaussians over all cells of a picture, for all steps at once: the cost of a likelihood is here.

A policy's normaliser is the sum of its weight over the cells. Gaussians on a grid are separable, so no exponential
per cell is needed:

- without saliency the sum is a row sum times a column sum;
- `sum_z s(z) n(z; gaze, v)` is a row vector times the map times a column vector: a matrix product for all steps of a
  picture;
- where n is smooth it is known everywhere from its values at a few Chebyshev nodes, so the map is first reduced to
  weights at those nodes, once per picture: smaller products, fewer exponentials, and a cost that does not grow with
  the grid.

Derivatives in the variances are second moments of the same sums: dn/dv = n (d^2 / v - 1) / (2 v).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import sequential_vmap
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.model.history import Array
from foveate.model.policies import axis_gaussian

# Numbers of Chebyshev nodes a side that a map is reduced to; those near the grid's own size gain nothing.
NODES = (24, 32, 48, 64, 96, 128)
WORTHWHILE = 0.8

# A sum or difference below this share of the Gaussian's peak has lost too many digits: the reduction is good to 1e-13
# of the peak, so above it the relative error stays below 1e-10.
CANCELLATION = 1e-3


class Reduced(NamedTuple):
    """A picture as weights at the nodes of two axes: its cells, or Chebyshev nodes that stand for them."""

    y_deg: Float[np.ndarray, " row"]
    x_deg: Float[np.ndarray, " column"]
    weights: Float[Array, "*batch row column"]


class Moments(NamedTuple):
    """Sums over a set of cells of s times a Gaussian (zeroth), and of that times squared distance on each axis."""

    zeroth: Float[Array, "*batch"]
    row: Float[Array, "*batch"]
    column: Float[Array, "*batch"]

    def __sub__(self, other: "Moments") -> "Moments":
        """Sums over a set without a part of it."""
        return Moments(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def derivative(moments: Moments, variances: Float[Array, "2"], direction: Float[Array, "2"]) -> Float[Array, "*batch"]:
    """Directional derivative in the variances of the zeroth moment."""
    by_row = (moments.row / variances[0] - moments.zeroth) / (2 * variances[0])
    by_column = (moments.column / variances[1] - moments.zeroth) / (2 * variances[1])
    return by_row * direction[0] + by_column * direction[1]


def total(values: Float[Array, "*batch item"]) -> Float[Array, "*batch"]:
    """Sum over the last axis, as a matrix product: XLA's reductions on the CPU add one number at a time."""
    return values @ jnp.ones(values.shape[-1])


def row_distances(grid: Grid, gaze: Float[Array, "*batch 2"]) -> Float[Array, "*batch row"]:
    """From the gaze to each row's centre, in degrees."""
    return grid.row_centres_deg - gaze[..., 0, None]


def column_distances(grid: Grid, gaze: Float[Array, "*batch 2"]) -> Float[Array, "*batch column"]:
    """From the gaze to each column's centre, in degrees."""
    return grid.column_centres_deg - gaze[..., 1, None]


def axis_terms(
    distances_deg: Float[Array, "*batch item"], variance_deg2: Float[Array, ""]
) -> tuple[Float[Array, "*batch item"], Float[Array, "*batch 1"]]:
    """exp(-(d^2 - m) / 2v) along one axis, and m, the smallest d^2: the largest term is one however small v is."""
    squared = distances_deg * distances_deg
    nearest = squared.min(axis=-1, keepdims=True)
    return jnp.exp((-0.5 / variance_deg2) * (squared - nearest)), nearest


def log_gaussian_sum(
    grid: Grid, gaze: Float[Array, "*batch 2"], variances: Float[Array, "2"]
) -> Float[Array, "*batch"]:
    """Log of the sum over all cells of n(z; gaze, variances) times the cell's area."""
    result = jnp.zeros(gaze.shape[:-1])
    for axis, distances in enumerate((row_distances(grid, gaze), column_distances(grid, gaze))):
        result += _log_axis_sum(distances, variances[axis]) + jnp.log(grid.cell_deg[axis] / jnp.sqrt(2 * jnp.pi))
    return result


@jax.custom_jvp
def _log_axis_sum(distances: Float[Array, "*batch item"], variance: Float[Array, ""]) -> Float[Array, "*batch"]:
    """Log of the sum of exp(-d^2 / 2v) / sqrt(v) along one axis; differentiable in v alone."""
    terms, nearest = axis_terms(distances, variance)
    return jnp.log(total(terms)) - 0.5 * nearest[..., 0] / variance - 0.5 * jnp.log(variance)


@_log_axis_sum.defjvp
def _(primals, tangents):
    (distances, variance), (_, direction) = primals, tangents
    terms, nearest = axis_terms(distances, variance)
    mass = total(terms)
    value = jnp.log(mass) - 0.5 * nearest[..., 0] / variance - 0.5 * jnp.log(variance)
    return value, direction * 0.5 / variance * (total(terms * distances**2) / mass / variance - 1)


# --- maps reduced to Chebyshev nodes -------------------------------------------------------------------------------


def smallest_relative_spread(nodes: int) -> float:
    """The smallest standard deviation, as a share of the extent, that this many nodes carry.

    Fitted to the number of nodes at which n and n d^2 / v are interpolated to 3e-14 of the peak of n; a test holds
    it to that.
    """
    return 3.9 / (nodes - 13.5)


def _chebyshev(nodes: int, extent_deg: float, centres_deg: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chebyshev nodes on an axis, and the matrix (node, cell) of the Lagrange polynomials at the cells' centres."""
    angle = (2 * np.arange(nodes) + 1) * np.pi / (2 * nodes)
    position = 0.5 * extent_deg * (1 - np.cos(angle))
    difference = centres_deg[None, :] - position[:, None]
    barycentric = ((-1.0) ** np.arange(nodes) * np.sin(angle))[:, None]
    hit = difference == 0
    terms = np.where(hit.any(axis=0), hit, barycentric / np.where(hit, 1.0, difference))
    return position, terms / terms.sum(axis=0)


def reduced_maps(grid: Grid, saliency: Float[np.ndarray, "picture row column"]) -> list[Reduced]:
    """Each map at ever more nodes, and last at its own cells."""
    reduced = []
    for nodes in NODES:
        if nodes <= WORTHWHILE * min(grid.shape):
            y_deg, by_row = _chebyshev(nodes, grid.extent.height_deg, grid.row_centres_deg)
            x_deg, by_column = _chebyshev(nodes, grid.extent.width_deg, grid.column_centres_deg)
            reduced.append(Reduced(y_deg, x_deg, by_row @ saliency @ by_column.T))
    return [*reduced, Reduced(grid.row_centres_deg, grid.column_centres_deg, saliency)]


def _level(grid: Grid, levels: list[Reduced], variances: Float[Array, "2"]) -> Int[Array, ""]:
    """Index of the smallest reduction that carries a Gaussian of these variances."""
    extent = jnp.asarray([grid.extent.height_deg, grid.extent.width_deg])
    spread = jnp.min(jnp.sqrt(variances) / extent)
    needed = jnp.asarray([smallest_relative_spread(len(level.y_deg)) for level in levels[:-1]])
    return jnp.sum(spread < needed)


# --- sums of saliency times a Gaussian -----------------------------------------------------------------------------


class Scene(NamedTuple):
    """What the sums need: each path's picture, reduced and whole, and where each of its steps starts."""

    levels: list[Reduced]  # weights: (path, row, column)
    gaze: Float[Array, "path step 2"]

    @property
    def saliency(self) -> Float[Array, "path row column"]:
        """The maps on their own cells."""
        return self.levels[-1].weights


class Factors(NamedTuple):
    """A Gaussian around each step's gaze, as a factor on each axis' nodes, and the distances behind it."""

    by_row: Float[Array, "path step row"]
    by_column: Float[Array, "path step column"]
    rows: Float[Array, "path step row"]
    columns: Float[Array, "path step column"]


def _factors(grid: Grid, level: Reduced, gaze: Array, variances: Array) -> Factors:
    by_row, by_column = level.y_deg - gaze[..., 0, None], level.x_deg - gaze[..., 1, None]
    height, width = grid.cell_deg
    rows = axis_gaussian(by_row, variances[0], height)
    return Factors(by_row, by_column, rows, axis_gaussian(by_column, variances[1], width))


def value_of(factors: Factors, weights: Float[Array, "path row column"]) -> Float[Array, "path step"]:
    """Sum over all nodes of weight times Gaussian."""
    return total((factors.rows @ weights) * factors.columns)


def moments_of(factors: Factors, weights: Float[Array, "path row column"]) -> Moments:
    """The same sum with its second moments."""
    by_row, by_column, rows, columns = factors
    projected = (rows @ weights) * columns
    return Moments(
        total(projected),
        total(((rows * by_row**2) @ weights) * columns),
        total(projected * by_column**2),
    )


def salient_value(grid: Grid, scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """Sum over all cells of s(z) n(z; gaze, variances) times the cell's area."""
    branches = [lambda gaze, v, it=it: value_of(_factors(grid, it, gaze, v), it.weights) for it in scene.levels]
    return lax.switch(_level(grid, scene.levels, variances), branches, scene.gaze, variances)


def salient_moments(grid: Grid, scene: Scene, variances: Float[Array, "2"]) -> Moments:
    """The same sum with its second moments."""
    branches = [lambda gaze, v, it=it: moments_of(_factors(grid, it, gaze, v), it.weights) for it in scene.levels]
    return lax.switch(_level(grid, scene.levels, variances), branches, scene.gaze, variances)


def salient_sum(grid: Grid, scene: Scene, variances: Float[Array, "2"]) -> Float[Array, "path step"]:
    """`salient_value`, differentiable in the variances. Accurate to 1e-12 of the Gaussian's peak, not of the sum."""
    # Which reduction serves depends on the variances, so a batch of them is taken one by one: under a plain vmap
    # every branch would be computed for every member.
    value = sequential_vmap(partial(salient_value, grid))
    moments = sequential_vmap(partial(salient_moments, grid))

    @jax.custom_jvp
    def differentiable(scene, variances):
        return value(scene, variances)

    @differentiable.defjvp
    def _(primals, tangents):
        (scene, variances), (_, direction) = primals, tangents
        found = moments(scene, variances)
        return found.zeroth, derivative(found, variances, direction)

    return differentiable(scene, variances)


def peak(grid: Grid, variances: Float[Array, "2"]) -> Float[Array, ""]:
    """The Gaussian at its centre, times the cell's area: the scale on which `salient_sum` is accurate."""
    return grid.cell_area_deg2 / (2 * jnp.pi * jnp.sqrt(jnp.prod(variances)))
