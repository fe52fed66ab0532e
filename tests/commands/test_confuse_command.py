"""`foveate confuse` ends in a matrix, resumes, and refuses what it did not make."""

import json
from functools import partial

import pandas as pd
import pytest

pytestmark = pytest.mark.usefixtures("unchecked_types")

MODELS = ["saliency_baseline", "local_saliency"]
ASKED = ["--data", "example", "--cells", 16, "--observers", "ben", "--models", ",".join(MODELS), "--draws", 5]


@pytest.fixture
def run(foveate_command):
    """The command in this process: (exit code, standard output, standard error)."""
    return partial(foveate_command, "confuse")


def test_it_ends_in_tables_a_figure_and_a_page_and_fits_nothing_twice(run, tmp_path):
    out = tmp_path / "confusion"
    code, said, errors = run(*ASKED, "--out", out, "--workers", 1)
    assert code == 0, errors
    assert "3 of 3 fits; model local_saliency, fold 1, observer local_saliency: ben" in errors
    fits = {file: file.stat().st_mtime_ns for file in out.rglob("*.nc")}
    assert len(fits) == 3
    summary = json.loads((out / "confusion.json").read_text())
    assert summary["finished"]
    assert (summary["models"], summary["data_sets"], summary["fits"]) == (MODELS, 2, 3)
    for name in (*summary["tables"], *summary["figures"], "confusion.png", summary["page"]):
        assert (out / name).stat().st_size > 0, name
    sets = pd.read_csv(out / "data_sets.csv")
    cells = pd.read_csv(out / "confusion.csv").set_index(["criterion", "truth", "winner"])
    page = (out / "results.md").read_text()
    for criterion in ("held_out", "evidence"):
        right = 0
        for row in sets.to_dict("records"):
            winner = row[f"winner_{criterion}"]
            assert cells.loc[(criterion, row["truth"], winner), "wins"] == 1
            right += row["truth"] == winner
        assert summary["criteria"][criterion]["recovered"] == right / 2
        assert f"The model that made the data wins in {right / 2:.0%} of all data sets" in page
        assert f"The true model wins in {right / 2:.0%}" in said
    assert "no failure of the criterion" in page

    tables = {name: (out / name).read_bytes() for name in summary["tables"]}
    code, said, errors = run(*ASKED, "--out", out, "--workers", 1, "--json")
    assert code == 0, errors
    assert "of 3 fits;" not in errors
    assert json.loads(said) == summary
    assert {file: file.stat().st_mtime_ns for file in out.rglob("*.nc")} == fits
    assert {name: (out / name).read_bytes() for name in tables} == tables

    code, _, errors = run(*ASKED, "--out", out, "--seed", 2)
    assert code == 2
    assert "holds results of 'foveate confuse' with seed 1: nothing was overwritten" in errors
    assert {name: (out / name).read_bytes() for name in tables} == tables


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "fulll"], "no model fulll"),
        (["--models", "full"], "name at least two"),
        (["--data", "nowhere"], "nowhere is not a folder"),
        (["--observers", "zoe"], "observer zoe not in the data"),
        (["--priors", "strong"], "priors = 'strong'"),
        (["--workers", 2, "--scheduler", "tcp://a:1"], "give one of the two"),
    ],
)
def test_a_mistake_is_one_line(run, tmp_path, arguments, words):
    code, out, errors = run("--data", "example", "--cells", 16, "--out", tmp_path / "new", *arguments)
    assert code == 2
    assert out == ""
    assert len(errors.splitlines()) == 1
    assert words in errors
    assert not (tmp_path / "new").exists()


def test_folders_of_others_stay_as_they_are(run, tmp_path):
    (tmp_path / "results.md").write_text("mine")
    code, _, errors = run(*ASKED, "--out", tmp_path)
    assert code == 2
    assert "holds results.md, which 'foveate confuse' did not make" in errors
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("results.md", "mine")]
