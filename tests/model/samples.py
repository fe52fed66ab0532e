"""A small data set without any symmetry, for the tests of the model."""

import numpy as np
import pandas as pd

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths

GRID = Grid(14, 11, Extent(12.0, 21.0))
LENGTHS = {("ann", "beach"): 9, ("ann", "wood"): 7, ("bob", "beach"): 3, ("bob", "wood"): 9}


def small_table() -> pd.DataFrame:
    """Fixations of two observers on two pictures, in paths of different length."""
    rng = np.random.default_rng(20)
    size = GRID.extent.height_deg, GRID.extent.width_deg
    return pd.DataFrame(
        [
            {"observer": observer, "picture": picture, "fixation": number, "y_deg": y, "x_deg": x}
            for (observer, picture), length in LENGTHS.items()
            for number, (y, x) in enumerate(rng.uniform(size=(length, 2)) * size)
        ]
    )


def small_maps() -> dict[str, np.ndarray]:
    """Two lumpy maps."""
    rng = np.random.default_rng(21)
    return {picture: rng.gamma(0.7, size=GRID.shape) + 0.01 for picture in ("beach", "wood")}


def small_data(table: pd.DataFrame | None = None, maps: dict | None = None, extent: Extent = GRID.extent) -> Dataset:
    """The data set; a test may give it another table, other maps or another extent."""
    paths = ScanPaths.from_table(small_table() if table is None else table, extent)
    weights = small_maps() if maps is None else maps
    return Dataset(paths, SaliencyMaps.from_arrays(weights, extent, normalise=True))
