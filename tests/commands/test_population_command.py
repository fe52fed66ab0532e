"""`foveate population` as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from foveate.execution.population_store import PopulationStore

COMMAND = Path(sys.executable).parent / "foveate"
COARSE = ["--data", "example", "--cells", "16"]
ARGUMENTS = ["population", *COARSE, "--model", "local_saliency", "--observers", "ann,ben,cleo"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    return dict(os.environ) | {"FOVEATE_CACHE": str(tmp_path_factory.mktemp("cache"))}


def run(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess:
    command = [str(it) for it in (COMMAND, *ARGUMENTS, *arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_a_population_is_fitted_and_found_again(tmp_path, environment):
    folder = tmp_path / "population"
    first = run(environment, "--out", folder, "--warmup", 20, "--draws", 20, "--json")
    assert first.returncode == 0, first.stderr
    said = json.loads(first.stdout)
    assert said["population"]["parameter"] == ["xi_row", "xi_column"]
    assert [it["observer"] for it in said["fits"]] == ["ann", "ben", "cleo"]
    assert PopulationStore.read(folder).load().mean.shape == (4, 20, 2)
    assert {"estimates.csv", "population.csv", "population.nc", "run.json"} <= {it.name for it in folder.iterdir()}
    again = run(environment, "--out", folder, "--warmup", 20, "--draws", 20)
    assert again.returncode == 0
    assert "nothing left to do" in again.stderr
    assert "xi_row: median" in again.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "fool"], "no model 'fool'"),
        (["--observers", "ann,ben"], "3 or more"),
        (["--draws", "1"], "--draws"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, environment, arguments, said):
    found = run(environment, "--out", tmp_path / "none", *arguments)
    assert found.returncode == 2
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    assert not (tmp_path / "none").exists()
