"""Numbers made small for a page: whole numbers in base64, and maps as square roots with two bytes a cell.

A value of a map is written as round(65535 sqrt(value / peak)) and never as zero where it is none, and comes back as
peak (q / 65535)^2. What that loses is worked out for each page (`map_error`) and stated there.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps

STEP_DEG = 0.01  # of positions
LARGEST = 65535  # that two bytes hold

# Maps may take so many bytes of the page. Where each observer has their own and those are more, they are embedded with
# fewer cells along a side, and if that is still too much, one mean map for all.
MAP_BYTES = 4_000_000
COARSE_CELLS = 32


def packed(values: np.ndarray, kind: str) -> str:
    """An array as base64 of its bytes, little end first: "u1", "u2" or "f4"."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def position_step_deg(width_deg: float, height_deg: float) -> float:
    """The step in which positions are written: 0.01 deg, or more where a picture is so large that two bytes end."""
    return max(STEP_DEG, max(width_deg, height_deg) / LARGEST)


def quantised(values: np.ndarray) -> tuple[np.ndarray, float]:
    """A map as whole numbers, and its peak."""
    peak = float(values.max())
    root = np.rint(LARGEST * np.sqrt(values / peak)).astype(np.uint16)
    return np.where((root == 0) & (values > 0), 1, root).astype(np.uint16), peak


def restored(root: np.ndarray, peak: float) -> np.ndarray:
    """The map as the page reads it."""
    return peak * np.square(root.astype(np.float64) / LARGEST)


@dataclass(frozen=True, eq=False)
class EmbeddedMaps:
    """The maps of a page: an index for every (observer, picture), and what was done to them, in a sentence."""

    grid: Grid
    values: list[np.ndarray]
    index: Mapping[tuple[Any, Any], int]
    words: str
    error: float

    def encoded(self) -> list[dict[str, Any]]:
        """Every map as {"peak", "root"}."""
        found = [quantised(values) for values in self.values]
        return [{"peak": peak, "root": packed(root, "u2")} for root, peak in found]


def embedded_maps(each: Mapping[Any, Dataset], most_bytes: int = MAP_BYTES) -> EmbeddedMaps:
    """The maps of these observers, equal ones once, made smaller in steps until they take no more than `most_bytes`."""
    grid = next(iter(each.values())).maps.grid
    found = _distinct({observer: own.maps for observer, own in each.items()}, grid, "")
    if len(found.values) * grid.cells * 8 / 3 <= most_bytes:
        return found
    coarse = Grid(min(COARSE_CELLS, grid.rows), min(COARSE_CELLS, grid.columns), grid.extent)
    own = len(found.values) > len({picture for _, picture in found.index})
    if len(found.values) * coarse.cells * 8 / 3 <= most_bytes or not own:
        smaller = {observer: it.maps.resample(coarse) for observer, it in each.items()}
        whose = "Each observer has maps of their own, which" if own else "Maps"
        words = (
            f"{whose} are embedded with {coarse.rows} × {coarse.columns} cells instead of {grid.rows} × "
            f"{grid.columns}, to keep the file small: densities shown are those on the larger cells. "
        )
        return _distinct(smaller, coarse, words)
    return _mean_maps(each, grid)


def _distinct(maps: Mapping[Any, SaliencyMaps], grid: Grid, words: str) -> EmbeddedMaps:
    values: list[np.ndarray] = []
    seen: dict[bytes, int] = {}
    index = {}
    for observer, own in maps.items():
        for picture, it in zip(own.pictures, own.values, strict=True):
            index[observer, picture] = seen.setdefault(it.tobytes(), len(values))
            if len(seen) > len(values):
                values.append(it)
    return _stated(grid, values, index, words)


def _mean_maps(each: Mapping[Any, Dataset], grid: Grid) -> EmbeddedMaps:
    """The mean over observers of each picture's maps."""
    by_picture: dict[Any, list[np.ndarray]] = {}
    for own in each.values():
        for picture, it in zip(own.maps.pictures, own.maps.values, strict=True):
            by_picture.setdefault(picture, []).append(it)
    place = {picture: number for number, picture in enumerate(by_picture)}
    index = {(observer, it): place[it] for observer, own in each.items() for it in own.maps.pictures}
    words = (
        "Each observer has maps of their own, too many to embed: shown are densities on the mean of all observers' "
        "maps. "
    )
    return _stated(grid, [np.mean(some, axis=0) for some in by_picture.values()], index, words)


def _stated(grid: Grid, values: list[np.ndarray], index: dict[tuple[Any, Any], int], words: str) -> EmbeddedMaps:
    error = map_error(values)
    words += (
        "Maps are embedded as square roots with two bytes a cell: cells above a hundredth of the uniform share are off "
        f"by {100 * error:.2g} % of their value at most."
    )
    return EmbeddedMaps(grid, values, index, words, error)


def map_error(values: list[np.ndarray]) -> float:
    """The largest relative error of any embedded cell above a hundredth of the uniform share."""
    worst = 0.0
    for it in values:
        well = it > 0.01 / it.size
        worst = max(worst, float(np.max(np.abs(restored(*quantised(it)) - it)[well] / it[well], initial=0.0)))
    return worst
