"""Where things go wrong: gaze in corners and on edges, flat and one-cell maps, variances from tiny to huge."""

from functools import cache
from itertools import product
from typing import Any

import jax
import numpy as np
import pandas as pd

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.model.history import History, Picture
from foveate.model.model import Model
from oracles import paper

# Neither the grid nor its cells are square.
EXTENT = Extent(18.0, 31.0)
GRID = Grid(9, 12, EXTENT)

# As far back as any part of a row looks; further than there are fixations, so that what was not made must not count.
MEMORY = 25
DURATIONS_S = np.array([0.21, 0.0, 0.47, 0.33])  # of the fixations of a situation; one is not known

# The only salient cell of the one-cell map, as a share of rows and columns.
ONE_CELL = (0.3, 0.65)

# From a thousandth of a cell's side to a hundred times the picture's (standard deviations).
VARIANCES = [(1e-6, 1e-6), (1e-6, 1e6), (0.4, 3.0), (3.0, 0.4), (40.0, 40.0), (1e6, 1e-6), (1e6, 1e6)]


def gazes(extent: Extent) -> np.ndarray:
    """Every corner, every edge's middle, the picture's middle, a place off any symmetry, and the one cell: (y, x)."""
    ends = (0.0, 0.5, 1.0)
    shares = [*product(ends, ends), (0.21, 0.83), ONE_CELL]
    return np.array(shares) * (extent.height_deg, extent.width_deg)


@cache
def maps_on(grid: Grid) -> dict[str, np.ndarray]:
    """A flat map, one with a single cell, nearly that, a lumpy one, and one whose left half is empty."""
    flat = np.full(grid.shape, 1 / grid.cells)
    one_cell = np.zeros(grid.shape)
    one_cell[int(ONE_CELL[0] * grid.rows), int(ONE_CELL[1] * grid.columns)] = 1.0
    lumpy = np.random.default_rng(3).gamma(0.5, size=grid.shape)
    half = lumpy.copy()
    half[:, : grid.columns // 2] = 0.0
    return {
        "flat": flat,
        "one cell": one_cell,
        "nearly one cell": (1 - 1e-9) * one_cell + 1e-9 * flat,
        "lumpy": lumpy / lumpy.sum(),
        "half": half / half.sum(),
    }


def situations() -> tuple[list[list[tuple[float, float]]], list[str]]:
    """For every map and gaze the fixations so far, (y, x), and the map's name."""
    places = gazes(EXTENT)
    earlier = [np.roll(places, shift, axis=0) for shift in (7, 5, 3)]
    made = [[tuple(place) for place in path] for path in zip(*earlier, places, strict=True)]
    names = list(maps_on(GRID))
    return [path for _ in names for path in made], [name for name in names for _ in made]


@cache
def histories() -> tuple[History, np.ndarray]:
    """All situations as a batch: histories (situation) and maps (situation, row, column)."""
    fixations, names = situations()
    maps = maps_on(GRID)
    made = [
        History.of(Picture.whole(GRID, maps[name]), *np.array(path).T, memory=MEMORY, duration_s=DURATIONS_S)
        for path, name in zip(fixations, names, strict=True)
    ]
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *made)
    return batch, np.stack([maps[name] for name in names])


def scene_of(name: str) -> paper.Scene:
    """The map as the oracle takes it."""
    return paper.Scene(maps_on(GRID)[name], EXTENT.height_deg, EXTENT.width_deg)


def parameter_sets(model: Model) -> dict[str, np.ndarray]:
    """The model's own parameters, then combinations of extreme variances (of two pairs all): name to (set, ...)."""
    own = model.parameters
    pairs = [name for name, value in own.items() if model.labels_of[name][-1].endswith("_column")]
    few = len(pairs) <= 2
    shifted = [tuple(np.roll(VARIANCES, shift, axis=0)[: len(pairs)]) for shift in range(len(VARIANCES))]
    sets = list(product(VARIANCES, repeat=len(pairs))) if few else shifted
    combinations = np.array(sets).reshape(len(sets), len(pairs), 2)
    values = {}
    for name, value in own.items():
        # Never quite equal: on a flat map the printed repulsion would subtract equal numbers, and rounding decide.
        varied = combinations[:, pairs.index(name)] * (1 + 0.1 * pairs.index(name)) if name in pairs else value
        values[name] = np.concatenate([np.asarray(value)[None], np.broadcast_to(varied, (len(sets), *np.shape(value)))])
    return values


def one_set(values: dict[str, np.ndarray], index: int) -> dict[str, Any]:
    """One member of a batch of parameter sets."""
    return {name: value[index] for name, value in values.items()}


def dataset_on(grid: Grid) -> Dataset:
    """Paths that visit every gaze on every map that allows it; on the others a path that stays where mass is."""
    rows = []
    places = gazes(grid.extent)
    corner = np.array([int(share * count) for share, count in zip(ONE_CELL, grid.shape, strict=True)])
    inside = (
        corner + np.array([[0.5, 0.5], [0.1, 0.9], [0.1, 0.9], [0.7, 0.2], [0.01, 0.5], [0.5, 0.5]])
    ) * grid.cell_deg
    right = places[places[:, 1] > 0.5 * grid.extent.width_deg]
    for picture, visited in {
        "flat": places,
        "one cell": inside,
        "nearly one cell": np.concatenate([inside, places]),
        "lumpy": places[::-1],
        "half": np.concatenate([right, right[::2]]),
    }.items():
        rows += [
            {
                "observer": 1,
                "picture": picture,
                "fixation": number,
                "y_deg": y,
                "x_deg": x,
                "duration_s": 0.1 + number / 50,
            }
            for number, (y, x) in enumerate(visited)
        ]
    paths = ScanPaths.from_table(pd.DataFrame(rows), grid.extent)
    maps = SaliencyMaps.from_arrays(maps_on(grid), grid.extent)
    return Dataset(paths, maps.select(paths.pictures))
