"""Tables of saccades: which fixations they hold, whether the first start is one, and what becomes of flags."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from damage import few, many, sentence, several, text_damage
from hypothesis import given
from hypothesis import strategies as st

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.saccade_tables import read_saccade_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

FRAME = Extent(15.0, 20.0)
SETTINGS = {"frame": FRAME, "start": None}
STARTS = {"frame": FRAME, "start": ("x1", "y1"), "start_duration": "before", "start_forced": True}

# The first trial has two forced landings, the second none; its third saccade is missing.
CSV = """\
VP,Img,trial,saccade,x1,y1,x,y,before,duration,forced,blink,amplitude
7,beach,1,1,10,7.5,10.5,7,300,250,1,0,0.7
7,beach,1,2,10.5,7,2,14,250,180,1,0,11
7,beach,1,3,2,14,20,15,180,400,0,1,18
7,wood,2,1,10,7.5,0,0,310,220,0,0,12.5
7,wood,2,2,0.25,0,5,6,220,0,0,1,7.6
7,wood,2,4,5,7,6,6,150,230,0,0,1.4
"""


def write(tmp_path, text: str = CSV, name: str = "saccades.csv") -> Path:
    file = tmp_path / name
    file.write_bytes(text.encode())
    return file


def changed(*pairs: tuple[str, str]) -> str:
    text = CSV
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def frame_of(tmp_path) -> pd.DataFrame:
    return pd.read_csv(write(tmp_path))


def refused(source, words: str, **settings) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_saccade_table(source, **settings)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# --- landings --------------------------------------------------------------------------------------------------------


def test_every_row_is_the_fixation_that_its_saccade_leads_to(tmp_path):
    paths, report = read_saccade_table(write(tmp_path), **SETTINGS)
    assert paths.extent == FRAME
    assert paths.extent.origin == "bottom"
    assert paths.observers == [7]
    assert paths.picture.tolist() == ["beach", "wood"]
    assert paths.trial.tolist() == [1, 2]
    assert paths.fixation.tolist() == [[1, 2, 3], [1, 2, 4]]
    assert paths.x_deg.tolist() == [[10.5, 2.0, 20.0], [0.0, 5.0, 6.0]]
    assert paths.y_deg.tolist() == [[7.0, 14.0, 15.0], [0.0, 6.0, 6.0]]
    assert paths.duration_s.tolist() == [[0.25, 0.18, 0.4], [0.22, 0.0, 0.23]]
    assert (report.rows, report.fixations, report.paths) == (6, 6, 2)
    assert report.gaps == ("observer 7, picture 'wood', fixation 4",)
    assert "added" not in str(report)


def test_flags_and_other_columns_are_kept(tmp_path):
    paths, report = read_saccade_table(write(tmp_path), **SETTINGS)
    assert set(paths.columns) == {"saccade", "x1", "y1", "before", "forced", "after_blink", "amplitude"}
    assert paths.columns["forced"].dtype == paths.columns["after_blink"].dtype == bool
    assert paths.columns["forced"].tolist() == [[True, True, False], [False, False, False]]
    assert paths.columns["after_blink"].tolist() == [[False, False, True], [False, True, False]]
    assert paths.columns["amplitude"].tolist() == [[0.7, 11.0, 18.0], [12.5, 7.6, 1.4]]
    assert report.renamed == {}


@pytest.mark.parametrize(("yes", "no"), [("TRUE", "FALSE"), ("T", "F"), ("true", "false"), ("1.0", "0.0"), ("1", "0")])
def test_flags_are_read_as_programs_write_them(tmp_path, yes, no):
    written = {"0": no, "1": yes}
    text = re.sub(r",([01]),([01])(,[0-9.]+)\n", lambda it: f",{written[it[1]]},{written[it[2]]}{it[3]}\n", CSV)
    assert text.count(yes) >= 4
    paths, _ = read_saccade_table(write(tmp_path, text), **SETTINGS)
    assert paths.columns["forced"].tolist() == [[True, True, False], [False, False, False]]
    assert paths.columns["after_blink"].tolist() == [[False, False, True], [False, True, False]]


def test_columns_go_by_any_name_and_may_be_missing(tmp_path):
    table = frame_of(tmp_path)
    renamed = table.rename(
        columns={"VP": "who", "Img": "what", "saccade": "fixation", "x": "to_x", "y": "to_y", "duration": "ms"}
    ).rename(columns={"forced": "isForced", "blink": "blinkSac", "trial": "nr"})
    named = {"observer": "who", "picture": "what", "saccade": "fixation", "x": "to_x", "y": "to_y", "duration": "ms"}
    paths, _ = read_saccade_table(renamed, forced="isForced", blink="blinkSac", trial="nr", **named, **SETTINGS)
    plain, _ = read_saccade_table(table, **SETTINGS)
    pd.testing.assert_frame_equal(
        paths.to_table(), plain.to_table().drop(columns="saccade"), check_like=True, check_dtype=False
    )
    few = table[["VP", "Img", "saccade", "x", "y"]]
    paths, _ = read_saccade_table(few, trial=None, duration=None, forced=None, blink=None, **SETTINGS)
    assert paths.duration_s is None
    assert set(paths.columns) == {"saccade"}
    assert paths.x_deg.tolist() == plain.x_deg.tolist()


def test_the_corner_and_what_lies_outside_are_those_of_tables(tmp_path):
    paths, _ = read_saccade_table(write(tmp_path), frame=Extent(20.0, 25.0), start=None, x0_deg=-1.0, y0_deg=-2.0)
    assert (paths.x_deg[0, 0], paths.y_deg[0, 0]) == (11.5, 9.0)
    text = changed(("2,14,250", "21,14,250"), ("5,6,220", ",6,220"))
    refused(write(tmp_path, text), r"saccades.csv, line 6 .*wood', fixation 2\): x is empty or NaN", **SETTINGS)
    refused(write(tmp_path, text), r"line 3 .*: x = 21 deg lies outside", missing="drop", **SETTINGS)
    paths, report = read_saccade_table(write(tmp_path, text), missing="drop", outside="drop", **SETTINGS)
    assert (report.rows, report.fixations) == (6, 4)
    assert len(report.outside) == len(report.missing) == 1
    refused(write(tmp_path), "3 fixations, but 4 are needed", shortest=4, **SETTINGS)


# --- the start of first saccades -------------------------------------------------------------------------------------


def test_the_start_of_a_first_saccade_is_a_fixation_if_its_columns_are_named(tmp_path):
    paths, report = read_saccade_table(write(tmp_path), **STARTS)
    assert paths.fixation.tolist() == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert paths.x_deg.tolist() == [[10.0, 10.5, 2.0, 20.0], [10.0, 0.0, 5.0, 6.0]]
    assert paths.y_deg.tolist() == [[7.5, 7.0, 14.0, 15.0], [7.5, 0.0, 6.0, 6.0]]
    assert paths.duration_s.tolist() == [[0.3, 0.25, 0.18, 0.4], [0.31, 0.22, 0.0, 0.23]]
    assert paths.columns["at_start"].tolist() == [[True, False, False, False]] * 2
    assert paths.columns["forced"].tolist() == [[True, True, True, False], [True, False, False, False]]
    assert paths.columns["after_blink"].tolist() == [[False, False, False, True], [False, False, True, False]]
    assert all(paths.columns[name].dtype == bool for name in ("at_start", "forced", "after_blink"))
    assert (report.rows, report.fixations) == (6, 8)
    assert "2 fixations added, from which the first saccades start." in str(report)


def test_a_blink_in_the_first_saccade_comes_after_its_start(tmp_path):
    paths, _ = read_saccade_table(write(tmp_path, changed(("250,1,0,0.7", "250,1,1,0.7"))), **STARTS)
    assert paths.columns["after_blink"][0].tolist() == [False, True, False, True]


def test_starts_may_be_free_and_tables_without_flags_can_have_forced_ones(tmp_path):
    paths, _ = read_saccade_table(write(tmp_path), **(STARTS | {"start_forced": False}))
    assert paths.columns["forced"].tolist() == [[False, True, True, False], [False] * 4]
    table = frame_of(tmp_path).drop(columns=["forced", "blink", "duration", "before"])
    none = {"forced": None, "blink": None, "duration": None, "start_duration": None}
    paths, _ = read_saccade_table(table, **(STARTS | none))
    assert paths.columns["forced"].tolist() == [[True, False, False, False]] * 2
    assert paths.duration_s is None
    paths, _ = read_saccade_table(table, **(STARTS | none | {"start_forced": None}))
    assert "forced" not in paths.columns


def test_each_trial_has_its_own_start_even_if_rows_of_trials_are_mixed(tmp_path):
    table = frame_of(tmp_path).iloc[[0, 3, 1, 4, 2, 5]]
    paths, _ = read_saccade_table(table, **STARTS)
    plain, _ = read_saccade_table(write(tmp_path), **STARTS)
    pd.testing.assert_frame_equal(paths.to_table(), plain.to_table())
    again = changed(("7,wood,2,1", "7,beach,2,1"), ("7,wood,2,2", "7,beach,2,2"), ("7,wood,2,4", "7,beach,2,4"))
    paths, _ = read_saccade_table(write(tmp_path, again), **STARTS)
    assert paths.fixation.tolist() == [[1, 2, 3, 4], [1, 2, 3, 5]]


def test_a_start_is_named_by_the_line_of_its_saccade(tmp_path):
    text = changed(("7,wood,2,1,10,7.5", "7,wood,2,1,10,99"))
    words = r"saccades.csv, line 5 \(observer 7, picture 'wood', fixation 1\): y = 99 deg lies outside"
    refused(write(tmp_path, text), words, **STARTS)
    paths, report = read_saccade_table(write(tmp_path, text), outside="drop", **STARTS)
    assert paths.fixation.tolist() == [[1, 2, 3, 4], [2, 3, 5, 0]]
    assert len(report.outside) == 1
    table = frame_of(tmp_path)
    table.loc[5, "x"] = np.nan
    refused(table, r"the table, row 6 \(observer 7, picture 'wood', fixation 5\): x is empty", **STARTS)


def test_numbers_that_do_not_grow_are_refused_with_starts_and_without(tmp_path):
    text = changed(("7,beach,1,3", "7,beach,1,1"))
    for settings_ in (SETTINGS, STARTS):
        refused(write(tmp_path, text), r"line 4 .*(stands twice|numbers must grow)", **settings_)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("250,1,0,0.7", "250,2,0,0.7", "line 2: forced is '2', but a flag must be 0 or 1, or FALSE or TRUE"),
        ("250,1,0,0.7", "250,1,,0.7", "line 2: blink is empty, but a flag must be 0 or 1"),
        ("180,1,0,11", "180,NA,0,11", "line 3: forced is empty, but a flag"),
        ("7,beach,1,2", "7,beach,1,two", "line 3: saccade is 'two', which is not a number"),
        ("7,beach,1,2", "7,beach,1,", "line 3: saccade is empty"),
        ("7,beach,1,2", ",beach,1,2", "line 3: VP is empty"),
        ("2,14,250", "left,14,250", "line 3: x is 'left', which is not a number"),
        ("180,400,", "180,-4,", "line 4 .*: duration = -4: a duration must be zero or positive"),
        ("180,400,", "180,,", "line 4 .*: duration = nan"),
        ("180,400,", "180,long,", "line 4: duration is 'long', which is not a number"),
    ],
)
def test_a_bad_row_is_refused_by_its_line(tmp_path, old, new, words):
    refused(write(tmp_path, changed((old, new))), rf"^saccades.csv, {words}", **SETTINGS)
    refused(write(tmp_path, changed((old, new))), rf"^saccades.csv, {words}", **STARTS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observer": "subject"}, "saccades.csv: column subject missing; it has VP, Img, trial"),
        ({"forced": "isForced"}, "column isForced missing"),
        ({"blink": "duration"}, "column 'duration' is named for duration and blink"),
        ({"start": ("x", "y")}, "column 'x' is named for x and the start's x"),
        ({"forced": None}, "column 'forced' would be taken for the one that is made here; rename it"),
        (
            {"forced": "blink", "blink": None},
            "column 'forced' would be taken for the one that is made here from 'blink'",
        ),
        ({"frame": Extent(15.0, 20.0, "top")}, "origin = 'top', but y grows upward in saccade tables; say 'bottom'"),
        ({"start": None}, "start_duration and start_forced tell of the start of first saccades"),
        ({"start_duration": None}, "duration = 'duration', start_duration = None: with start=.x, y. name both columns"),
        ({"duration": None}, "duration = None, start_duration = 'before'"),
        ({"start_forced": None}, "forced = 'forced' flags landings only; say start_forced=True or False"),
        ({"outside": "clip"}, "outside = 'clip': say 'error' or 'drop'"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, changes, words):
    refused(write(tmp_path), words, **(STARTS | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"frame": PixelFrame(800, 600, 40)}, "positions in deg need frame=Extent"),
        ({"start": "x1"}, r"start = 'x1': name two columns"),
        ({"start": ("x1",)}, r"start = \('x1',\): name two columns"),
    ],
)
def test_arguments_of_another_kind_are_refused(tmp_path, unchecked_types, changes, words):
    refused(write(tmp_path), words, **(STARTS | changes))


def test_a_column_with_the_name_of_one_that_is_made_is_refused(tmp_path):
    table = frame_of(tmp_path)
    for name in ("fixation", "after_blink", "at_start"):
        refused(table.assign(**{name: 1}), rf"the table: column '{name}' would be taken for the one", **SETTINGS)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("saccades.csv", "", "saccades.csv is empty"),
        ("saccades.csv", CSV.split("\n")[0], "has columns but no rows"),
        ("saccades.csv", CSV.replace(",", ";"), "separated by semicolons"),
        ("saccades.dat", CSV, "the name must end in"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, name, text, words):
    refused(write(tmp_path, text, name), words, **SETTINGS)


# --- damage ----------------------------------------------------------------------------------------------------------

DAMAGE = text_damage(b",", ("TRUE", '"', '"1,5"'), [lambda data: data.replace(b",", b"\t")], reach=1_000)
CHOICES = st.tuples(
    st.sampled_from([SETTINGS, STARTS]),
    st.fixed_dictionaries({}, optional={"outside": st.just("drop"), "missing": st.just("drop")}),
)


def check_damaged(file: Path, change, choices: tuple[dict, dict]) -> None:
    file.write_bytes(change(CSV.encode()))

    def read() -> None:
        paths, report = read_saccade_table(file, **choices[0], **choices[1])
        assert isinstance(paths, ScanPaths)
        assert report.fixations == paths.fixations

    sentence(read)


@pytest.fixture(scope="module")
def damaged_file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "saccades.csv"


@few
@given(change=several(DAMAGE, 3), choices=CHOICES)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(damaged_file, change, choices):
    check_damaged(damaged_file, change, choices)


@pytest.mark.slow
@many
@given(change=several(DAMAGE, 3), choices=CHOICES)
def test_ten_thousand_damaged_files_are_read_or_refused_in_a_sentence(damaged_file, change, choices):
    check_damaged(damaged_file, change, choices)
