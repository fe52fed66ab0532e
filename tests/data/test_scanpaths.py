"""Scan paths: from a table and back, selected, split, iterated; and what is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from foveate.data.grid import Extent
from foveate.data.joining import join_paths
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

EXTENT = Extent(10.0, 20.0)


def table(**columns) -> pd.DataFrame:
    """Three paths of 2, 3 and 1 fixations, in the order in which ScanPaths holds them."""
    rows = {
        "observer": [1, 1, 1, 1, 1, 2],
        "picture": ["beach", "beach", "wood", "wood", "wood", "beach"],
        "trial": [4, 4, 2, 2, 2, 1],
        "fixation": [1, 2, 1, 2, 4, 1],
        "x_deg": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "y_deg": [0.0, 1.5, 2.5, 3.5, 10.0, 5.5],
        "duration_s": [0.2, 0.3, 0.25, 0.0, 0.4, 0.1],
    }
    return pd.DataFrame(rows | columns)


def paths(**columns) -> ScanPaths:
    return ScanPaths.from_table(table(**columns), EXTENT)


def test_a_table_survives_the_way_to_scan_paths_and_back():
    before = table(pupil=[1.5, 2.5, np.nan, 4.5, 5.5, 6.5], blink=[True, False] * 3, word=list("abcdef"), n=range(6))
    after = ScanPaths.from_table(before, EXTENT).to_table()
    pd.testing.assert_frame_equal(after, before, check_dtype=False)
    again = ScanPaths.from_table(after, EXTENT).to_table()
    pd.testing.assert_frame_equal(again, after)


def test_rows_of_different_paths_may_be_mixed():
    mixed = table().iloc[[5, 2, 0, 3, 1, 4]]
    pd.testing.assert_frame_equal(ScanPaths.from_table(mixed, EXTENT).to_table(), paths().to_table())


def test_paths_are_padded_behind_their_length():
    made = paths()
    assert made.length.tolist() == [2, 3, 1]
    assert made.real.tolist() == [[True, True, False], [True, True, True], [True, False, False]]
    assert np.isnan(made.x_deg[~made.real]).all()
    assert np.isnan(made.duration_s[~made.real]).all()
    assert (made.fixation[~made.real] == 0).all()
    assert made.fixations == 6
    assert made.observers == [1, 2]
    assert made.pictures == ["beach", "wood"]


def test_iterating_gives_each_path_without_padding():
    beach, wood, single = paths(word=list("abcdef"))
    assert (beach.observer, beach.picture, beach.trial, len(beach)) == (1, "beach", 4, 2)
    assert wood.x_deg.tolist() == [3.0, 4.0, 5.0]
    assert wood.fixation.tolist() == [1, 2, 4]
    assert wood.columns["word"].tolist() == ["c", "d", "e"]
    assert single.duration_s.tolist() == [0.1]


def test_select_keeps_whole_paths_and_trims_the_padding():
    one = paths().select(observers=[1], pictures=["beach"])
    assert one.x_deg.tolist() == [[1.0, 2.0]]
    assert paths().select(pictures=["wood"]).observers == [1]
    assert len(paths().select(observers=[2], pictures=["wood"])) == 0
    with pytest.raises(InputError, match="observer 7 not in the data; there are 1, 2"):
        paths().select(observers=[1, 7])
    with pytest.raises(InputError, match="picture lake not in the data; there are beach, wood"):
        paths().select(pictures=["lake"])


def test_split_gives_training_and_test_paths_that_make_up_the_whole():
    training, test = paths().split(["wood"])
    assert training.pictures == ["beach"]
    assert test.pictures == ["wood"]
    both = pd.concat([training.to_table(), test.to_table()]).sort_values("x_deg", ignore_index=True)
    pd.testing.assert_frame_equal(both, paths().to_table())


def test_a_gap_in_the_numbers_is_kept_and_flagged():
    flagged = np.argwhere(paths().after_gap)
    assert flagged.tolist() == [[1, 2]]
    assert paths().fixation[1].tolist() == [1, 2, 4]


def test_short_paths_are_left_out_or_refused_on_request():
    assert paths().at_least(2).length.tolist() == [2, 3]
    assert paths().require(1).length.tolist() == [2, 3, 1]
    with pytest.raises(
        InputError, match=r"observer 1, picture 'beach' \(the first of 2 such paths\).* 2 fixations, but 3"
    ):
        paths().require(3)


def test_a_picture_seen_twice_makes_two_paths_if_there_is_a_trial():
    twice = table(observer=[1] * 6, picture=["beach"] * 6, trial=[1, 1, 2, 2, 2, 3])
    assert ScanPaths.from_table(twice, EXTENT).length.tolist() == [2, 3, 1]
    with pytest.raises(InputError, match=r"fixation 1 .*: it comes after fixation 2.*trial column"):
        ScanPaths.from_table(twice.drop(columns="trial"), EXTENT)


def test_labels_are_whole_numbers_or_text():
    assert paths(picture=[1.0, 1.0, 2.0, 2.0, 2.0, 1.0]).pictures == [1, 2]
    mixed = paths(picture=[1, 1, "2", "2", "2", 1])
    assert mixed.pictures == ["1", "2"]
    assert mixed.length.tolist() == [2, 3, 1]
    with pytest.raises(InputError, match="column picture holds 1 both as a number and as text"):
        paths(picture=[1, 1, "1", "2", "2", 1])


def test_durations_are_optional():
    without = ScanPaths.from_table(table().drop(columns="duration_s"), EXTENT)
    assert without.duration_s is None
    assert next(iter(without)).duration_s is None
    assert "duration_s" not in without.to_table()


def test_a_repr_says_what_is_in_there():
    assert repr(paths()) == "ScanPaths(6 fixations, 3 paths, 2 observers, 2 pictures, 20 x 10 deg)"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x_deg": [1, 2, 3, 20.5, 5, 6]}, r"observer 1, picture 'wood', fixation 2: x = 20.5 deg .*\(0 to 20 deg\)"),
        ({"y_deg": [-1, 2, 3, 4, 5, -1]}, r"'beach', fixation 1 \(the first of 2 such fixations\): y = -1 deg lies"),
        ({"x_deg": [1, np.nan, 3, 4, 5, 6]}, "'beach', fixation 2: x is nan: positions must be finite"),
        ({"y_deg": [1, np.inf, 3, 4, 5, 6]}, "'beach', fixation 2: y is inf: positions must be finite"),
        ({"x_deg": [1, "left", 3, 4, 5, 6]}, "row 2: x_deg is 'left', which is not a number"),
        ({"x_deg": pd.to_datetime(["2020-01-01"] * 6)}, "column x_deg holds datetime64.*not plain numbers"),
        (
            {"duration_s": [0.1, 0.2, -0.3, 0.4, 0.5, 0.6]},
            "'wood', fixation 1: duration = -0.3 s: it must be positive, or zero",
        ),
        ({"duration_s": [0.1, 0.2, np.nan, 0.4, 0.5, 0.6]}, "'wood', fixation 1: duration = nan s"),
        ({"fixation": [1, 2, 1, 3, 2, 1]}, "'wood', fixation 2: it comes after fixation 3"),
        ({"fixation": [1, 1, 1, 2, 3, 1]}, "'beach', fixation 1: the number 1 stands twice"),
        ({"fixation": [1, 2.5, 1, 2, 3, 1]}, "row 2: fixation = 2.5 must be a whole number"),
        ({"fixation": [1, 2, 1, 2, None, 1]}, "row 5: fixation is empty"),
        ({"observer": [1, 1, 1, None, 1, 2]}, "row 4: observer is empty"),
        ({"picture": ["a", "a", " ", "b", "b", "b"]}, "row 3: picture is empty"),
        ({"trial": [1, 1, 1, 1, np.nan, 1]}, "row 5: trial is empty"),
    ],
)
def test_what_cannot_be_a_scan_path_is_refused_by_name(columns, words):
    with pytest.raises(InputError, match=words):
        paths(**columns)


def test_missing_and_duplicated_columns_are_named():
    with pytest.raises(InputError, match="column y_deg missing; it has observer, picture"):
        ScanPaths.from_table(table().drop(columns="y_deg"), EXTENT)
    with pytest.raises(InputError, match="column x_deg stands more than once"):
        ScanPaths.from_table(pd.concat([table(), table()[["x_deg"]]], axis=1), EXTENT)


def test_a_table_without_rows_is_refused():
    with pytest.raises(InputError, match="no rows"):
        ScanPaths.from_table(table().iloc[:0], EXTENT)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y_deg": np.zeros((3, 2))}, r"y_deg has the shape \(3, 2\), x_deg has \(3, 3\)"),
        ({"columns": {"pupil": np.zeros((1, 3))}}, r"pupil has the shape \(1, 3\)"),
        ({"observer": np.array([1, 2])}, "2 entries of observer for 3 paths"),
        ({"length": np.array([2, 4, 1])}, "between 1 and 3"),
        ({"length": np.array([2, 3, 0])}, "between 1 and 3"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(changes, words):
    with pytest.raises(InputError, match=words):
        replace(paths(), **changes)


def test_joined_paths_have_durations_if_all_parts_do():
    whole = paths()
    one, other = whole.select(observers=[1]), whole.select(observers=[2])
    np.testing.assert_array_equal(join_paths([one, other]).duration_s, whole.duration_s)
    assert join_paths([one, replace(other, duration_s=None)]).duration_s is None
