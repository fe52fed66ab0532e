"""How far apart two distributions, two lists of numbers or two maps are, each in a unit that means something."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import wasserstein_distance

from foveate.data.density import density_maps
from foveate.data.joining import join_paths
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.model.model import DRAWN_FROM_MAP

# Share of the mass spread over all cells before a divergence, so that a cell which no simulated fixation came near
# costs much, but not infinitely much.
FLOOR_SHARE = 1e-3

# Smoothing of simulated fixations, in degrees: little, as there are many of them, and maps are smooth already.
BANDWIDTH_DEG = 0.5


def jensen_shannon_bits(p: Float[np.ndarray, " bin"], q: Float[np.ndarray, " bin"]) -> float:
    """Jensen-Shannon divergence of two histograms (counts or shares), in bits: 0 if equal, 1 if they never meet."""
    for name, weights in (("first", p), ("second", q)):
        if not (np.all(np.isfinite(weights)) and np.all(weights >= 0) and weights.sum() > 0):
            raise InputError(
                f"the {name} histogram is empty or not one: counts must be zero or more, and some positive."
            )
    p, q = p / p.sum(), q / q.sum()
    middle = (p + q) / 2
    return (_kl_bits(p, middle) + _kl_bits(q, middle)) / 2


def _kl_bits(p: Float[np.ndarray, "*shape"], q: Float[np.ndarray, "*shape"]) -> float:
    """Kullback-Leibler divergence of q from p: sum p log2(p / q)."""
    some = p > 0
    return float(np.sum(p[some] * np.log2(p[some] / q[some])))


def wasserstein_deg(a_deg: Float[np.ndarray, " a"], b_deg: Float[np.ndarray, " b"]) -> float:
    """Mean distance that the values of one sample must be moved to become the other (the earth mover's), in degrees."""
    _check_samples(a_deg, b_deg)
    return float(wasserstein_distance(a_deg, b_deg))


def circular_wasserstein_deg(a_deg: Float[np.ndarray, " a"], b_deg: Float[np.ndarray, " b"]) -> float:
    """The same for angles, which may be moved either way round the circle.

    The minimum over c of the integral of |F - G - c| round the circle, reached at the median of F - G.
    """
    _check_samples(a_deg, b_deg)
    a, b = np.sort(a_deg % 360.0), np.sort(b_deg % 360.0)
    points = np.sort(np.concatenate([a, b]))
    difference = np.searchsorted(a, points, "right") / len(a) - np.searchsorted(b, points, "right") / len(b)
    gaps = np.diff(points, append=points[0] + 360.0)
    order = np.argsort(difference)
    halfway = np.searchsorted(np.cumsum(gaps[order]), 180.0)
    median = difference[order[min(halfway, len(order) - 1)]]
    return float(np.sum(gaps * np.abs(difference - median)))


def _check_samples(a: np.ndarray, b: np.ndarray) -> None:
    if len(a) == 0 or len(b) == 0:
        raise InputError("one of the two samples is empty: there is no distance to nothing.")


# --- predicted against observed ------------------------------------------------------------------------------------


def r2_identity(observed: Float[np.ndarray, " item"], predicted: Float[np.ndarray, " item"]) -> float:
    """Coefficient of determination against the identity line: 1 - sum (o - p)^2 / sum (o - mean o)^2.

    1 if all predictions are right, 0 if they are no better than the observed mean, negative if worse.
    """
    _check_pairs(observed, predicted)
    return float(1 - np.sum((observed - predicted) ** 2) / np.sum((observed - observed.mean()) ** 2))


def r2_correlation(observed: Float[np.ndarray, " item"], predicted: Float[np.ndarray, " item"]) -> float:
    """Squared correlation: R^2 against the best straight line, blind to a wrong level or slope.

    NaN if all predictions are the same.
    """
    _check_pairs(observed, predicted)
    if np.ptp(predicted) == 0:
        return np.nan
    return float(np.corrcoef(observed, predicted)[0, 1] ** 2)


def _check_pairs(observed: np.ndarray, predicted: np.ndarray) -> None:
    if len(observed) != len(predicted):
        raise InputError(f"{len(observed)} observed and {len(predicted)} predicted numbers: there must be as many.")
    if len(observed) < 2 or np.ptp(observed) == 0:
        raise InputError("R^2 needs at least two different observed numbers.")


# --- maps ----------------------------------------------------------------------------------------------------------


def map_agreement(
    simulated: Sequence[ScanPaths],
    maps: SaliencyMaps,
    *,
    bandwidth_deg: float = BANDWIDTH_DEG,
    start: int = DRAWN_FROM_MAP,
) -> pd.DataFrame:
    """For every picture, how the density of simulated fixations (of all draws together) compares with its map.

    Columns: `fixations`; `correlation` of the two over cells; `kl_bits`, the divergence sum s log2(s / q) of the
    density q from the map s, after a thousandth of q's mass was spread over all cells. The first `start` fixations of a
    path are left out, since models draw them from the map itself, and so are forced ones.
    """
    if len(simulated) == 0:
        raise InputError("no simulated paths given: there is no density of fixations.")
    rows = {}
    pooled = join_paths([_without_start(paths, start) for paths in simulated])
    counted = pooled.scored(0).sum(axis=1)
    fixations = {picture: int(counted[pooled.picture == picture].sum()) for picture in pooled.pictures}
    shown = [picture for picture, count in fixations.items() if count]
    if not shown:
        raise InputError(
            f"all fixations of the simulated paths after the first {start} are forced, as in the paths that they "
            "imitate: there is no density of chosen ones."
        )
    density = density_maps(pooled.select(pictures=shown), maps.grid, bandwidth_deg, uniform_share=FLOOR_SHARE)
    for picture in density.pictures:
        s, q = maps[picture], density[picture]
        same = np.ptp(s) == 0 or np.ptp(q) == 0
        rows[picture] = {
            "fixations": fixations[picture],
            "correlation": np.nan if same else float(np.corrcoef(s.ravel(), q.ravel())[0, 1]),
            "kl_bits": _kl_bits(s, q),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("picture").astype({"fixations": int})


def _without_start(paths: ScanPaths, start: int) -> ScanPaths:
    """The paths without their first fixations, and without those paths that have no others."""
    rest = paths.at_least(start + 1)
    if len(rest) == 0:
        raise InputError(f"no simulated path is longer than the {start} fixations that are left out.")
    arrays = {name: getattr(rest, name)[:, start:] for name in ("fixation", "x_deg", "y_deg")}
    flags = {name: values[:, start:] for name, values in rest.columns.items() if name == "forced"}
    return replace(rest, length=rest.length - start, duration_s=None, columns=flags, **arrays)
