"""`foveate simulate`: paths of fitted models in a table that foveate reads back."""

import json

import numpy as np
import pandas as pd
import pytest

from foveate import Extent, example_data, read_table

pytestmark = pytest.mark.usefixtures("unchecked_types")

DRAWS = 2


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Local Saliency fitted to two observers of the example on 16 x 16 cells."""
    import jax

    from foveate.commands.reading import read
    from foveate.execution.run import Run
    from foveate.execution.store import FitStore
    from foveate.model.catalogue import named_model

    assert jax  # imported first, as commands do
    data = read("example", 16).data
    store = FitStore.resume(tmp_path_factory.mktemp("fits") / "fits", Run.of(named_model("local_saliency"), data, 1))
    assert len(list(store.fit_each(data, ["ann", "ben"]))) == 2
    return store.folder


def test_each_draw_imitates_the_observed_paths(fits, tmp_path, foveate_command):
    out = tmp_path / "simulated"
    code, said, _ = foveate_command("simulate", fits, "--data", "example", "--draws", DRAWS, "--out", out, "--json")
    assert code == 0
    summary = json.loads(said)
    observed = example_data().data.paths.select(observers=["ann", "ben"])
    assert summary["paths"] == DRAWS * len(observed)
    assert summary["fixations"] == DRAWS * observed.fixations
    table = pd.read_csv(out / "simulated.csv")
    lengths = table.groupby(["observer", "picture", "trial"]).size()
    for path in observed:
        assert all(lengths[path.observer, path.picture, draw] == len(path) for draw in (1, DRAWS))
    assert set(table.loc[table["fixation"] <= 2, "policy"]) == {"map"}
    assert set(table.loc[table["fixation"] > 2, "policy"]) == {"Global"}
    paths, report = read_table(
        out / "simulated.csv", frame=Extent(24.0, 32.0), position_unit="deg", x="x_deg", y="y_deg", trial="trial"
    )
    assert (len(paths), report.fixations) == (summary["paths"], summary["fixations"])
    np.testing.assert_array_equal(np.sort(paths.x_deg[paths.real]), np.sort(table["x_deg"]))


def test_an_observers_paths_do_not_depend_on_the_others(fits, tmp_path, foveate_command):
    options = ("--data", "example", "--draws", DRAWS)
    foveate_command("simulate", fits, *options, "--out", tmp_path / "both")
    foveate_command("simulate", fits, *options, "--observers", "ben", "--out", tmp_path / "alone")
    both, alone = (pd.read_csv(tmp_path / name / "simulated.csv") for name in ("both", "alone"))
    pd.testing.assert_frame_equal(both[both["observer"] == "ben"].reset_index(drop=True), alone)
    foveate_command("simulate", fits, *options, "--seed", 2, "--observers", "ben", "--out", tmp_path / "other")
    assert not pd.read_csv(tmp_path / "other" / "simulated.csv")["x_deg"].equals(alone["x_deg"])


def test_observed_starts_are_kept(fits, tmp_path, foveate_command):
    out = tmp_path / "simulated"
    options = ("--data", "example", "--draws", 1, "--observers", "ann", "--observed-start")
    assert foveate_command("simulate", fits, *options, "--out", out)[0] == 0
    table = pd.read_csv(out / "simulated.csv")
    path = next(iter(example_data().data.paths.select(observers=["ann"], pictures=["beach"])))
    first = table[table["picture"] == "beach"].iloc[:2]
    np.testing.assert_allclose(first["x_deg"], path.x_deg[:2])
    np.testing.assert_allclose(first["y_deg"], path.y_deg[:2])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--observers", "cleo"), "has no fit of observer cleo"),
        (("--observers", "nobody"), "observer nobody not in the data"),
        (("--data", "nowhere"), "nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(fits, tmp_path, foveate_command, options, words):
    code, _, err = foveate_command("simulate", fits, "--data", "example", *options, "--out", tmp_path / "out")
    assert code == 2
    assert words in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_fits_of_other_data_are_refused(fits, tmp_path, foveate_command):
    paths = example_data().data.paths
    table = paths.to_table().assign(x_deg=lambda it: it["x_deg"] / 2)
    table.to_csv(tmp_path / "moved.csv", index=False)
    (tmp_path / "moved.toml").write_text(
        '[data]\nfile = "moved.csv"\nposition_unit = "deg"\n[columns]\nx = "x_deg"\ny = "y_deg"\n'
        "[picture]\nwidth_deg = 32.0\nheight_deg = 24.0\n[maps]\nbandwidth_deg = 2.0\n"
    )
    code, _, err = foveate_command("simulate", fits, "--data", tmp_path / "moved.toml", "--out", tmp_path / "out")
    assert code == 2
    assert "is of other data or maps" in err
