"""The page: everything in its order, nothing injected, nothing fetched, and no file of somebody else's written over."""

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from made_folders import fit_folder
from PIL import Image

from foveate import Dataset, Model, ScanPaths, named_model
from foveate.data.dataset import each_observer
from foveate.data.readings import Readings
from foveate.data.saliency import SaliencyMaps
from foveate.report.command_line import without_folders
from foveate.report.figures import figures, inlined
from foveate.report.folders import read_results
from foveate.report.make import payload, with_pictures
from foveate.report.page import MARKER, asset, embedded, html_table, page, short
from foveate.report.payload import table

pytestmark = pytest.mark.usefixtures("unchecked_types")

HOSTILE = (
    "<script>alert(1)</script>\"'>../../x</title></script><img src=x onerror=alert(2)> 👁 &amp; {{x}} $title "
    + "a" * 300
)


class Seen(HTMLParser):
    """The elements and attributes of a page, and the text of its parts."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def test_sections_are_in_their_order(fits):
    text = page(payload(read_results(fits), None, why_no_data="nobody gave any."))
    order = ["Convergence", "What was done", "Data", "Parameters", "Scan paths"]
    assert re.findall(r"<h2>(.*?)</h2>", text) == order
    assert "1 of 2 fits NOT CONVERGED" in text
    assert "No scan paths are shown: nobody gave any." in text


def test_words_keep_the_names_of_files_and_lose_their_folders(monkeypatch, tmp_path):
    beside = ["/home/Ann Lee/study/study.toml"]
    for words, expected in (
        ("/home/Ann Lee/study/study.toml: there is no such file.", "study.toml: there is no such file."),
        (
            "/home/Ann Lee/study/maps/a b.png cannot be read ('/home/Ann Lee/study/maps/a b.png')",
            "maps/a b.png cannot be read ('maps/a b.png')",
        ),
        ("'/srv/home/Ann/x.csv', /data/y: no", "'x.csv', y: no"),
        (r"C:\Users\ann\x.csv and \\server\ann\y.csv: no", "x.csv and y.csv: no"),
        ("../study.toml, maps/beach.png and 3/4: no", "../study.toml, maps/beach.png and 3/4: no"),
    ):
        assert without_folders(words, beside) == expected
    monkeypatch.chdir(tmp_path)
    assert without_folders(f"{tmp_path}/out/fits: no", ["study.toml"]) == "out/fits: no"


def test_a_study_has_results_and_figures(study):
    text = page(payload(read_results(study), None))
    assert re.findall(r"<h2>(.*?)</h2>", text)[4:] == ["Results", "Figures", "Scan paths"]
    assert re.findall(r"<h3>(.*?)</h3>", text) == ["Ranking", "Differences between models", "Saccades"]
    assert text.count("<figure ") == 1
    without = page(payload(read_results(study), None, with_figures=False))
    assert "<figure " not in without


def test_a_page_names_no_other_place(study):
    """No address that a browser would fetch: links go to the page itself, pictures are in it."""
    seen = Seen(page(payload(read_results(study), None)))
    places = [value for name, value in seen.attributes if name in ("href", "src", "xlink:href", "action", "data")]
    assert places
    assert all(it.startswith(("#", "data:image/")) for it in places if it)
    assert not set(seen.tags) & {"link", "iframe", "object", "embed", "base"}
    assert not re.search(r"@import|url\((?!#)", asset("report.css"))
    assert (
        "content",
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'",
    ) in seen.attributes


def test_hostile_names_are_text_and_nothing_else(data, tmp_path):
    names = {"ann": HOSTILE, "ben": HOSTILE[::-1]}
    table_of = data.paths.to_table().assign(observer=lambda it: it["observer"].map(names))
    table_of["picture"] = table_of["picture"].map(lambda it: f"{it}{HOSTILE}")
    paths = ScanPaths.from_table(table_of, data.paths.extent)
    maps = SaliencyMaps(data.maps.grid, tuple(f"{it}{HOSTILE}" for it in data.maps.pictures), data.maps.values)
    hostile = Dataset(paths, maps)
    plain = named_model("full")
    model = Model(plain.policies, plain.choice, plain.priors, f"model{HOSTILE}")
    folder = fit_folder(tmp_path / "fits", model, hostile)
    before = sorted(it.name for it in tmp_path.rglob("*"))
    found = payload(read_results(folder), each_observer(hostile), said=(HOSTILE,))
    found["tables"] = [{"heading": HOSTILE, "words": HOSTILE, "table": table([(HOSTILE, "text")], [[HOSTILE]])}]
    found["figures"] = {
        "shown": [{"name": HOSTILE, "caption": HOSTILE, "svg": "", "wide": False}],
        "left_out": [HOSTILE],
    }
    found["about"]["settings"].append([HOSTILE, HOSTILE])
    found["about"]["command"] = HOSTILE
    text = page(found)
    seen = Seen(text)
    assert seen.tags.count("script") == 2  # the data and the page's own
    assert "img" not in seen.tags
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    assert seen.text.count(HOSTILE) >= 9
    data_text = re.search(r'<script type="application/json" id="viewer-data">(.*?)</script>', text, re.S)[1]
    assert "<" not in data_text
    assert json.loads(data_text)["observers"] == sorted(names.values())
    assert json.loads(data_text)["models"][0]["title"] == model.name
    assert sorted(it.name for it in tmp_path.rglob("*")) == before  # a page is text: nothing was written


def test_json_in_a_page_cannot_end_its_element():
    text = embedded({"a": "</script><!-- \u2028 & 👁"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {"a": "</script><!-- \u2028 & 👁"}


# --- figures ---------------------------------------------------------------------------------------------------------

SVG = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'onload="x()"><style>*{fill:red}</style><script>alert(1)</script>'
    '<defs><clipPath id="c"><rect id="r"/></clipPath></defs>'
    '<g clip-path="url(#c)" style="fill: url(http://x.y/z)"><use xlink:href="#r"/><use href="http://x.y/a.svg#b"/>'
    '<image xlink:href="data:image/png;base64,AAAA"/><image href="file:///etc/passwd"/>'
    '<a href="javascript:x()"><text>a</text></a><text>&lt;b&gt; é</text><foreignObject><p/></foreignObject></g></svg>'
)


def test_figures_keep_shapes_and_lose_the_rest():
    text = inlined(SVG, "f3-")
    assert text is not None
    assert 'id="f3-c"' in text
    assert "url(#f3-c)" in text
    assert 'href="#f3-r"' in text
    assert "data:image/png;base64,AAAA" in text
    assert "&lt;b&gt; é" in text
    for gone in ("script", "alert", "onload", "x.y", "passwd", "javascript", "<style", "foreignObject", 'id="c"'):
        assert gone not in text
    assert inlined("<html/>", "f") is None
    assert inlined("no xml", "f") is None


def test_ids_of_two_figures_do_not_collide(tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("ranking", "other_one"):
        (tmp_path / "figures" / f"{name}.svg").write_text(SVG)
    found = figures(tmp_path, ["figures/ranking.svg", "../../secret.svg"])
    assert [it["name"] for it in found["shown"]] == ["ranking", "other_one"]
    ids = [set(re.findall(r'id="(.*?)"', it["svg"])) for it in found["shown"]]
    assert len(ids[0]) == 2
    assert not ids[0] & ids[1]
    assert found["shown"][1]["caption"] == "other one."
    small = figures(tmp_path, [], most_bytes=len(SVG) + 10)
    assert (len(small["shown"]), small["left_out"]) == (1, ["ranking"])


# --- parts of a page -------------------------------------------------------------------------------------------------


def test_intervals_lie_on_the_scale_of_their_column():
    shown = table([("a", "interval")], [[[1.0, 0.0, 2.0]], [[3.0, 2.0, 4.0]]], [False, True])
    text = html_table(shown)
    assert "--l:0.0;--m:25.0;--h:50.0" in text
    assert "--l:50.0;--m:75.0;--h:100.0" in text
    assert text.count('<tr class="wrong">') == 1
    assert "bar zero" not in text
    wide = html_table(table([("a", "interval")], [[[10.0, 1.0, 100.0]]]))
    assert "--l:0.0;--m:50.0;--h:100.0" in wide  # a logarithmic scale
    assert "bar zero" in html_table(table([("a", "interval")], [[[0.0, -1.0, 1.0]]]))
    assert html_table(table([("a", "interval")], [[[np.nan, 0.0, 1.0]]])).count("–") == 1


def test_rows_of_one_scale_share_it_and_show_what_was_observed():
    rows = [[[1.0, 0.0, 2.0, 4.0]], [[3.0, 2.0, 4.0, 4.0]], [[150.0, 100.0, 200.0, 175.0]]]
    text = html_table(table([("a", "interval")], rows, scales=["deg", "deg", "ms"]))
    assert re.findall(r"--l:([\d.]+);--m:([\d.]+)", text) == [("0.0", "25.0"), ("50.0", "75.0"), ("0.0", "50.0")]
    assert re.findall(r"--o:([\d.]+)", text) == ["100.0", "100.0", "75.0"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(1234.5, "1,234"), (12.34, "12.3"), (-0.5, "−0.500"), (-0.0001, "0.000"), (-2.24e18, "−2.2×10¹⁸")],
)
def test_numbers_are_short(value, words):
    assert short(value) == words


# --- pictures --------------------------------------------------------------------------------------------------------


def test_pictures_are_embedded_while_there_is_room(fits, data, tmp_path):
    found = payload(read_results(fits), None)
    found |= {"viewer": {"pictures": data.maps.pictures, "images": {}}}
    rng = np.random.default_rng(0)
    for name in ("beach", "bridge"):
        Image.fromarray(rng.integers(0, 255, (300, 400, 3), dtype=np.uint8)).save(tmp_path / f"{name}.png")
    (tmp_path / "castle.png").write_text("no image")
    files = {name: tmp_path / f"{name}.png" for name in ("beach", "bridge", "castle")}
    full = with_pictures(found, files)
    assert set(full["viewer"]["images"]) == {"beach", "bridge"}
    assert "1 of 3 pictures could not be read" in full["viewer_notes"][-1]
    assert full["viewer"]["images"]["beach"].startswith("data:image/jpeg;base64,")
    size = len(page(found))
    few = with_pictures(found, files, most_bytes=size + 10_000 + 25_000)
    assert len(few["viewer"]["images"]) == 1
    assert "1 of 3 pictures were left out" in few["viewer_notes"][-2]
    assert len(page(few)) <= size + 35_000


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_one_file_that_says_what_it_is(study, tmp_path, foveate_command):
    """The example has more pictures than the fits have seen, so that without data of its own it shows no paths."""
    out = tmp_path / "report.html"
    code, said, _ = foveate_command("report", study, "--out", out)
    assert code == 0
    assert str(out) in said
    assert "It shows no scan paths" in said
    assert MARKER in out.read_text()[:200]
    assert [it.name for it in tmp_path.iterdir()] == ["report.html"]
    assert foveate_command("report", study, "--out", out, "--no-figures")[0] == 0  # its own file is replaced
    assert "<figure " not in out.read_text()


def test_a_page_does_not_say_where_files_lie_on_the_machine_that_made_it(
    study, fits, tmp_path, foveate_command, monkeypatch
):
    """Whatever is wrong: no such data, a broken table beside the settings, no such folder, data of another fit."""
    mine = tmp_path / "Ann Lee"
    copy = mine / "study"
    shutil.copytree(study, copy)
    said = json.loads((copy / "study.json").read_text())
    out = mine / "report.html"

    def why(folder, data, gone: str) -> str:
        (copy / "study.json").write_text(json.dumps(said | {"asked": said["asked"] | {"data": data}}))
        code, told, _ = foveate_command("report", folder, "--out", out)
        assert code == 0
        assert str(mine) in told  # who made it is told where
        text = out.read_text()
        assert gone not in text
        assert "Ann Lee" not in text
        return re.search(r"No scan paths are shown: ([^<]*)", text)[1]

    assert why(copy, str(mine / "data" / "study.toml"), str(tmp_path)).startswith("study.toml: there is no such file")
    assert why(copy, "example", str(tmp_path)).startswith("study: the fit of observer ann is of other data")
    settings = '[data]\nfile = "fix.csv"\nposition_unit = "deg"\n[picture]\nwidth_deg = 4\nheight_deg = 3\n'
    (mine / "study.toml").write_text(settings)
    assert why(copy, str(mine / "study.toml"), str(tmp_path)).startswith("fix.csv: there is no such file")
    monkeypatch.setenv("FOVEATE_POTSDAM35", str(mine / "potsdam"))
    assert why(fits, None, str(tmp_path)).startswith("potsdam is not a folder")


def test_with_the_data_of_the_fits_there_is_a_viewer(fits, data, tmp_path, foveate_command, monkeypatch):
    monkeypatch.setattr(
        "foveate.commands.reading.read", lambda source, cells: Readings(data.paths, data, (f"of {source}",))
    )
    code, said, _ = foveate_command("report", fits, "--data", "mine", "--out", tmp_path / "report.html")
    assert code == 0
    assert "NOT CONVERGED: 1 of 2 fits" in said
    text = (tmp_path / "report.html").read_text()
    assert 'id="viewer-box"' in text
    assert "<p>of mine</p>" in text
    assert "const foveateDensities" in text
    assert "Warning" not in said


def test_the_command_warns_of_pictures_without_a_file(fits, data, tmp_path, foveate_command, monkeypatch):
    readings = Readings(data.paths, data, missing="no file for 1 of 4 pictures: beach.")
    monkeypatch.setattr("foveate.commands.reading.read", lambda source, cells: readings)
    code, said, _ = foveate_command("report", fits, "--data", "mine", "--out", tmp_path / "report.html")
    assert code == 0
    assert said.splitlines()[-1] == "Warning: no file for 1 of 4 pictures: beach."


def test_somebody_elses_file_is_not_touched(fits, tmp_path, foveate_command):
    out = tmp_path / "thesis.html"
    out.write_text(f"<html>{' ' * 300}{MARKER}</html>")
    before = out.read_text()
    code, _, err = foveate_command("report", fits, "--data", "example", "--out", out)
    assert code == 2
    assert "is not a report of foveate" in err
    assert len(err.splitlines()) == 1
    assert out.read_text() == before


@pytest.mark.parametrize(
    ("folder", "options", "words"),
    [
        ("nowhere", (), "there is no folder"),
        ("", (), "holds neither run.json nor study.json"),
        ("fits", ("--data", "example"), "other data or maps"),
        ("fits", ("--data", "nothing"), "nothing"),
        ("fits", ("--out", "."), "is a folder"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    fits, tmp_path, foveate_command, monkeypatch, folder, options, words
):
    monkeypatch.chdir(tmp_path)
    place = fits if folder == "fits" else tmp_path / folder
    code, _, err = foveate_command("report", place, *options)
    assert code == 2
    assert words in err
    assert len([line for line in err.splitlines() if "%" not in line and "will be" not in line]) == 1
    assert list(tmp_path.iterdir()) == []
