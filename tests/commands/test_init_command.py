"""`foveate init`: which column is which, what is asked for and asked again, and pixels per degree from a screen."""

import io
import math

import pytest

from foveate.commands.usual_columns import USUAL, column_of, found_columns
from foveate.data.project import Project
from foveate.errors import InputError

pytestmark = pytest.mark.usefixtures("unchecked_types")

ROWS = "p1,beach,1,10,20,200,1\np1,beach,2,300,150,210,0\np2,beach,1,20,20,200,1\np2,beach,2,310,150,210,0\n"
SAID = ("--position-unit", "px", "--duration-unit", "ms", "--width", "400", "--height", "200")
ALL = (*SAID, "--px-per-degree", "20", "--origin", "top")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Writes a table with these names of columns."""
    monkeypatch.chdir(tmp_path)

    def write(header: str):
        (tmp_path / "fixations.csv").write_text(f"{header}\n{ROWS}")
        return tmp_path

    return write


@pytest.fixture
def answering(monkeypatch):
    """As if somebody sat there who gives these answers, each followed by Enter."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def answer(*answers: str) -> Terminal:
        typed = Terminal("".join(f"{it}\n" for it in answers))
        monkeypatch.setattr("sys.stdin", typed)
        return typed

    return answer


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "subj,stim,fix_nr,fix_x,fix_y,dur,pupil",
        "RECORDING_SESSION_LABEL,IMAGE,CURRENT_FIX_INDEX,CURRENT_FIX_X,CURRENT_FIX_Y,CURRENT_FIX_DURATION,EYE_USED",
        "Participant,Stimulus,Index,Fixation Position X [px],Fixation Position Y [px],Event Duration [ms],Category",
        "Recording name,Presented Media name,Fixation-Index,Fixation point X,Fixation point Y,Gaze event duration,more",
        "vp.nr,img_name,FixNr,xPos,yPos,fixDur,more",
    ],
)
def test_columns_are_found_by_their_usual_names(table, foveate_command, header):
    code, _, err = foveate_command("init", table(header) / "fixations.csv", *ALL)
    assert (code, err) == (0, "")
    found = Project.read("study.toml").columns
    named = (found.observer, found.picture, found.fixation, found.x, found.y, found.duration, found.trial, found.forced)
    assert named == (*header.split(",")[:6], None, None)


def test_a_trial_is_found_beside_a_picture():
    present = ["RECORDING_SESSION_LABEL", "TRIAL_INDEX", "IMAGE", "CURRENT_FIX_INDEX", "CURRENT_FIX_X"]
    assert found_columns(present, {}) == {
        "observer": "RECORDING_SESSION_LABEL",
        "picture": "IMAGE",
        "fixation": "CURRENT_FIX_INDEX",
        "x": "CURRENT_FIX_X",
        "trial": "TRIAL_INDEX",
    }


def test_no_usual_name_has_two_meanings():
    names = [name.replace("_", "") for usual in USUAL.values() for name in usual]
    assert [name for name in names if names.count(name) > 1] == []


def test_options_name_columns(table, foveate_command):
    place = table("who,what,when,across,down,how_long,x")  # a column x that is something else
    options = ("--observer", "who", "--picture", "What", "--fixation", "when", "--x", "across", "--y", "down")
    code, _, err = foveate_command("init", "fixations.csv", *options, "--duration", "how_long", "--forced", "x", *ALL)
    assert (code, err) == (0, "")
    paths, _ = Project.read(place / "study.toml").paths()
    assert paths.x_deg.tolist() == [[0.5, 15.0], [1.0, 15.5]]
    assert paths.forced.tolist() == [[True, False], [True, False]]
    assert paths.duration_s.tolist() == [[0.2, 0.21], [0.2, 0.21]]


def test_a_column_that_is_named_for_one_thing_is_not_taken_for_another():
    found = found_columns(["subject", "image", "fix", "x", "y", "id"], {"picture": "subject"})
    assert (found["observer"], found["picture"]) == ("id", "subject")


def test_trials_are_named_by_an_option(table, foveate_command):
    place = table("subject,image,index,x,y,dur,round")
    assert foveate_command("init", "fixations.csv", "--trial", "round", *ALL)[0] == 0
    assert Project.read(place / "study.toml").columns.trial == "round"


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        (
            "subject,what,number,here,y,dur,more",
            (),
            "no column has a usual name of picture, x; it has subject, what, number, here, y, dur, more: say which "
            "with --picture COLUMN, --x COLUMN.",
        ),
        ("subject,image,number,x,y,dur,more", ("--x", "mor"), "--x mor: there is no such column; do you mean 'more'?"),
        ("subject,image,number,x,y,dur,more", ("--x", "zz"), "no such column; it is one of subject, image, number, x"),
        ("subject,image,number,x,y,dur,more", ("--x", "y", "--y", "Y"), "--x and --y: the same column cannot be both"),
        ("subject,image,number,x,y,long,more", (), "--duration-unit ms: no column has a usual name of durations; name"),
    ],
)
def test_without_a_terminal_one_sentence_names_the_option(table, foveate_command, header, options, words):
    place = table(header)
    code, out, err = foveate_command("init", "fixations.csv", *options, *ALL)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (place / "study.toml").exists()


def test_a_column_is_meant_in_any_case_unless_two_differ_by_case_alone():
    assert column_of("SUBJ", ["subj", "x"]) == "subj"
    assert column_of("X", ["x", "X"]) == "X"
    with pytest.raises(InputError, match="there is no such column"):
        column_of("FIX", ["Fix", "fix"])


def test_columns_are_asked_for_with_those_that_there_are_until_one_is_named(table, foveate_command, answering):
    place = table("subject,what,number,here,y,long,more")
    left = answering("image", "subject", "what", "hre", "here", "", "px", "400", "200", "20", "top")
    code, out, err = foveate_command("init", "fixations.csv")
    assert (code, err) == (0, "")
    assert left.read() == ""
    assert out.count("Column of picture (one of what, here, long, more): ") == 3  # what is found already is not offered
    assert "Error: there is no such column; it is one of what, here, long, more." in out
    assert "Error: there is no such column; do you mean 'here'?" in out
    assert "Column of durations, or nothing (one of long, more): " in out
    columns = Project.read(place / "study.toml").columns
    assert (columns.picture, columns.x, columns.duration) == ("what", "here", None)


def test_durations_may_be_named_when_asked(table, foveate_command, answering):
    place = table("subject,image,number,x,y,long,more")
    answering("long", "px", "ms", "400", "200", "20", "top")
    assert foveate_command("init", "fixations.csv")[0] == 0
    project = Project.read(place / "study.toml")
    assert (project.columns.duration, project.data.duration_unit) == ("long", "ms")


# --- flags -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["is_central", "initial", "Is Initial", "on_cross"])
def test_a_column_that_looks_like_a_flag_is_suggested_and_works_when_taken_in(table, foveate_command, name):
    place = table(f"subject,image,number,x,y,dur,{name}")
    assert foveate_command("init", "fixations.csv", *ALL)[0] == 0
    text = (place / "study.toml").read_text()
    assert f'# forced = "{name}"  # take this in if 1 flags fixations that nobody chose to make' in text
    assert Project.read(place / "study.toml").columns.forced is None
    (place / "study.toml").write_text(text.replace("# forced", "forced"))
    assert Project.read(place / "study.toml").paths()[0].forced.sum() == 2


def test_other_columns_are_not_suggested_as_flags(table, foveate_command):
    place = table("subject,image,number,x,y,dur,is_left")  # flags by their values alone
    assert foveate_command("init", "fixations.csv", *ALL)[0] == 0
    assert "forced" not in (place / "study.toml").read_text()
    table("subject,image,number,x,y,initial,more")  # by its name alone
    assert foveate_command("init", "fixations.csv", *ALL, "--out", "b.toml", "--duration", "more")[0] == 0
    assert "forced" not in (place / "b.toml").read_text()
    table("subject,image,number,x,y,dur,initial")
    (place / "fixations.csv").write_text((place / "fixations.csv").read_text().replace(",1\n", ",0\n"))  # never set
    assert foveate_command("init", "fixations.csv", *ALL, "--out", "c.toml")[0] == 0
    assert "forced" not in (place / "c.toml").read_text()


# --- answers ---------------------------------------------------------------------------------------------------------


def test_every_answer_is_checked_when_it_is_given(table, foveate_command, answering):
    place = table("subject,image,number,x,y,dur,more")
    left = answering("cm", "PX", "min", "ms", "-400", "40,5", "wide", "400", "0", "200", "inf", "20", "left", "top")
    code, out, err = foveate_command("init", "fixations.csv")
    assert (code, err) == (0, "")
    assert left.read() == ""
    for words, times in (
        ("Error: say px or deg.", 1),
        ("Error: say ms or s.", 1),
        ("Error: give a number above 0.", 4),
        ("Error: give a number above 0, with a decimal point.", 1),
        ("Error: say top or bottom.", 1),
        ("Width of the picture in that unit: ", 4),
    ):
        assert out.count(words) == times, words
    picture = Project.read(place / "study.toml").picture
    assert (picture.width_px, picture.height_px, picture.px_per_degree, picture.origin) == (400, 200, 20, "top")


def test_only_what_options_do_not_say_is_asked_for(table, foveate_command, answering):
    table("subject,image,number,x,y,dur,more")
    answering("200", "top")
    options = ("--position-unit", "px", "--duration-unit", "ms", "--width", "400", "--px-per-degree", "20")
    code, out, _ = foveate_command("init", "fixations.csv", *options)
    assert code == 0
    assert out.startswith("Height of the picture in that unit: Where is y = 0, at the top or at the bottom of the pict")


def test_options_are_checked_before_anything_is_asked(table, foveate_command, answering):
    table("subject,what,number,x,y,dur,more")
    left = answering("what")
    code, out, err = foveate_command("init", "fixations.csv", "--width", "-3")
    assert (code, out, err) == (2, "", "foveate: --width -3: give a number above 0.\n")
    assert left.read() == "what\n"


# --- the screen ------------------------------------------------------------------------------------------------------

# A screen of 40 cm seen from 60 cm is 36.8699 degrees wide: twice the angle of the triangle (20, 60).
DEGREES = 2 * math.degrees(math.acos(60 / math.hypot(20, 60)))


@pytest.mark.parametrize(("options", "px"), [((), 400), (("--screen-px", "1600"), 1600)])
def test_pixels_per_degree_are_worked_out_from_the_screen(table, foveate_command, options, px):
    place = table("subject,image,number,x,y,dur,more")
    screen = ("--screen-cm", "40", "--distance-cm", "60", *options)
    code, out, _ = foveate_command("init", "fixations.csv", *SAID, *screen, "--origin", "top")
    assert code == 0
    assert Project.read(place / "study.toml").picture.px_per_degree == pytest.approx(px / DEGREES, rel=1e-5)
    comment = f"# {px} px on 40 cm, seen from 60 cm: {px} / (2 atan(40 / (2 x 60)))"
    assert comment in (place / "study.toml").read_text()
    assert ("takes the picture to be as wide as the screen" in out) == (px == 400)


def test_the_screen_is_asked_for_where_pixels_per_degree_are_not_known(table, foveate_command, answering):
    place = table("subject,image,number,x,y,dur,more")
    left = answering("", "0", "40", "60", "1600", "top")
    code, out, _ = foveate_command("init", "fixations.csv", *SAID)
    assert code == 0
    assert left.read() == ""
    assert "Width of the screen in px [400]: " in out
    assert Project.read(place / "study.toml").picture.px_per_degree == pytest.approx(1600 / DEGREES, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            (),
            "--px-per-degree missing: pixels per degree of visual angle? A table cannot tell; or give --screen-cm and",
        ),
        (("--screen-cm", "40"), "--distance-cm missing"),
        (("--distance-cm", "60"), "--screen-cm missing"),
        (("--screen-px", "60"), "--screen-cm missing"),
        (("--screen-cm", "0", "--distance-cm", "60"), "--screen-cm 0: give a number above 0."),
        (("--px-per-degree", "20", "--screen-cm", "40"), "--px-per-degree and --screen-cm: give the one or the other."),
        (("--position-unit", "deg", "--screen-cm", "40"), "--screen-cm cannot go with positions in deg; leave it out."),
        (("--position-unit", "deg", "--px-per-degree", "4"), "--px-per-degree cannot go with positions in deg; leave"),
    ],
)
def test_a_screen_that_is_not_told_in_full_is_one_line(table, foveate_command, options, words):
    place = table("subject,image,number,x,y,dur,more")
    code, out, err = foveate_command("init", "fixations.csv", *SAID, "--origin", "top", *options)
    assert (code, out) == (2, "")
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (place / "study.toml").exists()
