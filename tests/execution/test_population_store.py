"""Hierarchical fits in folders: what is written is read again, and a run that was stopped goes on."""

from typing import Any

import jax
import numpy as np
import pytest

import foveate
from foveate import FitStore, InputError, PopulationStore
from foveate.execution.population_store import CHAINS, POPULATION, START
from foveate.inference.samples import Progress

SETTINGS: dict[str, Any] = {"chains": 2, "warmup": 20, "draws": 20}


@pytest.fixture(scope="module")
def data() -> foveate.Dataset:
    whole = foveate.example_data(seed=1).data
    return whole.select(observers=["ann", "ben", "cleo"], pictures=whole.paths.pictures[:4])


@pytest.fixture(scope="module")
def model() -> foveate.Model:
    return foveate.named_model("local_saliency")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, data, model) -> tuple[PopulationStore, foveate.PopulationPosterior]:
    store = PopulationStore.resume(tmp_path_factory.mktemp("population"), model, data, 1, SETTINGS)
    return store, store.fit(data)


def test_what_is_read_is_what_was_fitted(finished, data, model):
    store, _ = finished
    fitted = foveate.fit_population(model, data, jax.random.key(1), **SETTINGS)
    found = PopulationStore.read(store.folder).load()
    np.testing.assert_array_equal(found.mean, fitted.mean)
    np.testing.assert_array_equal(found.spread, fitted.spread)
    assert list(found.posteriors) == ["ann", "ben", "cleo"]
    for observer, posterior in found.posteriors.items():
        np.testing.assert_array_equal(posterior.samples.real, fitted.posteriors[observer].samples.real)
    assert found.diagnosis == fitted.diagnosis
    assert found.table().equals(fitted.table())


def test_observers_fits_are_ordinary_ones(finished, data):
    store, posterior = finished
    fits = {it.observer: it for it in FitStore.read(store.folder).load_all()}
    assert set(fits) == set(posterior.posteriors)
    scores = foveate.score_posterior(fits["ben"], data.select(observers=["ben"]), draws=10)
    assert np.isfinite(scores.mean_over_fixations()).all()


@pytest.mark.parametrize("after", ["climbing", "warm-up", "drawing"])
def test_a_run_that_was_stopped_goes_on_with_the_same_numbers(finished, data, model, tmp_path, after):
    def stop(progress: Progress) -> None:
        if progress.stage == after and progress.done > 3:
            raise KeyboardInterrupt

    store = PopulationStore.resume(tmp_path / "fit", model, data, 1, SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        store.fit(data, report=stop)
    assert not store.finished
    assert (store.folder / START).exists() == (after != "climbing")
    assert (store.folder / CHAINS).exists() == (after != "climbing")
    stages: list[str] = []
    again = PopulationStore.resume(tmp_path / "fit", model, data, 1, SETTINGS)
    found = again.fit(data, report=lambda progress: stages.append(progress.stage))
    assert ("climbing" in stages) == (after == "climbing")
    np.testing.assert_array_equal(found.mean, finished[1].mean)
    assert (store.folder / POPULATION).exists()
    assert not (store.folder / CHAINS).exists()


def test_other_settings_and_data_are_refused(finished, data, model):
    store, _ = finished
    with pytest.raises(InputError, match="seed"):
        PopulationStore.resume(store.folder, model, data, 2, SETTINGS)
    with pytest.raises(InputError, match="not the data"):
        store.fit(data.select(observers=["ann", "ben"]))
    with pytest.raises(InputError, match="3 or more"):
        foveate.fit_population(model, data.select(observers=["ann", "ben"]), jax.random.key(1))


def test_a_damaged_file_is_named(finished, tmp_path, data, model):
    store = PopulationStore.resume(tmp_path, model, data, 1, SETTINGS)
    store.fits.begin()
    (tmp_path / START).write_bytes((finished[0].folder / START).read_bytes()[:-4000])
    with pytest.raises(InputError, match=START):
        store.fit(data)


def test_a_new_observer_varies_as_the_population_and_its_uncertainty(finished):
    """The law of total variance, from draws."""
    _, posterior = finished
    mean, sd = posterior.new_observer()
    draws = np.concatenate([posterior.draws_of_new_observer(key) for key in jax.random.split(jax.random.key(3), 200)])
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * sd.max() / np.sqrt(len(draws)))
    np.testing.assert_allclose(draws.std(axis=0), sd, rtol=0.1)
