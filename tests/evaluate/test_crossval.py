"""Cross-validation: nothing that is held out reaches a fit, and finished fits are kept."""

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.errors import InputError
from foveate.evaluate.ceiling import GOLD, gold_standard, shares_of_gold
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import Fitted, FittedFolds
from foveate.evaluate.folds import Folds, random_folds
from foveate.evaluate.heldout import centre_bias, score_held_out
from foveate.evaluate.scores import score_posterior
from foveate.evaluate.simulated import observed_paths, simulated_data_sets
from foveate.example import example_data
from foveate.execution.places import Here
from foveate.model.catalogue import named_model

OBSERVERS = ("ann", "ben")
MODELS = {name: named_model(name) for name in ("saliency_baseline", "local_saliency")}


def everyone() -> Dataset:
    data = example_data().data
    return Dataset(data.paths, data.maps.resample(Grid(16, 16, data.maps.grid.extent)))


def small_data() -> Dataset:
    return everyone().select(observers=list(OBSERVERS))


def folds_of(data: Dataset) -> Folds:
    return random_folds(data.paths.pictures, 2, seed=1)


def fitted(folder, data: Dataset, **settings) -> tuple[CrossValidation, list[str]]:
    validation = CrossValidation.of(folder, MODELS, data, folds_of(data), seed=4, **settings)
    names: list[str] = []
    validation.fits.fit(Here(1), lambda task, posterior, done, total: names.append(f"{task.name}, {done} of {total}"))
    return validation, names


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    return (*fitted(folder, small_data()), folder)


def test_every_model_with_parameters_is_fitted_once_to_every_observer_and_fold(done):
    validation, names, folder = done
    assert names == [
        "model local_saliency, fold 1, observer ann, 1 of 4",
        "model local_saliency, fold 1, observer ben, 2 of 4",
        "model local_saliency, fold 2, observer ann, 3 of 4",
        "model local_saliency, fold 2, observer ben, 4 of 4",
    ]
    assert fitted(folder, small_data())[1] == []  # nothing is left to do
    assert validation.fits.posterior("local_saliency", 2, "ben").observer == "ben"


def test_changing_what_is_held_out_changes_no_bit_of_the_fit(done, tmp_path):
    validation, _, _ = done
    data = small_data()
    held_out = folds_of(data).test_pictures[0]
    moved = np.isin(data.paths.picture, held_out)
    x_deg = np.where(moved[:, None], data.paths.extent.width_deg - data.paths.x_deg, data.paths.x_deg)
    values = data.maps.values.copy()
    for picture in held_out:
        values[data.maps.pictures.index(picture)] = 1 / data.maps.grid.cells
    other = Dataset(replace(data.paths, x_deg=x_deg), replace(data.maps, values=values))
    changed, _ = fitted(tmp_path, other, chosen_folds=(1,))
    for observer in OBSERVERS:
        before, after = (it.fits.posterior("local_saliency", 1, observer).samples for it in (validation, changed))
        assert np.array_equal(before.real, after.real)
        first, second = (it.test(observer, 1).paths.x_deg for it in (validation, changed))
        assert not np.array_equal(first, second, equal_nan=True)  # the held-out side did change


def test_models_share_one_copy_of_what_a_fit_sees(done):
    validation, _, _ = done
    seen = validation.fits.training
    assert seen("local_saliency", 1, "ben") is seen("another", 1, "ben")
    assert seen("local_saliency", 1, "ben") is not seen("local_saliency", 2, "ben")


def test_fits_of_other_training_data_are_refused(done):
    _, _, folder = done
    with pytest.raises(InputError, match="holds fits with other data"):
        fitted(folder, small_data().select(observers=["ann"]))


def test_scores_are_those_of_each_posterior_on_its_test_pictures(done):
    validation, _, _ = done
    bias = centre_bias(validation)
    found = score_held_out(
        validation, FittedFolds.of(validation.fits, "local_saliency", 5), jax.random.key(1), bias=bias
    )
    table = found.scores.table()
    assert len(table) == sum(it.paths.fixations - 2 * len(it.paths) for it in validation.data.values())
    test = validation.test("ben", 2)
    alone = score_posterior(
        validation.fits.posterior("local_saliency", 2, "ben"), test, draws=5, centre_bias=bias
    ).table()
    rows = table[(table["observer"] == "ben") & table["picture"].isin(test.paths.pictures)]
    for column in ("log_probability_nats", "predictive_nss", "auc", "centre_bias_nats"):
        assert rows[column].to_numpy() == pytest.approx(alone[column].to_numpy(), rel=1e-12)
    assert 0.5 < found.shuffled.auc < found.roc.auc < 1


def test_the_baseline_needs_no_fit_and_gains_nothing_over_itself(done):
    validation, _, _ = done
    scores = score_held_out(
        validation, FittedFolds.of(validation.fits, "saliency_baseline", 50), jax.random.key(1)
    ).scores
    assert scores.draws == 1
    assert scores.mean_over_fixations()["gain_over_static_map_bits"] == pytest.approx(0, abs=1e-12)


def test_simulated_paths_are_those_that_were_observed_in_all_but_their_places(done):
    validation, _, _ = done
    observed = observed_paths(validation)
    sets = list(
        simulated_data_sets(validation, FittedFolds.of(validation.fits, "local_saliency", 2), jax.random.key(2))
    )
    for paths in sets:
        for name in ("observer", "picture", "trial", "length"):
            assert sorted(map(str, getattr(paths, name))) == sorted(map(str, getattr(observed, name)))
    assert not np.array_equal(sets[0].x_deg, sets[1].x_deg, equal_nan=True)


def test_draws_are_evenly_picked(done):
    posterior = done[0].fits.posterior("local_saliency", 1, "ann")
    every = posterior.samples.real.reshape(-1, 2)
    some = Fitted.of(posterior, 10).vectors
    assert some.shape == (10, 2)
    assert all((every == vector).all(axis=1).any() for vector in some)


def test_mistakes_are_named(tmp_path):
    data = small_data()
    with pytest.raises(InputError, match="no model given"):
        CrossValidation.of(tmp_path, {}, data, folds_of(data))
    with pytest.raises(InputError, match="fold 3: there are folds 1 to 2"):
        CrossValidation.of(tmp_path, MODELS, data, folds_of(data), chosen_folds=(1, 3))
    with pytest.raises(InputError, match="the data of observer 'ben' are of ann"):
        CrossValidation.of(tmp_path, MODELS, {"ben": data.select(observers=["ann"])}, folds_of(data))


def test_the_gold_standard_is_where_everybody_else_looked():
    data = small_data()
    validation = CrossValidation.of("unused", MODELS, data, folds_of(data), chosen_folds=(2,), pool=everyone().paths)
    found = gold_standard(validation)
    test = validation.test("ben", 2)
    rows = found.scores.labels["observer"] == "ben"
    expected = []
    for path in test.paths:
        others = [it for it in everyone().paths if it.picture == path.picture and it.observer != "ben"]
        x, y = (np.concatenate([getattr(it, name) for it in others]) for name in ("x_deg", "y_deg"))
        expected += gold_nats(x, y, path.x_deg[2:], path.y_deg[2:], data.maps.grid, found.bandwidth_deg)
    assert found.scores.predictive["log_probability_nats"][rows] == pytest.approx(np.array(expected), rel=1e-9)


def gold_nats(x, y, at_x, at_y, grid: Grid, bandwidth_deg: float) -> list[float]:
    """Log density at some places of the smoothed fixations, by its definition, cell by cell."""
    rows, columns = grid.row_centres_deg, grid.column_centres_deg
    values = np.zeros(grid.shape)
    for i in range(grid.rows):
        for j in range(grid.columns):
            spread = np.exp(
                -((rows[:, None] - rows[i]) ** 2 + (columns[None, :] - columns[j]) ** 2) / (2 * bandwidth_deg**2)
            )
            at = grid.cell_of(y, x)
            values[i, j] = spread[at].sum() / spread.sum()
    values = 0.99 * values / values.sum() + 0.01 / grid.cells
    return np.log(values[grid.cell_of(at_y, at_x)]).tolist()


def test_a_share_of_the_gold_standard_is_the_ratio_of_means():
    rng = np.random.default_rng(3)
    steps = pd.DataFrame(
        [(who, picture, number) for who in range(8) for picture in range(6) for number in range(3, 12)],
        columns=["observer", "picture", "fixation"],
    )
    gold = 1 + rng.normal(size=8)[steps["observer"]] * 0.1 + rng.normal(size=6)[steps["picture"]] * 0.2
    noise = rng.normal(size=(2, len(steps)))
    table = pd.concat(
        [
            steps.assign(model=GOLD, value=gold + 0.5 * noise[0]),
            steps.assign(model="twice", value=2 * (gold + 0.5 * noise[0])),
            steps.assign(model="less", value=0.8 * gold + 0.5 * noise[1]),
        ]
    )
    table["value"] *= 3  # bits of another size change no share
    found = shares_of_gold(table).set_index("model")
    assert found.loc["twice", ["share", "low", "high"]].to_numpy() == pytest.approx(2)  # always twice: no error at all
    means = table.groupby("model")["value"].mean()
    assert found.loc["less", "share"] == pytest.approx(means["less"] / means[GOLD])
    assert found.loc["less", "low"] < 0.8 < found.loc["less", "high"]
    # The error of the ratio against resampled observers (pictures are few and hardly matter to a ratio).
    each = table.groupby(["model", "observer"])["value"].sum().unstack("model")
    some = [each.iloc[rng.integers(0, 8, 8)].sum() for _ in range(2000)]
    spread = np.std([it["less"] / it[GOLD] for it in some])
    width = (found.loc["less", "high"] - found.loc["less", "low"]) / 2
    assert 1.0 < width / spread < 4.0
