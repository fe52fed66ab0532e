"""The maps that posterior draws predict, read at the fixated cell: log-probability, NSS and AUC of every draw and step.

A map is made, read and forgotten: what is held is a few maps at a time and the results, whatever the number of draws
and steps. Beside the draws one by one stands the posterior predictive density, the mean of their maps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from foveate.errors import InputError, some_of
from foveate.evaluate.policy_maps import normalised
from foveate.model.history import Array
from foveate.model.kernels import total
from foveate.model.likelihood import check_model_and_steps, choice_log_probability, target_log_weights
from foveate.model.model import Model, mix
from foveate.model.packing import packed_with
from foveate.model.steps import Steps
from foveate.threads import on_all_cores

# Most draws in one call of the compiled function; they are shared out evenly over as few calls as that allows.
GROUP = 32

# Densities that differ by less than this share are equal: what is left are roundings, in which a compiled function may
# differ even where it works out one cell twice. The fixated cell must tie with itself, and so must cells of one value.
TIE = 1e-12

# A map whose standard deviation is below this share of its mean is flat but for rounding, and has no z-scores.
FLAT = 1e-12


@dataclass(frozen=True, eq=False)
class MapScores:
    """Scores of predicted maps at the fixated cells: over (draw, step), or over (step,) for a single density.

    `density` is the probability of the fixated cell as the map holds it, and `density_at` that of other cells asked
    for; log-probabilities are worked out apart, and do not end where small numbers do.
    """

    log_probability_nats: Float[np.ndarray, "*draw step"]
    nss: Float[np.ndarray, "*draw step"]
    auc: Float[np.ndarray, "*draw step"]
    density: Float[np.ndarray, "*draw step"]
    density_at: Float[np.ndarray, "*draw step place"]

    def means(self) -> dict[str, Float[np.ndarray, " step"]]:
        """The three scores of every step by name, averaged over the draws where there are any."""
        names = ("log_probability_nats", "nss", "auc")
        return {name: getattr(self, name).reshape(-1, self.density.shape[-1]).mean(axis=0) for name in names}


FIELDS = fields(MapScores)


@dataclass(frozen=True, eq=False)
class DrawScores:
    """Scores of every draw, and of the posterior predictive density: the mean of the draws' densities."""

    each: MapScores  # (draw, step)
    predictive: MapScores  # (step,)

    @classmethod
    def joined(cls, parts: Sequence["DrawScores"]) -> "DrawScores":
        """The steps of several parts, one behind the other: of the observers of a fold, say, draw beside draw."""
        counts = [len(part.each.density) for part in parts]
        if len(set(counts)) != 1:
            raise InputError(f"parts of {some_of(counts) or 'no'} draws: give one or more, with equally many draws.")

        def together(parts: list[MapScores], axis: int) -> MapScores:
            joined = {it.name: np.concatenate([getattr(part, it.name) for part in parts], axis) for it in FIELDS}
            return MapScores(**joined)

        return cls(together([it.each for it in parts], 1), together([it.predictive for it in parts], 0))


def score_draws(
    model: Model,
    steps: Steps,
    draws: Float[np.ndarray, "draw number"] | Mapping[str, Array],
    cells: Int[np.ndarray, "step place"] | None = None,
) -> DrawScores:
    """Scores of every (draw, step) and of the predictive density; steps in the order of their paths, without padding.

    `draws` are vectors on the real line, or every parameter by name with a leading axis over the draws. `cells` asks
    for the densities of further cells, for every step as many, each counted row by row: row * columns + column.
    """
    check_model_and_steps(model, steps)
    if steps.memory < model.memory:
        raise InputError(
            f"model {model.name!r} looks {model.memory} fixations back, the steps hold {steps.memory}: make them with "
            f"Steps.of(data, memory={model.memory})."
        )
    vectors, cells = vectors_of(model, draws), check_cells(steps, cells)
    rows, asked, filled, kept = packed_with(steps, cells)
    found = on_all_cores(partial(_row, model, rows, vectors, asked), filled)

    def scores(index: int, draws: int) -> MapScores:
        columns = zip(*(parts[index] for parts in found), strict=True)
        steps_kept = (slice(None),) * draws + (kept,)
        return MapScores(*(np.concatenate(column, axis=draws)[steps_kept] for column in columns))

    return DrawScores(scores(0, 1), scores(1, 0))


def vectors_of(
    model: Model, draws: Float[np.ndarray, "draw number"] | Mapping[str, Array]
) -> Float[np.ndarray, "draw number"]:
    """Draws as vectors on the real line, checked."""
    size = len(model.labels)
    if isinstance(draws, Mapping):
        if set(draws) != set(model.parameters):
            wrong = sorted(set(draws) ^ set(model.parameters), key=str)
            raise InputError(f"parameters {some_of(wrong)} do not match those of model {model.name!r}.")
        if not draws:
            raise InputError(f"model {model.name!r} has no parameters: give its draws as an array of shape (draws, 0).")
        values = {name: np.asarray(draws[name], dtype=np.float64) for name in model.parameters}
        for name, value in values.items():
            shape = np.shape(model.parameters[name])
            if value.shape[1:] != shape or value.ndim != len(shape) + 1:
                raise InputError(f"{name} has shape {value.shape}: give (draws, {', '.join(map(str, shape))}).")
        counts = sorted({len(value) for value in values.values()})
        if len(counts) > 1:
            raise InputError(f"parameters with {some_of(counts)} draws: give as many of each.")
        with jax.enable_x64(True):
            parts = [
                np.asarray(model.priors[name].to_real(value)).reshape(counts[0], -1) for name, value in values.items()
            ]
        vectors = np.concatenate(parts, axis=1)
    else:
        vectors = np.asarray(draws, dtype=np.float64)
    if vectors.ndim != 2 or vectors.shape[1] != size:
        raise InputError(
            f"draws of shape {vectors.shape}: model {model.name!r} has {size} numbers; give (draws, {size})."
        )
    if len(vectors) == 0:
        raise InputError("no draws given: a score needs at least one.")
    bad = np.argwhere(~np.isfinite(vectors))
    if len(bad):
        draw, number = bad[0]
        raise InputError(f"draw {draw}: {model.labels[number]} has a value that it cannot have; remove such draws.")
    return vectors


def check_cells(steps: Steps, cells: Any) -> Int[np.ndarray, "step place"]:
    """Indices of cells for every step, none if None is given; what is no cell of the grid is refused."""
    if cells is None:
        return np.zeros((steps.count, 0), dtype=np.int64)
    asked = np.asarray(cells)
    if asked.ndim != 2 or len(asked) != steps.count or not np.issubdtype(asked.dtype, np.integer):
        raise InputError(
            f"cells of shape {asked.shape} and type {asked.dtype}: give whole numbers, ({steps.count} steps, places)."
        )
    if asked.size and not (asked.min() >= 0 and asked.max() < steps.grid.cells):
        raise InputError(
            f"cells from {asked.min()} to {asked.max()}: the grid has cells 0 to {steps.grid.cells - 1}, row by row."
        )
    return asked.astype(np.int64)


def _row(
    model: Model, rows: Steps, vectors: np.ndarray, asked: np.ndarray, index: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Scores of all draws on one row of steps, over (draw, step), and those of the predictive density, over (step,)."""
    row = rows.paths(slice(index, index + 1))
    fixated = row.row[0] * row.grid.columns + row.column[0]
    places = np.concatenate([fixated[:, None], asked[index]], axis=1)
    summed = jnp.zeros((len(fixated), row.grid.cells))
    found = []
    size = -(-len(vectors) // -(-len(vectors) // GROUP))
    for start in range(0, len(vectors), size):
        group = vectors[start : start + size]
        counted = np.arange(size) < len(group)
        group = np.concatenate([group, group[-1:].repeat(size - len(group), axis=0)])
        summed, scores = _group(model, row, group, counted, places, summed)
        found.append([np.asarray(values)[counted] for values in scores])
    each = [np.concatenate(values) for values in zip(*found, strict=True)]
    predictive = [np.asarray(values) for values in _read_mean(summed / len(vectors), places)]
    log_mean = logsumexp(each[0], axis=0) - np.log(len(vectors))  # in logs, so that it does not end at 1e-308
    return each, [log_mean, *predictive]


@eqx.filter_jit
def _group(
    model: Model,
    row: Steps,
    vectors: Float[Array, "draw number"],
    counted: Bool[Array, " draw"],
    places: Int[Array, "step place"],
    summed: Float[Array, "step cell"],
) -> tuple[Array, tuple[Array, ...]]:
    """Scores of some draws on a row of steps, and the sum of all draws' maps with theirs added."""
    scene, picture = row.scene(), row.picture_of(jnp.asarray(row.picture)[0])
    history = jax.tree.map(lambda leaf: leaf[0], row.history)

    def one(summed: Array, draw: tuple[Array, Array]) -> tuple[Array, tuple[Array, ...]]:
        vector, counts = draw
        at = model.from_real(vector)
        choice = choice_log_probability(at, row)[0]
        parts = [normalised(policy, row, scene, history, picture) for policy in at.policies]
        normalisers = jnp.stack([log_sums for log_sums, _ in parts], axis=-1)
        weights = target_log_weights(at.policies, row)[0]
        shares = [jnp.exp(choice[:, index, None, None]) * maps for index, (_, maps) in enumerate(parts)]
        # The result of a branch is stored, while of a plain expression every score would work out the cells again.
        maps = lax.cond(counts, lambda maps: maps, jnp.zeros_like, jnp.reshape(sum(shares), summed.shape))
        log_probability = mix(choice, weights - normalisers, axis=-1)
        return summed + maps, (log_probability, *_read(maps, places))

    # One draw after another: which way a sum over cells takes depends on the parameters, and a batch would take all.
    return lax.scan(one, summed, (vectors, counted))


def _read(
    maps: Float[Array, "step cell"], places: Int[Array, "step place"]
) -> tuple[Float[Array, " step"], Float[Array, " step"], Float[Array, " step"], Float[Array, "step other"]]:
    """NSS, AUC and density of the fixated cell (the first place), and the densities of the other places."""
    cells = maps.shape[-1]
    read = jnp.take_along_axis(maps, places, axis=-1)
    fixated = read[:, 0]
    # Maps sum to one, so that 1 / cells is their mean but for rounding: squares around it do not cancel.
    beyond = maps - 1 / cells
    mean = total(beyond) / cells
    deviation = jnp.sqrt(jnp.maximum(jnp.einsum("sc,sc->s", beyond, beyond) / cells - mean**2, 0.0))
    flat = deviation <= FLAT / cells
    nss = jnp.where(flat, 0.0, (fixated - 1 / cells - mean) / jnp.where(flat, 1.0, deviation))
    # A cell below counts one, an equal one a half; the fixated cell is one of all and ties with itself.
    below = jnp.where(maps < fixated[:, None] * (1 - TIE), 0.5, 0.0)
    not_above = jnp.where(maps <= fixated[:, None] * (1 + TIE), 0.5, 0.0)
    return nss, total(below + not_above) / cells, fixated, read[:, 1:]


_read_mean = jax.jit(_read)
