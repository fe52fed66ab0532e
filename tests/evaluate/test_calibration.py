"""Calibration passes samplers that are right and fails those that are not; a run can stop and go on."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from foveate.errors import InputError
from foveate.evaluate import calibration
from foveate.evaluate.calibration import LOG_LIKELIHOOD, Calibration, calibrate, smooth_maps
from foveate.evaluate.trials import Drawn, Outcome, Store, rank_among, run_trials, thinned
from foveate.inference.samples import Progress, Samples, silent
from foveate.model.catalogue import local_saliency, saliency_baseline

DRAWS = 99
OBSERVATIONS = 5
SMALL = {"cells": 12, "paths": 4, "fixations": 7, "settings": {"replicates": 2, "draws": 100}}


def toy(shift: float = 0.0, scale: float = 1.0, ignore_data: bool = False):
    """A trial whose posterior is known: theta ~ N(0, 1), five observations y ~ N(theta, 1); draws bent as told."""

    def trial(key, told) -> Drawn:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel().tolist())
        theta = rng.standard_normal()
        y = theta + rng.standard_normal(OBSERVATIONS)
        mean, deviation = y.sum() / (OBSERVATIONS + 1), 1 / np.sqrt(OBSERVATIONS + 1)
        if ignore_data:
            mean, deviation = 0.0, 1.0
        draws = mean + deviation * (shift + scale * rng.standard_normal(DRAWS))
        both = np.append(theta, draws)
        log_likelihood = -0.5 * np.square(y - both[:, None]).sum(axis=1)
        values = np.stack([both, log_likelihood], axis=1)
        return Drawn(values[0], values[1:], ("far out",) if abs(theta) > 2.5 else ())

    return trial


def calibration_of(trial, data_sets: int = 200, seed: int = 1, **settings) -> Calibration:
    outcomes = run_trials(trial, jax.random.key(seed), range(data_sets), draws=DRAWS, **settings)
    return Calibration("toy", "exact", ("theta", LOG_LIKELIHOOD), DRAWS, tuple(outcomes), false_alarm=0.01)


def test_exact_draws_pass():
    found = calibration_of(toy())
    assert found.passed
    assert found.verdict.startswith("passed")
    assert found.ranks.min() >= 0
    assert found.ranks.max() <= DRAWS


def test_exact_draws_fail_as_often_as_stated():
    """Of 100 calibrations at a rate of 0.05, more than 12 failures occur once in 500 such tests or less."""
    failed = sum(not replace(calibration_of(toy(), 50, seed), false_alarm=0.05).passed for seed in range(100))
    assert failed <= 12


@pytest.mark.parametrize("wrong", [{"shift": 0.5}, {"shift": -0.5}, {"scale": 0.6}, {"scale": 1.7}])
def test_draws_that_are_shifted_or_too_narrow_or_too_wide_fail(wrong):
    found = calibration_of(toy(**wrong))
    assert not found.passed
    assert found.p_values[0] < found.smallest_passing_p
    assert found.verdict.startswith("FAILED")


def test_draws_from_the_prior_fail_through_the_log_likelihood_alone():
    """A sampler that never looks at the data has uniform ranks of theta: only what depends on the data tells."""
    found = calibration_of(toy(ignore_data=True))
    assert found.p_values[0] >= found.smallest_passing_p
    assert found.p_values[1] < 1e-6
    assert not found.passed


def test_fits_with_problems_are_counted_and_kept():
    found = calibration_of(toy())
    far = [it.index for it in found.outcomes if abs(it.truth[0]) > 2.5]
    assert found.unconverged == far
    assert len(far) > 0
    assert len(found.ranks) == 200
    assert f"{len(far)} of 200 fits had problems" in found.verdict
    assert found.to_dict()["unconverged"] == {index: ["far out"] for index in far}


def test_fits_in_which_another_sampler_took_over_are_counted():
    def trial(key, told) -> Drawn:
        drawn = toy()(key, told)
        return replace(drawn, facts={"instead_of": "exact" if drawn.truth[0] > 1 else None})

    found = calibration_of(trial)
    assert found.taken_over == [it.index for it in found.outcomes if it.truth[0] > 1]
    assert 0 < len(found.taken_over) < 200
    assert f"tempered SMC took over in {len(found.taken_over)} of 200" in found.verdict
    assert "took over" not in calibration_of(toy()).verdict


def test_failing_is_leaving_the_band():
    for trial in (toy(), toy(shift=0.3), toy(scale=0.75)):
        found = calibration_of(trial)
        outside = (found.differences < found.band.low_difference - 1e-12) | (
            found.differences > found.band.high_difference + 1e-12
        )
        assert outside.any() == (not found.passed)


# --- trials --------------------------------------------------------------------------------------------------------


def test_ranks_are_counts_below_and_ties_are_broken_evenly():
    rng, draws = np.random.default_rng(1), np.array([[1.0, 2.0], [2.0, 2.0], [3.0, 2.0]])
    ranks = np.array([rank_among(np.array([2.5, 2.0]), draws, rng) for _ in range(4000)])
    assert set(ranks[:, 0]) == {2}
    counts = np.bincount(ranks[:, 1], minlength=4)
    assert (abs(counts - 1000) < 5 * np.sqrt(1000)).all()


def test_thinning_spreads_over_all_draws():
    draws = np.arange(100.0)[:, None]
    np.testing.assert_array_equal(thinned(draws, 4).ravel(), [12, 37, 62, 87])
    with pytest.raises(InputError, match="not enough"):
        thinned(draws, 101)


def test_a_trial_depends_on_its_index_alone():
    whole = calibration_of(toy(), 12).outcomes
    part = run_trials(toy(), jax.random.key(1), [7, 3], draws=DRAWS, workers=1)
    assert [it.ranks for it in part] == [whole[7].ranks, whole[3].ranks]


def test_a_run_that_stopped_goes_on(tmp_path):
    """A line cut off by a crash is done again; whole ones are not."""
    done = []

    def counted(key, told):
        done.append(1)
        return toy()(key, told)

    header = {"made_by": "foveate calibrate", "seed": 1}
    store = Store.open(tmp_path / "toy.jsonl", header)
    run_trials(counted, jax.random.key(1), range(5), draws=DRAWS, store=store)
    whole = (tmp_path / "toy.jsonl").read_bytes()
    (tmp_path / "toy.jsonl").write_bytes(whole[:-10])
    again = run_trials(
        counted, jax.random.key(1), range(8), draws=DRAWS, store=Store.open(tmp_path / "toy.jsonl", header)
    )
    assert len(done) == 5 + 4
    assert [it.ranks for it in again] == [it.ranks for it in calibration_of(toy(), 8).outcomes]
    assert len(store.outcomes()) == 8


def test_a_store_of_another_calibration_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "toy.jsonl"
    Store.open(path, {"made_by": "foveate calibrate", "seed": 1})
    before = path.read_bytes()
    with pytest.raises(InputError, match="differs in seed"):
        Store.open(path, {"made_by": "foveate calibrate", "seed": 2})
    assert path.read_bytes() == before
    for mine in (b"my notes", b"my notes\nand more\n"):
        path.write_bytes(mine)
        with pytest.raises(InputError, match="nothing was written"):
            Store.open(path, {"made_by": "foveate calibrate", "seed": 1})
        assert path.read_bytes() == mine


def test_progress_counts_and_an_exception_in_it_stops_the_run(tmp_path):
    seen: list[Progress] = []

    def report(progress: Progress) -> None:
        seen.append(progress)
        if progress.done == 3:
            raise KeyboardInterrupt

    store = Store.open(tmp_path / "toy.jsonl", {"made_by": "foveate calibrate"})
    with pytest.raises(KeyboardInterrupt):
        run_trials(toy(), jax.random.key(1), range(50), draws=DRAWS, store=store, report=report, workers=1)
    assert [it.done for it in seen] == [0, 1, 2, 3]
    assert all(it.total == 50 for it in seen)
    assert len(store.outcomes()) == 3


def test_an_error_says_which_data_set_it_came_from():
    def failing(key, told):
        raise InputError("no.")

    with pytest.raises(InputError) as caught:
        run_trials(failing, jax.random.key(1), [4], draws=DRAWS)
    assert caught.value.__notes__ == ["in data set 4"]


# --- real models ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_real_calibration_has_a_rank_for_every_number_and_the_log_likelihood(tmp_path):
    settings = SMALL | {"store": tmp_path / "ranks.jsonl"}
    found = calibrate(local_saliency(), jax.random.key(1), data_sets=6, **settings)
    assert found.labels == ("xi_row", "xi_column", LOG_LIKELIHOOD)
    assert found.ranks.shape == (6, 3)
    assert found.passed
    assert not found.unconverged
    assert found.outcomes[0].facts["sampler"] == "importance"
    # the truths are the priors' own: log-normal around 30 with a spread of 1
    truths = np.log([it.truth[:2] for it in found.outcomes])
    assert abs(truths.mean() - np.log(30)) < 4 / np.sqrt(12)
    again = calibrate(local_saliency(), jax.random.key(1), indices=range(2, 5), **settings)
    np.testing.assert_array_equal(again.ranks, found.ranks[2:5])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["importance", "nuts"])
def test_local_saliency_is_calibrated(sampler):
    found = calibrate(local_saliency(), jax.random.key(1), sampler=sampler, data_sets=200)
    assert found.passed, found.verdict
    assert len(found.unconverged) < 10


def test_a_real_calibration_knows_who_took_over_and_its_version(tmp_path, monkeypatch):
    def draws(target, key, sampler, *_) -> Samples:
        real = np.random.default_rng(0).normal(size=(2, 100, target.size))
        return Samples(real, "smc", {"instead_of": sampler}, {}, 1)

    monkeypatch.setattr(calibration, "draw", draws)
    settings = {"data_sets": 2, "cells": 12, "paths": 4, "fixations": 7, "store": tmp_path / "ranks.jsonl"}
    assert calibrate(local_saliency(), jax.random.key(1), **settings).taken_over == [0, 1]
    monkeypatch.setattr(calibration, "version", lambda package: "99")
    with pytest.raises(InputError, match="differs in version"):
        calibrate(local_saliency(), jax.random.key(1), **settings)


def test_maps_are_smooth_and_of_the_key_alone():
    maps = smooth_maps(24, 3, jax.random.key(2))
    np.testing.assert_array_equal(maps.values, smooth_maps(24, 3, jax.random.key(2)).values)
    assert maps.values.min() * maps.grid.cells >= 0.05
    assert maps.values.max() * maps.grid.cells > 2
    neighbours = np.corrcoef(np.log(maps.values[:, 1:]).ravel(), np.log(maps.values[:, :-1]).ravel())[0, 1]
    assert neighbours > 0.8


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (saliency_baseline(), {}, "nothing to calibrate"),
        (local_saliency(), {"sampler": "guess"}, "sampler"),
        (local_saliency(), {"data_sets": 0}, "data_sets"),
        (local_saliency(), {"fixations": 2}, "fixations"),
    ],
)
def test_impossible_settings_are_refused(model, settings, words):
    with pytest.raises(InputError, match=words):
        calibrate(model, jax.random.key(1), report=silent, **settings)


# --- recovery ------------------------------------------------------------------------------------------------------


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Exact draws: of 200 data sets a share outside four standard errors occurs once in 10,000 such tests."""
    found = calibration_of(toy())
    for share in (0.5, 0.9):
        assert (abs(found.coverage(share) - share) < 4 * np.sqrt(share * (1 - share) / 200)).all()
    assert calibration_of(toy(scale=0.5)).coverage(0.9)[0] < 0.75


def test_coverage_counts_the_middle_ranks():
    ranks = np.arange(100)
    outcomes = tuple(Outcome(index, (rank, 0), (0.0, 0.0), (), {}, 0.0) for index, rank in enumerate(ranks.tolist()))
    found = Calibration("toy", "exact", ("theta", LOG_LIKELIHOOD), DRAWS, outcomes, false_alarm=0.01)
    assert found.coverage(0.5).tolist() == [0.5, 0.0]
    assert found.coverage(0.9).tolist() == [0.9, 0.0]
    assert np.isnan(found.correlations).all()  # an earlier version did not keep the means
    assert list(found.recovery().index) == ["theta"]


def test_means_follow_the_truth_unless_the_data_are_ignored():
    """With five observations the mean's correlation with theta is sqrt(5 / 6) = 0.91, without data 0."""
    assert abs(calibration_of(toy()).correlations[0] - 0.91) < 0.08
    assert abs(calibration_of(toy(ignore_data=True)).correlations[0]) < 0.3


def test_outcomes_without_means_of_an_earlier_version_are_read(tmp_path):
    header = {"made_by": "foveate calibrate"}
    store = Store.open(tmp_path / "toy.jsonl", header)
    run_trials(toy(), jax.random.key(1), range(2), draws=DRAWS, store=store)
    first, *lines = (tmp_path / "toy.jsonl").read_text().splitlines()
    old = [
        json.dumps({k: v for k, v in json.loads(line).items() if k not in ("mean", "low", "high")}) for line in lines
    ]
    new = store.outcomes()
    (tmp_path / "toy.jsonl").write_text("\n".join([first, *old]) + "\n")
    assert [replace(it, mean=(), low=(), high=()) for it in new] == store.outcomes()
    some = replace(calibration_of(toy(), 4), outcomes=(*store.outcomes(), *new))
    assert np.isnan(some.correlations).all()
    assert all(low <= mean <= high for it in new for low, mean, high in zip(it.low, it.mean, it.high, strict=True))
