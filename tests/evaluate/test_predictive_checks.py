"""Posterior predictive checks: statistics that a plain loop gives, bands that hold a model's own data as often as they
say, and a wrong momentum that is caught.

Keys are fixed. Data and copies of one model are exchangeable, so the rank of the data among 39 copies is uniform on 40.
"""

import math
from collections import defaultdict
from dataclasses import replace

import jax
import numpy as np
import pytest
from made_paths import paths_of, random_paths
from scipy import stats

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.distances import circular_wasserstein_deg, wasserstein_deg
from foveate.evaluate.predictive_checks import (
    OF_DURATIONS,
    TITLES,
    duration_statistics,
    predictive_checks,
    saccade_statistics,
)
from foveate.evaluate.saccades import Saccades
from foveate.model.choices import SoftmaxChoice
from foveate.model.mechanisms import Momentum
from foveate.model.model import Model
from foveate.model.policies import Global, Local
from foveate.model.priors import LogNormal, Normal
from foveate.simulation.simulate import simulate

GRID = Grid(16, 20, Extent(24.0, 30.0))
COPIES = 39
FALSE_ALARM = 1e-4  # of every comparison


# --- a plain loop ----------------------------------------------------------------------------------------------------


def stretches_of(paths: ScanPaths, skip: int) -> list[list[list[tuple[float, float]]]]:
    """For every path the saccades (right, up) between gaps and forced fixations, one by one; y grows upward here."""
    found = []
    for path in paths:
        forced = path.columns.get("forced", [False] * len(path))
        own: list[list[tuple[float, float]]] = [[]]
        for i in range(1, len(path)):
            if forced[i] or path.fixation[i] != path.fixation[i - 1] + 1:
                own.append([])
            elif i > skip:
                own[-1].append((path.x_deg[i] - path.x_deg[i - 1], path.y_deg[i] - path.y_deg[i - 1]))
        found.append(own)
    return found


def correlation_by_loop(each: list[list[list[float]]], lag: int) -> float:
    """Mean over paths of each path's own autocorrelation; a path is a list of stretches."""
    own = []
    for path in each:
        values = [value for stretch in path for value in stretch]
        if len(values) < 2 or max(values) - min(values) < 1e-12:
            continue
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
        pairs = [(s[i] - mean) * (s[i + lag] - mean) for s in path for i in range(len(s) - lag)]
        if pairs:
            own.append(sum(pairs) / len(pairs) / variance)
    return sum(own) / len(own)


def between(one: float, other: float) -> float:
    apart = abs(one - other) % 360
    return min(apart, 360 - apart)


def statistics_by_loop(paths: ScanPaths, skip: int) -> dict[str, float]:
    amplitudes, counts, total = [], defaultdict(int), defaultdict(int)
    each = stretches_of(paths, skip)
    for path in each:
        for stretch in path:
            for i, (right, up) in enumerate(stretch):
                amplitudes.append(math.hypot(right, up))
                moved = amplitudes[-1] > 0
                if i > 0:
                    before = stretch[i - 1]
                    total["two back"] += 1
                    counts["two back"] += math.hypot(right + before[0], up + before[1]) <= 1.5
                if not moved:
                    continue
                direction = math.degrees(math.atan2(up, right))
                total["direction"] += 1
                counts["horizontal"] += min(between(direction, 0), between(direction, 180)) <= 22.5
                counts["vertical"] += min(between(direction, 90), between(direction, -90)) <= 22.5
                if i > 0 and math.hypot(*before) > 0:
                    turn = direction - math.degrees(math.atan2(before[1], before[0]))
                    total["turn"] += 1
                    counts["onward"] += between(turn, 0) <= 30
                    counts["back"] += between(turn, 180) <= 30
    lengths = [[[math.hypot(*it) for it in stretch] for stretch in path] for path in each]
    mean = sum(amplitudes) / len(amplitudes)
    ranked = sorted(amplitudes)

    def quantile(share: float) -> float:
        place = share * (len(ranked) - 1)
        low = int(place)
        return ranked[low] + (place - low) * (ranked[min(low + 1, len(ranked) - 1)] - ranked[low])

    return {
        "turn_onward": counts["onward"] / total["turn"],
        "turn_back": counts["back"] / total["turn"],
        "horizontal": counts["horizontal"] / total["direction"],
        "vertical": counts["vertical"] / total["direction"],
        "amplitude_mean_deg": mean,
        "amplitude_sd_deg": math.sqrt(sum((it - mean) ** 2 for it in amplitudes) / (len(amplitudes) - 1)),
        **{f"amplitude_q{share}_deg": quantile(share / 100) for share in (10, 25, 50, 75, 90)},
        **{f"amplitude_lag_{lag}": correlation_by_loop(lengths, lag) for lag in (1, 2, 3)},
        "return_rate": counts["two back"] / total["two back"],
    }


@pytest.mark.parametrize("skip", [0, 1])
@pytest.mark.parametrize("forced", [False, True])
def test_statistics_are_those_of_a_plain_loop(skip, forced):
    paths = random_paths(300, seed=4, forced=forced)
    paths = replace(paths, extent=replace(paths.extent, origin="bottom"))
    # some paths that go to and fro, so that there are returns, also after a fixation that stayed where it was
    x_deg = np.where(np.arange(paths.x_deg.shape[1]) % 2 == 1, paths.x_deg, paths.x_deg[:, :1] + 0.1)
    to_and_fro = (np.arange(len(paths)) % 3 == 0)[:, None] & paths.real & (x_deg <= 20)
    paths = replace(
        paths, x_deg=np.where(to_and_fro, x_deg, paths.x_deg), y_deg=np.where(to_and_fro, 10.0, paths.y_deg)
    )
    found, expected = saccade_statistics(Saccades.of(paths, skip)), statistics_by_loop(paths, skip)
    assert found["return_rate"] > 0.1
    assert found == pytest.approx(expected, rel=1e-9)
    assert [*found, *OF_DURATIONS] == list(TITLES)


def test_durations_are_those_within_a_path():
    paths = random_paths(200, seed=5, forced=True)
    rng = np.random.default_rng(6)
    seconds = np.where(rng.random(paths.real.shape) < 0.1, 0.0, rng.lognormal(-1.4, 0.4, paths.real.shape))
    paths = replace(paths, duration_s=np.where(paths.real, seconds, np.nan))
    each, known = [], []
    for path in paths:
        own: list[list[float]] = []
        for i in range(len(path)):
            if i == 0 or path.columns["forced"][i] or path.fixation[i] != path.fixation[i - 1] + 1:
                own.append([])
            inner = 0 < i < len(path) - 1 and not path.columns["forced"][i]
            own[-1].append(path.duration_s[i] if inner and path.duration_s[i] > 0 else math.nan)
        known += [it for stretch in own for it in stretch if not math.isnan(it)]
        each.append(own)
    correlations = []
    for own in each:
        there = [it for stretch in own for it in stretch if not math.isnan(it)]
        if len(there) < 2:
            continue
        mean = sum(there) / len(there)
        variance = sum((it - mean) ** 2 for it in there) / len(there)
        pairs = [(s[i] - mean) * (s[i + 1] - mean) for s in own for i in range(len(s) - 1)]
        pairs = [it for it in pairs if not math.isnan(it)]
        correlations += [sum(pairs) / len(pairs) / variance] if pairs else []
    expected = {"duration_mean_s": sum(known) / len(known), "duration_lag_1": sum(correlations) / len(correlations)}
    assert duration_statistics(paths) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(InputError, match="do not say how long fixations lasted"):
        duration_statistics(replace(paths, duration_s=None))


# --- models ----------------------------------------------------------------------------------------------------------


def carrying_on(log_odds: float) -> Model:
    """Local and global steps, and momentum with these log-odds against local ones."""
    priors = {name: LogNormal(10.0, 1.0) for name in ("epsilon", "xi", "zeta")}
    priors |= {name: Normal(0.0, 1.0) for name in ("kappa", "alpha", "base", "slopes")}
    choice = SoftmaxChoice(("local", "global", "momentum"), (), (0.0, log_odds), np.zeros((2, 0)))
    policies = (Local((4.0, 4.0)), Global((40.0, 40.0)), Momentum((3.0, 3.0), 0.8, 1.0))
    return Model(policies, choice, priors, "carrying on")


def some_maps() -> SaliencyMaps:
    rng = np.random.default_rng(5)
    weights = {picture: rng.gamma(2.0, size=GRID.shape) for picture in ("beach", "wood", "yard")}
    return SaliencyMaps.from_arrays(weights, GRID.extent, normalise=True)


def data_sets(model: Model, count: int, key: int) -> list[ScanPaths]:
    """Paths of four observers on three pictures, at random places within cells, so that no two amplitudes tie."""
    rng, models, maps = np.random.default_rng(key), dict.fromkeys("abcd", model), some_maps()
    made = [simulate(models, maps, 16, it) for it in jax.random.split(jax.random.key(key), count)]
    size = np.array([GRID.extent.height_deg / GRID.rows, GRID.extent.width_deg / GRID.columns])
    moved = []
    for paths in made:
        y, x = ((rng.random(paths.real.shape) - 0.5) * it for it in size)
        moved.append(replace(paths, y_deg=paths.y_deg + y, x_deg=paths.x_deg + x))
    return moved


@pytest.mark.slow
def test_a_model_is_inside_its_own_bands_as_often_as_it_should_be():
    repeats, model = 25, carrying_on(-0.5)
    everything = data_sets(model, repeats * (COPIES + 1), key=7)
    outside, ranks, distances, observers = [], [], [], []
    for number in range(repeats):
        observed, *copies = everything[number * (COPIES + 1) : (number + 1) * (COPIES + 1)]
        checks = predictive_checks(observed, copies)
        table = checks.table()
        outside.append(~table["inside"].to_numpy(dtype=bool))
        ranks.append(table["share_above"].to_numpy())
        observers.append(table["observers_inside"].to_numpy())
        distances.append((checks.distances["js_bits"] > checks.distances["js_bits_chance_high"]).to_numpy())
        assert ((table["p"] <= 0.05) == outside[-1]).all()  # 39 copies: the band ends at the outermost ones
    most = stats.binom.isf(FALSE_ALARM, repeats, 2 / (COPIES + 1))
    assert (np.sum(outside, axis=0) <= most).all()
    assert np.sum(outside) > 0
    # Shares tie now and then, amplitudes and autocorrelations never: their ranks are uniform on 1/40 ... 40/40.
    never_tie = [place for place, name in enumerate(table.index) if name.startswith("amplitude")]
    surprise = (np.mean(ranks, axis=0) - (1 + 1 / (COPIES + 1)) / 2) * math.sqrt(12 * repeats)
    assert (np.abs(surprise[never_tie]) < stats.norm.isf(FALSE_ALARM / 2)).all()
    # An observer's own bands hold as much; observers are independent, so there are four times as many.
    inside = 4 * np.sum(observers, axis=0)
    assert (inside >= stats.binom.ppf(FALSE_ALARM, 4 * repeats, 1 - 2 / (COPIES + 1))).all()
    assert (np.sum(distances, axis=0) <= stats.binom.isf(FALSE_ALARM, repeats, 1 / (COPIES + 1))).all()


def test_a_wrong_momentum_is_caught():
    observed = data_sets(carrying_on(1.5), 1, key=8)[0]
    right, wrong = (
        predictive_checks(observed, data_sets(carrying_on(it), COPIES, key)) for it, key in ((1.5, 9), (-4.0, 10))
    )
    found = wrong.table().loc["turn_onward"]
    assert not found["inside"]
    assert found["z"] > stats.t.isf(FALSE_ALARM / 2, COPIES - 1)
    assert found["share_above"] == pytest.approx(1 / (COPIES + 1))
    assert found["p"] == pytest.approx(2 / (COPIES + 1))
    assert found["observers_inside"] < 0.6
    turn = wrong.distances.loc["turn"]  # 156 turns in 72 bins: a divergence is mostly noise then, a distance is not
    assert turn["wasserstein_deg"] > turn["wasserstein_deg_chance_high"]
    # The right one: its z is a standard normal number, nearly.
    assert abs(right.table().loc["turn_onward", "z"]) < stats.t.isf(FALSE_ALARM / 2, COPIES - 1)


def test_distances_are_to_all_copies_together_and_between_one_and_the_others():
    observed, *copies = data_sets(carrying_on(0.0), 4, key=11)
    found = predictive_checks(observed, copies).distances
    every = [Saccades.of(it, 1) for it in (observed, *copies)]
    amplitudes, turns = [it.amplitudes_deg for it in every], [it.turns_deg for it in every]
    own = wasserstein_deg(amplitudes[0], np.concatenate(amplitudes[1:]))
    assert found.loc["amplitude", "wasserstein_deg"] == pytest.approx(own)
    others = [(1, (2, 3)), (2, (1, 3)), (3, (1, 2))]
    chance = [circular_wasserstein_deg(turns[i], np.concatenate([turns[j] for j in rest])) for i, rest in others]
    assert found.loc["turn", "wasserstein_deg_chance"] == pytest.approx(np.mean(chance))
    assert found.loc["turn", "wasserstein_deg_chance_high"] == pytest.approx(max(chance))


def test_what_short_paths_do_not_have_is_left_out():
    """With five fixations there is no pair of saccades at lag 3."""
    short = [random_walks(seed) for seed in range(5)]
    checks = predictive_checks(short[0], short[1:])
    assert np.isnan(checks.observed["amplitude_lag_3"])
    table = checks.table()
    assert "amplitude_lag_3" not in table.index
    assert len(table) == len(checks.observed) - 1
    assert np.isfinite(table[["observed", "low", "high", "p"]].to_numpy()).all()


def random_walks(seed: int) -> ScanPaths:
    rng = np.random.default_rng(seed)
    return paths_of(*rng.uniform(0, 20, (30, 5, 2)))


def test_durations_are_checked_where_copies_have_them():
    observed, *copies = data_sets(carrying_on(0.0), 4, key=12)
    assert not set(OF_DURATIONS) & set(predictive_checks(observed, copies).table().index)
    rng = np.random.default_rng(13)

    def timed(paths: ScanPaths, mean_s: float) -> ScanPaths:
        return replace(paths, duration_s=np.where(paths.real, rng.gamma(4, mean_s / 4, paths.real.shape), np.nan))

    table = predictive_checks(timed(observed, 0.3), [timed(it, 0.2) for it in copies]).table()
    assert not table.loc["duration_mean_s", "inside"]
    assert table.loc["duration_mean_s", "observed"] == pytest.approx(0.3, rel=0.2)
