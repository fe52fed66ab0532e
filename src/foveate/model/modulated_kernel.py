"""The kernel of sums of modulated salient Gaussians (`modulated_sums.py`): one row of steps, with its derivative.

Sums over the cells of a picture, for some steps on it and some policies, each the product of a power of the map, a
Gaussian on rows times one on columns, and the exponential of a log-factor that all policies have in common. The
derivative is written out: with each cell's part of the sums at hand, all of it is again products of one map a step.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from foveate.data.grid import Grid
from foveate.model.factors import NEAR_DEG, directions
from foveate.model.history import Array
from foveate.model.policies import nearest_centre, squared_beyond


class Kind(NamedTuple):
    """What is known when the sums are compiled: the group of each policy (None: the map does not matter), the grid, and
    the type of numbers."""

    groups: tuple[int | None, ...]
    grid: Grid
    digits: str


class Shape(NamedTuple):
    """What the sums of a row of steps depend on, other than where gaze is; nothing is an array without elements."""

    centres: Float[Array, "step policy 2"]  # of the policies' Gaussians, (y, x) in degrees
    variances: Float[Array, "policy 2"]
    exponents: Float[Array, " group"]  # of saliency; policies with the same one are a group
    harmonics: Float[Array, "step 5"]  # of directions from the gaze
    strength: Float[Array, "step place"]  # of places that attract or repel
    place_variance: Float[Array, " place"]  # deg^2
    drift: Float[Array, "step one"]


class Scenery(NamedTuple):
    """The picture and the fixations of a row of steps: data, with respect to which nothing is differentiated."""

    log_map: Float[Array, "row column"]  # relative to its largest cell; 0 where the map is empty
    positive: Float[Array, "row column"]  # 0 where the map is empty, else 1
    log_relative: Float[Array, "row column"]  # what a drift multiplies
    gaze: Float[Array, "step 2"]
    places: Float[Array, "step place 2"]


class Parts(NamedTuple):
    """What the sums are made of, on rows and columns of the picture."""

    rows: Float[Array, "step policy row"]  # each policy's Gaussian
    columns: Float[Array, "step policy column"]
    place_rows: Float[Array, "step place row"]  # with the strength
    place_columns: Float[Array, "step place column"]
    exponents: Float[Array, " group"]
    harmonics: Float[Array, "step 5"]
    drift: Float[Array, "step one"]


def upper_bound(shape: Shape, scenery: Scenery) -> Float[Array, " step"]:
    """A number that the log-factor is nowhere above. It is taken from it and added to the logarithm of the sum."""
    steepest = jnp.abs(shape.drift) * jnp.max(jnp.abs(scenery.log_relative))
    places = jnp.maximum(shape.strength, 0)
    return jnp.abs(shape.harmonics).sum(axis=1) + places.sum(axis=1) + steepest.sum(axis=1)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def sums(kind: Kind, scenery: Scenery, bound: Float[Array, " step"], shape: Shape) -> Float[Array, "step policy"]:
    """The sums of every step and policy of a row, with the log-factor less its bound."""
    return _forward(kind, scenery, bound, shape)[0]


def _forward(kind: Kind, scenery: Scenery, bound: Array, shape: Shape) -> tuple[Array, Any]:
    """The sums; kept for the derivative: what they are made of, and the sums over columns."""
    few, parts = _fewer_digits(kind, scenery, bound), _parts(kind, scenery, shape)
    factor = _factor(kind, few, parts)
    by_row = _in_order(
        kind.groups,
        [_over_columns(_weights(few, parts, group, factor), _some(parts.columns, some))
         for group, some in _members(kind.groups)],
    )  # fmt: skip
    return jnp.sum(by_row * parts.rows, axis=-1).astype(jnp.float64), (scenery, bound, shape, by_row)


def _backward(kind: Kind, kept: Any, change: Float[Array, "step policy"]) -> tuple[Scenery, Array, Shape]:
    """How the result changes with the shape, where it changes with the sums by `change`."""
    scenery, bound, shape, by_row = kept
    few = _fewer_digits(kind, scenery, bound)
    parts, to_shape = jax.vjp(partial(_parts, kind, scenery), shape)
    change = change.astype(kind.digits)
    rows = change[:, :, None] * parts.rows
    factor, zero = _factor(kind, few, parts), jnp.zeros((), kind.digits)
    places = parts.place_rows.shape[1] > 0
    by_column, exponents, held = [], dict.fromkeys(range(len(parts.exponents)), zero), zero
    for group, some in _members(kind.groups):
        weights, of_rows, of_columns = (
            _weights(few, parts, group, factor), _some(rows, some), _some(parts.columns, some))  # fmt: skip
        by_column.append(_over_rows(weights, of_rows))
        # Each cell's part of the change, all policies of the group together.
        part = weights * _outer(of_rows, of_columns)
        held = held + part
        if group is not None:
            exponents[group] = jnp.sum(jnp.einsum("trc,rc->t", part, few.scenery.log_map))
    changes = Parts(
        rows=change[:, :, None] * by_row,
        columns=_in_order(kind.groups, by_column),
        place_rows=_over_columns(held, parts.place_columns) if places else parts.place_rows,
        place_columns=_over_rows(held, parts.place_rows) if places else parts.place_columns,
        exponents=jnp.stack(list(exponents.values())),
        harmonics=_by_harmonic(kind, few, held) if parts.harmonics.shape[1] else parts.harmonics,
        drift=jnp.einsum("trc,rc->t", held, few.scenery.log_relative)[:, None][:, : parts.drift.shape[1]],
    )
    # Pictures and positions are data: who differentiates in them shall notice.
    nowhere = jax.tree.map(partial(jnp.full_like, fill_value=np.nan), (scenery, bound))
    return (*nowhere, *to_shape(changes))


sums.defvjp(_forward, _backward)


class _Few(NamedTuple):
    """Data in the digits that the sums have; distances from the gaze as a viewer sees them."""

    scenery: Scenery
    bound: Float[Array, " step"]
    up: Float[Array, "step row"]
    right: Float[Array, "step column"]


def _fewer_digits(kind: Kind, scenery: Scenery, bound: Array) -> _Few:
    sign = 1.0 if kind.grid.extent.origin == "bottom" else -1.0
    up = sign * (kind.grid.row_centres_deg - scenery.gaze[:, :1])
    right = kind.grid.column_centres_deg - scenery.gaze[:, 1:]
    return jax.tree.map(lambda leaf: leaf.astype(kind.digits), _Few(scenery, bound, up, right))


def _parts(kind: Kind, scenery: Scenery, shape: Shape) -> Parts:
    """Gaussians on rows and columns: distances in all digits, exponentials in fewer."""
    few = jax.tree.map(lambda leaf: leaf.astype(kind.digits), shape)
    near = nearest_centre(kind.grid, shape.centres)
    rate, place_rate = -0.5 / few.variances, -0.5 / few.place_variance

    def gaussians(axis: int, cells: np.ndarray) -> Array:
        squared = squared_beyond(cells, near[axis][..., None], shape.centres[..., axis, None])
        return jnp.exp(rate[:, axis, None] * squared.astype(kind.digits))

    def places(axis: int, cells: np.ndarray) -> Array:
        squared = jnp.square(cells - scenery.places[:, :, axis, None])
        return jnp.exp(place_rate[:, None] * squared.astype(kind.digits))

    y, x = kind.grid.row_centres_deg, kind.grid.column_centres_deg
    return Parts(
        rows=gaussians(0, y),
        columns=gaussians(1, x),
        place_rows=few.strength[:, :, None] * places(0, y),
        place_columns=places(1, x),
        exponents=few.exponents,
        harmonics=few.harmonics,
        drift=few.drift,
    )


def _members(groups: tuple[int | None, ...]) -> list[tuple[int | None, list[int]]]:
    """The policies of every group."""
    return [(group, [k for k, it in enumerate(groups) if it == group]) for group in dict.fromkeys(groups)]


def _some(parts: Float[Array, "step policy cell"], which: list[int]) -> Float[Array, "step some cell"]:
    """The parts of some policies; stacked, since a gather would cost more than the sums."""
    return parts if which == list(range(parts.shape[1])) else jnp.stack([parts[:, k] for k in which], axis=1)


def _in_order(groups: tuple[int | None, ...], parts: list[Array]) -> Float[Array, "step policy cell"]:
    """What was found group by group, policy by policy."""
    found = {k: part[:, place] for part, (_, some) in zip(parts, _members(groups), strict=True)
             for place, k in enumerate(some)}  # fmt: skip
    return jnp.stack([found[k] for k in range(len(groups))], axis=1)


# XLA multiplies a matrix with single vectors several times as fast as with matrices of a few columns: so each vector
# has its own product here, and sums of a few outer products are written out, to be fused with what comes of them.


def _over_columns(weights: Array, columns: Float[Array, "step policy column"]) -> Float[Array, "step policy row"]:
    form = "rc,tc->tr" if weights.ndim == 2 else "trc,tc->tr"
    return jnp.stack([jnp.einsum(form, weights, columns[:, k]) for k in range(columns.shape[1])], axis=1)


def _over_rows(weights: Array, rows: Float[Array, "step policy row"]) -> Float[Array, "step policy column"]:
    form = "rc,tr->tc" if weights.ndim == 2 else "trc,tr->tc"
    return jnp.stack([jnp.einsum(form, weights, rows[:, k]) for k in range(rows.shape[1])], axis=1)


def _outer(rows: Float[Array, "step some row"], columns: Float[Array, "step some column"]) -> Array:
    """The sum over `some` of rows times columns."""
    return sum(
        (rows[:, k, :, None] * columns[:, k, None, :] for k in range(1, rows.shape[1])),
        rows[:, 0, :, None] * columns[:, 0, None, :],
    )


def _weights(few: _Few, parts: Parts, group: int | None, factor: Array) -> Float[Array, "..."]:
    """The power of the map times the factor; without a step's axis where there is no factor."""
    log_map, positive = few.scenery.log_map, few.scenery.positive
    power = jnp.ones_like(log_map) if group is None else positive * jnp.exp(parts.exponents[group] * log_map)
    return power if factor.ndim == 0 else power * factor


def _factor(kind: Kind, few: _Few, parts: Parts) -> Float[Array, "..."]:
    """F(z) of every step, relative to its bound."""
    harmonics, places, drift = (it.shape[1] > 0 for it in (parts.harmonics, parts.place_rows, parts.drift))
    if not (harmonics or places or drift):
        return jnp.ones((), kind.digits)
    log_factor = -few.bound[:, None, None]
    if harmonics:
        inverse = _inverse_distance(few)
        sine, cosine = few.up[:, :, None] * inverse, few.right[:, None, :] * inverse
        values, weights = directions(sine, cosine), parts.harmonics[:, :, None, None]
        log_factor = sum((weights[:, index] * value for index, value in enumerate(values)), log_factor)
    if places:
        log_factor = log_factor + _outer(parts.place_rows, parts.place_columns)
    if drift:
        log_factor = log_factor + parts.drift[:, :, None] * few.scenery.log_relative
    return jnp.exp(log_factor)


def _inverse_distance(few: _Few) -> Float[Array, "step row column"]:
    near = jnp.asarray(NEAR_DEG**2, few.up.dtype)
    return lax.rsqrt(jnp.square(few.up)[:, :, None] + jnp.square(few.right)[:, None, :] + near)


def _by_harmonic(kind: Kind, few: _Few, held: Float[Array, "step row column"]) -> Float[Array, "step 5"]:
    """Sums of `held` times each of the `directions`: of polynomials in the distances on rows and columns, so that all
    of them are matrix products of `held` over powers of the distance."""
    inverse = _inverse_distance(few)
    once = held * inverse
    twice = once * inverse
    fourth = twice * inverse * inverse
    up, right, one = few.up, few.right, jnp.ones_like(few.right)

    def moments(part: Array, *powers: Array) -> list[Array]:
        return [jnp.einsum("trc,tc->tr", part, power) for power in powers]

    right_1, zeroth_1 = moments(once, right, one)
    squared_2, right_2, zeroth_2 = moments(twice, right**2, right, one)
    fourth_4, squared_4, zeroth_4 = moments(fourth, right**4, right**2, one)
    by_row = (
        right_1,
        up * zeroth_1,
        squared_2 - up**2 * zeroth_2,
        2 * up * right_2,
        fourth_4 - 6 * up**2 * squared_4 + up**4 * zeroth_4,
    )
    return jnp.stack([jnp.sum(it, axis=1) for it in by_row], axis=-1)
