"""Scan paths from saccade tables, as DAEMONS and the Potsdam group have them: a row is a saccade and where it leads.

Positions are degrees from the picture's bottom left corner, durations are milliseconds. Flags tell forced fixations and
blinks; a trial may have more than one forced fixation, so the flag counts and not the place in the path.

The fixation from which a trial's first saccade starts has no row of its own. Whether a table has its position, and
whether it is to count, cannot be seen from the table: `start` has no default.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from foveate.data.columns import check_names, flags, labels, numbers, whole_numbers
from foveate.data.grid import Extent
from foveate.data.readers.reports import ReadReport
from foveate.data.readers.sources import Source, load
from foveate.data.readers.table import check_roles, read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, counted


def read_saccade_table(
    source: Any,
    *,
    frame: Extent,
    start: tuple[str, str] | None,
    start_duration: str | None = None,
    start_forced: bool | None = None,
    observer: str = "VP",
    picture: str = "Img",
    trial: str | None = "trial",
    saccade: str = "saccade",
    x: str = "x",
    y: str = "y",
    duration: str | None = "duration",
    forced: str | None = "forced",
    blink: str | None = "blink",
    x0_deg: float = 0.0,
    y0_deg: float = 0.0,
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
) -> tuple[ScanPaths, ReadReport]:
    """Scan paths from a table with one row per saccade, and a report; `source` is a file or a frame as in `read_table`.

    `x`, `y` (deg) and `duration` (ms) name columns of the fixation that a saccade leads to, `saccade` the one of its
    number in the trial, `forced` and `blink` those that flag that fixation as forced and that saccade as with a blink.
    `trial`, `duration`, `forced` and `blink` are None where the table has no such column.

    `start` names the columns (x, y) where a saccade starts, or is None. With columns, the start of a trial's first
    saccade is a fixation too: it comes first, is flagged in the column `at_start` and has the number of that saccade,
    and the fixation to which saccade k leads has the number k + 1. The column `start_duration` holds its duration,
    `start_forced` says whether it is forced; anything else in that row is kept for both fixations. With None, paths
    begin where their first saccade lands, and fixations have the numbers of their saccades.

    The flags are kept in the columns `forced` and `after_blink`, other columns under their names. `frame`, the corner
    (`x0_deg`, `y0_deg`), `outside`, `missing` and `shortest` are those of `read_table`.
    """
    _check_settings(frame, start, start_duration, start_forced, duration, forced)
    roles = {"observer": observer, "picture": picture, "saccade": saccade, "x": x, "y": y}
    roles |= {"the start's x": start[0], "the start's y": start[1]} if start else {}
    others = {"trial": trial, "duration": duration, "forced": forced, "blink": blink, "start_duration": start_duration}
    roles |= {role: name for role, name in others.items() if name is not None}
    check_roles(roles)
    data = load(source, [name for role, name in roles.items() if role in ("observer", "picture", "trial")])
    check_names(list(data.table.columns), roles.values(), data.name)
    _check_made(data, {"fixation": saccade, "forced": forced, "after_blink": blink, "at_start": None})

    landings = _landings(data, roles)
    fixations = landings if start is None else _with_starts(landings, roles, start_forced)
    paths, report = read_table(
        fixations,
        frame=frame,
        position_unit="deg",
        duration_unit=None if duration is None else "ms",
        observer=observer,
        picture=picture,
        fixation="fixation",
        x=x,
        y=y,
        duration=duration,
        trial=trial,
        forced="forced" if "forced" in fixations.table else None,
        x0_deg=x0_deg,
        y0_deg=y0_deg,
        outside=outside,
        missing=missing,
        shortest=shortest,
    )
    added = len(fixations.table) - len(data.table)
    note = f"\n{counted(added, 'fixation')} added, from which the first saccades start." if added else ""
    return paths, replace(report, rows=len(data.table), ranges=report.ranges + note)


def _check_settings(
    frame: Extent,
    start: tuple[str, str] | None,
    start_duration: str | None,
    start_forced: bool | None,
    duration: str | None,
    forced: str | None,
) -> None:
    if isinstance(frame, Extent) and frame.origin != "bottom":
        raise InputError(f"frame has origin = {frame.origin!r}, but y grows upward in saccade tables; say 'bottom'.")
    if start is None and (start_duration is not None or start_forced is not None):
        raise InputError(
            "start_duration and start_forced tell of the start of first saccades; name its columns: start."
        )
    if start is not None and (isinstance(start, str) or len(start) != 2):
        raise InputError(f"start = {start!r}: name two columns, (x, y), or say None to begin with the first landing.")
    if start is not None and (duration is None) != (start_duration is None):
        raise InputError(
            f"duration = {duration!r}, start_duration = {start_duration!r}: with start=(x, y) name both columns, or "
            "neither, for all fixations of a path must have a duration or none."
        )
    if start is not None and forced is not None and start_forced is None:
        raise InputError(
            f"forced = {forced!r} flags landings only; say start_forced=True or False for the start of first saccades."
        )


def _check_made(data: Source, made: Mapping[str, str | None]) -> None:
    """Refuse a column that has the name of one that is made here, unless it is the one it is made of."""
    for name, column in made.items():
        if name in data.table.columns and name != column:
            raise InputError(
                f"{data.name}: column {name!r} would be taken for the one that is made here"
                f"{f' from {column!r}' if column else ''}; rename it, or name it for what it is."
            )


def _landings(data: Source, roles: Mapping[str, str]) -> Source:
    """One row per saccade: the fixation that it leads to, with numbers as numbers and flags as flags."""
    table = data.table.drop(columns=[roles[role] for role in ("forced", "blink") if role in roles])
    for role in ("x", "y", "the start's x", "the start's y", "duration", "start_duration"):
        if role in roles:
            table[roles[role]] = numbers(data.table, roles[role], data.row_name)
    table["fixation"] = whole_numbers(data.table, roles["saccade"], data.row_name)
    for role, name in (("forced", "forced"), ("blink", "after_blink")):
        if role in roles:
            table[name] = flags(data.table, roles[role], data.row_name)
    return Source(data.name, table, data.lines)


def _with_starts(landings: Source, roles: Mapping[str, str], start_forced: bool | None) -> Source:
    """The same, with the start of each trial's first saccade before the fixation that it leads to."""
    table = landings.table
    keys = {
        name: labels(table, roles[name], landings.row_name)
        for name in ("observer", "picture", "trial")
        if name in roles
    }
    first = np.flatnonzero(~pd.DataFrame(keys).duplicated().to_numpy())
    starts = table.iloc[first].copy()
    for role, place in (("x", "the start's x"), ("y", "the start's y"), ("duration", "start_duration")):
        if role in roles:
            starts[roles[role]] = starts[roles[place]]
    if "blink" in roles:
        starts["after_blink"] = False
    if start_forced is not None:
        starts["forced"] = start_forced
        table = table if "forced" in table else table.assign(forced=False)
    both = pd.concat([starts.assign(at_start=True), table.assign(at_start=False, fixation=table["fixation"] + 1)])
    rows = np.concatenate([first, np.arange(len(table))])
    order = np.lexsort([~both["at_start"].to_numpy(), rows])
    return landings.taken(rows[order], both.iloc[order])
