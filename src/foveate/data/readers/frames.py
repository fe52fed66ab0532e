"""Scan paths from the events of pymovements, which is not imported: see `conversion.py`."""

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from foveate.data.columns import RowName, check_names, labels, numbers, plain
from foveate.data.grid import PixelFrame
from foveate.data.readers.conversion import pandas_frame
from foveate.data.readers.reports import ReadReport
from foveate.data.readers.sources import Source, load
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

EVENTS = "the events"

# An event's duration and its two ends say the same, but for the rounding of fractions of a millisecond.
SAME_MS = 0.01


def read_frame(table: Any, **settings: Any) -> tuple[ScanPaths, ReadReport]:
    """`read_table` by another name, from when that took frames of pandas alone."""
    return read_table(table, **settings)


def read_pymovements(
    events: Any,
    *,
    frame: PixelFrame,
    observer: str,
    picture: str,
    trial: str | None = None,
    event: str = "fixation",
    blink: str = "blink",
    location: str = "location",
    components: tuple[int, int] | None = None,
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
) -> tuple[ScanPaths, ReadReport]:
    """Scan paths from the events of pymovements (its `Events`, their frame, or a file of that), and a report.

    Rows whose name is `event` are fixations; they must be in the order of their onsets, and are numbered from 1 in
    each path. `observer`, `picture` and `trial` name columns. Times are milliseconds. `location` names the column of
    positions (x, y) in px of the screen (the column does not say its unit: compute it from 'pixel'), or the two columns
    NAME_x and NAME_y; where it holds both eyes, `components` says which two numbers of each row are x and y. If there
    are rows named `blink`, the column `after_blink` flags fixations with one between them and the fixation before.
    """
    roles = [observer, picture, *([trial] if trial is not None else [])]
    whole = _events(events, roles)
    table = whole.table
    check_names(list(table.columns), ["name", "onset", "offset", *roles], whole.name)
    chosen, blinks = (_named(table, name) for name in (event, blink))
    if len(chosen) == 0:
        names = sorted({plain(name) for name in table["name"]})
        raise InputError(
            f"{whole.name}: none is named {event!r}, but {some_of(names) or 'there are none'}; give event=."
        )
    source = whole.taken(chosen, table.iloc[chosen])
    onset_ms = numbers(source.table, "onset", source.row_name)
    path = _paths(source.table, roles, source.row_name)
    _check_onsets(path, onset_ms, source.row_name)

    columns = source.table.drop(columns=["name", location], errors="ignore")
    x, y, fixation = (_free(role, columns) for role in ("x", "y", "fixation"))
    columns[x], columns[y] = _positions(source, location, components)
    columns[fixation] = pd.Series(path).groupby(path).cumcount().to_numpy() + 1
    columns["duration"] = _durations_ms(source, onset_ms)
    if len(blinks) and "after_blink" not in columns:
        columns["after_blink"] = _after_blink(
            source.table, whole.taken(blinks, table.iloc[blinks]), roles, path, onset_ms
        )
    columns = columns.drop(columns=[f"{location}_x", f"{location}_y"], errors="ignore")
    return read_table(
        replace(source, table=columns),
        frame=frame,
        position_unit="px",
        duration="duration",
        duration_unit="ms",
        observer=observer,
        picture=picture,
        trial=trial,
        outside=outside,
        missing=missing,
        shortest=shortest,
        x=x,
        y=y,
        fixation=fixation,
    )


def _events(events: Any, roles: list[str]) -> Source:
    """The events as a table, whatever they come in."""
    if isinstance(events, str | PathLike):
        return load(events, roles)
    held = events if isinstance(events, pd.DataFrame) else getattr(events, "frame", events)
    return Source(EVENTS, pandas_frame(held))


def _named(table: pd.DataFrame, name: str) -> np.ndarray:
    """The rows of the events of this name."""
    return np.flatnonzero((table["name"] == name).to_numpy(dtype=bool, na_value=False))


def _free(name: str, table: pd.DataFrame) -> str:
    while name in table.columns:
        name = f"{name}_"
    return name


def _paths(table: pd.DataFrame, roles: list[str], row_name: RowName) -> np.ndarray:
    """A number for the path of each row."""
    keys = pd.DataFrame({role: labels(table, role, row_name) for role in roles})
    return keys.groupby(roles, sort=False).ngroup().to_numpy()


def _check_onsets(path: np.ndarray, onset_ms: np.ndarray, row_name: RowName) -> None:
    before_ms = pd.Series(onset_ms).groupby(path).shift().to_numpy()
    for row in np.flatnonzero(~np.isfinite(onset_ms) | (onset_ms <= before_ms)):
        onset, before = onset_ms[row], before_ms[row]
        trouble = f"comes after one at {before:g} ms" if np.isfinite(onset) else "is not a time"
        raise InputError(
            f"{row_name(int(row))}: the onset {onset:g} ms {trouble}, but onsets must grow along a path; sort the "
            "events, and name the trial column if the observer saw the picture more than once."
        )


def _durations_ms(source: Source, onset_ms: np.ndarray) -> np.ndarray:
    """The durations, which must not contradict the two ends; where there is no such column, by the two ends."""
    by_ends_ms = numbers(source.table, "offset", source.row_name) - onset_ms
    if "duration" not in source.table.columns:
        return by_ends_ms
    duration_ms = numbers(source.table, "duration", source.row_name)
    for row in np.flatnonzero(np.abs(duration_ms - by_ends_ms) > SAME_MS):
        raise InputError(
            f"{source.row_name(int(row))}: the duration is {duration_ms[row]:g} ms, but onset and offset are "
            f"{by_ends_ms[row]:g} ms apart; give all three in ms, or drop the column duration."
        )
    return duration_ms


def _positions(source: Source, location: str, components: tuple[int, int] | None) -> tuple[np.ndarray, np.ndarray]:
    """x and y of every row in px, NaN where there is none."""
    table, pair = source.table, (f"{location}_x", f"{location}_y")
    if location not in table.columns and all(name in table.columns for name in pair):
        return numbers(table, pair[0], source.row_name), numbers(table, pair[1], source.row_name)
    if location not in table.columns:
        raise InputError(
            f"{source.name}: column {location} missing; it has {some_of(list(table.columns), 12)}: compute the event "
            'property "location" with position_column="pixel", or name its column.'
        )
    both = np.full((len(table), 2), np.nan)
    for row, value in enumerate(table[location].to_numpy(dtype=object)):
        if value is None or (isinstance(value, float) and np.isnan(value)):
            continue
        both[row] = _pair(value, components, f"{source.row_name(row)}: {location}")
    return both[:, 0], both[:, 1]


def _pair(value: Any, components: tuple[int, int] | None, where: str) -> np.ndarray:
    try:
        given = np.asarray(value if not isinstance(value, str | bytes) else None, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where} must be a pair of numbers, (x, y) in px; mend the row.") from error
    if components is None and given.shape != (2,):
        raise InputError(
            f"{where} must be a pair of numbers, (x, y) in px, but has the shape {given.shape}; if it holds both eyes, "
            "say which two numbers to take with components=(0, 1), for example."
        )
    x, y = (0, 1) if components is None else components
    if given.ndim != 1 or not (0 <= x < len(given) and 0 <= y < len(given)):
        raise InputError(f"{where} has the shape {given.shape}, so there are no components {x} and {y} in it.")
    return given[[x, y]]


def _after_blink(
    table: pd.DataFrame, blinks: Source, roles: list[str], path: np.ndarray, onset_ms: np.ndarray
) -> np.ndarray:
    """Whether a blink of the same path began between a fixation and the one before."""
    path_of = dict(zip(table[roles].itertuples(index=False, name=None), path.tolist(), strict=True))
    rows_of = pd.Series(path).groupby(path).indices
    flags = np.zeros(len(path), dtype=bool)
    blink_ms = numbers(blinks.table, "onset", blinks.row_name)
    for key, start_ms in zip(blinks.table[roles].itertuples(index=False, name=None), blink_ms, strict=True):
        rows = rows_of[path_of[key]] if key in path_of else np.zeros(0, dtype=np.int64)
        later = np.searchsorted(onset_ms[rows], start_ms, side="right")
        # The first fixation of a path has none before it.
        if 0 < later < len(rows):
            flags[rows[later]] = True
    return flags
