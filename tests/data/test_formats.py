"""Settings files that name a format: what is read is what the format's reader reads, and contradictions are named."""

import re

import numpy as np
import pandas as pd
import pytest

from foveate.data.grid import Extent, PixelFrame
from foveate.data.project import Project
from foveate.data.readers.eyelink import read_eyelink
from foveate.data.readers.frames import read_pymovements
from foveate.data.readers.pysaliency_hdf5 import read_pysaliency
from foveate.data.readers.pysaliency_writing import write_pysaliency
from foveate.data.readers.saccade_tables import read_saccade_table
from foveate.data.readers.scenewalk import read_scenewalk
from foveate.data.readings import read_project
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

ASC = """\
MSG 1000 DISPLAY_COORDS 0 0 1279 1023
MSG 1010 TRIALID {trial}
START 1100 LEFT SAMPLES EVENTS
EVENTS GAZE LEFT RATE 1000.00 TRACKING CR FILTER 2
EFIX L 1105 1204 100 640.0 512.0 800
MSG 1250 PICTURE ON
EFIX L 1230 1429 200 660.0 520.0 810
EFIX L 1550 1799 250 900.0 700.0 820
EFIX L 1820 2019 200 {x} 300.0 815
END 2100 SAMPLES EVENTS RES 40.00 40.00
MSG 2101 !V TRIAL_VAR image beach.png
"""
SCREEN = PixelFrame(1024, 768, 40, left_px=128, near_px=128)
ON_SCREEN = "width_px = 1024\nheight_px = 768\npx_per_degree = 40\nleft_px = 128\nnear_px = 128"
SACCADES = """\
VP,Img,trial,saccade,x1,y1,x,y,before,duration,forced,blink
7,beach,1,1,10,7.5,1.5,2.5,300,250,0,0
7,beach,1,2,1.5,2.5,19,14,,180,1,1
8,wood,1,1,10,7,3,3,310,220,0,0
"""
EVENTS = """\
name,onset,offset,subject,page,location_x,location_y
fixation,0,199,a,beach,100,200
blink,199,230,a,beach,,
fixation,230,500,a,beach,300.5,400
saccade,500,520,a,beach,,
"""


def asc_files(folder, **settings):
    (folder / "asc").mkdir(exist_ok=True)
    for name, trial, x in (("ann", 1, 640.0), ("ben", 2, 1000.5)):
        (folder / "asc" / f"{name}.asc").write_text(ASC.format(trial=trial, x=x))


def saccades(folder):
    (folder / "saccades.csv").write_text(SACCADES)


def events(folder):
    (folder / "events.csv").write_text(EVENTS)


def hdf5(folder):
    table = pd.DataFrame({"observer": 3, "picture": [0, 0, 0, 1, 1], "fixation": [1, 2, 3, 1, 2], "x_deg": 1.5})
    table["y_deg"], table["duration_s"] = [1.0, 2.0, 3.0, 4.0, 5.0], 0.25
    table["cross"] = [1, 0, 0, 1, 0]
    paths = ScanPaths.from_table(table, Extent(12.0, 16.0, "top"))
    write_pysaliency(paths, folder / "paths.hdf5", PixelFrame(640, 480, 40), pictures=[0, 1])


def scenewalk(folder):
    place = folder / "walks"
    place.mkdir()
    ragged = {"x": [[[1.0, 2.0, 3.0], [4.0]]], "y": [[[1.0, 2.0, 3.0], [5.0]]], "dur": [[[0.2, 0.3, 0.2], [0.4]]]}
    ragged["im"] = [[[1, 1, 1], [2]]]
    for part, values in ragged.items():
        array = np.empty((1, 2), dtype=object)
        for trial, fixations in enumerate(values[0]):
            array[0, trial] = np.array(fixations)
        np.save(place / f"corpus_{part}.npy", array, allow_pickle=True)


STARTS = {"start": ("x1", "y1"), "start_duration": "before", "start_forced": True}
EYELINK = {"picture": r"TRIAL_VAR image (\S+)", "onset": "PICTURE ON", "trial": r"TRIALID (\d+)"}

# What makes the files, the settings, and what the reader is told instead.
FORMATS = {
    "eyelink": (
        asc_files,
        f'file = "asc/*.asc"\nformat = "eyelink"\noutside = "drop"\n[eyelink]\npicture = \'{EYELINK["picture"]}\'\n'
        f"onset = 'PICTURE ON'\ntrial = '{EYELINK['trial']}'\n[picture]\n{ON_SCREEN}\n",
        lambda it: read_eyelink(
            [it / "asc" / "ann.asc", it / "asc" / "ben.asc"], frame=SCREEN, outside="drop", **EYELINK
        ),
    ),
    "saccade_table": (
        saccades,
        'file = "saccades.csv"\nformat = "saccade_table"\n[saccade_table]\nstart = ["x1", "y1"]\n'
        'start_duration = "before"\nstart_forced = true\n'
        '[picture]\nwidth_deg = 20\nheight_deg = 15\norigin = "bottom"\n',
        lambda it: read_saccade_table(it / "saccades.csv", frame=Extent(15, 20, "bottom"), **STARTS),
    ),
    "saccades without starts": (
        saccades,
        'file = "saccades.csv"\nformat = "saccade_table"\nposition_unit = "deg"\n[saccade_table]\nstart = false\n'
        "blink = false\nduration = false\n"
        '[picture]\nwidth_deg = 20\nheight_deg = 15\nx0_deg = -0.5\norigin = "bottom"\n',
        lambda it: read_saccade_table(
            it / "saccades.csv",
            frame=Extent(15, 20, "bottom"),
            start=None,
            blink=None,
            duration=None,
            x0_deg=-0.5,
        ),
    ),
    "pysaliency": (
        hdf5,
        'file = "paths.hdf5"\nformat = "pysaliency"\nshortest = 2\n[pysaliency]\npictures = ["beach", "wood"]\n'
        'only = ["beach"]\nforced = "cross"\n[picture]\nwidth_px = 640\nheight_px = 480\npx_per_degree = 40\n',
        lambda it: read_pysaliency(
            it / "paths.hdf5",
            frame=PixelFrame(640, 480, 40),
            pictures=["beach", "wood"],
            only=["beach"],
            forced="cross",
        ),
    ),
    "pysaliency without durations": (
        hdf5,
        'file = "paths.hdf5"\nformat = "pysaliency"\n[pysaliency]\nduration = false\n'
        "[picture]\nwidth_px = 640\nheight_px = 480\npx_per_degree = 40\n",
        lambda it: read_pysaliency(it / "paths.hdf5", frame=PixelFrame(640, 480, 40), duration=None),
    ),
    "scenewalk": (
        scenewalk,
        'file = "walks"\nformat = "scenewalk"\n[scenewalk]\nname = "corpus"\nunpickle = true\n'
        '[picture]\nwidth_deg = 20\nheight_deg = 15\nx0_deg = 0.5\norigin = "bottom"\n',
        lambda it: read_scenewalk(it / "walks", unpickle=True, frame=Extent(15, 20, "bottom"), x0_deg=0.5),
    ),
    "pymovements": (
        events,
        'file = "events.csv"\nformat = "pymovements"\n[pymovements]\nobserver = "subject"\npicture = "page"\n'
        "[picture]\nwidth_px = 1280\nheight_px = 1024\npx_per_degree = 40\n",
        lambda it: read_pymovements(
            pd.read_csv(it / "events.csv"), frame=PixelFrame(1280, 1024, 40), observer="subject", picture="page"
        ),
    ),
}


def study(folder, settings: str):
    (folder / "study.toml").write_text("[data]\n" + settings)
    return folder / "study.toml"


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_read_as_its_reader_reads_it(tmp_path, name):
    make, settings, read = FORMATS[name]
    make(tmp_path)
    paths, report = Project.read(study(tmp_path, settings)).paths()
    expected, expected_report = read(tmp_path)
    assert paths.extent == expected.extent
    pd.testing.assert_frame_equal(paths.to_table(), expected.to_table(), check_exact=True)
    assert (report.rows, report.fixations, report.forced) == (
        expected_report.rows,
        expected_report.fixations,
        expected_report.forced,
    )


def test_a_list_of_files_is_read_in_its_order(tmp_path):
    make, settings, _ = FORMATS["eyelink"]
    make(tmp_path)
    listed = settings.replace('"asc/*.asc"', '["asc/ben.asc", "asc/ann.asc"]').replace(
        "[eyelink]", '[eyelink]\nobserver = ["b", "a"]'
    )
    paths, report = Project.read(study(tmp_path, listed)).paths()
    assert dict(zip(paths.observer.tolist(), paths.trial.tolist(), strict=True)) == {"a": 1, "b": 2}
    assert report.source == "2 files (ben.asc, ann.asc)"


def test_files_that_fit_a_pattern_are_read_by_their_names(tmp_path, monkeypatch):
    """Whatever the order in which the disk tells them."""
    make, settings, _ = FORMATS["eyelink"]
    make(tmp_path)
    monkeypatch.setattr("foveate.data.project.glob", lambda *_, **__: ["asc/ben.asc", "asc/ann.asc"])
    _, report = Project.read(study(tmp_path, settings)).paths()
    assert report.source == "2 files (ann.asc, ben.asc)"


def test_two_numbers_of_each_eye_can_be_chosen(tmp_path):
    rows = {"name": "fixation", "onset": [0, 300], "offset": [200, 400], "subject": "a", "page": "beach"}
    rows["location"] = [[1.0, 2.0, 40.0, 80.0], [3.0, 4.0, 120.0, 160.0]]
    pd.DataFrame(rows).to_parquet(tmp_path / "events.parquet")
    settings = (
        FORMATS["pymovements"][1].replace(".csv", ".parquet").replace("[picture]", "components = [2, 3]\n[picture]")
    )
    paths, _ = Project.read(study(tmp_path, settings)).paths()
    assert (paths.x_deg.tolist(), paths.y_deg.tolist()) == ([[1.0, 3.0]], [[2.0, 4.0]])


def test_the_rectangle_of_a_scenewalk_folder_may_come_from_the_folder(tmp_path):
    make, settings, _ = FORMATS["scenewalk"]
    make(tmp_path)
    np.save(tmp_path / "walks" / "corpus_range.npy", np.array([[0.0, 30.0], [0.0, 20.0]]))
    paths, _ = Project.read(study(tmp_path, settings[: settings.index("[picture]")])).paths()
    assert paths.extent == Extent(20.0, 30.0, "bottom")


def test_pickles_are_read_only_if_asked_for(tmp_path):
    make, settings, _ = FORMATS["scenewalk"]
    make(tmp_path)
    for words in ("", "unpickle = false"):
        file = study(tmp_path, settings.replace("unpickle = true", words))
        with pytest.raises(InputError, match=r"corpus_x.npy is a pickle.* read it with unpickle=True"):
            Project.read(file).paths()


def test_lines_of_a_file_of_events_are_those_of_the_file(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS.replace("300.5,400", "1300.5,400"))
    settings = FORMATS["pymovements"][1]
    words = r"events.csv, line 4 \(observer a, picture 'beach', fixation 2\): x = 1300.5 px lies outside"
    with pytest.raises(InputError, match=words):
        Project.read(study(tmp_path, settings)).paths()


def test_maps_are_made_for_every_format(tmp_path):
    make, settings, _ = FORMATS["eyelink"]
    make(tmp_path)
    readings = read_project(Project.read(study(tmp_path, settings + "[maps]\nbandwidth_deg = 2.0\n")), 8)
    assert readings.grid.shape == (8, 8)
    assert "forced: they condition" in readings.said[0]


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("eyelink", '"eyelink"', '"tobii"', "format = 'tobii'; there are table, eyelink, saccade_table, pysaliency"),
        ("eyelink", "[eyelink]", "[eyelnk]", r"no section 'eyelnk'; do you mean 'eyelink'\?"),
        ("eyelink", "picture = 'TRIAL", "picure = 'TRIAL", r"\[eyelink\]: there is no setting 'picure'; do you mean"),
        ("eyelink", "[picture]", "[pysaliency]\n[picture]", r"\[pysaliency\] is for format = 'pysaliency', but"),
        ("eyelink", "[picture]", "[columns]\n[picture]", r"\[columns\] is for format = 'table', but"),
        ("eyelink", "outside", 'position_unit = "deg"\noutside', "position_unit = 'deg', but eyelink has 'px'; leave"),
        ("eyelink", "outside", 'duration_unit = "s"\noutside', "duration_unit is for tables; eyelink has its own"),
        ("eyelink", "width_px = 1024", "", r"\[picture\]: width_px missing"),
        ("eyelink", 'format = "eyelink"', 'position_unit = "px"', r"\[eyelink\] is for format = 'eyelink', .*'table'"),
        ("pysaliency", "[pysaliency]", "[pysaliency]\nunit = 's'", "no setting 'unit'"),
        ("pysaliency", 'only = ["beach"]', 'only = ["beach", 1]', "give a list of text in quotes or a list of whole"),
        ("saccade_table", 'start = ["x1", "y1"]\n', "", r"\[saccade_table\]: start missing; it must be said"),
        ("pymovements", 'observer = "subject"\n', "", r"\[pymovements\]: observer missing; it must be said"),
    ],
)  # fmt: skip
def test_a_contradiction_is_named_before_anything_is_read(tmp_path, name, before, after, words):
    settings = FORMATS[name][1]
    assert before in settings
    with pytest.raises(InputError, match=words):
        Project.read(study(tmp_path, settings.replace(before, after)))


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("eyelink", '"asc/*.asc"', '"other/*.asc"', r"\[data\]: file = 'other/\*.asc', but no file fits that"),
        ("saccade_table", '"saccades.csv"', '["a.csv", "b.csv"]', r"\[saccade_table\]: there are 2 files; this format"),
        ("saccade_table", 'start = ["x1", "y1"]', "start = true", r"\[saccade_table\]: start = true; name it, or say"),
        ("saccades without starts", "blink = false", "blink = true", "blink = true; name it, or say false"),
        ("pymovements", "[picture]", "components = [1]\n[picture]", r"components = \[1\]; give two numbers"),
    ],
)  # fmt: skip
def test_what_shows_only_when_files_are_read_is_named_too(tmp_path, name, before, after, words):
    make, settings, _ = FORMATS[name]
    make(tmp_path)
    assert len(re.findall(re.escape(before), settings)) == 1
    with pytest.raises(InputError, match=words):
        Project.read(study(tmp_path, settings.replace(before, after))).paths()
