"""Forced fixations, wherever fixations are counted: they condition, and nothing is scored on them."""

import jax
import numpy as np
import pandas as pd
import pytest

from foveate.data.dataset import Dataset
from foveate.data.density import choose_bandwidth, density_maps
from foveate.data.grid import Extent, Grid
from foveate.data.joining import join_paths
from foveate.data.readers.table import read_table
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.baselines import centre_bias_maps
from foveate.evaluate.distances import map_agreement
from foveate.evaluate.roc import shuffled_cells
from foveate.evaluate.saccades import Saccades
from foveate.evaluate.scores import score_steps
from foveate.inference.fit import fit, fit_each
from foveate.model.catalogue import named_model
from foveate.report.steps import step_numbers
from foveate.simulation.simulate import simulate

EXTENT = Extent(12.0, 16.0, "top")
GRID = Grid(6, 8, EXTENT)
LENGTH = 6


def table() -> pd.DataFrame:
    """Two observers on three pictures; the third and the fifth fixation of ann's paths are forced, and every first."""
    rng = np.random.default_rng(4)
    rows = [(who, what, number) for who in ("ann", "ben") for what in "abc" for number in range(1, LENGTH + 1)]
    made = pd.DataFrame(rows, columns=["observer", "picture", "fixation"])
    made["x_deg"], made["y_deg"] = rng.uniform(0, 16, len(made)), rng.uniform(0, 12, len(made))
    made["forced"] = (made["fixation"] == 1) | ((made["observer"] == "ann") & made["fixation"].isin([3, 5]))
    return made


@pytest.fixture(scope="module")
def paths() -> ScanPaths:
    return ScanPaths.from_table(table(), EXTENT)


@pytest.fixture(scope="module")
def data(paths) -> Dataset:
    weights = {picture: 1 + np.random.default_rng(5).random(GRID.shape) for picture in "abc"}
    return Dataset(paths, SaliencyMaps.from_arrays(weights, EXTENT, normalise=True))


def without(paths: ScanPaths) -> ScanPaths:
    """The same fixations as if all of them had been chosen."""
    return ScanPaths.from_table(paths.to_table().drop(columns="forced"), EXTENT)


def test_flags_are_read_in_every_way_that_they_are_written():
    for yes, no in ((True, False), (1, 0), ("TRUE", "FALSE"), (1.0, 0.0), ("t", "f")):
        written = table().assign(forced=[yes if it else no for it in table()["forced"]])
        read = ScanPaths.from_table(written, EXTENT)
        assert read.columns["forced"].dtype == bool
        np.testing.assert_array_equal(read.forced[read.real], table()["forced"])
    with pytest.raises(InputError, match=r"row 2: forced is '2', but a flag must be 0 or 1"):
        ScanPaths.from_table(table().assign(forced=np.arange(len(table())) + 1), EXTENT)


def test_scored_are_all_but_the_given_and_the_forced(paths):
    assert paths.scored(2)[0].tolist() == [False, False, False, True, False, True]
    assert paths.scored(2)[3].tolist() == [False, False, True, True, True, True]
    assert paths.scored(0).sum() == len(table()) - table()["forced"].sum()
    assert not without(paths).forced.any()


def test_a_table_says_which_column_flags_forced_fixations(paths):
    named = {"frame": EXTENT, "position_unit": "deg", "x": "x_deg", "y": "y_deg"}
    written = table().rename(columns={"forced": "fix_cross"})
    read, report = read_table(written, forced="fix_cross", **named)
    np.testing.assert_array_equal(read.forced, paths.forced)
    assert report.renamed == {}
    assert "12 forced: they condition, and are not scored." in str(report)
    # A column that nobody named means nothing, whatever it is called, and the report says so.
    read, report = read_table(table(), **named)
    assert not read.forced.any()
    assert report.renamed == {"forced": "forced_read"}
    with pytest.raises(InputError, match=r"the table, row 3: fix_cross is 'maybe', but a flag"):
        read_table(written.assign(fix_cross=["0", "1", "maybe"] * 12), forced="fix_cross", **named)


def test_joined_paths_know_their_forced_fixations(paths):
    some = [paths.select(observers=[who]) for who in ("ann", "ben")]
    np.testing.assert_array_equal(join_paths(some).forced, paths.forced)
    mixed = join_paths([some[0], without(some[1])])
    assert mixed.forced.sum() == some[0].forced.sum()
    assert join_paths([without(paths)]).columns == {}


def test_maps_are_made_of_chosen_fixations(paths):
    chosen = ScanPaths.from_table(table().query("not forced"), EXTENT)
    for make in (
        lambda it: density_maps(it, GRID, 1.0).values,
        lambda it: centre_bias_maps(it, GRID, bandwidth_deg=1.0).values,
        lambda it: choose_bandwidth(it, GRID, [1.0, 2.0]).held_out_nats,
    ):
        np.testing.assert_array_equal(make(paths), make(chosen))
        assert not np.array_equal(make(without(paths)), make(chosen))
    all_of_a = table().assign(forced=table()["picture"] == "a")
    with pytest.raises(InputError, match="picture 'a': all fixations on it are forced"):
        density_maps(ScanPaths.from_table(all_of_a, EXTENT), GRID, 1.0)


def test_saccades_to_forced_fixations_are_nobodys(paths):
    saccades, every = Saccades.of(paths), Saccades.of(without(paths))
    assert saccades.count == every.count - 6  # the first fixation of a path has no saccade that leads to it
    kept = saccades.real
    np.testing.assert_array_equal(saccades.amplitude_deg[kept], every.amplitude_deg[kept])
    assert np.isnan(saccades.amplitude_deg[0, [1, 3]]).all()


def test_simulated_paths_are_counted_as_the_recorded_ones_that_they_imitate(data):
    made = simulate(named_model("saliency_baseline"), data.maps, data.paths, jax.random.key(1))
    np.testing.assert_array_equal(Saccades.of(made).real, Saccades.of(data.paths).real)
    assert Saccades.of(made, skip=1).count == Saccades.of(data.paths, skip=1).count == 3 * 2 + 3 * 4
    pairs = Saccades.of(data.paths)
    np.testing.assert_array_equal(Saccades.of(made).stretch, pairs.stretch)
    chosen = ScanPaths.from_table(made.to_table().query("not forced").drop(columns="forced"), EXTENT)
    np.testing.assert_array_equal(density_maps(made, GRID, 1.0).values, density_maps(chosen, GRID, 1.0).values)
    joined = join_paths([made, made])
    assert joined.forced.sum() == 2 * data.paths.forced.sum()


def test_the_density_of_simulated_fixations_is_of_those_that_count(data):
    made = simulate(named_model("saliency_baseline"), data.maps, data.paths, jax.random.key(1))
    found = map_agreement([made], data.maps, bandwidth_deg=1.0)
    assert found["fixations"].tolist() == [2 + 4] * 3
    later = made.to_table().query("fixation > 2 and not forced").drop(columns="forced")
    alone = map_agreement([ScanPaths.from_table(later, EXTENT)], data.maps, bandwidth_deg=1.0, start=0)
    np.testing.assert_array_equal(found, alone)
    # A picture without any is not in the table, as one that nobody looked at for long enough; none at all is an error.
    flags = made.to_table()
    of_a = flags.assign(forced=flags["forced"] | (flags["picture"] == "a"))
    assert map_agreement([ScanPaths.from_table(of_a, EXTENT)], data.maps).index.tolist() == ["b", "c"]
    with pytest.raises(InputError, match="after the first 2 are forced"):
        map_agreement([ScanPaths.from_table(flags.assign(forced=True), EXTENT)], data.maps)


def test_every_score_has_the_same_steps(data):
    steps = 3 * 2 + 3 * 4
    model = named_model("saliency_baseline")
    scores = score_steps(model, data, np.zeros((1, 0)))
    assert len(scores) == steps
    assert set(scores.labels["fixation"][scores.labels["observer"] == "ann"]) == {4, 6}
    assert shuffled_cells(data, jax.random.key(1), repeats=2).shape == (steps, 2)
    probability, surprise = step_numbers(model, np.zeros((1, 0)), data)
    scored = data.paths.scored(2)[data.paths.real]
    np.testing.assert_array_equal(np.isfinite(surprise), scored)
    np.testing.assert_array_equal(np.isfinite(probability[:, 0]), scored)
    np.testing.assert_allclose(-surprise[scored] * np.log(2), scores.predictive["log_probability_nats"], rtol=1e-12)


def test_cells_of_other_pictures_are_those_of_chosen_fixations(data):
    """Negatives of the shuffled AUC, all of them drawn from scored fixations."""
    drawn = set(shuffled_cells(data, jax.random.key(1), repeats=400).ravel().tolist())
    path, fixation = np.nonzero(data.paths.scored(2))
    row, column = GRID.cell_of(data.paths.y_deg[path, fixation], data.paths.x_deg[path, fixation])
    assert drawn == set((row * GRID.columns + column).tolist())


def test_too_few_chosen_fixations_are_refused_before_anything_is_fitted(data):
    few = data.select(observers=["ann"], pictures=["a", "b"])  # eight fixations from the third on, four of them forced
    words = r"observer ann: 4 steps \(fixations from the third on\) to fit the 6 numbers"
    with pytest.raises(InputError, match=words):
        fit(named_model("full"), few, jax.random.key(1))
    with pytest.raises(InputError, match=words):
        next(iter(fit_each(named_model("full"), few, jax.random.key(1))))
