"""Saliency maps from fixations: a kernel density per picture, as the published maps were made.

Fixations are counted per cell, smoothed with a Gaussian that is zero outside the picture, divided by the same
smoothing of a map of ones (so that the edges lose nothing) and normalised. The Gaussian is separable: with kernel
matrices G_y between rows and G_x between columns the smoothing of counts C is G_y C G_x, and that of ones is the outer
product of the kernels' row sums. Forced fixations are not counted: a map says where people chose to look.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps, check_uniform_share
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

Counts = Float[np.ndarray, "picture row column"]


@dataclass(frozen=True, eq=False)
class BandwidthChoice:
    """How well maps of each bandwidth predict the fixations of an observer who was left out of them.

    `held_out_nats` is the mean over all fixations of log p(cell); minus infinity where a map is zero at a fixation.
    """

    grid: Grid
    candidates_deg: Float[np.ndarray, " candidate"]
    held_out_nats: Float[np.ndarray, " candidate"]

    @property
    def held_out_bits(self) -> Float[np.ndarray, " candidate"]:
        """Gain over the uniform density, in bits per fixation: comparable between grids."""
        return (self.held_out_nats + np.log(self.grid.cells)) / np.log(2)

    @property
    def best_deg(self) -> float:
        """The bandwidth that predicts best."""
        return float(self.candidates_deg[np.argmax(self.held_out_nats)])


def density_maps(
    paths: ScanPaths, grid: Grid, bandwidth_deg: float, *, uniform_share: float = 0.0, leave_out: Any = None
) -> SaliencyMaps:
    """The fixation density of every picture: all observers' fixations, or all but those of the observer `leave_out`.

    `bandwidth_deg` is the standard deviation of the Gaussian. `uniform_share` of the mass is spread over all cells,
    so that none is left at zero.
    """
    smoothing = _Smoothing.on(grid, bandwidth_deg)
    counts = _counts(paths, grid)
    if leave_out is not None:
        counts = _without(counts, paths, grid, leave_out)
    maps = SaliencyMaps(grid, tuple(paths.pictures), smoothing.density(counts))
    return maps.with_uniform_share(uniform_share)


def leave_one_out_maps(
    paths: ScanPaths, grid: Grid, bandwidth_deg: float, *, uniform_share: float = 0.0, resample_to: Grid | None = None
) -> dict[Any, SaliencyMaps]:
    """For each observer the maps of all pictures as the other observers saw them.

    With `resample_to` the maps are built on `grid` and handed out on that (coarser, smaller) grid over the same extent.
    """
    smoothing = _Smoothing.on(grid, bandwidth_deg)
    counts = _counts(paths, grid)
    pictures = tuple(paths.pictures)
    result = {}
    for observer in paths.observers:
        maps = SaliencyMaps(grid, pictures, smoothing.density(_without(counts, paths, grid, observer)))
        if resample_to is not None:
            maps = maps.resample(resample_to)
        result[observer] = maps.with_uniform_share(uniform_share)
    return result


def choose_bandwidth(
    paths: ScanPaths, grid: Grid, candidates_deg: Sequence[float], *, uniform_share: float = 0.0
) -> BandwidthChoice:
    """The bandwidth whose leave-one-observer-out maps give the left-out fixations the highest likelihood."""
    if len(candidates_deg) == 0:
        raise InputError("no candidate bandwidth given: name some, for example [0.5, 1.0, 2.0] (degrees).")
    check_uniform_share(uniform_share)
    smoothings = [_Smoothing.on(grid, bandwidth_deg) for bandwidth_deg in candidates_deg]
    counts = _counts(paths, grid)
    picture, row, column = _cells(paths, grid, paths.pictures)
    who = np.repeat(paths.observer, paths.scored(0).sum(axis=1))
    density = np.empty((len(smoothings), len(row)))
    for observer in paths.observers:
        others = _without(counts, paths, grid, observer)
        mine = who == observer
        for place in np.unique(picture[mine]):
            here = np.flatnonzero(mine & (picture == place))
            for index, smoothing in enumerate(smoothings):
                density[index, here] = smoothing.density_at(others[place], row[here], column[here])
    with np.errstate(divide="ignore"):  # log 0 is the score that such a candidate deserves
        nats = np.log((1 - uniform_share) * density + uniform_share / grid.cells).mean(axis=1)
    if not np.isfinite(nats).any():
        raise InputError(
            f"every candidate bandwidth ({some_of(list(candidates_deg))} deg) leaves some held-out fixation at zero "
            "density; add wider ones, or a uniform share such as uniform_share=0.01."
        )
    return BandwidthChoice(grid, np.asarray(candidates_deg, dtype=np.float64), nats)


@dataclass(frozen=True, eq=False)
class _Smoothing:
    """Gaussian kernels between the rows and between the columns of a grid."""

    by_row: Float[np.ndarray, "row row"]
    by_column: Float[np.ndarray, "column column"]

    @classmethod
    def on(cls, grid: Grid, bandwidth_deg: float) -> "_Smoothing":
        if not (np.isfinite(bandwidth_deg) and bandwidth_deg > 0):
            raise InputError(f"bandwidth = {bandwidth_deg} deg: it must be a positive number of degrees.")
        return cls(_kernel(grid.row_centres_deg, bandwidth_deg), _kernel(grid.column_centres_deg, bandwidth_deg))

    def density(self, counts: Counts) -> Counts:
        """The normalised maps of these counts."""
        edge = np.outer(self.by_row.sum(axis=1), self.by_column.sum(axis=1))
        smooth = self.by_row @ counts @ self.by_column / edge
        return smooth / smooth.sum(axis=(1, 2), keepdims=True)

    def density_at(
        self,
        counts: Float[np.ndarray, "row column"],
        row: Int[np.ndarray, " fixation"],
        column: Int[np.ndarray, " fixation"],
    ) -> Float[np.ndarray, " fixation"]:
        """`density` of one picture, read at some cells without computing the others."""
        row_edge, column_edge = self.by_row.sum(axis=1), self.by_column.sum(axis=1)
        smooth = ((self.by_row[row] @ counts) * self.by_column[column]).sum(axis=1)
        # The sum over all cells of the smoothed, edge-corrected map: each count spreads a separable mass.
        total = (1 / row_edge) @ self.by_row @ counts @ self.by_column @ (1 / column_edge)
        return smooth / (row_edge[row] * column_edge[column]) / total


def _kernel(centres_deg: Float[np.ndarray, " cell"], bandwidth_deg: float) -> Float[np.ndarray, "cell cell"]:
    return np.exp(-0.5 * ((centres_deg[:, None] - centres_deg[None, :]) / bandwidth_deg) ** 2)


def _cells(paths: ScanPaths, grid: Grid, pictures: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Picture (its place in the sorted list `pictures`), row and column of every fixation that counts, in order."""
    if paths.extent != grid.extent:
        raise InputError(f"the scan paths lie in {paths.extent}, the grid in {grid.extent}; they must be the same.")
    picture = np.searchsorted(np.array(pictures, dtype=paths.picture.dtype), paths.picture)
    counted = paths.scored(0)
    row, column = grid.cell_of(paths.y_deg[counted], paths.x_deg[counted])
    return np.repeat(picture, counted.sum(axis=1)), row, column


def _counts(paths: ScanPaths, grid: Grid) -> Counts:
    """Number of fixations in each cell of each picture."""
    if len(paths) == 0:
        raise InputError("no scan paths given: a density needs fixations.")
    counts = np.zeros((len(paths.pictures), *grid.shape))
    np.add.at(counts, _cells(paths, grid, paths.pictures), 1)
    empty = np.flatnonzero(counts.sum(axis=(1, 2)) == 0)
    if len(empty):
        names = [repr(paths.pictures[index]) for index in empty]
        raise InputError(
            f"picture {some_of(names)}: all fixations on it are forced, so there is nothing to make a map of; leave "
            "the picture out with paths.select(pictures=...)."
        )
    return counts


def _without(counts: Counts, paths: ScanPaths, grid: Grid, observer: Any) -> Counts:
    """`counts` less those of one observer; every picture must keep some."""
    # Whole numbers are subtracted before smoothing: afterwards rounding could leave negative densities.
    others = counts.copy()
    np.add.at(others, _cells(paths.select(observers=[observer]), grid, paths.pictures), -1)
    alone = np.flatnonzero(others.sum(axis=(1, 2)) == 0)
    if len(alone):
        names = [repr(paths.pictures[index]) for index in alone]
        raise InputError(
            f"picture {some_of(names)}: no fixations are left without observer {observer}; leave the picture out with "
            "paths.select(pictures=...), or use maps of all observers."
        )
    return others
