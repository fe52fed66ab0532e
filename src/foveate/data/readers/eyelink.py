"""Scan paths from EyeLink ASC files: the fixations (EFIX lines) that edf2asc writes, cut into trials by START and END.

A file says where recordings start and end, which eye a fixation is of, in which coordinates it is and how large the
display was; all this is used, and refused where it contradicts what the user says. It does not say which message names
the picture, where the picture lay on the screen and how many pixels make a degree: these are arguments.

A message speaks of the recording in which it stands or, between two, of the next one. There, messages TRIALID and
TRIAL_RESULT are limits: what is written after END and before them, as Experiment Builder does with TRIAL_VAR, speaks of
the recording before.
"""

import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foveate.data.columns import plain, shown
from foveate.data.grid import PixelFrame
from foveate.data.readers.asc import ANEW, Asc, check_display, parse_asc
from foveate.data.readers.reports import LeftOut, ReadReport
from foveate.data.readers.sources import Source, typed
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, counted, some_of

_LIMIT = re.compile(r"(?:[+-]?\d+\s+)?(TRIALID|TRIAL_RESULT)\b")


@dataclass(frozen=True)
class _Asked:
    """What the user says of all files."""

    patterns: Mapping[str, re.Pattern]
    eye: str | None
    without_picture: str
    without_end: str

    def __post_init__(self):
        for name, allowed in (
            ("eye", (None, "left", "right")),
            ("without_picture", ("error", "drop")),
            ("without_end", ("error", "keep")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} = {getattr(self, name)!r}: say {allowed[-2]!r} or {allowed[-1]!r}.")


@dataclass(frozen=True, eq=False)
class _Trials:
    """One file's fixations on pictures, the number of all its fixations, and what was left out."""

    file: Path
    table: pd.DataFrame
    fixations: int
    left_out: Sequence[LeftOut]
    lost: Sequence[str]  # recordings of a picture without any fixation on it


def read_eyelink(
    files: str | Path | Sequence[str | Path],
    *,
    frame: PixelFrame,
    picture: str,
    observer: str | int | Sequence[str | int] | None = None,
    eye: str | None = None,
    trial: str | None = None,
    onset: str | None = None,
    offset: str | None = None,
    without_picture: str = "error",
    without_end: str = "error",
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
    encoding: str = "utf-8-sig",
) -> tuple[ScanPaths, ReadReport]:
    r"""Scan paths from one or several ASC files, one path per recording (START to END), and a report.

    `picture` is a regular expression with one group, the picture's name, searched in the text of MSG lines, such as
    r"TRIAL_VAR image (\S+)" or r"IMGLOAD \w+ (\S+)". So is `trial`; without it an observer's recordings are counted
    from 1. `observer` names the observer of all files or, in a list, of each; without it, a file's name without ending
    does. `eye` is 'left' or 'right' and must be said where both have fixations.

    `onset` and `offset` are regular expressions that find the messages sent when the picture came and went. Fixations
    that end before or start after are left out and reported; those in progress at the onset are flagged as `forced`.
    Without them all fixations of a recording count. Recordings `without_picture` (no message names one, or tells its
    onset) are an 'error', or left out with 'drop'; those `without_end` are an 'error', or read with 'keep'. `outside`,
    `missing` and `shortest` are those of `read_table`.

    Extra columns: `eye`, `start_ms` and `end_ms` (the tracker's time), `pupil`, `after_blink`, `forced` if an onset is
    asked for, and the tracker's `x_px_per_degree` and `y_px_per_degree` if the files have them.
    """
    texts = {"picture": picture, "trial": trial, "onset": onset, "offset": offset}
    patterns = {name: _pattern(name, text) for name, text in texts.items() if text is not None or name == "picture"}
    asked = _Asked(patterns, eye, without_picture, without_end)
    if not isinstance(frame, PixelFrame):
        raise InputError("EyeLink positions are in px: give frame=PixelFrame(...), the picture's place on the screen.")
    places = _places(files)
    recorded: Counter[str] = Counter()
    parts = []
    for place, who in zip(places, _observers(places, observer), strict=True):
        asc = parse_asc(place, encoding)
        check_display(asc, frame)
        parts.append(_trials(place, asc, asked, who, recorded[who]))
        recorded[who] += len(asc.recordings)
    read = [
        read_table(
            Source(part.file.name, table.drop(columns=["line", "start_line"]), table["line"].to_numpy(dtype=np.int64)),
            frame=frame,
            position_unit="px",
            duration="duration",
            duration_unit="ms",
            trial="trial",
            forced="forced" if "forced" in table else None,
            outside=outside,
            missing=missing,
        )
        for part, table in zip(parts, _labelled(parts), strict=True)
    ]
    return _together(parts, read, shortest)


# --- arguments -------------------------------------------------------------------------------------------------------


def _pattern(name: str, text: Any) -> re.Pattern:
    try:
        pattern = re.compile(text if isinstance(text, str | re.Pattern) else "(")
        pattern.search("")  # one of bytes cannot search text
    except (re.error, TypeError, OverflowError, RecursionError) as error:
        raise InputError(f"{name} = {text!r} is not a regular expression for text; mend it.") from error
    if name in ("picture", "trial") and pattern.groups != 1:
        raise InputError(
            f"{name} = {text!r} has {counted(pattern.groups, 'group')}, but one is needed: put parentheses around the "
            r"name, such as r'TRIALID (\S+)', and write any others as (?:...)."
        )
    return pattern


def _places(files: Any) -> list[Path]:
    try:
        places = [Path(files)] if isinstance(files, str | Path) else [Path(file) for file in files]
    except TypeError as error:
        raise InputError(f"files = {files!r}: give the name of an ASC file, or a list of names.") from error
    if not places:
        raise InputError("the list of ASC files is empty; give at least one.")
    for place in places:
        if place.is_dir():
            raise InputError(f"{place} is a folder; give its files: sorted(Path({str(place)!r}).glob('*.asc')).")
        if not place.is_file():
            raise InputError(f"{place}: there is no such file; check the name and the folder.")
        if place.suffix.lower() == ".edf":
            raise InputError(f"{place.name} is an EDF file; convert it with edf2asc and give the ASC file.")
    twice = [place for place, count in Counter(place.resolve() for place in places).items() if count > 1]
    if twice:
        raise InputError(f"{twice[0]} is given more than once; give every file once.")
    return places


def _observers(places: list[Path], observer: Any) -> list[str]:
    """The observer of each file."""
    stems = [place.stem for place in places]
    twice = [name for name, count in Counter(stems).items() if count > 1]
    if observer is None and twice:
        raise InputError(
            f"several files are named {twice[0]!r}, as if they were one observer's; say whose each is with "
            "observer=[...]."
        )
    said = stems if observer is None else [observer] * len(places) if isinstance(observer, str | int) else observer
    names = [str(name) for name in said]
    if len(names) != len(places):
        raise InputError(
            f"{counted(len(names), 'observer')} for {counted(len(places), 'file')}: give one for each, or one for all."
        )
    for name in names:
        if not (name.strip() and name.isprintable()):
            raise InputError(f"observer = {name!r}, which is no name; give another one.")
    return names


# --- trials ----------------------------------------------------------------------------------------------------------


def _scopes(asc: Asc) -> list[tuple[int, int]]:
    """First line, and line behind the last, of the messages that speak of each recording."""
    found = [(message.line, match[1]) for message in asc.messages if (match := _LIMIT.match(message.text))]
    limits = [line if word == "TRIALID" else line + 1 for line, word in found]
    ends = [0, *(it.last for it in asc.recordings)]
    starts = [*(it.first for it in asc.recordings), sys.maxsize]
    scopes = []
    for before, first, last, after in zip(ends[:-1], starts[:-1], ends[1:], starts[1:], strict=True):
        # Behind the last recording of a file with limits nothing else follows that a message could speak of.
        behind = sys.maxsize if limits and after == sys.maxsize else last + 1
        begin = max((limit for limit in limits if before < limit <= first), default=before + 1)
        scopes.append((begin, min((limit for limit in limits if last < limit <= after), default=behind)))
    return scopes


def _said(asc: Asc, name: str, pattern: re.Pattern | None) -> list[Any]:
    """What matching messages say of each recording (a name, or the time of an onset or offset), None if nothing."""
    scopes = _scopes(asc)
    said: list[Any] = [None] * len(scopes)
    lines = [0] * len(scopes)
    for message in asc.messages:
        found = pattern.search(message.text) if pattern else None
        if not found or not pattern:
            continue
        where = f"{asc.name}, line {message.line}"
        value: Any = found[1] if name in ("picture", "trial") else message.time_ms
        index = bisect_right(scopes, (message.line, sys.maxsize)) - 1
        if index < 0 or message.line >= scopes[index][1]:
            if index == len(scopes) - 1 and not any(_LIMIT.match(it.text) for it in asc.messages):
                raise InputError(
                    f"{where}: this {name} stands after the last recording, but must stand in its recording or before, "
                    "for no TRIALID or TRIAL_RESULT says where trials end; match another message."
                )
            continue  # a trial that was not recorded
        if not isinstance(value, float) and not (value and value.strip() and value.isprintable()):
            raise InputError(
                f"{where}: the {name} is {shown(value)}, which is no name; mend {pattern.pattern!r}, or pass the "
                "file's encoding, such as 'latin-1'."
            )
        if said[index] not in (None, value):
            raise InputError(
                f"{where}: the {name} is {shown(value)}, but in line {lines[index]} it is {shown(said[index])} for the "
                f"same recording (from line {asc.recordings[index].first}), which is one trial; match one message of "
                "each."
            )
        said[index], lines[index] = value, message.line
    return said


def _trials(file: Path, asc: Asc, asked: _Asked, observer: str, recorded: int) -> _Trials:
    """The fixations that were made on a picture; `recorded` recordings of the observer came before."""
    for part in asc.recordings:
        if not part.ended and asked.without_end == "error":
            raise InputError(
                f"{asc.name}, line {part.first}: the recording has no END, the file may be cut off; {ANEW}, or read "
                'what there is with without_end="keep".'
            )
    fixations = _of_eye(asc, asked.eye)
    said = {name: _said(asc, name, asked.patterns.get(name)) for name in ("picture", "trial", "onset", "offset")}
    visible = _with_picture(asc, asked, said)
    recording = fixations["recording"].to_numpy()
    onset, offset = (np.array(said[name], dtype=float)[recording] for name in ("onset", "offset"))
    start_ms, end_ms = (fixations[name].to_numpy() for name in ("start_ms", "end_ms"))
    reasons = {  # a comparison with the NaN of an unknown time is False
        "in recordings without a picture": ~visible[recording],
        "before the picture came": visible[recording] & (end_ms < onset),
        "after the picture went": visible[recording] & (start_ms >= offset),
    }
    stays = ~np.logical_or.reduce(list(reasons.values()))
    if not stays.any():
        raise InputError(f"{asc.name}: no fixation was made on a picture; check picture, onset and offset.")
    left_out = [LeftOut(why, asc.name, "line", *_line_and_words(it))
                for why, rows in reasons.items() for it in fixations.loc[rows].to_dict("records")]  # fmt: skip
    unseen = np.setdiff1d(np.flatnonzero(visible), recording[stays])
    lost = [f"observer {plain(observer)}, picture {shown(said['picture'][index])}" for index in unseen]

    if "onset" in asked.patterns:
        fixations["forced"] = start_ms < onset
    table = fixations.loc[stays].drop(columns="recording").reset_index(drop=True)
    of = recording[stays]
    blinks_ms = sorted(start for eye, start in asc.blinks if eye == fixations["eye"][0])
    blinks = pd.Series(np.searchsorted(blinks_ms, start_ms[stays]))
    table["after_blink"] = blinks.to_numpy() > blinks.groupby(of).shift().to_numpy(dtype=float)
    table["fixation"] = table.groupby(of).cumcount() + 1
    table["observer"] = observer
    table["picture"] = np.array(said["picture"], dtype=object)[of]
    table["trial"] = np.array(said["trial"], dtype=object)[of] if "trial" in asked.patterns else recorded + 1 + of
    table["start_line"] = np.array([it.first for it in asc.recordings])[of]
    return _Trials(file, table, len(fixations), left_out, lost)


def _line_and_words(fixation: Mapping[str, Any]) -> tuple[int, str]:
    """Where an EFIX line stands, and what it says."""
    start, end, x, y = (f"{fixation[name]:.12g}" for name in ("start_ms", "end_ms", "x", "y"))
    return int(fixation["line"]), f"{fixation['eye']} eye, {start} to {end} ms, x = {x}, y = {y}"


def _of_eye(asc: Asc, eye: str | None) -> pd.DataFrame:
    """The fixations of one eye, in order."""
    count = Counter(str(it["eye"]) for it in asc.fixations)
    if eye is None and len(count) > 1:
        raise InputError(
            f"{asc.name}: both eyes have fixations ({count['left']:,} left, {count['right']:,} right); say eye='left' "
            "or eye='right'."
        )
    if eye is not None and not count[eye]:
        raise InputError(
            f"{asc.name}: eye = {eye!r}, but only the {next(iter(count))} eye has fixations; say that one."
        )
    fixations = pd.DataFrame([it for it in asc.fixations if eye in (None, it["eye"])])
    before_ms = fixations.groupby("recording")["end_ms"].shift().to_numpy(dtype=float)
    for row in np.flatnonzero(fixations["start_ms"].to_numpy() < before_ms):
        raise InputError(
            f"{asc.name}, line {fixations['line'][row]}: the fixation starts before the last one ends "
            f"({before_ms[row]:.12g} ms); lines are out of order: {ANEW}."
        )
    return fixations


def _with_picture(asc: Asc, asked: _Asked, said: Mapping[str, list[Any]]) -> np.ndarray:
    """Whether a picture was shown in each recording; those of which too little is known are refused."""
    if not any(said["picture"]):
        texts = [it.text for it in asc.messages]
        likely = [text for text in texts if text.startswith(("TRIAL", "!V"))] or texts
        raise InputError(
            f"{asc.name}: no message of a recording matches picture = {asked.patterns['picture'].pattern!r}; there are "
            f"{some_of([repr(text[:60]) for text in likely], 3) or 'none'}."
        )
    visible = np.ones(len(asc.recordings), dtype=bool)
    for index, recording in enumerate(asc.recordings):
        where = f"{asc.name}, line {recording.first}"
        unsaid = [
            name for name in ("picture", "onset", "trial") if name in asked.patterns and said[name][index] is None
        ]
        visible[index] = not {"picture", "onset"} & set(unsaid)
        if unsaid and (visible[index] or asked.without_picture == "error"):
            remedy = "" if visible[index] else ', or leave out such recordings with without_picture="drop"'
            raise InputError(
                f"{where}: no message tells the {unsaid[0]} of this recording; mend {unsaid[0]} = "
                f"{asked.patterns[unsaid[0]].pattern!r}{remedy}."
            )
        came, went = said["onset"][index], said["offset"][index]
        if came is not None and went is not None and went <= came:
            raise InputError(
                f"{where}: in this recording the picture's offset ({went:.12g} ms) is not after its onset ({came:.12g} "
                "ms); mend the expressions."
            )
    return visible


# --- all files -------------------------------------------------------------------------------------------------------


def _labelled(parts: list[_Trials]) -> list[pd.DataFrame]:
    """The tables, with names as numbers where those of all files are; no two recordings may have the same ones."""
    names = ["observer", "picture", "trial"]
    whole = pd.concat([part.table.assign(file=part.file.name) for part in parts], ignore_index=True)
    for name in names:
        whole[name] = typed([str(value) for value in whole[name]], True)
    recordings = whole.drop_duplicates([*names, "file", "start_line"])
    for row in np.flatnonzero(recordings.duplicated(names).to_numpy()):
        who, picture, trial, file, line = recordings[[*names, "file", "start_line"]].iloc[row]
        raise InputError(
            f"{file}, line {line}: the recording is trial {plain(trial)} of observer {plain(who)}, picture "
            f"{plain(picture)}, and so is one before; let trial match something else, or leave it out to count "
            "recordings."
        )
    ends = np.cumsum([len(part.table) for part in parts])
    return [whole.iloc[end - len(part.table) : end].drop(columns="file") for part, end in zip(parts, ends, strict=True)]


def _together(
    parts: list[_Trials], read: list[tuple[ScanPaths, ReadReport]], shortest: int
) -> tuple[ScanPaths, ReadReport]:
    """All paths and one report; degrees stay as they are."""
    paths, report = read[0]
    if len(parts) > 1:
        name = f"{len(parts)} files ({some_of([part.file.name for part in parts], 3)})"
        paths, report = read_table(
            Source(name, pd.concat([paths.to_table() for paths, _ in read], ignore_index=True)),
            frame=paths.extent,
            position_unit="deg",
            duration_unit="s",
            x="x_deg",
            y="y_deg",
            duration="duration_s",
            trial="trial",
            forced="forced" if "forced" in paths.columns else None,
        )
    return paths.require(shortest), replace(
        report,
        rows=sum(part.fixations for part in parts),
        left_out=tuple(
            row
            for part, (_, it) in zip(parts, read, strict=True)
            for row in sorted((*part.left_out, *it.left_out), key=lambda row: row.number)
        ),
        lost_paths=tuple(
            item for part, (_, it) in zip(parts, read, strict=True) for item in (*part.lost, *it.lost_paths)
        ),
    )
