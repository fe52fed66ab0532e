"""`foveate init` and `foveate check`: from a table to settings, and every problem in it by its line."""

import json

import pytest

pytestmark = pytest.mark.usefixtures("unchecked_types")

TABLE = """Subject,Image,fix,x,y,dur,pupil
1,beach,1,10,20,200,9
1,beach,2,300,150,210,9
1,beach,3,200,100,220,9
1,wood,1,390,190,230,9
1,wood,2,0,0,240,9
2,beach,1,210,110,260,9
2,beach,2,220,90,270,9
2,wood,1,50,70,280,9
2,wood,2,60,50,290,9
"""
SAID = ("--position-unit", "px", "--duration-unit", "ms", "--width", "400", "--height", "200", "--px-per-degree", "20")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixations.csv").write_text(TABLE)
    return tmp_path / "fixations.csv"


def test_what_init_writes_check_reads(table, foveate_command):
    code, out, err = foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    assert (code, err) == (0, "")
    assert "study.toml was written" in out
    text = (table.parent / "study.toml").read_text()
    assert 'observer = "Subject"' in text
    assert "# kept as they are: pupil" in text
    code, out, err = foveate_command("check", "study.toml", "--figure", "seen/check.png", "--cells", 8)
    assert (code, err) == (0, "")
    for words in (
        "9 rows read, 9 fixations in 4 paths kept",
        "2 observers, 2 pictures; an observer saw 2 of them, with 2 to 3 fixations on each.",
        "1 fixation can be predicted (the third of a path and on); 3 paths without any.",
        "The picture is 20 x 10 deg",
        "Maps without the observer's own fixations",
        "Ready, with 1 warning: foveate fit --data study.toml",  # nine fixations make no map that predicts
    ):
        assert words in out
    assert {it.name for it in (table.parent / "seen").iterdir()} == {"check.png", "check.svg"}


def test_every_problem_is_named_by_its_line(table, foveate_command):
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    table.write_text(TABLE.replace("1,beach,2,300", "1,beach,2,500").replace("2,wood,2,60,50", "2,wood,2,,50"))
    code, out, _ = foveate_command("check", "study.toml", "--json")
    problems = json.loads(out)["problems"]
    assert code == 1
    assert len(problems) == 2
    assert problems[0] == (
        "fixations.csv, line 3 (observer 1, picture 'beach', fixation 2, x = 500, y = 150): lies outside the picture."
    )
    assert "line 10 (observer 2, picture 'wood', fixation 2, x = (empty), y = 50): has no position." in problems[1]
    code, out, _ = foveate_command("check", "study.toml")
    assert code == 1
    assert "2 problems: 1 outside the picture, 1 without a position." in out
    assert "Ready" not in out
    for line in (3, 10):
        assert out.count(f"line {line} ") == 1


def test_ten_bad_rows_are_shown_and_the_others_counted(table, foveate_command):
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    rows = [f"3,beach,{number},{500 if number > 2 else 30},20,200,9" for number in range(1, 26)]
    table.write_text(TABLE + "\n".join(rows) + "\n3,wood,1,,20,200,9\n")
    code, out, _ = foveate_command("check", "study.toml")
    assert code == 1
    lines = out.splitlines()
    assert "24 problems: 23 outside the picture, 1 without a position." in lines
    assert len([it for it in lines if "lies outside the picture" in it]) == 10
    assert "- and 14 more; --json lists all." in lines
    assert out.count("line 13 ") == 1
    code, out, _ = foveate_command("check", "study.toml", "--json")
    assert len(set(json.loads(out)["problems"])) == 24
    # Rows that the settings leave out are no problems, and are told as before.
    settings = table.parent / "study.toml"
    settings.write_text(settings.read_text().replace('outside = "error"', 'outside = "drop"'))
    code, out, _ = foveate_command("check", "study.toml")
    assert "23 left out, outside the picture: " in out
    assert "1 problem: 1 without a position." in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("init", "fixations.csv"), "--position-unit missing"),
        (("init", "fixations.csv", *SAID), "--origin missing"),
        (("init", "fixations.csv", *SAID, "--origin", "left"), "say top or bottom"),
        (("init", "fixations.csv", *SAID, "--duration-unit", "min", "--origin", "top"), "say ms or s"),
        (("init", "fixations.csv", *SAID, "--position-unit", "cm", "--origin", "top"), "say px or deg"),
        (("init", "fixations.csv", *SAID, "--origin", "top", "--out", "study.txt"), "must end in .toml"),
        (("init", "other.csv", *SAID), "no such file"),
        (("check", "fixations.csv"), "`foveate init fixations.csv` writes one"),
        (("fit", "--data", "fixations.csv", "--out", "x"), "`foveate init fixations.csv` writes one"),
        (("fit", "--data", "fixtaions.CSV", "--out", "x"), "`foveate init fixtaions.CSV` writes one"),
        (("reproduce", "--data", "fixations.csv", "--out", "x"), "settings that `foveate init` writes"),
        (("check", "other.toml"), "no such file"),
        (("fit", "--data", "other.toml", "--out", "x"), "no such file"),
    ],
)
def test_a_mistake_is_one_line(table, foveate_command, arguments, words):
    code, out, err = foveate_command(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1


def test_nothing_is_written_over(table, foveate_command):
    (table.parent / "study.toml").write_text("mine")
    code, _, err = foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    assert code == 2
    assert "was not written over" in err
    assert (table.parent / "study.toml").read_text() == "mine"


def test_settings_are_defaults_of_options(table, foveate_command):
    """[study] says which models; an option says otherwise. The wrong name shows which of them was read."""
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings = table.parent / "study.toml"
    settings.write_text(settings.read_text().replace('"full"', '"fool"'))
    _, _, err = foveate_command("compare", "--data", "study.toml", "--out", "x")
    assert "no model fool" in err
    _, _, err = foveate_command("compare", "--data=study.toml", "--models", "dull", "--out", "x")
    assert "no model dull" in err


def test_positions_in_degrees_need_no_pixels_and_numbers_keep_their_digits(table, foveate_command):
    from foveate.data.project import Project

    table.write_text("subject_id,stimulus,index,x_deg,y_deg,is_forced\n1,a,1,1.5,2.5,1\n1,a,2,3,4,0\n2,a,1,3,4,1\n")
    options = ("--position-unit", "deg", "--width", "31.0812345678", "--height", "24.86", "--origin", "bottom")
    assert foveate_command("init", "fixations.csv", *options, "--out", "deep/er.toml")[0] == 0
    project = Project.read(table.parent / "deep" / "er.toml")
    assert project.data.file == "../fixations.csv"
    assert (project.data.position_unit, project.data.duration_unit) == ("deg", None)
    assert (project.columns.observer, project.columns.fixation, project.columns.forced) == (
        "subject_id",
        "index",
        "is_forced",
    )
    assert (project.columns.duration, project.columns.trial) == (None, None)
    paths, _ = project.paths()
    assert (paths.extent.width_deg, paths.extent.height_deg, paths.extent.origin) == (31.0812345678, 24.86, "bottom")
    assert paths.forced.sum() == 2


def test_odd_names_of_columns_and_files_are_written_so_that_they_are_read(tmp_path, monkeypatch, foveate_command):
    from foveate.data.project import Project

    monkeypatch.chdir(tmp_path)
    header = 'VP,Img,"fix","X","Y","say ""a"" \\ b","two\nlines\r[x]"'
    (tmp_path / 'a "b" \\ c.csv').write_text(header + "\n1,1,1,2,3,4,5\n", newline="")
    options = ("--position-unit", "px", "--width", 9, "--height", 9, "--px-per-degree", 1, "--origin", "top")
    assert foveate_command("init", 'a "b" \\ c.csv', *options)[0] == 0
    paths, _ = Project.read(tmp_path / "study.toml").paths()
    assert paths.x_deg.tolist() == [[2.0]]


def test_settings_that_cannot_be_are_not_left_behind(table, foveate_command):
    options = [*SAID, "--origin", "top"]
    options[options.index("--width") + 1] = "-400"
    code, _, err = foveate_command("init", "fixations.csv", *options)
    assert code == 2
    assert len(err.splitlines()) == 1
    assert not (table.parent / "study.toml").exists()


def test_forced_fixations_are_said_and_not_counted_as_steps(table, foveate_command):
    rows = TABLE.replace("pupil", "forced").replace(",9\n", ",0\n")
    rows = rows.replace("1,beach,3,200,100,220,0", "1,beach,3,2,1,220,1")
    table.write_text(rows.replace("1,wood,2,0,0,240,0\n", "1,wood,2,0,0,240,0\n1,wood,3,5,5,240,0\n"))
    assert foveate_command("init", "fixations.csv", *SAID, "--origin", "top")[0] == 0
    _, out, _ = foveate_command("check", "study.toml", "--cells", 8)
    assert "1 forced: they condition, and are not scored." in out
    words = "the third of a path and on; forced ones condition later ones and are not scored"
    assert f"1 fixation can be predicted ({words}); 3 paths without any." in out
    _, out, _ = foveate_command("check", "study.toml", "--cells", 8, "--json")
    found = json.loads(out)
    assert (found["forced"], found["steps"], found["paths_without_steps"], found["fixations"]) == (1, 1, 3, 10)


def test_other_formats_are_checked_as_tables_are(table, foveate_command):
    lines = ["START 1 LEFT EVENTS", "EVENTS GAZE LEFT", "MSG 2 IMAGE beach"]
    lines += [f"EFIX L {at} {at + 99} 100 {x} 100 9" for at, x in ((10, 10), (210, 90), (410, 500), (610, 30))]
    for name in ("ann", "ben"):
        (table.parent / f"{name}.asc").write_text("\n".join([*lines, "END 900"]))
    settings = '[data]\nfile = "*.asc"\nformat = "eyelink"\n[eyelink]\npicture = "IMAGE (.+)"\n[picture]\n'
    settings += "width_px = 400\nheight_px = 200\npx_per_degree = 20\n"
    (table.parent / "study.toml").write_text(settings)
    code, out, _ = foveate_command("check", "study.toml", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == [
        f"{name}.asc, line 6 (observer {name}, picture 'beach', fixation 3, x = 500, y = 100): lies outside the "
        "picture."
        for name in ("ann", "ben")
    ]
    (table.parent / "study.toml").write_text(settings.replace("[eyelink]", 'outside = "drop"\n[eyelink]'))
    code, out, err = foveate_command("check", "study.toml", "--cells", 8)
    assert (code, err) == (0, "")
    assert "8 rows read, 6 fixations in 2 paths kept." in out
    assert "Ready: foveate fit --data study.toml" in out


def test_paths_that_are_too_short_are_problems(table, foveate_command):
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings = table.parent / "study.toml"
    settings.write_text(settings.read_text().replace("[columns]", "shortest = 3\n[columns]", 1))
    code, out, _ = foveate_command("check", "study.toml", "--json")
    assert code == 1
    assert json.loads(out)["problems"] == [
        f"observer {who}, picture '{what}': shorter than 3 fixations."
        for who, what in ((1, "wood"), (2, "beach"), (2, "wood"))
    ]


def test_numbers_of_the_data_are_right(table, foveate_command):
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    _, out, _ = foveate_command("check", "study.toml", "--json", "--cells", 8)
    found = json.loads(out)
    expected = {"observers": 2, "pictures": 2, "paths": 4, "fixations": 9, "steps": 1, "rows": 9, "forced": 0}
    expected |= {"shortest_path": 2, "longest_path": 3, "paths_without_steps": 3, "fewest_pictures": 2}
    expected |= {"most_pictures": 2, "median_duration_s": 0.24, "width_deg": 20, "height_deg": 10, "problems": []}
    assert found == found | expected
    # With a problem there are no maps, for which each picture must have been seen by two.
    table.write_text("\n".join(TABLE.splitlines()[:-2]).replace("2,beach,2,220", "2,beach,2,520"))
    found_less = json.loads(foveate_command("check", "study.toml", "--json")[1])
    assert (found_less["fewest_pictures"], found_less["most_pictures"], len(found_less["problems"])) == (1, 2, 1)
    # The saccades are (290, 130), (-100, -50), (-390, -190), (10, -20) and (10, -20) px: the middle one is the second.
    assert found["median_amplitude_deg"] == pytest.approx((100**2 + 50**2) ** 0.5 / 20)


# --- numbers that no eye makes ---------------------------------------------------------------------------------------


def rows_of(*, far: float = 80.0, duration: float = 250.0) -> str:
    """Two observers who look at the same places of two pictures, `far` px apart, for so long."""
    places = [(100 + far * (number % 2), 40 + number) for number in range(12)]
    return "Subject,Image,fix,x,y,dur\n" + "".join(
        f"{who},{what},{number},{x + who},{y},{duration}\n"
        for who in (1, 2)
        for what in ("beach", "wood")
        for number, (x, y) in enumerate(places, 1)
    )


def test_ordinary_numbers_are_said_to_be_usual_and_nothing_is_warned_of(table, foveate_command):
    table.write_text(rows_of())
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    code, out, _ = foveate_command("check", "study.toml", "--cells", 16)
    assert code == 0
    assert "half of all saccades are shorter than 4 deg, which is usual (3 to 6 deg where people view pictures)." in out
    assert "Warning" not in out
    assert out.splitlines()[-1] == "Ready: foveate fit --data study.toml --out fits"
    for far, words in ((30, "which is less than usual"), (200, "which is more than usual")):
        table.write_text(rows_of(far=far))
        _, out, _ = foveate_command("check", "study.toml", "--cells", 16)
        assert words in out
        assert out.splitlines()[-1].startswith("Ready: ")


@pytest.mark.parametrize(
    ("rows", "before", "after", "words"),
    [
        (
            {"far": 40},
            "px_per_degree = 20",
            "px_per_degree = 2",
            "the picture is 200 x 100 deg, but nobody sees more than 180",
        ),
        ({"far": 5}, "", "", "shorter than 0.255 deg, far below the few degrees that eyes move in pictures: is px_per"),
        ({"far": 290}, "px_per_degree = 20", "px_per_degree = 9", "shorter than 32.2 deg, far above"),
        ({}, 'duration_unit = "ms"', 'duration_unit = "s"', "last less than 250 s, but they usually last about 0.25"),
        ({"duration": 0.25}, "", "", "last less than 0.00025 s, but they usually last about 0.25 s: are durations re"),
    ],
)
def test_numbers_that_no_eye_makes_are_warned_of(table, foveate_command, rows, before, after, words):
    table.write_text(rows_of(**rows))
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings = table.parent / "study.toml"
    assert before in settings.read_text()
    settings.write_text(settings.read_text().replace(before, after))
    code, out, _ = foveate_command("check", "study.toml", "--cells", 16)
    assert code == 0
    assert [words in line for line in out.splitlines() if line.startswith("Warning: ")] == [True]
    assert out.splitlines()[-1] == "Ready, with 1 warning: foveate fit --data study.toml --out fits"
    assert len(json.loads(foveate_command("check", "study.toml", "--cells", 16, "--json")[1])["warnings"]) == 1


def test_the_unit_that_was_said_is_asked_after(table, foveate_command):
    table.write_text(rows_of(duration=7000))
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    assert "are durations really in ms?" in foveate_command("check", "study.toml", "--cells", 16)[1]
    options = ("--position-unit", "deg", "--duration-unit", "s", "--width", 400, "--height", 200, "--origin", "top")
    foveate_command("init", "fixations.csv", *options, "--out", "deg.toml")
    code, out, _ = foveate_command("check", "deg.toml", "--cells", 16)
    assert code == 0
    assert out.count("are positions really in deg?") == 2  # the picture's size, and saccades of 80 deg
    assert "are durations really in s?" in out
    assert "Ready, with 3 warnings: " in out


def test_maps_that_are_worse_than_none_are_warned_of(table, foveate_command):
    """Maps that are dark where people look; with the same picture upside down there is nothing to say."""
    import numpy as np
    from PIL import Image

    table.write_text(rows_of())  # all in the upper half of a picture with y = 0 at its top
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings, maps = table.parent / "study.toml", table.parent / "maps"
    text = settings.read_text().replace('made_from = "fixations"', 'made_from = "images"\nfolder = "maps"')
    settings.write_text(text)
    maps.mkdir()
    weights = np.zeros((20, 40), dtype=np.uint8)
    weights[:10] = 100
    for name in ("beach", "wood"):
        Image.fromarray(weights).save(maps / f"{name}.png")
    found = json.loads(foveate_command("check", "study.toml", "--cells", 20, "--json")[1])
    assert found["warnings"] == []
    assert found["gain_bits"] == pytest.approx(np.log2(0.99 * 2 + 0.01))  # half of all cells are bright
    for name in ("beach", "wood"):
        Image.fromarray(weights[::-1]).save(maps / f"{name}.png")
    code, out, _ = foveate_command("check", "study.toml", "--cells", 20)
    assert code == 0
    assert "Warning: the maps predict fixations worse than none at all (-" in out


def test_paths_in_which_nothing_can_be_predicted_are_warned_of(table, foveate_command):
    table.write_text("".join(line + "\n" for line in rows_of().splitlines() if line.split(",")[2] in ("fix", "1", "2")))
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    _, out, _ = foveate_command("check", "study.toml", "--cells", 16)
    assert "Warning: no fixation can be predicted" in out


def test_pictures_without_a_file_are_named(table, foveate_command):
    table.write_text(rows_of())
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings, pictures = table.parent / "study.toml", table.parent / "photos"
    settings.write_text(settings.read_text().replace('# folder = "pictures"', 'folder = "photos"'))
    pictures.mkdir()
    (pictures / "wood.jpg").write_bytes(b"")
    code, out, _ = foveate_command("check", "study.toml", "--cells", 16)
    assert code == 0
    assert "folder = 'photos' has no file for 1 of 2 pictures: beach; it is shown without background" in out
    assert "Ready, with 1 warning: " in out
    (pictures / "beach.png").write_bytes(b"")
    assert "background" not in foveate_command("check", "study.toml", "--cells", 16)[1]


def test_cells_are_those_of_the_settings_unless_an_option_says_otherwise(table, foveate_command):
    table.write_text(rows_of())
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings = table.parent / "study.toml"

    def cells(*arguments: object) -> int:
        return json.loads(foveate_command("check", *arguments, "--json")[1])["cells"]

    assert cells("study.toml") == 64
    settings.write_text(settings.read_text() + "cells = 12\n")
    assert cells("study.toml") == 12
    assert cells("--figure", "a.toml", "study.toml") == 12
    assert cells("--cells", 6, "study.toml") == 6
    settings.write_text(settings.read_text().replace("cells = 12", "cells = 1"))
    code, _, err = foveate_command("check", "study.toml")
    assert code == 2
    assert "--cells" in err
