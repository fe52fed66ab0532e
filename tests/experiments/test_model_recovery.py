"""Who wins on whose data: counted right, from data that the models really made, scored on what was held out."""

import numpy as np
import pandas as pd
import pytest

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.fitted import FittedFolds
from foveate.example import example_data
from foveate.execution.places import Here
from foveate.experiments.model_recovery import Confusion, ModelRecovery, confusion_matrix, winner_and_rival
from foveate.model.catalogue import named_model
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.steps import Steps

NAMES = ("saliency_baseline", "local_saliency")


def small_data(*observers: str) -> Dataset:
    data = example_data().data.select(observers=list(observers))
    return Dataset(data.paths, data.maps.resample(Grid(16, 16, data.maps.grid.extent)))


def wilson(wins: int, data_sets: int) -> tuple[float, float]:
    """As Wilson (1927) has it: where |share - p| is z standard errors of a share with the true value p."""
    z, share = 1.959963984540054, wins / data_sets
    middle = (share + z * z / (2 * data_sets)) / (1 + z * z / data_sets)
    width = z * (share * (1 - share) / data_sets + z * z / (4 * data_sets**2)) ** 0.5 / (1 + z * z / data_sets)
    return middle - width, middle + width


# --- counting --------------------------------------------------------------------------------------------------------


def test_a_matrix_counts_who_won_on_whose_data():
    rng = np.random.default_rng(1)
    models = ["a", "b", "c"]
    truth = [models[index] for index in rng.integers(0, 3, 40)]
    winner = [models[index] for index in rng.integers(0, 2, 40)]  # "c" never wins
    lead = rng.exponential(size=40).tolist()
    found = confusion_matrix(truth, winner, models, lead)
    assert list(zip(found["truth"], found["winner"], strict=True)) == [(made, won) for made in models for won in models]
    for row in found.to_dict("records"):
        leads = sorted(
            it
            for made, won, it in zip(truth, winner, lead, strict=True)
            if (made, won) == (row["truth"], row["winner"])
        )
        data_sets = sum(made == row["truth"] for made in truth)
        assert (row["wins"], row["data_sets"]) == (len(leads), data_sets)
        assert row["share"] == len(leads) / data_sets
        assert (row["low"], row["high"]) == pytest.approx(wilson(len(leads), data_sets), abs=1e-12)
        if leads:
            middle = (leads[(len(leads) - 1) // 2] + leads[len(leads) // 2]) / 2
            assert (row["mean_lead"], row["median_lead"]) == pytest.approx((sum(leads) / len(leads), middle))
        else:
            assert row["winner"] == "c"
            assert np.isnan(row["median_lead"])
    assert found.groupby("truth")["share"].sum().tolist() == pytest.approx([1.0] * 3)


def test_a_winner_is_compared_with_the_true_model_or_with_the_next_best():
    scores = {"a": 1.0, "b": 3.0, "c": 2.0}
    assert winner_and_rival(scores, "a") == ("b", "a")
    assert winner_and_rival(scores, "b") == ("b", "c")


def made_up(**columns) -> Confusion:
    whole = {"truth": ["a", "a", "b", "b"], "winner_held_out": ["a", "b", "b", "a"]}
    whole |= {"lead_held_out": [0.5, 0.02, 0.3, 0.1], "lead_error_held_out": [0.1, 0.02, 0.1, 0.01]}
    return Confusion(("a", "b"), pd.DataFrame(whole | columns), pd.DataFrame(), 2, 5, 1)


def test_wrong_winners_are_told_of_with_their_leads():
    found = made_up()
    assert list(found.criteria) == ["held_out"]
    assert found.recovered("held_out") == pytest.approx((0.5, *wilson(2, 4)))
    words = found.words("held_out")
    assert "(2 of 4)" in words
    assert "by 0.06 bits per fixation (median; mean 0.06, largest 0.1)" in words
    assert "in 1 of 2 by less than 2 standard errors" in words
    cells = made_up(winner_held_out=["b", "b", "b", "a"]).matrix("held_out").set_index(["truth", "winner"])["wins"]
    assert (cells["a", "a"], cells["a", "b"], cells["b", "a"], cells["b", "b"]) == (0, 2, 1, 1)
    assert made_up(winner_held_out=["a", "a", "b", "b"]).words("held_out") == "No data set is won by another model."


def test_evidence_is_a_criterion_only_if_all_fits_have_one():
    evidence = {"lead_evidence": [1.0] * 4, "lead_error_evidence": [0.1] * 4}
    assert list(made_up(winner_evidence=["a", "b", "b", "b"], **evidence).criteria) == ["held_out", "evidence"]
    assert list(made_up(winner_evidence=["a", None, "b", "b"], **evidence).criteria) == ["held_out"]


# --- the experiment --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recovery")
    recovery = ModelRecovery.of(folder, {name: named_model(name) for name in NAMES}, small_data("ann"), seed=2)
    told: list[str] = []
    validation = recovery.fit(Here(1), lambda words, done, total: told.append(f"{words} ({done} of {total})"))
    return recovery, validation, recovery.judge(validation, draws=7), told


def test_every_model_is_fitted_to_the_observer_and_to_what_each_of_them_makes(done):
    recovery, _, found, told = done
    assert recovery.fits == 3
    assert told == [
        "1 of 3 fits; model local_saliency, fold 1, observer ann (1 of 3)",
        "2 of 3 fits; model local_saliency, fold 1, observer saliency_baseline: ann (2 of 3)",
        "3 of 3 fits; model local_saliency, fold 1, observer local_saliency: ann (3 of 3)",
    ]
    assert found.fits["data"].tolist() == ["observed", "simulated", "simulated"]
    assert found.unconverged == 0


def test_only_missing_fits_are_done_and_end_in_the_same_bits(done):
    recovery, validation, _, _ = done
    told: list[str] = []
    recovery.fit(Here(1), lambda words, done, total: told.append(words))
    assert told == []  # nothing is left to do
    before = validation.fits.posterior("local_saliency", 1, "local_saliency: ann")
    validation.fits.store("local_saliency", 1).file_of("local_saliency: ann").unlink()
    again = recovery.fit(Here(1), lambda words, done, total: told.append(words))
    assert told == ["3 of 3 fits; model local_saliency, fold 1, observer local_saliency: ann"]
    after = again.fits.posterior("local_saliency", 1, "local_saliency: ann")
    np.testing.assert_array_equal(after.samples.real, before.samples.real)


def test_simulated_data_are_the_observers_in_all_but_their_places(done):
    recovery, validation, _, _ = done
    observed = small_data("ann").paths
    assert list(validation.data) == ["saliency_baseline: ann", "local_saliency: ann"]
    for name, own in validation.data.items():
        assert own.paths.observers == [name]
        assert own.paths.picture.tolist() == observed.picture.tolist()
        assert own.paths.length.tolist() == observed.length.tolist()
        assert not np.array_equal(own.paths.x_deg, observed.x_deg, equal_nan=True)
    again = recovery.simulated()
    for name, own in again.items():
        assert own.fingerprint() == validation.data[name].fingerprint()
    # the saccades of the model that has a gaze are far shorter: the mean of 200 differs by many standard errors
    lengths = {
        name: np.nanmean(np.hypot(np.diff(own.paths.x_deg), np.diff(own.paths.y_deg))[:, 1:])
        for name, own in validation.data.items()
    }
    assert lengths["local_saliency: ann"] < 0.8 * lengths["saliency_baseline: ann"]


def test_simulated_data_have_the_steps_that_the_observers_have(tmp_path):
    """Flags of forced fixations are carried over, so that a data set has as much to fit as the recorded one."""
    data = small_data("ann")
    table = data.paths.to_table()
    paths = ScanPaths.from_table(table.assign(forced=table["fixation"].isin([1, 4])), data.paths.extent)
    models = {name: named_model("saliency_baseline") for name in ("one", "other")}  # there is nothing to fit
    for made in ModelRecovery.of(tmp_path, models, Dataset(paths, data.maps), seed=2).simulated().values():
        np.testing.assert_array_equal(made.paths.forced, paths.forced)
        assert list(made.paths.columns) == ["forced"]
        np.testing.assert_array_equal(Steps.of(made).real, Steps.of(Dataset(paths, data.maps)).real)


def test_scores_are_those_of_the_posterior_predictive_density_on_the_held_out_half(done):
    """Worked out from the likelihoods of single steps, which share no code with the scores' maps."""
    _, validation, found, _ = done
    for data_set, own in validation.data.items():
        row = found.data_sets.set_index("data_set").loc[data_set]
        test = own.split(validation.folds.test_pictures[0])[1]
        assert len(test.paths.pictures) == 6
        steps = Steps.of(test)
        for name in NAMES:
            part = FittedFolds.of(validation.fits, name, 7).parts[1, data_set]
            nats = np.stack([np.asarray(step_log_likelihoods(it, steps))[steps.real] for it in part.models()])
            predictive = np.log(np.exp(nats).mean(axis=0))
            assert row[f"{name}_bits"] == pytest.approx((predictive / np.log(2) + 8).mean(), rel=1e-9)  # 256 cells
        assert row["winner_held_out"] == max(NAMES, key=lambda name: row[f"{name}_bits"])
        assert row["lead_held_out"] == pytest.approx(abs(row[f"{NAMES[0]}_bits"] - row[f"{NAMES[1]}_bits"]))


def test_evidence_is_that_of_the_training_half(done):
    _, validation, found, _ = done
    for data_set, own in validation.data.items():
        row = found.data_sets.set_index("data_set").loc[data_set]
        train = own.split(validation.folds.test_pictures[0])[0]
        grid, nats = train.maps.grid, 0.0
        for path in train.paths:  # without parameters: the map's probability of every cell from the third on
            for x_deg, y_deg in zip(path.x_deg[2:], path.y_deg[2:], strict=True):
                cell = tuple(int(it) for it in grid.cell_of(y_deg, x_deg))
                nats += float(np.log(train.maps[path.picture][cell]))
        assert row["saliency_baseline_evidence_nats"] == pytest.approx(nats)
        posterior = validation.fits.posterior("local_saliency", 1, data_set)
        assert row["local_saliency_evidence_nats"] == posterior.samples.log_evidence_nats[0]
        best = max(NAMES, key=lambda name: row[f"{name}_evidence_nats"])
        assert row["winner_evidence"] == best


def test_what_comes_from_a_model_with_a_gaze_is_won_by_it(done):
    """Its steps are some 0.5 bits better predicted by it, with a standard error of 0.1."""
    table = done[2].data_sets.set_index("truth")
    assert table.loc["local_saliency", "winner_held_out"] == "local_saliency"
    assert table.loc["local_saliency", "winner_evidence"] == "local_saliency"


@pytest.mark.slow
def test_policies_that_alternate_are_told_from_one_that_does_not(tmp_path):
    """Data of Fixed Choice are won by it, by much more than the error of the lead."""
    models = {name: named_model(name) for name in ("fixed_choice", "local_saliency")}
    recovery = ModelRecovery.of(tmp_path, models, small_data("ann", "cleo"), seed=1)
    found = recovery.judge(recovery.fit(Here(2)), draws=20)
    rich = found.data_sets[found.data_sets["truth"] == "fixed_choice"]
    assert rich["winner_held_out"].tolist() == ["fixed_choice"] * 2
    assert (rich["lead_held_out"] > 2 * rich["lead_error_held_out"]).all()


def test_mistakes_are_named(tmp_path):
    models = {name: named_model(name) for name in NAMES}
    data = small_data("ann")
    with pytest.raises(InputError, match="1 model: to see whether models can be told apart"):
        ModelRecovery.of(tmp_path, {NAMES[0]: models[NAMES[0]]}, data)
    with pytest.raises(InputError, match="observer ann saw 2 pictures, of which 1 would be held out"):
        ModelRecovery.of(tmp_path, models, data.select(pictures=["beach", "tower"]))
    with pytest.raises(InputError, match="1 true models and 1 winners, with 'z' among them"):
        confusion_matrix(["a"], ["z"], ["a", "b"])
    assert list(tmp_path.iterdir()) == []


def test_keys_are_of_the_model_and_the_observer_alone(done, tmp_path):
    """Another model beside them, or another order, changes nothing in what is simulated."""
    validation = done[1]
    name = "saliency_baseline: ann"
    models = {"saliency_baseline": named_model("saliency_baseline"), "other": named_model("saliency_baseline")}
    other = ModelRecovery.of(tmp_path, dict(reversed(models.items())), small_data("ann"), seed=2).simulated()
    assert other[name].fingerprint() == validation.data[name].fingerprint()
    assert other["other: ann"].paths.x_deg[0, 0] != other[name].paths.x_deg[0, 0]
