"""The documentation is true: every Python block runs, prints what is shown, and every file it names exists."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<text>.*?)^```$", re.M | re.S)

# Stands in the output before each block's own.
MARK = "=== block {} ==="


@dataclass(frozen=True)
class Block:
    """A Python block: its code, the output shown under it (None: none is), and the data that it needs."""

    line: int
    code: str
    shown: str | None
    needs: str


def blocks(page: str) -> list[Block]:
    """The Python blocks of a page; a `text` block that follows one, with nothing between, shows its output."""
    fences = list(FENCE.finditer(page))
    found = []
    for fence, after in zip(fences, [*fences[1:], None], strict=True):
        language, _, needs = fence["kind"].partition(" ")
        if language != "python":
            continue
        follows = after is not None and after["kind"] == "text" and not page[fence.end() : after.start()].strip()
        shown = after["text"] if after is not None and follows else None
        found.append(Block(page[: fence.start()].count("\n") + 2, fence["text"], shown, needs))
    return found


def test_the_parser_sees_code_and_output():
    page = "a\n```python\nprint(1)\n```\n\n```text\n1\n```\n```python x\n2\n```\nwords\n```text\n3\n```\n"
    assert blocks(page) == [Block(3, "print(1)\n", "1\n", ""), Block(10, "2\n", None, "x")]


def test_the_readme_shows_an_example_with_its_output():
    assert blocks((ROOT / "README.md").read_text())[0].shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_run_as_pasted_and_print_what_is_shown(page, tmp_path):
    """In a process of its own, as a reader would run them: no type checks, a folder without anything in it."""
    has_data = bool(os.environ.get("FOVEATE_POTSDAM35"))
    runnable = [block for block in blocks(page.read_text()) if not block.needs or has_data]
    assert has_data or not os.environ.get("CI"), "blocks that need the real data are not to be left out here"
    if not runnable:
        pytest.skip("no Python on this page")
    # Newlines in front of each block make the line numbers of a traceback those of the page.
    script = "".join(
        f"print({MARK.format(index)!r})\n"
        f"exec(compile({chr(10) * (block.line - 1) + block.code!r}, {page.name!r}, 'exec'))\n"
        for index, block in enumerate(runnable)
    )
    file = tmp_path / "page.py"
    file.write_text(script)
    run = subprocess.run([sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    printed = re.split("|".join(re.escape(MARK.format(index)) + "\n" for index in range(len(runnable))), run.stdout)[1:]
    for block, output in zip(runnable, printed, strict=True):
        if block.shown is not None:
            assert output == block.shown, f"{page.name}, line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    text = FENCE.sub("", page.read_text())
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert all((page.parent / link).exists() for link in links), links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_in_the_text_exist(page):
    """Anything in backquotes that looks like a file of this project."""
    text = FENCE.sub("", page.read_text())
    named = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./]+|[\w]+/[\w/]+\.py)`", text)
    places = (ROOT, ROOT / "src" / "foveate")
    assert all(any((place / name).exists() for place in places) for name in named), named


def test_the_targets_that_the_readme_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.M):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_readme_picture_is_small():
    for image in (ROOT / "docs" / "images").iterdir():
        assert image.stat().st_size < 200_000, image
