"""Saccades of scan paths, real or simulated: amplitude, direction, turn, and what follows from them.

All in true degrees of visual angle. A direction is the angle of a saccade as a viewer sees it: 0 right, 90 up, 180
left, -90 down, whatever way the data's y axis grows (`Extent.origin` says it). A turn is the change of direction from
the saccade before: 0 straight on, 90 to the left, -90 to the right, 180 straight back. Angles lie in (-180, 180].

Where fixation numbers have a gap something was not recorded, so that the jump across it is not a saccade: it is left
out, and no turn and no pair of an autocorrelation reaches across it. A saccade to a forced fixation is nobody's choice:
it is left out too, and nothing reaches across it either. A step that ends where it began (a simulated path may stay in
its cell) has the amplitude 0 and no direction.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from foveate.data.grid import Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.inference.draws import generator
from foveate.precision import check_key

LAGS = 20

# Shares of saccades in the main directions are of those within this angle of them.
SECTOR_DEG = 15.0
DIRECTIONS_DEG = {"right": 0.0, "up": 90.0, "left": 180.0, "down": -90.0}
TURNS_DEG = {"onward": 0.0, "back": 180.0}

# Amplitudes whose standard deviation is below this share of their mean are the same but for rounding.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Saccades:
    """The saccades of a set of scan paths, in the paths' order; NaN where there is none.

    `turn_deg` is the turn from the saccade before into this one: there is none at the first of a path, after a gap or a
    forced fixation, or if one of the two has no direction. `stretch` counts the gaps and the forced fixations so far:
    between two saccades with the same number there is neither.
    """

    observer: np.ndarray
    picture: np.ndarray
    amplitude_deg: Float[np.ndarray, "path saccade"]
    direction_deg: Float[np.ndarray, "path saccade"]
    turn_deg: Float[np.ndarray, "path saccade"]
    stretch: Int[np.ndarray, "path saccade"]

    @classmethod
    def of(cls, paths: ScanPaths, skip: int = 0) -> "Saccades":
        """The saccades of these paths without the first `skip` of each; paths that have no others give none.

        Models make saccades from the third fixation on, so that comparisons with them skip one.
        """
        if isinstance(skip, bool) or not isinstance(skip, int | np.integer) or skip < 0:
            raise InputError(f"skip = {skip!r}: give how many saccades of each path to leave out, 0 or more.")
        if len(paths) == 0:
            raise InputError("no scan paths given: there are no saccades to describe.")
        broken = (paths.after_gap | paths.forced)[:, 1:]  # by the fixation that a saccade leads to
        real = paths.scored(1 + skip)[:, 1:] & ~broken
        if not real.any():
            raise InputError(_why_none(paths, skip))
        right = np.where(real, np.diff(paths.x_deg, axis=1), np.nan)
        up = np.where(real, np.diff(paths.y_deg, axis=1), np.nan)
        if paths.extent.origin == "top":
            up = -up
        amplitude = np.hypot(right, up)
        moved = amplitude > 0  # False at NaN
        right, up = np.where(moved, right, np.nan), np.where(moved, up, np.nan)
        turn = np.full(right.shape, np.nan)
        # By cross and dot product: a difference of two angles would be rounded, so that a square turned by 89.99...
        turn[:, 1:] = _angle_deg(
            right[:, :-1] * up[:, 1:] - up[:, :-1] * right[:, 1:],
            right[:, :-1] * right[:, 1:] + up[:, :-1] * up[:, 1:],
        )
        stretch = np.cumsum(broken, axis=1, dtype=np.int64)
        return cls(paths.observer, paths.picture, amplitude, _angle_deg(up, right), turn, stretch)

    def __repr__(self) -> str:
        """What is in here, in a line."""
        return f"Saccades({self.count:,} saccades, {len(self.observer):,} paths, {len(self.observers)} observers)"

    @property
    def real(self) -> Bool[np.ndarray, "path saccade"]:
        """True where there is a saccade."""
        return np.isfinite(self.amplitude_deg)

    @property
    def count(self) -> int:
        """Number of saccades in all."""
        return int(self.real.sum())

    @property
    def observers(self) -> list:
        """The observers, sorted."""
        return sorted(set(self.observer.tolist()))

    @property
    def amplitudes_deg(self) -> Float[np.ndarray, " saccade"]:
        """All amplitudes in a row."""
        return self.amplitude_deg[self.real]

    @property
    def directions_deg(self) -> Float[np.ndarray, " saccade"]:
        """All directions in a row; fewer than amplitudes if some saccades have none."""
        return self.direction_deg[np.isfinite(self.direction_deg)]

    @property
    def turns_deg(self) -> Float[np.ndarray, " turn"]:
        """All turns in a row."""
        return self.turn_deg[np.isfinite(self.turn_deg)]

    @property
    def two_back_deg(self) -> Float[np.ndarray, " pair"]:
        """How far each fixation is from the one before the last, for every two saccades in a row; 0: gaze returned."""
        angle = np.radians(np.where(self.amplitude_deg == 0, 0.0, self.direction_deg))
        steps = (self.amplitude_deg * part(angle) for part in (np.cos, np.sin))
        distance = np.hypot(*(step[:, 1:] + step[:, :-1] for step in steps))
        return distance[np.isfinite(distance)]

    def by(self, observer: object) -> "Saccades":
        """The saccades of one observer."""
        mine = self.observer == observer
        if not np.any(mine):
            raise InputError(f"no saccades of observer {observer!r}.")
        arrays = ("observer", "picture", "amplitude_deg", "direction_deg", "turn_deg", "stretch")
        return replace(self, **{name: getattr(self, name)[mine] for name in arrays})

    def summary(self) -> dict[str, float]:
        """Numbers that describe these saccades as a whole.

        Mean, standard deviation (of a sample: n - 1) and median of the amplitude; autocorrelation at lag 1; shares of
        directions and of turns within 15 degrees of the main ones. NaN where too few saccades are left.
        """
        amplitude = self.amplitudes_deg
        shares = [(name, self.directions_deg, at) for name, at in DIRECTIONS_DEG.items()]
        shares += [(name, self.turns_deg, at) for name, at in TURNS_DEG.items()]
        return {
            "saccades": float(len(amplitude)),
            "mean_deg": _mean_of(amplitude),
            "sd_deg": float(amplitude.std(ddof=1)) if len(amplitude) > 1 else np.nan,
            "median_deg": float(np.median(amplitude)) if len(amplitude) else np.nan,
            "lag_1": float(autocorrelation(self, 1)[1]),
            **{f"share_{name}": share_near(angles, (at,), SECTOR_DEG) for name, angles, at in shares},
        }

    def table(self) -> pd.DataFrame:
        """The summary of every observer, a row each."""
        rows = {observer: self.by(observer).summary() for observer in self.observers}
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("observer")
        return table.astype({"saccades": int})


def _why_none(paths: ScanPaths, skip: int) -> str:
    """What leaves these paths without a saccade, in a sentence."""
    words = f"none of the {len(paths):,} paths has a saccade{f' after the first {skip}' if skip else ''}"
    forced, gap = (flags[:, 1 + skip :] for flags in (paths.forced, paths.after_gap))
    reasons = []
    if forced.any():
        reasons.append(f"{forced.sum():,} lead to a forced fixation")
    if (gap & ~forced).any():
        reasons.append(f"{(gap & ~forced).sum():,} lead across a gap in the fixation numbers")
    if not reasons:
        return f"{words}: the longest has {paths.length.max()} fixations; give longer paths."
    return (
        f"{words} that counts: {' and '.join(reasons)}; check the flags and the fixation numbers, or give paths with "
        "other saccades."
    )


def _angle_deg(up: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Angle of each vector in (-180, 180]; NaN where a part is."""
    angle = np.degrees(np.arctan2(up, right))
    return np.where(angle == -180.0, 180.0, angle)  # the angle of (-1, -0)


def angle_between_deg(angles_deg: Float[np.ndarray, "*shape"], at_deg: float) -> Float[np.ndarray, "*shape"]:
    """How far each angle is from another, 0 to 180."""
    return np.abs((angles_deg - at_deg + 180.0) % 360.0 - 180.0)


def share_near(angles_deg: Float[np.ndarray, " angle"], at_deg: tuple[float, ...], within_deg: float) -> float:
    """Share of the angles that are no further than `within_deg` from one of `at_deg`; NaN if there are no angles."""
    if not len(angles_deg):
        return np.nan
    return float(np.mean(np.min([angle_between_deg(angles_deg, at) for at in at_deg], axis=0) <= within_deg))


# --- sequences -----------------------------------------------------------------------------------------------------


def autocorrelation(saccades: Saccades, lags: int = LAGS) -> Float[np.ndarray, " lag"]:
    """Autocorrelation of amplitudes along a path at lags 0 to `lags`: the mean over paths of each path's own.

    For a path with the mean m and the variance v = 1/n sum (a_i - m)^2 of its amplitudes a it is
    r_k = 1/n_k sum (a_i - m)(a_{i+k} - m) / v, the sum over its n_k pairs of saccades that are k apart with neither a
    gap nor a forced fixation between them. A path counts at the lags at which it has pairs, unless all its amplitudes
    are the same; NaN where no path does. A path's own mean costs something: r_k of independent saccades is about -1/n,
    so compare paths of like lengths.
    """
    return sequence_autocorrelation(saccades.amplitude_deg, saccades.stretch, lags)


def sequence_autocorrelation(
    values: Float[np.ndarray, "path place"], stretch: Int[np.ndarray, "path place"], lags: int = LAGS
) -> Float[np.ndarray, " lag"]:
    """The same of any numbers along paths, NaN where there is none; no pair reaches from one `stretch` to another."""
    _check_lags(lags)
    length = np.maximum(np.isfinite(values).sum(axis=1), 1)
    mean = np.nansum(values, axis=1) / length
    deviation = values - mean[:, None]
    variance = np.nansum(deviation**2, axis=1) / length
    # Values that are all the same differ from their mean by rounding alone.
    varied = variance > (SAME * mean) ** 2
    result = np.full(lags + 1, np.nan)
    for lag in range(lags + 1):
        products = _lagged_products(stretch, deviation, lag)
        pairs = np.isfinite(products).sum(axis=1)
        counts = varied & (pairs > 0)
        if counts.any():
            own = np.nansum(products[counts], axis=1) / pairs[counts] / variance[counts]
            result[lag] = own.mean()
    return result


def pooled_autocorrelation(saccades: Saccades, lags: int = LAGS) -> Float[np.ndarray, " lag"]:
    """The same with the mean and the variance of all saccades, and over the pairs of all paths at once.

    It holds what observers and pictures differ in, too: where some make long saccades and others short ones, saccades
    of one path are alike at any lag. r_k of saccades that are independent within paths is the share of the variance
    that lies between paths. NaN where there is no pair, or if all amplitudes are the same.
    """
    _check_lags(lags)
    mean = float(saccades.amplitudes_deg.mean())
    deviation = saccades.amplitude_deg - mean
    products = [_lagged_products(saccades.stretch, deviation, lag) for lag in range(lags + 1)]
    means = np.array([_mean_of(product) for product in products])
    return means / means[0] if means[0] > (SAME * mean) ** 2 else np.full(lags + 1, np.nan)


def _check_lags(lags: int) -> None:
    if isinstance(lags, bool) or not isinstance(lags, int | np.integer) or lags < 0:
        raise InputError(f"lags = {lags!r}: give the longest lag, 0 or more saccades.")


def _lagged_products(
    stretch: Int[np.ndarray, "path place"], deviation: Float[np.ndarray, "path place"], lag: int
) -> Float[np.ndarray, "path pair"]:
    """Products of deviations `lag` apart; NaN where there is no such pair."""
    count = max(deviation.shape[1] - lag, 0)
    joined = stretch[:, :count] == stretch[:, lag:]
    return np.where(joined, deviation[:, :count] * deviation[:, lag:], np.nan)


def _mean_of(values: Float[np.ndarray, "..."]) -> float:
    """Mean of what is there, NaN if nothing is."""
    there = values[np.isfinite(values)]
    return float(there.mean()) if there.size else np.nan


# --- simulated positions -------------------------------------------------------------------------------------------


def spread_within_cells(paths: ScanPaths, grid: Grid, key: PRNGKeyArray) -> ScanPaths:
    """The paths with every fixation moved to a random place in its cell.

    A model gives a probability to each cell, and simulated fixations are the cells' centres. Between centres only some
    amplitudes and directions are possible, which draws combs into their densities: spread simulated paths before
    they are compared with measured ones.
    """
    check_key(key)
    if paths.extent != grid.extent:
        raise InputError(f"the scan paths lie in {paths.extent}, the grid in {grid.extent}; they must be the same.")
    real = paths.real
    rng = generator(key)
    cells = grid.cell_of(np.where(real, paths.y_deg, 0.0), np.where(real, paths.x_deg, 0.0))
    moved = (
        (index + rng.random(real.shape)) * size
        for index, size in zip(cells, grid.cell_deg, strict=True)
    )  # fmt: skip
    y_deg, x_deg = (np.where(real, values, np.nan) for values in moved)
    return replace(paths, y_deg=y_deg, x_deg=x_deg)
