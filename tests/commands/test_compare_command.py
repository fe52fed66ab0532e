"""`foveate compare` and `foveate reproduce`: the same bits however often they were interrupted."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from foveate import cli

PARTS = ["--models", "saliency_baseline,local_saliency", "--draws", "4", "--seed", "2"]
ARGUMENTS = ["--data", "example", "--cells", "16", "--observers", "ann,ben", "--folds", "2", *PARTS]


def command(out: Path, *more: str) -> list[str]:
    return [str(Path(sys.executable).with_name("foveate")), "compare", *ARGUMENTS, "--out", str(out), *more]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("compare") / "study"
    done = subprocess.run(command(out, "--workers", "1"), capture_output=True, text=True, check=True)
    return out, done.stdout


def test_it_ends_in_tables_figures_and_a_page(undisturbed):
    out, said = undisturbed
    summary = json.loads((out / "study.json").read_text())
    assert "JAX on cpu" in summary["machine"]
    assert summary["finished"]
    assert summary["best"] == "local_saliency"
    assert (summary["fits"], summary["fits_not_converged"], summary["observers"]) == (4, 0, 2)
    for name in (*summary["tables"], *summary["figures"], summary["page"]):
        assert (out / name).stat().st_size > 0, name
    scores = pd.read_csv(out / "scores.csv", index_col="model")
    best = scores.loc["local_saliency", "predictive_gain_over_uniform_bits, over fixations"]
    assert f"Local Saliency       {best:7.3f}" in said
    page = (out / "results.md").read_text()
    assert f"| Local Saliency | {best:.3f} |" in page
    assert "4 of 4" in page


def test_killed_workers_and_a_killed_run_change_no_bit(undisturbed, tmp_path):
    out = tmp_path / "study"
    with subprocess.Popen(command(out, "--workers", "2"), stderr=subprocess.DEVNULL) as run:
        deadline = time.monotonic() + 120
        while not list(out.glob("fits/*/*/*.nc")) and time.monotonic() < deadline and run.poll() is None:
            time.sleep(0.05)
        run.kill()
    finished = list(out.glob("fits/*/*/*.nc"))
    assert 0 < len(finished) < 4
    assert not json.loads((out / "study.json").read_text())["finished"]
    before = {file: file.stat().st_mtime_ns for file in finished}
    subprocess.run(command(out, "--workers", "2"), capture_output=True, check=True)
    assert all(file.stat().st_mtime_ns == at for file, at in before.items())
    tables = sorted(file.name for file in out.glob("*.csv"))
    assert tables == sorted(file.name for file in undisturbed[0].glob("*.csv"))
    for name in tables:
        ours, theirs = (pd.read_csv(folder / name) for folder in (out, undisturbed[0]))
        pd.testing.assert_frame_equal(*(it.drop(columns="seconds", errors="ignore") for it in (ours, theirs)),
                                      check_exact=True)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--models", "fulll"], "no model fulll"),
        (["compare", "--data", "nowhere"], "nowhere is not a folder"),
        (["compare", "--data", "example", "--observers", "zoe"], "observer zoe not in the data"),
        (["compare", "--data", "example", "--folds", "200"], "200 folds of 12 pictures"),
        (["compare", "--data", "example", "--priors", "strong"], "priors = 'strong'"),
        (["compare", "--data", "example", "--workers", "2", "--scheduler", "tcp://a:1"], "give one of the two"),
        (["reproduce", "--maps", "mine"], "say published or leave-one-out"),
        (["reproduce", "--data", "nowhere"], "nowhere is not a folder"),
    ],
)
def test_a_mistake_is_one_line(monkeypatch, capsys, unchecked_types, tmp_path, arguments, words):
    monkeypatch.setenv("FOVEATE_CACHE", "")
    monkeypatch.setattr(sys, "argv", ["foveate", *arguments, "--out", str(tmp_path / "study")])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "study").exists()


def test_a_finished_study_is_not_touched_by_a_command_with_other_settings(
    undisturbed, monkeypatch, capsys, unchecked_types
):
    out, _ = undisturbed
    before = {file: file.read_bytes() for file in out.glob("*.*")}
    monkeypatch.setenv("FOVEATE_CACHE", "")
    monkeypatch.setattr(sys, "argv", ["foveate", "compare", *ARGUMENTS, "--out", str(out), "--folds", "3"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "nothing was overwritten" in capsys.readouterr().err
    assert {file: file.read_bytes() for file in out.glob("*.*")} == before


def test_folders_of_others_stay_as_they_are(monkeypatch, capsys, unchecked_types, tmp_path):
    (tmp_path / "results.md").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["foveate", "compare", "--data", "example", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        cli.main()
    assert "holds results.md, which 'foveate compare' did not make" in capsys.readouterr().err
    assert (tmp_path / "results.md").read_text() == "mine"
