"""`foveate contrast` reads fits and groups, and says in one sentence what is wrong with them."""

import json
from functools import partial
from pathlib import Path

import jax
import pandas as pd
import pytest

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.evaluate.contrasts import contrast_conditions, contrast_groups
from foveate.example import example_data
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.model.catalogue import named_model

pytestmark = pytest.mark.usefixtures("unchecked_types")

FITTED = ["ann", "ben", "cleo", "dan", "eve"]  # finn is not
GROUPS = {"ann": "young", "ben": "old", "cleo": "young", "dan": "old"}


@pytest.fixture(scope="module")
def fits(tmp_path_factory) -> Path:
    """A folder as `foveate fit` makes it, not yet finished."""
    data = example_data().data
    small = Dataset(data.paths, data.maps.resample(Grid(16, 16, data.maps.grid.extent)))
    store = FitStore.resume(
        tmp_path_factory.mktemp("contrast") / "fits", Run.of(named_model("local_saliency"), small, seed=1)
    )
    list(store.fit_each(small, FITTED, workers=1))
    return store.folder


@pytest.fixture
def run(foveate_command):
    """The command in this process: (exit code, standard output, standard error)."""
    return partial(foveate_command, "contrast")


def written(folder: Path, text: str) -> Path:
    file = folder / "groups.csv"
    file.write_text(text)
    return file


def table_of(groups: dict[str, str]) -> str:
    return "observer,group\n" + "".join(f"{observer}, {group}\n" for observer, group in groups.items())


def test_it_ends_in_the_librarys_numbers_a_figure_and_a_page(run, fits, tmp_path):
    file, out = written(tmp_path, table_of(GROUPS)), tmp_path / "contrast"
    code, said, errors = run(fits, "--groups", file, "--out", out, "--seed", 3)
    assert code == 0, errors
    store = FitStore.read(fits)
    expected = contrast_groups({name: store.load(name) for name in GROUPS}, GROUPS, jax.random.key(3))
    found = pd.read_csv(out / "contrasts.csv")
    assert found["parameter"].tolist() == ["xi_row", "xi_column"]
    for column in ("difference", "low", "high", "probability_above_zero", "ratio", "t_p_value"):
        assert found[column].to_numpy() == pytest.approx(expected.table[column].to_numpy(), rel=1e-8)
    assert pd.read_csv(out / "observers.csv")["group"].tolist() == list(GROUPS.values())
    summary = json.loads((out / "contrasts.json").read_text())
    assert summary["finished"]
    assert (summary["groups"], summary["model"]) == ({"young": 2, "old": 2}, "local_saliency")
    assert (summary["left_out"], summary["not_converged"]) == (["eve"], [])
    for name in (*summary["tables"], *summary["figures"], "contrasts.png", summary["page"]):
        assert (out / name).stat().st_size > 0, name
    page = (out / "results.md").read_text()
    shown = f"| young against old | xi_row | ratio | {found['ratio'][0]:.3g} |"
    assert shown in page
    assert "ratios of geometric means" in page
    assert "left out: observer eve" in page
    assert f"{found['ratio'][0]:.3g}" in said
    assert "2 differences" in said

    before = {name: (out / name).read_bytes() for name in (*summary["tables"], *summary["figures"], "results.md")}
    code, said, errors = run(fits, "--groups", file, "--out", out, "--seed", 3, "--json")
    assert code == 0, errors
    assert json.loads(said) == summary
    assert {name: (out / name).read_bytes() for name in before} == before
    code, _, errors = run(fits, "--groups", file, "--out", out, "--seed", 4)
    assert code == 2
    assert "holds results of 'foveate contrast' with seed 3: nothing was overwritten" in errors
    assert {name: (out / name).read_bytes() for name in before} == before


def test_differences_within_persons(run, fits, tmp_path):
    persons = {"ann": "1", "ben": "1", "cleo": "2", "dan": "2"}
    rows = "".join(f"{name},{GROUPS[name]},{persons[name]}\n" for name in GROUPS)
    file, out = written(tmp_path, f"observer,group,person\n{rows}"), tmp_path / "contrast"
    code, said, errors = run(fits, "--groups", file, "--paired", "--out", out, "--json")
    assert code == 0, errors
    store = FitStore.read(fits)
    expected = contrast_conditions({name: store.load(name) for name in GROUPS}, GROUPS, persons, jax.random.key(1))
    rows = json.loads(said)["contrasts"]
    assert [row["high"] for row in rows] == pytest.approx(expected.table["high"].tolist())
    assert rows[0]["test"] == "paired t"
    assert "within persons" in (out / "results.md").read_text()


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        (table_of(GROUPS | {"zoe": "old"}), [], "groups.csv, line 6: observer zoe has no fit in"),
        (table_of(GROUPS | {"finn": "old"}), [], "the fit of observer finn in"),
        (table_of(dict.fromkeys(GROUPS, "young")), [], "'young' is the only group"),
        (table_of({"ann": "young", "ben": "old", "dan": "old"}), [], "group 'young' has one observer"),
        ("observer,kind\nann,young\n", [], "column group missing; it has observer, kind"),
        (table_of(GROUPS), ["--paired"], "column person missing"),
        (table_of(GROUPS) + "ann,old\n", [], "line 6: observer ann stands there twice"),
        ("observer,group\nann,\n", [], "line 2: group is empty"),
        ("observer,group,person\nann,young,1\nben,old,2\n", ["--paired"], "person '1' is not in group old"),
    ],
)
def test_a_mistake_in_the_groups_is_one_line(run, fits, tmp_path, text, more, words):
    out = tmp_path / "contrast"
    code, said, errors = run(fits, "--groups", written(tmp_path, text), "--out", out, *more)
    assert code == 2
    assert said == ""
    assert len(errors.splitlines()) == 1
    assert words in errors
    assert not out.exists()


def test_files_that_are_not_there_or_not_ours(run, fits, tmp_path):
    file = written(tmp_path, table_of(GROUPS))
    for arguments, words in (
        ([tmp_path / "nowhere", "--groups", file], "there is no folder"),
        ([tmp_path, "--groups", file], "holds no run.json"),
        ([fits, "--groups", tmp_path / "none.csv"], "there is no such file"),
    ):
        code, _, errors = run(*arguments, "--out", tmp_path / "new")
        assert code == 2
        assert words in errors
        assert len(errors.splitlines()) == 1
    (tmp_path / "results.md").write_text("mine")
    code, _, errors = run(fits, "--groups", file, "--out", tmp_path)
    assert code == 2
    assert "holds results.md, which 'foveate contrast' did not make" in errors
    assert (tmp_path / "results.md").read_text() == "mine"
