"""pysaliency's HDF5 files: written by hand as it writes them, read; and written here, looked at with h5py."""

import json

import h5py
import numpy as np
import pandas as pd
import pytest
from damage import byte_damage, few, many, sentence, several
from hypothesis import given
from hypothesis import strategies as st

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.pysaliency_hdf5 import read_pysaliency
from foveate.data.readers.pysaliency_writing import write_pysaliency
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

FRAME = PixelFrame(640.0, 480.0, 32.0, origin="top")  # 20 x 15 degrees
NAN = np.nan

# Three paths: subject 5 on stimuli 0 and 3, subject 7 on stimulus 3.
XS = np.array([[320.0, 0.0, 64.0], [32.5, 640.0, NAN], [1.0, 2.0, 3.0]])
YS = np.array([[240.0, 0.0, 32.0], [16.0, 480.0, NAN], [4.0, 5.0, 6.0]])
TIMES = np.array([[0.0, 0.3, 0.7], [0.0, 0.4, NAN], [0.1, 0.2, 0.3]])
DURATIONS = np.array([[0.25, 0.375, 0.2], [0.3, 0.1, NAN], [0.15, 0.2, 0.25]])
STIMULI, SUBJECTS, LENGTHS = np.array([0, 3, 3]), np.array([5, 5, 7]), np.array([3, 2, 3])


def notes(group, **values) -> None:
    for name, value in values.items():
        group.attrs[name] = np.bytes_(value if isinstance(value, str) else json.dumps(value))


def attributes(group, name: str, **arrays) -> None:
    part = group.create_group(name)
    for key, values in arrays.items():
        text = isinstance(values, list)
        part.create_dataset(key, data=values, dtype=h5py.special_dtype(vlen=str) if text else None)
    notes(part, __attributes__=sorted(arrays))


def scanpaths(group) -> None:
    """`Scanpaths` 1.0."""
    notes(group, type="Scanpaths", version="1.0", attribute_mapping={"durations": "duration"})
    for name, values in (("xs", XS), ("ys", YS), ("n", STIMULI), ("length", LENGTHS)):
        group.create_dataset(name, data=values)
    boxes = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    attributes(group, "scanpath_attributes", subject=SUBJECTS, task=["look", "look", "söka"], box=boxes)
    attributes(group, "fixation_attributes", ts=TIMES, durations=DURATIONS, flag=np.nan_to_num(XS > 50).astype(float))


def scanpath_fixations(group) -> None:
    """`ScanpathFixations` 1.0."""
    notes(group, type="ScanpathFixations", version="1.0")
    scanpaths(group.create_group("scanpaths"))


def trains(group, version: str = "1.2") -> None:
    """`FixationTrains` up to 1.3."""
    notes(group, type="FixationTrains", version=version, __attributes__=["subjects", "scanpath_index", "loose"])
    named = {"xs": XS, "ys": YS, "ts": TIMES, "ns": STIMULI, "subjects": SUBJECTS}
    for name, values in named.items():
        group.create_dataset(f"train_{name}", data=values)
    group.create_dataset("loose", data=np.arange(8.0))
    if version == "1.3":
        group.create_dataset("train_lengths", data=LENGTHS)
    if version >= "1.1":
        attributes(group, "scanpath_attributes", task=np.array([1, 1, 2]))
    if version >= "1.2":
        notes(group, scanpath_attribute_mapping={"durations": "duration"})
        attributes(group, "scanpath_fixation_attributes", durations=DURATIONS)


def fixations(group, version: str = "1.2", rows=slice(None)) -> None:
    """`Fixations` up to 1.2: the same eight fixations, each with its history; only these rows of them."""
    real = np.arange(3) < LENGTHS[:, None]
    path, place = np.nonzero(real)
    subject = "subject" if version == "1.2" else "subjects"
    listed = [subject, "scanpath_index", "duration", "duration_hist"]
    notes(group, type="Fixations", version=version, __attributes__=listed)
    history = np.arange(2) < place[:, None]
    held = {"x": XS[real], "y": YS[real], "t": TIMES[real], "n": STIMULI[path], subject: SUBJECTS[path]}
    held |= {"duration": DURATIONS[real], "scanpath_index": path}
    for name, values in (("x", XS), ("y", YS), ("t", TIMES), ("duration", DURATIONS)):
        held[f"{name}_hist"] = np.where(history, values[path, :2], NAN)
    if version >= "1.1":
        held["lengths"] = place
        notes(group, __variable_length_arrays__=["duration_hist", "t_hist", "x_hist", "y_hist"])
    for name, values in held.items():
        group.create_dataset(name, data=values[rows])


def write(tmp_path, fill, **settings):
    file = tmp_path / "data.hdf5"
    with h5py.File(file, "w") as opened:
        fill(opened, **settings)
    return file


LAYOUTS = [
    (scanpaths, {}, "durations"),
    (scanpath_fixations, {}, "durations"),
    (trains, {"version": "1.2"}, "durations"),
    (trains, {"version": "1.3"}, "durations"),
    (fixations, {"version": "1.0"}, "duration"),
    (fixations, {"version": "1.1"}, "duration"),
    (fixations, {"version": "1.2"}, "duration"),
]


@pytest.mark.parametrize(("fill", "settings", "duration"), LAYOUTS)
def test_every_kind_of_file_gives_the_same_paths(tmp_path, fill, settings, duration):
    paths, report = read_pysaliency(write(tmp_path, fill, **settings), frame=FRAME, duration=duration)
    assert paths.extent == Extent(15.0, 20.0, "top")
    assert paths.observer.tolist() == [5, 5, 7]
    assert paths.picture.tolist() == [0, 3, 3]
    assert paths.trial.tolist() == [1, 1, 1]
    first, second, third = paths
    assert first.x_deg.tolist() == [10.0, 0.0, 2.0]
    assert first.y_deg.tolist() == [7.5, 0.0, 1.0]
    assert second.x_deg.tolist() == [1.015625, 20.0]
    assert second.y_deg.tolist() == [0.5, 15.0]
    assert third.fixation.tolist() == [1, 2, 3]
    assert second.duration_s.tolist() == [0.3, 0.1]
    assert second.columns["ts"].tolist() == [0.0, 0.4]
    assert (report.rows, report.fixations, report.paths) == (8, 8, 3)
    assert report.source == "data.hdf5"


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_oldest_trains_have_no_durations(tmp_path, version):
    file = write(tmp_path, trains, version=version)
    paths, _ = read_pysaliency(file, frame=FRAME, duration=None)
    assert paths.duration_s is None
    assert paths.fixations == 8
    with pytest.raises(
        InputError, match=r"data\.hdf5: no attribute 'durations'; it has .*ts, loose: name the right one"
    ):
        read_pysaliency(file, frame=FRAME)


def test_attributes_become_columns(tmp_path):
    paths, _ = read_pysaliency(write(tmp_path, scanpaths), frame=FRAME)
    _, _, third = paths
    assert set(paths.columns) == {"task", "box_0", "box_1", "ts", "flag"}
    assert third.columns["task"].tolist() == ["söka"] * 3
    assert third.columns["box_1"].tolist() == [6.0] * 3
    paths, _ = read_pysaliency(write(tmp_path, trains), frame=FRAME)
    assert set(paths.columns) == {"task", "ts", "loose"}
    assert paths.columns["loose"][1].tolist()[:2] == [3.0, 4.0]


def test_forced_fixations_are_flagged_by_the_attribute_named(tmp_path):
    file = write(tmp_path, scanpaths)
    paths, _ = read_pysaliency(file, frame=FRAME, forced="flag")
    assert paths.columns["forced"][0].tolist() == [True, False, True]
    assert paths.columns["forced"].dtype == bool
    assert "flag" not in paths.columns
    with pytest.raises(InputError, match="the attribute 'ts' must hold 0 and 1"):
        read_pysaliency(file, frame=FRAME, forced="ts")


def test_another_attribute_called_forced_is_kept_and_reported(tmp_path):
    def fill(group) -> None:
        scanpaths(group)
        group["fixation_attributes"]["forced"] = XS
        notes(group["fixation_attributes"], __attributes__=["ts", "durations", "flag", "forced"])

    paths, report = read_pysaliency(write(tmp_path, fill), frame=FRAME, forced="flag")
    assert paths.columns["forced"][0].tolist() == [True, False, True]
    assert paths.columns["forced_read"][0].tolist() == [320.0, 0.0, 64.0]
    assert report.renamed == {"forced": "forced_read"}


def test_rows_are_those_of_the_file_also_where_some_pictures_are_left_out(tmp_path):
    def fill(group) -> None:
        scanpaths(group)
        xs = np.array(group["xs"])
        xs[-1] = np.where(np.isfinite(xs[-1]), 1e6, np.nan)
        del group["xs"]
        group["xs"] = xs

    file = write(tmp_path, fill)
    said = []
    for only in (None, [3]):
        with pytest.raises(InputError) as caught:
            read_pysaliency(file, frame=FRAME, only=only)
        said.append(str(caught.value).split("(")[0])
    assert said[0] == said[1]


def test_durations_may_be_milliseconds(tmp_path):
    paths, _ = read_pysaliency(write(tmp_path, scanpaths), frame=FRAME, duration_unit="ms")
    assert paths.duration_s[0, 0] == 0.00025


def test_pictures_have_the_names_that_are_given_in_their_order(tmp_path):
    file = write(tmp_path, scanpaths)
    paths, _ = read_pysaliency(file, frame=FRAME, pictures=["beach", "wood", "town", "lake"])
    assert paths.picture.tolist() == ["beach", "lake", "lake"]
    with pytest.raises(InputError, match="stimuli up to index 3, but pictures names 2"):
        read_pysaliency(file, frame=FRAME, pictures=["beach", "wood"])


def test_pictures_of_one_size_can_be_read_alone(tmp_path):
    file = write(tmp_path, scanpaths)
    small = PixelFrame(600.0, 480.0, 32.0, origin="top")
    with pytest.raises(InputError, match=r"data\.hdf5, row 5 \(observer 5, picture 3, fixation 2\): x = 640 px lies"):
        read_pysaliency(file, frame=small)
    paths, report = read_pysaliency(file, frame=small, only=[0])
    assert paths.pictures == [0]
    assert report.rows == 3
    paths, _ = read_pysaliency(file, frame=FRAME, only=["lake"], pictures=["beach", "wood", "town", "lake"])
    assert paths.fixations == 5
    with pytest.raises(InputError, match=r"no path on picture 1, 2; there are 0, 3"):
        read_pysaliency(file, frame=FRAME, only=[1, 2])
    with pytest.raises(InputError, match="only = 'beach': give a list"):
        read_pysaliency(file, frame=FRAME, only="beach")


def change(key: str, values):
    """A file of scan paths in which one dataset is another."""

    def fill(group) -> None:
        scanpaths(group)
        del group[key]
        group.create_dataset(key, data=values)

    return fill


def test_paths_seen_twice_are_trials_and_empty_ones_are_reported(tmp_path):
    paths, _ = read_pysaliency(write(tmp_path, change("n", [3, 3, 3])), frame=FRAME)
    assert paths.trial.tolist() == [1, 2, 1]
    paths, report = read_pysaliency(write(tmp_path, change("length", [3, 0, 3])), frame=FRAME)
    assert len(paths) == 2
    assert report.lost_paths == ("observer 5, picture 3 (empty in the file)",)


def test_a_nan_inside_a_path_is_a_missing_position(tmp_path):
    xs = XS.copy()
    xs[0, 1] = NAN
    file = write(tmp_path, change("xs", xs))
    with pytest.raises(InputError, match=r"row 2 .*: x is empty or NaN"):
        read_pysaliency(file, frame=FRAME)
    paths, report = read_pysaliency(file, frame=FRAME, missing="drop")
    assert (paths.fixations, len(report.missing)) == (7, 1)


def test_attributes_named_like_our_own_columns_are_renamed_and_reported(tmp_path):
    def fill(group) -> None:
        scanpaths(group)
        group["fixation_attributes"]["x"] = XS
        notes(group["fixation_attributes"], __attributes__=["ts", "durations", "x"])

    paths, report = read_pysaliency(write(tmp_path, fill), frame=FRAME)
    assert paths.columns["x_read"][0].tolist() == [320.0, 0.0, 64.0]
    assert report.renamed == {"x": "x_read"}


@pytest.mark.parametrize(
    "frame",
    [
        PixelFrame(640.0, 480.0, 32.0, origin="bottom"),
        PixelFrame(640.0, 480.0, 32.0, left_px=10.0, origin="top"),
        PixelFrame(640.0, 480.0, 32.0, near_px=10.0, origin="top"),
    ],
)
def test_a_frame_that_is_not_the_picture_itself_is_refused(tmp_path, frame):
    with pytest.raises(InputError, match="pixels of the picture from its top left corner"):
        read_pysaliency(write(tmp_path, scanpaths), frame=frame)


# --- fixations without their paths -----------------------------------------------------------------------------------


def test_fixations_of_whole_paths_are_paths(tmp_path):
    file = write(tmp_path, fixations, rows=[3, 4, 5, 6])  # the second path, and the third without its end
    paths, _ = read_pysaliency(file, frame=FRAME, duration="duration")
    assert paths.length.tolist() == [2, 2]
    assert paths.x_deg[1].tolist() == [0.03125, 0.0625]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([1, 2, 3, 4], "fixation 1 does not stand behind those of its history"),
        ([0, 2, 3, 4], "fixation 2 does not"),
        ([0, 1, 2, 4], "fixation 4 does not"),
        ([0, 1, 4, 3], "fixation 3 does not"),
        ([3, 6, 7], "fixation 2 does not"),  # another observer's second fixation behind a first one
        ([0, 3, 5], "single fixations without histories"),
    ],
)
def test_fixations_without_their_paths_are_refused(tmp_path, rows, words):
    file = write(tmp_path, fixations, rows=rows)
    with pytest.raises(InputError, match=words):
        read_pysaliency(file, frame=FRAME, duration="duration")


def test_a_fixation_behind_one_of_another_path_is_refused(tmp_path):
    """The same observer saw the same picture twice: only the positions in the history tell the two paths apart."""

    def fill(group) -> None:
        fixations(group, rows=[0, 4])  # the first fixation of the first path, the second of the second
        group["n"][...], group["subject"][...] = 3, 5

    with pytest.raises(InputError, match="fixation 2 does not stand behind those of its history"):
        read_pysaliency(write(tmp_path, fill), frame=FRAME, duration="duration")


# --- writing ---------------------------------------------------------------------------------------------------------


def some_paths(origin="top", observers=("ann", "bob"), pictures=("beach", "wood"), seed=4) -> ScanPaths:
    random = np.random.default_rng(seed)
    rows = [
        (observer, picture, number, random.uniform(0, 20), random.uniform(0, 15), random.gamma(2, 0.1))
        for observer in observers
        for picture in pictures
        for number in range(1, random.integers(3, 9))
    ]
    table = pd.DataFrame(rows, columns=["observer", "picture", "fixation", "x_deg", "y_deg", "duration_s"])
    table["forced"] = table["fixation"] == 1
    table["pupil"] = random.normal(size=len(table))
    table["count"] = np.arange(len(table))
    table["task"] = "look at " + table["picture"].astype(str)
    return ScanPaths.from_table(table, Extent(15.0, 20.0, origin))


NAMES = ["town", "wood", "beach"]
KINDS = ["Scanpaths", "ScanpathFixations", "FixationTrains"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_back(tmp_path, kind):
    paths = some_paths()
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=NAMES, kind=kind)
    read, _ = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME)
    before, after = paths.to_table(), read.to_table().drop(columns="ts")
    pd.testing.assert_frame_equal(after[before.columns], before, check_exact=True, check_dtype=False)
    assert read.columns["forced"].dtype == bool
    assert read.columns["count"].dtype == np.int64
    assert read.columns["ts"][0, :3].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("origin", ["top", "bottom"])
def test_positions_come_back_to_the_last_digit(tmp_path, origin, kind):
    frame = PixelFrame(1023.0, 767.0, (767 / 15, 1023 / 20), origin="top")
    paths = some_paths(origin, observers=range(40), pictures=range(10))
    write_pysaliency(paths, tmp_path / "out.hdf5", frame, pictures=range(10), kind=kind, columns=[])
    read, report = read_pysaliency(tmp_path / "out.hdf5", frame=frame)
    assert list(read.columns) == ["ts"]
    assert report.renamed == {}
    np.testing.assert_array_equal(read.x_deg, paths.x_deg)
    np.testing.assert_array_equal(read.y_deg, paths.y_deg if origin == "top" else 15 - paths.y_deg)
    by_pixels = frame.to_degrees(*frame.to_pixels(paths.y_deg, paths.x_deg))
    assert not np.array_equal(by_pixels[1], paths.x_deg, equal_nan=True)  # pixels alone would not do


def test_degrees_are_written_only_where_pixels_lose_a_digit(tmp_path):
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x_deg": [1.5, 2.0], "y_deg": [3.0, 0.25]})
    paths = ScanPaths.from_table(table, Extent(15.0, 20.0, "top"))
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=[1])
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert set(file["fixation_attributes"]) == {"ts"}


def test_degrees_that_contradict_the_pixels_are_a_column_like_any_other(tmp_path):
    """They may be a screen's, or measured from its middle."""

    def fill(group) -> None:
        scanpaths(group)
        for name, values in (("x_deg", XS), ("y_deg", YS)):
            group["fixation_attributes"].create_dataset(name, data=values)
        notes(group["fixation_attributes"], __attributes__=["ts", "durations", "x_deg", "y_deg"])

    read, report = read_pysaliency(write(tmp_path, fill), frame=FRAME)
    assert read.x_deg[0].tolist() == (XS[0] / 32).tolist()
    assert report.renamed == {"x_deg": "x_deg_read", "y_deg": "y_deg_read"}
    np.testing.assert_array_equal(read.columns["x_deg_read"][read.real], XS[read.real])


def test_forced_fixations_come_back_as_such_and_a_number_is_none_unless_it_is_named(tmp_path):
    paths = some_paths()
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=NAMES)
    read, report = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME)
    np.testing.assert_array_equal(read.forced, paths.forced)
    assert report.forced == paths.forced.sum()

    def fill(group) -> None:
        scanpaths(group)
        group["fixation_attributes"].move("flag", "forced")
        notes(group["fixation_attributes"], __attributes__=["ts", "durations", "forced"])

    read, report = read_pysaliency(write(tmp_path, fill), frame=FRAME)
    assert not read.forced.any()
    assert report.renamed == {"forced": "forced_read"}
    read, _ = read_pysaliency(write(tmp_path, fill), frame=FRAME, forced="forced")
    assert read.forced.any()


def test_rows_from_the_bottom_are_turned_over(tmp_path):
    paths = some_paths(origin="bottom")
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=NAMES)
    with h5py.File(tmp_path / "out.hdf5") as file:
        ys = file["ys"][...]
    np.testing.assert_allclose(ys[paths.real], (15.0 - paths.y_deg[paths.real]) * 32, rtol=1e-14)
    read, _ = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME)
    assert read.extent.origin == "top"


def test_the_written_file_is_laid_out_as_pysaliency_reads_it(tmp_path):
    """Name by name what `Scanpaths.read_hdf5` and `ScanpathFixations` of pysaliency look for."""
    paths = some_paths()
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=NAMES)
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert (file.attrs["type"], file.attrs["version"]) == (b"Scanpaths", b"1.0")
        assert json.loads(file.attrs["attribute_mapping"]) == {"durations": "duration"}
        assert set(file) == {"xs", "ys", "n", "length", "scanpath_attributes", "fixation_attributes"}
        assert file["n"][...].tolist() == [2, 1, 2, 1]  # beach is the third name, wood the second
        assert file["length"][...].tolist() == paths.length.tolist()
        assert file["xs"].shape == file["ys"].shape == file["fixation_attributes"]["ts"].shape == paths.x_deg.shape
        assert np.isnan(file["xs"][...][~paths.real]).all()
        np.testing.assert_allclose(file["xs"][...][paths.real], paths.x_deg[paths.real] * 32, rtol=1e-15)
        of_paths, of_fixations = file["scanpath_attributes"], file["fixation_attributes"]
        assert json.loads(of_paths.attrs["__attributes__"]) == ["stimulus_name", "subject", "subject_name", "task"]
        assert json.loads(of_fixations.attrs["__attributes__"]) == ["count", "durations", "forced", "pupil", "ts"]
        assert of_paths["subject"][...].tolist() == [0, 0, 1, 1]
        assert of_paths["stimulus_name"][...].tolist() == [b"beach", b"wood", b"beach", b"wood"]
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=NAMES, kind="FixationTrains")
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert (file.attrs["type"], file.attrs["version"]) == (b"FixationTrains", b"1.2")
        assert json.loads(file.attrs["__attributes__"]) == []
        assert json.loads(file.attrs["scanpath_attribute_mapping"]) == {"durations": "duration"}
        assert {"train_xs", "train_ys", "train_ts", "train_ns", "train_subjects"} < set(file)
        assert {"scanpath_attributes", "scanpath_fixation_attributes"} < set(file)
        assert json.loads(file["scanpath_attributes"].attrs["__attributes__"]) == [
            "stimulus_name",
            "subject_name",
            "task",
        ]


def test_indices_stand_alone_where_they_say_all(tmp_path):
    paths = some_paths(observers=(4, 9), pictures=(0, 2))
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=range(3), columns=["task"])
    with h5py.File(tmp_path / "out.hdf5") as file:
        assert file["n"][...].tolist() == [0, 2, 0, 2]
        assert set(file["scanpath_attributes"]) == {"subject", "task"}
        assert file["scanpath_attributes"]["subject"][...].tolist() == [4, 4, 9, 9]
        assert set(file["fixation_attributes"]) == {"ts", "durations"}
    read, _ = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME)
    assert read.observer.tolist() == [4, 4, 9, 9]
    assert read.picture.tolist() == [0, 2, 0, 2]


def test_trials_gaps_and_onsets_come_back(tmp_path):
    table = pd.DataFrame({"observer": -1, "picture": "a", "trial": [3, 3, 8, 8], "fixation": [2, 5, 1, 2]})
    table["x_deg"], table["y_deg"], table["ts"] = [1.0, 2.0, 3.0, 4.0], 1.0, [0.5, 0.75, 0.25, 1.5]
    paths = ScanPaths.from_table(table, Extent(15.0, 20.0, "top"))
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=["a"])
    read, report = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME, duration=None)
    pd.testing.assert_frame_equal(read.to_table(), paths.to_table())
    assert report.gaps == ("observer -1, picture 'a', fixation 5",)


def test_names_that_contradict_those_in_the_file_are_refused(tmp_path):
    write_pysaliency(some_paths(), tmp_path / "out.hdf5", FRAME, pictures=NAMES)
    read, _ = read_pysaliency(tmp_path / "out.hdf5", frame=FRAME, pictures=NAMES)
    assert read.pictures == ["beach", "wood"]
    with pytest.raises(InputError, match="stimulus 2 is 'beach' in the file, but 'wood' in pictures"):
        read_pysaliency(tmp_path / "out.hdf5", frame=FRAME, pictures=["town", "beach", "wood"])


@pytest.mark.parametrize(("origin", "x", "y"), [("top", 20.0, 3.0), ("top", 3.0, 15.0), ("bottom", 3.0, 0.0)])
def test_a_fixation_on_the_far_edge_is_an_error_or_put_inside(tmp_path, origin, x, y):
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x_deg": [1.0, x], "y_deg": [1.0, y]})
    paths = ScanPaths.from_table(table, Extent(15.0, 20.0, origin))
    with pytest.raises(InputError, match=r"fixation 2: . lies exactly on the edge .* put 1 of 2 fixations just inside"):
        write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=[1])
    assert not (tmp_path / "out.hdf5").exists()
    write_pysaliency(paths, tmp_path / "out.hdf5", FRAME, pictures=[1], at_edge="move")
    with h5py.File(tmp_path / "out.hdf5") as file:
        pixel = int(file["xs"][0, 1]), int(file["ys"][0, 1])
    assert max(pixel) in (639, 479)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "Fixations"}, "kind = 'Fixations': say"),
        ({"at_edge": "clip"}, "at_edge = 'clip': say"),
        ({"pictures": ["beach"]}, "picture wood not among pictures"),
        ({"pictures": ["beach", "wood", "wood"]}, "names a stimulus twice"),
        ({"frame": PixelFrame(640.0, 480.0, 30.0, origin="top")}, "lie in 20 x 15 deg, but the frame is 21.3333 x 16"),
        ({"frame": PixelFrame(640.0, 480.0, 32.0, origin="bottom")}, "top left corner"),
        ({"columns": ["gone"]}, "column 'gone' is not in the paths; they have forced"),
        ({"columns": ["note"]}, "column 'note' is neither numbers nor text that is the same"),
        ({"columns": ["t"]}, "column 't' has a name that pysaliency needs"),
        ({"columns": ["t_hist"]}, "column 't_hist' has a name that pysaliency needs"),
        ({"columns": ["a/b"]}, "column 'a/b' has a name that pysaliency needs"),
        ({"columns": ["null"]}, "'null' cannot be written to HDF5"),
        ({"file": "no/such/folder.hdf5"}, "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path, settings, words):
    paths = some_paths()
    table = paths.to_table()
    table["note"] = [f"note {row}" for row in range(len(table))]
    table["null"] = "a\0b"
    for name in ("t", "t_hist", "a/b"):
        table[name] = 1.0
    paths = ScanPaths.from_table(table, paths.extent)
    settings = {"pictures": NAMES, "frame": FRAME, "columns": []} | settings
    with pytest.raises(InputError, match=words):
        write_pysaliency(paths, tmp_path / settings.pop("file", "out.hdf5"), **settings)


# --- damaged files ---------------------------------------------------------------------------------------------------


def without(key: str):
    def fill(group) -> None:
        scanpaths(group)
        holder, _, name = key.rpartition("@")
        if holder or "@" in key:
            del (group[holder] if holder else group).attrs[name]
        else:
            del group[key]

    return fill


def noted(**values):
    def fill(group) -> None:
        scanpaths(group)
        notes(group, **values)

    return fill


@pytest.mark.parametrize(
    ("fill", "words"),
    [
        (without("xs"), "it has no dataset 'xs'"),
        (without("length"), "it has no dataset 'length'"),
        (without("scanpath_attributes"), "it has no group 'scanpath_attributes'"),
        (without("fixation_attributes/ts"), "it has no dataset 'ts'"),
        (without("@type"), "it has no text attribute 'type'"),
        (without("fixation_attributes@__attributes__"), "it has no text attribute '__attributes__'"),
        (noted(type="Stimuli"), "it holds 'Stimuli', not Scanpaths"),
        (noted(version="2.0"), r"it holds Scanpaths of version '2\.0', not 1\.0"),
        (change("xs", XS[:2]), r"the dataset 'box' has the shape \(3, 2\), not \(2,\)"),
        (change("ys", YS[:, :2]), "its arrays do not fit each other"),
        (change("xs", XS[0]), "the dataset 'xs' is not numbers of the right shape"),
        (change("xs", XS.astype("S8")), "the dataset 'xs' is not numbers of the right shape"),
        (change("xs", XS.astype(complex)), "the dataset 'xs' holds complex128"),
        (change("n", [0, -1, 2]), "the dataset 'n' must hold whole numbers"),
        (change("n", [0, 1.5, 2]), "the dataset 'n' must hold whole numbers"),
        (change("length", [3, 4, 3]), "its arrays do not fit each other"),
        (change("scanpath_attributes/subject", [1, 2]), r"the dataset 'subject' has the shape \(2,\), not \(3,\)"),
        (change("scanpath_attributes/task", h5py.Empty("f8")), "it has no dataset 'task'"),
    ],
)
def test_a_damaged_file_is_a_sentence(tmp_path, fill, words):
    with pytest.raises(InputError, match=words) as caught:
        read_pysaliency(write(tmp_path, fill), frame=FRAME)
    assert str(caught.value).startswith("data.hdf5 cannot be read as scan paths of pysaliency (")
    assert "\n" not in str(caught.value)


def test_a_file_without_observers_or_with_foreign_contents_is_refused(tmp_path):
    def fill(group) -> None:
        scanpaths(group)
        notes(group["scanpath_attributes"], __attributes__=["task"])

    with pytest.raises(InputError, match="no path attribute 'subject'; it has task"):
        read_pysaliency(write(tmp_path, fill), frame=FRAME)
    with pytest.raises(InputError, match="there is no such file"):
        read_pysaliency(tmp_path / "gone.hdf5", frame=FRAME)
    (tmp_path / "text.hdf5").write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match=r"text\.hdf5 cannot be read .*file signature not found"):
        read_pysaliency(tmp_path / "text.hdf5", frame=FRAME)


def test_a_dataset_that_claims_more_than_the_file_can_hold_is_refused(tmp_path):
    def fill(group) -> None:
        scanpaths(group)
        group["fixation_attributes"].create_dataset("huge", shape=(3, 3, 10**10), dtype="f8", chunks=(3, 3, 100))
        notes(group["fixation_attributes"], __attributes__=["ts", "durations", "huge"])

    with pytest.raises(InputError, match="the dataset 'huge' claims to be larger than the file"):
        read_pysaliency(write(tmp_path, fill), frame=FRAME)


DAMAGE = byte_damage(["cut"]) | several(byte_damage(["change"]), 8)


@pytest.fixture(scope="module")
def whole_files(tmp_path_factory) -> list[bytes]:
    """Files without text of varying length: HDF5 itself can go round in circles where that is damaged."""
    folder = tmp_path_factory.mktemp("whole")
    return [
        write(folder, fill, **settings).read_bytes() for fill, settings, _ in LAYOUTS if fill in (trains, fixations)
    ]


def check(file, data: bytes) -> None:
    file.write_bytes(data)
    sentence(lambda: read_pysaliency(file, frame=FRAME, duration=None, outside="drop", missing="drop"))


@few
@given(DAMAGE, st.integers(0, 4))
def test_damaged_bytes_are_a_sentence(tmp_path_factory, whole_files, change, which):
    check(tmp_path_factory.getbasetemp() / "damaged.hdf5", change(whole_files[which]))


@pytest.mark.slow
@many
@given(DAMAGE, st.integers(0, 4))
def test_many_damaged_bytes_are_sentences(tmp_path_factory, whole_files, change, which):
    check(tmp_path_factory.getbasetemp() / "damaged.hdf5", change(whole_files[which]))
