"""Degrees of visual angle, cells and pixels: the only place where one becomes another.

A position inside a picture is (y_deg, x_deg), measured from the outer edge of row 0 and of column 0. Pairs are in
the order (row, column) everywhere. `origin` says whether row 0 is drawn at the bottom or at the top; nothing but
drawing, pixels and the words "up" and "down" depends on it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from foveate.errors import InputError

Origin = Literal["bottom", "top"]

# Degrees per pixel, (row, column), of the coordinates in which the published parameter values are given: the
# released files map degrees to 64 x 64 pixels as x * 64 / x_max, with x_max and y_max from the data's range file.
PUBLISHED_PX_DEG = (25.6892708037514 / 64, 32.1115885046892 / 64)


def deg2_from_px2(variances_px2: ArrayLike, px_deg: tuple[float, float] = PUBLISHED_PX_DEG) -> tuple[float, float]:
    """Variances (row, column) in deg^2 from px^2; the default pixel is that of the published values."""
    row, column = (float(value) for value in np.asarray(variances_px2, dtype=float))
    return row * px_deg[0] ** 2, column * px_deg[1] ** 2


def px2_from_deg2(variances_deg2: ArrayLike, px_deg: tuple[float, float] = PUBLISHED_PX_DEG) -> tuple[float, float]:
    """Variances (row, column) in px^2 from deg^2: the inverse of `deg2_from_px2`."""
    return deg2_from_px2(variances_deg2, (1 / px_deg[0], 1 / px_deg[1]))


def _check_origin(origin: str) -> None:
    if origin not in ("bottom", "top"):
        raise InputError(f"origin = {origin!r}: say 'bottom' or 'top' (where y = 0 lies).")


@dataclass(frozen=True)
class Extent:
    """The rectangle that a picture fills, in degrees of visual angle."""

    height_deg: float
    width_deg: float
    origin: Origin = "bottom"

    def __post_init__(self):
        """Refuse sizes that no picture has."""
        for name in ("height_deg", "width_deg"):
            size = getattr(self, name)
            if not (np.isfinite(size) and size > 0):
                raise InputError(f"{name} = {size}: a picture's size must be a positive number of degrees.")
        _check_origin(self.origin)

    def contains(self, y_deg: ArrayLike, x_deg: ArrayLike) -> np.ndarray:
        """Whether each position lies inside; the edges belong to the picture."""
        y, x = np.asarray(y_deg), np.asarray(x_deg)
        return np.asarray((y >= 0) & (y <= self.height_deg) & (x >= 0) & (x <= self.width_deg))


@dataclass(frozen=True)
class Grid:
    """`rows` x `columns` equal cells that tile an extent; cells need not be square."""

    rows: int
    columns: int
    extent: Extent

    def __post_init__(self):
        """Refuse grids without cells."""
        for name in ("rows", "columns"):
            count = getattr(self, name)
            if not isinstance(count, int | np.integer) or count < 1:
                raise InputError(f"{name} = {count}: a grid has a whole number of cells on each axis, at least one.")

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.rows, self.columns

    @property
    def cells(self) -> int:
        """Number of cells."""
        return self.rows * self.columns

    @property
    def cell_deg(self) -> tuple[float, float]:
        """Height and width of a cell, in degrees."""
        return self.extent.height_deg / self.rows, self.extent.width_deg / self.columns

    @property
    def cell_area_deg2(self) -> float:
        """Area of a cell, in deg^2."""
        height, width = self.cell_deg
        return height * width

    @property
    def row_centres_deg(self) -> Float[np.ndarray, " row"]:
        """y of each row's centre."""
        return (np.arange(self.rows) + 0.5) * self.cell_deg[0]

    @property
    def column_centres_deg(self) -> Float[np.ndarray, " column"]:
        """x of each column's centre."""
        return (np.arange(self.columns) + 0.5) * self.cell_deg[1]

    def cell_of(self, y_deg: ArrayLike, x_deg: ArrayLike) -> tuple[Int[np.ndarray, "..."], Int[np.ndarray, "..."]]:
        """Row and column of the cell that holds each position; the far edge belongs to the last cell."""
        y, x = np.broadcast_arrays(np.asarray(y_deg, dtype=float), np.asarray(x_deg, dtype=float))
        outside = ~self.extent.contains(y, x)
        if outside.any():
            first = tuple(np.argwhere(outside)[0])
            raise InputError(
                f"position y = {y[first]:g}, x = {x[first]:g} deg lies outside the picture "
                f"({self.extent.height_deg:g} x {self.extent.width_deg:g} deg); remove it first."
            )
        row = np.minimum(np.floor(y / self.cell_deg[0]).astype(np.int64), self.rows - 1)
        column = np.minimum(np.floor(x / self.cell_deg[1]).astype(np.int64), self.columns - 1)
        return np.asarray(row), np.asarray(column)

    def centre_of(self, row: ArrayLike, column: ArrayLike) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
        """y and x, in degrees, of the centre of each cell."""
        height, width = self.cell_deg
        return np.asarray((np.asarray(row) + 0.5) * height), np.asarray((np.asarray(column) + 0.5) * width)


@dataclass(frozen=True)
class PixelFrame:
    """Where a picture lies on the screen, in pixels, and how many pixels make a degree.

    `left_px` and `near_px` are the screen coordinates of the picture's first column and of the edge where y starts:
    the top edge if `origin` is 'top' (y grows downward, as on most screens), else the bottom edge.
    """

    width_px: float
    height_px: float
    px_per_degree: float | tuple[float, float]
    left_px: float = 0.0
    near_px: float = 0.0
    origin: Origin = "top"

    def __post_init__(self):
        """Refuse sizes and scales that are not positive, and places that are not numbers."""
        for name, value in (("width_px", self.width_px), ("height_px", self.height_px)):
            if not (np.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value}: a picture's size must be a positive number of pixels.")
        for name, value in (("left_px", self.left_px), ("near_px", self.near_px)):
            if not np.isfinite(value):
                raise InputError(f"{name} = {value}: the picture's place on the screen must be a number of pixels.")
        scales = self._px_per_degree
        if len(scales) != 2 or not all(np.isfinite(scale) and scale > 0 for scale in scales):
            raise InputError(
                f"px_per_degree = {self.px_per_degree}: give one positive number, or two for (rows, columns)."
            )
        _check_origin(self.origin)

    @property
    def _px_per_degree(self) -> tuple[float, float]:
        scale = self.px_per_degree
        return scale if isinstance(scale, tuple) else (float(scale), float(scale))

    @property
    def extent(self) -> Extent:
        """The picture's rectangle in degrees."""
        per_row, per_column = self._px_per_degree
        return Extent(self.height_px / per_row, self.width_px / per_column, self.origin)

    def to_degrees(self, y_px: ArrayLike, x_px: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(y_deg, x_deg) inside the picture from screen pixels."""
        per_row, per_column = self._px_per_degree
        y_deg, x_deg = (np.asarray(y_px) - self.near_px) / per_row, (np.asarray(x_px) - self.left_px) / per_column
        return np.asarray(y_deg), np.asarray(x_deg)

    def to_pixels(self, y_deg: ArrayLike, x_deg: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(y_px, x_px) on the screen from degrees inside the picture."""
        per_row, per_column = self._px_per_degree
        y_px, x_px = np.asarray(y_deg) * per_row + self.near_px, np.asarray(x_deg) * per_column + self.left_px
        return np.asarray(y_px), np.asarray(x_px)
