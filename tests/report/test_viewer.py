"""The page in a browser: it opens from a file, fetches nothing, plays, steps and prints."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from foveate import Posterior
from foveate.data.dataset import each_observer
from foveate.inference.pointwise import policy_probabilities
from foveate.report.folders import read_results
from foveate.report.make import payload
from foveate.report.page import page as report_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("no chromium: the page is not opened in a browser", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: the page is not opened in a browser")

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--headless=new", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync"]  # fmt: skip
WAIT_MS = 120_000  # on a busy machine


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=WAIT_MS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def report_file(fits, data, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report_page(payload(read_results(fits), each_observer(data))), encoding="utf-8")
    return file


@pytest.fixture
def opened(browser, report_file):
    """The page, and everything that it complained of or asked for."""
    heard: list[str] = []
    shown = browser.new_page(viewport={"width": 1100, "height": 800})
    shown.set_default_timeout(WAIT_MS)
    shown.on("console", lambda it: heard.append(f"console: {it.text}"))
    shown.on("pageerror", lambda it: heard.append(f"error: {it}"))
    shown.on("request", lambda it: heard.append(f"request: {it.url}") if it.url != report_file.as_uri() else None)
    shown.goto(report_file.as_uri())
    yield shown
    shown.close()
    assert heard == []


def step(shown) -> str:
    return shown.inner_text("#readout div:first-child strong")


def wait_until(shown, expression: str) -> None:
    """Playwright's own waiting evaluates text inside the page, which the page's policy forbids."""
    for _ in range(WAIT_MS // 50):
        if shown.evaluate(expression):
            return
        shown.wait_for_timeout(50)
    pytest.fail(f"{expression} did not become true")


def test_a_reader_chooses_steps_plays_and_resizes(opened, fits, data):
    assert step(opened).startswith("3 of ")
    opened.keyboard.press("ArrowRight")
    assert step(opened).startswith("4 of ")
    opened.keyboard.press("ArrowLeft")
    opened.keyboard.press("ArrowLeft")
    assert step(opened).startswith("2 of ")
    opened.select_option("#observer", label="ben")
    opened.select_option("#picture", label="castle")
    opened.focus("#observed")
    for _ in range(5):
        opened.keyboard.press("ArrowRight")
    own = data.select(observers=["ben"])
    table = policy_probabilities(Posterior.load(fits / "observer-ben.nc"), own, draws=100)
    row = table[(table["picture"] == "castle")].iloc[7 - 3]
    assert step(opened).startswith("7 of ")
    found = dict(
        zip(
            opened.locator("#readout span").all_inner_texts(),
            opened.locator("#readout strong").all_inner_texts(),
            strict=True,
        )
    )
    assert float(found["probability local"]) == pytest.approx(row["local"], abs=0.0051)
    opened.select_option("#speed", "200")
    opened.click("#play")
    wait_until(opened, "parseInt(document.querySelector('#readout strong').textContent) >= 9")
    opened.click("#play")
    before = opened.evaluate("document.getElementById('observed').toDataURL()")
    opened.click("#kinds button[data-kind='0']")
    assert opened.evaluate("document.getElementById('observed').toDataURL()") != before
    opened.set_viewport_size({"width": 480, "height": 800})
    wait_until(opened, "document.getElementById('observed').clientWidth < 460")
    assert opened.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_tables_sort_by_a_click_and_colours_switch(opened):
    heads = opened.locator("#parameters th button")
    column = 3
    for sign in (1, -1):
        heads.nth(column).click()
        cells = opened.locator(f"#parameters tbody td:nth-child({column + 1})")
        values = [float(it.get_attribute("data-value")) for it in cells.all()]
        assert np.all(sign * np.diff(values) >= 0)
    colour = "getComputedStyle(document.body).backgroundColor"
    light = opened.evaluate(colour)
    opened.click("button[data-theme='dark']")
    assert opened.evaluate(colour) != light


def test_it_prints(opened):
    printed = opened.pdf()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2
