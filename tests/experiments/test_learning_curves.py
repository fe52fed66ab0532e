"""Learning curves: what fits see, what is done again, and what comes out."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import foveate
from foveate import InputError
from foveate.experiments.learning_curves import KINDS, WEIGHTS, LearningCurves
from foveate.experiments.learning_curves import SETTINGS as SETTINGS_OF
from foveate.figures.learning_curves import gain, learning_curves, learning_gains

SETTINGS = {"chains": 2, "warmup": 20, "draws": 20}


def curves(folder, data: foveate.Dataset) -> LearningCurves:
    folds = foveate.random_folds(data.paths.pictures, 3, 1)
    model = foveate.named_model("local_saliency")
    return LearningCurves.of(folder, model, data, folds, seed=1, numbers=(1, 4), chosen=(2,), settings=SETTINGS)


@pytest.fixture(scope="module")
def data() -> foveate.Dataset:
    whole = foveate.example_data(seed=1).data
    return whole.select(observers=["ann", "ben", "cleo"], pictures=whole.paths.pictures[:6])


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data) -> LearningCurves:
    made = curves(tmp_path_factory.mktemp("curves"), data)
    made.run()
    return made


def test_training_sets_are_nested_and_hold_no_test_picture(finished):
    small, large = ({who: set(own.paths.pictures) for who, own in finished.training(2, n).items()} for n in (1, 4))
    for observer in finished.data:
        test = set(finished.test(observer, 2).paths.pictures)
        assert small[observer] < large[observer]
        assert not test & large[observer]
        assert len(test) == 2


def test_held_out_fixations_never_reach_a_fit(finished, data, tmp_path):
    """With every held-out scan path mirrored, the draws are the same to the last bit."""
    held_out = np.isin(data.paths.picture, finished.folds.test_pictures[1])
    mirrored = np.where(held_out[:, None], data.paths.extent.width_deg - data.paths.x_deg, data.paths.x_deg)
    other = foveate.Dataset(replace(data.paths, x_deg=mirrored), data.maps)
    assert other.fingerprint() != data.fingerprint()
    again = curves(tmp_path, other)
    again.run()
    for kind in KINDS:
        found = [made._read(made.file_of(kind, 1, 2), made._stamp(kind, 1, 2))[0] for made in (finished, again)]
        np.testing.assert_array_equal(found[0], found[1])


def test_finished_fits_are_not_done_again(finished, data, monkeypatch):
    def never(*arguments, **more):
        raise AssertionError("fitted again")

    monkeypatch.setattr("foveate.experiments.learning_curves.sampled", never)
    curves(finished.folder, data).run()


def test_fits_of_another_seed_are_refused(finished):
    with pytest.raises(InputError, match="another seed"):
        replace(finished, seed=2).run()


def test_more_pictures_than_a_fold_leaves_are_refused(finished, data):
    with pytest.raises(InputError, match="leaves 4"):
        LearningCurves.of("none", finished.model, data, finished.folds, seed=1, numbers=(5,))


@pytest.fixture(scope="module")
def by_weights(tmp_path_factory, data) -> LearningCurves:
    made = curves(tmp_path_factory.mktemp("weights"), data)
    made = replace(made, by=WEIGHTS, settings=SETTINGS_OF[WEIGHTS] | {"draws": 40})
    made.run()
    return made


def test_weights_and_chains_say_the_same(finished, by_weights):
    """Where data are many, the population's own spread matters little: means are within what so few draws tell."""
    for kind in KINDS:
        one, other = (
            made._read(made.file_of(kind, 4, 2), made._stamp(kind, 4, 2))[0] for made in (finished, by_weights)
        )
        assert one.shape[1:] == other.shape[1:]
        apart = (one.mean(axis=0) - other.mean(axis=0)) / other.std(axis=0)
        np.testing.assert_allclose(apart, 0.0, atol=1.0)
    assert by_weights.results()["curves"][0]["median_pareto_k"]["separate"] < 0.7


def test_another_way_of_drawing_is_refused(finished, data):
    with pytest.raises(InputError, match="say chains or weights"):
        LearningCurves.of("none", finished.model, data, finished.folds, seed=1, numbers=(1,), by="magic")


def test_results_have_every_kind_and_are_drawn(finished):
    results = finished.results()
    assert finished.write().exists()
    assert [it["pictures"] for it in results["curves"]] == [1, 4]
    for curve in results["curves"]:
        means = {row["model"]: row["mean"] for row in curve["models"]}
        assert set(means) == set(KINDS)
        for kind in ("separate", "pooled"):
            difference, low, high = gain(curve, kind)
            assert difference == pytest.approx(means["hierarchical"] - means[kind])
            assert low < difference < high
    first, second = Figure().subplots(1, 2)
    assert len(learning_curves(results, first).get_legend().get_texts()) == 3
    assert len(learning_gains(results, second).get_legend().get_texts()) == 2
