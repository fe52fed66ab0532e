"""Simulated scan paths: the model's own density, drawn from fixation by fixation."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float, Int, PRNGKeyArray

from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.model.choices import Choice
from foveate.model.durations import Durations
from foveate.model.history import Array, History
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.model.parts import duration_readers
from foveate.model.policies import Policy
from foveate.precision import check_key, double_precision
from foveate.simulation.draw import Views, draw_cell, draw_durations, draw_from_map, draw_policy
from foveate.simulation.plans import Plan, Start, everyone, imitating, observed, observed_seconds
from foveate.threads import on_all_cores

# Label of a fixation that no policy chose: the first ones, which are drawn from the map, and the padding.
NO_POLICY = -1

# Paths are simulated in batches whose maps take up about this much, so that they stay in a processor's cache; but
# never fewer paths than this at once, since every step of a batch costs some time of its own.
BATCH_BYTES = 2**20
FEWEST_PATHS = 4

# A compiled function serves all data sets whose longest path rounds up to the same multiple of this.
LENGTH_STEP = 16

# Sets the random numbers of durations apart from those of places: beyond the number of any path.
DURATION_TAG = 2**32 - 1


@double_precision
def simulate(
    models: Model | Mapping[Any, Model],
    maps: SaliencyMaps,
    lengths: int | ScanPaths,
    key: PRNGKeyArray,
    *,
    observed_start: bool = False,
    observed_durations: bool = False,
) -> ScanPaths:
    """Scan paths drawn from a model, or from each observer's own: one mapping observer -> model, all of one structure.

    `lengths` is a number of fixations (every observer looks at every picture of `maps` once; a single model is
    observer 1), or scan paths whose observers, pictures, trials and lengths are imitated. The first two fixations of
    a path are drawn from its map; with `observed_start` they are those of the imitated path. The others are centres
    of cells. The column `policy` holds the index of the policy that chose each fixation, -1 where none did. Where the
    model says how long fixations last, the paths have durations, also of observed starts. With `observed_durations`
    every fixation lasts as long as the one in its place in the imitated path: for models that depend on durations and
    do not say them, which predict places given durations.

    Where a fixation of the imitated path was forced, the one in its place is drawn like any other, but flagged in the
    column `forced`: what is left out of statistics and maps of the recorded paths is left out of those of the simulated
    ones. Without any such fixation there is no such column.

    A path depends on the key, on its place among the paths, its observer's parameters and its map, on nothing else.
    """
    check_key(key)
    stacked = Stacked.of(models if isinstance(models, Mapping) else {1: models})
    plan = imitating(lengths, models, maps) if isinstance(lengths, ScanPaths) else everyone(lengths, models, maps)
    start = observed(lengths, maps) if observed_start else None
    if observed_durations:
        plan = replace(plan, duration_s=observed_seconds(lengths))
    return simulate_plan(stacked, maps, plan, key, start)


class Stacked(eqx.Module):
    """The parts of several models of one structure: each parameter has a leading axis over observers."""

    policies: tuple[Policy, ...]
    choice: Choice
    memory: int = eqx.field(static=True)
    durations: Durations | None = None

    def check_durations(self, given: bool) -> None:
        """Refuse models that need durations where there are none, and durations `given` to models that draw theirs."""
        reading = duration_readers(*self.policies, self.choice)
        if reading and self.durations is None and not given:
            raise InputError(
                f"{some_of(reading)} depends on how long fixations last, and the model does not say it: give it "
                "durations, such as Model(..., durations=LogNormalDurations(...)), or simulate paths that imitate "
                "recorded ones with observed_durations=True."
            )
        if given and self.durations is not None:
            raise InputError("observed_durations=True: the model itself says how long fixations last; leave it out.")

    @classmethod
    def of(cls, models: Mapping[Any, Model]) -> "Stacked":
        """The parts of these observers' models; a model that is built differently is an error."""
        if not models:
            raise InputError("no models given: there must be one for each observer.")
        parts = {observer: (model.policies, model.choice, model.durations) for observer, model in models.items()}
        first, built = next(iter(parts.items()))
        for observer, part in parts.items():
            if jax.tree.structure(part) != jax.tree.structure(built):
                raise InputError(
                    f"the model of observer {observer} ({models[observer].name!r}) is not built like that of observer "
                    f"{first} ({models[first].name!r}): all need the same parts; simulate them apart."
                )
        policies, choice, durations = jax.tree.map(lambda *values: np.stack(values), *parts.values())
        return cls(policies, choice, models[first].memory, durations)

    def take(self, who: Int[np.ndarray, " path"]) -> "Stacked":
        """The parts with a leading axis over paths: those of each path's observer."""
        return jax.tree.map(lambda values: np.asarray(values)[who], self)


# --- batches -------------------------------------------------------------------------------------------------------


def simulate_plan(
    models: Stacked, maps: SaliencyMaps, plan: Plan, key: PRNGKeyArray, start: Start | None = None
) -> ScanPaths:
    """The paths of a plan, for use where the models are stacked already."""
    given = plan.duration_s
    models.check_durations(given is not None)
    picture = maps.index_of(plan.picture.tolist())
    longest = int(plan.length.max(initial=1))
    rows, columns, policy = (np.zeros((len(plan.length), longest), dtype=np.int64) for _ in range(3))
    seconds = np.zeros((len(plan.length), longest))
    # A fixation ends with the next saccade: where durations are drawn, paths go one step further than is asked.
    timed = models.durations is not None
    size = -(-(longest + timed) // LENGTH_STEP) * LENGTH_STEP
    lasted = None if given is None else np.pad(given[:, :longest], ((0, 0), (0, size - longest)))

    def run(batch: np.ndarray) -> None:
        drawn = _simulate_batch(
            models.take(plan.who[batch]),
            maps.values[picture[batch]],
            _uniforms(key, batch, size),
            _normals(key, batch, size) if timed else None,
            None if lasted is None else lasted[batch],
            None if start is None else (start.position_deg[batch], start.saliency[batch]),
            np.asarray(plan.length[batch].max() + timed),
            maps.grid,
        )
        for whole, part in zip((rows, columns, policy, seconds), drawn, strict=True):
            whole[batch] = np.asarray(part)[:, :longest]

    on_all_cores(run, _batches(plan.length, maps.grid.cells))

    if given is not None:
        seconds = given[:, :longest]
    real = np.arange(longest) < plan.length[:, None]
    y_deg, x_deg = maps.grid.centre_of(rows, columns)
    if start is not None:
        y_deg[:, :DRAWN_FROM_MAP], x_deg[:, :DRAWN_FROM_MAP] = start.position_deg[..., 0], start.position_deg[..., 1]
    flags = {} if plan.forced is None else {"forced": plan.forced[:, :longest]}
    return ScanPaths(
        extent=maps.grid.extent,
        observer=plan.observer,
        picture=plan.picture,
        trial=plan.trial,
        length=plan.length,
        fixation=np.where(real, np.arange(1, longest + 1), 0),
        x_deg=np.where(real, x_deg, np.nan),
        y_deg=np.where(real, y_deg, np.nan),
        duration_s=np.where(real, seconds, np.nan) if timed or given is not None else None,
        columns={"policy": np.where(real, policy, NO_POLICY)} | flags,
    )


def _batches(length: Int[np.ndarray, " path"], cells: int) -> list[np.ndarray]:
    """Paths in batches of one size and of similar length, the longest first; the last batch repeats its last path."""
    most = max(BATCH_BYTES // (8 * cells), FEWEST_PATHS)
    size = min(most, 2 ** max(len(length) - 1, 0).bit_length())
    order = np.argsort(-length, kind="stable")
    return [order[np.minimum(np.arange(i, i + size), len(order) - 1)] for i in range(0, len(order), size)]


@eqx.filter_jit
def _uniforms(key: PRNGKeyArray, place: Int[Array, " path"], size: int) -> Float[Array, "fixation path 3"]:
    """Three numbers for every fixation, from its index and its path's place alone: for the policy, row and column."""

    def of(index: Array, place: Array) -> Array:
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, place), index), (3,), jnp.float64)

    return jax.vmap(jax.vmap(of, in_axes=(None, 0)), in_axes=(0, None))(jnp.arange(size), place)


@eqx.filter_jit
def _normals(key: PRNGKeyArray, place: Int[Array, " path"], size: int) -> Float[Array, "fixation path"]:
    """A standard normal number for the duration of every fixation, from the same two numbers."""
    for_durations = jax.random.fold_in(key, DURATION_TAG)

    def of(index: Array, place: Array) -> Array:
        own = jax.random.fold_in(jax.random.fold_in(for_durations, place), index)
        return jax.random.normal(own, (), jnp.float64)

    return jax.vmap(jax.vmap(of, in_axes=(None, 0)), in_axes=(0, None))(jnp.arange(size), place)


@eqx.filter_jit
def _simulate_batch(
    models: Stacked,
    saliency: Float[Array, "path row column"],
    uniform: Float[Array, "fixation path 3"],
    normal: Float[Array, "fixation path"] | None,
    lasted: Float[Array, "path fixation"] | None,
    start: tuple[Float[Array, "path start 2"], Float[Array, "path start"]] | None,
    fixations: Int[Array, ""],
    grid: Grid,
) -> tuple[Array, Array, Array, Array]:
    """Row, column, policy and duration of the fixations of a batch of paths, each (path, fixation); only the first
    `fixations` are worked out, and durations only where the models have any and none were given (`lasted`)."""
    views = Views.of(grid, saliency)
    y_deg, x_deg = jnp.asarray(grid.row_centres_deg), jnp.asarray(grid.column_centres_deg)

    def centre(row: Array, column: Array) -> Float[Array, "*path 2"]:
        return jnp.stack([y_deg[row], x_deg[column]], axis=-1)

    first = jax.vmap(partial(draw_from_map, views))(jnp.asarray(uniform)[:DRAWN_FROM_MAP, :, 1:])
    rows, columns, labels = (jnp.full(uniform.shape[:2], NO_POLICY) for _ in range(3))
    rows, columns = rows.at[:DRAWN_FROM_MAP].set(first[0]), columns.at[:DRAWN_FROM_MAP].set(first[1])
    if start is None:
        start = jnp.swapaxes(centre(*first), 0, 1), jax.vmap(views.at)(*first).T
    recent = jnp.maximum(DRAWN_FROM_MAP - 1 - jnp.arange(models.memory), 0)
    history = History(
        jnp.asarray(start[0])[:, recent],
        jnp.asarray(start[1])[:, recent],
        jnp.full(len(saliency), DRAWN_FROM_MAP),
        jnp.zeros((len(saliency), models.memory)),
    )
    seconds = jnp.zeros(uniform.shape[:2])
    if lasted is not None:
        history = replace(history, duration_s=jnp.asarray(lasted)[:, recent])
    elif models.durations is not None and normal is not None:  # the first fixation ended before the first step
        oldest = jnp.full(models.memory, models.memory - 1)
        before = History(
            history.position_deg[:, oldest], history.saliency[:, oldest], history.count - 1, history.duration_s
        )
        first_s = draw_durations(models.durations, normal[0], before, views, history.position_deg[:, 0])
        seconds = seconds.at[0].set(first_s)
        history = replace(history, duration_s=jnp.asarray(history.duration_s).at[:, 1:].set(first_s[:, None]))

    def timed(index: Array, history: History, seconds: Array, ahead: Array) -> tuple[History, Array]:
        """With the duration of the present fixation, which is the one before `index`; `ahead` is where gaze goes."""
        if models.durations is None or normal is None:
            return history, seconds
        lasts = draw_durations(models.durations, normal[index - 1], history, views, ahead)
        known = replace(history, duration_s=jnp.asarray(history.duration_s).at[:, 0].set(lasts))
        return known, jnp.asarray(seconds).at[index - 1].set(lasts)

    def arrived(index: Array) -> Array:
        """How long the fixation that gaze has come to will last, where that was given; 0, not known, where not."""
        return jnp.zeros((len(saliency), 1)) if lasted is None else jnp.asarray(lasted)[:, index, None]

    looks_ahead = models.durations is not None and models.durations.looks_ahead

    def step(index: Array, state: tuple) -> tuple:
        history, rows, columns, labels, seconds = state
        numbers = jnp.asarray(uniform)[index]
        if not looks_ahead:
            history, seconds = timed(index, history, seconds, history.position_deg[:, 0])
        label = draw_policy(models.choice, history, views, numbers[:, 0])
        row, column = draw_cell(models.policies, label, history, views, numbers[:, 1:])
        if looks_ahead:
            history, seconds = timed(index, history, seconds, centre(row, column))
        after = History(
            jnp.concatenate([centre(row, column)[:, None], history.position_deg[:, :-1]], axis=1),
            jnp.concatenate([views.at(row, column)[:, None], history.saliency[:, :-1]], axis=1),
            history.count + 1,
            jnp.concatenate([arrived(index), history.duration_s[:, :-1]], axis=1),
        )
        return after, rows.at[index].set(row), columns.at[index].set(column), labels.at[index].set(label), seconds

    _, *drawn = lax.fori_loop(DRAWN_FROM_MAP, fixations, step, (history, rows, columns, labels, seconds))
    return drawn[0].T, drawn[1].T, drawn[2].T, drawn[3].T
