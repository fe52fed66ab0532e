"""What the tests of reports share: small data, a folder of fits and one of a study, and the command."""

import sys
from pathlib import Path

import pytest
from made_folders import fit_folder, study_folder

from foveate import Dataset, cli, example_data, named_model
from foveate.data.grid import Grid

CELLS, PICTURES, OBSERVERS = 16, ["beach", "bridge", "castle", "forest"], ["ann", "ben"]


@pytest.fixture(scope="session")
def data() -> Dataset:
    """Two observers of the example on four pictures, on 16 x 16 cells."""
    some = example_data().data.select(observers=OBSERVERS, pictures=PICTURES)
    return Dataset(some.paths, some.maps.resample(Grid(CELLS, CELLS, some.maps.grid.extent)))


@pytest.fixture(scope="session")
def fits(data, tmp_path_factory) -> Path:
    """The full model, fitted to two observers; the fit of ben has not converged."""
    return fit_folder(tmp_path_factory.mktemp("report") / "fits", named_model("full"), data, bad=("ben",))


@pytest.fixture(scope="session")
def study(data, tmp_path_factory) -> Path:
    """Fixed Choice and the baseline in two folds over pictures."""
    models = {name: named_model(name) for name in ("saliency_baseline", "fixed_choice")}
    return study_folder(tmp_path_factory.mktemp("report") / "study", models, data, [PICTURES[:2], PICTURES[2:]])


@pytest.fixture
def foveate_command(monkeypatch, capsys):
    """`foveate` with these arguments: (exit code, standard output, standard error). Nothing compiled is kept."""
    monkeypatch.setenv("FOVEATE_CACHE", "")
    monkeypatch.delenv("FOVEATE_POTSDAM35", raising=False)

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foveate", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return call
