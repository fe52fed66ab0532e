"""SceneWalk folders: written here as SceneWalk writes them, with numbers from the lines below."""

import os

import numpy as np
import pytest
from damage import byte_damage, few, many, sentence
from hypothesis import given
from hypothesis import strategies as st

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent
from foveate.data.readers.scenewalk import read_scenewalk, read_scenewalk_maps
from foveate.errors import InputError

# [observer][trial][fixation]: the first observer saw pictures 2 and 1, the second picture 2 twice.
X = [[[3.0, 11.0, 20.5], [5.0, 6.0]], [[12.0], [8.0, 9.0, 10.0, 11.0]]]
Y = [[[2.0, 7.0, 14.0], [1.0, 16.0]], [[4.0], [5.0, 6.0, 7.0, 8.0]]]
DURATION = [[[0.25, 0.3, 0.125], [0.2, 0.4]], [[0.5], [0.1, 0.2, 0.3, 0.15]]]
PICTURE = [[[2, 2, 2], [1, 1]], [[2], [2, 2, 2, 2]]]
RANGE = [[1.0, 31.0], [0.5, 20.5]]


def lists_of_arrays(nested: list, kind=np.float64) -> np.ndarray:
    """As NumPy saves a list of lists of arrays: observers in an array of objects, each a list of arrays."""
    array = np.empty(len(nested), dtype=object)
    for index, trials in enumerate(nested):
        array[index] = None if trials is None else [np.array(path, dtype=kind) for path in trials]
    return array


def array_of_arrays(nested: list, kind=np.float64) -> np.ndarray:
    """As NumPy saves it where all observers have as many trials: an array of (observer, trial)."""
    array = np.empty((len(nested), len(nested[0])), dtype=object)
    for observer, trials in enumerate(nested):
        for trial, path in enumerate(trials):
            array[observer, trial] = np.array(path, dtype=kind)
    return array


def write(folder, *, form=lists_of_arrays, name="corpus", **parts):
    """A folder; parts replace those above, and None leaves one out."""
    held = {"x": X, "y": Y, "dur": DURATION, "im": PICTURE} | parts
    folder.mkdir(exist_ok=True)
    for part, nested in held.items():
        if nested is not None and part in ("x", "y", "dur", "im"):
            array = nested if isinstance(nested, np.ndarray) else form(nested, np.int64 if part == "im" else np.float64)
            np.save(folder / f"{name}_{part}.npy", array, allow_pickle=True)
    if held.get("range", RANGE) is not None:
        np.save(folder / f"{name}_range.npy", np.asarray(held.get("range", RANGE)))
    return folder


def flat(nested: list) -> list:
    return [value for trials in nested for path in trials for value in path]


@pytest.mark.parametrize("form", [lists_of_arrays, array_of_arrays])
def test_paths_are_degrees_inside_the_range(tmp_path, form):
    paths, report = read_scenewalk(write(tmp_path / "data", form=form), unpickle=True)
    assert paths.extent == Extent(20.0, 30.0, "bottom")
    assert paths.observer.tolist() == [1, 1, 2, 2]
    assert paths.picture.tolist() == [1, 2, 2, 2]  # sorted by picture
    assert paths.trial.tolist() == [2, 1, 1, 2]
    first, second, third, fourth = paths
    assert second.x_deg.tolist() == [2.0, 10.0, 19.5]
    assert second.y_deg.tolist() == [1.5, 6.5, 13.5]
    assert second.duration_s.tolist() == [0.25, 0.3, 0.125]
    assert first.x_deg.tolist() == [4.0, 5.0]
    assert third.x_deg.tolist() == [11.0]
    assert fourth.fixation.tolist() == [1, 2, 3, 4]
    assert (report.rows, report.fixations, report.paths) == (10, 10, 4)
    assert report.source == "data/corpus"
    assert paths.columns == {}


def test_paths_of_equal_length_need_no_unpickling(tmp_path):
    box = {"x": [[[1.0, 2.0]], [[3.0, 4.0]]], "y": [[[5.0, 6.0]], [[7.0, 8.0]]]}
    box |= {"dur": [[[0.1, 0.2]], [[0.3, 0.4]]], "im": [[[7, 7]], [[7, 7]]]}
    paths, _ = read_scenewalk(write(tmp_path / "data", form=np.array, **box))
    assert paths.x_deg.tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert paths.pictures == [7]


def test_a_pickle_is_read_only_if_asked_for(tmp_path):
    folder = write(tmp_path / "data")
    with pytest.raises(InputError, match=r"corpus_x\.npy is a pickle.*unpickle=True"):
        read_scenewalk(folder)


class Hostile:
    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


def test_a_hostile_pickle_does_not_run(tmp_path):
    trap = tmp_path / "trap"
    folder = write(tmp_path / "data", y=np.array([Hostile(trap), None], dtype=object))
    with pytest.raises(InputError, match=r"corpus_y\.npy is refused.*mkdir"):
        read_scenewalk(folder, unpickle=True)
    assert not trap.exists()
    np.load(folder / "corpus_y.npy", allow_pickle=True)  # it would have run
    assert trap.exists()


def test_wider_floats_and_one_picture_number_a_trial_are_read(tmp_path):
    folder = write(tmp_path / "data", x=lists_of_arrays(X, np.longdouble), im=[[2, 1], [2, 2]], form=lists_of_arrays)
    paths, _ = read_scenewalk(folder, unpickle=True)
    assert paths.picture.tolist() == [1, 2, 2, 2]
    assert paths.x_deg[1].tolist()[:3] == [2.0, 10.0, 19.5]


def test_observers_and_trials_without_fixations_are_reported(tmp_path):
    parts = {"x": X, "y": Y, "dur": DURATION, "im": PICTURE}
    parts = {name: [nested[0], None, [nested[1][0], []]] for name, nested in parts.items()}
    paths, report = read_scenewalk(write(tmp_path / "data", **parts), unpickle=True)
    assert paths.observers == [1, 3]
    assert report.lost_paths == ("observer 2 (not in the files)", "observer 3, trial 2 (empty in the files)")


def test_a_set_among_several_is_chosen_by_name(tmp_path):
    folder = write(tmp_path / "data", name="train")
    write(folder, name="test", x=[[[9.0, 9.0, 9.0], [9.0, 9.0]], X[1]])
    with pytest.raises(InputError, match=r"holds 2 sets \(test, train\)"):
        read_scenewalk(folder, unpickle=True)
    paths, _ = read_scenewalk(folder, name="test", unpickle=True)
    assert paths.x_deg[0, 0] == 8.0
    with pytest.raises(InputError, match=r"there is no valid_x\.npy; it has test, train"):
        read_scenewalk(folder, name="valid", unpickle=True)


# --- the rectangle ---------------------------------------------------------------------------------------------------


def test_without_a_range_the_frame_says_where_the_pictures_lie(tmp_path):
    folder = write(tmp_path / "data", range=None)
    frame = Extent(20.0, 30.0, "bottom")
    paths, _ = read_scenewalk(folder, unpickle=True, frame=frame, x0_deg=1.0, y0_deg=0.5)
    assert paths.extent == frame
    assert paths.x_deg[1].tolist()[:3] == [2.0, 10.0, 19.5]
    paths, _ = read_scenewalk(folder, unpickle=True, frame=frame)
    assert paths.y_deg[1].tolist()[:3] == [2.0, 7.0, 14.0]
    with pytest.raises(InputError, match=r"there is no corpus_range\.npy; give the pictures' rectangle"):
        read_scenewalk(folder, unpickle=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"frame": Extent(20.0, 31.0)}, r"corpus_range\.npy says width_deg = 30, the argument says 31"),
        ({"frame": Extent(19.0, 30.0)}, "says height_deg = 20, the argument says 19"),
        ({"frame": Extent(20.0, 30.0), "x0_deg": 0.0}, "says x0_deg = 1, the argument says 0"),
        ({"y0_deg": 0.75}, "says y0_deg = 0.5, the argument says 0.75"),
        ({"frame": Extent(20.0, 30.0, "top")}, "SceneWalk measures y from the bottom"),
    ],
)
def test_arguments_that_contradict_the_range_are_refused(tmp_path, settings, words):
    folder = write(tmp_path / "data")
    with pytest.raises(InputError, match=words):
        read_scenewalk(folder, unpickle=True, **settings)


def test_arguments_that_agree_with_the_range_are_welcome(tmp_path):
    folder = write(tmp_path / "data")
    paths, _ = read_scenewalk(folder, unpickle=True, frame=Extent(20.0, 30.0), x0_deg=1.0, y0_deg=0.5)
    assert paths.x_deg[0, 0] == 4.0


@pytest.mark.parametrize("values", [[1.0, 2.0], [[5.0, 5.0], [0.0, 1.0]], [[0.0, np.nan], [0.0, 1.0]], [["a", "b"]]])
def test_a_range_that_is_none_is_refused(tmp_path, values):
    folder = write(tmp_path / "data", range=values)
    with pytest.raises(InputError, match=r"corpus_range\.npy"):
        read_scenewalk(folder, unpickle=True)


def test_a_fixation_outside_the_range_is_an_error_or_dropped(tmp_path):
    folder = write(tmp_path / "data", x=[[[3.0, 11.0, 31.5], [5.0, 6.0]], X[1]])
    with pytest.raises(InputError, match=r"data/corpus, row 3 \(observer 1, picture 2, fixation 3\): x = 31\.5 deg"):
        read_scenewalk(folder, unpickle=True)
    paths, report = read_scenewalk(folder, unpickle=True, outside="drop")
    assert (paths.fixations, len(report.outside)) == (9, 1)


# --- maps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["corpus_densities.npy", "densities.npy"])
def test_maps_are_those_of_the_numbered_pictures(tmp_path, name):
    folder = write(tmp_path / "data")
    densities = np.arange(1.0, 25.0).reshape(3, 2, 4)
    densities /= densities.sum(axis=(1, 2), keepdims=True)
    np.save(folder / name, densities)
    maps = read_scenewalk_maps(folder)
    assert maps.pictures == (1, 2, 3)
    assert maps.grid.extent == Extent(20.0, 30.0, "bottom")
    np.testing.assert_array_equal(maps[2], densities[1])
    paths, _ = read_scenewalk(folder, unpickle=True)
    # y = 2 to 14 of 0.5 to 20.5: rows 0, 0 and 1 of 2; x = 3, 11 and 20.5 of 1 to 31: columns 0, 1 and 2 of 4
    saliency = Dataset(paths, maps.select(paths.pictures)).maps.at(paths)[1, :3]
    np.testing.assert_array_equal(saliency, [densities[1, 0, 0], densities[1, 0, 1], densities[1, 1, 2]])


def test_maps_that_are_none_are_refused(tmp_path):
    folder = write(tmp_path / "data")
    with pytest.raises(InputError, match=r"densities\.npy: there is no such file"):
        read_scenewalk_maps(folder)
    np.save(folder / "densities.npy", np.ones((2, 3, 4)))
    with pytest.raises(InputError, match="map of picture 1 sums to 12, not 1"):
        read_scenewalk_maps(folder)


# --- files that do not fit -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"y": Y[:1]}, r"corpus_y\.npy: there are 1 observers, but 2 in corpus_x\.npy"),
        ({"dur": [DURATION[0][:1], DURATION[1]]}, r"corpus_dur\.npy: observer 1: there are 1 trials, but 2"),
        ({"y": [[[2.0, 7.0], [1.0, 16.0]], Y[1]]}, r"corpus_y\.npy: observer 1, trial 1 has the shape \(2,\).*\(3,\)"),
        (
            {"im": [[[2, 2, 1], [1, 1]], PICTURE[1]]},
            r"corpus_im\.npy: observer 1, trial 1 must be one picture.*2\.0, 1",
        ),
        ({"im": [[[2, 2], [1, 1]], PICTURE[1]]}, r"observer 1, trial 1 has 2 picture numbers for 3 fixations"),
        ({"im": [[[0] * 3, [1, 1]], PICTURE[1]]}, "a whole number from 1; it has 0.0, 0.0"),
        ({"x": [None, X[1]]}, r"corpus_x\.npy: observer 1 must be a list"),
        ({"x": np.array([[1.0, 2.0]] * 2)}, r"observer 1, trial 1 has the shape \(\)"),
        ({"x": np.array(3.0)}, r"corpus_x\.npy: it must be a list"),
        ({"x": np.array(["a", "b"])}, r"corpus_x\.npy cannot be read as \.npy \(it holds <U1, not numbers\)"),
        ({"dur": [[[0.25, -0.3, 0.125], [0.2, 0.4]], DURATION[1]]}, "row 2 .*: dur = -0.3: a duration must be zero"),
        ({"x": [[[3.0, np.nan, 4.0], [5.0, 6.0]], X[1]]}, "row 2 .*: x is empty or NaN"),
        ({"y": None}, r"corpus_y\.npy: there is no such file"),
        ({"x": [[], []], "y": [[], []], "dur": [[], []], "im": [[], []]}, "has columns but no rows"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, parts, words):
    folder = write(tmp_path / "data", **parts)
    with pytest.raises(InputError, match=words) as caught:
        read_scenewalk(folder, unpickle=True)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_place_that_is_no_such_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        read_scenewalk(tmp_path / "gone")
    with pytest.raises(InputError, match=r"holds no file whose name ends in _x\.npy"):
        read_scenewalk(tmp_path)


PART = st.sampled_from(["x", "y", "dur", "im", "range"])
DAMAGE = byte_damage(["cut", "change", "remove", "repeat", "swap", "header"])


@pytest.fixture(scope="module")
def whole_folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("whole") / "data")


def check(folder, part, change) -> None:
    """One file of the folder is damaged, and mended again."""
    file = folder / f"corpus_{part}.npy"
    whole = file.read_bytes()
    file.write_bytes(change(whole))
    try:
        sentence(lambda: read_scenewalk(folder, unpickle=True, outside="drop", missing="drop"))
    finally:
        file.write_bytes(whole)


@few
@given(PART, DAMAGE)
def test_a_damaged_folder_is_a_sentence(whole_folder, part, change):
    check(whole_folder, part, change)


@pytest.mark.slow
@many
@given(PART, DAMAGE)
def test_many_damaged_folders_are_sentences(whole_folder, part, change):
    check(whole_folder, part, change)
