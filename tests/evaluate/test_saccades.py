"""Amplitudes, directions, turns and autocorrelations are what a plain loop over saccades says they are."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from made_paths import paths_of, random_paths

from foveate.data.grid import Extent, Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.saccades import (
    Saccades,
    autocorrelation,
    pooled_autocorrelation,
    spread_within_cells,
)


def by_loop(paths: ScanPaths) -> tuple[list[float], list[float], list[float], list[list[float]]]:
    """Amplitudes, directions, turns, and amplitudes by stretch without a gap or forced one: saccade by saccade."""
    amplitudes, directions, turns, stretches = [], [], [], []
    for path in paths:
        before = None
        stretches.append([])
        forced = path.columns.get("forced", [False] * len(path))
        for i in range(1, len(path)):
            if forced[i] or path.fixation[i] != path.fixation[i - 1] + 1:
                before = None
                stretches.append([])
                continue
            z = complex(path.x_deg[i] - path.x_deg[i - 1], path.y_deg[i] - path.y_deg[i - 1])
            amplitudes.append(abs(z))
            stretches[-1].append(abs(z))
            if abs(z) == 0:
                before = None
                continue
            directions.append(np.degrees(np.angle(z)))
            if before is not None:
                turns.append(np.degrees(np.angle(z / before)))
            before = z
    return amplitudes, directions, turns, stretches


def same_angles(a, b) -> None:
    assert len(a) == len(b)
    np.testing.assert_allclose((np.asarray(a) - np.asarray(b) + 180) % 360 - 180, 0, atol=1e-6)


@pytest.mark.parametrize("forced", [False, True])
def test_saccades_are_those_of_a_plain_loop(forced):
    paths = random_paths(60, seed=1, forced=forced)
    assert paths.after_gap.sum() > 20
    assert (paths.forced.sum() > 40) == forced
    saccades = Saccades.of(paths)
    amplitudes, directions, turns, _ = by_loop(paths)
    np.testing.assert_allclose(saccades.amplitudes_deg, amplitudes)
    assert 0 in amplitudes
    same_angles(saccades.directions_deg, directions)
    same_angles(saccades.turns_deg, turns)
    assert saccades.count == len(amplitudes) > len(directions) > len(turns)


def test_a_square_turns_by_90_to_the_left():
    square = Saccades.of(paths_of([(5, 5), (8, 5), (8, 8), (5, 8), (5, 5)]))
    assert square.amplitudes_deg.tolist() == [3, 3, 3, 3]
    assert square.directions_deg.tolist() == [0, 90, 180, -90]
    assert square.turns_deg.tolist() == [90, 90, 90]


def test_straight_on_is_0_and_back_is_180():
    saccades = Saccades.of(paths_of([(1, 1), (3, 2), (5, 3), (3, 2)]))
    np.testing.assert_allclose(saccades.turns_deg, [0, 180], atol=1e-12)


@pytest.mark.parametrize(("origin", "direction", "turn"), [("bottom", 90, -90), ("top", -90, 90)])
def test_up_is_what_a_viewer_sees_as_up(origin, direction, turn):
    saccades = Saccades.of(paths_of([(5, 5), (5, 9), (8, 9)], extent=Extent(20.0, 20.0, origin)))
    assert saccades.directions_deg.tolist() == [direction, 0]
    assert saccades.turns_deg.tolist() == [turn]


def test_turning_all_paths_by_90_shifts_directions_alone():
    paths = random_paths(40, seed=2)
    turned = replace(paths, x_deg=20.0 - paths.y_deg, y_deg=paths.x_deg)
    before, after = Saccades.of(paths), Saccades.of(turned)
    np.testing.assert_allclose(after.amplitudes_deg, before.amplitudes_deg)
    same_angles(after.directions_deg, before.directions_deg + 90)
    same_angles(after.turns_deg, before.turns_deg)


def test_a_mirror_flips_turns():
    paths = random_paths(40, seed=3)
    before, after = Saccades.of(paths), Saccades.of(replace(paths, x_deg=20.0 - paths.x_deg))
    np.testing.assert_allclose(after.amplitudes_deg, before.amplitudes_deg)
    same_angles(after.directions_deg, 180 - before.directions_deg)
    same_angles(after.turns_deg, -before.turns_deg)


def test_nothing_reaches_across_a_gap():
    whole = [(1, 1), (2, 1), (4, 1), (4, 5), (9, 5), (9, 6)]
    saccades = Saccades.of(paths_of(whole, numbers=[[1, 2, 3, 5, 6, 7]]))
    assert saccades.amplitudes_deg.tolist() == [1, 2, 5, 1]
    assert saccades.turns_deg.tolist() == [0, 90]


def test_nothing_reaches_across_a_forced_fixation():
    whole = paths_of([(1, 1), (2, 1), (4, 1), (4, 5), (9, 5), (9, 6), (9, 9)])
    forced = replace(whole, columns={"forced": np.array([[True, False, False, True, False, False, False]])})
    saccades = Saccades.of(forced)
    assert saccades.amplitudes_deg.tolist() == [1, 2, 5, 1, 3]
    assert saccades.turns_deg.tolist() == [0, 90, 0]
    assert saccades.stretch.tolist() == [[0, 0, 1, 1, 1, 1]]
    # Pairs one apart are (1, 2), (5, 1) and (1, 3), pairs two apart (5, 3) alone: (2, 5) has the forced one between.
    own = np.array([1, 2, 5, 1, 3]) - 2.4
    lag_1, lag_2 = own[0] * own[1] + own[2] * own[3] + own[3] * own[4], own[2] * own[4]
    np.testing.assert_allclose(autocorrelation(saccades, 2), [1, lag_1 / 3 / np.mean(own**2), lag_2 / np.mean(own**2)])


def test_skipped_saccades_take_their_turns_with_them():
    saccades = Saccades.of(paths_of([(1, 1), (2, 1), (2, 4), (0, 4)], [(1, 1), (2, 1)]), skip=1)
    assert saccades.amplitudes_deg.tolist() == [3, 2]
    assert saccades.turns_deg.tolist() == [90]


def test_short_paths_have_few_saccades_and_no_turns():
    saccades = Saccades.of(paths_of([(1, 1)], [(1, 1), (4, 5)], [(1, 1), (1, 2), (1, 4)]))
    assert saccades.amplitudes_deg.tolist() == [5, 1, 2]
    assert saccades.turns_deg.tolist() == [0]
    alone = Saccades.of(paths_of([(1, 1), (4, 5)])).summary()
    assert alone["mean_deg"] == 5
    assert np.isnan([alone["sd_deg"], alone["lag_1"], alone["share_onward"]]).all()


def test_paths_without_any_saccade_are_refused(unchecked_types):
    with pytest.raises(InputError, match="none of the 2 paths has a saccade"):
        Saccades.of(paths_of([(1, 1)], [(2, 2)]))
    with pytest.raises(InputError, match="after the first 3"):
        Saccades.of(paths_of([(1, 1), (2, 2), (3, 3)]), skip=3)
    with pytest.raises(InputError, match="no scan paths"):
        Saccades.of(paths_of([(1, 1), (2, 2)]).at_least(9))
    with pytest.raises(InputError, match="skip = -1"):
        Saccades.of(paths_of([(1, 1), (2, 2)]), skip=-1)


def test_what_leaves_no_saccade_is_named():
    whole = paths_of([(1, 1), (2, 2), (3, 3)], [(1, 1), (2, 2)], numbers=[[1, 2, 5], [1, 3]])
    flags = np.array([[False, True, False], [False, False, False]])
    with pytest.raises(InputError) as error:
        Saccades.of(replace(whole, columns={"forced": flags}))
    assert "1 lead to a forced fixation and 2 lead across a gap in the fixation numbers" in str(error.value)
    with pytest.raises(InputError, match=r"after the first 1 that counts: 1 lead across a gap") as error:
        Saccades.of(replace(whole, columns={"forced": flags}), skip=1)
    assert "forced" not in str(error.value)
    with pytest.raises(InputError, match=r"that counts: 3 lead to a forced fixation;"):
        Saccades.of(replace(whole, columns={"forced": np.ones((2, 3), dtype=bool)}))
    with pytest.raises(InputError, match=r"after the first 2: the longest has 3 fixations; give longer paths"):
        Saccades.of(whole, skip=2)


def test_table_describes_each_observer():
    paths = paths_of([(1, 1), (1, 3), (1, 7)], [(1, 1), (5, 1), (1, 1)], observers=["ann", "ben"])
    table = Saccades.of(paths).table()
    assert table["saccades"].to_dict() == {"ann": 2, "ben": 2}
    assert table["mean_deg"].to_dict() == {"ann": 3, "ben": 4}
    assert table.loc["ann", ["share_up", "share_onward", "share_back"]].tolist() == [1, 1, 0]
    assert table.loc["ben", ["share_left", "share_right", "share_back"]].tolist() == [0.5, 0.5, 1]
    assert table.loc["ann", "sd_deg"] == pytest.approx(np.sqrt(2))


# --- autocorrelation -----------------------------------------------------------------------------------------------


def of_amplitudes(*series) -> Saccades:
    """Paths along a line whose saccades have these amplitudes, up and down in turns."""
    positions = [[(5.0, 500.0)] for _ in series]
    for places, amplitudes in zip(positions, series, strict=True):
        for index, amplitude in enumerate(amplitudes):
            x, y = places[-1]
            places.append((x, y + amplitude if index % 2 == 0 else y - amplitude))
    return Saccades.of(paths_of(*positions, extent=Extent(1000.0, 20.0)))


def test_one_path_has_the_textbook_autocorrelation():
    """As statsmodels' acf(..., adjusted=True): np.correlate of deviations, over n - k, over its value at 0."""
    amplitudes = np.random.default_rng(4).gamma(2, 3, 40)
    amplitudes = np.sort(amplitudes)  # so that it is far from 0 at many lags
    deviation = amplitudes - amplitudes.mean()
    expected = np.correlate(deviation, deviation, "full")[39:60] / (40 - np.arange(21))
    for function in (autocorrelation, pooled_autocorrelation):
        np.testing.assert_allclose(function(of_amplitudes(amplitudes)), expected / expected[0])


@pytest.mark.parametrize(("gaps", "forced"), [(True, False), (False, True), (True, True)])
def test_autocorrelations_are_those_of_a_plain_loop(gaps, forced):
    paths = random_paths(60, seed=5, gaps=gaps, forced=forced)
    saccades = Saccades.of(paths)
    everything, _, _, stretches = by_loop(paths)
    mean, variance = np.mean(everything), np.var(everything)
    pooled = []
    for lag in range(6):
        pairs = [(a[i], a[i + lag]) for a in stretches for i in range(len(a) - lag)]
        pooled.append(np.mean([(x - mean) * (y - mean) for x, y in pairs]) / variance)
    np.testing.assert_allclose(pooled_autocorrelation(saccades, 5), pooled)

    own = [[] for _ in range(6)]
    for path in range(len(paths)):
        one, _, _, parts = by_loop(paths._take(np.array([path])))
        if len(set(one)) < 2:
            continue
        for lag in range(6):
            pairs = [(a[i], a[i + lag]) for a in parts for i in range(len(a) - lag)]
            if pairs:
                products = [(x - np.mean(one)) * (y - np.mean(one)) for x, y in pairs]
                own[lag].append(np.mean(products) / np.var(one))
    np.testing.assert_allclose(autocorrelation(saccades, 5), [np.mean(values) for values in own])


def test_alternating_amplitudes_are_anticorrelated():
    found = autocorrelation(of_amplitudes([1, 3] * 5, [2, 8] * 5), 3)
    np.testing.assert_allclose(found, [1, -1, 1, -1])


def test_differences_between_paths_show_only_in_the_pooled_one():
    saccades = of_amplitudes([1, 2, 2, 1, 1, 2, 2, 1], [11, 12, 12, 11, 11, 12, 12, 11])
    assert autocorrelation(saccades, 1)[1] < 0.2
    assert pooled_autocorrelation(saccades, 1)[1] > 0.9


def test_without_pairs_or_variance_there_is_no_autocorrelation(unchecked_types):
    short = of_amplitudes([1, 2, 4])
    assert np.isfinite(autocorrelation(short, 5)).tolist() == [True, True, True, False, False, False]
    same = of_amplitudes([0.1, 0.1, 0.1])
    assert np.isnan(autocorrelation(same, 1)).all()
    assert np.isnan(pooled_autocorrelation(same, 1)).all()
    with pytest.raises(InputError, match="lags = -1"):
        autocorrelation(short, -1)


# --- positions within cells ----------------------------------------------------------------------------------------


def test_spread_fixations_stay_in_their_cells_and_fill_them():
    grid = Grid(4, 5, Extent(8.0, 20.0))
    rng = np.random.default_rng(6)
    rows, columns = rng.integers(0, 4, (80, 10)), rng.integers(0, 5, (80, 10))
    y, x = grid.centre_of(rows, columns)
    paths = paths_of(*np.stack([x, y], axis=-1), extent=grid.extent)
    spread = spread_within_cells(paths, grid, jax.random.key(1))
    found = grid.cell_of(spread.y_deg, spread.x_deg)
    assert np.array_equal(found[0], rows)
    assert np.array_equal(found[1], columns)
    for moved, size in ((spread.y_deg - y, 2.0), (spread.x_deg - x, 4.0)):
        assert np.abs(moved).max() < size / 2
        assert np.std(moved) == pytest.approx(size / np.sqrt(12), rel=0.1)
    with pytest.raises(InputError, match="must be the same"):
        spread_within_cells(paths, Grid(4, 5, Extent(9.0, 20.0)), jax.random.key(1))


# --- the real data -------------------------------------------------------------------------------------------------


def test_real_saccades_go_up_more_than_down_and_alternate(potsdam35):
    """The shares are those that came with the data; anticorrelation, momentum and return are what the paper shows."""
    saccades = Saccades.of(potsdam35.paths)
    assert saccades.count == 28_264 - 1_050 - 39
    found = saccades.summary()
    assert found["share_up"] == pytest.approx(0.082, abs=5e-4)
    assert found["share_down"] == pytest.approx(0.056, abs=5e-4)
    assert found["lag_1"] == pytest.approx(-0.11, abs=0.01)
    assert found["lag_1"] < autocorrelation(saccades)[2:].min() - 0.03
    assert found["share_right"] > 0.14
    assert found["share_onward"] > found["share_back"] > 30 / 360
