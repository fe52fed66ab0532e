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
    assert "line 3 (observer 1, picture 'beach', fixation 2): lies outside" in problems[0]
    assert "line 10 (observer 2, picture 'wood', fixation 2): has no position" in problems[1]
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
