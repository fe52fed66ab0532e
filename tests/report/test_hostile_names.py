"""Observers and pictures with names made to break things, from the table to the report: they are text, nothing else."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import opened, step
from PIL import Image

pytestmark = pytest.mark.usefixtures("unchecked_types")

OBSERVERS = ["<script>alert(1)</script>\"quotes'`$(id)", "../../etc/passwd", "👁\u202e %s {{7*7}}" + "x" * 300]
PICTURES = ["</script><img src=x onerror=alert(2)>", "/etc/passwd", "a\\b|c;d&e <!--", "🖼" * 75]
SETTINGS = """
[data]
file = "table.csv"
position_unit = "deg"
[columns]
observer = "observer"
picture = "picture"
fixation = "fixation"
x = "x"
y = "y"
[picture]
width_deg = 16
height_deg = 12
origin = "bottom"
folder = "pictures"
[maps]
made_from = "fixations"
bandwidth_deg = 2.0
"""
FIXATIONS = 12


@pytest.fixture
def study(tmp_path) -> Path:
    """A folder with a table, its settings, and a file for the only picture that can have one."""
    rng = np.random.default_rng(1)
    place = tmp_path / "study"
    (place / "pictures").mkdir(parents=True)
    rows = [(observer, picture, number, *rng.normal([8, 6], 2.0).clip(0.1, 11.9))
            for observer in OBSERVERS for picture in PICTURES for number in range(1, FIXATIONS + 1)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["observer", "picture", "fixation", "x", "y"])
    table.to_csv(place / "table.csv", index=False)
    (place / "study.toml").write_text(SETTINGS)
    Image.new("RGB", (40, 30), "green").save(place / "pictures" / f"{PICTURES[2]}.png")
    return place


def contents(folder: Path) -> set[str]:
    return {str(it.relative_to(folder)) for it in folder.rglob("*")}


def test_names_are_text_from_the_table_to_the_report(study, tmp_path, foveate_command, browser, monkeypatch):
    monkeypatch.chdir(study)
    before = contents(tmp_path)

    def run(*words: object) -> str:
        code, said, err = foveate_command(*words)
        assert code == 0, err
        return said

    run("check", "study.toml", "--figure", "out/check.png", "--cells", 16)
    fitted = ["--data", "study.toml", "--model", "local_saliency", "--cells", 16]
    run("fit", *fitted, "--out", "out/fits")
    run("diagnose", "out/fits")
    run("simulate", "out/fits", "--data", "study.toml", "--draws", 1, "--out", "out/simulated")
    run("report", "out/fits", "--data", "study.toml", "--out", "out/report.html")

    new = contents(tmp_path) - before
    assert new
    assert all(it.startswith("study/out") for it in new), new  # nothing lies anywhere else
    assert len([it for it in new if it.endswith(".nc")]) == len(OBSERVERS)
    simulated = pd.read_csv(study / "out/simulated/simulated.csv", keep_default_na=False)
    assert set(simulated["observer"]) == set(OBSERVERS)
    assert set(simulated["picture"]) == set(PICTURES)

    with opened(browser, study / "out/report.html") as page:
        rows = page.locator("#parameters tbody td:first-child").all_text_contents()
        assert set(rows) == set(OBSERVERS)
        assert page.locator("script").count() == 2
        assert page.locator("img").count() == 0
        for observer in OBSERVERS:
            title = "Array.from(document.getElementById('%s').options, (it) => it.title)"
            names = page.evaluate(title % "observer")
            page.select_option("#observer", index=names.index(observer))
            assert sorted(page.evaluate(title % "picture")) == sorted(PICTURES)
        for index in range(len(PICTURES)):
            page.select_option("#picture", index=index)
            page.focus("#observed")
            page.keyboard.press("End")
            assert step(page) == FIXATIONS
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
