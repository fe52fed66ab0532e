"""Saliency maps: for each picture the probability that a fixation falls into each cell of a grid."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.data.grid import Extent, Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

# A map read from a file with ten digits a cell sums to one within this; anything further off is not a probability.
SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class SaliencyMaps:
    """One map per picture on one grid, each a probability per cell that sums to one."""

    grid: Grid
    pictures: tuple
    values: Float[np.ndarray, "picture row column"]

    def __post_init__(self):
        """Refuse what is not a probability per cell."""
        object.__setattr__(self, "values", np.asarray(self.values, dtype=np.float64))
        if len(set(self.pictures)) != len(self.pictures):
            twice = [name for name, count in Counter(self.pictures).items() if count > 1]
            raise InputError(f"picture {some_of(twice)} has more than one map; give each picture one.")
        if self.values.shape != (len(self.pictures), *self.grid.shape):
            raise InputError(
                f"maps of shape {self.values.shape} do not fit {len(self.pictures)} pictures on a grid of "
                f"{self.grid.rows} x {self.grid.columns} cells; resample them or change the grid."
            )
        for picture, values in zip(self.pictures, self.values, strict=True):
            check_probabilities(f"map of picture {picture!r}", values)

    def __repr__(self) -> str:
        """What is in here, in a line."""
        return f"SaliencyMaps({len(self)} pictures, {self.grid.rows} x {self.grid.columns} cells, {self.grid.extent})"

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.pictures)

    def __getitem__(self, picture: Any) -> Float[np.ndarray, "row column"]:
        """The map of one picture."""
        return self.values[self.index_of([picture])[0]]

    def index_of(self, pictures: Iterable) -> np.ndarray:
        """Position of each picture's map in `values`; a picture without a map is an error."""
        place = {picture: index for index, picture in enumerate(self.pictures)}
        names = list(pictures)
        missing = sorted({name for name in names if name not in place}, key=str)
        if missing:
            raise InputError(
                f"no map for picture {some_of(missing)}; there are maps for {some_of(list(self.pictures), 10)}."
            )
        return np.array([place[name] for name in names], dtype=np.int64)

    def select(self, pictures: Iterable) -> "SaliencyMaps":
        """The maps of these pictures, in this order."""
        names = tuple(pictures)
        return SaliencyMaps(self.grid, names, self.values[self.index_of(names)])

    @classmethod
    def from_arrays(cls, maps: Mapping[Any, np.ndarray], extent: Extent, *, normalise: bool = False) -> "SaliencyMaps":
        """Maps from arrays, row 0 at the extent's origin; all must have one shape.

        With `normalise` the values are weights and are divided by their sum; without, they must sum to one.
        """
        if not isinstance(maps, Mapping):
            raise InputError(f"maps is a {type(maps).__name__}: give a dictionary, picture -> array.")
        if not maps:
            raise InputError("no maps given: there must be one for each picture.")
        arrays = {picture: np.asarray(values, dtype=np.float64) for picture, values in maps.items()}
        first, shape = next((picture, values.shape) for picture, values in arrays.items())
        for picture, values in arrays.items():
            if values.ndim != 2:
                raise InputError(f"map of picture {picture!r} has {values.ndim} axes; it must be rows x columns.")
            if values.shape != shape:
                raise InputError(
                    f"map of picture {picture!r} is {values.shape[0]} x {values.shape[1]}, that of {first!r} is "
                    f"{shape[0]} x {shape[1]}; resample them to one grid first."
                )
            _check_weights(f"map of picture {picture!r}", values)
        stacked = np.stack(list(arrays.values()))
        if normalise:
            stacked = stacked / stacked.sum(axis=(1, 2), keepdims=True)
        return cls(Grid(shape[0], shape[1], extent), tuple(arrays), stacked)

    @classmethod
    def from_images(cls, files: Mapping[Any, str | Path], extent: Extent) -> "SaliencyMaps":
        """Maps from greyscale image files, brightness taken as weight; colour images are refused.

        Image files have their first row at the top, so rows are turned over if the extent's origin is the bottom.
        """
        from PIL import Image

        maps = {}
        for picture, file in files.items():
            try:
                with Image.open(file) as image:
                    if image.mode not in ("1", "L", "I", "I;16", "F"):
                        raise InputError(
                            f"{file} is a colour image (mode {image.mode}); a saliency map must be greyscale."
                        )
                    weights = np.asarray(image, dtype=np.float64)
            except OSError as error:
                raise InputError(f"{file}: no image could be read there ({error}).") from error
            maps[picture] = weights[::-1] if extent.origin == "bottom" else weights
        return cls.from_arrays(maps, extent, normalise=True)

    def resample(self, grid: Grid) -> "SaliencyMaps":
        """The maps on another grid over the same extent; each cell's mass goes to the cells that it overlaps."""
        if grid.extent != self.grid.extent:
            raise InputError(f"cannot resample from {self.grid.extent} to {grid.extent}: the extents must be the same.")
        by_row = _overlap(self.grid.rows, grid.rows)
        by_column = _overlap(self.grid.columns, grid.columns)
        return SaliencyMaps(grid, self.pictures, by_row @ self.values @ by_column.T)

    def with_uniform_share(self, share: float) -> "SaliencyMaps":
        """The maps mixed with the uniform density, which gets `share` of the mass: no cell is left at zero."""
        check_uniform_share(share)
        return SaliencyMaps(self.grid, self.pictures, (1 - share) * self.values + share / self.grid.cells)

    def at(self, paths: ScanPaths) -> Float[np.ndarray, "path fixation"]:
        """Saliency of the cell of every fixation (NaN in the padding); zero anywhere is an error."""
        if paths.extent != self.grid.extent:
            raise InputError(
                f"the scan paths lie in {paths.extent}, the maps in {self.grid.extent}; they must be the same."
            )
        real = paths.real
        row, column = self.grid.cell_of(np.where(real, paths.y_deg, 0), np.where(real, paths.x_deg, 0))
        saliency = self.values[self.index_of(paths.picture.tolist())[:, None], row, column]
        zero = np.argwhere(real & (saliency <= 0))
        if len(zero):
            path, index = zero[0]
            raise InputError(
                f"{paths.name_of(path, index)}: the map is zero there ({len(zero):,} such fixations), so no model "
                "can predict it; give every cell some mass with maps.with_uniform_share(0.01)."
            )
        return np.where(real, saliency, np.nan)


def check_uniform_share(share: float) -> None:
    """Refuse what is not a share of the mass."""
    if not 0 <= share <= 1:
        raise InputError(f"uniform share = {share}: it must lie between 0 and 1.")


def check_probabilities(name: str, values: np.ndarray) -> None:
    """Refuse a map that is not a probability per cell."""
    _check_weights(name, values)
    if abs(values.sum() - 1) > SUM_TOLERANCE:
        raise InputError(
            f"{name} sums to {values.sum():.6g}, not 1; "
            "if its values are weights, build it with SaliencyMaps.from_arrays(..., normalise=True)."
        )


def _check_weights(name: str, values: np.ndarray) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise InputError(
            f"{name} holds NaN or infinite values in {bad.sum():,} cells, the first in row {row}, column {column}; "
            "mend or remove it."
        )
    if (values < 0).any():
        raise InputError(
            f"{name} holds negative values (down to {values.min():.3g}), but a probability is "
            "zero or more; give densities, not their logarithms or z-scores."
        )
    if values.sum() <= 0:
        raise InputError(f"{name} is zero everywhere; a map needs some mass.")


def _overlap(before: int, after: int) -> Float[np.ndarray, "after before"]:
    """Share of each old cell's length that falls into each new cell, along one axis."""
    # In units of 1 / (before * after) of the axis all edges are whole numbers, so that nothing leaks by rounding.
    old, new = np.arange(before + 1) * after, np.arange(after + 1) * before
    inside = np.minimum(new[1:, None], old[None, 1:]) - np.maximum(new[:-1, None], old[None, :-1])
    return np.maximum(inside, 0) / after


def check_pairing(paths: ScanPaths, maps: SaliencyMaps) -> None:
    """Refuse pictures without a map and maps without a picture."""
    maps.index_of(paths.pictures)
    seen = set(paths.pictures)
    unseen = [picture for picture in maps.pictures if picture not in seen]
    if unseen:
        raise InputError(
            f"map of picture {some_of(unseen)} without any scan path; drop it with maps.select(paths.pictures)."
        )
