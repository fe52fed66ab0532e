"""Simulated scan paths: the model's own density, drawn from fixation by fixation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.model.choices import Choice
from foveate.model.history import Array, History
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.model.policies import Policy
from foveate.precision import check_key, double_precision
from foveate.simulation.draw import Views, draw_cell, draw_from_map, draw_policy
from foveate.threads import on_all_cores

# Label of a fixation that no policy chose: the first ones, which are drawn from the map, and the padding.
NO_POLICY = -1

# Paths are simulated in batches whose maps take up about this much, so that they stay in a processor's cache; but
# never fewer paths than this at once, since every step of a batch costs some time of its own.
BATCH_BYTES = 2**20
FEWEST_PATHS = 4

# A compiled function serves all data sets whose longest path rounds up to the same multiple of this.
LENGTH_STEP = 16


@double_precision
def simulate(
    models: Model | Mapping[Any, Model],
    maps: SaliencyMaps,
    lengths: int | ScanPaths,
    key: PRNGKeyArray,
    *,
    observed_start: bool = False,
) -> ScanPaths:
    """Scan paths drawn from a model, or from each observer's own: one mapping observer -> model, all of one structure.

    `lengths` is a number of fixations (every observer looks at every picture of `maps` once; a single model is
    observer 1), or scan paths whose observers, pictures, trials and lengths are imitated. The first two fixations of
    a path are drawn from its map; with `observed_start` they are those of the imitated path. The others are centres
    of cells. The column `policy` holds the index of the policy that chose each fixation, -1 where none did.

    Where a fixation of the imitated path was forced, the one in its place is drawn like any other, but flagged in the
    column `forced`: what is left out of statistics and maps of the recorded paths is left out of those of the simulated
    ones. Without any such fixation there is no such column.

    A path depends on the key, on its place among the paths, its observer's parameters and its map, on nothing else.
    """
    check_key(key)
    stacked = Stacked.of(models if isinstance(models, Mapping) else {1: models})
    plan = _imitate(lengths, models, maps) if isinstance(lengths, ScanPaths) else _everyone(lengths, models, maps)
    start = _observed_start(lengths, maps) if observed_start else None
    return simulate_plan(stacked, maps, plan, key, start)


@dataclass(frozen=True, eq=False)
class Plan:
    """Who looks at which picture for how long, path by path; `who` is the observer's place among the stacked models.

    `forced` flags the fixations that were forced in imitated paths; None where none was, or nothing is imitated.
    """

    observer: np.ndarray
    picture: np.ndarray
    trial: np.ndarray
    length: Int[np.ndarray, " path"]
    who: Int[np.ndarray, " path"]
    forced: Bool[np.ndarray, "path fixation"] | None = None

    @classmethod
    def everyone(cls, observers: list, pictures: list, length: int) -> "Plan":
        """Every observer on every picture, for `length` fixations."""
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise InputError(f"lengths = {length!r}: give a number of fixations, 1 or more, or scan paths to imitate.")
        who = np.repeat(np.arange(len(observers)), len(pictures))
        return cls(
            observer=_names("observer", observers)[who],
            picture=np.tile(_names("picture", pictures), len(observers)),
            trial=np.ones(len(who), dtype=np.int64),
            length=np.full(len(who), length, dtype=np.int64),
            who=who,
        )


def _names(kind: str, names: list) -> np.ndarray:
    array = np.array(names)
    if array.ndim != 1 or array.tolist() != names:
        raise InputError(
            f"{kind} names {some_of([repr(name) for name in names])}: they must be all whole numbers or all text."
        )
    return array


def _everyone(length: int, models: Model | Mapping[Any, Model], maps: SaliencyMaps) -> Plan:
    observers = list(models) if isinstance(models, Mapping) else [1]
    return Plan.everyone(observers, list(maps.pictures), length)


def _imitate(paths: ScanPaths, models: Model | Mapping[Any, Model], maps: SaliencyMaps) -> Plan:
    if paths.extent != maps.grid.extent:
        raise InputError(
            f"the scan paths lie in {paths.extent}, the maps in {maps.grid.extent}; they must be the same."
        )
    who = np.zeros(len(paths), dtype=np.int64)
    if isinstance(models, Mapping):
        missing = [observer for observer in paths.observers if observer not in models]
        if missing:
            raise InputError(
                f"no model for observer {some_of(missing)}; there are models for {some_of(list(models), 10)}: add "
                "theirs, or leave them out with paths.select(observers=...)."
            )
        place = {observer: index for index, observer in enumerate(models)}
        who = np.array([place[observer] for observer in paths.observer.tolist()], dtype=np.int64)
    forced = paths.forced if paths.forced.any() else None
    return Plan(paths.observer, paths.picture, paths.trial, paths.length, who, forced)


class Stacked(eqx.Module):
    """The parts of several models of one structure: each parameter has a leading axis over observers."""

    policies: tuple[Policy, ...]
    choice: Choice
    memory: int = eqx.field(static=True)

    @classmethod
    def of(cls, models: Mapping[Any, Model]) -> "Stacked":
        """The parts of these observers' models; a model that is built differently is an error."""
        if not models:
            raise InputError("no models given: there must be one for each observer.")
        parts = {observer: (model.policies, model.choice) for observer, model in models.items()}
        first, built = next(iter(parts.items()))
        for observer, part in parts.items():
            if jax.tree.structure(part) != jax.tree.structure(built):
                raise InputError(
                    f"the model of observer {observer} ({models[observer].name!r}) is not built like that of observer "
                    f"{first} ({models[first].name!r}): all need the same policies and choice; simulate them apart."
                )
        policies, choice = jax.tree.map(lambda *values: np.stack(values), *parts.values())
        return cls(policies, choice, models[first].memory)

    def take(self, who: Int[np.ndarray, " path"]) -> "Stacked":
        """The parts with a leading axis over paths: those of each path's observer."""
        return jax.tree.map(lambda values: np.asarray(values)[who], self)


@dataclass(frozen=True, eq=False)
class Start:
    """The first fixations of every path, as observed."""

    position_deg: Float[np.ndarray, "path start 2"]
    saliency: Float[np.ndarray, "path start"]


def _observed_start(lengths: int | ScanPaths, maps: SaliencyMaps) -> Start:
    if not isinstance(lengths, ScanPaths):
        raise InputError(
            f"observed_start=True with lengths = {lengths}: there is nothing observed to start from; give scan paths "
            "as lengths."
        )
    paths = lengths.require(DRAWN_FROM_MAP)
    first = replace(
        paths,
        length=np.full(len(paths), DRAWN_FROM_MAP),
        duration_s=None,
        columns={},
        **{name: getattr(paths, name)[:, :DRAWN_FROM_MAP] for name in ("fixation", "x_deg", "y_deg")},
    )
    return Start(np.stack([first.y_deg, first.x_deg], axis=-1), maps.at(first))


# --- batches -------------------------------------------------------------------------------------------------------


def simulate_plan(
    models: Stacked, maps: SaliencyMaps, plan: Plan, key: PRNGKeyArray, start: Start | None = None
) -> ScanPaths:
    """The paths of a plan, for use where the models are stacked already."""
    picture = maps.index_of(plan.picture.tolist())
    longest = int(plan.length.max(initial=1))
    rows, columns, policy = (np.zeros((len(plan.length), longest), dtype=np.int64) for _ in range(3))
    size = -(-longest // LENGTH_STEP) * LENGTH_STEP

    def run(batch: np.ndarray) -> None:
        drawn = _simulate_batch(
            models.take(plan.who[batch]),
            maps.values[picture[batch]],
            _uniforms(key, batch, size),
            None if start is None else (start.position_deg[batch], start.saliency[batch]),
            np.asarray(plan.length[batch].max()),
            maps.grid,
        )
        for whole, part in zip((rows, columns, policy), drawn, strict=True):
            whole[batch] = np.asarray(part)[:, :longest]

    on_all_cores(run, _batches(plan.length, maps.grid.cells))

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
def _simulate_batch(
    models: Stacked,
    saliency: Float[Array, "path row column"],
    uniform: Float[Array, "fixation path 3"],
    start: tuple[Float[Array, "path start 2"], Float[Array, "path start"]] | None,
    fixations: Int[Array, ""],
    grid: Grid,
) -> tuple[Int[Array, "path fixation"], Int[Array, "path fixation"], Int[Array, "path fixation"]]:
    """Row, column and policy of the fixations of a batch of paths; only the first `fixations` are worked out."""
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
        jnp.zeros((len(saliency), models.memory)),  # how long simulated fixations last is not known
    )

    def step(index: Array, state: tuple) -> tuple:
        history, rows, columns, labels = state
        numbers = jnp.asarray(uniform)[index]
        label = draw_policy(models.choice, history, views, numbers[:, 0])
        row, column = draw_cell(models.policies, label, history, views, numbers[:, 1:])
        after = History(
            jnp.concatenate([centre(row, column)[:, None], history.position_deg[:, :-1]], axis=1),
            jnp.concatenate([views.at(row, column)[:, None], history.saliency[:, :-1]], axis=1),
            history.count + 1,
            history.duration_s,
        )
        return after, rows.at[index].set(row), columns.at[index].set(column), labels.at[index].set(label)

    _, *drawn = lax.fori_loop(DRAWN_FROM_MAP, fixations, step, (history, rows, columns, labels))
    return drawn[0].T, drawn[1].T, drawn[2].T
