"""EyeLink ASC files: what is read of them, to which trial it belongs, and what is refused in which words."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from damage import few, many, sentence, several, text_damage
from hypothesis import given
from hypothesis import strategies as st

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.eyelink import read_eyelink
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

# On a display of 1280 x 1024 px, in its middle; 40 px are a degree, so it is 20 x 15 deg.
FRAME = PixelFrame(800, 600, 40, left_px=240, near_px=212)
IMAGE = r"TRIAL_VAR image (\S+)"
SETTINGS = {"frame": FRAME, "picture": IMAGE}

# Two trials, a file as a stimulus program writes it; the second has a blink between its fixations.
ASC = """\
** CONVERTED FROM ann.edf using a program on a day
** TYPE: EDF_FILE BINARY EVENT SAMPLE TAGGED
**

MSG\t1000 DISPLAY_COORDS 0 0 1279 1023
MSG\t1005 !CAL Calibration points:
-30.1, -40.2        -0,    100
MSG\t1010 TRIALID 1
MSG\t1011 !V TRIAL_VAR image beach.png
MSG\t1012 GAZE_COORDS 0.00 0.00 1279.00 1023.00
START\t1100 \tLEFT\tSAMPLES\tEVENTS
PRESCALER\t1
EVENTS\tGAZE\tLEFT\tRATE\t1000.00\tTRACKING\tCR\tFILTER\t2
SAMPLES\tGAZE\tLEFT\tRATE\t1000.00\tTRACKING\tCR\tFILTER\t2
1100\t  640.0\t  512.0\t  800.0\t...
SFIX L   1105
EFIX L   1105\t1204\t100\t  640.0\t  512.0\t    800
MSG\t1250 PICTURE ON
SFIX L   1230
EFIX L   1230\t1429\t200\t  240.0\t  212.0\t    810
SSACC L  1430
ESACC L  1430\t1449\t20\t  240.0\t  212.0\t  900.0\t  700.0\t   12.0\t    300
SFIX L   1450
EFIX L   1450\t1699\t250\t 1040.0\t  812.0\t    820
MSG\t1800 PICTURE OFF
END\t1900 \tSAMPLES\tEVENTS\tRES\t  40.00\t  40.00
MSG\t1901 TRIAL_RESULT 0
MSG\t2000 TRIALID 2
MSG\t2001 !V TRIAL_VAR image wood.png
START\t2100 \tLEFT\tSAMPLES\tEVENTS
EVENTS\tGAZE\tLEFT\tRATE\t1000.00\tTRACKING\tCR\tFILTER\t2
SBLINK L 2101
EBLINK L 2101\t2149\t49
EFIX L   2150\t2349\t200\t  500.0\t  300.0\t    800
MSG\t2350 PICTURE ON
SBLINK L 2360
EBLINK L 2360\t2439\t80
EFIX L   2450\t2799\t350\t  520.0\t  320.0\t    790
EFIX L   2850\t2899\t50\t  540.0\t  340.0\t    790
MSG\t2900 PICTURE OFF
END\t3000 \tSAMPLES\tEVENTS\tRES\t  40.00\t  40.00
MSG\t3001 TRIAL_RESULT 0
"""


def write(tmp_path, text: str = ASC, name: str = "ann.asc", encoding: str = "utf-8") -> Path:
    file = tmp_path / name
    file.write_bytes(text.encode(encoding))
    return file


def changed(*pairs: tuple[str, str]) -> str:
    text = ASC
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text: str, part: str) -> int:
    """As an editor counts."""
    return next(number for number, line in enumerate(text.split("\n"), start=1) if part in line)


def refused(file, words: str, **changes) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_eyelink(file, **(SETTINGS | changes))
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# --- fixations -------------------------------------------------------------------------------------------------------


def test_pixels_become_degrees_and_milliseconds_seconds(tmp_path):
    paths, report = read_eyelink(write(tmp_path), **SETTINGS)
    assert paths.extent == Extent(15.0, 20.0, "top")
    assert paths.observers == ["ann"]
    assert paths.picture.tolist() == ["beach.png", "wood.png"]
    assert paths.trial.tolist() == [1, 2]
    assert paths.x_deg.tolist() == [[10.0, 0.0, 20.0], [6.5, 7.0, 7.5]]
    assert paths.y_deg.tolist() == [[7.5, 0.0, 15.0], [2.2, 2.7, 3.2]]
    assert paths.duration_s.tolist() == [[0.1, 0.2, 0.25], [0.2, 0.35, 0.05]]
    assert paths.fixation.tolist() == [[1, 2, 3], [1, 2, 3]]
    assert (report.rows, report.fixations, report.paths) == (6, 6, 2)
    assert str(report) == (
        "ann.asc: 6 rows read, 6 fixations in 2 paths kept.\n"
        "x from 0 to 20 of 20 deg, y from 0 to 15 of 15 deg; median duration 0.2 s."
    )


def test_what_else_is_known_of_a_fixation_is_kept(tmp_path):
    paths, report = read_eyelink(write(tmp_path), **SETTINGS)
    assert set(paths.columns) == {"eye", "start_ms", "end_ms", "pupil", "after_blink"}
    assert paths.columns["eye"][0].tolist() == ["left"] * 3
    assert paths.columns["start_ms"].tolist() == [[1105, 1230, 1450], [2150, 2450, 2850]]
    assert paths.columns["end_ms"].tolist() == [[1204, 1429, 1699], [2349, 2799, 2899]]
    assert paths.columns["pupil"].tolist() == [[800, 810, 820], [800, 790, 790]]
    assert report.renamed == {}


def test_px_per_degree_of_the_tracker_are_kept(tmp_path):
    text = re.sub(r"(EFIX .*)", r"\1\t  41.50\t  42.50", ASC)
    paths, _ = read_eyelink(write(tmp_path, text), **SETTINGS)
    assert paths.columns["x_px_per_degree"].tolist() == [[41.5] * 3] * 2
    assert paths.columns["y_px_per_degree"].tolist() == [[42.5] * 3] * 2
    both, _ = read_eyelink([write(tmp_path, text), write(tmp_path, ASC, "bob.asc")], **SETTINGS)
    assert np.isnan(both.columns["x_px_per_degree"]).tolist() == [[False] * 3] * 2 + [[True] * 3] * 2


def test_a_blink_is_flagged_between_two_fixations_of_the_same_trial_and_eye(tmp_path):
    paths, _ = read_eyelink(write(tmp_path), **SETTINGS)
    assert paths.columns["after_blink"].dtype == bool
    assert paths.columns["after_blink"].tolist() == [[False, False, False], [False, True, False]]
    other = ASC.replace("EBLINK L 2360", "EBLINK R 2360")
    paths, _ = read_eyelink(write(tmp_path, other), **SETTINGS)
    assert not paths.columns["after_blink"].any()


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    plain, _ = read_eyelink(write(tmp_path), **SETTINGS)
    other, _ = read_eyelink(write(tmp_path, "\ufeff" + ASC.replace("\n", "\r\n"), "windows.asc"), **SETTINGS)
    assert other.x_deg.tolist() == plain.x_deg.tolist()
    assert other.picture.tolist() == plain.picture.tolist()


def test_a_missing_position_is_an_error_or_dropped_and_counted(tmp_path):
    text = changed(("  520.0\t  320.0", "   .\t   ."))
    line = line_of(text, "EFIX L   2450")
    refused(
        write(tmp_path, text), rf"ann.asc, line {line} \(observer ann, picture 'wood.png', fixation 2\): y is empty"
    )
    paths, report = read_eyelink(write(tmp_path, text), missing="drop", **SETTINGS)
    words = "observer ann, picture 'wood.png', fixation 2, x = (empty), y = (empty)"
    assert report.missing == (f"ann.asc, line {line} ({words})",)
    assert paths.fixation[1, :2].tolist() == [1, 3]
    assert report.gaps == ("observer ann, picture 'wood.png', fixation 3",)
    assert (report.rows, report.fixations) == (6, 5)


def test_fixations_outside_the_picture_are_an_error_or_dropped_and_counted(tmp_path):
    text = changed((" 1040.0", " 1041.0"))
    line = line_of(text, "EFIX L   1450")
    refused(write(tmp_path, text), rf"line {line} .*: x = 1041 px lies outside the picture \(240 to 1040 px\)")
    files = [write(tmp_path, ASC, "bob.asc"), write(tmp_path, text)]
    paths, report = read_eyelink(files, outside="drop", **SETTINGS)
    (row,) = report.left_out
    assert (row.source, row.kind, row.number, row.why) == ("ann.asc", "line", line, "outside the picture")
    assert row.words.startswith("observer ann, picture 'beach.png', fixation 3, x = 1041, y = ")
    assert (report.rows, report.fixations, paths.fixations) == (12, 11, 11)
    refused(write(tmp_path, text), "2 fixations, but 3 are needed", outside="drop", shortest=3)


# --- which picture, which trial --------------------------------------------------------------------------------------


def test_the_picture_may_be_named_in_its_recording_or_before_it(tmp_path):
    inside = changed(
        ("MSG\t1011 !V TRIAL_VAR image beach.png\n", ""),
        ("MSG\t1250 PICTURE ON\n", "MSG\t1250 -3 !V TRIAL_VAR image beach.png\n"),
    )
    paths, _ = read_eyelink(write(tmp_path, inside), **SETTINGS)
    assert paths.picture.tolist() == ["beach.png", "wood.png"]
    bare = re.sub(r"MSG\t\d+ TRIAL(ID|_RESULT) .*\n", "", ASC)
    assert "TRIALID" not in bare
    paths, _ = read_eyelink(write(tmp_path, bare), **SETTINGS)
    assert paths.picture.tolist() == ["beach.png", "wood.png"]


@pytest.mark.parametrize("limit", ["TRIALID", "TRIAL_RESULT", "both"])
def test_what_stands_after_end_and_before_the_next_trial_belongs_to_the_recording_before(tmp_path, limit):
    text = changed(
        ("MSG\t1011 !V TRIAL_VAR image beach.png\n", ""),
        ("MSG\t1901", "MSG\t1900 !V TRIAL_VAR image beach.png\nMSG\t1901"),
        ("MSG\t2001 !V TRIAL_VAR image wood.png\n", ""),
        ("MSG\t3001", "MSG\t3000 !V TRIAL_VAR image wood.png\nMSG\t3001"),
    )
    if limit != "both":
        text = re.sub(rf"MSG\t\d+ {'TRIAL_RESULT' if limit == 'TRIALID' else 'TRIALID'} .*\n", "", text)
    paths, _ = read_eyelink(write(tmp_path, text), **SETTINGS)
    assert paths.picture.tolist() == ["beach.png", "wood.png"]
    assert paths.columns["start_ms"][:, 0].tolist() == [1105, 2150]


def test_pictures_named_after_end_are_never_given_to_the_next_recording(tmp_path):
    """Without TRIALID and TRIAL_RESULT nothing says where a trial ends, and every picture would be one too late."""
    text = changed(
        ("MSG\t1011 !V TRIAL_VAR image beach.png\n", ""),
        ("MSG\t1901 TRIAL_RESULT 0", "MSG\t1901 !V TRIAL_VAR image beach.png"),
        ("MSG\t2001 !V TRIAL_VAR image wood.png\n", ""),
        ("MSG\t3001 TRIAL_RESULT 0", "MSG\t3001 !V TRIAL_VAR image wood.png"),
        ("MSG\t1010 TRIALID 1\n", ""),
        ("MSG\t2000 TRIALID 2\n", ""),
    )
    line = line_of(text, "wood.png")
    for without in ("error", "drop"):
        refused(
            write(tmp_path, text), f"ann.asc, line {line}: this picture stands after the last", without_picture=without
        )


def test_a_trial_that_was_not_recorded_names_no_picture_of_another(tmp_path):
    aborted = "MSG\t1950 TRIALID 9\nMSG\t1951 !V TRIAL_VAR image gone.png\n"
    for text in (changed(("MSG\t2000 ", aborted + "MSG\t2000 ")), changed(("MSG\t1010 ", aborted + "MSG\t1010 "))):
        paths, _ = read_eyelink(write(tmp_path, text), **SETTINGS)
        assert paths.picture.tolist() == ["beach.png", "wood.png"]
    paths, _ = read_eyelink(write(tmp_path, ASC + aborted), **SETTINGS)
    assert paths.picture.tolist() == ["beach.png", "wood.png"]


def test_two_pictures_in_one_recording_are_refused_but_not_the_same_one_twice(tmp_path):
    text = changed(("MSG\t1800 PICTURE OFF", "MSG\t1800 !V TRIAL_VAR image beach.png"))
    paths, _ = read_eyelink(write(tmp_path, text), **SETTINGS)
    assert paths.pictures == ["beach.png", "wood.png"]
    text = changed(("MSG\t1800 PICTURE OFF", "MSG\t1800 !V TRIAL_VAR image hill.png"))
    refused(
        write(tmp_path, text),
        rf"line {line_of(text, 'hill')}: the picture is 'hill.png', but in line {line_of(text, 'beach')} it is "
        rf"'beach.png' for the same recording \(from line {line_of(text, 'START')}\)",
    )


def test_recordings_without_a_picture_are_an_error_or_left_out_and_counted(tmp_path):
    text = changed(("MSG\t1011 !V TRIAL_VAR image beach.png\n", ""))
    refused(write(tmp_path, text), rf"ann.asc, line {line_of(text, 'START')}: no message tells the picture of this rec")
    paths, report = read_eyelink(write(tmp_path, text), without_picture="drop", **SETTINGS)
    assert paths.picture.tolist() == ["wood.png"]
    assert paths.trial.tolist() == [2]
    assert (report.rows, report.fixations) == (6, 3)
    line = line_of(text, "EFIX")
    assert f"3 left out, in recordings without a picture: ann.asc, line {line} (left eye, 1105 to 1204 ms, x" in str(
        report
    )
    assert report.left_out[0].number == line


def test_an_expression_that_matches_nothing_shows_what_there_is(tmp_path):
    words = (
        r"ann.asc: no message .* 'IMGLOAD \(.*\)'; there are 'TRIALID 1', '!V TRIAL_VAR image beach.png', 'TRIAL_RES"
    )
    refused(write(tmp_path), words, picture=r"IMGLOAD (\S+)")


def test_whole_numbers_are_names_as_in_tables_and_leading_zeros_stay(tmp_path):
    numbered = ASC.replace("beach.png", "12").replace("wood.png", "3")
    paths, _ = read_eyelink([write(tmp_path, numbered, "7.asc"), write(tmp_path, numbered, "11.asc")], **SETTINGS)
    assert paths.observers == [7, 11]
    assert paths.pictures == [3, 12]
    paths, _ = read_eyelink([write(tmp_path, numbered, "007.asc"), write(tmp_path, ASC, "11.asc")], **SETTINGS)
    assert paths.observers == ["007", "11"]
    assert paths.pictures == ["12", "3", "beach.png", "wood.png"]


def test_a_trial_can_be_named_by_a_message(tmp_path):
    paths, _ = read_eyelink(write(tmp_path, ASC.replace("TRIALID 2", "TRIALID 20")), trial=r"TRIALID (\d+)", **SETTINGS)
    assert paths.trial.tolist() == [1, 20]
    same = ASC.replace("wood.png", "beach.png").replace("TRIALID 2", "TRIALID 1")
    paths, _ = read_eyelink(write(tmp_path, same), **SETTINGS)
    assert paths.trial.tolist() == [1, 2]
    line = [number for number, text in enumerate(same.split("\n"), start=1) if text.startswith("START")][1]
    words = rf"ann.asc, line {line}: the recording is trial 1 of observer ann, picture beach.png, and so is one before"
    refused(write(tmp_path, same), words, trial=r"TRIALID (\d+)")
    refused(write(tmp_path), "no message tells the trial of this recording; mend trial", trial="TRIALID (1)")


def test_onset_and_offset_leave_out_what_was_not_on_the_picture(tmp_path):
    # the last fixation of the first trial is in progress when the picture goes
    text = changed(
        ("MSG\t1800 PICTURE OFF", "MSG\t1600 PICTURE OFF"), ("MSG\t2900 PICTURE OFF", "MSG\t2840 PICTURE OFF")
    )
    paths, report = read_eyelink(write(tmp_path, text), onset="PICTURE ON", offset="PICTURE OFF", **SETTINGS)
    assert [path.columns["start_ms"].tolist() for path in paths] == [[1230, 1450], [2450]]
    assert [path.columns["forced"].tolist() for path in paths] == [[True, False], [False]]
    assert [path.fixation.tolist() for path in paths] == [[1, 2], [1]]
    # the blink lies before the first fixation on the picture
    assert [path.columns["after_blink"].tolist() for path in paths] == [[False, False], [False]]
    early = [line_of(text, "EFIX L   1105"), line_of(text, "EFIX L   2150")]
    late = line_of(text, "EFIX L   2850")
    assert [(row.number, row.why) for row in report.left_out] == [
        (early[0], "before the picture came"),
        (early[1], "before the picture came"),
        (late, "after the picture went"),
    ]
    assert f"2 left out, before the picture came: ann.asc, line {early[0]} (left eye, " in str(report)
    assert f"1 left out, after the picture went: ann.asc, line {late} (left eye, 2850 to 2899 ms, x = " in str(report)
    assert report.forced == 1
    assert paths.forced.tolist() == [[True, False], [False, False]]
    assert (report.rows, report.fixations) == (6, 3)


def test_a_recording_without_an_onset_is_one_without_a_picture(tmp_path):
    text = changed(("MSG\t2350 PICTURE ON\n", ""))
    start = line_of(text, "START\t2100")
    refused(write(tmp_path, text), f"line {start}: no message tells the onset of this recording", onset="PICTURE ON")
    paths, report = read_eyelink(write(tmp_path, text), onset="PICTURE ON", without_picture="drop", **SETTINGS)
    assert paths.pictures == ["beach.png"]
    assert "3 left out, in recordings without a picture" in str(report)


def test_a_recording_without_a_fixation_on_its_picture_is_reported(tmp_path):
    text = changed(("MSG\t2350 PICTURE ON", "MSG\t2950 PICTURE ON"))
    paths, report = read_eyelink(write(tmp_path, text), onset="PICTURE ON", **SETTINGS)
    assert paths.pictures == ["beach.png"]
    assert report.lost_paths == ("observer ann, picture 'wood.png'",)
    assert (report.rows, report.fixations) == (6, 2)
    refused(write(tmp_path, text), "offset .2900 ms. is not after its onset .2950", onset="TURE ON", offset="TURE OFF")
    none = text.replace("MSG\t1250 PICTURE ON", "MSG\t1850 PICTURE ON")
    refused(write(tmp_path, none), "ann.asc: no fixation was made on a picture", onset="PICTURE ON")


# --- eyes, files, observers ------------------------------------------------------------------------------------------


def test_of_two_eyes_one_must_be_named(tmp_path):
    lines = ASC.split("\n")
    right = [line.replace("EFIX L", "EFIX R").replace("640.0", "660.0") for line in lines if line.startswith("EFIX L")]
    place = next(index for index, line in enumerate(lines) if "1699" in line)
    file = write(tmp_path, "\n".join(lines[: place + 1] + right[:3] + lines[place + 1 :]))
    refused(file, r"ann.asc: both eyes have fixations \(6 left, 3 right\); say eye='left' or eye='right'")
    left, _ = read_eyelink(file, eye="left", **SETTINGS)
    assert left.x_deg[0].tolist() == [10.0, 0.0, 20.0]
    paths, report = read_eyelink(file, eye="right", **SETTINGS)
    assert paths.x_deg.tolist() == [[10.5, 0.0, 20.0]]
    assert paths.columns["eye"].tolist() == [["right"] * 3]
    assert report.rows == 3
    assert report.lost_paths == ("observer ann, picture 'wood.png'",)
    refused(write(tmp_path), "eye = 'right', but only the left eye has fixations", eye="right")


def test_several_files_are_several_observers(tmp_path):
    files = [write(tmp_path, ASC, "ann.asc"), write(tmp_path, ASC.replace(" 640.0\t", " 680.0\t"), "bob.asc")]
    paths, report = read_eyelink(files, **SETTINGS)
    assert paths.observer.tolist() == ["ann", "ann", "bob", "bob"]
    assert paths.x_deg[:, 0].tolist() == [10.0, 6.5, 11.0, 6.5]
    assert paths.trial.tolist() == [1, 2, 1, 2]
    assert report.source == "2 files (ann.asc, bob.asc)"
    assert (report.rows, report.fixations, report.paths) == (12, 12, 4)
    paths, _ = read_eyelink([str(file) for file in files], observer=["A", "B"], **SETTINGS)
    assert paths.observers == ["A", "B"]


def test_files_of_one_observer_are_counted_on(tmp_path):
    files = [write(tmp_path, ASC, "day 1.asc"), write(tmp_path, ASC, "day 2.asc")]
    paths, _ = read_eyelink(files, observer=5, **SETTINGS)
    assert paths.observers == [5]
    assert paths.trial.tolist() == [1, 3, 2, 4]
    assert paths.picture.tolist() == ["beach.png", "beach.png", "wood.png", "wood.png"]


def test_files_that_cannot_be_told_apart_are_refused(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    files = [write(tmp_path / "a"), write(tmp_path / "b")]
    refused(files, r"several files are named 'ann', .*observer=\[...\]")
    paths, _ = read_eyelink(files, observer=["a", "b"], **SETTINGS)
    assert paths.observers == ["a", "b"]
    refused([files[0], tmp_path / "a" / ".." / "a" / "ann.asc"], "is given more than once")
    refused(files, "1 observer for 2 files: give one for each", observer=["a"])


def test_a_mistake_in_a_later_file_is_named_by_its_own_line(tmp_path):
    bad = changed(("EFIX L   1230", "EFIX L   12x0"))
    line = line_of(bad, "12x0")
    refused([write(tmp_path), write(tmp_path, bad, "bob.asc")], f"bob.asc, line {line}: the start of EFIX is '12x0'")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.asc", None, r"gone.asc: there is no such file"),
        ("ann.edf", b"SR_RESEARCH", r"ann.edf is an EDF file; convert it with edf2asc"),
        ("empty.asc", b"", r"empty.asc has no fixation \(EFIX line\); is it an ASC file"),
        ("other.asc", b"\xff\xfe\x00\x01binary", r"other.asc has no fixation"),
        ("table.csv", b"x,y\n1,2\n", r"table.csv has no fixation"),
    ],
)
def test_a_file_that_is_no_asc_file_is_refused(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, words)


def test_a_folder_or_nothing_is_refused(tmp_path):
    refused(tmp_path, r"is a folder; give its files: sorted\(Path\(")
    refused([], "the list of ASC files is empty")


def test_bytes_that_are_no_text_are_refused_where_a_number_should_be(tmp_path):
    file = write(tmp_path)
    file.write_bytes(file.read_bytes().replace(b"  240.0", b"  2\x800.0", 1))
    refused(file, rf"ann.asc, line {line_of(ASC, 'EFIX L   1230')}: x is '2.udc800.0', which is not a number")


def test_names_in_another_encoding_are_read_on_request(tmp_path):
    text = changed(("beach.png", "küste.png"))
    assert read_eyelink(write(tmp_path, text), **SETTINGS)[0].pictures == ["küste.png", "wood.png"]
    file = write(tmp_path, text, encoding="latin-1")
    refused(file, rf"ann.asc, line {line_of(text, 'ste.png')}: the picture is 'k.udcfcste.png', .*encoding")
    paths, _ = read_eyelink(file, encoding="latin-1", **SETTINGS)
    assert paths.pictures == ["küste.png", "wood.png"]
    note = write(tmp_path, ASC.replace("PICTURE OFF", "größer"), encoding="latin-1")  # no name: it does not matter
    assert read_eyelink(note, **SETTINGS)[0].fixations == 6
    assert read_eyelink(write(tmp_path, text, encoding="utf-16"), encoding="utf-16", **SETTINGS)[0].fixations == 6
    refused(file, "it is not text in the encoding 'klingon'", encoding="klingon")


# --- what the file says about itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"width_px": 1041},
            r"ann.asc, line 5: x goes from 0 to 1279 px on the display \(DISPLAY_COORDS\), but the fra",
        ),
        ({"left_px": -1}, r"the frame reaches from -1 to 799 px"),
        ({"height_px": 813}, r"line 5: y goes from 0 to 1023 px on the display .* from 212 to 1025 px"),
        ({"near_px": -0.5}, r"y goes from 0 to 1023"),
        ({"origin": "bottom"}, r"y grows downward on the display, but the frame has origin = 'bottom'; say 'top'"),
    ],
)
def test_a_frame_that_is_not_on_the_display_is_refused(tmp_path, changes, words):
    place = {"width_px": 800, "height_px": 600, "px_per_degree": 40, "left_px": 240, "near_px": 212}
    refused(write(tmp_path), words, frame=PixelFrame(**(place | changes)))


def test_the_last_pixel_of_the_display_belongs_to_it(tmp_path):
    paths, _ = read_eyelink(write(tmp_path), frame=PixelFrame(1280, 1024, 40), picture=IMAGE)
    assert paths.x_deg[0, 0] == 16.0


def test_the_tracker_has_its_own_say_on_the_display(tmp_path):
    text = changed(("GAZE_COORDS 0.00 0.00 1279.00 1023.00", "GAZE_COORDS 0.00 0.00 1023.00 767.00"))
    refused(
        write(tmp_path, text), rf"line {line_of(text, 'GAZE_C')}: x goes from 0 to 1023 px on the display .GAZE_COO"
    )
    refused(write(tmp_path, changed((" 0 0 1279 1023", " 0 0 1279"))), "line 5: DISPLAY_COORDS is '', which is not a n")
    equals = changed(("DISPLAY_COORDS 0 0 1279 1023", "DISPLAY_COORDS = 0 0 799 599"))
    refused(write(tmp_path, equals), "line 5: x goes from 0 to 799 px")


def test_a_display_whose_y_grows_upward_needs_such_a_frame(tmp_path):
    text = changed(("0 0 1279 1023", "0 1023 1279 0"), ("0.00 0.00 1279.00 1023.00", "0.00 1023.00 1279.00 0.00"))
    refused(write(tmp_path, text), "y grows upward on the display, but the frame has origin = 'top'; say 'bottom'")
    frame = PixelFrame(800, 600, 40, left_px=240, near_px=212, origin="bottom")
    paths, _ = read_eyelink(write(tmp_path, text), frame=frame, picture=IMAGE)
    assert paths.extent.origin == "bottom"


@pytest.mark.parametrize("kind", ["HREF", "PUPIL", ""])
def test_other_coordinates_than_gaze_are_refused(tmp_path, kind):
    text = re.sub(r"\nEVENTS\tGAZE.*", f"\nEVENTS\t{kind}", ASC, count=1)
    refused(write(tmp_path, text), rf"line {line_of(text, 'PRESCALER') + 1}: fixations are in '.*' coordinates, .*GAZE")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("EFIX L   1230\t1429\t200", "EFIX L   1230\t1429", "has 7 values, an EFIX line has 8"),
        ("EFIX L   1230", "EFIX L", "has 7 values, an EFIX line has 8"),
        ("EFIX L   1230", "EFIX B   1230", "the eye is 'B', but must be L or R"),
        ("EFIX L   1230\t1429", "EFIX L   1230\t.", "the end of EFIX is '.', which is not a number"),
        ("1429\t200", "1429\tinf", "the duration of EFIX is 'inf', which is not a number"),
        ("1429\t200", "1429\t1_0", "the duration of EFIX is '1_0'"),
        ("1429\t200", "1429\t-200", "lasts from 1230 to 1429 ms, but its duration is -200 ms"),
        ("1429\t200", "1429\t198", "lasts from 1230 to 1429 ms, but its duration is 198 ms"),
        ("1429\t200", "1429\t204", "but its duration is 204 ms"),
        ("1230\t1429\t200", "1430\t1229\t200", "lasts from 1430 to 1229 ms"),
        ("1230\t1429\t200", "1203\t1402\t200", r"starts before the last one ends \(1204 ms\); lines are out of order"),
        ("  240.0\t  212.0\t    810", "  2,5\t  212.0\t    810", "x is '2,5', which is not a number"),
        ("  240.0\t  212.0\t    810", "  inf\t  212.0\t    810", "x is 'inf', which is not a number"),
        ("  240.0\t  212.0\t    810", "  240.0\t  212.0\t    wide", "pupil is 'wide', which is not a number"),
    ],
)
def test_a_damaged_fixation_is_refused_by_its_line(tmp_path, old, new, words):
    refused(write(tmp_path, changed((old, new))), rf"^ann.asc, line {line_of(ASC, 'EFIX L   1230')}\b.*{words}")


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ("MSG\t1250 PICTURE ON", "MSG\tPICTURE ON", "MSG\tPIC", "the time of MSG is 'PICTURE', which is not a number"),
        ("MSG\t1250 PICTURE ON", "MSG", "MSG\n", "the time of MSG is ''"),
        ("EBLINK L 2360\t2439\t80", "EBLINK L 2360", "EBLINK L 2360", "has 3 values, an EBLINK line has 5"),
        ("EBLINK L 2360", "EBLINK L x", "EBLINK L x", "the start of EBLINK is 'x'"),
        ("START\t2100", "STRT\t2100", "EFIX L   2150", "the fixation stands outside START and END"),
        ("MSG\t1901", "END\t1901", "END\t1901", "END without a START before it"),
        (
            "MSG\t1011 !V TRIAL_VAR image beach.png",
            "MSG\t1011 !V TRIAL_VAR image \x7f",
            "\x7f",
            r"picture is '.x7f', whi",
        ),
    ],
)
def test_another_damaged_line_is_refused(tmp_path, old, new, at, words):
    text = changed((old, new))
    line = text[: text.index(at)].count("\n") + 1
    refused(write(tmp_path, text), rf"^ann.asc, line {line}\b.*{words}")


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_recording_without_end_is_refused_or_kept(tmp_path, which):
    mark = "1900" if which == "first" else "3000"
    text = re.sub(rf"END\t{mark}.*\n", "", ASC)
    start = "START\t1100" if which == "first" else "START\t2100"
    refused(write(tmp_path, text), f"ann.asc, line {line_of(text, start)}: the recording has no END")
    if which == "last":
        paths, report = read_eyelink(write(tmp_path, text), without_end="keep", **SETTINGS)
        assert paths.picture.tolist() == ["beach.png", "wood.png"]
        assert report.fixations == 6
    else:  # what belongs to the next trial can no longer be told from what belongs to this one
        refused(write(tmp_path, text), "the picture is 'wood.png', but in line 9 it is 'beach.png'", without_end="keep")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"picture": "image"}, r"picture = 'image' has 0 groups, but one is needed"),
        ({"picture": r"(\w+) (\w+)"}, r"has 2 groups, but one is needed: put parentheses"),
        ({"picture": "("}, r"picture = '\(' is not a regular expression"),
        ({"trial": "TRIALID"}, "trial = 'TRIALID' has 0 groups"),
        ({"onset": "["}, r"onset = '\[' is not a regular expression"),
        ({"picture": r"TRIAL_VAR image(x?)"}, "the picture is '', which is no name"),
        ({"picture": r"TRIAL_VAR image(zzz)?"}, "the picture is None, which is no name"),
        ({"eye": "L"}, "eye = 'L': say 'left' or 'right'"),
        ({"without_picture": "keep"}, "without_picture = 'keep': say 'error' or 'drop'"),
        ({"without_end": "drop"}, "without_end = 'drop': say 'error' or 'keep'"),
        ({"outside": "clip"}, "outside = 'clip': say 'error' or 'drop'"),
        ({"missing": "fill"}, "missing = 'fill': say 'error' or 'drop'"),
        ({"observer": ""}, "observer = '', which is no name; give another one"),
        ({"observer": "\udc80"}, "observer = '.udc80', which is no name"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, changes, words):
    refused(write(tmp_path), words, **changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"picture": None}, "picture = None is not a regular expression"),
        ({"picture": re.compile(b"(x)")}, "is not a regular expression for text"),
        ({"frame": Extent(15, 20)}, "EyeLink positions are in px: give frame=PixelFrame"),
        ({"encoding": 3}, "it is not text in the encoding 3"),
    ],
)
def test_arguments_of_another_kind_are_refused(tmp_path, unchecked_types, changes, words):
    refused(write(tmp_path), words, **changes)
    refused(3, "files = 3: give the name of an ASC file")


# --- real files ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def eyelink_folder() -> Path:
    """Real ASC files; without them a test is skipped, but never where a green light depends on it."""
    folder = os.environ.get("FOVEATE_FORMATS")
    beside = os.environ.get("FOVEATE_POTSDAM35")
    if not folder and beside:
        folder = str(Path(beside).parent / "formats")
    if not folder or not (Path(folder) / "eyelink").is_dir():
        missing = "neither FOVEATE_FORMATS nor the folder 'formats' beside FOVEATE_POTSDAM35 holds EyeLink files"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return Path(folder) / "eyelink"


# Counted with grep -c '^EFIX L' and '^EFIX R'.
REAL = [
    ("binocular", {"eye": "left", "picture": r"TRIALID (\S+)"}, (1920, 1080), 2),
    ("binocular", {"eye": "right", "picture": r"TRIALID (\S+)"}, (1920, 1080), 2),
    ("monocular", {"picture": r"TRIAL_VAR STIMULUS_COMBINATION_ID (\S+)"}, (1280, 1024), 2),
    ("monocular_no_dummy", {"picture": r"IMGLOAD FILL (\S+)", "without_end": "keep"}, (1920, 1080), 2),
]


@pytest.mark.parametrize(("name", "said", "size", "count"), REAL)
def test_all_fixations_of_real_files_are_read(eyelink_folder, name, said, size, count):
    file = eyelink_folder / f"eyelink_{name}_example.asc"
    letter = said.get("eye", "left")[0].upper()
    rows = [line.split() for line in file.read_text().splitlines() if line.startswith(f"EFIX {letter}")]
    assert len(rows) == count
    paths, report = read_eyelink(file, frame=PixelFrame(*size, 32), **said)
    assert (report.rows, report.fixations, report.paths) == (count, count, 1)
    (path,) = paths
    for place, column in ((path.x_deg * 32, 5), (path.y_deg * 32, 6), (path.duration_s * 1000, 4)):
        np.testing.assert_allclose(place, [float(row[column]) for row in rows], rtol=1e-12)
    for name, column in (("start_ms", 2), ("end_ms", 3), ("pupil", 7)):
        assert path.columns[name].tolist() == [float(row[column]) for row in rows]


def test_real_files_say_what_they_are(eyelink_folder):
    binocular, monocular, cut_off = (
        eyelink_folder / f"eyelink_{name}_example.asc" for name in ("binocular", "monocular", "monocular_no_dummy")
    )
    large = {"frame": PixelFrame(1920, 1080, 32), "picture": r"TRIALID (\S+)"}
    paths, _ = read_eyelink(binocular, eye="left", **large)
    assert paths.columns["after_blink"].tolist() == [[False, True]]  # lines 379 and 394 of the file
    for file, words in (
        (binocular, r"both eyes have fixations \(2 left, 2 right\)"),
        (monocular, r"line 18: x goes from 0 to 1279 px on the display"),
        (cut_off, r"line 77: the recording has no END"),
    ):
        with pytest.raises(InputError, match=words):
            read_eyelink(file, **large)


# --- damage ----------------------------------------------------------------------------------------------------------

DAMAGE = text_damage(rb"\s+", ("EFIX", "START", "R"), [lambda data: data.replace(b"\t", b" ")], reach=5_000)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "eye": st.sampled_from(["left", "right"]),
        "trial": st.just(r"TRIALID (\S+)"),
        "onset": st.just("PICTURE ON"),
        "offset": st.just("PICTURE OFF"),
        "without_picture": st.just("drop"),
        "without_end": st.just("keep"),
        "outside": st.just("drop"),
        "missing": st.just("drop"),
        "encoding": st.sampled_from(["latin-1", "utf-16", "ascii"]),
    },
)


def check_damaged(file: Path, change, choices: dict) -> None:
    file.write_bytes(change(ASC.encode()))

    def read() -> None:
        paths, report = read_eyelink(file, **SETTINGS, **choices)
        assert isinstance(paths, ScanPaths)
        assert report.fixations == report.rows - len(report.left_out)

    sentence(read)


@pytest.fixture(scope="module")
def damaged_file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "ann.asc"


@few
@given(change=several(DAMAGE, 4), choices=CHOICES)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(damaged_file, change, choices):
    check_damaged(damaged_file, change, choices)


@pytest.mark.slow
@many
@given(change=several(DAMAGE, 4), choices=CHOICES)
def test_ten_thousand_damaged_files_are_read_or_refused_in_a_sentence(damaged_file, change, choices):
    check_damaged(damaged_file, change, choices)
