"""The sums of modulated salient Gaussians (`modulated_sums.py`) on a GPU: a kernel that holds a whole map in registers.

The same sums and slopes as those of the loop for a processor (`modulated_loop.py`), for one step of one parameter set
each: XLA would write every map to memory and read it again, some thirty times a step. Written in Pallas, which compiles
such kernels from Python (and, slowly, runs them on a processor: so they are tested). Single precision: sums of a step's
cells are good to about 1e-6.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jaxtyping import Bool, Float

from foveate.model.directions import HARMONICS, NEAR_DEG
from foveate.model.history import Array
from foveate.model.modulated_kernel import EMPTY, Common, Kind, Maps, OfSteps, Scenery
from foveate.model.policies import nearest_centre

DIGITS = jnp.float32
SMALLEST = 1e-28  # what a sum is at least: see `modulated_sums.py`
LEAST_RATE = -3e38  # of exp(rate d^2): never infinite, since zero times that is no number
WARPS = 4  # of 32 threads, to a map


def available() -> bool:
    """Whether there is a GPU that such kernels can be compiled for."""
    return jax.default_backend() == "gpu" and _compiler_params() is not None


def _compiler_params() -> Any:
    """How Pallas compiles for a GPU: by its Triton, for as long as JAX has that. Without it XLA does the sums."""
    try:
        from jax.experimental.pallas import triton
    except ImportError:
        return None
    return triton.CompilerParams(num_warps=WARPS, num_stages=1)


def visit(
    kind: Kind,
    maps: Maps,
    scenery: Scenery,
    scored: Bool[Array, " step"],
    given: Float[Array, "step policy"],
    mixture: bool,
    with_slopes: bool,
    common: Common,
    own: OfSteps,
) -> list[Array]:
    """Sums of all scored steps, one where a step is not scored. `with_slopes` also the policies' shares in the mixture
    and how the result changes with what steps have in common and for themselves, as `modulated_loop.visit` has it."""
    padded = [_power_of_two(it) for it in kind.grid.shape]
    sign = 1.0 if kind.grid.extent.origin == "bottom" else -1.0
    centres = (kind.grid.row_centres_deg, kind.grid.column_centres_deg)
    cells = [np.concatenate([it, np.full(size - len(it), it[-1])]) for it, size in zip(centres, padded, strict=True)]
    of_maps = [_padded(it, padded, empty) for it, empty in zip(maps, (EMPTY, 0.0), strict=True)]
    near = jnp.stack(nearest_centre(kind.grid, own.centres), axis=-1)
    arguments: dict[str, Any] = {
        "log_map": of_maps[0],
        "relative": of_maps[1],
        "picture": jnp.asarray(scenery.picture, jnp.int32),
        "scored": jnp.asarray(scored, jnp.int32),
        "up": sign * (cells[0] - scenery.gaze[:, :1]),
        "right": cells[1] - scenery.gaze[:, 1:],
        "rows": jnp.asarray(cells[0]),
        "columns": jnp.asarray(cells[1]),
        "bound": scenery.bound,
        "near": near,
        "places": scenery.places,
        "given": given,
        **common._asdict(),
        **own._asdict(),
    }
    steps, policies = given.shape
    found: dict[str, tuple[int, ...]] = {"sums": (steps, policies)}
    if with_slopes:
        found |= {"share": (steps, policies)}
        found |= {f"to_{name}": (steps, *jnp.shape(it)) for name, it in common._asdict().items()}
        found |= {f"to_{name}": jnp.shape(it) for name, it in own._asdict().items()}
    here = {name: it for name, it in arguments.items() if jnp.size(it)}
    asked = {name: shape for name, shape in found.items() if 0 not in shape}
    answer = pl.pallas_call(
        partial(_kernel, kind, mixture, with_slopes, tuple(here), tuple(asked)),
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float64) for shape in asked.values()],
        grid=(steps,),
        interpret=jax.default_backend() == "cpu",
        compiler_params=None if jax.default_backend() == "cpu" else _compiler_params(),
        name="foveate_modulated_slopes" if with_slopes else "foveate_modulated_sums",
    )(*(jnp.asarray(it) for it in here.values()))
    answered = dict(zip(asked, answer, strict=True))
    return [answered[name] if name in answered else jnp.zeros(shape) for name, shape in found.items()]


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()


def _padded(maps: Float[Array, "picture row column"], size: Sequence[int], empty: float) -> Array:
    """With as many rows and columns as a kernel wants; nothing is on those that were added."""
    if not jnp.size(maps):
        return maps
    missing = [(0, 0), *((0, more - less) for more, less in zip(size, maps.shape[1:], strict=True))]
    return jnp.pad(maps, missing, constant_values=empty).astype(DIGITS)


def _kernel(
    kind: Kind, mixture: bool, with_slopes: bool, given: Sequence[str], asked: Sequence[str], *refs: Any
) -> None:
    """The sums of one step, or ones where it is not scored."""
    it, out = dict(zip(given, refs, strict=False)), dict(zip(asked, refs[len(given) :], strict=True))
    step = pl.program_id(0)

    @pl.when(it["scored"][step] == 0)
    def _():
        for k in range(len(kind.groups)):
            out["sums"][step, k] = jnp.float64(1.0)

    @pl.when(it["scored"][step] != 0)
    def _():
        _one_step(kind, mixture, with_slopes, it, out, step)


def _one_step(kind: Kind, mixture: bool, with_slopes: bool, it: dict[str, Any], out: dict[str, Any], step: Any) -> None:
    """The sums of one step, and their slopes."""
    policies = range(len(kind.groups))
    picture = it["picture"][step]
    log_map = it["log_map"][picture, :, :]
    directions = _Directions.of(it, step) if "harmonics" in it else None
    places = [_Place.of(it, step, j) for j in range(it["places"].shape[1] if "places" in it else 0)]
    log_factor = jnp.zeros(log_map.shape, DIGITS) - _few(it["bound"][step])
    if directions is not None:
        log_factor = directions.add_to(log_factor)
    for place in places:
        log_factor += (place.strength * place.on_rows)[:, None] * place.on_columns[None, :]
    if "drift" in it:
        log_factor += _few(it["drift"][step, 0]) * it["relative"][picture, :, :]
    weights = {group: _weights(kind, it, log_map, log_factor, group) for group in dict.fromkeys(kind.groups)}
    gaussians = [(_Gaussian.of(it, step, k, 0), _Gaussian.of(it, step, k, 1)) for k in policies]
    by_row, sums = [], []
    for k in policies:
        by_row.append(jnp.sum(weights[kind.groups[k]] * gaussians[k][1].values[None, :], axis=1))
        total = jnp.sum((by_row[k] * gaussians[k][0].values).astype(jnp.float64))
        sums.append(jnp.maximum(total, SMALLEST))
        out["sums"][step, k] = sums[k]
    if not with_slopes:
        return
    share, change = _changes(it, step, sums, mixture)
    held: Any = {group: jnp.zeros(log_map.shape, DIGITS) for group in weights}
    for k in policies:
        out["share"][step, k] = share[k]
        rows, columns = gaussians[k]
        by = (_few(change[k]) * rows.values)[:, None]
        by_column = jnp.sum(weights[kind.groups[k]] * by, axis=0)
        rows.slopes_into(out, step, k, 0, _few(change[k]) * by_row[k])
        columns.slopes_into(out, step, k, 1, by_column)
        held[kind.groups[k]] += by * columns.values[None, :]
    for group in held:
        held[group] *= weights[group]
        if group is not None:  # cells of an empty map hold nothing
            part = jnp.where(log_map > EMPTY, held[group] * log_map, DIGITS(0))
            out["to_exponents"][step, group] = _total(part)
    if None in kind.groups and "to_exponents" in out and set(kind.groups) == {None}:
        out["to_exponents"][step, 0] = jnp.float64(0.0)
    together = sum(held.values())
    if directions is not None:
        directions.slopes_into(out, step, together)
    for j, place in enumerate(places):
        place.slopes_into(out, step, j, together)
    if "drift" in it:
        out["to_drift"][step, 0] = _total(together * it["relative"][picture, :, :])


def _few(number: Any) -> Any:
    return number.astype(DIGITS)


def _total(cells: Any) -> Any:
    """The sum over all cells."""
    return jnp.sum(jnp.sum(cells, axis=1).astype(jnp.float64))


def _weights(kind: Kind, it: dict[str, Any], log_map: Any, log_factor: Any, group: int | None) -> Any:
    """The power of the map times the factor; nothing outside the picture."""
    if group is not None:
        return jnp.where(log_map > EMPTY, jnp.exp(_few(it["exponents"][group]) * log_map + log_factor), DIGITS(0))
    bare = jnp.exp(log_factor)
    if log_map.shape == kind.grid.shape:
        return bare
    sizes = zip(log_map.shape, kind.grid.shape, strict=True)
    inside = [jnp.arange(size, dtype=jnp.int32) < most for size, most in sizes]
    return jnp.where(inside[0][:, None] & inside[1][None, :], bare, DIGITS(0))


def _changes(it: dict[str, Any], step: Any, sums: Sequence[Any], mixture: bool) -> tuple[list[Any], list[Any]]:
    """(Share of each policy in the mixture, how the result changes with each sum)."""
    given = [it["given"][step, k] for k in range(len(sums))]
    if not mixture:
        return given, given
    each = [rest - jnp.log(total) for rest, total in zip(given, sums, strict=True)]
    largest = each[0]
    for one in each[1:]:
        largest = jnp.maximum(largest, one)
    largest = jnp.where(largest > -1e300, largest, 0.0)
    parts = [jnp.exp(one - largest) for one in each]
    total = sum(parts[1:], parts[0])
    share = [jnp.where(total > 0, part / jnp.where(total > 0, total, 1.0), 0.0) for part in parts]
    return share, [-mine / total for mine, total in zip(share, sums, strict=True)]


class _Gaussian:
    """A policy's Gaussian on the rows (axis 0) or the columns (1), relative to its value at the nearest cell."""

    def __init__(self, values: Any, beyond: Any, near: Any, variance: Any):
        self.values, self.beyond, self.near, self.variance = values, beyond, near, variance

    @classmethod
    def of(cls, it: dict[str, Any], step: Any, k: int, axis: int) -> "_Gaussian":
        """Distances in all digits, exponentials in fewer."""
        cells = it["rows" if axis == 0 else "columns"][:]
        near, centre, variance = it["near"][step, k, axis], it["centres"][step, k, axis], it["variances"][k, axis]
        squared = jnp.maximum((cells - near) * (cells + near - 2.0 * centre), 0.0)
        rate = _few(jnp.maximum(-0.5 / variance, LEAST_RATE))
        return cls(jnp.exp(rate * _few(squared)), _few(cells - near), near - centre, variance)

    def slopes_into(self, out: dict[str, Any], step: Any, k: int, axis: int, change: Any) -> None:
        """How the result changes with variance and centre, given how it does with the values."""
        once = change * self.values * self.beyond
        first, second = (jnp.sum(part.astype(jnp.float64)) for part in (once, once * self.beyond))
        out["to_variances"][step, k, axis] = 0.5 * (second + 2.0 * self.near * first) / self.variance / self.variance
        out["to_centres"][step, k, axis] = first / self.variance


class _Place:
    """A place that attracts or repels: a bell on rows times one on columns."""

    def __init__(self, strength: Any, variance: Any, on_rows: Any, on_columns: Any, squared: tuple[Any, Any]):
        self.strength, self.variance = strength, variance
        self.on_rows, self.on_columns, self.squared = on_rows, on_columns, squared

    @classmethod
    def of(cls, it: dict[str, Any], step: Any, j: int) -> "_Place":
        """The place with this number."""
        variance = it["place_variance"][j]
        rate = _few(jnp.maximum(-0.5 / variance, LEAST_RATE))
        away = [it[name][:] - it["places"][step, j, axis] for axis, name in enumerate(("rows", "columns"))]
        rows, columns = (_few(part * part) for part in away)
        bells = jnp.exp(rate * rows), jnp.exp(rate * columns)
        return cls(_few(it["strength"][step, j]), variance, *bells, (rows, columns))

    def slopes_into(self, out: dict[str, Any], step: Any, j: int, held: Any) -> None:
        """How the result changes with strength and variance, given each cell's part of the change."""
        rows, columns = self.squared
        near = jnp.sum(held * self.on_columns[None, :], axis=1) * self.on_rows
        far = jnp.sum(held * (self.on_columns * columns)[None, :], axis=1) * self.on_rows
        out["to_strength"][step, j] = jnp.sum(near.astype(jnp.float64))
        spread = jnp.sum((near * rows + far).astype(jnp.float64))
        strength = self.strength.astype(jnp.float64)
        out["to_place_variance"][step, j] = 0.5 * strength * spread / self.variance / self.variance


class _Directions:
    """Harmonics of the direction from the gaze."""

    def __init__(self, cosine: Any, sine: Any, harmonics: Any):
        self.cosine, self.sine, self.harmonics = cosine, sine, harmonics

    @classmethod
    def of(cls, it: dict[str, Any], step: Any) -> "_Directions":
        """Of this step."""
        up, right = _few(it["up"][step, :])[:, None], _few(it["right"][step, :])[None, :]
        inverse = jax.lax.rsqrt(up * up + right * right + DIGITS(NEAR_DEG**2))
        return cls(right * inverse, up * inverse, [_few(it["harmonics"][step, m]) for m in range(2 * HARMONICS)])

    def powers(self) -> Any:
        """cos(m a) and sin(m a) for m = 1, 2, ..."""
        x, y = self.cosine, self.sine
        for m in range(HARMONICS):
            yield m, x, y
            x, y = x * self.cosine - y * self.sine, x * self.sine + y * self.cosine

    def add_to(self, log_factor: Any) -> Any:
        """The log-factor with that of directions."""
        for m, x, y in self.powers():
            log_factor += self.harmonics[m] * x + self.harmonics[HARMONICS + m] * y
        return log_factor

    def slopes_into(self, out: dict[str, Any], step: Any, held: Any) -> None:
        """How the result changes with each harmonic, given each cell's part of the change."""
        for m, x, y in self.powers():
            out["to_harmonics"][step, m] = _total(held * x)
            out["to_harmonics"][step, HARMONICS + m] = _total(held * y)
