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
        "1 fixations can be predicted (the third of a path and on); 3 paths too short for any.",
        "The picture is 20 x 10 deg",
        "Maps without the observer's own fixations",
        "Ready: foveate fit --data study.toml",
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
    assert "2 problems:" in out
    assert "Ready" not in out


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


def test_columns_without_a_usual_name_are_asked_for(table, foveate_command):
    table.write_text(TABLE.replace("Image", "what"))
    code, _, err = foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    assert code == 2
    assert "no column has a usual name of picture" in err


def test_settings_are_defaults_of_options(table, foveate_command):
    """[study] says which models; an option says otherwise. The wrong name shows which of them was read."""
    foveate_command("init", "fixations.csv", *SAID, "--origin", "top")
    settings = table.parent / "study.toml"
    settings.write_text(settings.read_text().replace('"full"', '"fool"'))
    _, _, err = foveate_command("compare", "--data", "study.toml", "--out", "x")
    assert "no model fool" in err
    _, _, err = foveate_command("compare", "--data=study.toml", "--models", "dull", "--out", "x")
    assert "no model dull" in err


def test_what_options_do_not_say_is_asked_for(table, foveate_command, monkeypatch):
    import typer

    from foveate.data.project import Project

    asked = []
    answers = iter([400.0, 200.0, "top"])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        typer, "prompt", lambda question, **kind: asked.append((question, kind["type"])) or next(answers)
    )
    options = ("--position-unit", "px", "--duration-unit", "ms", "--px-per-degree", "20")
    assert foveate_command("init", "fixations.csv", *options)[0] == 0
    assert asked == [
        ("Width of the picture in that unit", float),
        ("Height of the picture in that unit", float),
        ("Where is y = 0, at the top or at the bottom of the picture", str),
    ]
    picture = Project.read(table.parent / "study.toml").picture
    assert (picture.width_px, picture.height_px, picture.px_per_degree, picture.origin) == (400, 200, 20, "top")


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
    assert "1 fixations can be predicted (the third of a path and on, but for forced ones); 3 paths too short" in out
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
