"""A study's settings in one small file (TOML): the data, their columns and units, the picture's geometry, the maps.

    [data]                              [columns]                   [picture]
    file = "fixations.csv"              observer = "subject"        width_px = 1280
    position_unit = "px"                picture = "image"           height_px = 1024
    duration_unit = "ms"                duration = "duration"       px_per_degree = 40

    [maps]                              [study]
    made_from = "fixations"             models = ["full", "local_saliency"]
    bandwidth_deg = "best"              folds = 5

Data that are no plain table have `format` in [data] and a section of that name: see `formats.py`.

Files are sought beside this one. What stands in [study] are defaults of the command line's options. Every name and
value is checked before anything is read; a name that does not exist is an error and never ignored.
"""

import tomllib
from dataclasses import dataclass, field, fields
from glob import glob
from pathlib import Path
from typing import Any, get_type_hints

from foveate.data.formats import FORMATS, TABLE, Asked, Columns
from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.reports import ReadReport
from foveate.data.scanpaths import ScanPaths
from foveate.data.sections import check_known, section
from foveate.data.texts import read_text
from foveate.errors import InputError, some_of

ENDING = ".toml"


@dataclass(frozen=True)
class DataSettings:
    """Which data, in which format, and what their numbers mean."""

    file: str | list[str]
    format: str = TABLE
    position_unit: str | None = None  # of a table; the other formats have one of their own
    duration_unit: str | None = None
    outside: str = "error"
    missing: str = "error"
    shortest: int = 1

    def unit(self, where: str) -> str:
        """The unit of positions: what a table's settings say, or what the format has; they must not contradict."""
        if self.format != TABLE and self.format not in FORMATS:
            names = some_of([TABLE, *FORMATS], 10)
            raise InputError(f"{where}, [data]: format = {self.format!r}; there are {names}.")
        if self.format == TABLE:
            if self.position_unit is None:
                raise InputError(f"{where}, [data]: position_unit missing; it must be said, since it is never guessed.")
            return self.position_unit
        own = FORMATS[self.format].unit
        if self.position_unit not in (None, own):
            raise InputError(
                f"{where}, [data]: position_unit = {self.position_unit!r}, but {self.format} has {own!r}; leave it out."
            )
        if self.duration_unit is not None:
            raise InputError(f"{where}, [data]: duration_unit is for tables; {self.format} has its own: leave it out.")
        return own


@dataclass(frozen=True)
class PictureSettings:
    """The picture's rectangle: on the screen in px, or in degrees."""

    width_px: float | None = None
    height_px: float | None = None
    px_per_degree: float | list[float] | None = None
    left_px: float | None = None
    near_px: float | None = None
    width_deg: float | None = None
    height_deg: float | None = None
    x0_deg: float | None = None
    y0_deg: float | None = None
    origin: str | None = None
    folder: str | None = None  # of the pictures themselves, as backgrounds

    @property
    def is_said(self) -> bool:
        """Whether there is anything about the rectangle."""
        return any(value is not None for name, value in vars(self).items() if name != "folder")

    def frame(self, unit: str, where: str) -> PixelFrame | Extent:
        """The rectangle in the unit that positions are given in; what belongs to the other unit is refused."""
        kinds = {"px": ("width_px", "height_px", "px_per_degree"), "deg": ("width_deg", "height_deg")}
        if unit not in kinds:
            raise InputError(f"{where}, [data]: position_unit = {unit!r}; say 'px' or 'deg'.")
        missing = [name for name in kinds[unit] if getattr(self, name) is None]
        if missing:
            raise InputError(
                f"{where}, [picture]: {some_of(missing)} missing; positions in {unit} need {some_of(kinds[unit])}."
            )
        others = {"px": ("width_deg", "height_deg", "x0_deg", "y0_deg"), "deg": (*kinds["px"], "left_px", "near_px")}
        wrong = [name for name in others[unit] if getattr(self, name) is not None]
        if wrong:
            raise InputError(f"{where}, [picture]: {some_of(wrong)} cannot go with positions in {unit}; remove it.")
        given = {name: getattr(self, name) for name in kinds[unit]}
        if unit == "deg":
            return Extent(**given, **({} if self.origin is None else {"origin": self.origin}))  # type: ignore[arg-type]
        if isinstance(self.px_per_degree, list):
            given["px_per_degree"] = tuple(map(float, self.px_per_degree))
        more = {name: getattr(self, name) for name in ("left_px", "near_px", "origin")}
        return PixelFrame(**given, **{name: value for name, value in more.items() if value is not None})


@dataclass(frozen=True)
class MapSettings:
    """Where the maps come from: from the fixations themselves, or from greyscale images in a folder."""

    made_from: str = "fixations"
    folder: str | None = None  # of the images, each named after its picture
    bandwidth_deg: float | str = "best"  # of maps from fixations; "best" predicts left-out observers best
    leave_one_out: bool = True  # each observer's maps without their own fixations
    uniform_share: float = 0.01  # spread over all cells, so that none is left at zero

    def check(self, where: str) -> None:
        """Refuse what cannot be meant."""
        if self.made_from not in ("fixations", "images"):
            raise InputError(f"{where}, [maps]: made_from = {self.made_from!r}; say 'fixations' or 'images'.")
        if self.made_from == "images" and self.folder is None:
            raise InputError(f"{where}, [maps]: folder missing; maps from images need the folder that they are in.")
        if isinstance(self.bandwidth_deg, str) and self.bandwidth_deg != "best":
            raise InputError(
                f"{where}, [maps]: bandwidth_deg = {self.bandwidth_deg!r}; give a number of degrees, or 'best'."
            )


@dataclass(frozen=True)
class StudySettings:
    """Defaults of the command line's options of the same names."""

    models: list[str] | None = None
    model: str | None = None
    priors: str | None = None
    observers: list[str] | str | None = None
    folds: int | None = None
    draws: int | None = None
    cells: int | None = None
    seed: int | None = None
    workers: int | None = None

    def options(self) -> dict[str, Any]:
        """The options as one writes them on the command line."""
        given = {it.name: getattr(self, it.name) for it in fields(self) if getattr(self, it.name) is not None}
        return {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in given.items()}


@dataclass(frozen=True)
class Project:
    """All settings of one file."""

    file: Path
    data: DataSettings
    columns: Columns = field(default_factory=Columns)
    picture: PictureSettings = field(default_factory=PictureSettings)
    maps: MapSettings = field(default_factory=MapSettings)
    study: StudySettings = field(default_factory=StudySettings)
    source: Any = None  # the section of the format, where that is no plain table

    @classmethod
    def read(cls, file: str | Path) -> "Project":
        """The settings in a file; a mistake is an error that names the section and the setting."""
        place = Path(file)
        try:
            said = tomllib.loads(read_text(place, str(place)))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{place}: {error}; mend that line.") from error
        kinds = {name: kind for name, kind in get_type_hints(cls).items() if name not in ("file", "source")}
        check_known(place.name, said, kinds | FORMATS, "section")
        sections = {name: section(kinds[name], name, said.get(name, {}), place.name) for name in kinds}
        data: DataSettings = sections["data"]
        data.unit(place.name)  # refuses an unknown format
        for name in said:
            if name != data.format and (name in FORMATS or (name == "columns" and data.format != TABLE)):
                meant = TABLE if name == "columns" else name
                raise InputError(
                    f"{place.name}: [{name}] is for format = {meant!r}, but [data] has {data.format!r}; remove the "
                    "section, or name that format."
                )
        own = FORMATS.get(data.format)
        if own is not None:
            sections["source"] = section(own, data.format, said.get(data.format, {}), place.name)
        project = cls(place, **sections)
        project.frame()
        project.maps.check(place.name)
        return project

    def beside(self, name: str) -> Path:
        """A file or folder that the settings name, sought beside them."""
        return self.file.parent / name

    def frame(self) -> PixelFrame | Extent | None:
        """The picture's rectangle; None where a SceneWalk folder is to tell it."""
        unit = self.data.unit(self.file.name)
        if self.data.format == "scenewalk" and not self.picture.is_said:
            return None
        return self.picture.frame(unit, self.file.name)

    def paths(self) -> tuple[ScanPaths, ReadReport]:
        """The scan paths of the data, and what became of their rows."""
        data = self.data
        asked = Asked(
            where=f"{self.file.name}, [{'data' if self.source is None else data.format}]",
            files=self._files(),
            frame=self.frame(),
            corner_deg={it: value for it in ("x0_deg", "y0_deg") if (value := getattr(self.picture, it)) is not None},
            rules={name: getattr(data, name) for name in ("outside", "missing", "shortest")},
        )
        if self.source is not None:
            return self.source.read(asked)
        return self.columns.read(asked, data.unit(self.file.name), data.duration_unit)

    def _files(self) -> list[Path]:
        """The files that the settings name; a pattern such as "asc/*.asc" stands for all that fit, by their names."""
        names = [self.data.file] if isinstance(self.data.file, str) else self.data.file
        found: list[Path] = []
        for name in names:
            place = self.beside(name)
            if "*" not in name or place.exists():
                found.append(place)
                continue
            fitting = sorted(self.beside(it) for it in glob(name, root_dir=self.file.parent))
            if not fitting:
                raise InputError(f"{self.file.name}, [data]: file = {name!r}, but no file fits that; check the folder.")
            found += fitting
        return found
