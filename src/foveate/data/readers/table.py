"""Scan paths from any table of fixations: named columns, units and geometry as its user states them.

Nothing is guessed and nothing is lost in silence: what cannot be used is an error that names the row, and what is
left out on request is listed in the report that comes beside the paths.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from foveate.data.columns import check_names, flags, is_missing, labels, numbers, plain, shown, whole_numbers
from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.reports import MISSING, OUTSIDE, LeftOut, ReadReport
from foveate.data.readers.sources import Source, load
from foveate.data.scanpaths import OPTIONAL, REQUIRED, ScanPaths
from foveate.errors import InputError, some_of

PER_SECOND = {"ms": 1000, "s": 1}


def read_table(
    source: Any,
    *,
    frame: PixelFrame | Extent,
    position_unit: str,
    duration_unit: str | None = None,
    observer: str = "observer",
    picture: str = "picture",
    fixation: str = "fixation",
    x: str = "x",
    y: str = "y",
    duration: str | None = None,
    trial: str | None = None,
    forced: str | None = None,
    x0_deg: float = 0.0,
    y0_deg: float = 0.0,
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
) -> tuple[ScanPaths, ReadReport]:
    """Scan paths from a table with one row per fixation, and a report.

    `source` is a CSV, TSV, Parquet or Feather file, or a data frame of pandas or polars, an Arrow table or the like.
    `observer`, `picture`, `fixation`, `x`, `y`, `duration` and `trial` name columns, and so does `forced`: there 1 or
    true flags a fixation that nobody chose to make; it conditions, and is not scored. All others are kept as extra
    columns. `position_unit` is 'px', with a PixelFrame, or 'deg', with the picture's Extent and the position
    (`x0_deg`, `y0_deg`) of the corner where its row 0 and column 0 start. `duration_unit` is 'ms' or 's'.
    Fixations `outside` the picture and rows with a `missing` position are an 'error', or left out with 'drop'.
    Paths shorter than `shortest` fixations are an error.
    """
    _check_settings(frame, position_unit, duration, duration_unit, (x0_deg, y0_deg), outside, missing)
    roles = {"observer": observer, "picture": picture, "fixation": fixation, "x": x, "y": y}
    more = {"duration": duration, "trial": trial, "forced": forced}
    roles |= {role: name for role, name in more.items() if name is not None}
    check_roles(roles)
    data = load(source, [name for role, name in roles.items() if role in ("observer", "picture", "trial")])
    check_names(list(data.table.columns), roles.values(), data.name)

    keys = _keys(data, roles)
    name_of = _namer(data, keys)
    _check_order(keys, name_of)
    if duration is not None and duration_unit is not None:
        keys["duration_s"] = _durations(data.table, duration, name_of) / PER_SECOND[duration_unit]
    if forced is not None:
        keys["forced"] = flags(data.table, forced, data.row_name)

    position = numbers(data.table, y, name_of), numbers(data.table, x, name_of)
    absent = _absent(position, (y, x), missing, name_of)
    y_deg, x_deg = frame.to_degrees(*position) if isinstance(frame, PixelFrame) else _shifted(position, y0_deg, x0_deg)
    extent = frame.extent if isinstance(frame, PixelFrame) else frame
    off = ~absent & ~extent.contains(y_deg, x_deg)
    if off.any() and outside == "error":
        _refuse_outside(off, position, (y, x), frame, (y0_deg, x0_deg), name_of)

    extras = [name for name in data.table.columns if name not in roles.values()]
    taken = [str(name) for name in data.table.columns]
    kept_as = {str(name): _free_name(str(name), taken) for name in extras}
    columns = {name: keys[name].to_numpy() for name in keys} | {"y_deg": y_deg, "x_deg": x_deg}
    columns |= {kept_as[str(name)]: data.table[name].to_numpy() for name in extras}
    stays = ~(absent | off)
    if not stays.any():
        raise InputError(f"{data.name}: no fixation is left, all {len(stays):,} were dropped; check unit and frame.")
    table = pd.DataFrame({name: values[stays] for name, values in columns.items()})
    paths = ScanPaths.from_table(table, extent).require(shortest)
    return paths, ReadReport(
        source=data.name,
        rows=len(stays),
        fixations=paths.fixations,
        paths=len(paths),
        left_out=_left_out(data, {OUTSIDE: off, MISSING: absent}, keys, (x, y)),
        lost_paths=_lost(keys, stays),
        gaps=tuple(paths.name_of(path, index) for path, index in np.argwhere(paths.after_gap)),
        renamed={name: kept for name, kept in kept_as.items() if name != kept},
        ranges=_ranges(table, extent),
        forced=int(paths.forced.sum()),
    )


def _ranges(table: pd.DataFrame, extent: Extent) -> str:
    """Where the fixations lie in the picture, and how long they usually last."""
    spans = (
        f"{axis} from {table[name].min():.3g} to {table[name].max():.3g} of {size:.3g} deg"
        for axis, name, size in (("x", "x_deg", extent.width_deg), ("y", "y_deg", extent.height_deg))
    )
    text = ", ".join(spans)
    return f"{text}; median duration {table['duration_s'].median():.3g} s." if "duration_s" in table else f"{text}."


def _check_settings(
    frame: PixelFrame | Extent,
    position_unit: str,
    duration: str | None,
    duration_unit: str | None,
    corner_deg: tuple[float, float],
    outside: str,
    missing: str,
) -> None:
    if position_unit not in ("px", "deg"):
        raise InputError(f"position_unit = {position_unit!r}: say 'px' or 'deg'.")
    if position_unit == "px" and not isinstance(frame, PixelFrame):
        raise InputError(
            "positions in px need frame=PixelFrame(...): the picture's size, its place on the screen and px per degree."
        )
    if position_unit == "deg" and not isinstance(frame, Extent):
        raise InputError("positions in deg need frame=Extent(height_deg, width_deg), the picture's size in degrees.")
    if not np.isfinite(corner_deg).all():
        raise InputError(f"x0_deg, y0_deg = {corner_deg}: the picture's corner must be a finite number of degrees.")
    if position_unit == "px" and any(corner_deg):
        raise InputError("x0_deg and y0_deg are for positions in deg; in px say left_px and near_px of the PixelFrame.")
    if duration_unit is not None and duration_unit not in PER_SECOND:
        raise InputError(f"duration_unit = {duration_unit!r}: say 'ms' or 's'.")
    if (duration is None) != (duration_unit is None):
        raise InputError(
            f"duration = {duration!r}, duration_unit = {duration_unit!r}: name both the column and its unit "
            "('ms' or 's'; it is never guessed), or neither."
        )
    for name, value in (("outside", outside), ("missing", missing)):
        if value not in ("error", "drop"):
            raise InputError(f"{name} = {value!r}: say 'error' or 'drop'.")


def check_roles(roles: Mapping[str, str]) -> None:
    """Refuse a column that is named for two things."""
    for role, name in roles.items():
        others = [other for other in roles if roles[other] == name and other != role]
        if others:
            raise InputError(f"column {name!r} is named for {role} and {some_of(others)}; each needs its own.")


def _keys(data: Source, roles: Mapping[str, str]) -> pd.DataFrame:
    """Observer, picture, trial and fixation number of every row."""
    names = [role for role in ("observer", "picture", "trial") if role in roles]
    keys = {role: labels(data.table, roles[role], data.row_name) for role in names}
    return pd.DataFrame(keys | {"fixation": whole_numbers(data.table, roles["fixation"], data.row_name)})


def _namer(data: Source, keys: pd.DataFrame) -> Callable[[int], str]:
    who, what, number = (keys[name].tolist() for name in ("observer", "picture", "fixation"))

    def name_of(row: int) -> str:
        return f"{data.row_name(row)} ({_identity(who[row], what[row], number[row])})"

    return name_of


def _identity(observer: Any, picture: Any, fixation: Any) -> str:
    return f"observer {plain(observer)}, picture {shown(picture)}, fixation {fixation}"


def _left_out(
    data: Source, reasons: Mapping[str, np.ndarray], keys: pd.DataFrame, position: tuple[str, str]
) -> tuple[LeftOut, ...]:
    """The rows that were left out, in their order: each is left out for one reason."""
    found = {}
    for why, rows in reasons.items():
        for row in np.flatnonzero(rows).tolist():
            named = (keys[name].iloc[row] for name in ("observer", "picture", "fixation"))
            said = [f"{name} = {_as_written(data.table[name].iloc[row])}" for name in position]
            words = ", ".join([_identity(*(it.item() if isinstance(it, np.generic) else it for it in named)), *said])
            found[row] = LeftOut(why, data.name, *data.place(row), words)
    return tuple(found[row] for row in sorted(found))


def _as_written(value: Any) -> str:
    """A number as it stands in the table; an empty cell as such."""
    if isinstance(value, str):
        return plain(value) if value.strip() else "(empty)"
    return "(empty)" if is_missing(value) else f"{float(value):.12g}"


def _refuse(bad: np.ndarray, name_of: Callable[[int], str], text: Callable[[int], str]) -> None:
    """Raise an error that names the first bad row and counts the others."""
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        first = f", the first of {bad.sum():,} such rows" if bad.sum() > 1 else ""
        raise InputError(f"{name_of(row)}{first}: {text(row)}")


def _check_order(keys: pd.DataFrame, name_of: Callable[[int], str]) -> None:
    groups = keys.groupby([name for name in ("observer", "picture", "trial") if name in keys], sort=False)
    before = groups["fixation"].shift().to_numpy(dtype=float)
    remedy = "sort and mend the table, or name its trial column if the observer saw the picture more than once."
    twice = keys.duplicated().to_numpy()
    _refuse(twice, name_of, lambda row: f"this fixation number stands twice in one path; {remedy}")
    _refuse(
        keys["fixation"].to_numpy() < before,
        name_of,
        lambda row: f"it comes after fixation {before[row]:.0f}, but numbers must grow along a path; {remedy}",
    )


def _durations(table: pd.DataFrame, name: str, name_of: Callable[[int], str]) -> np.ndarray:
    values = numbers(table, name, name_of)
    _refuse(
        ~(np.isfinite(values) & (values >= 0)),
        name_of,
        lambda row: (
            f"{name} = {values[row]:g}: a duration must be zero or positive; mend the row, or read the table without "
            "durations."
        ),
    )
    return values


def _absent(
    position: tuple[np.ndarray, np.ndarray], names: tuple[str, str], missing: str, name_of: Callable[[int], str]
) -> np.ndarray:
    """Rows without a position; an error unless they are to be dropped, and always where one is infinite."""
    for values, name in zip(position, names, strict=True):
        _refuse(np.isinf(values), name_of, lambda row, name=name: f"{name} is infinite; mend the row or remove it.")
        if missing == "error":
            _refuse(
                np.isnan(values),
                name_of,
                lambda row, name=name: f'{name} is empty or NaN; mend the row, or drop such rows with missing="drop".',
            )
    return np.isnan(position[0]) | np.isnan(position[1])


def _shifted(position: tuple[np.ndarray, np.ndarray], y0_deg: float, x0_deg: float) -> tuple[np.ndarray, np.ndarray]:
    return position[0] - y0_deg, position[1] - x0_deg


def _refuse_outside(
    off: np.ndarray,
    position: tuple[np.ndarray, np.ndarray],
    names: tuple[str, str],
    frame: PixelFrame | Extent,
    corner_deg: tuple[float, float],
    name_of: Callable[[int], str],
) -> None:
    """Name the first fixation outside, in the unit in which it was given."""
    if isinstance(frame, PixelFrame):
        unit, starts, sizes = "px", (frame.near_px, frame.left_px), (frame.height_px, frame.width_px)
    else:
        unit, starts, sizes = "deg", corner_deg, (frame.height_deg, frame.width_deg)

    def text(row: int) -> str:
        axis = 0 if not starts[0] <= position[0][row] <= starts[0] + sizes[0] else 1
        return (
            f"{names[axis]} = {position[axis][row]:g} {unit} lies outside the picture ({starts[axis]:g} to "
            f"{starts[axis] + sizes[axis]:g} {unit}); check unit, frame and origin, or leave out {off.sum():,} of "
            f'{len(off):,} fixations with outside="drop".'
        )

    _refuse(off, name_of, text)


def _free_name(name: str, taken: list[str]) -> str:
    """A name for an extra column that is none of those that scan paths use themselves."""
    while name in (*REQUIRED, *OPTIONAL):
        name = f"{name}_read"
        while name in taken:
            name = f"{name}_read"
    return name


def _lost(keys: pd.DataFrame, stays: np.ndarray) -> tuple[str, ...]:
    """Paths of which no fixation stays."""
    names = [name for name in ("observer", "picture", "trial") if name in keys]
    before, after = keys[names].drop_duplicates(), keys.loc[stays, names].drop_duplicates()
    kept: set[Hashable] = set(after.itertuples(index=False, name=None))
    return tuple(
        f"observer {plain(row[0])}, picture {shown(row[1])}"
        for row in before.itertuples(index=False, name=None)
        if row not in kept
    )
