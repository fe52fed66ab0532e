"""`foveate simulate`: paths of fitted models in a table that foveate reads back."""

import json

import jax
import numpy as np
import pandas as pd
import pytest

from foveate import Dataset, Extent, Grid, ScanPaths, example_data, named_model, read_table
from foveate.commands.simulate import _simulated
from foveate.simulation.simulate import simulate as simulate_paths

pytestmark = pytest.mark.usefixtures("unchecked_types")

DRAWS = 2


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Local Saliency fitted to two observers of the example on 16 x 16 cells."""
    from foveate.commands.reading import read
    from foveate.execution.run import Run
    from foveate.execution.store import FitStore
    from foveate.model.catalogue import named_model

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
    assert set(table.loc[table["fixation"] > 2, "policy"]) == {"global"}
    paths, report = read_table(
        out / "simulated.csv", frame=Extent(24.0, 32.0), position_unit="deg", x="x_deg", y="y_deg", trial="trial"
    )
    assert (len(paths), report.fixations) == (summary["paths"], summary["fixations"])
    np.testing.assert_array_equal(np.sort(paths.x_deg[paths.real]), np.sort(table["x_deg"]))
    assert set(paths.columns["policy"][paths.real]) == {"global", "map"}
    assert "forced" not in table


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
    assert set(first["policy"]) == {"observed"}


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


class Fitted:
    """A posterior whose draws are three models with values of their own."""

    def __init__(self):
        self.model = named_model("local_saliency")
        self.asked = []

    def models(self, draws, key):
        self.asked.append((draws, np.asarray(jax.random.key_data(key)).tolist()))
        return [named_model("local_saliency", xi=(5.0 * draw, 7.0 * draw)) for draw in range(1, draws + 1)]


def test_forced_fixations_are_flagged_in_everybodys_rows(tmp_path):
    """Those of ann have them, those of ben do not: the column is whole all the same, and is read back."""
    whole = example_data().data.select(observers=["ann", "ben"], pictures=["beach", "bridge"])
    table = whole.paths.to_table()
    table["forced"] = (table["observer"] == "ann") & table["fixation"].isin([1, 4])
    paths = ScanPaths.from_table(table, whole.paths.extent)
    maps = whole.maps.resample(Grid(8, 8, paths.extent))
    each = {who: Dataset(paths.select(observers=[who]), maps) for who in ("ann", "ben")}
    asked = {"seed": 1, "draws": 2, "observed_start": False}
    made = _simulated(each, {who: Fitted() for who in each}, asked, lambda *_: None)
    assert made["forced"].dtype == bool
    expected = (made["observer"] == "ann") & made["fixation"].isin([1, 4])
    np.testing.assert_array_equal(made["forced"], expected)
    made.to_csv(tmp_path / "simulated.csv", index=False)
    named = {"position_unit": "deg", "x": "x_deg", "y": "y_deg", "trial": "trial", "forced": "forced"}
    read, _ = read_table(tmp_path / "simulated.csv", frame=paths.extent, **named)
    assert read.forced.sum() == expected.sum() == 2 * table["forced"].sum()


def simulated(fitted: Fitted, paths=None, seed: int = 1, observed_start: bool = False):
    """What the command does with an observer's data: its table."""
    data = example_data().data.select(observers=["ann"], pictures=["beach", "bridge"])
    paths = data.paths if paths is None else paths
    small = data.maps.select(paths.pictures).resample(Grid(8, 8, paths.extent))
    data = Dataset(paths, small)
    asked = {"seed": seed, "draws": 3, "observed_start": observed_start}
    return _simulated({"ann": data}, {"ann": fitted}, asked, lambda *_: None)


def test_every_draw_has_a_model_and_randomness_of_its_own(monkeypatch):
    fitted, used = Fitted(), []

    def spied(models, *arguments, **settings):
        used.append(models["ann"].parameters["xi"])
        return simulate_paths(models, *arguments, **settings)

    monkeypatch.setattr("foveate.simulation.simulate.simulate", spied)
    table = simulated(fitted)
    np.testing.assert_array_equal(used, [[5.0, 7.0], [10.0, 14.0], [15.0, 21.0]])
    assert [draws for draws, _ in fitted.asked] == [3]
    # The first two fixations come from the map whatever the model is, and differ all the same.
    starts = [part["x_deg"].to_numpy() for _, part in table[table["fixation"] <= 2].groupby("draw")]
    assert not any(np.array_equal(starts[one], starts[other]) for one, other in ((0, 1), (1, 2), (0, 2)))
    other = Fitted()
    simulated(other, seed=2)
    assert other.asked[0][1] != fitted.asked[0][1]


def test_trials_of_one_picture_stay_apart_in_every_draw():
    table = example_data().data.paths.select(observers=["ann"], pictures=["beach"]).to_table()
    twice = pd.concat([table, table.assign(trial=2)], ignore_index=True)
    made = simulated(Fitted(), ScanPaths.from_table(twice, Extent(24.0, 32.0)))
    assert sorted(set(made["trial"])) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert not made.duplicated(["observer", "picture", "trial", "fixation"]).any()
    assert sorted(set(simulated(Fitted())["trial"])) == [1, 2, 3]


def test_paths_too_short_for_an_observed_start_are_left_out():
    table = example_data().data.paths.select(observers=["ann"], pictures=["beach", "bridge"]).to_table()
    short = table[(table["picture"] != "beach") | (table["fixation"] == 1)]
    paths = ScanPaths.from_table(short, Extent(24.0, 32.0))
    assert set(simulated(Fitted(), paths, observed_start=True)["picture"]) == {"bridge"}
    assert set(simulated(Fitted(), paths)["picture"]) == {"beach", "bridge"}


def test_fits_that_have_not_converged_are_named(fits, tmp_path, foveate_command, monkeypatch):
    from foveate.inference.posterior import Posterior

    monkeypatch.setattr(Posterior, "converged", property(lambda it: it.observer != "ben"))
    options = ("--data", "example", "--draws", 1)
    _, said, _ = foveate_command("simulate", fits, *options, "--out", tmp_path / "one", "--json")
    assert json.loads(said)["not_converged"] == ["ben"]
    _, said, _ = foveate_command("simulate", fits, *options, "--out", tmp_path / "two")
    assert "NOT CONVERGED: the fits of ben; their paths are in the table." in said
