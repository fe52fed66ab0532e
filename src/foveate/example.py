"""The built-in example data set: made-up pictures and observers, generated from a seed.

Every map is a centre bias with blobs of different size, elongation and strength, as densities of fixations on
photographs look. Every path is simulated from the full model with its observer's parameters, so that the truth is
known.
"""

from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.model.catalogue import full
from foveate.model.model import Model
from foveate.simulation.simulate import NO_POLICY, simulate

GRID = Grid(64, 64, Extent(24.0, 32.0, "bottom"))

PICTURES = (
    "beach", "bridge", "castle", "forest", "garden", "harbour",
    "kitchen", "market", "meadow", "station", "street", "tower",
)  # fmt: skip

# Within the range that observers of natural scenes show: how far local and global steps reach (deg^2, row and column),
# and how the choice between them depends on saliency. For "dan" it depends the other way round.
OBSERVERS: dict[str, dict[str, Any]] = {
    "ann": {"epsilon": (1.2, 1.8), "xi": (30.0, 55.0), "b": 0.5, "s0": 2.0},
    "ben": {"epsilon": (4.0, 7.0), "xi": (40.0, 90.0), "b": 0.3, "s0": 4.0},
    "cleo": {"epsilon": (0.6, 1.0), "xi": (15.0, 25.0), "b": 0.8, "s0": 1.5},
    "dan": {"epsilon": (2.0, 2.5), "xi": (60.0, 60.0), "b": -0.4, "s0": 1.0},
    "eve": {"epsilon": (2.5, 5.0), "xi": (25.0, 70.0), "b": 1.2, "s0": 1.2},
    "finn": {"epsilon": (1.0, 3.0), "xi": (50.0, 120.0), "b": 0.2, "s0": 6.0},
}

SHORTEST_PATH, LONGEST_PATH = 18, 32

# Durations of fixations: log-normal, in seconds.
MEDIAN_DURATION_S, DURATION_SPREAD = 0.25, 0.35

# Shares of a map's mass: what lies where gaze prefers the centre of any picture, and what lies anywhere.
CENTRE_SHARE, UNIFORM_SHARE = 0.4, 0.05


@dataclass(frozen=True, eq=False)
class ExampleData:
    """Scan paths and maps, and for each observer the model with the parameters that made the paths."""

    data: Dataset
    models: dict[str, Model]


def example_data(seed: int = 1) -> ExampleData:
    """12 pictures, 6 observers and about 25 fixations a path, with durations; the same seed gives the same data."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed = {seed!r}: give a whole number, 0 or more.")
    for_maps, for_lengths, for_durations = np.random.default_rng(seed).spawn(3)
    maps = SaliencyMaps.from_arrays(
        {picture: _map(for_maps) for picture in PICTURES}, GRID.extent, normalise=True
    ).with_uniform_share(UNIFORM_SHARE)
    models = {observer: full(**parameters) for observer, parameters in OBSERVERS.items()}
    paths = simulate(models, maps, LONGEST_PATH, jax.random.key(seed))
    return ExampleData(Dataset(_cut(paths, for_lengths, for_durations), maps), models)


def _map(rng: np.random.Generator) -> Float[np.ndarray, "row column"]:
    """One picture's weights."""
    centre = _blob(np.array([12.0, 16.0]), np.array([5.0, 7.0]), 0.0)
    blobs = np.zeros(GRID.shape)
    for _ in range(rng.integers(6, 12)):
        place = np.clip(rng.normal([12.0, 16.0], [5.0, 7.5]), [1.5, 1.5], [22.5, 30.5])
        size_deg = np.exp(rng.uniform(np.log(0.9), np.log(2.8)))
        elongation = np.exp(rng.uniform(0.0, np.log(1.8)))
        spread = size_deg * np.array([elongation, 1 / elongation])
        blobs += rng.gamma(3.0) * size_deg * _blob(place, spread, rng.uniform(0, np.pi))
    return CENTRE_SHARE * centre / centre.sum() + (1 - CENTRE_SHARE) * blobs / blobs.sum()


def _blob(
    place_deg: Float[np.ndarray, "2"], spread_deg: Float[np.ndarray, "2"], angle: float
) -> Float[np.ndarray, "row column"]:
    """A Gaussian hill around (y, x) with a mass of about one, turned by an angle."""
    y, x = GRID.row_centres_deg[:, None] - place_deg[0], GRID.column_centres_deg[None, :] - place_deg[1]
    along, across = y * np.cos(angle) + x * np.sin(angle), x * np.cos(angle) - y * np.sin(angle)
    hill = np.exp(-0.5 * ((along / spread_deg[0]) ** 2 + (across / spread_deg[1]) ** 2))
    return hill * GRID.cell_area_deg2 / (2 * np.pi * spread_deg.prod())


def _cut(paths: ScanPaths, for_lengths: np.random.Generator, for_durations: np.random.Generator) -> ScanPaths:
    """The paths cut to different lengths, with durations."""
    length = for_lengths.integers(SHORTEST_PATH, LONGEST_PATH, endpoint=True, size=len(paths))
    longest = int(length.max())
    real = np.arange(longest) < length[:, None]
    duration_s = MEDIAN_DURATION_S * np.exp(DURATION_SPREAD * for_durations.standard_normal(paths.x_deg.shape))
    return replace(
        paths,
        length=length,
        fixation=np.where(real, paths.fixation[:, :longest], 0),
        x_deg=np.where(real, paths.x_deg[:, :longest], np.nan),
        y_deg=np.where(real, paths.y_deg[:, :longest], np.nan),
        duration_s=np.where(real, duration_s[:, :longest], np.nan),
        columns={"policy": np.where(real, paths.columns["policy"][:, :longest], NO_POLICY)},
    )
