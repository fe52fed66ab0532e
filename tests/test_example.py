"""The built-in example data set: what it promises, and that its seed decides everything."""

import numpy as np
import pytest

from foveate.data.grid import Extent
from foveate.errors import InputError
from foveate.example import OBSERVERS, PICTURES, example_data


@pytest.fixture(scope="module")
def example():
    return example_data()


def test_it_has_six_observers_on_twelve_pictures_with_about_25_fixations_each(example):
    paths = example.data.paths
    assert paths.observers == sorted(OBSERVERS)
    assert paths.pictures == sorted(PICTURES)
    assert len(paths) == 6 * 12
    assert paths.length.min() >= 18
    assert paths.length.max() <= 32
    assert len(np.unique(paths.length)) > 8
    assert 23 < paths.length.mean() < 27
    assert example.data.maps.grid.shape == (64, 64)
    assert paths.extent == Extent(24.0, 32.0, "bottom")


def test_padding_is_empty_in_every_column(example):
    paths = example.data.paths
    assert np.isfinite(paths.x_deg[paths.real]).all()
    for values in (paths.x_deg, paths.y_deg, paths.duration_s):
        assert np.isnan(values[~paths.real]).all()
    assert (paths.fixation[~paths.real] == 0).all()
    policy = paths.columns["policy"]
    assert (policy[~paths.real] == -1).all()
    assert (policy[:, :2] == -1).all()
    assert set(policy[:, 2:][paths.real[:, 2:]].tolist()) == {0, 1}


def test_maps_have_no_empty_cell_and_differ_between_pictures(example):
    maps = example.data.maps.values
    assert maps.min() > 0
    flat = maps.reshape(len(maps), -1)
    assert np.corrcoef(flat)[np.triu_indices(len(maps), 1)].max() < 0.9
    assert (maps.max(axis=(1, 2)) * 4096 > 4).all()  # at least one clear peak, relative to uniform


def test_the_map_predicts_about_as_much_as_on_photographs(example):
    gain_bits = np.nanmean(np.log2(example.data.maps.at(example.data.paths) * 4096))
    assert 0.7 < gain_bits < 1.4  # 0.9 on the real data


def test_observers_move_as_differently_as_their_true_parameters_say(example):
    paths = example.data.paths

    def local_step_deg(observer: str) -> float:
        mine = paths.select(observers=[observer])
        local = mine.columns["policy"][:, 1:] == 0
        return float(np.hypot(np.diff(mine.x_deg), np.diff(mine.y_deg))[local].mean())

    truth = {name: np.sqrt(np.sum(model.parameters["epsilon"])) for name, model in example.models.items()}
    order = sorted(truth, key=lambda name: truth[name])
    assert local_step_deg(order[0]) < 0.6 * local_step_deg(order[-1])
    assert np.corrcoef([local_step_deg(name) for name in order], [truth[name] for name in order])[0, 1] > 0.9


def test_durations_look_like_those_of_fixations(example):
    duration_s = example.data.paths.duration_s[example.data.paths.real]
    assert 0.23 < np.median(duration_s) < 0.27
    assert duration_s.min() > 0.03
    assert duration_s.max() < 2


def test_the_seed_decides_everything(example):
    again, other = example_data(1), example_data(2)
    np.testing.assert_array_equal(again.data.maps.values, example.data.maps.values)
    assert again.data.paths.to_table().equals(example.data.paths.to_table())
    assert not np.array_equal(other.data.maps.values, example.data.maps.values)
    assert not np.array_equal(other.data.paths.length, example.data.paths.length)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("seed", [-1, 1.5, None, True])
def test_a_seed_must_be_a_whole_number(seed):
    with pytest.raises(InputError, match=r"seed = .*: give a whole number, 0 or more"):
        example_data(seed)
