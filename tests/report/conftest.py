"""What the tests of reports share: small data, a folder of fits and one of a study, the command, and a browser."""

from pathlib import Path

import pytest
from browsing import started
from made_folders import fit_folder, study_folder

from called_commands import Call, caller
from foveate import Dataset, example_data, named_model
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
def foveate_command(monkeypatch, capsys) -> Call:
    """`foveate` with these arguments, and no real data: (exit code, standard output, standard error)."""
    monkeypatch.delenv("FOVEATE_POTSDAM35", raising=False)
    return caller(monkeypatch, capsys)


@pytest.fixture(scope="module")
def browser(request):
    """Chromium, open while the tests of one file run: its event loop is in the way of other files' own."""
    with started(request.config) as found:
        yield found
