"""Scan paths and maps in the folders that the SceneWalk model reads and writes.

A folder holds `NAME_x.npy`, `NAME_y.npy`, `NAME_dur.npy` and `NAME_im.npy`, each [observer][trial][fixation]: degrees
from the bottom left, seconds, and the number of the picture, which counts from 1. `NAME_range.npy` holds the rectangle
of the pictures, ((x_min, x_max), (y_min, y_max)), and `NAME_densities.npy` or `densities.npy` one map per picture, row
0 at the bottom. Neither observers nor trials have names: they are numbered from 1 in the order of the files.

Paths of unequal length make these files pickles, which can run any program. They are read only if asked for, and then
by `pickles.py`, which runs nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.lib import format as npy

from foveate.data.columns import LARGEST_WHOLE_NUMBER
from foveate.data.grid import Extent
from foveate.data.readers.pickles import nested_numbers
from foveate.data.readers.reports import ReadReport
from foveate.data.readers.sources import Source
from foveate.data.readers.table import read_table
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.data.texts import reason_of
from foveate.errors import InputError, some_of

PARTS = ("x", "y", "dur", "im")

# Two statements of the same rectangle may differ by rounding, in degrees.
SAME_DEG = 1e-6

_ANEW = "write the folder anew"


def read_scenewalk(
    folder: str | Path,
    *,
    name: str | None = None,
    unpickle: bool = False,
    frame: Extent | None = None,
    x0_deg: float | None = None,
    y0_deg: float | None = None,
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
) -> tuple[ScanPaths, ReadReport]:
    """Scan paths from a SceneWalk folder, and a report.

    `name` is what the files' names start with, needed if the folder holds several sets. Files that are pickles are
    read only with `unpickle=True`; nothing in them is run. The pictures' rectangle is that of the range file; without
    one, `frame` gives it, with the position (`x0_deg`, `y0_deg`) of its bottom left corner, (0, 0) if not said. Where
    arguments and file contradict each other, both are refused. `outside`, `missing` and
    `shortest` as in `read_table`.
    """
    place, name = _place(folder, name)
    extent, corner_deg = _rectangle(place, name, frame, x0_deg, y0_deg, unpickle)
    files = [place / f"{name}_{part}.npy" for part in PARTS]
    columns, empty = _columns(files, [_nested(file, unpickle) for file in files])
    paths, report = read_table(
        Source(f"{place.name}/{name}", pd.DataFrame(columns)),
        frame=extent,
        position_unit="deg",
        x0_deg=corner_deg[0],
        y0_deg=corner_deg[1],
        duration="dur",
        duration_unit="s",
        trial="trial",
        outside=outside,
        missing=missing,
        shortest=shortest,
    )
    return paths, replace(report, lost_paths=(*report.lost_paths, *empty))


def read_scenewalk_maps(
    folder: str | Path, *, name: str | None = None, unpickle: bool = False, frame: Extent | None = None
) -> SaliencyMaps:
    """The maps in a SceneWalk folder, by the pictures' numbers, over the rectangle of the range file or else `frame`.

    Each must sum to one. Pictures that nobody saw have maps too: pair with `maps.select(paths.pictures)`.
    """
    place, name = _place(folder, name)
    extent, _ = _rectangle(place, name, frame, None, None, unpickle)
    file = place / f"{name}_densities.npy"
    file = file if file.is_file() else place / "densities.npy"
    maps = {}
    for picture, values in enumerate(_items(_nested(file, unpickle), f"{file.name}: it"), start=1):
        maps[picture] = _numbers(values, f"{file.name}: the map of picture {picture}")
    return SaliencyMaps.from_arrays(maps, extent)


def _place(folder: str | Path, name: str | None) -> tuple[Path, str]:
    """The folder, and what the names of its files start with."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place} is not a folder; give the one that holds SceneWalk's files such as NAME_x.npy.")
    names = sorted(file.name.removesuffix("_x.npy") for file in place.glob("*_x.npy"))
    if name is not None and name not in names:
        there = f"it has {some_of(names)}" if names else "it has no set at all"
        raise InputError(f"{place}: there is no {name}_x.npy; {there}: give the right name.")
    if name is None and len(names) != 1:
        found = f"{len(names)} sets ({some_of(names)})" if names else "no file whose name ends in _x.npy"
        raise InputError(f"{place} holds {found}; give the right folder, and name='...' if it holds several sets.")
    return place, names[0] if name is None else name


def _rectangle(
    place: Path, name: str, frame: Extent | None, x0_deg: float | None, y0_deg: float | None, unpickle: bool
) -> tuple[Extent, tuple[float, float]]:
    """The pictures' extent and its corner (x, y), from the range file or as given; they must not contradict."""
    if frame is not None and frame.origin != "bottom":
        raise InputError("SceneWalk measures y from the bottom; give frame=Extent(..., origin='bottom').")
    file = place / f"{name}_range.npy"
    if not file.is_file():
        if frame is None:
            raise InputError(
                f"{place}: there is no {file.name}; give the pictures' rectangle with frame=Extent(height_deg, "
                "width_deg), and x0_deg and y0_deg if its corner is not (0, 0)."
            )
        return frame, (x0_deg or 0.0, y0_deg or 0.0)
    values = _numbers(_nested(file, unpickle), f"{file.name}: the range")
    if values.shape != (2, 2) or not np.isfinite(values).all() or (values[:, 0] >= values[:, 1]).any():
        raise InputError(f"{file.name} must hold (x_min, x_max) and (y_min, y_max), in degrees; {_ANEW}.")
    (x_min, x_max), (y_min, y_max) = values.tolist()
    extent = Extent(y_max - y_min, x_max - x_min, "bottom")
    for what, stated, held in (
        ("width_deg", frame and frame.width_deg, extent.width_deg),
        ("height_deg", frame and frame.height_deg, extent.height_deg),
        ("x0_deg", x0_deg, x_min),
        ("y0_deg", y0_deg, y_min),
    ):
        if stated is not None and not abs(stated - held) <= SAME_DEG:
            raise InputError(
                f"{file.name} says {what} = {held:g}, the argument says {stated:g}; leave the argument out, or mend "
                "the file."
            )
    return extent, (x_min, y_min)


def _nested(file: Path, unpickle: bool) -> Any:
    """What an `.npy` file holds: an array of numbers, or the lists in a pickle."""
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; give a whole SceneWalk folder.")
    try:
        with file.open("rb") as stream:
            read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            _, _, kind = read_header[npy.read_magic(stream)](stream)
            pickled = stream.read() if kind.hasobject else None
        if pickled is None:
            array = np.load(file, allow_pickle=False)
            if array.dtype.kind not in "iufb":
                raise TypeError(f"it holds {array.dtype}, not numbers")
            return array
    # A broken file can fail in every way there is.
    except Exception as error:
        raise InputError(f"{file.name} cannot be read as .npy ({reason_of(error)}); {_ANEW}.") from error
    if not unpickle:
        raise InputError(
            f"{file.name} is a pickle, as paths of unequal length are; read it with unpickle=True, which takes lists "
            "and numbers from it and runs nothing."
        )
    return nested_numbers(pickled, file.name)


def _columns(files: Sequence[Path], parts: Sequence[Any]) -> tuple[dict[str, np.ndarray], list[str]]:
    """The fixations of all four files, one below the other, and the names of the paths that have none."""
    rows: dict[str, list[np.ndarray]] = {key: [] for key in ("observer", "trial", "picture", "fixation", *PARTS[:3])}
    empty = []
    for observer, of_observer in _together(files, parts, "observers"):
        if all(part is None for part in of_observer):  # so SceneWalk writes an observer whom it did not simulate
            empty.append(f"observer {observer} (not in the files)")
            continue
        for trial, of_trial in _together(files, of_observer, "trials", f"observer {observer}"):
            where = f"observer {observer}, trial {trial}"
            x, y, duration, picture = (
                _numbers(values, f"{file.name}: {where}") for file, values in zip(files, of_trial, strict=True)
            )
            for file, values in zip(files[:3], (x, y, duration), strict=True):
                if values.ndim != 1 or len(values) != len(x):
                    raise InputError(
                        f"{file.name}: {where} has the shape {values.shape}, but {files[0].name} has {x.shape}, and "
                        f"each must be a list of its fixations; {_ANEW}."
                    )
            if len(x) == 0:
                empty.append(f"{where} (empty in the files)")
                continue
            number = _picture(picture, len(x), f"{files[3].name}: {where}")
            for key, value in (("observer", observer), ("trial", trial), ("picture", number)):
                rows[key].append(np.full(len(x), value))
            for key, values in (("fixation", np.arange(1, len(x) + 1)), ("x", x), ("y", y), ("dur", duration)):
                rows[key].append(values)
    return {key: np.concatenate(values) if values else np.zeros(0) for key, values in rows.items()}, empty


def _together(
    files: Sequence[Path], parts: Sequence[Any], what: str, where: str = ""
) -> list[tuple[int, tuple[Any, ...]]]:
    """The items of all four files side by side, numbered from 1; there must be as many in each."""
    start = f"{where}: " if where else ""
    lists = [_items(part, f"{file.name}: {where or 'it'}") for file, part in zip(files, parts, strict=True)]
    for file, items in zip(files, lists, strict=True):
        if len(items) != len(lists[0]):
            raise InputError(
                f"{file.name}: {start}there are {len(items)} {what}, but {len(lists[0])} in {files[0].name}; {_ANEW}."
            )
    return list(enumerate(zip(*lists, strict=True), start=1))


def _items(part: Any, where: str) -> list:
    if isinstance(part, np.ndarray) and part.ndim > 0:
        return list(part)
    if not isinstance(part, list):
        raise InputError(f"{where} must be a list or an array, [observer][trial][fixation]; {_ANEW}.")
    return part


def _numbers(values: Any, where: str) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # a wider float may not fit; then it is infinite, and refused as such
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where} must be plain numbers, all lists equally long; {_ANEW}.") from error


def _picture(values: np.ndarray, fixations: int, where: str) -> int:
    """The number of the one picture of a trial: it stands there once, or beside every fixation."""
    if values.ndim > 1 or values.size not in (1, fixations):
        raise InputError(f"{where} has {values.size} picture numbers for {fixations} fixations; {_ANEW}.")
    number = float(values.flat[0])
    if not (values == number).all() or not number.is_integer() or not 1 <= number <= LARGEST_WHOLE_NUMBER:
        raise InputError(
            f"{where} must be one picture, a whole number from 1; it has {some_of(values.ravel().tolist())}."
        )
    return int(number)
