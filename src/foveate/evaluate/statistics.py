"""Saccades of observed against simulated scan paths: densities, autocorrelation and observers, with bands over draws.

One simulated data set per posterior draw. A band holds, at each point by itself, 95 % of the data sets that the model
would make: uncertainty about the parameters and the chance of a single data set, both. With D draws its ends are the
order statistics number 0.025 (D + 1) from either side; below 39 draws they are the smallest and the largest draw,
which hold (D - 1) / (D + 1).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.grid import Extent
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.evaluate.bins import Bins
from foveate.evaluate.distances import (
    circular_wasserstein_deg,
    jensen_shannon_bits,
    r2_correlation,
    r2_identity,
    wasserstein_deg,
)
from foveate.evaluate.saccades import LAGS, Saccades, autocorrelation, pooled_autocorrelation
from foveate.model.model import DRAWN_FROM_MAP

BAND = 0.95

# Standard deviations of the smoothing: finer than anything that saccades on a picture show.
AMPLITUDE_BANDWIDTH_DEG = 0.3
ANGLE_BANDWIDTH_DEG = 5.0

# Simulated paths begin with fixations drawn from the map (or observed): saccades between those are no model's.
SKIP = DRAWN_FROM_MAP - 1


@dataclass(frozen=True, eq=False)
class Band:
    """A curve of the observed data, with the mean over draws and the band of the simulated ones."""

    at: Float[np.ndarray, " point"]
    observed: Float[np.ndarray, " point"]
    mean: Float[np.ndarray, " point"]
    low: Float[np.ndarray, " point"]
    high: Float[np.ndarray, " point"]

    @classmethod
    def over(
        cls,
        at: Float[np.ndarray, " point"],
        observed: Float[np.ndarray, " point"],
        draws: Float[np.ndarray, "draw point"],
    ) -> "Band":
        """The band of these draws."""
        # Of the estimators of a quantile it is Weibull's whose band a new draw falls into as often as it says.
        tail = (1 - BAND) / 2
        low, high = np.quantile(draws, [tail, 1 - tail], axis=0, method="weibull")
        return cls(at, observed, draws.mean(axis=0), low, high)

    @property
    def inside(self) -> np.ndarray:
        """Whether the observed curve lies in the band, point by point."""
        return (self.observed >= self.low) & (self.observed <= self.high)

    def table(self) -> pd.DataFrame:
        """A row for every point."""
        columns = {"observed": self.observed, "simulated": self.mean, "low": self.low, "high": self.high}
        return pd.DataFrame(columns | {"inside": self.inside}, index=pd.Index(self.at, name="at"))


@dataclass(frozen=True, eq=False)
class SaccadeComparison:
    """Observed saccades against those of simulated data sets, one per posterior draw.

    `amplitude`, `direction` and `turn` are densities per degree; `autocorrelation` is the mean of the paths' own and
    `pooled_autocorrelation` that around the overall mean, by lag; `observer_mean` and `observer_sd` have a point for
    every one of `observers`, in degrees. `distances` has a row per quantity, see `compare_saccades`.
    """

    observers: list
    draws: int
    saccades: int
    observed_summary: dict[str, float]
    simulated_summary: pd.DataFrame
    amplitude: Band
    direction: Band
    turn: Band
    autocorrelation: Band
    pooled_autocorrelation: Band
    observer_mean: Band
    observer_sd: Band
    distances: pd.DataFrame

    def table(self) -> pd.DataFrame:
        """Numbers for all saccades: observed, simulated (mean over draws), the band, whether it holds the observed."""
        names = [name for name in self.observed_summary if name != "saccades"]
        observed = np.array([self.observed_summary[name] for name in names])
        band = Band.over(np.arange(len(names), dtype=np.float64), observed, self.simulated_summary[names].to_numpy())
        return band.table().set_index(pd.Index(names, name="statistic"))

    def agreement(self) -> pd.DataFrame:
        """R^2 of the observers' predicted (mean over draws) against observed mean and standard deviation.

        `r2_identity` is the coefficient of determination against the identity line, `r2_correlation` the squared
        correlation; `inside` the share of observers in their band.
        """
        rows = {
            name: {
                "r2_identity": r2_identity(band.observed, band.mean),
                "r2_correlation": r2_correlation(band.observed, band.mean),
                "inside": float(band.inside.mean()),
            }
            for name, band in (("mean", self.observer_mean), ("sd", self.observer_sd))
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("of amplitude")

    def observer_table(self) -> pd.DataFrame:
        """Mean and standard deviation of the amplitude, in degrees, observed and simulated: a row per observer."""
        parts = {"mean_deg": self.observer_mean.table(), "sd_deg": self.observer_sd.table()}
        table = pd.concat(parts, axis=1)
        table.columns = [f"{kind}_{column}" for kind, column in table.columns]
        return table.set_index(pd.Index(self.observers, name="observer"))


def observer_moments_deg(saccades: Saccades) -> Float[np.ndarray, "2 observer"]:
    """Mean and standard deviation (n - 1) of each observer's amplitudes; NaN where there are too few saccades."""
    _, who = np.unique(saccades.observer, return_inverse=True)
    real = saccades.real
    place = np.broadcast_to(who[:, None], real.shape)[real]
    amplitude = saccades.amplitudes_deg
    count = np.bincount(place, minlength=len(saccades.observers))
    mean = np.bincount(place, amplitude, minlength=len(count)) / np.where(count > 0, count, np.nan)
    squares = np.bincount(place, (amplitude - mean[place]) ** 2, minlength=len(count))
    return np.stack([mean, np.sqrt(squares / np.where(count > 1, count - 1, np.nan))])


def compare_saccades(
    observed: ScanPaths,
    simulated: Iterable[ScanPaths],
    *,
    skip: int = SKIP,
    lags: int = LAGS,
    amplitude_bandwidth_deg: float = AMPLITUDE_BANDWIDTH_DEG,
    angle_bandwidth_deg: float = ANGLE_BANDWIDTH_DEG,
) -> SaccadeComparison:
    """Saccades of the observed paths against those of simulated ones, a set of paths for each posterior draw.

    Observers must be the same in all. The first `skip` saccades of every path are left out on both sides. Simulated
    paths whose fixations are centres of cells should be spread first, see `spread_within_cells`; draws are taken one
    after the other, so that they need not all be held at once.

    `distances` has, for amplitude, direction and turn, the Jensen-Shannon divergence in bits (of bins of 0.25 and 5
    degrees) and the Wasserstein distance in degrees between the observed and one simulated data set, as means over
    draws; `..._floor` is the same between one draw and the next: what chance alone would leave.
    """
    truth = _Numbers.of(Saccades.of(observed, skip), observed.extent, lags)
    numbers: list[_Numbers] = []
    before: _Numbers | None = None
    to_observed, to_next = [], []
    for index, paths in enumerate(simulated):
        _check_same(observed, paths, index + 1)
        drawn = _Numbers.of(Saccades.of(paths, skip), paths.extent, lags)
        to_observed.append(drawn.distances(truth))
        if before is not None:
            to_next.append(drawn.distances(before))
        before = drawn
        numbers.append(replace(drawn, samples={}))  # the only large part
    if len(numbers) < 2:
        raise InputError(f"{len(numbers)} simulated data sets: a band over draws needs at least two.")

    widths = {"amplitude": amplitude_bandwidth_deg, "direction": angle_bandwidth_deg, "turn": angle_bandwidth_deg}

    def density(name: str) -> Band:
        bins, width = truth.bins[name], widths[name]
        curves = np.stack([bins.density(draw.counts[name], width) for draw in numbers])
        return Band.over(bins.centres_deg, bins.density(truth.counts[name], width), curves)

    def curve(name: str) -> Band:
        values = np.stack([draw.curves[name] for draw in numbers])
        return Band.over(np.arange(values.shape[1], dtype=np.float64), truth.curves[name], values)

    distances = pd.DataFrame(np.mean(to_observed, axis=0), index=list(widths), columns=["js_bits", "wasserstein_deg"])
    floors = pd.DataFrame(np.mean(to_next, axis=0), index=list(widths), columns=["js_bits", "wasserstein_deg"])
    return SaccadeComparison(
        observers=observed.observers,
        draws=len(numbers),
        saccades=int(truth.summary["saccades"]),
        observed_summary=truth.summary,
        simulated_summary=pd.DataFrame([draw.summary for draw in numbers]).rename_axis("draw"),
        **{name: density(name) for name in widths},
        **{name: curve(name) for name in truth.curves},
        distances=pd.concat([distances, floors.add_suffix("_floor")], axis=1).rename_axis("quantity"),
    )


@dataclass(frozen=True, eq=False)
class _Numbers:
    """What is kept of one data set."""

    bins: dict[str, Bins]
    samples: dict[str, np.ndarray]
    counts: dict[str, np.ndarray]
    curves: dict[str, np.ndarray]
    summary: dict[str, float]

    @classmethod
    def of(cls, saccades: Saccades, extent: Extent, lags: int) -> "_Numbers":
        bins = {"amplitude": Bins.of_amplitudes(extent), "direction": Bins.of_angles(), "turn": Bins.of_angles()}
        values = (saccades.amplitudes_deg, saccades.directions_deg, saccades.turns_deg)
        samples = dict(zip(bins, values, strict=True))
        for name, sample in samples.items():
            if len(sample) == 0:
                raise InputError(f"the paths are too short to have a {name}; give paths of at least 4 fixations.")
        mean, sd = observer_moments_deg(saccades)
        curves = {
            "autocorrelation": autocorrelation(saccades, lags),
            "pooled_autocorrelation": pooled_autocorrelation(saccades, lags),
            "observer_mean": mean,
            "observer_sd": sd,
        }
        counts = {name: bins[name].counts(sample) for name, sample in samples.items()}
        return cls(bins, samples, counts, curves, saccades.summary())

    def distances(self, other: "_Numbers") -> list[tuple[float, float]]:
        """Jensen-Shannon and Wasserstein to another data set, for every quantity."""
        result = []
        for name, bins in self.bins.items():
            distance = circular_wasserstein_deg if bins.circular else wasserstein_deg
            pair = jensen_shannon_bits(self.counts[name], other.counts[name])
            result.append((pair, distance(self.samples[name], other.samples[name])))
        return result


def _check_same(observed: ScanPaths, simulated: ScanPaths, draw: int) -> None:
    if simulated.extent != observed.extent:
        raise InputError(
            f"simulated draw {draw} lies in {simulated.extent}, the observed paths in {observed.extent}; they must be "
            "the same."
        )
    if simulated.observers != observed.observers:
        differing = sorted(set(simulated.observers) ^ set(observed.observers), key=str)
        raise InputError(
            f"observer {some_of(differing)} is in only one of the observed paths and simulated draw {draw}; simulate "
            "the observers that were observed, or select the same on both sides."
        )
