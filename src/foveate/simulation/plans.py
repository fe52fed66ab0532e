"""What to simulate: who looks at which picture for how long, and where paths begin."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.model.model import DRAWN_FROM_MAP, Model


@dataclass(frozen=True, eq=False)
class Plan:
    """Who looks at which picture for how long, path by path; `who` is the observer's place among the stacked models.

    `forced` flags the fixations that were forced in imitated paths; None where none was, or nothing is imitated.
    `duration_s` says how long every fixation lasts, 0 where that is not known; None where the model is to say it.
    """

    observer: np.ndarray
    picture: np.ndarray
    trial: np.ndarray
    length: Int[np.ndarray, " path"]
    who: Int[np.ndarray, " path"]
    forced: Bool[np.ndarray, "path fixation"] | None = None
    duration_s: Float[np.ndarray, "path fixation"] | None = None

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


def everyone(length: int, models: Model | Mapping[Any, Model], maps: SaliencyMaps) -> Plan:
    """Every observer on every picture; a single model is observer 1."""
    observers = list(models) if isinstance(models, Mapping) else [1]
    return Plan.everyone(observers, list(maps.pictures), length)


def imitating(paths: ScanPaths, models: Model | Mapping[Any, Model], maps: SaliencyMaps) -> Plan:
    """The observers, pictures, trials and lengths of these paths."""
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


@dataclass(frozen=True, eq=False)
class Start:
    """The first fixations of every path, as observed."""

    position_deg: Float[np.ndarray, "path start 2"]
    saliency: Float[np.ndarray, "path start"]


def observed(lengths: int | ScanPaths, maps: SaliencyMaps) -> Start:
    """Where imitated paths begin."""
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


def observed_seconds(lengths: int | ScanPaths) -> Float[np.ndarray, "path fixation"]:
    """How long the fixations of imitated paths lasted, in seconds; 0 where that is not known, and in the padding."""
    if not isinstance(lengths, ScanPaths):
        raise InputError(
            f"observed_durations=True with lengths = {lengths}: nothing was observed; give scan paths as lengths."
        )
    if lengths.duration_s is None:
        raise InputError(
            "observed_durations=True: the scan paths do not say how long fixations lasted; give paths with durations, "
            "or a model that needs none."
        )
    return np.nan_to_num(lengths.duration_s)
