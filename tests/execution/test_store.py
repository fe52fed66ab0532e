"""A folder of fits: what is written is whole, what is resumed is the same run, and nothing of another is touched."""

import json
from dataclasses import replace

import numpy as np
import pytest
from jax import random

from foveate import Extent, Grid, InputError, Posterior, SaliencyMaps, named_model, simulate
from foveate.data.dataset import Dataset
from foveate.data.scanpaths import ScanPaths
from foveate.execution.run import Run
from foveate.execution.store import RUN, FitStore
from foveate.inference.diagnosis import diagnose
from foveate.inference.fit import observer_key
from foveate.inference.samples import Samples

NAMES = ("ann", "Ann", "a/b", "a%2Fb", "..", "", " x\n", "é", "run", "x" * 300, "x" * 299 + "y")
MODEL = named_model("local_saliency")


@pytest.fixture(scope="module")
def data() -> Dataset:
    grid = Grid(8, 8, Extent(8.0, 8.0))
    weights = np.random.default_rng(0).gamma(2.0, size=(8, 8))
    maps = SaliencyMaps.from_arrays({"p": weights}, grid.extent, normalise=True)
    paths = simulate({"ann": MODEL, "ben": MODEL}, maps, 12, random.key(0))
    return Dataset(paths, maps)


@pytest.fixture(scope="module")
def run(data) -> Run:
    return Run.of(MODEL, data, seed=7)


def posterior_of(run: Run, observer) -> Posterior:
    """Draws from nowhere, but a whole posterior as a fit of this run makes it."""
    real = np.random.default_rng(5).normal(size=(2, 50, len(run.model.labels)))
    samples = Samples(real, run.sampler, {}, {"lp": real[..., 0]}, 100)
    key = np.asarray(random.key_data(observer_key(run.key, observer))).ravel().tolist()
    return Posterior(run.model, observer, samples, diagnose(run.model.labels, samples), {"key": key, "seconds": 1.0})


def contents(folder) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_what_is_saved_comes_back(run, tmp_path):
    store = FitStore.resume(tmp_path / "new" / "fits", run)
    assert not store.folder.exists()
    with store.writing():
        store.save(posterior_of(run, "ben"))
    assert store.finished() == ["ben"]
    again = FitStore.read(store.folder)
    assert again.run.differences(run) == []
    (loaded,) = again.load_all()
    assert loaded.observer == "ben"
    np.testing.assert_array_equal(loaded.samples.real, posterior_of(run, "ben").samples.real)


def test_any_names_of_observers_give_files_of_their_own(run, tmp_path):
    store = FitStore(tmp_path, replace(run, observers=NAMES))
    files = [store.file_of(name) for name in NAMES]
    assert len({file.name.casefold() for file in files}) == len(NAMES)  # 'Ann' is 'ann' on some file systems
    for file in files:
        assert file.parent == tmp_path
        assert len(file.name) < 200
        assert file.name.isascii()
        file.touch()
    assert store.finished() == list(NAMES)


def test_plain_names_stay_readable(run, tmp_path):
    store = FitStore(tmp_path, replace(run, observers=("P01", "P02", 3)))
    assert [store.file_of(name).name for name in store.run.observers] == [
        "observer-P01.nc",
        "observer-P02.nc",
        "observer-3.nc",
    ]


def test_leftovers_of_a_killed_run_are_not_fits_and_are_removed(run, tmp_path):
    for name in (f".{RUN}.{'0' * 32}.tmp", f".observer-ann.nc.{'a1' * 16}.tmp"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / ".observer-ann.nc.tmp").write_bytes(b"not ours")
    with pytest.raises(InputError, match=r"no run\.json"):
        FitStore.resume(tmp_path, run)
    (tmp_path / ".observer-ann.nc.tmp").unlink()
    store = FitStore.resume(tmp_path, run)
    assert store.finished() == []
    with store.writing():
        assert contents(tmp_path) == {}


def test_a_write_that_fails_leaves_nothing(run, tmp_path, monkeypatch):
    store = FitStore.resume(tmp_path, run)

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(InputError, match="cannot be written"):
        store.save(posterior_of(run, "ann"))
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 8}, "seed 7, not 8"),
        ({"sampler": "nuts"}, "sampler importance, not nuts"),
        ({"settings": {"draws": 10}}, "the sampler's own settings, not draws 10"),
        ({"data": "another"}, "other data"),
        ({"version": "99"}, "not 99"),
        ({"model": named_model("full")}, "model 'local_saliency', not 'full'"),
        ({"model": named_model("local_saliency", priors="published")}, "other priors for xi"),
    ],
)
def test_a_folder_of_another_run_is_refused_and_stays_as_it_is(run, tmp_path, change, words):
    store = FitStore.resume(tmp_path, run)
    store.save(posterior_of(run, "ann"))
    before = contents(tmp_path)
    with pytest.raises(InputError) as refused:
        FitStore.resume(tmp_path, replace(run, **change))
    assert words in str(refused.value)
    assert "nothing was overwritten" in str(refused.value)
    assert contents(tmp_path) == before


def test_another_repulsion_is_another_run(run, data):
    released, printed = (Run.of(named_model("full", repulsion=it), data, 7) for it in ("released", "printed"))
    assert "PrintedRepelledGlobal" in " ".join(released.differences(printed))


def test_values_that_a_model_comes_with_make_no_other_run(run, data):
    """The fit forgets them; what counts are parts and priors."""
    assert run.differences(Run.of(named_model("local_saliency", xi=(1.0, 2.0)), data, 7)) == []


def test_a_folder_with_other_files_is_refused(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        FitStore.resume(tmp_path, run)
    with pytest.raises(InputError, match="is a file"):
        FitStore.resume(tmp_path / "notes.txt", run)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_where_a_study_keeps_its_fits_is_said(run, tmp_path):
    with pytest.raises(InputError, match=r"that `foveate fit` made\.$"):
        FitStore.read(tmp_path)
    for fold in (1, 2):
        FitStore.resume(tmp_path / f"fits/{run.model.name}/fold-{fold}", run).save(posterior_of(run, "ann"))
    with pytest.raises(InputError, match=rf"fits/{run.model.name}/fold-1, one of 2 with fits"):
        FitStore.read(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 99}', '{"format": 1, "model": 3}'])
def test_a_run_file_that_is_not_ours_is_refused(run, tmp_path, text):
    (tmp_path / RUN).write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        FitStore.resume(tmp_path, run)
    assert (tmp_path / RUN).read_text() == text


def test_a_damaged_fit_is_named_and_not_replaced(run, data, tmp_path):
    store = FitStore.resume(tmp_path, run)
    file = store.save(posterior_of(run, "ann"))
    whole = file.read_bytes()
    place = whole.index(np.random.default_rng(5).normal(size=2).tobytes())
    for bad in (whole[:0], whole[:100], whole[:-1000], b"text", whole[:place] + bytes(16) + whole[place + 16 :]):
        file.write_bytes(bad)
        for use in (store.load_all, lambda: list(store.fit_each(data))):
            with pytest.raises(InputError, match=r"observer-ann\.nc.*delete it"):
                use()
        assert file.read_bytes() == bad
        assert store.finished() == ["ann"]


def test_a_fit_from_elsewhere_is_named(run, tmp_path):
    store = FitStore.resume(tmp_path, run)
    store.save(posterior_of(run, "ann"))
    posterior_of(replace(run, seed=8), "ben").save(store.file_of("ben"))
    with pytest.raises(InputError, match=r"observer-ben\.nc belongs to another run"):
        store.load_all()
    store.file_of("ben").rename(tmp_path / "observer-zoe.nc")
    with pytest.raises(InputError, match=r"observer-zoe\.nc of no observer"):
        store.load_all()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"sampler": "nuts"}, "sampler"),
        ({"settings": {"draws": 50}}, "settings"),  # the folder's own run names no settings
        ({"data": "another"}, "data"),
        ({"version": "0.0"}, "version"),
    ],
)
def test_a_fit_of_another_run_with_the_same_seed_is_named(run, tmp_path, change, word):
    """As when a file was copied from the folder of another run."""
    here, there = FitStore.resume(tmp_path / "here", run), FitStore.resume(tmp_path / "there", replace(run, **change))
    file = here.save(posterior_of(run, "ann"))
    file.write_bytes(there.save(posterior_of(there.run, "ann")).read_bytes())
    with pytest.raises(InputError, match=rf"observer-ann\.nc belongs to another run .*differs in {word}\)"):
        here.load_all()


def test_a_fit_without_a_stamp_is_judged_by_what_it_says_itself(run, data, tmp_path):
    """Saved from Python, not by the store: sampler, settings and version are its own, the data's fingerprint the
    observer's."""
    run = replace(run, settings={"draws": 50})
    store = FitStore.resume(tmp_path, run)
    store.save(posterior_of(run, "ann"))
    good, file = posterior_of(run, "ben"), store.file_of("ben")
    for sampler, settings, differs in (
        ("importance", {"draws": 50}, None),
        ("smc", {"draws": 50, "instead_of": "importance"}, None),
        ("smc", {"draws": 50}, "sampler"),
        ("importance", {"draws": 60}, "settings"),
    ):
        replace(good, samples=replace(good.samples, sampler=sampler, settings=settings)).save(file)
        if differs is None:
            assert store.load("ben").samples.sampler == sampler
        else:
            with pytest.raises(InputError, match=rf"differs in {differs}\)"):
                store.load("ben")
    replace(good, provenance={**good.provenance, "versions": {"foveate": "0.0"}}).save(file)
    with pytest.raises(InputError, match=r"differs in version\)"):
        store.load("ben")
    replace(good, provenance={**good.provenance, "data": "another"}).save(file)
    assert store.load("ben").observer == "ben"  # nobody knows what it should have seen
    with pytest.raises(InputError, match=r"observer-ben\.nc.*differs in data\)"):
        list(store.fit_each(data))


def test_a_run_that_came_in_between_is_seen_once_the_folder_is_locked(run, tmp_path):
    """Both opened the folder when it was empty; the second one gets it when the first has left."""
    first, second = (FitStore.resume(tmp_path, replace(run, seed=seed)) for seed in (7, 8))
    with first.writing():
        first.save(posterior_of(first.run, "ann"))
    before = contents(tmp_path)
    with pytest.raises(InputError, match="seed 7, not 8: nothing was overwritten"), second.writing():
        pass
    assert contents(tmp_path) == before


def test_two_runs_do_not_write_into_one_folder_at_once(run, tmp_path):
    store = FitStore.resume(tmp_path, run)
    with store.writing(), pytest.raises(InputError, match="another run is writing"), FitStore(tmp_path, run).writing():
        pass
    with store.writing():
        pass


def test_fits_go_on_where_they_stopped_and_are_the_same(run, data, tmp_path):
    """The first consumer leaves after one fit; the second one gets that from its file and fits the other."""
    whole = {it.observer: it for it in FitStore.resume(tmp_path / "whole", run).fit_each(data, workers=1)}
    store = FitStore.resume(tmp_path / "parts", run)
    fits = store.fit_each(data, ["ben"], workers=1)
    assert next(fits).observer == "ben"
    fits.close()
    begun = []
    again = list(store.fit_each(data, workers=2, report=lambda observer, _: begun.append(observer)))
    assert set(begun) == {"ann"}
    assert [it.observer for it in again] == ["ben", "ann"]
    for posterior in again:
        np.testing.assert_array_equal(posterior.samples.real, whole[posterior.observer].samples.real)


def test_data_of_another_run_and_unknown_observers_are_refused(run, data, tmp_path):
    store = FitStore.resume(tmp_path, run)
    with pytest.raises(InputError, match="not the data of the run"):
        next(store.fit_each(data.select(observers=["ann"])))
    with pytest.raises(InputError, match="zoe"):
        next(store.fit_each(data, ["zoe"]))


def test_an_observer_with_too_few_steps_is_named_before_anything_is_fitted(data, tmp_path):
    table = data.paths.to_table()
    few = table[(table["observer"] == "ann") | (table["fixation"] <= 3)]
    short = Dataset(ScanPaths.from_table(few, data.paths.extent), data.maps)
    run = Run.of(MODEL, short, 1)
    with pytest.raises(InputError, match="observer ben: 1 steps"):
        next(FitStore.resume(tmp_path, run).fit_each(short))
    assert contents(tmp_path) == {}


def test_the_run_file_says_what_was_done(run, tmp_path):
    store = FitStore.resume(tmp_path, run)
    store.save(posterior_of(run, "ann"))
    said = json.loads((tmp_path / RUN).read_text())
    assert (said["seed"], said["sampler"], said["observers"]) == (7, "importance", ["ann", "ben"])
    assert said["model"]["name"] == "local_saliency"
