"""The documentation is true: code runs and prints what is shown, commands and files that it names exist, nothing public
is left out."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

import foveate
from foveate.cli import UsageMistake, app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<text>.*?)^```$", re.M | re.S)
PROGRAM = typer.main.get_command(app)

# Stands in the output before each block's own.
MARK = "=== block {} ==="

# What may stand after the word `python`: what a block cannot run without, or that it takes long.
REAL_DATA, PYSALIENCY, LONG = "potsdam35", "pysaliency", "slow"

# The pieces of a new policy in CONTRIBUTING.md: what stands after the word `python`, and where it is put.
SKELETON = {
    "mechanisms.py": "src/foveate/model/mechanisms.py",
    "mine.py": "tests/oracles/mine.py",
    "table.py": "tests/contracts/table.py",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


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
    for fence, after in zip(fences, [*fences[1:], None], strict=False):
        language, _, needs = fence["kind"].partition(" ")
        if language != "python":
            continue
        follows = after is not None and after["kind"] == "text" and not page[fence.end() : after.start()].strip()
        shown = after["text"] if after is not None and follows else None
        found.append(Block(page[: fence.start()].count("\n") + 2, fence["text"], shown, needs))
    return found


def runnable(page: Path, *marks: str) -> list[Block]:
    """The blocks of a page that can be pasted one after the other, of those with a mark only these."""
    return [block for block in blocks(page.read_text()) if block.needs in ("", *marks)]


def test_the_parser_sees_code_and_output():
    page = "a\n```python\nprint(1)\n```\n\n```text\n1\n```\n```python x\n2\n```\nwords\n```text\n3\n```\n"
    assert blocks(page) == [Block(3, "print(1)\n", "1\n", ""), Block(10, "2\n", None, "x")]


def test_the_readme_shows_an_example_with_its_output():
    assert blocks((ROOT / "README.md").read_text())[0].shown


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page, REAL_DATA)], ids=name_of)
def test_python_blocks_run_as_pasted_and_print_what_is_shown(page, tmp_path):
    has_data = bool(os.environ.get("FOVEATE_POTSDAM35"))
    assert has_data or not os.environ.get("CI"), "blocks that need the real data are not to be left out here"
    run_blocks(page, runnable(page, REAL_DATA) if has_data else runnable(page), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page) != runnable(page, LONG)], ids=name_of)
def test_python_blocks_that_take_long_run_too(page, tmp_path):
    run_blocks(page, runnable(page, LONG), tmp_path)


def test_no_python_block_is_left_out():
    marks = {block.needs for page in PAGES for block in blocks(page.read_text())}
    assert marks <= {"", REAL_DATA, LONG, *SKELETON, PYSALIENCY}  # the last in tests/with_pysaliency


def run_blocks(page: Path, chosen: list[Block], folder: Path) -> None:
    """In a process of its own, as a reader would run them: no type checks, a folder without anything in it."""
    # Newlines in front of each block make the line numbers of a traceback those of the page.
    script = "".join(
        f"print({MARK.format(index)!r})\n"
        f"exec(compile({chr(10) * (block.line - 1) + block.code!r}, {page.name!r}, 'exec'))\n"
        for index, block in enumerate(chosen)
    )
    file = folder / "page.py"
    file.write_text(script)
    run = subprocess.run([sys.executable, file], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    printed = re.split("|".join(re.escape(MARK.format(index)) + "\n" for index in range(len(chosen))), run.stdout)[1:]
    for block, output in zip(chosen, printed, strict=True):
        if block.shown is not None:
            assert output == block.shown, f"{page.name}, line {block.line}"


# --- commands --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """A command of a shell block, and the lines shown under it."""

    words: list[str]
    shown: list[str]


def calls(page: str) -> list[Call]:
    """Every `foveate ...` in a page's shell blocks; where lines begin with $, the others are output.

    A line that ends in \\ goes on in the next.
    """
    found: list[Call] = []
    for fence in FENCE.finditer(page):
        if fence["kind"] not in ("", "console"):
            continue
        lines = fence["text"].replace("\\\n", " ").splitlines()
        prompt = "$ " if any(line.startswith("$ ") for line in lines) else ""
        for line in lines:
            if line.startswith(f"{prompt}foveate "):
                found.append(Call(shlex.split(line.removeprefix(prompt), comments=True), []))
            elif found and prompt and not line.startswith(prompt):
                found[-1].shown.append(line)
    return found


def check_call(words: list[str]) -> None:
    """Refuse a command that does not exist, an option that it has not, a value that it would not take."""
    assert words[1] in PROGRAM.commands, words
    try:
        PROGRAM.commands[words[1]].make_context(words[1], words[2:])
    except UsageMistake as mistake:
        pytest.fail(f"{' '.join(words)}: {mistake}")


def test_the_parser_sees_commands():
    page = "```console\n$ foveate fit --out a \\\n  --json\nfoveate says\n...\n```\n"
    page += "```\nfoveate diagnose a  # why\n```\n```python\nfoveate x\n```\n"
    assert calls(page) == [
        Call(["foveate", "fit", "--out", "a", "--json"], ["foveate says", "..."]),
        Call(["foveate", "diagnose", "a"], []),
    ]


@pytest.mark.parametrize("wrong", ["foveate fti", "foveate fit --out a --modle full", "foveate fit --out a --seed -1"])
def test_a_wrong_command_is_seen(wrong):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_call(shlex.split(wrong))


@pytest.mark.parametrize("page", [page for page in PAGES if calls(page.read_text())], ids=name_of)
def test_commands_in_shell_blocks_exist_with_their_options(page):
    for call in calls(page.read_text()):
        check_call(call.words)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text_exist_with_their_options(page):
    for named in re.findall(r"`foveate ([^`]+)`", FENCE.sub("", page.read_text())):
        command, *rest = shlex.split(named)
        known = PROGRAM.commands[command].params if not command.startswith("-") else PROGRAM.params
        options = {"--help", *(name for parameter in known for name in (*parameter.opts, *parameter.secondary_opts))}
        assert {word for word in (command, *rest) if word.startswith("--")} <= options, named


@pytest.mark.slow
def test_the_tutorial_goes_from_a_table_to_a_report(tmp_path):
    page = DOCS / "tutorial.md"
    run_blocks(page, runnable(page), tmp_path)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for call in calls(page.read_text()):
        done = subprocess.run(
            call.words, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert as_shown([line.rstrip() for line in done.stdout.splitlines()], call.shown), (call, done.stdout)
    for name in ("check.png", "ranking/figures/ranking.png", "simulated/simulated.csv", "report.html", "ranking.html"):
        assert (tmp_path / name).stat().st_size > 0


def as_shown(lines: list[str], shown: list[str]) -> bool:
    """Whether these lines are the ones shown, where ... stands for any number of them."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown if line)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines if line)) is not None


def test_output_is_compared_line_by_line():
    assert as_shown(["a", "b", "c", ""], ["a", "...", "c"])
    assert not as_shown(["a", "b", "c"], ["a", "c"])
    assert not as_shown(["a", "b", "c"], ["a", "..."][:1])


# --- files, names, pages ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_that_exist(page):
    text = FENCE.sub("", page.read_text())
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert all((page.parent / link).exists() for link in links), links


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_in_the_text_exist(page):
    """Anything in backquotes that looks like a file of this project."""
    text = FENCE.sub("", page.read_text())
    named = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./]+|[\w]+/[\w/]+\.py)`", text)
    places = (ROOT, ROOT / "src" / "foveate")
    assert all(any((place / name).exists() for place in places) for name in named), named


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_the_targets_that_a_page_names_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", page.read_text(), re.M)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_pictures_are_small():
    for image in (DOCS / "images").iterdir():
        assert image.stat().st_size < 200_000, image


def test_the_reference_lists_every_public_name_once():
    pages = [page.read_text() for page in (DOCS / "reference").glob("*.md")]
    listed = [name for page in pages for name in re.findall(r"^\.\. auto\w+:: foveate\.(\w+)$", page, re.M)]
    assert sorted(listed) == sorted(foveate.__all__)


def test_every_page_is_in_a_menu():
    menus = re.findall(r"^```\{toctree\}\n(.*?)^```$", (DOCS / "index.md").read_text(), re.M | re.S)
    lines = [line for menu in menus for line in menu.splitlines() if line and not line.startswith(":")]
    entries = [re.sub(r".*<(.*)>", r"\1", line) for line in lines]  # with a title of its own: Title <page>
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")]
    assert [page for page in pages if not any(fnmatch(page, entry) for entry in entries)] == ["index"]


def test_the_citation_is_of_this_version():
    assert re.search(rf"^version: {re.escape(foveate.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)


def test_what_the_site_needs_is_installed_before_all_tests_run():
    makefile = (ROOT / "Makefile").read_text()
    for target in ("docs", "test-all"):
        assert re.search(rf"^{target}:.* ?\$\(VENV\)/\.installed-docs$", makefile, re.M), target


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_shows_every_command_and_option(tmp_path):
    missing = [name for name in ("sphinx", "myst_parser", "furo") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: `make docs` and `make test-all` install them (extra `docs`)")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = re.sub("<[^>]*>", "", (tmp_path / "reference" / "commands.html").read_text())
    for name, command in PROGRAM.commands.items():
        section = text.split(f"foveate {name}¶", 1)[1].split("¶", 1)[0]
        for parameter in command.params:
            assert all(spelling.lower() in section.lower() for spelling in parameter.opts), (name, parameter.opts)


# --- the skeleton of a new policy ------------------------------------------------------------------------------------


def with_skeleton(folder: Path) -> Path:
    """A copy of the package and of its contract tests with the pieces of CONTRIBUTING.md where it says."""
    shutil.copytree(ROOT / "src", folder / "src")
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    pieces = {block.needs: block.code for block in blocks((ROOT / "CONTRIBUTING.md").read_text())}
    assert set(pieces) == set(SKELETON)
    for name, place in SKELETON.items():
        before = f"{(folder / place).read_text()}\n\n" if (folder / place).exists() else ""
        (folder / place).write_text(before + pieces[name])
    return folder


def run_contracts(folder: Path, chosen: str) -> subprocess.CompletedProcess:
    """The contract tests of a copy, as CONTRIBUTING.md runs them."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "tests/contracts", "-k", chosen]
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_skeleton_of_a_policy_passes_its_contract_and_fails_with_a_mistake(tmp_path):
    told = (ROOT / "CONTRIBUTING.md").read_text()
    (chosen,) = re.findall(r'-m pytest -n 0 tests/contracts -k "(.*)"', told)
    folder = with_skeleton(tmp_path)
    done = run_contracts(folder, chosen)
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 10

    policies = folder / SKELETON["mechanisms.py"]
    right = policies.read_text()
    assert "`self.zeta[::-1]`" in told
    policies.write_text(right.replace("history.gaze, self.zeta)", "history.gaze, self.zeta[::-1])"))
    done = run_contracts(folder, "Mine and oracle")
    assert done.returncode == 1
    assert "1 failed" in done.stdout

    policies.write_text(right)
    table = folder / "tests" / "contracts" / "table.py"
    table.write_text(table.read_text().split("\nTABLE.append")[0])
    done = run_contracts(folder, "has_a_row")
    assert done.returncode == 1
    assert "Mine" in done.stdout
