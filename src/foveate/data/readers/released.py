"""The processed files released with potsdam35's paper: fixations and maps of five folds, paired as they are there.

For the analysis 'as released' only; `read_potsdam35` has the data as they were recorded. In the released files

- positions are pixels of a 64 x 64 grid, x * 64 / x_max, although the maps tile x_min to x_max: up to 2 px off;
- the first and the last fixation of every path are missing;
- the maps are the published ones on half as many cells a side by cubic interpolation, not sums of 2 x 2 cells (they
  differ from those by up to 1.3 % of a map's peak);
- on the test side the fixations of a picture stand beside the map of another one;
- the code that reads them takes cell k to lie at pixel k: saliency is read at the rounded position, clamped to the
  grid, and distances are differences between a position and whole numbers.

Here a position is half a pixel further: cells whose centres lie at k + 1/2 are then at the same distance, and the cell
that holds the position is the rounded one. So a `Grid` carries the released geometry, and no model knows about it. Only
positions beyond the last half pixel would leave the grid; they are moved to its edge (`SideOfFold.moved` counts them).

The files are pickles, which can run any program; `pickles.py` reads them without running anything.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.data.grid import PUBLISHED_PX_DEG, Extent, Grid
from foveate.data.readers.pickles import read_arrays
from foveate.data.readers.potsdam35 import RELEASED_CELLS, VARIABLE
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

FOLDER = "processed_data"

# The released code takes whole pixels for the places of cells; a `Grid` has its centres halfway.
CENTRE_PX = 0.5

_HEIGHT_DEG, _WIDTH_DEG = (RELEASED_CELLS * size for size in PUBLISHED_PX_DEG)
RELEASED_GRID = Grid(RELEASED_CELLS, RELEASED_CELLS, Extent(_HEIGHT_DEG, _WIDTH_DEG, "bottom"))

PathPx = Float[np.ndarray, "2 _fixation"]
Maps = Float[np.ndarray, "picture row column"]


@dataclass(frozen=True, eq=False)
class SideOfFold:
    """Training or test data of a fold, as paired in the files.

    Beside the fixations of `pictures[i]` stands the map of `map_pictures[i]`.
    """

    pictures: tuple[int, ...]
    map_pictures: tuple[int, ...]
    fixations_px: tuple[tuple[PathPx, ...], ...]  # picture, observer: (row, column) of every fixation
    maps: Maps

    @cached_property
    def moved(self) -> int:
        """How many fixations lie beyond the centre of the last cell by half a pixel, and are moved back to its edge."""
        return int(sum((path > RELEASED_CELLS - CENTRE_PX).any(axis=0).sum() for path in self._paths))

    @property
    def _paths(self) -> list[PathPx]:
        return [path for picture in self.fixations_px for path in picture]

    def dataset(self, *, scored_from: Literal[2, 3] = 3) -> Dataset:
        """These fixations and maps for any model; pixels as they were are in the columns `row_px` and `column_px`.

        A picture is named after its fixations. Fixations count from 2, the first having been dropped. The released
        code scores the full model from the third remaining fixation of a path, the others from the second; every
        model here is scored from the third. `scored_from=2` puts a copy of the first remaining fixation before it,
        numbered 1, so that the second becomes the third: for models that look at the present fixation only, which
        never see the copy. Paths without fixations are left out.
        """
        if scored_from not in (2, 3):
            raise InputError(f"scored_from = {scored_from}: the released code scores from the fixation 2 or 3 on.")
        parts = []
        for picture, paths in zip(self.pictures, self.fixations_px, strict=True):
            for observer, path in enumerate(paths, start=1):
                first = path.shape[1] > 0 and scored_from == 2
                positions = np.concatenate([path[:, :1], path], axis=1) if first else path
                numbers = np.arange(positions.shape[1]) + (1 if first else 2)
                parts.append((np.full_like(numbers, observer), np.full_like(numbers, picture), numbers, positions))
        table = _table(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))
        paths = ScanPaths.from_table(table, RELEASED_GRID.extent)
        return Dataset(paths, SaliencyMaps(RELEASED_GRID, self.pictures, self.maps))


@dataclass(frozen=True, eq=False)
class ReleasedFold:
    """One fold of the released cross-validation."""

    train: SideOfFold
    test: SideOfFold


@dataclass(frozen=True, eq=False)
class Released:
    """All released files: five folds, and the 64 x 64 maps of all pictures in the order of their file."""

    folds: tuple[ReleasedFold, ...]
    shuffled_pictures: tuple[int, ...]
    shuffled_maps: Maps


def read_released(folder: str | Path | None = None) -> Released:
    """The released files in the folder `processed_data` of potsdam35's; by default that of FOVEATE_POTSDAM35.

    The files number the training pictures only. Which pictures the test fixations and the test maps belong to is found
    by their values, which stand on the training side of the other folds too.
    """
    place = folder if folder is not None else os.environ.get(VARIABLE)
    if not place:
        raise InputError(f"no folder given for potsdam35: pass one, or set the environment variable {VARIABLE} to it.")
    files = Path(place) / FOLDER
    indices, fixations, maps, test_fixations, test_maps, shuffled = (
        read_arrays(files / f"{name}.p", remedy=f"give potsdam35's folder with its {FOLDER!r}")
        for name in (
            "indices_for_cross_validation",
            "fixs_for_cross_validation",
            "sals_for_cross_validation",
            "test_fixs_for_cross_validation",
            "test_sals_for_cross_validation",
            "saliencies_red_res_shuff",
        )
    )
    _check_shapes(files, indices, (fixations, maps, test_fixations, test_maps))
    pictures = [tuple(int(number) for number in row) for row in indices]
    by_map, by_fixations = {}, {}
    for numbers, fold_maps, fold_fixations in zip(pictures, maps, fixations, strict=True):
        for number, values, paths in zip(numbers, fold_maps, fold_fixations, strict=True):
            by_map[_key([values])], by_fixations[_key(paths)] = number, number

    def found(known: dict[bytes, int], items: Sequence, what: str) -> tuple[int, ...]:
        keys = [_key(item) for item in items]
        if not set(keys) <= set(known):
            raise InputError(f"{files}: {what} are not among the training data of the other folds; fetch them anew.")
        return tuple(known[key] for key in keys)

    folds = []
    for fold, numbers in enumerate(pictures):
        train = SideOfFold(numbers, numbers, _frozen(fixations[fold]), np.stack(maps[fold]))
        test = SideOfFold(
            found(by_fixations, test_fixations[fold], f"the test fixations of fold {fold + 1}"),
            found(by_map, [[values] for values in test_maps[fold]], f"the test maps of fold {fold + 1}"),
            _frozen(test_fixations[fold]),
            np.stack(test_maps[fold]),
        )
        folds.append(ReleasedFold(train, test))
    order = found(by_map, [[values] for values in shuffled], "the shuffled maps")
    return Released(tuple(folds), order, np.stack(shuffled))


def _table(observer: np.ndarray, picture: np.ndarray, numbers: np.ndarray, path_px: PathPx) -> pd.DataFrame:
    row_px, column_px = path_px
    y_px, x_px = np.minimum(path_px + CENTRE_PX, RELEASED_CELLS)
    columns = {
        "observer": observer,
        "picture": picture,
        "fixation": numbers,
        # The product may exceed the extent by a rounding error.
        "y_deg": np.minimum(y_px * PUBLISHED_PX_DEG[0], _HEIGHT_DEG),
        "x_deg": np.minimum(x_px * PUBLISHED_PX_DEG[1], _WIDTH_DEG),
        "row_px": row_px,
        "column_px": column_px,
    }
    return pd.DataFrame(columns)


def _key(arrays: Sequence[np.ndarray]) -> bytes:
    """Equal for equal arrays."""
    return b"".join(repr(array.shape).encode() + array.tobytes() for array in arrays)


def _frozen(pictures: Sequence[Sequence[np.ndarray]]) -> tuple[tuple[np.ndarray, ...], ...]:
    return tuple(tuple(paths) for paths in pictures)


def _check_shapes(files: Path, indices: Any, lists: tuple[Any, Any, Any, Any]) -> None:
    """Refuse files that hold arrays, but not those of the released folds."""
    fixations, maps, test_fixations, test_maps = lists
    cells = (RELEASED_CELLS, RELEASED_CELLS)
    try:
        fits = indices.ndim == 2 and all(len(part) == len(indices) for part in lists)
        for fold, numbers in enumerate(indices):
            fits = fits and len(fixations[fold]) == len(maps[fold]) == len(numbers)
            fits = fits and len(test_fixations[fold]) == len(test_maps[fold])
            for paths in (*fixations[fold], *test_fixations[fold]):
                fits = fits and all(path.ndim == 2 and len(path) == 2 for path in paths)
            fits = fits and all(values.shape == cells for values in (*maps[fold], *test_maps[fold]))
    except (AttributeError, TypeError, IndexError):
        fits = False
    if not fits:
        raise InputError(f"{files} does not hold the folds as they were released; fetch its files anew.")
