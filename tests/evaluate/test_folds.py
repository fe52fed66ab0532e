"""Folds: every picture is held out once, and nothing of it reaches the training side."""

from dataclasses import replace

import numpy as np
import pytest

from foveate.data.dataset import Dataset
from foveate.data.density import density_maps, leave_one_out_maps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.folds import Folds, potsdam35_folds, random_folds
from foveate.example import example_data


@pytest.fixture(scope="module")
def data() -> Dataset:
    return example_data(seed=1).data


@pytest.fixture(scope="module")
def folds(data) -> Folds:
    return random_folds(data.paths.pictures, 4, seed=7)


def elsewhere(paths: ScanPaths, pictures: tuple, observers: list | None = None) -> ScanPaths:
    """The paths with all positions on these pictures mirrored."""
    changed = np.isin(paths.picture, pictures)
    if observers is not None:
        changed &= np.isin(paths.observer, observers)
    return replace(
        paths,
        x_deg=np.where(changed[:, None], paths.extent.width_deg - paths.x_deg, paths.x_deg),
        y_deg=np.where(changed[:, None], paths.extent.height_deg - paths.y_deg, paths.y_deg),
    )


def test_every_picture_is_held_out_once(data, folds):
    held_out = []
    for fold, train, test in folds.splits(data):
        assert set(train.paths.pictures) | set(test.paths.pictures) == set(data.paths.pictures)
        assert not set(train.paths.pictures) & set(test.paths.pictures)
        assert set(train.maps.pictures) == set(train.paths.pictures)
        assert train.paths.fixations + test.paths.fixations == data.paths.fixations
        assert tuple(test.paths.pictures) == tuple(sorted(folds.test_pictures[fold - 1]))
        assert all(folds.fold_of(picture) == fold for picture in test.paths.pictures)
        held_out += test.paths.pictures
    assert sorted(held_out) == data.paths.pictures


def test_held_out_fixations_do_not_reach_the_training_data(data, folds):
    """Maps are rebuilt from the changed fixations, so that a leak through them would show too."""

    def made_from(paths: ScanPaths) -> Dataset:
        return Dataset(paths, density_maps(paths, data.maps.grid, 1.0, uniform_share=0.01))

    for fold, held_out in enumerate(folds.test_pictures, start=1):
        before = folds.split(made_from(data.paths), fold)
        after = folds.split(made_from(elsewhere(data.paths, held_out)), fold)
        assert after[0].fingerprint() == before[0].fingerprint()
        assert after[1].fingerprint() != before[1].fingerprint()
        # the fingerprint leaves out durations and the rest
        assert after[0].paths.to_table().equals(before[0].paths.to_table())


def test_maps_without_the_observer_hold_none_of_what_is_scored(data, folds):
    """Changed fixations of the scored observer leave all that is known before scoring as it was."""
    observer, held_out = data.paths.observers[0], folds.test_pictures[0]

    def sides(paths: ScanPaths) -> tuple[Dataset, Dataset]:
        maps = leave_one_out_maps(paths, data.maps.grid, 1.0, uniform_share=0.01)
        return folds.split(Dataset(paths.select(observers=[observer]), maps[observer]), 1)

    before, after = sides(data.paths), sides(elsewhere(data.paths, held_out, [observer]))
    assert after[0].fingerprint() == before[0].fingerprint()
    np.testing.assert_array_equal(after[1].maps.values, before[1].maps.values)
    assert after[1].fingerprint() != before[1].fingerprint()


def test_random_folds_depend_on_the_seed_alone(data):
    pictures = list(data.paths.pictures)
    one = random_folds(pictures, 5, seed=3)
    assert random_folds(pictures[::-1], 5, seed=3) == one
    assert one.seed == 3
    assert random_folds(pictures, 5, seed=4).test_pictures != one.test_pictures
    assert random_folds(np.arange(6), 3, seed=0) == random_folds(range(6), 3, seed=0)
    # written down once: other numbers here are other folds for everybody who has used them
    assert random_folds(range(1, 8), 3, seed=0).test_pictures == ((1, 3, 6), (4, 7), (2, 5))


@pytest.mark.parametrize("count", range(2, 12))
def test_sizes_differ_by_one_at_most(count):
    sizes = [len(fold) for fold in random_folds(range(11), count, seed=1).test_pictures]
    assert sum(sizes) == 11
    assert max(sizes) - min(sizes) <= 1


def test_every_pair_of_pictures_shares_a_fold_as_often_as_chance_has_it():
    together = np.zeros((8, 8))
    for seed in range(400):
        for fold in random_folds(range(8), 2, seed).test_pictures:
            together[np.ix_(fold, fold)] += 1
    pairs = together[np.triu_indices(8, 1)] / 400
    # 28 pairs, each with probability 3/7: four standard errors are exceeded by chance in 0.2 % of such tables
    assert np.abs(pairs - 3 / 7).max() < 4 * np.sqrt(3 / 7 * 4 / 7 / 400)


def test_the_published_folds_are_those_of_the_data_description(potsdam35):
    folds = potsdam35_folds()
    assert folds.test_pictures[2] == (2, 8, 13, 19, 21, 30)
    assert sorted(folds.pictures) == list(range(1, 31))
    train, test = folds.split(potsdam35, 1)
    assert test.paths.pictures == [9, 10, 12, 15, 25, 27]
    assert len(train.paths.pictures) == 24


def test_mistakes_are_named(data, folds, unchecked_types):
    pictures = data.paths.pictures
    for make, message in (
        (lambda: Folds((tuple(pictures),)), "1 folds: give at least two"),
        (lambda: Folds((tuple(pictures[:3]), ())), "fold 2 has no pictures"),
        (lambda: Folds(((1, 2), (2, 3))), "picture 2 stands more than once"),
        (lambda: Folds(("beach", ("tower",))), r"give a list, \['beach'\]"),
        (lambda: Folds((("moon",), tuple(pictures))).split(data, 1), "picture moon of the folds not in the data"),
        (lambda: Folds(((pictures[0],), (pictures[1],))).split(data, 1), "in no fold, so it would never be tested"),
        (lambda: folds.split(data, 0), "fold = 0: there are folds 1 to 4"),
        (lambda: folds.split(data, 5), "fold = 5: there are folds 1 to 4"),
        (lambda: folds.split(data.paths, 1), "data is a ScanPaths"),
        (lambda: folds.fold_of("moon"), "picture 'moon' is in no fold"),
        (lambda: random_folds(pictures, 1, seed=1), "1 folds of"),
        (lambda: random_folds([1, 2], 3, seed=1), "3 folds of 2 pictures"),
        (lambda: random_folds([1, 1, 2], 2, seed=1), "picture 1 is given more than once"),
        (lambda: random_folds(pictures, 2, seed=None), "seed = None: give a whole number"),
    ):
        with pytest.raises(InputError, match=message):
            make()
