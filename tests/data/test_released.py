"""The released files: what they hold, and how a model sees them."""

import pickle

import numpy as np
import pytest

from foveate.data.grid import PUBLISHED_PX_DEG
from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS, released_px
from foveate.data.readers.released import RELEASED_GRID, SideOfFold, read_released
from foveate.errors import InputError


@pytest.fixture(scope="module")
def released(potsdam35_folder):
    return read_released(potsdam35_folder)


def sides(released) -> list[SideOfFold]:
    return [side for fold in released.folds for side in (fold.train, fold.test)]


def write(file, thing):
    file.write_bytes(pickle.dumps(thing, protocol=3))
    return file


def test_missing_and_wrong_files_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="there is no such file; give potsdam35's folder with its 'processed_data'"):
        read_released(tmp_path)
    monkeypatch.delenv("FOVEATE_POTSDAM35", raising=False)
    with pytest.raises(InputError, match="no folder given"):
        read_released()
    (tmp_path / "processed_data").mkdir()
    names = ("indices", "fixs", "sals", "test_fixs", "test_sals")
    for name in (*(f"{it}_for_cross_validation" for it in names), "saliencies_red_res_shuff"):
        write(tmp_path / "processed_data" / f"{name}.p", [np.zeros(2)])
    with pytest.raises(InputError, match="does not hold the folds as they were released"):
        read_released(tmp_path)


# --- what the released files hold ------------------------------------------------------------------------------------


def test_the_folds_are_those_of_the_data_description(released):
    assert len(released.folds) == 5
    for fold, test_pictures in zip(released.folds, POTSDAM35_FOLDS, strict=True):
        assert fold.test.pictures == test_pictures
        assert sorted((*fold.train.pictures, *test_pictures)) == list(range(1, 31))


def test_test_maps_are_those_of_the_picture_before(released):
    for fold in released.folds:
        assert fold.train.map_pictures == fold.train.pictures
        assert fold.test.map_pictures == tuple((picture - 2) % 30 + 1 for picture in fold.test.pictures)
    assert released.folds[0].test.map_pictures == (8, 9, 11, 14, 24, 26)
    assert sorted(released.shuffled_pictures) == list(range(1, 31))


def halved(maps: np.ndarray) -> np.ndarray:
    """Maps of half as many cells a side by cubic interpolation (a = -0.75, edges repeated), normalised."""
    outer, inner = -0.75 * (1.5**3 - 5 * 1.5**2 + 8 * 1.5 - 4), 1.25 * 0.5**3 - 2.25 * 0.5**2 + 1
    size = maps.shape[-1]
    for axis in (1, 2):
        padded = np.pad(maps, [(0, 0) if it != axis else (1, 1) for it in range(3)], mode="edge")
        parts = (np.take(padded, np.arange(shift, shift + size, 2), axis=axis) for shift in range(4))
        maps = sum(weight * part for weight, part in zip((outer, inner, inner, outer), parts, strict=True))
    return maps / maps.sum(axis=(1, 2), keepdims=True)


def test_maps_are_the_published_ones_of_the_pictures_that_they_are_said_to_be(released, potsdam35_fine):
    """Not sums of 2 x 2 cells, as in the corrected analysis, but interpolated; so no map can be taken for another."""
    expected = dict(zip(potsdam35_fine.maps.pictures, halved(potsdam35_fine.maps.values), strict=True))
    pairs = [(side.map_pictures, side.maps) for side in sides(released)]
    for pictures, maps in [*pairs, (released.shuffled_pictures, released.shuffled_maps)]:
        for picture, values in zip(pictures, maps, strict=True):
            np.testing.assert_allclose(values, expected[picture], rtol=0, atol=1e-15)


def test_fixations_are_those_of_the_corrected_reader_in_released_pixels(released, potsdam35):
    rows, columns = released_px(potsdam35.paths)
    keys = zip(potsdam35.paths.observer.tolist(), potsdam35.paths.picture.tolist(), strict=True)
    place = {key: index for index, key in enumerate(keys)}
    for side in sides(released):
        for picture, paths in zip(side.pictures, side.fixations_px, strict=True):
            assert len(paths) == 35
            for observer, path in enumerate(paths, start=1):
                index = place[observer, picture]
                inner = slice(1, potsdam35.paths.length[index] - 1)
                # x_max was rounded to four digits there: 1e-6 of 64 px
                np.testing.assert_allclose(path, [rows[index, inner], columns[index, inner]], atol=1e-4)


def test_exactly_one_path_has_nothing_to_predict(released):
    short = [
        (picture, observer, path.shape[1])
        for fold in released.folds
        for picture, paths in zip(fold.test.pictures, fold.test.fixations_px, strict=True)
        for observer, path in enumerate(paths, start=1)
        if path.shape[1] < 3
    ]
    assert short == [(13, 19, 1)]


# --- how a model sees them -------------------------------------------------------------------------------------------


def test_saliency_is_read_by_rounding_and_clamping(released):
    for side in sides(released):
        data = side.dataset()
        table = data.paths.to_table()
        rows = np.clip(np.rint(table["row_px"].to_numpy()).astype(int), 0, 63)
        columns = np.clip(np.rint(table["column_px"].to_numpy()).astype(int), 0, 63)
        index = np.array([side.pictures.index(picture) for picture in table["picture"]])
        expected = side.maps[index, rows, columns]
        np.testing.assert_array_equal(data.maps.at(data.paths)[data.paths.real], expected)


def test_distances_to_cells_are_those_to_whole_pixels(released):
    side = released.folds[0].test
    paths = side.dataset().paths
    row_px, column_px = paths.columns["row_px"], paths.columns["column_px"]
    inside = paths.real & (row_px <= 63.5) & (column_px <= 63.5)
    assert (paths.real & ~inside).sum() == side.moved
    for centres, values, pixels, px_deg in (
        (RELEASED_GRID.row_centres_deg, paths.y_deg, row_px, PUBLISHED_PX_DEG[0]),
        (RELEASED_GRID.column_centres_deg, paths.x_deg, column_px, PUBLISHED_PX_DEG[1]),
    ):
        found = (centres[:, None] - values[inside]) / px_deg
        np.testing.assert_allclose(found, np.arange(64.0)[:, None] - pixels[inside], atol=1e-9)
    assert RELEASED_GRID.cell_deg == pytest.approx((0.4014, 0.5017), abs=5e-5)


def log_n_px(position_px, variances_px2) -> np.ndarray:
    """Log of a Gaussian around a position in pixels, at cells that lie at whole pixels: not normalised."""
    by_row, by_column = (
        -((np.arange(64) - middle) ** 2) / (2 * variance) - 0.5 * np.log(variance)
        for middle, variance in zip(position_px, variances_px2, strict=True)
    )
    return by_row[:, None] + by_column[None, :]


def released_step(saliency: np.ndarray, before_px, epsilon, xi, b, s0) -> np.ndarray:
    """The full model's probability of every cell, written for whole pixels: s read by rounding and clamping."""
    here, there = (saliency[tuple(np.clip(np.rint(it).astype(int), 0, 63))] for it in (before_px[-1], before_px[-2]))
    rho = 1 / (1 + np.exp(-b * (here / there - s0)))
    near = np.exp(log_n_px(before_px[-1], epsilon))
    # densities: a common factor in log_n_px does not matter to one Gaussian, nor to the difference of two
    wide, narrow = np.exp(log_n_px(before_px[-1], xi)), np.exp(log_n_px(before_px[-1], np.divide(epsilon, 4)))
    far = saliency * np.maximum(wide - narrow, 0)
    return rho * near / near.sum() + (1 - rho) * far / far.sum()


def test_a_model_predicts_what_the_same_equations_say_in_whole_pixels(released):
    from foveate.model.catalogue import from_published
    from foveate.model.likelihood import step_log_likelihoods
    from foveate.model.steps import Steps

    parameters = {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 0.3, "s0": 3.0}
    side, observer = released.folds[3].test, 20
    data = side.dataset().select(observers=[observer])
    found = np.asarray(step_log_likelihoods(from_published("full", **parameters), Steps.of(data, short="skip")))
    compared = 0
    for index, picture in enumerate(data.paths.picture):
        place = side.pictures.index(picture)
        path = side.fixations_px[place][observer - 1].T
        for step in range(2, len(path)):
            if (path[step - 1] > 63.5).any():
                continue  # gaze was moved to the edge
            expected = released_step(side.maps[place], path[:step], **parameters)
            cell = tuple(np.clip(np.rint(path[step]).astype(int), 0, 63))
            assert found[index, step - 2] == pytest.approx(np.log(expected[cell]), rel=1e-9)
            compared += 1
    assert compared > 100


def test_twelve_fixations_are_moved_to_the_edge(released):
    assert sum(fold.test.moved for fold in released.folds) == 12
    assert sum(fold.test.dataset().paths.fixations for fold in released.folds) == 28_264 - 2 * 1_050


def test_scoring_from_the_second_fixation_scores_the_same_steps_and_one_more_a_path(released):
    from foveate.model.catalogue import from_published
    from foveate.model.likelihood import step_log_likelihoods
    from foveate.model.steps import Steps

    model = from_published("fixed_choice", epsilon=(25, 35), xi=(230, 280), rho=0.4)
    side = released.folds[2].test
    third, second = (side.dataset(scored_from=number).select(observers=[19]) for number in (3, 2))
    assert third.paths.fixation[:, 0].tolist() == [2] * 6
    assert second.paths.fixation[:, 0].tolist() == [1] * 6
    scores = [step_log_likelihoods(model, Steps.of(data, short="skip")) for data in (third, second)]
    length = third.paths.length
    assert 1 in length  # picture 13: nothing to score either way
    for path, steps in enumerate(length - 2):
        if steps > 0:
            np.testing.assert_allclose(scores[1][path, 1 : 1 + steps], scores[0][path, :steps], rtol=1e-12)
    assert Steps.of(second, short="skip").count - Steps.of(third, short="skip").count == 5


def test_the_released_code_scores_from_two_places_only(released, unchecked_types):
    with pytest.raises(InputError, match="scored_from = 1"):
        released.folds[0].test.dataset(scored_from=1)


def test_test_fixations_lie_on_foreign_maps(released):
    """With their own maps both sides gain much the same; on the test side the released pairing loses most of it."""
    for fold in released.folds:
        gain = []
        for side in (fold.train, fold.test):
            data = side.dataset()
            gain.append(np.nanmean(np.log2(4096 * data.maps.at(data.paths))))
        assert gain[0] > 0.7
        assert gain[1] < 0.4, gain
