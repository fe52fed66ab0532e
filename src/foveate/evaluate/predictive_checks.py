"""Posterior predictive checks: could the observed scan paths have come from the model, by the statistics of saccades?

A copy is a data set that the model makes with one posterior draw: the same observers, pictures, lengths and starts.
Each statistic of the data is set beside those of the copies: the band that holds 95 % of them, and the share of copies
that reach the data. Where there are many saccades, bands are so narrow that hardly any model is inside all of them;
distances say how far off it is, in bits and degrees, and what chance alone would give.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.bins import Bins
from foveate.evaluate.distances import circular_wasserstein_deg, jensen_shannon_bits, wasserstein_deg
from foveate.evaluate.saccades import Saccades, autocorrelation, sequence_autocorrelation, share_near
from foveate.evaluate.statistics import SKIP, Band, SaccadeComparison, compare_saccades

TURN_WITHIN_DEG, AXIS_WITHIN_DEG = 30.0, 22.5
RETURN_WITHIN_DEG = 1.5
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
LAGS = 3  # that are checked one by one
QUANTITIES = ("amplitude", "direction", "turn")

# What each statistic is, in words with its unit; chance is a sixth for turns and a quarter for directions.
TITLES: dict[str, str] = {
    "turn_onward": f"turns within {TURN_WITHIN_DEG:g} deg of straight on (share)",
    "turn_back": f"turns within {TURN_WITHIN_DEG:g} deg of straight back (share)",
    "horizontal": f"directions within {AXIS_WITHIN_DEG:g} deg of horizontal (share)",
    "vertical": f"directions within {AXIS_WITHIN_DEG:g} deg of vertical (share)",
    "amplitude_mean_deg": "mean amplitude (deg)",
    "amplitude_sd_deg": "standard deviation of amplitude (deg)",
    **{f"amplitude_q{100 * it:.0f}_deg": f"{100 * it:.0f} % quantile of amplitude (deg)" for it in QUANTILES},
    **{f"amplitude_lag_{lag}": f"autocorrelation of amplitude, lag {lag}" for lag in range(1, LAGS + 1)},
    "return_rate": f"returns to within {RETURN_WITHIN_DEG:g} deg (share)",
    "duration_mean_s": "mean duration of fixations (s)",
    "duration_lag_1": "autocorrelation of durations, lag 1",
}
OF_DURATIONS = ("duration_mean_s", "duration_lag_1")


def saccade_statistics(saccades: Saccades) -> dict[str, float]:
    """The checked statistics of saccades, by name; NaN where there are too few."""
    amplitude, turns, directions = saccades.amplitudes_deg, saccades.turns_deg, saccades.directions_deg
    some, lags = len(amplitude) > 1, autocorrelation(saccades, LAGS)
    two_back = saccades.two_back_deg
    quantiles = np.quantile(amplitude, QUANTILES) if some else np.full(len(QUANTILES), np.nan)
    values = [
        share_near(turns, (0.0,), TURN_WITHIN_DEG),
        share_near(turns, (180.0,), TURN_WITHIN_DEG),
        share_near(directions, (0.0, 180.0), AXIS_WITHIN_DEG),
        share_near(directions, (90.0, -90.0), AXIS_WITHIN_DEG),
        float(amplitude.mean()) if some else np.nan,
        float(amplitude.std(ddof=1)) if some else np.nan,
        *quantiles.tolist(),
        *lags[1:].tolist(),
        float(np.mean(two_back <= RETURN_WITHIN_DEG)) if len(two_back) else np.nan,
    ]
    return dict(zip((name for name in TITLES if name not in OF_DURATIONS), values, strict=True))


def duration_statistics(paths: ScanPaths) -> dict[str, float]:
    """Those of durations; the first and the last of a path are left out, as models leave them out, and unknown ones."""
    if paths.duration_s is None:
        raise InputError("the scan paths do not say how long fixations lasted: there are no durations to check.")
    place = np.arange(paths.duration_s.shape[1])
    inner = (place > 0) & (place < paths.length[:, None] - 1) & ~paths.forced
    known = np.where(inner & (paths.duration_s > 0), paths.duration_s, np.nan)
    stretch = np.cumsum(paths.after_gap | paths.forced, axis=1, dtype=np.int64)
    there = known[np.isfinite(known)]
    values = (float(there.mean()) if len(there) else np.nan, float(sequence_autocorrelation(known, stretch, 1)[1]))
    return dict(zip(OF_DURATIONS, values, strict=True))


@final
@dataclass(frozen=True, eq=False)
class PredictiveChecks:
    """The data beside the copies of one model.

    `observed` and `copies` have the statistics (of everybody together, a row a copy); `observer_values` those of each
    observer: of the data, then of every copy. `curves` has the densities and the autocorrelation with bands;
    `distances` has a row for each of amplitude, direction and turn, see `predictive_checks`.
    """

    observed: dict[str, float]
    copies: pd.DataFrame
    observer_values: Float[np.ndarray, "copy observer statistic"]
    curves: SaccadeComparison
    distances: pd.DataFrame

    def table(self) -> pd.DataFrame:
        """A row for each statistic: the data's value, the copies' mean and band, whether the data lie inside. What the
        data or a copy have too few saccades for is left out.

        `share_above` is the posterior predictive p: the share of data sets at or above the data, the data themselves
        among them; `p` is two-sided. `z` is how many standard deviations of the copies the data are above their mean.
        `observers_inside` is the share of observers whose own value lies in their own band.
        """
        names = [name for name, value in self.observed.items() if np.isfinite([value, *self.copies[name]]).all()]
        data, copies = np.array([self.observed[name] for name in names]), self.copies[names].to_numpy()
        band = Band.over(np.arange(len(names), dtype=np.float64), data, copies)
        table = band.table().set_index(pd.Index(names, name="statistic"))
        above, below = ((1 + it.sum(axis=0)) / (1 + len(copies)) for it in (copies >= data, copies <= data))
        spread = copies.std(axis=0, ddof=1)
        table["share_above"] = above
        table["p"] = np.minimum(1.0, 2 * np.minimum(above, below))
        table["z"] = (data - band.mean) / np.where(spread > 0, spread, np.nan)
        table["observers_inside"] = self._observers_inside()[[list(self.observed).index(name) for name in names]]
        return table

    def _observers_inside(self) -> Float[np.ndarray, " statistic"]:
        """Observers with too few saccades for a statistic have no band, and do not count."""
        data, copies = self.observer_values[0], self.observer_values[1:]
        flat = np.arange(data.size, dtype=np.float64)
        inside = Band.over(flat, data.ravel(), copies.reshape(len(copies), -1)).inside.reshape(data.shape)
        known = np.isfinite(data) & np.isfinite(copies).all(axis=0)
        count = known.sum(axis=0)
        return (inside & known).sum(axis=0) / np.where(count > 0, count, np.nan)


def predictive_checks(observed: ScanPaths, copies: Iterable[ScanPaths]) -> PredictiveChecks:
    """The observed paths against copies of them, each made by a model with one posterior draw.

    Copies are taken one after the other; those whose fixations are centres of cells should be spread first, see
    `spread_within_cells`. Saccades to the second fixation are left out on both sides. Durations are checked if the
    copies have any: give copies without them where they are the data's own.

    `distances` has the Jensen-Shannon divergence in bits (of bins of 0.25 and 5 degrees) and the Wasserstein distance
    in degrees between the data and all copies together; `..._chance` and `..._chance_high` are the mean and the 97.5 %
    quantile of the same between each copy and all others, which is what the data's would be if the model were right.
    """
    recorded: list[_Recorded] = []

    def watched() -> Iterator[ScanPaths]:
        for paths in copies:
            recorded.append(_Recorded.of(paths, paths.duration_s is not None))
            yield paths

    curves = compare_saccades(observed, watched())
    data = _Recorded.of(observed, recorded[0].timed)
    return PredictiveChecks(
        observed=data.statistics,
        copies=pd.DataFrame([it.statistics for it in recorded]).rename_axis("copy"),
        observer_values=np.stack([it.of_observers for it in (data, *recorded)]),
        curves=curves,
        distances=_distances(observed, data, recorded),
    )


@final
@dataclass(frozen=True, eq=False)
class _Recorded:
    """What is kept of one data set."""

    statistics: dict[str, float]
    of_observers: Float[np.ndarray, "observer statistic"]
    samples: dict[str, Float[np.ndarray, " value"]]
    timed: bool

    @classmethod
    def of(cls, paths: ScanPaths, timed: bool) -> "_Recorded":
        saccades = Saccades.of(paths, SKIP)

        def described(some: Saccades, their_paths: ScanPaths) -> dict[str, float]:
            return saccade_statistics(some) | (duration_statistics(their_paths) if timed else {})

        each = [
            list(described(saccades.by(it), paths.select(observers=[it]) if timed else paths).values())
            for it in saccades.observers
        ]
        samples = (saccades.amplitudes_deg, saccades.directions_deg, saccades.turns_deg)
        return cls(described(saccades, paths), np.array(each), dict(zip(QUANTITIES, samples, strict=True)), timed)


def _distances(observed: ScanPaths, data: _Recorded, copies: list[_Recorded]) -> pd.DataFrame:
    bins = {"amplitude": Bins.of_amplitudes(observed.extent), "direction": Bins.of_angles(), "turn": Bins.of_angles()}
    rows = {}
    for name, cells in bins.items():
        samples = [it.samples[name] for it in copies]
        own = _distance(cells, data.samples[name], samples)
        chance = np.array([
            _distance(cells, sample, [*samples[:index], *samples[index + 1 :]]) for index, sample in enumerate(samples)
        ])  # fmt: skip
        high = np.quantile(chance, 0.975, axis=0, method="weibull")
        rows[name] = {
            column: value
            for kind, *values in zip(("js_bits", "wasserstein_deg"), own, chance.mean(axis=0), high, strict=True)
            for column, value in zip((kind, f"{kind}_chance", f"{kind}_chance_high"), values, strict=True)
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantity")


def _distance(bins: Bins, sample: np.ndarray, others: list[np.ndarray]) -> tuple[float, float]:
    """Jensen-Shannon and Wasserstein between one data set and others together."""
    pooled = np.concatenate(others)
    apart = circular_wasserstein_deg if bins.circular else wasserstein_deg
    return jensen_shannon_bits(bins.counts(sample), bins.counts(pooled)), apart(sample, pooled)
