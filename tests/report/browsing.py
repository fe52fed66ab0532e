"""Chromium for the tests of pages: where it is, how it is started, and what a page did while it was open."""

import base64
import io
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync"]  # fmt: skip
WAIT_MS = 120_000  # on a busy machine
MISSING = "no Chromium and Playwright here: reports are not opened in a browser"


@contextmanager
def started(config: pytest.Config) -> Iterator[Any]:
    """A browser; without one the test is skipped and says so, but fails where FOVEATE_BROWSER is 'required'."""
    program = next((found for found in map(shutil.which, NAMES) if found), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        if os.environ.get("FOVEATE_BROWSER") == "required":
            pytest.fail(MISSING)
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{MISSING}", file=sys.stderr, flush=True)
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS, timeout=WAIT_MS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, file: Path, **settings: Any) -> Iterator[Any]:
    """The file in a window; in the end nothing was complained of, asked in a dialog or fetched from elsewhere."""
    heard: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}} | settings)
    page = context.new_page()
    page.set_default_timeout(WAIT_MS)
    page.on("console", lambda it: heard.append(f"console: {it.text}"))
    page.on("pageerror", lambda it: heard.append(f"error: {it}"))
    page.on("dialog", lambda it: (heard.append(f"dialog: {it.message}"), it.dismiss()))
    page.on("popup", lambda it: heard.append(f"window: {it.url}"))
    own = (file.as_uri(), "data:image/")
    page.on("request", lambda it: heard.append(f"request: {it.url}") if not it.url.startswith(own) else None)
    page.goto(file.as_uri())
    yield page
    context.close()
    assert not heard, "; ".join(heard)


def step(page: Any) -> int:
    """The number of the fixation that the viewer shows."""
    return int(page.inner_text("#readout div:first-child strong").split()[0])


def readout(page: Any) -> dict[str, str]:
    """What the viewer says of the fixation, by name."""
    names, values = (page.locator(f"#readout {tag}").all_inner_texts() for tag in ("span", "strong"))
    return dict(zip(names, values, strict=True))


def pixels(page: Any, name: str = "observed") -> np.ndarray:
    """A canvas as (row, column, colour)."""
    text = page.evaluate(f"document.getElementById('{name}').toDataURL()")
    with Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))) as image:
        return np.asarray(image.convert("RGB"))


def wait_until(page: Any, expression: str) -> None:
    """Playwright's own waiting evaluates text inside the page, which the page's policy forbids."""
    for _ in range(WAIT_MS // 50):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"{expression} did not become true")
