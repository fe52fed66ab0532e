"""Densities, bands, distances and R^2 are what their definitions say; a model's own data lie in its bands."""

import time
from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.bins import Bins
from foveate.evaluate.distances import (
    circular_wasserstein_deg,
    jensen_shannon_bits,
    map_agreement,
    r2_correlation,
    r2_identity,
    wasserstein_deg,
)
from foveate.evaluate.saccades import Saccades
from foveate.evaluate.statistics import Band, compare_saccades, observer_moments_deg
from foveate.example import example_data
from foveate.model.catalogue import named_model
from foveate.simulation.simulate import simulate

EXTENT = Extent(24.0, 32.0)


def walks(rng: np.random.Generator, observers: int, pictures: int, length: int, step_deg: float = 3.0) -> ScanPaths:
    """Paths without a model, made fast: independent steps from the middle, reflected at the edges."""
    count = observers * pictures
    steps = rng.normal(0, step_deg, (2, count, length))
    y, x = (np.cumsum(step, axis=1) + size / 2 for step, size in zip(steps, (24.0, 32.0), strict=True))
    y, x = (size - np.abs(values % (2 * size) - size) for values, size in ((y, 24.0), (x, 32.0)))
    return ScanPaths(
        extent=EXTENT,
        observer=np.repeat(np.arange(1, observers + 1), pictures),
        picture=np.tile(np.arange(1, pictures + 1), observers),
        trial=np.ones(count, dtype=np.int64),
        length=np.full(count, length),
        fixation=np.tile(np.arange(1, length + 1), (count, 1)),
        x_deg=x,
        y_deg=y,
    )


def some_walks(seed: int, draws: int, **sizes) -> list[ScanPaths]:
    rng = np.random.default_rng(seed)
    return [walks(rng, **({"observers": 4, "pictures": 5, "length": 20} | sizes)) for _ in range(draws)]


# --- densities -----------------------------------------------------------------------------------------------------


def test_every_amplitude_and_angle_has_its_bin():
    rng = np.random.default_rng(1)
    amplitudes = np.append(rng.uniform(0, 40, 500), [0.0, 40.0])  # the picture's diagonal
    bins = Bins.of_amplitudes(EXTENT, 0.5)
    edges = np.append(bins.centres_deg - 0.25, bins.centres_deg[-1] + 0.25)
    np.testing.assert_array_equal(bins.counts(amplitudes), np.histogram(amplitudes, edges)[0])
    angles = Bins.of_angles(90.0)
    assert angles.centres_deg.tolist() == [-180, -90, 0, 90]
    assert angles.counts(np.array([180.0, -179, 170, -100, 1, -1, 44, 46, 90])).tolist() == [3, 1, 3, 2]
    with pytest.raises(InputError, match="do not fit round"):
        Bins.of_angles(50.0)
    with pytest.raises(InputError, match=r"do not fit the bins, which end at 40\.5 deg"):
        bins.counts(np.array([3.0, 41.0]))


@pytest.mark.parametrize("bins", [Bins.of_amplitudes(EXTENT), Bins.of_angles()], ids=["line", "circle"])
@pytest.mark.parametrize("bandwidth_deg", [0.0, 0.3, 7.0])
def test_densities_have_a_mass_of_one(bins, bandwidth_deg):
    counts = np.zeros(len(bins.centres_deg))
    counts[[0, 1, 7]] = 3, 1, 2
    density = bins.density(counts, bandwidth_deg)
    assert density.sum() * bins.width_deg == pytest.approx(1)
    assert (density >= 0).all()
    assert np.isnan(bins.density(0 * counts, bandwidth_deg)).all()


def test_smoothing_goes_round_the_circle_and_comes_back_at_zero():
    angles = Bins.of_angles(5.0)
    density = angles.density(angles.counts(np.array([180.0])), 10.0)
    np.testing.assert_allclose(density[1:], density[1:][::-1])
    expected = np.exp(-0.5 * (np.minimum(angles.centres_deg + 180, 180 - angles.centres_deg) / 10) ** 2)
    np.testing.assert_allclose(density, expected / expected.sum() / 5, atol=1e-12)
    amplitudes = Bins.of_amplitudes(EXTENT)
    uniform = amplitudes.density(np.ones(len(amplitudes.centres_deg)), 0.3)
    np.testing.assert_allclose(uniform[:20], uniform[20])  # nothing is lost below 0


def test_density_is_that_of_the_sample():
    sample = np.random.default_rng(2).gamma(3, 2, 200_000)
    bins = Bins.of_amplitudes(EXTENT)
    x = bins.centres_deg
    truth = x**2 * np.exp(-x / 2) / 16
    np.testing.assert_allclose(bins.density(bins.counts(sample), 0.0), truth, atol=5e-3)
    np.testing.assert_allclose(bins.density(bins.counts(sample), 0.3)[4:], truth[4:], atol=3e-3)  # smooth from 1 deg on


# --- distances -----------------------------------------------------------------------------------------------------


def test_jensen_shannon_is_scipys_in_bits():
    p, q = np.array([3.0, 0, 5, 2]), np.array([1.0, 1, 0, 7])
    assert jensen_shannon_bits(p, q) == pytest.approx(jensenshannon(p, q, base=2) ** 2)
    assert jensen_shannon_bits(p, 4 * p) == pytest.approx(0)
    assert jensen_shannon_bits(np.array([1.0, 0]), np.array([0, 2.0])) == 1
    with pytest.raises(InputError, match="second histogram is empty"):
        jensen_shannon_bits(p, 0 * q)


def test_wasserstein_is_the_shift():
    sample = np.random.default_rng(3).gamma(2, 2, 100)
    assert wasserstein_deg(sample, sample + 1.5) == pytest.approx(1.5)
    with pytest.raises(InputError, match="empty"):
        wasserstein_deg(sample, sample[:0])


def test_angles_are_moved_the_short_way_round():
    angles = np.array([170.0, 160.0, -40.0, 100.0])
    assert circular_wasserstein_deg(np.array([175.0]), np.array([-175.0])) == pytest.approx(10)
    assert circular_wasserstein_deg(angles, angles + 20) == pytest.approx(20)
    assert circular_wasserstein_deg(angles, angles[::-1] - 360) == pytest.approx(0)
    best = min(  # of four to four, some pairing of the points is best
        np.mean(np.abs((angles[list(order)] - np.array([0.0, 90, 180, -90]) + 180) % 360 - 180))
        for order in np.stack(np.meshgrid(*[np.arange(4)] * 4), -1).reshape(-1, 4)
        if len(set(order)) == 4
    )
    assert circular_wasserstein_deg(angles, np.array([0.0, 90, 180, -90])) == pytest.approx(best)


def test_the_two_r2_differ_where_the_level_is_wrong(unchecked_types):
    observed = np.array([4.0, 5.0, 6.0, 9.0])
    assert r2_identity(observed, observed) == 1
    assert r2_correlation(observed, 2 * observed - 3) == pytest.approx(1)
    assert r2_identity(observed, observed + 2) == pytest.approx(1 - 4 * 4 / 14)
    assert r2_identity(observed, np.full(4, 6.0)) == 0
    assert np.isnan(r2_correlation(observed, np.full(4, 6.0)))
    with pytest.raises(InputError, match="two different"):
        r2_identity(observed[:1], observed[:1])
    with pytest.raises(InputError, match="as many"):
        r2_correlation(observed, observed[:3])


def test_fixations_drawn_from_the_map_agree_with_it():
    """Drawn from its own map a density is close; from the next picture's it is not; a cell nobody hits costs bits."""
    maps = example_data(seed=1).data.maps
    paths = simulate(named_model("saliency_baseline"), maps, 600, jax.random.key(1))
    own = map_agreement([paths, paths], maps)
    assert own["fixations"].eq(2 * 598).all()
    assert own["correlation"].min() > 0.8
    others = replace(maps, pictures=(*maps.pictures[1:], maps.pictures[0]))
    assert (map_agreement([paths], others)["kl_bits"] > own["kl_bits"] + 0.3).all()
    with pytest.raises(InputError, match="no simulated paths"):
        map_agreement([], maps)
    with pytest.raises(InputError, match="longer than the 600"):
        map_agreement([paths], maps, start=600)


def test_divergence_from_the_map_can_be_worked_out_by_hand():
    """All fixations in one of two cells that the map gives 1/2 each; smoothing far below a cell changes nothing."""
    grid = Grid(1, 2, Extent(10.0, 20.0))
    maps = SaliencyMaps(grid, (1,), np.array([[[0.5, 0.5]]]))
    table = pd.DataFrame(
        {"observer": 1, "picture": 1, "fixation": [1, 2, 3, 4], "x_deg": [15.0, 15, 5, 5], "y_deg": 5.0}
    )
    row = map_agreement([ScanPaths.from_table(table, grid.extent)], maps, bandwidth_deg=0.1).loc[1]
    assert row["fixations"] == 2
    assert row["kl_bits"] == pytest.approx(-1 - 0.5 * np.log2(0.9995) - 0.5 * np.log2(0.0005))
    assert np.isnan(row["correlation"])


# --- observed against simulated ------------------------------------------------------------------------------------


def test_moments_are_those_of_each_observer():
    saccades = Saccades.of(some_walks(4, 1)[0])
    found = observer_moments_deg(saccades)
    for index, observer in enumerate(saccades.observers):
        amplitudes = saccades.by(observer).amplitudes_deg
        np.testing.assert_allclose(found[:, index], [amplitudes.mean(), amplitudes.std(ddof=1)])


@pytest.mark.parametrize("draws", [50, 200])
def test_a_new_draw_falls_into_the_band_as_often_as_it_says(draws):
    """Exact for exchangeable draws: 95 % of 4000 points, give or take four standard errors of 0.34 %."""
    values = np.random.default_rng(5).gamma(2, 1, (draws + 1, 4000))
    band = Band.over(np.arange(4000.0), values[0], values[1:])
    assert band.inside.mean() == pytest.approx(0.95, abs=0.014)


def test_data_of_the_model_itself_lie_in_its_bands():
    """Points of a curve hang together, so that the share in the band is checked over 20 comparisons."""
    inside = []
    for seed in range(20):
        observed, *simulated = some_walks(100 + seed, 41, pictures=3, length=12)
        found = compare_saccades(observed, simulated, lags=5)
        curves = (found.amplitude, found.direction, found.turn, found.autocorrelation, found.observer_mean)
        some = [band.inside[(band.high > band.low) & (band.mean > band.mean.max() / 20)].mean() for band in curves[:3]]
        inside.append(some + [band.inside[1:].mean() for band in curves[3:]])
    means = np.mean(inside, axis=0)
    assert np.all(means > 0.90)
    assert np.mean(means) == pytest.approx(0.95, abs=0.02)


def test_wrong_amplitudes_leave_the_bands():
    observed = some_walks(6, 1)[0]
    simulated = some_walks(7, 10, step_deg=4.0)
    found = compare_saccades(observed, simulated)
    table = found.table()
    assert not table.loc["mean_deg", "inside"]
    assert table.loc["mean_deg", "observed"] == pytest.approx(Saccades.of(observed, 1).summary()["mean_deg"])
    assert table.loc["mean_deg", "simulated"] > table.loc["mean_deg", "observed"]
    shift = table.loc["mean_deg", "simulated"] - table.loc["mean_deg", "observed"]
    distances = found.distances.loc["amplitude"]
    assert distances["wasserstein_deg"] == pytest.approx(shift, rel=0.2)
    assert distances["wasserstein_deg"] > 3 * distances["wasserstein_deg_floor"]
    assert distances["js_bits"] > 1.5 * distances["js_bits_floor"]
    assert found.agreement().loc["mean", "r2_identity"] < 0


def test_distances_are_means_over_draws_and_over_neighbouring_draws():
    paths = some_walks(11, 4)
    found = compare_saccades(paths[0], paths[1:], skip=0).distances
    truth, *draws = [Saccades.of(one) for one in paths]
    turns = [circular_wasserstein_deg(draw.turns_deg, truth.turns_deg) for draw in draws]
    assert found.loc["turn", "wasserstein_deg"] == pytest.approx(np.mean(turns))
    amplitudes = [wasserstein_deg(draws[i].amplitudes_deg, draws[i + 1].amplitudes_deg) for i in (0, 1)]
    assert found.loc["amplitude", "wasserstein_deg_floor"] == pytest.approx(np.mean(amplitudes))
    counts = [Bins.of_angles().counts(one.directions_deg) for one in (truth, *draws)]
    bits = [jensen_shannon_bits(counts[0], other) for other in counts[1:]]
    assert found.loc["direction", "js_bits"] == pytest.approx(np.mean(bits))


def test_a_models_own_paths_are_at_the_floor_and_a_rivals_are_not():
    example = example_data(seed=1)
    paths, maps = example.data.paths, example.data.maps
    rival = {observer: named_model("local_saliency", xi=(15.0, 25.0)) for observer in paths.observers}
    own, other = (
        compare_saccades(paths, [simulate(models, maps, paths, jax.random.key(seed)) for seed in range(8)])
        for models in (example.models, rival)
    )
    ratio = [found.distances["js_bits"] / found.distances["js_bits_floor"] for found in (own, other)]
    assert (ratio[0] < 1.3).all()
    assert ratio[1]["amplitude"] > 2
    assert own.agreement().loc["mean", "r2_identity"] > 0.8 > other.agreement().loc["mean", "r2_identity"]


def test_observers_who_differ_are_told_apart():
    rng = np.random.default_rng(8)

    def people() -> ScanPaths:
        parts = [walks(rng, 1, 8, 25, step_deg=step) for step in (1.0, 2.0, 3.0, 4.0)]
        together = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("picture", "trial", "length")}
        together |= {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("fixation", "x_deg", "y_deg")}
        return ScanPaths(extent=EXTENT, observer=np.repeat(["a", "b", "c", "d"], 8), **together)

    found = compare_saccades(people(), (people() for _ in range(10)))
    assert found.draws == 10
    assert (found.agreement()[["r2_identity", "r2_correlation"]] > 0.9).all(axis=None)
    table = found.observer_table()
    assert table.index.tolist() == ["a", "b", "c", "d"]
    assert table["mean_deg_observed"].is_monotonic_increasing
    assert table["sd_deg_simulated"].is_monotonic_increasing


def test_simulated_paths_of_others_are_refused():
    observed, other, more = some_walks(9, 3)
    with pytest.raises(InputError, match="observer 2 is in only one"):
        compare_saccades(observed, [other, more.select(observers=[1, 3, 4])])
    with pytest.raises(InputError, match="draw 1 lies in"):
        compare_saccades(observed, [replace(other, extent=Extent(30.0, 40.0))])
    with pytest.raises(InputError, match="1 simulated data sets"):
        compare_saccades(observed, [other])
    short = [walks(np.random.default_rng(1), 2, 2, 3) for _ in range(3)]
    with pytest.raises(InputError, match="too short to have a turn"):
        compare_saccades(short[0], short[1:])


def test_fifty_draws_of_a_whole_experiment_take_seconds():
    """35 observers, 30 pictures, 27 fixations: about 4 s; a loop by saccade takes minutes."""
    paths = some_walks(10, 2, observers=35, pictures=30, length=27)
    start = time.process_time()
    compare_saccades(paths[0], (paths[1] for _ in range(50)))
    assert time.process_time() - start < 30
