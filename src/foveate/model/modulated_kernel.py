"""The kernel of sums of modulated salient Gaussians (`modulated_sums.py`): a few steps, with its derivative.

Sums over the cells of each step's picture, for some steps and some policies, each the product of a power of the map, a
Gaussian on rows times one on columns, and the exponential of a log-factor that all policies have in common. The
derivative is written out: with each cell's part of the sums at hand, all of it is again products of one map a step.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int

from foveate.data.grid import Grid
from foveate.model.directions import NEAR_DEG, directions
from foveate.model.history import Array
from foveate.model.log_maps import EMPTY
from foveate.model.policies import nearest_centre, squared_beyond


class Kind(NamedTuple):
    """What is known when the sums are compiled: the group of each policy (None: the map does not matter), the grid, the
    type of numbers, whether a GPU's kernel does them (`modulated_tiles.py`), and how many fixations trails reach back,
    which the loop for processors alone knows (`trail_loop.py`): to others a trail is as many places."""

    groups: tuple[int | None, ...]
    grid: Grid
    digits: str
    tiles: bool = False
    spans: tuple[int, ...] = ()  # of the trails


class Common(NamedTuple):
    """What the sums of all steps depend on; nothing is an array without elements."""

    variances: Float[Array, "policy 2"]
    exponents: Float[Array, " group"]  # of saliency; policies with the same one are a group
    place_variance: Float[Array, " place"]  # deg^2
    narrow: Float[Array, "policy 2"]  # of the Gaussians that are subtracted; none unless a policy is repelled
    trail: Float[Array, "trail 3"]  # strength, variance (deg^2) and decay of each


class OfSteps(NamedTuple):
    """What the sums of each step depend on, other than where gaze is; nothing is an array without elements."""

    centres: Float[Array, "step policy 2"]  # of the policies' Gaussians, (y, x) in degrees
    harmonics: Float[Array, "step harmonic"]  # of directions from the gaze
    strength: Float[Array, "step place"]  # of places that attract or repel
    drift: Float[Array, "step one"]
    ratio: Float[Array, "step policy"]  # of the Gaussian that is subtracted to the other, at the cell nearest to both


class Maps(NamedTuple):
    """All pictures: data, like `Scenery`."""

    log_map: Float[Array, "picture row column"]  # relative to its largest cell; `EMPTY` where the map is empty
    log_relative: Float[Array, "picture row column"]  # what a drift multiplies


class Scenery(NamedTuple):
    """The pictures and the fixations of steps: data, with respect to which nothing is differentiated."""

    picture: Int[Array, " step"]
    gaze: Float[Array, "step 2"]
    places: Float[Array, "step place 2"]
    bound: Float[Array, " step"]  # of the log-factor: see `upper_bound`
    trail: Float[Array, "step trail fixation 2"]  # where gaze has been, most recent first
    in_trail: Bool[Array, "step trail fixation"]  # whether there was such a fixation


class Parts(NamedTuple):
    """What the sums are made of, on rows and columns of the picture."""

    rows: Float[Array, "step policy row"]  # each policy's Gaussian
    columns: Float[Array, "step policy column"]
    place_rows: Float[Array, "step place row"]  # with the strength
    place_columns: Float[Array, "step place column"]
    exponents: Float[Array, "*step group"]  # of all steps; how a result changes with them, step by step
    harmonics: Float[Array, "step harmonic"]
    drift: Float[Array, "step one"]


def upper_bound(own: OfSteps, steepest: Float[Array, " step"]) -> Float[Array, " step"]:
    """A number that the log-factor is nowhere above, given the largest size of what a drift multiplies. It is taken
    from the log-factor and added to the logarithm of the sum."""
    places = jnp.maximum(own.strength, 0)
    drift = jnp.abs(own.drift) * steepest[:, None]
    return jnp.abs(own.harmonics).sum(axis=1) + places.sum(axis=1) + drift.sum(axis=1)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def sums(kind: Kind, maps: Maps, scenery: Scenery, common: Common, own: OfSteps) -> Float[Array, "step policy"]:
    """The sums of every step and policy, with the log-factor less its bound; all steps at once."""
    return _forward(kind, maps, scenery, common, own)[0]


def _forward(kind: Kind, maps: Maps, scenery: Scenery, common: Common, own: OfSteps) -> tuple[Array, Any]:
    return Block.of(kind, maps, scenery, common, own).sums, (maps, scenery, common, own)


def _backward(kind: Kind, kept: Any, change: Float[Array, "step policy"]) -> tuple[Maps, Scenery, Common, OfSteps]:
    maps, scenery, common, own = kept
    of_common, of_own = Block.of(kind, maps, scenery, common, own).change(change)
    return *nowhere((maps, scenery)), jax.tree.map(lambda it: jnp.sum(it, axis=0), of_common), of_own


def nowhere(data: Any) -> Any:
    """Pictures and positions are data: who differentiates in them shall notice."""

    def of(leaf: Array) -> Any:
        whole = not jnp.issubdtype(leaf.dtype, jnp.floating)
        return np.zeros(leaf.shape, jax.dtypes.float0) if whole else jnp.full_like(leaf, np.nan)

    return jax.tree.map(of, data)


class Block(NamedTuple):
    """Some steps: their sums, and all that was worked out on the way and serves the derivative too."""

    kind: Kind
    common: Common
    own: OfSteps
    few: "_Few"
    axes: "tuple[_Axis, _Axis]"
    parts: Parts
    weights: list[Float[Array, "step row column"]]  # of every group: power of the map times factor
    by_row: Float[Array, "step policy row"]  # sums over columns alone
    sums: Float[Array, "step policy"]

    @classmethod
    def of(cls, kind: Kind, maps: Maps, scenery: Scenery, common: Common, own: OfSteps) -> "Block":
        """The sums of these steps."""
        few, axes = _fewer_digits(kind, maps, scenery), _axes(kind, scenery, common, own)
        parts = _parts(kind, axes, common, own)
        log_factor, members = _log_factor(few, parts), _members(kind.groups)
        weights = [_weights(few, parts, group, log_factor) for group, _ in members]
        sums = [_over_columns(it, _some(parts.columns, some)) for it, (_, some) in zip(weights, members, strict=True)]
        by_row = _in_order(kind.groups, sums)
        return cls(kind, common, own, few, axes, parts, weights, by_row, _total(by_row * parts.rows))

    def change(self, change: Float[Array, "step policy"]) -> tuple[Common, OfSteps]:
        """How the result changes with what steps have in common, step by step, and with what they have for themselves,
        where it changes with the sums by `change`."""
        kind, few, parts = self.kind, self.few, self.parts
        change = change.astype(kind.digits)
        rows = change[:, :, None] * parts.rows
        zero, places = jnp.zeros(len(change), kind.digits), parts.place_rows.shape[1] > 0
        by_column: list[Array] = []
        exponents: dict[int, Array] = dict.fromkeys(range(len(parts.exponents)), zero)
        held = jnp.zeros((), kind.digits)
        for weights, (group, some) in zip(self.weights, _members(kind.groups), strict=True):
            of_rows, of_columns = _some(rows, some), _some(parts.columns, some)
            by_column.append(_over_rows(weights, of_rows))
            # Each cell's part of the change, all policies of the group together.
            part = weights * _outer(of_rows, of_columns)
            held = held + part
            if group is not None:
                exponents[group] = _of_cells(part * few.log_map)
        changes = Parts(
            rows=change[:, :, None] * self.by_row,
            columns=_in_order(kind.groups, by_column),
            place_rows=_over_columns(held, parts.place_columns) if places else parts.place_rows,
            place_columns=_over_rows(held, parts.place_rows) if places else parts.place_columns,
            exponents=jnp.stack(list(exponents.values()), axis=-1),
            harmonics=_by_harmonic(few, held) if parts.harmonics.shape[1] else parts.harmonics,
            drift=_of_cells(held * few.log_relative)[:, None] if parts.drift.shape[1] else parts.drift,
        )
        return _change_of_parts(self.axes, self.common, self.own, changes)


sums.defvjp(_forward, _backward)


class _Few(NamedTuple):
    """Data in the digits that the sums have; distances from the gaze as a viewer sees them."""

    log_map: Float[Array, "step row column"]
    log_relative: Float[Array, "step row column"]
    bound: Float[Array, " step"]
    up: Float[Array, "step row"]
    right: Float[Array, "step column"]


def _fewer_digits(kind: Kind, maps: Maps, scenery: Scenery) -> _Few:
    sign = 1.0 if kind.grid.extent.origin == "bottom" else -1.0
    up = sign * (kind.grid.row_centres_deg - scenery.gaze[:, :1])
    right = kind.grid.column_centres_deg - scenery.gaze[:, 1:]
    few = _Few(maps.log_map[scenery.picture], maps.log_relative[scenery.picture], scenery.bound, up, right)
    return jax.tree.map(lambda leaf: leaf.astype(kind.digits), few)


class _Axis(NamedTuple):
    """Gaussians on the rows or on the columns, and what their derivatives are made of."""

    beyond: Float[Array, "step policy cell"]  # distance from the cell nearest to the centre
    nearest: Float[Array, "step policy"]  # how far that one is from the centre
    values: Float[Array, "step policy cell"]
    squared: Float[Array, "step place cell"]  # distance from each place
    places: Float[Array, "step place cell"]


def _axis(kind: Kind, scenery: Scenery, common: Common, own: OfSteps, axis: int) -> _Axis:
    """Distances in all digits, exponentials in fewer."""
    cells = (kind.grid.row_centres_deg, kind.grid.column_centres_deg)[axis]
    near, centre = nearest_centre(kind.grid, own.centres)[axis], own.centres[..., axis]
    squared = squared_beyond(cells, near[..., None], centre[..., None]).astype(kind.digits)
    from_place = jnp.square(cells - scenery.places[:, :, axis, None]).astype(kind.digits)
    # Never infinite, since zero times that would be no number at the nearest cell.
    least = float(jnp.finfo(kind.digits).min)
    rate, place_rate = (
        jnp.maximum(-0.5 / it, least).astype(kind.digits) for it in (common.variances, common.place_variance)
    )
    return _Axis(
        beyond=(cells - near[..., None]).astype(kind.digits),
        nearest=(near - centre).astype(kind.digits),
        values=jnp.exp(rate[:, axis, None] * squared),
        squared=from_place,
        places=jnp.exp(place_rate[:, None] * from_place),
    )


def _axes(kind: Kind, scenery: Scenery, common: Common, own: OfSteps) -> tuple[_Axis, _Axis]:
    return _axis(kind, scenery, common, own, 0), _axis(kind, scenery, common, own, 1)


def _parts(kind: Kind, axes: tuple[_Axis, _Axis], common: Common, own: OfSteps) -> Parts:
    few = jax.tree.map(lambda leaf: leaf.astype(kind.digits), own)
    return Parts(
        rows=axes[0].values,
        columns=axes[1].values,
        place_rows=few.strength[:, :, None] * axes[0].places,
        place_columns=axes[1].places,
        exponents=common.exponents.astype(kind.digits),
        harmonics=few.harmonics,
        drift=few.drift,
    )


def _change_of_parts(axes: tuple[_Axis, _Axis], common: Common, own: OfSteps, changes: Parts) -> tuple[Common, OfSteps]:
    """How the result changes with what steps have in common and for themselves, given how it does with the parts; all
    of it step by step."""
    variances, centres = [], []
    for axis, change in enumerate((changes.rows, changes.columns)):
        it = axes[axis]
        once = change * it.values * it.beyond
        first, second = _total(once), _total(once * it.beyond)
        variance = common.variances[:, axis]
        variances.append(0.5 * (second + 2 * it.nearest * first) / variance / variance)
        centres.append(first / variance)
    by_row = changes.place_rows * axes[0].places
    by_column = changes.place_columns * axes[1].places
    spread = own.strength * _total(by_row * axes[0].squared) + _total(by_column * axes[1].squared)
    of_common = Common(
        variances=jnp.stack(variances, axis=-1),
        exponents=changes.exponents.astype(jnp.float64),
        place_variance=0.5 * spread / common.place_variance / common.place_variance,
        narrow=jnp.zeros((len(spread), 0, 2)),
        trail=jnp.zeros((len(spread), 0, 3)),
    )
    return of_common, OfSteps(
        centres=jnp.stack(centres, axis=-1),
        harmonics=changes.harmonics.astype(jnp.float64),
        strength=_total(by_row),
        drift=changes.drift.astype(jnp.float64),
        ratio=jnp.zeros((len(spread), 0)),
    )


def _total(cells: Float[Array, "step some cell"]) -> Float[Array, "step some"]:
    """The sum over cells, as a product for the reason of `kernels.total`."""
    return (cells @ jnp.ones(cells.shape[-1], cells.dtype)).astype(jnp.float64)


def _of_cells(values: Float[Array, "step row column"]) -> Float[Array, " step"]:
    """The sum over all cells."""
    ones = [jnp.ones(size, values.dtype) for size in values.shape[1:]]
    return (values @ ones[1]) @ ones[0]


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
# has its own product here. Sums of a few outer products are one: written out, they are no longer vectorised once fused.


def _over_columns(weights: Array, columns: Float[Array, "step policy column"]) -> Float[Array, "step policy row"]:
    return jnp.stack([jnp.einsum("trc,tc->tr", weights, columns[:, k]) for k in range(columns.shape[1])], axis=1)


def _over_rows(weights: Array, rows: Float[Array, "step policy row"]) -> Float[Array, "step policy column"]:
    return jnp.stack([jnp.einsum("trc,tr->tc", weights, rows[:, k]) for k in range(rows.shape[1])], axis=1)


def _outer(rows: Float[Array, "step some row"], columns: Float[Array, "step some column"]) -> Array:
    """The sum over `some` of rows times columns."""
    return jnp.einsum("tkr,tkc->trc", rows, columns, precision="highest")


def _weights(few: _Few, parts: Parts, group: int | None, log_factor: Array) -> Float[Array, "step row column"]:
    """The power of the map times the factor: one exponential."""
    if group is None:
        return jnp.broadcast_to(jnp.exp(log_factor), few.log_map.shape)
    power = jnp.where(few.log_map > EMPTY, parts.exponents[group] * few.log_map, -jnp.inf)
    return jnp.exp(power + log_factor)


def _log_factor(few: _Few, parts: Parts) -> Float[Array, "..."]:
    """Log F(z) of every step, relative to its bound."""
    log_factor = -few.bound[:, None, None]
    if parts.harmonics.shape[1]:
        inverse = _inverse_distance(few)
        sine, cosine = few.up[:, :, None] * inverse, few.right[:, None, :] * inverse
        values, weights = directions(sine, cosine), parts.harmonics[:, :, None, None]
        log_factor = sum((weights[:, index] * value for index, value in enumerate(values)), log_factor)
    if parts.place_rows.shape[1]:
        log_factor = log_factor + _outer(parts.place_rows, parts.place_columns)
    if parts.drift.shape[1]:
        log_factor = log_factor + parts.drift[:, :, None] * few.log_relative
    return log_factor


def _inverse_distance(few: _Few) -> Float[Array, "step row column"]:
    near = jnp.asarray(NEAR_DEG**2, few.up.dtype)
    return lax.rsqrt(jnp.square(few.up)[:, :, None] + jnp.square(few.right)[:, None, :] + near)


def _by_harmonic(few: _Few, held: Float[Array, "step row column"]) -> Float[Array, "step harmonic"]:
    """Sums of `held` times each of the `directions`."""
    inverse = _inverse_distance(few)
    sine, cosine = few.up[:, :, None] * inverse, few.right[:, None, :] * inverse
    return jnp.stack([_of_cells(held * value) for value in directions(sine, cosine)], axis=-1)
