"""A study's settings in one small file (TOML): the table, its columns and units, the picture's geometry, the maps.

    [data]                              [columns]                   [picture]
    file = "fixations.csv"              observer = "subject"        width_px = 1280
    position_unit = "px"                picture = "image"           height_px = 1024
    duration_unit = "ms"                duration = "duration"       px_per_degree = 40

    [maps]                              [study]
    made_from = "fixations"             models = ["full", "local_saliency"]
    bandwidth_deg = "best"              folds = 5

Files are sought beside this one. What stands in [study] are defaults of the command line's options. Every name and
value is checked before anything is read; a name that does not exist is an error and never ignored.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.table import ReadReport, read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

ENDING = ".toml"


@dataclass(frozen=True)
class DataSettings:
    """Which table, and what its numbers mean."""

    file: str
    position_unit: str
    duration_unit: str | None = None
    outside: str = "error"
    missing: str = "error"
    shortest: int = 1


@dataclass(frozen=True)
class Columns:
    """Names of the table's columns."""

    observer: str = "observer"
    picture: str = "picture"
    fixation: str = "fixation"
    x: str = "x"
    y: str = "y"
    duration: str | None = None
    trial: str | None = None


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

    @classmethod
    def read(cls, file: str | Path) -> "Project":
        """The settings in a file; a mistake is an error that names the section and the setting."""
        place = Path(file)
        try:
            said = tomllib.loads(place.read_text(encoding="utf-8-sig"))
        except FileNotFoundError as error:
            raise InputError(f"{place}: there is no such file; check the name and the folder.") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{place} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
        except OSError as error:
            raise InputError(f"{place} cannot be read ({error.strerror}).") from error
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{place}: {error}; mend that line.") from error
        kinds = {name: kind for name, kind in get_type_hints(cls).items() if name != "file"}
        _check_known(place.name, said, kinds, "section")
        sections = {name: _section(kinds[name], name, said.get(name, {}), place.name) for name in kinds}
        project = cls(place, **sections)
        project.picture.frame(project.data.position_unit, place.name)
        project.maps.check(place.name)
        return project

    def beside(self, name: str) -> Path:
        """A file or folder that the settings name, sought beside them."""
        return self.file.parent / name

    def paths(self) -> tuple[ScanPaths, ReadReport]:
        """The scan paths of the table, and what became of its rows."""
        data, picture = self.data, self.picture
        corner = {name: getattr(picture, name) or 0.0 for name in ("x0_deg", "y0_deg")}
        return read_table(
            self.beside(data.file),
            frame=picture.frame(data.position_unit, self.file.name),
            **corner,
            **{name: value for name, value in vars(data).items() if name != "file"},
            **vars(self.columns),
        )


# --- checking what a file says ---------------------------------------------------------------------------------------

Section = TypeVar("Section")


def _check_known(where: str, said: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    for name in said:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            instead = f"do you mean {near[0]!r}?" if near else f"there are {some_of(list(known), 20)}."
            raise InputError(f"{where}: there is no {what} {name!r}; {instead}")


def _section(kind: type[Section], name: str, said: Any, file: str) -> Section:
    """A section as its dataclass, every name and type checked."""
    where = f"{file}, [{name}]"
    if not isinstance(said, Mapping):
        raise InputError(f"{file}: {name} is a section; write [{name}] and its settings below.")
    hints = get_type_hints(kind)
    _check_known(where, said, hints, "setting")
    for setting, value in said.items():
        if not _fits(value, hints[setting]):
            raise InputError(f"{where}: {setting} = {value!r}; give {_words(hints[setting])}.")
    needed = [it.name for it in fields(kind) if it.default is MISSING and it.name not in said]  # type: ignore[arg-type]
    if needed:
        raise InputError(f"{where}: {some_of(needed)} missing; it must be said, since it is never guessed.")
    return kind(**said)


def _choices(hint: Any) -> tuple[Any, ...]:
    every = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(it for it in every if it is not type(None))


def _fits(value: Any, hint: Any) -> bool:
    for kind in _choices(hint):
        if get_origin(kind) is list:
            if isinstance(value, list) and all(_fits(item, get_args(kind)[0]) for item in value):
                return True
        elif kind is float:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return True
        elif type(value) is kind:
            return True
    return False


_NAMES = {str: "text in quotes", float: "a number", int: "a whole number", bool: "true or false"}


def _words(hint: Any) -> str:
    return " or ".join(
        f"a list of {_NAMES[get_args(kind)[0]]}" if get_origin(kind) is list else _NAMES[kind]
        for kind in _choices(hint)
    )
