"""The formats that a settings file can name: for each a section with what its reader asks for.

A setting has the name of the reader's argument, and means the same. TOML has no 'nothing': where an argument may be
None, a setting is left out, or is `false` where leaving it out means a usual name.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.eyelink import read_eyelink
from foveate.data.readers.frames import read_pymovements
from foveate.data.readers.pysaliency_hdf5 import read_pysaliency
from foveate.data.readers.reports import ReadReport
from foveate.data.readers.saccade_tables import read_saccade_table
from foveate.data.readers.scenewalk import read_scenewalk
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

Read = tuple[ScanPaths, ReadReport]


@dataclass(frozen=True)
class Asked:
    """What every format is told: where the data are, the picture's rectangle, what becomes of rows that do not fit."""

    where: str  # the settings file and the section, for messages
    files: list[Path]
    frame: Any
    corner_deg: dict[str, float]  # x0_deg and y0_deg, where they were said
    rules: dict[str, Any]  # outside, missing and shortest

    @property
    def file(self) -> Path:
        """The one file or folder of a format that has one."""
        if len(self.files) != 1:
            raise InputError(f"{self.where}: there are {len(self.files)} files; this format reads one.")
        return self.files[0]


@dataclass(frozen=True)
class Columns:
    """[columns]: names of a table's columns, for format = "table"."""

    observer: str = "observer"
    picture: str = "picture"
    fixation: str = "fixation"
    x: str = "x"
    y: str = "y"
    duration: str | None = None
    trial: str | None = None
    forced: str | None = None

    unit: ClassVar[str | None] = None  # as the settings say

    def read(self, asked: Asked, position_unit: str, duration_unit: str | None) -> Read:
        """A table of fixations."""
        units = {"position_unit": position_unit, "duration_unit": duration_unit}
        return read_table(asked.file, frame=asked.frame, **units, **asked.corner_deg, **asked.rules, **vars(self))


@dataclass(frozen=True)
class EyeLink:
    """[eyelink]: which messages of ASC files say what."""

    picture: str
    observer: str | int | list[str] | None = None
    eye: str | None = None
    trial: str | None = None
    onset: str | None = None
    offset: str | None = None
    without_picture: str = "error"
    without_end: str = "error"
    encoding: str = "utf-8-sig"

    unit: ClassVar[str] = "px"

    def read(self, asked: Asked) -> Read:
        """One or several ASC files."""
        return read_eyelink(asked.files, frame=cast(PixelFrame, asked.frame), **asked.rules, **vars(self))


@dataclass(frozen=True)
class SaccadeTable:
    """[saccade_table]: columns of a table of saccades; `false` where it has no such column."""

    start: list[str] | bool
    start_duration: str | None = None
    start_forced: bool | None = None
    observer: str = "VP"
    picture: str = "Img"
    trial: str | bool = "trial"
    saccade: str = "saccade"
    x: str = "x"
    y: str = "y"
    duration: str | bool = "duration"
    forced: str | bool = "forced"
    blink: str | bool = "blink"

    unit: ClassVar[str] = "deg"

    def read(self, asked: Asked) -> Read:
        """A table of saccades."""
        names = {name: _name(asked, name, value) for name, value in vars(self).items() if name != "start_forced"}
        start = names.pop("start")
        return read_saccade_table(
            asked.file,
            frame=cast(Extent, asked.frame),
            start=None if start is None else tuple(start),  # type: ignore[arg-type]
            start_forced=self.start_forced,
            **names,
            **asked.corner_deg,
            **asked.rules,
        )


@dataclass(frozen=True)
class Pysaliency:
    """[pysaliency]: names of the stimuli and attributes of an HDF5 file of pysaliency."""

    pictures: list[str] | list[int] | None = None
    only: list[str] | list[int] | None = None
    duration: str | bool = "durations"
    duration_unit: str = "s"
    forced: str | None = None

    unit: ClassVar[str] = "px"

    def read(self, asked: Asked) -> Read:
        """An HDF5 file."""
        given = vars(self) | {"duration": _name(asked, "duration", self.duration)}
        return read_pysaliency(asked.file, frame=cast(PixelFrame, asked.frame), **given, **asked.rules)


@dataclass(frozen=True)
class SceneWalk:
    """[scenewalk]: which set of a folder; its pickles are read with `unpickle = true` alone."""

    name: str | None = None
    unpickle: bool = False

    unit: ClassVar[str] = "deg"

    def read(self, asked: Asked) -> Read:
        """A folder of arrays."""
        return read_scenewalk(asked.file, frame=asked.frame, **vars(self), **asked.corner_deg, **asked.rules)


@dataclass(frozen=True)
class Pymovements:
    """[pymovements]: columns of an event frame that was saved as a table."""

    observer: str
    picture: str
    trial: str | None = None
    event: str = "fixation"
    blink: str = "blink"
    location: str = "location"
    components: list[int] | None = None

    unit: ClassVar[str] = "px"

    def read(self, asked: Asked) -> Read:
        """A file with the events."""
        pair = self.components
        if pair is not None and len(pair) != 2:
            raise InputError(f"{asked.where}: components = {pair}; give two numbers, those of x and of y.")
        given = vars(self) | {"components": None if pair is None else (pair[0], pair[1])}
        return read_pymovements(asked.file, frame=cast(PixelFrame, asked.frame), **given, **asked.rules)


# The section of each format that is no plain table has its name.
FORMATS = {
    "eyelink": EyeLink,
    "saccade_table": SaccadeTable,
    "pysaliency": Pysaliency,
    "scenewalk": SceneWalk,
    "pymovements": Pymovements,
}
TABLE = "table"


def _name(asked: Asked, setting: str, value: Any) -> Any:
    """What a setting names; None where it says `false`."""
    if value is True:
        raise InputError(f"{asked.where}: {setting} = true; name it, or say false if there is none.")
    return None if value is False else value
