"""The demo goes the whole way, says first and last where the report is, goes on where it stopped; its report opens."""

import json
import re
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from browsing import opened, readout, step, wait_until

from foveate import InputError
from foveate.commands.demo import demo as demo_command
from foveate.commands.demo import run
from foveate.demo import Demo

SEED = 3
STEPS = ["init", "check", "fit", "compare", "simulate", "report"]


def small(folder: Path) -> Demo:
    """The same way as the demo's own, but a shorter one."""
    compared = ("saliency_baseline", "local_saliency")
    return Demo(folder, SEED, observers=("ann", "ben"), compared=compared, draws=4, cells=16)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Demo, str]:
    """One run, into a folder that already holds somebody's file; and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "results"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    said = StringIO()
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(said):
        patched.setenv("FOVEATE_CACHE", "")
        run(small(folder))
    return small(folder), said.getvalue()


def test_it_opens_and_closes_with_the_reports_place(demo):
    job, said = demo
    lines = said.strip().splitlines()
    assert str(job.report) in lines[0]
    assert lines[-1] == f"The report is {job.report}: open it in a browser."
    assert re.findall(r"^\$ foveate (\w+)", said, re.M) == STEPS
    assert all(name in said for name in job.contents)


def test_everything_that_it_names_is_there_and_other_files_are_left_alone(demo):
    job, _ = demo
    summary = json.loads((job.folder / "demo.json").read_text())
    assert summary["finished"]
    assert summary["seed"] == SEED
    assert {Path(it).name for it in summary["files"]} == {it.name for it in job.folder.iterdir()} - {"notes.txt"}
    assert (job.folder / "notes.txt").read_text() == "mine"
    assert [shlex.split(it["command"])[1] for it in summary["steps"]] == STEPS
    ranking = pd.read_csv(job.folder / "ranking" / "ranking.csv").sort_values("mean", ascending=False)
    assert list(ranking["model"]) == ["local_saliency", "saliency_baseline"]  # a model that knows where gaze is


def test_its_report_opens_and_plays(demo, browser):
    job, _ = demo
    with opened(browser, job.report) as page:
        heads = page.locator("h2").all_inner_texts()
        assert heads == [
            "Convergence", "What was done", "Data", "Parameters", "Results", "Figures", "Scan paths",
        ]  # fmt: skip
        assert "--data" in page.inner_text("#done pre")
        assert page.locator("#figures figure").count() >= 8
        page.select_option("#observer", label="ben")
        page.select_option("#picture", label="castle")
        assert readout(page)["surprise"].endswith(" bits")
        page.select_option("#speed", "200")
        page.click("#play")
        wait_until(page, "parseInt(document.querySelector('#readout strong').textContent) >= 5")
        page.click("#play")
        page.select_option("#model", label="Saliency Baseline")
        page.keyboard.press("Home")
        page.focus("#observed")
        page.keyboard.press("Home")
        assert step(page) == 1


def test_another_seed_or_somebody_elses_files_are_refused(demo, tmp_path):
    job, _ = demo
    with pytest.raises(InputError, match="seed 3"):
        run(Demo(job.folder, SEED + 1, observers=job.observers, compared=job.compared, draws=4, cells=16))
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"report\.html, which 'foveate demo' did not make"):
        demo_command(tmp_path)
    assert [(it.name, it.read_text()) for it in tmp_path.iterdir()] == [("report.html", "mine")]
