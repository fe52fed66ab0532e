"""Data frames of other libraries: polars, Arrow and whatever speaks their language, and events of pymovements.

No such library is imported: a frame hands its columns over by the Arrow interface, or by its own `to_pandas` or
`to_dict`.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from foveate.data.columns import RowName, check_names, labels, numbers
from foveate.data.grid import PixelFrame
from foveate.data.readers.sources import Source
from foveate.data.readers.table import ReadReport, read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

EVENTS = "the events"

# An event's duration and its two ends say the same, but for the rounding of fractions of a millisecond.
SAME_MS = 0.01


def read_frame(table: Any, **settings: Any) -> tuple[ScanPaths, ReadReport]:
    """`read_table` for a data frame of polars, an Arrow table or the like; the settings are those of `read_table`."""
    return read_table(pandas_frame(table), **settings)


def pandas_frame(table: Any) -> pd.DataFrame:
    """The data frame as one of pandas, with the same columns in the same order."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect"):
        raise InputError(f"the {type(table).__name__} is not computed yet; pass what its collect() gives.")
    routes = {"__arrow_c_stream__": _by_arrow, "to_pandas": _by_pandas, "to_dict": _by_dictionary}
    reason = "it has neither the Arrow interface nor to_pandas nor to_dict"
    for method, convert in routes.items():
        if not callable(getattr(table, method, None)):
            continue
        try:
            return convert(table)
        # Code of another library runs here, and the next way may do where this one fails.
        except Exception as error:
            reason = str(error).splitlines()[0] if str(error).strip() else type(error).__name__
    raise InputError(
        f"a {type(table).__name__} cannot be read as a data frame ({reason}); give one of pandas or polars, or an "
        "Arrow table."
    )


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
    """Scan paths from the events of pymovements (its `Events`, or their frame), and a report.

    Rows whose name is `event` are fixations; they must be in the order of their onsets, and are numbered from 1 in
    each path. `observer`, `picture` and `trial` name columns. Times are milliseconds. `location` names the column of
    positions (x, y) in px of the screen (the column does not say its unit: compute it from 'pixel'), or the two columns
    NAME_x and NAME_y; where it holds both eyes, `components` says which two numbers of each row are x and y. If there
    are rows named `blink`, the column `after_blink` flags fixations with one between them and the fixation before.
    """
    table = pandas_frame(events if isinstance(events, pd.DataFrame) else getattr(events, "frame", events))
    roles = [observer, picture, *([trial] if trial is not None else [])]
    check_names(list(table.columns), ["name", "onset", "offset", *roles], EVENTS)
    chosen, blinks = (_named(table, name) for name in (event, blink))
    if len(chosen) == 0:
        names = sorted({str(name) for name in table["name"]})
        raise InputError(f"{EVENTS}: none is named {event!r}, but {some_of(names) or 'there are none'}; give event=.")
    source = Source(EVENTS, table.iloc[chosen].reset_index(drop=True), chosen + 1)
    onset_ms = numbers(source.table, "onset", source.row_name)
    path = _paths(source.table, roles, source.row_name)
    _check_onsets(path, onset_ms, source.row_name)

    columns = source.table.drop(columns=["name", location], errors="ignore")
    x, y, fixation = (_free(role, columns) for role in ("x", "y", "fixation"))
    columns[x], columns[y] = _positions(source, location, components)
    columns[fixation] = pd.Series(path).groupby(path).cumcount().to_numpy() + 1
    columns["duration"] = _durations_ms(source, onset_ms)
    if len(blinks) and "after_blink" not in columns:
        columns["after_blink"] = _after_blink(source.table, table.iloc[blinks], roles, path, onset_ms)
    columns = columns.drop(columns=[f"{location}_x", f"{location}_y"], errors="ignore")
    return read_table(
        Source(EVENTS, columns, source.lines),
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


def _by_arrow(table: Any) -> pd.DataFrame:
    # Whole numbers stay whole beside empty cells, where pandas would make them floats.
    return pa.table(table).to_pandas(integer_object_nulls=True)


def _by_pandas(table: Any) -> pd.DataFrame:
    frame = table.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"its to_pandas gives a {type(frame).__name__}")
    return frame


def _by_dictionary(table: Any) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in table.to_dict().items()})


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
            f"{EVENTS}: column {location} missing; it has {some_of(list(table.columns), 12)}: compute the event "
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
    table: pd.DataFrame, blinks: pd.DataFrame, roles: list[str], path: np.ndarray, onset_ms: np.ndarray
) -> np.ndarray:
    """Whether a blink of the same path began between a fixation and the one before."""
    path_of = dict(zip(table[roles].itertuples(index=False, name=None), path.tolist(), strict=True))
    rows_of = pd.Series(path).groupby(path).indices
    flags = np.zeros(len(path), dtype=bool)
    blink_ms = numbers(blinks, "onset")
    for key, start_ms in zip(blinks[roles].itertuples(index=False, name=None), blink_ms, strict=True):
        rows = rows_of[path_of[key]] if key in path_of else np.zeros(0, dtype=np.int64)
        later = np.searchsorted(onset_ms[rows], start_ms, side="right")
        # The first fixation of a path has none before it.
        if 0 < later < len(rows):
            flags[rows[later]] = True
    return flags
