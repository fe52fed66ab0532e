"""Settings files: what they say is what is read, and every mistake in one is named."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from foveate.data.dataset import Dataset, each_observer
from foveate.data.density import choose_bandwidth, density_maps, leave_one_out_maps
from foveate.data.project import Project
from foveate.data.readings import BANDWIDTHS_DEG, read_project, read_settings
from foveate.errors import InputError

CELLS = 8

TABLE = """subject,image,number,x,y,ms,mood
ann,beach,1,10,20,200,1
ann,beach,2,300,150,210,2
ann,beach,3,200,100,220,3
ann,wood,1,390,190,230,4
ann,wood,2,0,0,240,5
ann,wood,3,40,60,250,6
ben,beach,1,210,110,260,7
ben,beach,2,220,90,270,8
ben,wood,1,50,70,280,9
ben,wood,2,60,50,290,10
"""

SETTINGS = """
[data]
file = "fixations.csv"
position_unit = "px"
duration_unit = "ms"
[columns]
observer = "subject"
picture = "image"
fixation = "number"
duration = "ms"
[picture]
width_px = 400
height_px = 200
px_per_degree = 20
[maps]
bandwidth_deg = 2.0
leave_one_out = false
[study]
models = ["full", "local_saliency"]
folds = 2
"""


@pytest.fixture
def study(tmp_path):
    """Writes the settings with changes; returns their file."""
    (tmp_path / "fixations.csv").write_text(TABLE)

    def write(*changes: tuple[str, str]):
        text = SETTINGS
        for before, after in changes:
            assert before in text
            text = text.replace(before, after)
        (tmp_path / "study.toml").write_text(text)
        return tmp_path / "study.toml"

    return write


def test_paths_are_those_of_the_table_in_degrees(study):
    paths, report = Project.read(study()).paths()
    assert (report.rows, len(paths), paths.observers, paths.pictures) == (10, 4, ["ann", "ben"], ["beach", "wood"])
    first = next(iter(paths))
    np.testing.assert_allclose(first.x_deg, [0.5, 15.0, 10.0])
    np.testing.assert_allclose(first.y_deg, [1.0, 7.5, 5.0])
    np.testing.assert_allclose(first.duration_s, [0.2, 0.21, 0.22])
    assert first.columns["mood"].tolist() == [1, 2, 3]
    assert paths.extent.origin == "top"


def test_positions_in_degrees_have_a_corner(study):
    changes = [
        ('position_unit = "px"', 'position_unit = "deg"'),
        ("width_px = 400", "width_deg = 400\nx0_deg = -5"),
        ("height_px = 200", "height_deg = 210\ny0_deg = -2.5"),
        ("px_per_degree = 20", 'origin = "bottom"'),
    ]
    paths, _ = Project.read(study(*changes)).paths()
    first = next(iter(paths))
    np.testing.assert_allclose(first.x_deg, [15, 305, 205])
    np.testing.assert_allclose(first.y_deg, [22.5, 152.5, 102.5])


def test_pixels_may_be_of_different_size_along_rows_and_columns(study):
    paths, _ = Project.read(study(("px_per_degree = 20", "px_per_degree = [10, 20]"))).paths()
    assert (paths.extent.height_deg, paths.extent.width_deg) == (20.0, 20.0)
    np.testing.assert_allclose(next(iter(paths)).y_deg, [2.0, 15.0, 10.0])


def test_rows_and_paths_that_do_not_fit_are_an_error_or_left_out_as_the_settings_say(study, tmp_path):
    with pytest.raises(InputError, match="the path has 2 fixations, but 3 are needed"):
        Project.read(study(("[columns]", "shortest = 3\n[columns]"))).paths()
    (tmp_path / "fixations.csv").write_text(TABLE.replace("ann,beach,2,300", "ann,beach,2,500").replace("50,70", ",70"))
    for said, words in (
        ("", "x is empty"),
        ('missing = "drop"', "x = 500 px lies outside"),
        ('outside = "drop"', "x is"),
    ):
        with pytest.raises(InputError, match=words):
            Project.read(study(("[columns]", f"{said}\n[columns]"))).paths()
    both = 'outside = "drop"\nmissing = "drop"'
    _, report = Project.read(study(("[columns]", f"{both}\n[columns]"))).paths()
    assert [row.number for row in report.left_out] == [3, 10]


def test_maps_of_everybody_are_the_density_of_all_fixations(study):
    readings = read_project(Project.read(study()), CELLS)
    assert isinstance(readings.data, Dataset)
    expected = density_maps(readings.paths, readings.grid, 2.0, uniform_share=0.01)
    np.testing.assert_array_equal(readings.data.maps.values, expected.values)


def test_an_observers_own_maps_do_not_know_their_fixations(study, tmp_path):
    file = study(("leave_one_out = false", "leave_one_out = true"))
    before = each_observer(read_project(Project.read(file), CELLS).data)
    (tmp_path / "fixations.csv").write_text(TABLE.replace("ann,beach,3,200,100", "ann,beach,3,30,180"))
    after = each_observer(read_project(Project.read(file), CELLS).data)
    np.testing.assert_array_equal(before["ann"].maps["beach"], after["ann"].maps["beach"])
    assert np.abs(before["ben"].maps["beach"] - after["ben"].maps["beach"]).max() > 1e-3


def test_an_observers_own_maps_are_smoothed_and_mixed_as_the_settings_say(study):
    file = study(("leave_one_out = false", "leave_one_out = true\nuniform_share = 0.25"))
    readings = read_project(Project.read(file), CELLS)
    expected = leave_one_out_maps(readings.paths, readings.grid, 2.0, uniform_share=0.25)
    for observer, own in each_observer(readings.data).items():
        np.testing.assert_array_equal(own.maps.values, expected[observer].values)
    assert readings.said[1] == "Maps without the observer's own fixations, smoothed with 2 deg."


def test_the_best_bandwidth_is_taken_and_said(study, tmp_path):
    file = study(("bandwidth_deg = 2.0", 'bandwidth_deg = "best"'))
    near = [f"ben,{what},{number},{x},{y},200,1" for what in ("beach", "wood")
            for number, (x, y) in enumerate([(60, 20), (250, 150), (350, 90)], 1)]  # fmt: skip
    same = [f"ann,{what},{number},{x},{y},200,1" for what in ("beach", "wood")
            for number, (x, y) in enumerate([(30, 20), (290, 150), (390, 90)], 1)]  # fmt: skip
    (tmp_path / "fixations.csv").write_text("\n".join([TABLE.splitlines()[0], *same, *near]))
    readings = read_project(Project.read(file), CELLS)
    found = choose_bandwidth(readings.paths, readings.grid, BANDWIDTHS_DEG, uniform_share=0.01)
    assert f"smoothed with {found.best_deg:g} deg, the best of 0.5, 0.7, 1.0" in readings.said[1]
    assert f"{found.held_out_bits.max():.2f} bits" in readings.said[1]
    assert 0.5 < found.best_deg < 4.0  # neither the first nor the last of those that are tried
    expected = density_maps(readings.paths, readings.grid, found.best_deg, uniform_share=0.01)
    assert isinstance(readings.data, Dataset)
    np.testing.assert_array_equal(readings.data.maps.values, expected.values)


def test_the_best_bandwidth_needs_two_observers(study, tmp_path):
    file = study(("bandwidth_deg = 2.0", 'bandwidth_deg = "best"'))
    (tmp_path / "fixations.csv").write_text("\n".join(TABLE.splitlines()[:7]))
    with pytest.raises(
        InputError, match=r"bandwidth_deg = 'best' needs two observers or more, and there is ann; give a"
    ):
        read_project(Project.read(file), CELLS)


@pytest.mark.parametrize("own", ["false", "true"])
def test_the_data_of_some_observers_are_theirs(study, own):
    readings = read_project(Project.read(study(("leave_one_out = false", f"leave_one_out = {own}"))), CELLS)
    assert list(each_observer(readings.chosen(["ben"]))) == ["ben"]
    assert list(each_observer(readings.chosen(None))) == ["ann", "ben"]
    with pytest.raises(InputError, match="observer carl not in the data"):
        readings.chosen(["carl"])
    assert readings.grid.shape == (CELLS, CELLS)


def test_maps_and_pictures_come_from_folders(study, tmp_path):
    for folder in ("maps", "pictures"):
        (tmp_path / folder).mkdir()
    weights = np.zeros((20, 40), dtype=np.uint8)
    weights[:10] = 100  # the upper half, where y is small
    for name in ("beach", "wood"):
        Image.fromarray(weights).save(tmp_path / "maps" / f"{name}.png")
    Image.new("RGB", (40, 20)).save(tmp_path / "pictures" / "wood.jpg")
    file = study(
        ("bandwidth_deg = 2.0", 'made_from = "images"\nfolder = "maps"\nuniform_share = 0.5'),
        ("px_per_degree = 20", 'px_per_degree = 20\nfolder = "pictures"'),
    )
    readings = read_project(Project.read(file), CELLS)
    assert isinstance(readings.data, Dataset)
    np.testing.assert_allclose(readings.data.maps["beach"][:4], (0.5 * 2 + 0.5) / CELLS**2)
    np.testing.assert_allclose(readings.data.maps["beach"][4:], 0.5 / CELLS**2)
    assert {name: it.name for name, it in readings.pictures.items()} == {"wood": "wood.jpg"}
    (tmp_path / "maps" / "wood.png").unlink()
    with pytest.raises(InputError, match="no image of picture wood"):
        read_project(Project.read(file), CELLS)


def test_pictures_without_a_file_are_counted_and_named(study, tmp_path):
    (tmp_path / "pictures").mkdir()
    file = study(("px_per_degree = 20", 'px_per_degree = 20\nfolder = "pictures"'))
    words = "no file for 2 of 2 pictures: beach, wood; they are shown without background"
    assert words in read_project(Project.read(file), CELLS).missing
    for name in ("beach.png", "wood"):  # with an ending or without
        (tmp_path / "pictures" / name).write_bytes(b"")
    assert read_project(Project.read(file), CELLS).missing == ""
    assert read_project(Project.read(study()), CELLS).missing == ""  # no folder is named


@pytest.mark.parametrize("own", ["false", "true"])
def test_the_gain_of_maps_is_that_of_their_cells_over_uniform(study, own):
    readings = read_project(Project.read(study(("leave_one_out = false", f"leave_one_out = {own}"))), CELLS)
    bits = [
        np.log2(CELLS**2 * part.maps[path.picture][readings.grid.cell_of(y, x)])
        for part in each_observer(readings.data).values()
        for path in part.paths
        for y, x in zip(path.y_deg, path.x_deg, strict=True)
    ]
    assert len(bits) == 10
    assert readings.gain_bits == pytest.approx(np.mean(bits))
    if own == "true":
        found = choose_bandwidth(readings.paths, readings.grid, [2.0], uniform_share=0.01)
        assert readings.gain_bits == pytest.approx(found.held_out_bits[0])


def test_forced_fixations_do_not_enter_the_gain_of_maps(study, tmp_path):
    file = study(('duration = "ms"', 'duration = "ms"\nforced = "mood"'))
    rows = [line.rsplit(",", 1)[0] for line in TABLE.splitlines()[1:]]
    flagged = [f"{row},{int(row.startswith('ann,wood,2'))}" for row in rows]
    (tmp_path / "fixations.csv").write_text("\n".join([TABLE.splitlines()[0], *flagged]))
    readings = read_project(Project.read(file), CELLS)
    assert isinstance(readings.data, Dataset)
    every = np.log2(CELLS**2 * readings.data.maps.at(readings.paths))
    assert readings.paths.forced.sum() == 1
    assert readings.gain_bits == pytest.approx(np.mean(every[readings.paths.real & ~readings.paths.forced]))


def test_settings_are_read_in_one_go_with_their_own_cells(study):
    file = study(("folds = 2", "folds = 2\ncells = 6"))
    assert read_settings(file).grid.shape == (6, 6)
    assert read_settings(file, cells=9).grid.shape == (9, 9)
    assert read_settings(study()).grid.shape == (64, 64)
    assert read_settings(file).paths.observers == ["ann", "ben"]


def test_study_settings_are_options_of_the_command_line(study):
    assert Project.read(study()).study.options() == {"models": "full,local_saliency", "folds": 2}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[columns]", "[colums]", r"no section 'colums'; do you mean 'columns'\?"),
        ("width_px = 400", "with_px = 400", r"\[picture\]: there is no setting 'with_px'; do you mean 'width_px'"),
        ("width_px = 400", "", "width_px missing; positions in px need"),
        ("width_px = 400", 'width_px = "400"', "width_px = '400'; give a number"),
        ("width_px = 400", "width_px = true", "width_px = True; give a number"),
        ("width_px = 400", "width_px = 400\nwidth_deg = 20", "width_deg cannot go with positions in px"),
        ('position_unit = "px"', "", r"\[data\]: position_unit missing; it must be said"),
        ('position_unit = "px"', 'position_unit = "mm"', "say 'px' or 'deg'"),
        ("folds = 2", "folds = 2.5", "folds = 2.5; give a whole number"),
        ("folds = 2", 'folds = "two"', "give a whole number"),
        ('models = ["full", "local_saliency"]', 'models = "full"', "give a list of text in quotes"),
        ("leave_one_out = false", "leave_one_out = 1", "give true or false"),
        ("bandwidth_deg = 2.0", 'bandwidth_deg = "wide"', "give a number of degrees, or 'best'"),
        ("bandwidth_deg = 2.0", 'made_from = "images"', "maps from images need the folder"),
        ("bandwidth_deg = 2.0", 'made_from = "air"', "say 'fixations' or 'images'"),
        (SETTINGS, "data = 3", "data is a section"),
        ("[data]", "[data", "mend that line"),
    ],
)
def test_a_mistake_is_named_with_its_section(study, before, after, words):
    with pytest.raises(InputError, match=words):
        Project.read(study((before, after)))


def test_files_that_are_not_there_or_not_text_are_named(study, tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        Project.read(tmp_path / "other.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        Project.read(tmp_path / "binary.toml")
    with pytest.raises(InputError, match="there is no such file"):
        Project.read(study(('"fixations.csv"', '"other.csv"'))).paths()


def test_data_of_observers_must_be_theirs(study):
    each = each_observer(read_project(Project.read(study()), CELLS).data)
    with pytest.raises(InputError, match="data of observer 'ann' are of ben"):
        each_observer({"ann": each["ben"]})


def test_a_frame_reads_as_its_file(study, tmp_path):
    """A settings file beside a Parquet table gives the same paths as beside the text."""
    file = study()
    before, _ = Project.read(file).paths()
    pd.read_csv(tmp_path / "fixations.csv").to_parquet(tmp_path / "fixations.parquet")
    after, _ = Project.read(study(('"fixations.csv"', '"fixations.parquet"'))).paths()
    np.testing.assert_array_equal(before.x_deg, after.x_deg)
