"""Densities that a model must beat: uniform, the picture's own map, and the centre bias.

What a model gains over one of them is its log-probability of the fixated cell less theirs (information gain). The map
is the Saliency Baseline: it knows the picture but not the gaze. The centre bias knows neither: it is where people look
in pictures, whatever they show. As is usual since Kümmerer, Wallis and Bethge (2015), it is the smoothed density of
the fixations on all other pictures, every fixation weighing the same, and not the mean of their maps: maps need not
come from fixations, and their bandwidth suits the fixations on one picture, not those on all.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.data.density import density_maps
from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps, check_uniform_share
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.model.model import DRAWN_FROM_MAP

# Standard deviations that are tried where none is given, in degrees.
BANDWIDTHS_DEG = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)

# Of the centre bias' mass, so that a lone fixation in a corner costs a few bits and not hundreds.
UNIFORM_SHARE = 0.01


def baseline_nats(data: Dataset, centre_bias: SaliencyMaps | None = None) -> dict[str, Float[np.ndarray, " step"]]:
    """Log-probability of every step's cell under each baseline, by name; steps in the order of `step_table`."""
    static = _log_at(data.maps, data.paths)
    found = {"uniform": np.full_like(static, -np.log(data.maps.grid.cells)), "static_map": static}
    if centre_bias is not None:
        if centre_bias.grid != data.maps.grid:
            raise InputError(
                f"the centre bias lies on {centre_bias.grid}, the maps on {data.maps.grid}: make it on the same grid."
            )
        found["centre_bias"] = _log_at(centre_bias, data.paths)
    return found


def centre_bias_maps(
    paths: ScanPaths,
    grid: Grid,
    *,
    bandwidth_deg: float | Sequence[float] = BANDWIDTHS_DEG,
    uniform_share: float = UNIFORM_SHARE,
) -> SaliencyMaps:
    """For each picture the density of the fixations on all other pictures, by all observers in `paths`.

    Of several bandwidths (standard deviations of the Gaussian) the one is taken that predicts best the fixations on
    each picture from those on the others: a baseline should be as good as it can be. `uniform_share` of the mass is
    spread over all cells.
    """
    check_uniform_share(uniform_share)
    if len(paths.pictures) < 2:
        raise InputError("1 picture: a centre bias is made from the other pictures, so there must be two or more.")
    candidates = [float(it) for it in np.atleast_1d(np.asarray(bandwidth_deg, dtype=float))]
    if not candidates:
        raise InputError("no bandwidth given: name one, or some to choose from, in degrees.")
    made = [_without_each(paths, grid, it, uniform_share) for it in candidates]
    if len(made) == 1:
        return made[0]
    nats = [_log_at(maps, paths).mean() for maps in made]
    if not np.isfinite(nats).any():
        raise InputError(
            f"every bandwidth ({some_of(candidates)} deg) leaves some fixation at zero density; add wider ones, or a "
            "uniform share such as uniform_share=0.01."
        )
    return made[int(np.argmax(nats))]


def _without_each(paths: ScanPaths, grid: Grid, bandwidth_deg: float, uniform_share: float) -> SaliencyMaps:
    """Mean of the other pictures' fixation densities, each weighing as much as it has fixations."""
    maps = density_maps(paths, grid, bandwidth_deg)
    counts = np.array([paths.scored(0)[paths.picture == picture].sum() for picture in maps.pictures])
    weighted = counts[:, None, None] * maps.values
    others = weighted.sum(axis=0) - weighted
    others = np.maximum(others, 0.0)  # where one picture holds nearly all, rounding may leave less than nothing
    others /= others.sum(axis=(1, 2), keepdims=True)
    return SaliencyMaps(grid, maps.pictures, others).with_uniform_share(uniform_share)


def _log_at(maps: SaliencyMaps, paths: ScanPaths) -> Float[np.ndarray, " step"]:
    """Log of the maps, each summing to one, at the cell of every scored step."""
    path, fixation = np.nonzero(paths.scored(DRAWN_FROM_MAP))
    row, column = maps.grid.cell_of(paths.y_deg[path, fixation], paths.x_deg[path, fixation])
    index = maps.index_of(paths.picture.tolist())[path]
    with np.errstate(divide="ignore"):  # the log of zero is what such a map deserves
        return np.log(maps.values[index, row, column] / maps.values.sum(axis=(1, 2))[index])
