"""The test of uniform ranks against counting all possibilities, and its band."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from foveate.errors import InputError
from foveate.evaluate.uniformity import counts_below, ecdf_difference, simultaneous_band, uniformity


def oddness(ranks, draws: int) -> float:
    """The least probable of the counts below 1, ..., draws, each two-sided: the paper's statistic, in a loop."""
    found = []
    for point in range(1, draws + 1):
        count, share = sum(rank < point for rank in ranks), point / (draws + 1)
        low = sum(binom.pmf(k, len(ranks), share) for k in range(count + 1))
        high = sum(binom.pmf(k, len(ranks), share) for k in range(count, len(ranks) + 1))
        found.append(min(2 * min(low, high), 1.0))
    return min(found)


def test_p_value_equals_counting_all_possible_ranks():
    data_sets, draws = 4, 4
    every = list(product(range(draws + 1), repeat=data_sets))
    odd = np.array([oddness(ranks, draws) for ranks in every])
    for ranks, own in list(zip(every, odd, strict=True))[::17]:
        expected = np.mean(odd <= own * (1 + 1e-9))
        assert uniformity(np.array(ranks), draws) == pytest.approx(expected, abs=1e-9)


def test_leaving_the_band_is_failing():
    band, rng = simultaneous_band(60, 19, 0.05), np.random.default_rng(1)
    assert 0.02 < band.false_alarm <= 0.05
    left, p_values = [], []
    for _ in range(2000):
        ranks = rng.integers(0, 20, 60)
        counts = counts_below(ranks, 19)
        left.append(bool(((counts < band.low) | (counts > band.high)).any()))
        p_values.append(uniformity(ranks, 19))
    np.testing.assert_array_equal(left, np.array(p_values) <= band.false_alarm * (1 + 1e-9))
    # binomial: a share of false_alarm of 2,000, off by more than this once in 10^5 such tests
    assert abs(np.mean(left) - band.false_alarm) < 4.4 * np.sqrt(band.false_alarm / 2000)


def test_band_is_wider_for_a_smaller_false_alarm_rate_and_holds_what_is_expected():
    wide, narrow = simultaneous_band(200, 99, 0.001), simultaneous_band(200, 99, 0.1)
    assert (wide.low <= narrow.low).all()
    assert (wide.high >= narrow.high).all()
    assert (wide.low < narrow.low).any()
    assert (narrow.low_difference <= 0).all()
    assert (narrow.high_difference >= 0).all()


@pytest.mark.parametrize("ranks", [np.full(200, 50), np.full(200, 0), np.repeat([0, 99], 100)])
def test_ranks_in_one_place_are_not_uniform(ranks):
    assert uniformity(ranks, 99) < 1e-6


def test_differences_are_shares_below_less_what_is_expected():
    np.testing.assert_allclose(ecdf_difference(np.array([0, 0, 1, 3]), 3), [0.5 - 0.25, 0.75 - 0.5, 0.75 - 0.75])


def test_impossible_ranks_are_refused():
    with pytest.raises(InputError, match="0 to 9"):
        uniformity(np.array([3, 10]), 9)
    with pytest.raises(InputError, match="nothing to test"):
        uniformity(np.array([], dtype=int), 9)
    with pytest.raises(InputError, match="false_alarm"):
        simultaneous_band(10, 9, 0.0)
