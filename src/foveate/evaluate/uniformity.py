"""Whether ranks are uniform: an exact test, and the band that it draws around their empirical distribution.

Ranks of a truth among L draws are uniform on 0, ..., L where the draws are right. The count of ranks below i is then
binomial for each i; the test (Säilynoja, Bürkner and Vehtari, 2022) takes the most surprising of these counts and asks
how often uniform ranks surprise as much anywhere. Their simulation is not needed: the counts in the L + 1 cells are
independent Poisson numbers given their sum, so the probability that a path of counts stays inside a band is a
convolution for each cell.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binom, poisson

from foveate.errors import InputError

# Halvings of the interval of levels in which the band's is sought: to a relative 1e-6.
HALVINGS = 40


@dataclass(frozen=True, eq=False)
class Band:
    """Counts of ranks below 1, ..., L that uniform ranks keep between `low` and `high`, all of them together."""

    share: Float[np.ndarray, " point"]  # of all ranks that are expected below each point
    low: Int[np.ndarray, " point"]
    high: Int[np.ndarray, " point"]
    count: int  # of ranks
    false_alarm: float  # probability that uniform ranks leave the band somewhere; never above what was asked for

    @property
    def low_difference(self) -> Float[np.ndarray, " point"]:
        """The band's lower end as a share of the ranks, less what is expected."""
        return self.low / self.count - self.share

    @property
    def high_difference(self) -> Float[np.ndarray, " point"]:
        """The band's upper end as a share of the ranks, less what is expected."""
        return self.high / self.count - self.share


def counts_below(ranks: Int[np.ndarray, " data_set"], draws: int) -> Int[np.ndarray, " point"]:
    """How many ranks lie below 1, ..., `draws`."""
    return np.cumsum(np.bincount(ranks, minlength=draws + 1))[:-1]


def ecdf_difference(ranks: Int[np.ndarray, " data_set"], draws: int) -> Float[np.ndarray, " point"]:
    """Share of the ranks that lie below 1, ..., `draws`, less the share that is expected."""
    return counts_below(ranks, draws) / len(ranks) - _shares(draws)


def uniformity(ranks: Int[np.ndarray, " data_set"], draws: int) -> float:
    """Probability that uniform ranks among 0, ..., `draws` would look at least as odd as these."""
    _check(ranks, draws)
    counts, share = counts_below(ranks, draws), _shares(draws)
    level = float(_surprise(counts, len(ranks), share).min())
    return 1.0 - _stays_inside(len(ranks), draws, level)


@lru_cache(maxsize=64)
def simultaneous_band(count: int, draws: int, false_alarm: float) -> Band:
    """The band that `count` uniform ranks among 0, ..., `draws` leave with at most the probability `false_alarm`."""
    if not 0 < false_alarm < 1:
        raise InputError(f"false_alarm = {false_alarm}: give a probability between 0 and 1.")
    below, above = 0.0, 1.0  # at the level of zero nothing is outside, at one everything
    for _ in range(HALVINGS):
        middle = np.sqrt(max(below, 1e-12) * above)
        below, above = (middle, above) if 1 - _stays_inside(count, draws, middle) <= false_alarm else (below, middle)
    allowed = _allowed(count, draws, below)
    numbers = np.arange(count + 1)
    low = np.where(allowed, numbers, count + 1).min(axis=1)
    high = np.where(allowed, numbers, -1).max(axis=1)
    return Band(_shares(draws), low, high, count, 1 - _stays_inside(count, draws, below))


def _check(ranks: Int[np.ndarray, " data_set"], draws: int) -> None:
    if len(ranks) == 0:
        raise InputError("no ranks: there is nothing to test.")
    if ranks.min() < 0 or ranks.max() > draws:
        raise InputError(f"ranks from {ranks.min()} to {ranks.max()}: among {draws} draws they lie in 0 to {draws}.")


def _shares(draws: int) -> Float[np.ndarray, " point"]:
    return np.arange(1, draws + 1) / (draws + 1)


def _surprise(counts: np.ndarray, total: int, share: np.ndarray) -> np.ndarray:
    """Two-sided probability of counts as far out as these, each for itself."""
    return np.minimum(2 * np.minimum(binom.cdf(counts, total, share), binom.sf(counts - 1, total, share)), 1.0)


@lru_cache(maxsize=8)
def _all_surprises(total: int, draws: int) -> Float[np.ndarray, "point count"]:
    return _surprise(np.arange(total + 1)[None, :], total, _shares(draws)[:, None])


def _allowed(total: int, draws: int, level: float) -> np.ndarray:
    """Which counts are less surprising than the level, point by point; sums are exact to 1e-9 or so."""
    return _all_surprises(total, draws) > level * (1 + 1e-9)


def _stays_inside(total: int, draws: int, level: float) -> float:
    """Probability that the counts of uniform ranks are less surprising than the level at all points."""
    cell = poisson.pmf(np.arange(total + 1), total / (draws + 1))
    state = np.zeros(total + 1)
    state[0] = 1.0
    for allowed in _allowed(total, draws, level):
        state = np.convolve(state, cell)[: total + 1] * allowed
    whole = float(state @ cell[::-1])  # the last cell takes what is missing
    return min(whole / float(poisson.pmf(total, total)), 1.0)
