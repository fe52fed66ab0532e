"""Reliability: plain formulas and simulations with a known truth; halves that hold what they should."""

from functools import cache

import jax
import numpy as np
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.scales import value_scales
from foveate.example import example_data
from foveate.experiments import reliability as subject
from foveate.experiments.picture_subsets import ALL, PictureSubsets
from foveate.experiments.pictures_needed import Line, needed_row, pictures_needed, sd_line
from foveate.experiments.reliability import expected_spread, reliability, spearman_brown, split_half
from foveate.inference.diagnosis import diagnose
from foveate.inference.fit import observer_key
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples
from foveate.model.catalogue import named_model

# Each statistical check is so wide that a right program fails it with this probability; keys are fixed.
FALSE_ALARM = 1e-4
WIDE = float(stats.norm.ppf(1 - FALSE_ALARM / 2))


@cache
def everything() -> Dataset:
    return example_data().data


def data(observers=("ann", "ben", "cleo"), pictures=None) -> Dataset:
    some = everything().select(observers=list(observers), pictures=pictures)
    return Dataset(some.paths, some.maps.resample(Grid(8, 8, some.maps.grid.extent)))


def noisy_halves(rng, splits: int, observers: int, correlation: float) -> tuple[np.ndarray, np.ndarray]:
    """Two measurements of each observer whose true values make up this share of the variance."""
    truth = np.sqrt(correlation) * rng.standard_normal(observers)
    first, second = truth + np.sqrt(1 - correlation) * rng.standard_normal((2, splits, observers))
    return first, second


# --- statistics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("between", "error"), [(1.0, 0.5), (0.2, 1.0), (3.0, 0.1)])
def test_spearman_brown_is_the_reliability_of_twice_the_data(between, error):
    """Theory: between / (between + error) for a half, and half the error variance with twice the data."""
    assert spearman_brown(between / (between + error)) == pytest.approx(between / (between + error / 2))


def test_a_negative_correlation_is_mirrored():
    assert spearman_brown(-0.5) == pytest.approx(-2 / 3)
    assert [spearman_brown(it) for it in (-1.0, 0.0, 1.0)] == [-1, 0, 1]


def test_one_split_has_fishers_interval():
    first, second = noisy_halves(np.random.default_rng(1), 1, 20, 0.7)
    found = split_half(first, second, np.random.default_rng(0))
    r = np.corrcoef(first[0], second[0])[0, 1]
    assert found.correlation == pytest.approx(r)
    by_hand = np.tanh(np.arctanh(r) + np.array([-1, 1]) * 1.959963985 / np.sqrt(17))
    assert (found.low, found.high) == pytest.approx(tuple(by_hand))
    assert found.interval == "Fisher z"


def test_of_three_observers_the_interval_says_nothing():
    first, second = noisy_halves(np.random.default_rng(1), 1, 3, 0.7)
    assert split_half(first, second, np.random.default_rng(0))[1:3] == (-1, 1)


def test_intervals_hold_the_true_correlation_as_often_as_they_say():
    """1,000 simulated studies: 95 % of the intervals, within what chance leaves."""
    rng, studies = np.random.default_rng(2), 1000
    inside = 0
    for _ in range(studies):
        _, low, high, _ = split_half(*noisy_halves(rng, 1, 15, 0.6), rng)
        inside += low < 0.6 < high
    assert abs(inside / studies - 0.95) < WIDE * np.sqrt(0.95 * 0.05 / studies)


def test_several_splits_are_averaged_and_have_a_bootstrap_over_observers():
    first, second = noisy_halves(np.random.default_rng(3), 5, 40, 0.6)
    found = split_half(first, second, np.random.default_rng(0))
    assert found.interval == "bootstrap over observers"
    pairs = list(zip(first, second, strict=True))
    assert found.correlation == pytest.approx(np.mean([np.corrcoef(*it)[0, 1] for it in pairs]))
    assert found == split_half(first, second, np.random.default_rng(0))
    # A plain loop: observers drawn with replacement, all their splits with them.
    rng, draws = np.random.default_rng(4), []
    for _ in range(2000):
        who = rng.integers(40, size=40)
        draws.append(np.mean([np.corrcoef(x[who], y[who])[0, 1] for x, y in pairs]))
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(np.std(draws), rel=0.15)
    assert found.low < 0.6 < found.high


def test_few_observers_keep_fishers_interval():
    first, second = noisy_halves(np.random.default_rng(3), 2, 6, 0.6)
    found = split_half(first, second, np.random.default_rng(0))
    r = np.array([np.corrcoef(*halves)[0, 1] for halves in zip(first, second, strict=True)])
    by_hand = np.tanh(np.arctanh(r)[:, None] + np.array([-1, 1]) * 1.959963985 / np.sqrt(3))
    assert (found.low, found.high) == pytest.approx(tuple(by_hand.mean(axis=0)))


@pytest.mark.parametrize("prior_variance", [1e6, 1.5])
def test_posteriors_expect_the_correlation_that_there_is(prior_variance):
    """Normal posteriors around a truth: their own account agrees with theory and with the halves themselves."""
    rng, observers = np.random.default_rng(5), 6000
    between, error = 0.8, 0.5
    truth = np.sqrt(between) * rng.standard_normal(observers)
    measured = truth + np.sqrt(error) * rng.standard_normal((2, observers))
    held_back = prior_variance / (prior_variance + error)
    means, variances = held_back * measured, np.full((2, observers), held_back * error)
    between_sd, error_sd = expected_spread(means, variances, prior_variance)
    true = between / (between + error)
    standard_error = (1 - true**2) / np.sqrt(observers)
    assert between_sd**2 / (between_sd**2 + error_sd**2) == pytest.approx(true, abs=WIDE * standard_error)
    assert split_half(means[:1], means[1:], rng).correlation == pytest.approx(true, abs=WIDE * standard_error)
    assert between_sd == pytest.approx(held_back * np.sqrt(between), rel=0.05)


def test_observers_who_differ_by_less_than_their_errors_have_nothing_between_them():
    assert expected_spread(np.array([[0.0, 0.1, -0.1]]), np.full((1, 3), 0.5), 1e6)[0] == 0


def test_the_slope_is_that_of_a_regression_with_a_level_for_each_observer():
    rng = np.random.default_rng(6)
    pictures = np.repeat(np.array([5.0, 10.0, 15.0, 15.0, 30.0])[:, None], 7, axis=1)
    level = rng.normal(0, 0.5, 7)
    log_sd = level - 0.4 * np.log(pictures) + 0.05 * rng.standard_normal(pictures.shape)
    line = sd_line(pictures, np.exp(log_sd))
    columns = np.column_stack([np.log(pictures).ravel(), np.tile(np.eye(7), (5, 1))])
    plain = np.linalg.lstsq(columns, log_sd.ravel(), rcond=None)[0]
    assert line.slope == pytest.approx(plain[0])
    assert line.intercept == pytest.approx(plain[1:])
    own = [stats.linregress(np.log(pictures[:, it]), log_sd[:, it]).slope for it in range(7)]
    assert (line.low, line.high) == pytest.approx(tuple(stats.ttest_1samp(own, 0).confidence_interval()))
    assert line.low < -0.4 < line.high


def test_numbers_of_pictures_that_are_alike_leave_the_slope_to_theory():
    line = sd_line(np.array([[7.0, 7.0], [8.0, 8.0]]), np.array([[0.3, 0.6], [0.2, 0.5]]))
    assert line.slope == -0.5
    assert np.isnan([line.low, line.high]).all()
    assert line.intercept[0] == pytest.approx(np.log([0.3, 0.2]).mean() + 0.5 * np.log([7, 8]).mean())


def test_needed_pictures_follow_from_the_law_of_the_square_root():
    """Sd of 1 and 2 for one picture: 100 and 400 of them bring it down to 0.1."""
    pictures = np.repeat(np.array([4.0, 16.0])[:, None], 2, axis=1)
    line = sd_line(pictures, np.array([1.0, 2.0]) / np.sqrt(pictures))
    assert line.slope == pytest.approx(-0.5)
    assert pictures_needed(line, 0.1).tolist() == [100, 400]
    assert pictures_needed(line, 3.0).tolist() == [1, 1]
    flat = Line(np.log([0.05, 0.5]), 0.0, np.nan, np.nan)
    assert pictures_needed(flat, 0.1).tolist() == [1, np.inf]


def test_enough_for_the_median_observer_and_for_nine_in_ten():
    """Sd of 1 to 10 for one picture: the median observer's lies halfway between 5 and 6 on the log scale."""
    level = np.arange(1.0, 11.0)
    found = needed_row(Line(np.log(level), -0.5, -0.6, -0.4), np.full((2, 10), 50.0), 0.7)
    assert found["pictures_median_observer"] == np.ceil(30 / 0.7**2) == 62
    assert found["pictures_90_percent"] == np.ceil(81 / 0.7**2)
    assert found["median_extrapolated"]
    assert not needed_row(Line(np.log(level), -0.5, -0.6, -0.4), np.full((2, 10), 62.0), 0.7)["median_extrapolated"]


def test_the_scale_and_the_priors_variance_are_those_of_the_real_line():
    model = named_model("full")
    assert value_scales(model) == dict.fromkeys(model.labels[:4], "log") | {"b": "as it is", "s0": "as it is"}
    assert value_scales(named_model("fixed_choice"))["rho"] == "log-odds"
    # By theory; a variance from 4,000 draws is off by 3 % at most of these (log-odds of a uniform have heavy tails).
    room = WIDE * 0.03
    assert subject._prior_variances(model) == pytest.approx(np.array([1, 1, 1, 1, 0.25, 16.0]), rel=room)
    assert subject._prior_variances(named_model("fixed_choice"))[-1] == pytest.approx(np.pi**2 / 3, rel=room)


# --- halves and subsets ----------------------------------------------------------------------------------------------


def test_halves_share_out_the_pictures_and_are_the_same_for_all(tmp_path):
    some = data()
    subsets = PictureSubsets.of(tmp_path, named_model("local_saliency"), some, splits=3, numbers=[5, 3, ALL], seed=1)
    for split in subsets.splits:
        first, second = (subsets.pictures_of(2 * split - half, "ann") for half in (1, 0))
        assert sorted(first + second) == sorted(some.paths.pictures)
        assert len(first) == len(second) == 6
        assert first == subsets.pictures_of(2 * split - 1, "ben")
    assert len({tuple(subsets.pictures_of(fold, "ann")) for fold in range(1, 7)}) == 6  # other splits, other halves
    small, large, everything = (set(subsets.pictures_of(1000 + number, "cleo")) for number in (3, 5, ALL))
    assert small < large < everything == set(some.paths.pictures)
    assert (len(small), len(large)) == (3, 5)
    seen = subsets.fits.training("local_saliency", 1003, "cleo")
    assert set(seen.paths.pictures) == set(seen.maps.pictures) == small
    assert seen.paths.observers == ["cleo"]
    assert [subsets.called(it) for it in (1, 4, 1000, 1003)] == [
        "half 1 of split 1", "half 2 of split 2", "all pictures", "subset of 3",
    ]  # fmt: skip


def test_more_splits_and_pictures_change_nothing_of_those_before(tmp_path):
    few, many = (
        PictureSubsets.of(tmp_path, named_model("local_saliency"), data(), splits=splits, numbers=numbers, seed=4)
        for splits, numbers in ((1, [3]), (4, [3, 5]))
    )
    assert set(few.fits.folds) < set(many.fits.folds)
    for fold in few.fits.folds:
        assert few.pictures_of(fold, "ann") == many.pictures_of(fold, "ann")
    other = PictureSubsets.of(tmp_path, named_model("local_saliency"), data(), seed=5)
    assert other.pictures_of(1, "ann") != few.pictures_of(1, "ann")


def test_all_pictures_by_their_number_are_all_pictures(tmp_path):
    subsets = PictureSubsets.of(tmp_path, named_model("local_saliency"), data(), numbers=[12, ALL], seed=1)
    assert subsets.fits.folds == (1, 2, 1000)


@pytest.mark.parametrize(
    ("observers", "pictures", "settings", "words"),
    [
        (["ann"], None, {}, r"^1 observer \(ann\): .* give at least 3"),
        (["ann", "ben"], None, {}, "2 observers"),
        (["ann", "ben", "cleo"], ["beach", "bridge", "tower"], {}, "3 pictures: each half needs 2"),
        (["ann", "ben", "cleo"], None, {"splits": 0}, "0 splits: give 1 to 499"),
        (["ann", "ben", "cleo"], None, {"numbers": [20]}, "20 pictures: give 1 to 12, as many as observer 'ann' saw"),
    ],
)
def test_mistakes_are_named(observers, pictures, settings, words, tmp_path):
    with pytest.raises(InputError, match=words):
        PictureSubsets.of(tmp_path, named_model("local_saliency"), data(observers, pictures), seed=1, **settings)


def test_an_observer_who_saw_little_is_named(tmp_path):
    some = data()
    table = some.paths.to_table()
    kept = table[(table["observer"] != "ben") | table["picture"].isin(["beach", "bridge", "tower"])]
    less = Dataset(ScanPaths.from_table(kept, some.paths.extent), some.maps)
    with pytest.raises(InputError, match=r"observer 'ben', half \d of split 1: they saw [01] of its pictures"):
        PictureSubsets.of(tmp_path, named_model("local_saliency"), less, seed=1)


def test_a_subset_with_fewer_steps_than_numbers_is_named(tmp_path):
    some = data()
    table = some.paths.to_table()
    short = Dataset(ScanPaths.from_table(table[table["fixation"] <= 4], some.paths.extent), some.maps)
    with pytest.raises(InputError, match=r"observer 'ann', subset of 2: 4 steps .* to fit 6 numbers"):
        PictureSubsets.of(tmp_path, named_model("full"), short, numbers=[2], seed=1)


# --- from posteriors to tables ---------------------------------------------------------------------------------------


def save_made_up(subsets: PictureSubsets, means: dict, sds: dict, *, apart=(), sides=()) -> None:
    """Posteriors with exactly these moments on the real line; chains `apart` or b on both `sides` of zero for some."""
    model, rng = subsets.model, np.random.default_rng(1)
    for fold in subsets.fits.folds:
        store = subsets.fits.store(model.name, fold)
        with store.writing():
            for observer in subsets.data:
                noise = rng.standard_normal((4, 500, len(model.labels)))
                if (fold, observer) in apart:
                    noise += 2 * np.arange(4)[:, None, None]
                if (fold, observer) in sides:
                    noise[:, :, model.labels.index("b")] += 20 * rng.choice([-1, 1], (4, 500))
                noise = (noise - noise.mean(axis=(0, 1))) / noise.std(axis=(0, 1), ddof=0)
                noise *= np.sqrt((4 * 500 - 1) / (4 * 500))
                samples = Samples(means[fold, observer] + sds[fold, observer] * noise, store.run.sampler, {}, {}, 1)
                key = np.asarray(jax.random.key_data(observer_key(store.run.key, observer))).ravel().tolist()
                diagnosis = diagnose(model.labels, samples)
                store.save(Posterior(model, observer, samples, diagnosis, {"key": key, "seconds": 1.0}))


def test_tables_follow_from_the_posteriors(tmp_path):
    everybody = ("ann", "ben", "cleo", "dan", "eve")
    subsets = PictureSubsets.of(tmp_path, named_model("full"), data(everybody), numbers=[3], seed=1)
    rng = np.random.default_rng(7)
    truth = {observer: rng.normal([1, 1, 3, 3, 4, 1], 0.5) for observer in everybody}
    cases = [(fold, observer) for fold in subsets.fits.folds for observer in everybody]
    sds = {case: rng.uniform(0.05, 0.2, 6) * (2 if case[0] > 2 else 1) for case in cases}
    means = {case: truth[case[1]] + sds[case] * rng.standard_normal(6) for case in cases}
    for fold in (1, 2):  # a mean of zero, so that the two sides are alike
        means[fold, "dan"][4] = 0.0
    save_made_up(subsets, means, sds, apart=[(2, "eve")], sides=[(1, "dan"), (2, "dan")])
    found = reliability(subsets, precision=0.05)

    assert (found.unconverged, len(found.fits)) == (1, 15)
    assert found.both_sides == 2
    rows = found.parameters.set_index("parameter")
    assert rows["fits_not_converged"].tolist() == [1] * 6
    halves = found.halves.set_index(["parameter", "observer"])
    for number, label in enumerate(subsets.model.labels):
        first, second = (np.array([means[fold, it][number] for it in everybody]) for fold in (1, 2))
        r = np.corrcoef(first, second)[0, 1]
        assert rows.loc[label, "correlation"] == pytest.approx(r)
        assert rows.loc[label, "reliability"] == pytest.approx(2 * r / (1 + abs(r)))
        z = [
            (means[1, it][number] - means[2, it][number]) / np.sqrt(sds[1, it][number] ** 2 + sds[2, it][number] ** 2)
            for it in everybody
        ]
        assert halves.loc[label].loc[list(everybody), "z"].to_numpy() == pytest.approx(z)
        assert rows.loc[label, "share_beyond_2"] == np.mean(np.abs(z) > 2)
    bad = found.halves[~(found.halves["converged_1"] & found.halves["converged_2"])]
    assert set(bad["observer"]) == {"eve"}
    assert len(bad) == 6
    assert len(found.sizes) == 15 * 6
    assert found.sizes.loc[~found.sizes["converged"], "part"].unique().tolist() == ["half 2 of split 1"]

    needed = found.needed.set_index("parameter").loc["xi_row"]
    sd = {case: it[2] for case, it in sds.items()}
    x = np.log([6, 6, 3])
    slopes = [np.polyfit(x, np.log([sd[1, it], sd[2, it], sd[1003, it]]), 1)[0] for it in everybody]
    assert needed["slope"] == pytest.approx(np.mean(slopes))
    levels = [np.log([sd[1, it], sd[2, it], sd[1003, it]]).mean() - np.mean(slopes) * x.mean() for it in everybody]
    each = sorted(np.ceil(np.exp((np.log(0.05) - np.array(levels)) / np.mean(slopes))))
    assert (needed["pictures_median_observer"], needed["pictures_90_percent"]) == (each[2], each[4])
    assert needed["90_percent_extrapolated"] == (each[4] > 6)


def test_a_model_without_b_has_no_sides(tmp_path):
    subsets = PictureSubsets.of(tmp_path, named_model("local_saliency"), data(), seed=1)
    cases = [(fold, observer) for fold in (1, 2) for observer in subsets.data]
    rng = np.random.default_rng(1)
    save_made_up(subsets, {it: rng.normal(3, 1, 2) for it in cases}, {it: np.full(2, 0.2) for it in cases})
    found = reliability(subsets)
    assert found.both_sides is None
    assert found.needed["slope_fitted"].tolist() == [False, False]
    with pytest.raises(InputError, match="precision = 0"):
        reliability(subsets, precision=0)
