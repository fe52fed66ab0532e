"""What stands in an EyeLink ASC file: messages, recordings, fixations and blinks, each with its line."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foveate.data.columns import as_number, shown
from foveate.data.grid import PixelFrame
from foveate.errors import InputError

EYES = {"L": "left", "R": "right"}

# A duration counts the last sample too, so it exceeds end minus start by one sample: 4 ms at the lowest rate, 250 Hz.
LONGEST_SAMPLE_MS = 4.0

# Where pixels are counted from 0, the last of 1280 is number 1279 and ends at 1280.
LAST_PIXEL = 1.0

_DISPLAY = re.compile(r"(GAZE_COORDS|DISPLAY_COORDS)\b[\s=]*(.*)")

ANEW = "convert the EDF file anew with edf2asc"

_MEASURED = ("x", "y", "pupil", "x_px_per_degree", "y_px_per_degree")


@dataclass(frozen=True)
class Message:
    """A MSG line."""

    line: int
    time_ms: float
    text: str


@dataclass(frozen=True)
class Recording:
    """The lines from START to END; where END is missing, to the next START or the end of the file."""

    first: int
    last: int
    ended: bool


@dataclass(frozen=True, eq=False)
class Asc:
    """What stands in a file, in its order."""

    name: str
    messages: list[Message]
    recordings: list[Recording]
    fixations: list[dict[str, Any]]
    blinks: list[tuple[str, float]]  # eye and start, in ms


def parse_asc(place: Path, encoding: str) -> Asc:
    """Everything in a file that can be read; a line that is damaged is an error."""
    asc = Asc(place.name, [], [], [], [])
    first = 0  # line of the START whose END has not come yet
    for number, line in _lines(place, encoding):
        where, words = f"{asc.name}, line {number}", line.split()
        match words[0]:
            case "MSG":
                time, text = (*line.split(maxsplit=2)[1:], "", "")[:2]
                asc.messages.append(Message(number, number_in(where, "the time of MSG", time), text.strip()))
            case "START":
                if first:
                    asc.recordings.append(Recording(first, number - 1, ended=False))
                first = number
            case "END":
                if not first:
                    raise InputError(f"{where}: END without a START before it; the file is damaged: {ANEW}.")
                asc.recordings.append(Recording(first, number, ended=True))
                first = 0
            case "EVENTS" if words[1:2] != ["GAZE"]:
                raise InputError(
                    f"{where}: fixations are in {shown((*words, 'no')[1])} coordinates, but gaze on the screen (GAZE) "
                    f"is needed; {ANEW}, with gaze positions."
                )
            case "EFIX":
                if not first:
                    raise InputError(f"{where}: the fixation stands outside START and END, in no trial; {ANEW}.")
                asc.fixations.append({"line": number, "recording": len(asc.recordings)} | _fixation(where, words))
            case "EBLINK":
                if len(words) != 5:
                    raise InputError(f"{where} has {len(words)} values, an EBLINK line has 5; {ANEW}.")
                asc.blinks.append((_eye_of(where, words[1]), number_in(where, "the start of EBLINK", words[2])))
    if first:
        asc.recordings.append(Recording(first, sys.maxsize, ended=False))
    if not asc.fixations:
        raise InputError(f"{asc.name} has no fixation (EFIX line); is it an ASC file? If so, {ANEW}, with events.")
    return asc


def _lines(place: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Number and text of every line that starts with a letter (samples do not); bytes that are no text are escaped."""
    number = 0
    try:
        with place.open(encoding=encoding, errors="surrogateescape") as text:
            for number, line in enumerate(text, start=1):
                if line[:1].isalpha():
                    yield number, line
    except (LookupError, TypeError, ValueError) as error:
        raise InputError(
            f"{place.name}, after line {number}: it is not text in the encoding {encoding!r}; pass the right one, such "
            "as encoding='latin-1'."
        ) from error
    except OSError as error:
        raise InputError(f"{place.name} cannot be read ({error.strerror}); check the file.") from error


def number_in(where: str, name: str, text: str, may_be_missing: bool = False) -> float:
    """A number of a line, in words that name it."""
    number = as_number(text)
    if number is None or not (np.isfinite(number) or (may_be_missing and np.isnan(number))):
        raise InputError(f"{where}: {name} is {shown(text)}, which is not a number; the line is damaged: {ANEW}.")
    return number


def _eye_of(where: str, letter: str) -> str:
    if letter not in EYES:
        raise InputError(f"{where}: the eye is {shown(letter)}, but must be L or R; the line is damaged: {ANEW}.")
    return EYES[letter]


def _fixation(where: str, words: list[str]) -> dict[str, Any]:
    if len(words) not in (8, 10):
        raise InputError(f"{where} has {len(words)} values, an EFIX line has 8, or 10 with px per degree; {ANEW}.")
    start, end, duration = (
        number_in(where, f"the {name} of EFIX", text)
        for name, text in zip(("start", "end", "duration"), words[2:5], strict=True)
    )
    if end < start or not 0 <= duration - (end - start) <= LONGEST_SAMPLE_MS:
        raise InputError(
            f"{where}: the fixation lasts from {start:.12g} to {end:.12g} ms, but its duration is {duration:.12g} ms; "
            f"the line is damaged: {ANEW}."
        )
    measured = {
        name: number_in(where, name, text, may_be_missing=True)
        for name, text in zip(_MEASURED, words[5:], strict=False)
    }
    return {"eye": _eye_of(where, words[1]), "start_ms": start, "end_ms": end, "duration": duration} | measured


def check_display(asc: Asc, frame: PixelFrame) -> None:
    """Refuse a frame that reaches beyond the display, or whose y grows the other way."""
    upward, where = False, asc.name
    for message in asc.messages:
        found = _DISPLAY.match(message.text)
        if not found:
            continue
        where = f"{asc.name}, line {message.line}"
        left, top, right, bottom = (number_in(where, found[1], word) for word in (*found[2].split(), *[""] * 4)[:4])
        upward = bottom < top
        for axis, start, size, low, high in (
            ("x", frame.left_px, frame.width_px, left, right),
            ("y", frame.near_px, frame.height_px, min(top, bottom), max(top, bottom)),
        ):
            if start < low or start + size > high + LAST_PIXEL:
                raise InputError(
                    f"{where}: {axis} goes from {low:g} to {high:g} px on the display ({found[1]}), but the frame "
                    f"reaches from {start:g} to {start + size:g} px; give the picture's place on this display."
                )
    if (frame.origin == "bottom") != upward:
        raise InputError(
            f"{where}: y grows {'upward' if upward else 'downward'} on the display, but the frame has origin = "
            f"{frame.origin!r}; say {'bottom' if upward else 'top'!r}, and measure near_px from there."
        )
