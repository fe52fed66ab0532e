"""`foveate curves` as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.commands.curves import _distrusted

COMMAND = Path(sys.executable).parent / "foveate"
ARGUMENTS = ["curves", "--data", "example", "--cells", "16", "--model", "local_saliency", "--observers", "ann,ben,cleo"]
SMALL = ["--pictures", "1,4", "--folds", "1", "--warmup", "20", "--draws", "20"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    return dict(os.environ) | {"FOVEATE_CACHE": str(tmp_path_factory.mktemp("cache"))}


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess:
    command = [str(it) for it in (COMMAND, *ARGUMENTS, *arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_curves_are_drawn_and_not_fitted_twice(tmp_path, environment):
    folder = tmp_path / "curves"
    first = run(environment, *SMALL, "--out", folder, "--json")
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert [it["pictures"] for it in said["curves"]] == [1, 4]
    assert {it["model"] for it in said["curves"][0]["models"]} == {"separate", "pooled", "hierarchical"}
    assert {"curves.svg", "curves.png"} == {it.name for it in (folder / "figures").iterdir()}
    fits = {it: it.stat().st_mtime_ns for it in (folder / "fits").iterdir()}
    again = run(environment, *SMALL, "--out", folder)
    assert again.returncode == 0, again.stderr
    assert "hierarchical - separate" in again.stdout
    assert {it: it.stat().st_mtime_ns for it in (folder / "fits").iterdir()} == fits
    kept = (folder / "curves.json").read_bytes()
    other = run(environment, *SMALL, "--seed", "2", "--out", folder)
    assert other.returncode == 2
    assert "another seed" in other.stderr
    assert (folder / "curves.json").read_bytes() == kept
    page = (folder / "results.md").read_text(encoding="utf-8")
    mean = next(it["mean"] for it in said["curves"][1]["models"] if it["model"] == "hierarchical")
    assert f"{mean:.3f}" in page


def test_weights_that_are_not_to_be_trusted_are_named():
    curve = {"pictures": 3, "median_pareto_k": {"separate": 0.4, "pooled": 0.2, "hierarchical": 1.2}}
    (said,) = _distrusted({"curves": [curve]})
    assert "hierarchical fits to 3 pictures" in said
    assert "1.20" in said
    assert _distrusted({"curves": [{"pictures": 3, "max_rhat": {"separate": 2.0}}]}) == []


def test_curves_by_weights_say_how_far_weights_can_be_trusted(tmp_path, environment):
    found = run(environment, "--pictures", "2", "--folds", "1", "--by", "weights", "--out", tmp_path / "curves")
    assert found.returncode == 0, found.stderr
    assert "median Pareto k-hat" in (tmp_path / "curves" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pictures", "3,few"], "--pictures few"),
        (["--pictures", "90"], "training pictures"),
        (["--model", "fool"], "no model 'fool'"),
        (["--model", "saliency_baseline"], "no model 'saliency_baseline' that can be fitted"),
        (["--scheduler", "tcp://nowhere:1"], "leave it out"),
        (["--by", "magic"], "say chains or weights"),
        (["--by", "weights", "--draws", "40"], "--draws: it is for --by chains"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, environment, arguments, said):
    found = run(environment, *arguments, "--out", tmp_path / "curves")
    assert found.returncode == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr
