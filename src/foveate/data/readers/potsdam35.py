"""The potsdam35 data set: 35 observers, 30 natural scenes, 28,264 fixations (Engbert et al., 2015).

Positions are degrees from the corner of the rectangle that the published maps cover (`range.dat`). In the released
files they are scaled as x * 64 / x_max instead, which shifts them against the maps by up to a degree; `released_px`
gives those, for comparison only.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.columns import RowName, numbers
from foveate.data.dataset import Dataset
from foveate.data.density import density_maps, leave_one_out_maps
from foveate.data.grid import PUBLISHED_PX_DEG, Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

VARIABLE, NAME = "FOVEATE_POTSDAM35", "potsdam35"
PICTURES = tuple(range(1, 31))

# How the published maps were made: cells a side, and standard deviation of the Gaussian.
PUBLISHED_CELLS = 128
PUBLISHED_BANDWIDTH_DEG = 1.05

# Cells a side of the grid on which the published parameter values are given.
RELEASED_CELLS = 64

# Test pictures of the five folds of the published cross-validation.
POTSDAM35_FOLDS = (
    (9, 10, 12, 15, 25, 27),
    (3, 4, 16, 18, 22, 29),
    (2, 8, 13, 19, 21, 30),
    (1, 7, 14, 17, 20, 24),
    (5, 6, 11, 23, 26, 28),
)

_COLUMNS = ("subj", "trial", "fixation", "xpos", "ypos", "fdur")


def read_potsdam35(folder: str | Path | None = None, *, cells: int = 64, maps: str = "published") -> Dataset:
    """The data set, with maps of `cells` x `cells` cells; without a folder, that named by FOVEATE_POTSDAM35.

    `maps` is 'published' (the 128 x 128 maps in the folder) or 'rebuilt' (the same by our own kernel density, for a
    folder without them); either is summed to the grid asked for.
    """
    place = _folder(folder)
    if maps not in ("published", "rebuilt"):
        raise InputError(f"maps = {maps!r}: say 'published' or 'rebuilt'.")
    files = {picture: place / "fixations" / f"fixloc_{picture}.dat" for picture in PICTURES}
    map_files = {picture: place / "saliencies" / f"fx_{picture}.dat" for picture in PICTURES}
    _check_files(place, [place / "fixations" / "range.dat", *files.values()])
    if maps == "published":
        _check_files(place, list(map_files.values()))
    corner_deg, extent = _range(place / "fixations" / "range.dat")
    paths = _paths(files, corner_deg, extent)
    grid = Grid(cells, cells, extent)
    if maps == "published":
        fine = SaliencyMaps.from_arrays({picture: _map(file) for picture, file in map_files.items()}, extent)
    else:
        fine = density_maps(paths, _published_grid(extent), PUBLISHED_BANDWIDTH_DEG)
    return Dataset(paths, fine.resample(grid))


def potsdam35_leave_one_out(paths: ScanPaths, *, cells: int = 64) -> dict[int, SaliencyMaps]:
    """For each observer the maps by the published recipe without that observer, summed to `cells` x `cells`."""
    fine = _published_grid(paths.extent)
    return leave_one_out_maps(paths, fine, PUBLISHED_BANDWIDTH_DEG, resample_to=Grid(cells, cells, paths.extent))


def released_px(
    paths: ScanPaths, *, cells: int = RELEASED_CELLS
) -> tuple[Float[np.ndarray, "path fixation"], Float[np.ndarray, "path fixation"]]:
    """(row, column) of every fixation as the released files have them: y * 64 / y_max and x * 64 / x_max on 64 x 64.

    Measured from the screen's corner, they lie up to a degree off the maps, which start at the picture's; the
    released code then reads the map at the rounded position, clamped to the grid. For comparison only.
    """
    y_max_deg, x_max_deg = (RELEASED_CELLS * px_deg for px_deg in PUBLISHED_PX_DEG)
    y_deg = paths.y_deg + (y_max_deg - paths.extent.height_deg)
    x_deg = paths.x_deg + (x_max_deg - paths.extent.width_deg)
    return y_deg * cells / y_max_deg, x_deg * cells / x_max_deg


def _folder(folder: str | Path | None) -> Path:
    if str(folder) == NAME and not Path(NAME).exists():  # by its name, from anywhere
        folder = None
    if folder is None and not os.environ.get(VARIABLE):
        raise InputError(f"no folder given for potsdam35: pass one, or set the environment variable {VARIABLE} to it.")
    place = Path(os.environ[VARIABLE] if folder is None else folder)
    if not place.is_dir():
        raise InputError(
            f"{place} is not a folder; give the one that holds potsdam35's 'fixations' and 'saliencies' (a table of "
            "your own is read with the settings that `foveate init` writes for it)."
        )
    return place


def _check_files(place: Path, files: list[Path]) -> None:
    missing = [str(file.relative_to(place)) for file in files if not file.is_file()]
    if missing:
        raise InputError(
            f"{place} is not the potsdam35 folder, or not all of it: {some_of(missing, 3)} missing; "
            "give the folder that holds its 'fixations' and 'saliencies'."
        )


def _range(file: Path) -> tuple[tuple[float, float], Extent]:
    """Corner (y, x) and extent of the rectangle that the maps cover."""
    table = _read(file, sep=r"\s+")
    try:
        (x_min, x_max), (y_min, y_max) = (table[name].to_numpy(dtype=float) for name in ("xrange", "yrange"))
    except (KeyError, ValueError) as error:
        raise InputError(f"{file} must hold two rows of numbers, xrange and yrange; fetch it anew.") from error
    return (float(y_min), float(x_min)), Extent(float(y_max - y_min), float(x_max - x_min), "bottom")


def _paths(files: dict[int, Path], corner_deg: tuple[float, float], extent: Extent) -> ScanPaths:
    tables = []
    for picture, file in files.items():
        table = _read(file, sep="\t")
        missing = [name for name in _COLUMNS if name not in table.columns]
        if missing:
            raise InputError(f"{file}: column {some_of(missing)} missing; fetch the file anew.")
        y, x, duration = (numbers(table, name, _line_of(file)) for name in ("ypos", "xpos", "fdur"))
        columns = {name: table[name] for name in ("trial", "fixation")}
        columns |= {"y_deg": y - corner_deg[0], "x_deg": x - corner_deg[1], "duration_s": duration / 1000}
        tables.append(pd.DataFrame({"observer": table["subj"], "picture": picture} | columns))
    return ScanPaths.from_table(pd.concat(tables, ignore_index=True), extent)


def _line_of(file: Path) -> RowName:
    return lambda row: f"{file.name}, line {row + 2}"


def _read(file: Path, sep: str) -> pd.DataFrame:
    try:
        return pd.read_csv(file, sep=sep)
    except (ValueError, OSError) as error:
        raise InputError(f"{file} cannot be read as a table ({error}); fetch it anew.") from error


def _map(file: Path) -> np.ndarray:
    try:
        return np.loadtxt(file, delimiter=",", ndmin=2)
    except ValueError as error:
        raise InputError(f"{file} cannot be read as a map ({error}); fetch it anew.") from error


def _published_grid(extent: Extent) -> Grid:
    return Grid(PUBLISHED_CELLS, PUBLISHED_CELLS, extent)
