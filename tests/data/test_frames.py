"""Frames of other libraries: Arrow as it is, polars and pymovements by stand-ins and, where installed, themselves.

The stand-ins have what those libraries offer and nothing else; the tests with the real ones check that they do.
"""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.conversion import pandas_frame
from foveate.data.readers.frames import read_frame, read_pymovements
from foveate.data.readers.table import read_table
from foveate.errors import InputError

SCREEN = PixelFrame(1280.0, 1024.0, 40.0, left_px=0.0, near_px=0.0, origin="top")
COLUMNS = {
    "observer": ["007", "007", "ann"],
    "picture": [3, 3, 3],
    "fixation": [1, 2, 1],
    "x": [640.0, 700.5, 400.0],
    "y": [512, 480, 500],
    "ms": [220, 310, 250],
    "count": [1, None, 2**53 + 1],
}
SETTINGS = {"frame": SCREEN, "position_unit": "px", "duration": "ms", "duration_unit": "ms"}


class WithArrow:
    """Has nothing but the Arrow interface."""

    def __init__(self, columns):
        self.table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class WithPandas:
    """Has an Arrow interface that fails, and its own way to pandas."""

    def __init__(self, columns):
        self.columns = columns

    def __arrow_c_stream__(self, requested_schema=None):
        raise NotImplementedError("not for these types")

    def to_pandas(self):
        return pd.DataFrame(self.columns)


class WithDictionary:
    """Has its columns by name."""

    def __init__(self, columns):
        self.columns = columns

    def to_dict(self):
        return {name: tuple(values) for name, values in self.columns.items()}


def real_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, WithArrow, WithPandas, WithDictionary, real_polars])
@pytest.mark.parametrize("read", [read_table, read_frame])
def test_every_kind_of_frame_gives_the_same_paths(make, read):
    paths, report = read(make(COLUMNS), **SETTINGS)
    assert paths.extent == Extent(25.6, 32.0, "top")
    assert paths.observer.tolist() == ["007", "ann"]
    assert paths.picture.tolist() == [3, 3]
    assert paths.x_deg[0].tolist() == [16.0, 17.5125]
    assert paths.y_deg[0].tolist() == [12.8, 12.0]
    assert paths.duration_s[0].tolist() == [0.22, 0.31]
    assert report.rows == 3


@pytest.mark.parametrize("make", [pa.table, WithArrow, real_polars])
def test_whole_numbers_stay_whole_beside_empty_cells(make):
    """2**53 + 1 is no float64."""
    count = pandas_frame(make(COLUMNS))["count"]
    assert int(count[2]) == 2**53 + 1
    assert pd.isna(count[1])


def test_categories_of_polars_are_names():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(COLUMNS).with_columns(polars.col("observer").cast(polars.Categorical))
    paths, _ = read_frame(frame, **SETTINGS)
    assert paths.observers == ["007", "ann"]


def test_a_frame_that_is_not_computed_yet_is_refused():
    class Lazy:
        def collect(self):
            raise AssertionError("never asked for")

    with pytest.raises(InputError, match=r"the Lazy is not computed yet; pass what its collect\(\) gives"):
        read_frame(Lazy(), **SETTINGS)


def test_a_lazy_frame_of_polars_is_refused():
    frame = pytest.importorskip("polars").DataFrame(COLUMNS).lazy()
    with pytest.raises(InputError, match="LazyFrame is not computed yet"):
        read_frame(frame, **SETTINGS)


class Odd:
    def to_pandas(self):
        return [1, 2]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ([1, 2], "a list cannot be read as a data frame .*neither the Arrow interface nor to_pandas"),
        (None, "a NoneType cannot be read"),
        (Odd(), "a Odd cannot be read as a data frame .*its to_pandas gives a list"),
        (pa.chunked_array([[1, 2]]), "a ChunkedArray cannot be read as a data frame"),
    ],
)
def test_what_is_no_frame_is_refused(thing, words):
    with pytest.raises(InputError, match=words) as caught:
        read_frame(thing, **SETTINGS)
    assert "\n" not in str(caught.value)


def test_a_column_twice_is_refused():
    twice = pa.Table.from_arrays([pa.array([1])] * 2, names=["x", "x"])
    with pytest.raises(InputError, match="column x stands more than once"):
        read_frame(twice, **SETTINGS)


# --- events of pymovements -------------------------------------------------------------------------------------------

# Two paths of observer 'a', with the other events behind the fixations, as one detection after the other puts them.
EVENTS = {
    "subject": ["a", "a", "a", "a", "a", "a", "a"],
    "page": ["beach", "beach", "wood", "wood", "beach", "wood", "beach"],
    "name": ["fixation", "fixation", "fixation", "fixation", "saccade", "blink", "blink"],
    "onset": [0, 230, 10, 400, 200, 300, -5],
    "offset": [199, 500, 250, 650, 229, 350, -1],
    "duration": [199, 270, 240, 250, 29, 50, 4],
    "location": [[40.0, 80.0], [120.0, 160.0], [200.0, 240.0], [280.0, 320.0], None, [None, None], None],
    "dispersion": [0.5, 0.25, 0.75, 1.0, None, None, None],
}
ROLES = {"frame": SCREEN, "observer": "subject", "picture": "page"}


def changed(**columns) -> pd.DataFrame:
    table = pd.DataFrame(EVENTS | columns)
    return table.drop(columns=[name for name, values in columns.items() if values is None])


def real_events(columns):
    """The frame inside pymovements' own container."""
    polars, pymovements = pytest.importorskip("polars"), pytest.importorskip("pymovements")
    return pymovements.Events(data=polars.DataFrame(columns, strict=False))


class Container:
    """Holds a frame, as pymovements' `Events` does."""

    def __init__(self, columns):
        self.frame = pa.table(columns)


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, Container, real_polars, real_events])
def test_fixations_of_pymovements_are_paths(make):
    paths, report = read_pymovements(make(EVENTS), **ROLES)
    assert paths.observer.tolist() == ["a", "a"]
    assert paths.picture.tolist() == ["beach", "wood"]
    assert paths.fixation.tolist() == [[1, 2], [1, 2]]
    assert paths.x_deg.tolist() == [[1.0, 3.0], [5.0, 7.0]]
    assert paths.y_deg.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert paths.duration_s.tolist() == [[0.199, 0.27], [0.24, 0.25]]
    assert paths.columns["after_blink"].tolist() == [[False, False], [False, True]]
    assert paths.columns["dispersion"].tolist() == [[0.5, 0.25], [0.75, 1.0]]
    assert set(paths.columns) == {"onset", "offset", "dispersion", "after_blink"}
    assert (report.rows, report.paths) == (4, 2)


def test_a_recording_that_pymovements_took_apart_is_read():
    """From samples to scan path with pymovements itself: two fixations 400 px apart."""
    pymovements, polars = pytest.importorskip("pymovements"), pytest.importorskip("polars")
    x = np.concatenate([np.full(400, 100.0), np.linspace(100, 500, 20), np.full(580, 500.0)])
    experiment = pymovements.Experiment(1280, 1024, 38, 30, 68, "upper left", 1000)
    gaze = pymovements.gaze.from_numpy(
        time=np.arange(1000), pixel=np.stack([x, np.full(1000, 300.0)]), experiment=experiment
    )
    gaze.pix2deg()
    gaze.pos2vel("savitzky_golay", degree=2, window_length=7)
    gaze.detect("ivt", velocity_threshold=20)
    gaze.compute_event_properties(("location", {"position_column": "pixel"}))
    frame = gaze.events.frame.with_columns(subject=polars.lit("a"), page=polars.lit("beach"))
    paths, _ = read_pymovements(frame, **ROLES)
    np.testing.assert_allclose(paths.x_deg, [[2.5, 12.5]], atol=1e-9)
    np.testing.assert_allclose(paths.y_deg, [[7.5, 7.5]], atol=1e-9)
    assert (paths.duration_s > 0.38).all()


def test_positions_in_two_columns_are_read():
    x, y = ([None if pair is None else pair[axis] for pair in EVENTS["location"]] for axis in (0, 1))
    paths, _ = read_pymovements(changed(location=None, location_x=x, location_y=y), **ROLES)
    assert paths.x_deg.tolist() == [[1.0, 3.0], [5.0, 7.0]]
    assert "location_x" not in paths.columns


def test_which_eye_is_said_where_there_are_two():
    both = [
        pair if pair is None or None in pair else [*pair, pair[0] + 40, pair[1] + 80] for pair in EVENTS["location"]
    ]
    with pytest.raises(
        InputError, match=r"the events, row 1: location must be a pair .* shape \(4,\); if it holds both"
    ):
        read_pymovements(changed(location=both), **ROLES)
    paths, _ = read_pymovements(changed(location=both), **ROLES, components=(2, 3))
    assert paths.x_deg.tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert paths.y_deg.tolist() == [[4.0, 6.0], [8.0, 10.0]]
    with pytest.raises(InputError, match="there are no components 4 and 5"):
        read_pymovements(changed(location=both), **ROLES, components=(4, 5))


def test_durations_follow_from_onset_and_offset():
    paths, _ = read_pymovements(changed(duration=None), **ROLES)
    assert paths.duration_s[0].tolist() == [0.199, 0.27]


def test_without_blinks_there_is_no_flag():
    paths, _ = read_pymovements(changed(name=[*EVENTS["name"][:5], "other", "other"]), **ROLES)
    assert "after_blink" not in paths.columns
    paths, _ = read_pymovements(changed(name=[*EVENTS["name"][:5], "other", "other"]), **ROLES, blink="other")
    assert paths.columns["after_blink"].tolist() == [[False, False], [False, True]]


def test_columns_that_are_called_like_ours_stay():
    paths, _ = read_pymovements(changed(x=range(7), y=range(7), fixation=range(7), frame=range(7)), **ROLES)
    assert paths.x_deg[0].tolist() == [1.0, 3.0]
    assert paths.columns["x"][1].tolist() == [2, 3]
    assert paths.columns["fixation_read"][1].tolist() == [2, 3]
    assert paths.columns["frame"][1].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("columns", "settings", "words"),
    [
        ({}, {"event": "fixation_eyelink"}, "none is named 'fixation_eyelink', but blink, fixation, saccade"),
        ({"location": None}, {}, 'column location missing; .*compute the event property "location"'),
        ({"onset": None}, {}, "the events: column onset missing"),
        ({}, {"observer": "who"}, "the events: column who missing"),
        ({"onset": [0, -1, 10, 400, 200, 300, 0]}, {}, r"the events, row 2: the onset -1 ms comes after one at 0 ms"),
        ({"onset": [0, None, 10, 400, 200, 300, 0]}, {}, r"row 2: the onset nan ms is not a time"),
        ({"onset": [0, 230, 10, 400, 200, "abc", 0]}, {}, r"the events, row 6: onset is 'abc'"),
        ({"page": ["beach"] * 7}, {}, "row 3: the onset 10 ms comes after one at 230 ms.* name the trial column"),
        ({"duration": [0.199, 0.27, 0.24, 0.25, 0, 0, 0]}, {}, "row 1: the duration is 0.199 ms, but .* 199 ms apart"),
        ({"location": ["[1, 2]"] * 7}, {}, "row 1: location must be a pair of numbers"),
        ({"location": [[1.0], *EVENTS["location"][1:]]}, {}, r"row 1: location must be a pair .*shape \(1,\)"),
        ({"location": [["a", "b"], *EVENTS["location"][1:]]}, {}, "row 1: location must be a pair of numbers"),
        ({"location": [None, *EVENTS["location"][1:]]}, {}, r"row 1 \(observer a, .*\): y is empty or NaN"),
        ({"location": [[-1.0, 2.0], *EVENTS["location"][1:]]}, {}, r"row 1 .*: x = -1 px lies outside the picture"),
        ({"subject": [None, *"aaaaaa"]}, {}, "row 1: subject is empty"),
    ],
)
def test_events_that_cannot_be_read_are_refused(columns, settings, words):
    with pytest.raises(InputError, match=words) as caught:
        read_pymovements(changed(**columns), **(ROLES | settings))
    assert "\n" not in str(caught.value)


def test_rows_are_those_of_all_events():
    table = changed().iloc[::-1]
    table = table.assign(onset=[-9, 3, 2, 400, 10, 230, 0])
    with pytest.raises(InputError, match="the events, row 5: the onset 10 ms comes after one at 400 ms"):
        read_pymovements(table, **ROLES)
