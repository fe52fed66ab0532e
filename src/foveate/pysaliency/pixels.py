"""The cells of a grid and the pixels of a stimulus that both tile one picture.

A cell's probability is spread evenly over its area. A pixel that lies in one cell gets its share of it; one that a
border between cells cuts gets a share of each, by area, so that no mass is lost or made. All in logarithms, so that
what is unlikely does not become impossible.

Pixels count from the top, and pixel j covers [j, j + 1), as everywhere in pysaliency; rows count from the extent's
origin.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp

from foveate.data.grid import Grid, PixelFrame
from foveate.errors import InputError

# Pixels by which the size of a whole picture, as pixels_per_degree has it, may differ from that of the stimulus: what
# comes of rounding the number, or the stimulus to whole pixels.
SAME_SIZE_PX = 0.5


@dataclass(frozen=True, eq=False)
class Shares:
    """Along one axis: the cells that each pixel overlaps, and the logarithm of the share of each that lies in it."""

    cell: Int[np.ndarray, "pixel overlap"]
    log_share: Float[np.ndarray, "pixel overlap"]  # minus infinity: not really overlapped

    @classmethod
    def of(cls, cells: int, pixels: int) -> "Shares":
        """Of `cells` equal cells over the same length as `pixels` pixels."""
        # In units of 1 / (cells * pixels) of the axis all edges are whole numbers: nothing is lost by rounding.
        near, far = np.arange(pixels)[:, None] * cells, np.arange(1, pixels + 1)[:, None] * cells
        first, last = near // pixels, (far - 1) // pixels
        cell = first + np.arange(int((last - first).max()) + 1)
        inside = np.minimum(far, (cell + 1) * pixels) - np.maximum(near, cell * pixels)
        with np.errstate(divide="ignore"):
            log_share = np.log(np.maximum(inside, 0) / pixels)
        return cls(np.minimum(cell, cells - 1), log_share)

    def spread(self, log_cells: Float[np.ndarray, "cell other"]) -> Float[np.ndarray, "pixel other"]:
        """The logarithm of each pixel's mass, from that of the cells along the first axis."""
        spread = log_cells[self.cell[:, 0]] + self.log_share[:, :1]
        for place in range(1, self.cell.shape[1]):
            cut = np.isfinite(self.log_share[:, place])  # a logarithm of a sum only where there is a sum
            more = log_cells[self.cell[cut, place]] + self.log_share[cut, place, None]
            spread[cut] = np.logaddexp(spread[cut], more)
        return spread


@dataclass(frozen=True)
class Raster:
    """The pixels of a stimulus over the cells of a grid."""

    grid: Grid
    height_px: int
    width_px: int

    @cached_property
    def _rows(self) -> Shares:
        """Of rows as they are drawn, from the top."""
        return Shares.of(self.grid.rows, self.height_px)

    @cached_property
    def _columns(self) -> Shares:
        return Shares.of(self.grid.columns, self.width_px)

    def spread(self, log_cells: Float[np.ndarray, "row column"]) -> Float[np.ndarray, "y x"]:
        """The log-probability of every pixel from that of every cell."""
        return self._rows.spread(self._columns.spread(self._from_top(log_cells).T).T)

    def read(
        self,
        log_cells: Float[np.ndarray, "step row column"],
        y_px: Int[np.ndarray, " step"],
        x_px: Int[np.ndarray, " step"],
    ) -> Float[np.ndarray, " step"]:
        """What `spread` has at one pixel of each map, without the other pixels."""
        step = np.arange(len(log_cells))[:, None, None]
        row, column = self._rows.cell[y_px][:, :, None], self._columns.cell[x_px][:, None, :]
        shares = self._rows.log_share[y_px][:, :, None] + self._columns.log_share[x_px][:, None, :]
        masses = self._from_top(log_cells, axis=1)[step, row, column] + shares
        return np.asarray(logsumexp(masses, axis=(1, 2))) if masses.shape[1:] != (1, 1) else masses[:, 0, 0]

    def draw(
        self, cells: Float[np.ndarray, "row column"], rng: np.random.Generator | np.random.RandomState
    ) -> tuple[float, float]:
        """(y_px, x_px): the centre of a pixel, drawn from the probabilities of the cells.

        First a cell, then a place in it, each as likely as any other: the pixel there has the probability of `spread`.
        """
        in_all, down, right = rng.random(3)
        summed = np.cumsum(self._from_top(cells))
        place = int(np.searchsorted(summed, in_all * summed[-1], side="right"))
        row, column = divmod(min(place, self.grid.cells - 1), self.grid.columns)
        y_px, x_px = (
            (row + down) * self.height_px / self.grid.rows,
            (column + right) * self.width_px / self.grid.columns,
        )
        return min(int(y_px), self.height_px - 1) + 0.5, min(int(x_px), self.width_px - 1) + 0.5

    def to_degrees(self, y_px: np.ndarray, x_px: np.ndarray, last: int) -> tuple[np.ndarray, np.ndarray]:
        """(y_deg, x_deg) on the grid of the last fixations of a history; outside the stimulus is an error."""
        y_px, x_px = y_px[-last:], x_px[-last:]
        outside = ~((y_px >= 0) & (y_px <= self.height_px) & (x_px >= 0) & (x_px <= self.width_px))
        if outside.any():
            first = int(np.argmax(outside))
            raise InputError(
                f"a history ends with y = {y_px[first]:g}, x = {x_px[first]:g}, outside the stimulus ("
                f"{self.height_px} x {self.width_px} px); leave out fixations with such a one among the "
                f"last {last} of their history."
            )
        extent = self.grid.extent
        scale = self.height_px / extent.height_deg, self.width_px / extent.width_deg
        y_deg, x_deg = PixelFrame(self.width_px, self.height_px, scale).to_degrees(y_px, x_px)
        y_deg = y_deg if extent.origin == "top" else extent.height_deg - y_deg
        # Two roundings may lead beyond the edge.
        return np.clip(y_deg, 0, extent.height_deg), np.clip(x_deg, 0, extent.width_deg)

    def _from_top(self, cells: np.ndarray, axis: int = 0) -> np.ndarray:
        return cells if self.grid.extent.origin == "top" else np.flip(cells, axis)


@lru_cache(maxsize=64)
def raster(grid: Grid, height_px: int, width_px: int, pixels_per_degree: float | tuple[float, float]) -> Raster:
    """The raster of a stimulus of this size; a size that is not the grid's in degrees is an error."""
    extent, given = grid.extent, PixelFrame(width_px, height_px, pixels_per_degree).extent
    fitting = height_px / extent.height_deg, width_px / extent.width_deg
    if max(abs(given.height_deg - extent.height_deg) * fitting[0],
           abs(given.width_deg - extent.width_deg) * fitting[1]) > SAME_SIZE_PX:  # fmt: skip
        raise InputError(
            f"a stimulus of {height_px} x {width_px} px (height x width) is {given.height_deg:.6g} x "
            f"{given.width_deg:.6g} deg with pixels_per_degree = {pixels_per_degree}, but the maps are "
            f"{extent.height_deg:.6g} x {extent.width_deg:.6g} deg; give pixels_per_degree=({fitting[0]:.6g}, "
            f"{fitting[1]:.6g}) if the maps fill such stimuli, or else other maps."
        )
    return Raster(grid, height_px, width_px)
