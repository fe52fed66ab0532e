"""Scan paths from lists of positions, and random ones with gaps, stays and forced fixations."""

from dataclasses import replace

import numpy as np
import pandas as pd

from foveate.data.grid import Extent
from foveate.data.scanpaths import ScanPaths

SQUARE = Extent(20.0, 20.0)  # turns by 90 degrees stay inside


def paths_of(*positions, extent=SQUARE, numbers=None, observers=None) -> ScanPaths:
    """A path from every list of (x, y), each of its own picture."""
    rows = [
        {
            "observer": 1 if observers is None else observers[path],
            "picture": path,
            "fixation": index + 1 if numbers is None else numbers[path][index],
            "x_deg": float(x),
            "y_deg": float(y),
        }
        for path, places in enumerate(positions)
        for index, (x, y) in enumerate(places)
    ]
    return ScanPaths.from_table(pd.DataFrame(rows), extent)


def random_paths(count: int, seed: int, gaps: bool = True, forced: bool = False) -> ScanPaths:
    """Paths of 1 to 12 fixations, some of which stay where they are, some with gaps in their numbers, some forced."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 13, count)
    positions = [rng.uniform(0, 20, (n, 2)) for n in lengths]
    for places in positions[::5]:
        places[1:2] = places[:1]
    steps = [rng.choice([1, 1, 1, 1, 3] if gaps else [1], n) for n in lengths]
    paths = paths_of(*positions, numbers=[np.cumsum(s) for s in steps], observers=rng.integers(1, 5, count))
    return replace(paths, columns={"forced": rng.random(paths.real.shape) < 0.2}) if forced else paths
