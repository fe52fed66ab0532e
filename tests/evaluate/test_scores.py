"""Scores agree with what they are by definition, on numbers that can be worked out by hand or by a slow oracle."""

from dataclasses import replace
from types import SimpleNamespace
from typing import final

import equinox as eqx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate import predictions
from foveate.evaluate.baselines import baseline_nats, centre_bias_maps
from foveate.evaluate.predictions import DrawScores, score_draws
from foveate.evaluate.scores import StepScores, bits_per_fixation, over_observers, score_posterior, score_steps
from foveate.inference.posterior import parameters_of
from foveate.model.catalogue import named_model
from foveate.model.choices import FixedChoice
from foveate.model.history import Array, History, Picture
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.model import Model
from foveate.model.policies import VARIANCES, Global, Local, Policy, as_float64, log_gaussian
from foveate.model.priors import Beta, LogNormal
from foveate.model.steps import Steps
from oracles import scores as oracle

ROWS, COLUMNS = 9, 7
EXTENT = Extent(18.0, 21.0)


def made_up(seed: int = 0) -> Dataset:
    """Two observers on three pictures, random fixations in paths of 4 to 25; one path too short to be scored."""
    rng = np.random.default_rng(seed)
    lengths = {("a", "x"): 25, ("a", "y"): 4, ("a", "z"): 9, ("b", "x"): 2, ("b", "y"): 12, ("b", "z"): 6}
    tables = [
        pd.DataFrame(
            {
                "observer": observer,
                "picture": picture,
                "fixation": np.arange(1, length + 1),
                "y_deg": rng.uniform(0, EXTENT.height_deg, length),
                "x_deg": rng.uniform(0, EXTENT.width_deg, length),
            }
        )
        for (observer, picture), length in lengths.items()
    ]
    maps = {name: rng.gamma(1.5, size=(ROWS, COLUMNS)) for name in "xyz"}
    paths = ScanPaths.from_table(pd.concat(tables), EXTENT)
    return Dataset(paths, SaliencyMaps.from_arrays(maps, EXTENT, normalise=True))


@final
class Ahead(Policy):
    """A policy that the package does not know: a Gaussian around a point ahead of the gaze."""

    zeta: Array = eqx.field(converter=as_float64, metadata=VARIANCES)

    def log_weight(self, history: History, picture: Picture):
        return log_gaussian(picture, history.gaze + 0.5 * history.last_saccade, self.zeta)


def own_model() -> Model:
    """Two policies, one of them not the package's."""
    priors = {"zeta": LogNormal(5.0, 1.0), "xi": LogNormal(30.0, 1.0), "rho": Beta(2.0, 2.0)}
    return Model((Ahead((6.0, 9.0)), Global((30.0, 40.0))), FixedChoice(0.3), priors, "own")


def local_model() -> Model:
    """The local policy alone with the map beside it."""
    priors = {"epsilon": LogNormal(5.0, 1.0), "xi": LogNormal(30.0, 1.0), "rho": Beta(2.0, 2.0)}
    return Model((Local((3.0, 5.0)), Global((30.0, 40.0))), FixedChoice(0.3), priors, "near")


MODELS = {
    "full": lambda: named_model("full"),
    "printed": lambda: named_model("full", repulsion="printed"),
    "local_choice": lambda: named_model("local_choice"),
    "local_saliency": lambda: named_model("local_saliency"),
    "saliency_baseline": lambda: named_model("saliency_baseline"),
    "near": local_model,
    "own": own_model,
}


def vectors_around(model: Model, count: int, seed: int = 1) -> np.ndarray:
    here = np.asarray(model.to_real())
    return here + 0.4 * np.random.default_rng(seed).standard_normal((count, len(here)))


def plain_maps(model: Model, data: Dataset, vectors: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """The density before every scored step under every draw, from the model's one definition; and the cells."""
    maps, cells, grid = [], [], data.maps.grid
    for vector in vectors:
        at = model.from_real(vector)
        of_draw, cells = [], []
        for path in data.paths:
            picture = Picture.whole(grid, data.maps[path.picture])
            for t in range(2, len(path)):
                history = History.of(picture, path.y_deg[:t], path.x_deg[:t])
                of_draw.append(np.exp(np.asarray(at.log_density(history, picture))))
                row, column = grid.cell_of(path.y_deg[t], path.x_deg[t])
                cells.append((int(row), int(column)))
        maps.append(of_draw)
    return np.array(maps), cells


def steps_on(values: list[list[float]], cells: list[tuple[int, int]]) -> Steps:
    """One path whose fixations lie in these cells of one map, a degree a cell."""
    array = np.array(values)
    extent = Extent(float(array.shape[0]), float(array.shape[1]))
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": np.arange(1, len(cells) + 1)})
    table["y_deg"], table["x_deg"] = (np.array(cells) + 0.5).T
    maps = SaliencyMaps(Grid(*array.shape, extent), (1,), array[None])
    return Steps.of(Dataset(ScanPaths.from_table(table, extent), maps), paths=2, steps=5)


def test_bits_are_the_gain_over_uniform_from_the_third_fixation_on():
    """Cells of 1/2 and 1/8 on a map of four: log2(1/2) + 2 = 1 and log2(1/8) + 2 = -1; the padding does not count."""
    steps = steps_on([[0.5, 0.125], [0.25, 0.125]], [(1, 0), (1, 1), (0, 0), (0, 0), (0, 1), (0, 0)])
    assert bits_per_fixation(named_model("saliency_baseline"), steps) == pytest.approx((1 + 1 - 1 + 1) / 4)


def test_a_flat_map_gains_nothing():
    steps = steps_on([[0.25, 0.25], [0.25, 0.25]], [(1, 0), (1, 1), (0, 0)])
    assert bits_per_fixation(named_model("saliency_baseline"), steps) == pytest.approx(0, abs=1e-12)


def test_mean_and_standard_error_over_observers():
    scores = np.array([1.0, 1.5, 3.0, 2.0])
    assert over_observers(scores) == pytest.approx((1.875, stats.sem(scores)))


def test_one_observer_has_no_standard_error():
    with pytest.raises(InputError, match="at least two"):
        over_observers(np.array([1.0]))


# --- every draw and step against the oracle --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [pytest.param(it, marks=() if it in ("full", "local_saliency", "own") else pytest.mark.slow) for it in MODELS],
)
def test_scores_of_every_draw_are_those_of_the_plain_maps(name):
    model, data = MODELS[name](), made_up()
    vectors = vectors_around(model, 3)
    steps = Steps.of(data, memory=model.memory, short="skip")
    asked = np.random.default_rng(2).integers(0, ROWS * COLUMNS, (steps.count, 4))
    found = score_draws(model, steps, vectors, asked)
    maps, cells = plain_maps(model, data, vectors)
    mean = maps.mean(axis=0)
    for scores, expected in ((found.each, maps), (found.predictive, mean)):
        flat = expected.reshape(-1, *expected.shape[-2:])
        at = cells * (len(flat) // len(cells))
        shape = expected.shape[:-2]
        for values, function in ((scores.log_probability_nats, oracle.log_probability), (scores.nss, oracle.nss)):
            plain = [function(density, *cell) for density, cell in zip(flat, at, strict=True)]
            np.testing.assert_allclose(values, np.reshape(plain, shape), rtol=1e-9, atol=1e-9)
        plain = [oracle.auc(density, *cell) for density, cell in zip(flat, at, strict=True)]
        np.testing.assert_allclose(scores.auc, np.reshape(plain, shape), atol=1e-12)
        own = [density[cell] for density, cell in zip(flat, at, strict=True)]
        np.testing.assert_allclose(scores.density, np.reshape(own, shape), rtol=1e-9)
        other = np.stack([density.ravel()[places] for density, places in zip(flat, [*asked] * 3, strict=False)])
        np.testing.assert_allclose(scores.density_at, other.reshape(*shape, 4), rtol=1e-9)


def test_the_predictive_log_probability_is_the_log_of_the_mean_density():
    model, data = named_model("full"), made_up()
    found = score_draws(model, Steps.of(data, short="skip"), vectors_around(model, 5))
    np.testing.assert_allclose(found.predictive.log_probability_nats, np.log(found.each.density.mean(axis=0)))
    assert (found.predictive.log_probability_nats >= found.each.log_probability_nats.mean(axis=0)).all()


@pytest.mark.parametrize("count", [1, 2 * predictions.GROUP + 1])
def test_groups_of_draws_do_not_show(count):
    model, steps = named_model("full"), Steps.of(made_up(), short="skip")
    vectors = vectors_around(model, count)
    found = score_draws(model, steps, vectors)
    assert found.each.nss.shape == (count, steps.count)
    alone = score_draws(model, steps, vectors[-1:])
    np.testing.assert_allclose(found.each.nss[-1], alone.each.nss[0], rtol=1e-12)
    np.testing.assert_allclose(found.each.density.mean(axis=0), found.predictive.density, rtol=1e-12)


def test_log_probabilities_are_those_of_the_likelihood_and_draws_may_come_by_name():
    model, data = named_model("full"), made_up()
    vectors, steps = vectors_around(model, 4), Steps.of(data, short="skip")
    by_name = {name: value[0] for name, value in parameters_of(model, vectors[None]).items()}
    found, named = score_draws(model, steps, vectors), score_draws(model, steps, by_name)
    np.testing.assert_allclose(found.each.auc, named.each.auc)
    for vector, nats in zip(vectors, found.each.log_probability_nats, strict=True):
        likelihood = np.asarray(step_log_likelihoods(model.from_real(vector), steps))[np.asarray(steps.real)]
        np.testing.assert_allclose(nats, likelihood, rtol=1e-12)


def test_tiny_variances_keep_their_log_probability_where_the_density_is_zero():
    """In the map the fixated cell may be zero in double precision; its logarithm is an ordinary number all the same."""
    model, data = named_model("local_saliency", xi=(1e-3, 1e-3)), made_up()
    vectors, steps = np.asarray(model.to_real())[None], Steps.of(data, short="skip")
    everywhere = np.tile(np.arange(ROWS * COLUMNS), (steps.count, 1))
    found = score_draws(model, steps, vectors, everywhere)
    maps, _ = plain_maps(model, data, vectors)
    np.testing.assert_allclose(found.each.density_at, maps.reshape(1, steps.count, -1), rtol=1e-9, atol=1e-200)
    assert (found.each.density == 0).any()
    assert np.isfinite(found.each.log_probability_nats).all()
    assert np.isfinite(found.predictive.log_probability_nats).all()
    assert (found.each.auc[found.each.density == 0] <= 0.5).all()


def test_gaze_far_from_all_that_is_salient_is_worked_out_in_logarithms():
    """The inverse of the sum of weights is no number there, but the map is."""
    values = np.full((1, 40), 1e-320)
    values[0, -2:] = 0.6, 0.4
    steps = steps_on((values / values.sum()).tolist(), [(0, 0), (0, 1), (0, 38), (0, 39)])
    model = named_model("local_saliency", xi=(0.02, 0.02))
    found = score_draws(model, steps, np.asarray(model.to_real())[None], np.tile(np.arange(40), (2, 1)))
    assert np.isfinite(found.each.density_at).all()
    np.testing.assert_allclose(found.each.density_at.sum(axis=-1), 1, rtol=1e-9)


def test_a_flat_map_gives_auc_one_half_and_nss_zero():
    """No cell stands out: z-scores are 0 / 0, and zero is what every cell has."""
    steps = steps_on([[0.25, 0.25], [0.25, 0.25]], [(1, 0), (1, 1), (0, 0), (1, 0)])
    found = score_draws(named_model("saliency_baseline"), steps, np.zeros((3, 0)))
    for scores in (found.each, found.predictive):
        assert (scores.auc == 0.5).all()
        assert (scores.nss == 0).all()


def test_auc_and_nss_by_hand():
    """On 1/2, 1/8, 1/4, 1/8: the largest exceeds three and ties with itself, a smallest ties with two."""
    steps = steps_on([[0.5, 0.125], [0.25, 0.125]], [(1, 0), (1, 1), (0, 0), (0, 1)])
    found = score_draws(named_model("saliency_baseline"), steps, np.zeros((1, 0)))
    np.testing.assert_allclose(found.each.auc[0], [3.5 / 4, 1 / 4])
    deviation = np.std([0.5, 0.125, 0.25, 0.125])
    np.testing.assert_allclose(found.each.nss[0], [0.25 / deviation, -0.125 / deviation])


# --- baselines -------------------------------------------------------------------------------------------------------


def test_baselines_are_the_logs_of_their_densities():
    data = made_up()
    bias = centre_bias_maps(data.paths, data.maps.grid, bandwidth_deg=3.0)
    found = baseline_nats(data, bias)
    cells = [
        (path.picture, *(int(it) for it in data.maps.grid.cell_of(path.y_deg[t], path.x_deg[t])))
        for path in data.paths
        for t in range(2, len(path))
    ]
    np.testing.assert_allclose(found["static_map"], [np.log(data.maps[name][row, col]) for name, row, col in cells])
    np.testing.assert_allclose(found["centre_bias"], [np.log(bias[name][row, col]) for name, row, col in cells])
    np.testing.assert_allclose(found["uniform"], -np.log(ROWS * COLUMNS))


def test_the_centre_bias_of_a_picture_is_the_smoothed_fixations_on_the_others():
    data, grid = made_up(), Grid(ROWS, COLUMNS, EXTENT)
    fixations = [
        (path.picture, *(int(it) for it in grid.cell_of(y, x)))
        for path in data.paths
        for y, x in zip(path.y_deg, path.x_deg, strict=True)
    ]
    found = centre_bias_maps(data.paths, grid, bandwidth_deg=2.5, uniform_share=0.0)
    for picture in "xyz":
        expected = oracle.centre_bias(fixations, grid.shape, grid.cell_deg, 2.5, picture)
        np.testing.assert_allclose(found[picture], expected, rtol=1e-9)


def test_the_best_of_several_bandwidths_is_taken():
    data, grid = made_up(), Grid(ROWS, COLUMNS, EXTENT)
    chosen = centre_bias_maps(data.paths, grid, bandwidth_deg=(0.5, 2.0, 8.0))

    def nats(maps):
        return baseline_nats(data, maps)["centre_bias"].mean()

    each = [nats(centre_bias_maps(data.paths, grid, bandwidth_deg=it)) for it in (0.5, 2.0, 8.0)]
    assert nats(chosen) == pytest.approx(max(each))
    assert max(each) > min(each)


def test_the_map_alone_on_the_real_data(potsdam35):
    """Bits, NSS and AUC of the Saliency Baseline as they were measured before by other code."""
    scores = score_steps(named_model("saliency_baseline"), potsdam35, np.zeros((1, 0)))
    found = scores.mean_over_fixations()
    assert found["gain_over_uniform_bits"] == pytest.approx(0.905, abs=0.0005)
    assert found["nss"] == pytest.approx(1.40, abs=0.01)
    assert found["auc"] == pytest.approx(0.794, abs=0.0005)


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scored() -> tuple[StepScores, Dataset]:
    model, data = named_model("full"), made_up()
    bias = centre_bias_maps(data.paths, data.maps.grid)
    return score_steps(model, data, vectors_around(model, 3), centre_bias=bias), data


def test_the_table_has_a_row_for_every_scored_step_with_its_labels(scored):
    scores, data = scored
    table = scores.table()
    assert len(table) == len(scores) == Steps.of(data, short="skip").count
    assert table["fixation"].min() == 3
    assert set(zip(table["observer"], table["picture"], strict=True)) == {
        ("a", "x"), ("a", "y"), ("a", "z"), ("b", "y"), ("b", "z")
    }  # fmt: skip
    assert {"log_probability_nats", "predictive_nss", "auc", "static_map_nats", "centre_bias_nats"} <= set(table)
    assert repr(scores) == "StepScores(46 steps, 2 observers, 3 pictures, 3 draws)"


def test_what_is_shown_is_in_bits(scored):
    scores, _ = scored
    table, shown = scores.table(), scores.shown()
    for prefix in ("", "predictive_"):
        nats = table[f"{prefix}log_probability_nats"]
        np.testing.assert_allclose(shown[f"{prefix}gain_over_uniform_bits"], np.log2(np.exp(nats) * ROWS * COLUMNS))
        for name in ("static_map", "centre_bias"):
            gain = np.log2(np.exp(nats - table[f"{name}_nats"]))
            np.testing.assert_allclose(shown[f"{prefix}gain_over_{name}_bits"], gain)


def test_averages_by_fixation_and_by_picture(scored):
    scores, _ = scored
    table = scores.table()
    by_picture = {
        observer: np.mean([mine.loc[mine["picture"] == name, "nss"].mean() for name in mine["picture"].unique()])
        for observer, mine in ((it, table[table["observer"] == it]) for it in "ab")
    }
    assert scores.mean_over_fixations()["nss"] == pytest.approx(table["nss"].mean())
    assert scores.mean_over_pictures()["nss"] == pytest.approx(np.mean(list(by_picture.values())))
    assert scores.observers_over_pictures()["nss"].to_dict() == pytest.approx(by_picture)
    of_b = table.loc[table["observer"] == "b", "auc"].mean()
    assert scores.observers_over_fixations().loc["b", "auc"] == pytest.approx(of_b)
    of_y = table.loc[table["picture"] == "y", "predictive_auc"].mean()
    assert scores.pictures_over_fixations().loc["y", "predictive_auc"] == pytest.approx(of_y)


def test_parts_join_to_the_whole(scored):
    whole, data = scored
    model = named_model("full")
    bias = centre_bias_maps(data.paths, data.maps.grid)
    vectors = vectors_around(model, 3)
    parts = [score_steps(model, data.select(observers=[it]), vectors, centre_bias=bias) for it in "ab"]
    pd.testing.assert_frame_equal(StepScores.joined(parts).table(), whole.table())
    steps = [Steps.of(data.select(observers=[it]), short="skip") for it in "ab"]
    joined = DrawScores.joined([score_draws(model, it, vectors) for it in steps])
    np.testing.assert_allclose(joined.each.auc.mean(axis=0), whole.mean["auc"])


def test_a_fit_that_has_not_converged_says_so_in_its_scores(scored):
    good, _ = scored
    bad = replace(good, unconverged=("b",))
    assert "NOT CONVERGED: b" in repr(bad)
    assert bad.table().groupby("observer")["converged"].all().to_dict() == {"a": True, "b": False}
    assert "converged" not in good.table()
    assert "converged" not in bad.mean_over_fixations()
    pd.testing.assert_frame_equal(bad.observers_over_pictures(), good.observers_over_pictures())
    assert StepScores.joined([bad, good]).unconverged == ("b",)


@pytest.mark.usefixtures("unchecked_types")
def test_a_posterior_is_scored_by_draws_evenly_picked():
    data, model = made_up(), named_model("local_saliency")
    real = vectors_around(model, 12).reshape(2, 6, 2)
    posterior = SimpleNamespace(model=model, samples=SimpleNamespace(real=real), converged=False, observer="a")
    found = score_posterior(posterior, data, draws=4)  # pyright: ignore[reportArgumentType]
    expected = score_steps(model, data, real.reshape(12, 2)[[1, 4, 7, 10]])
    np.testing.assert_allclose(found.mean["nss"], expected.mean["nss"])
    assert found.unconverged == ("a",)
    with pytest.raises(InputError, match="draws = 0"):
        score_posterior(posterior, data, draws=0)  # pyright: ignore[reportArgumentType]


# --- what cannot be used -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("draws", "message"),
    [
        (np.zeros((3, 5)), r"draws of shape \(3, 5\): model 'full' has 6 numbers"),
        (np.zeros((0, 6)), "no draws given"),
        (np.full((2, 6), np.nan), "draw 0: epsilon_row has a value that it cannot have"),
        ({"epsilon": np.ones((2, 2))}, "parameters b, s0, xi do not match"),
        (
            {"epsilon": np.ones((2, 2)), "xi": np.ones((2, 2)), "b": np.ones(3), "s0": np.ones(2)},
            "parameters with 2, 3 draws",
        ),
        (
            {"epsilon": -np.ones((2, 2)), "xi": np.ones((2, 2)), "b": np.ones(2), "s0": np.ones(2)},
            "epsilon_row has a value",
        ),
        ({"epsilon": np.ones(2), "xi": np.ones((2, 2)), "b": np.ones(2), "s0": np.ones(2)}, "epsilon has shape"),
    ],
)
def test_draws_that_do_not_fit_are_refused(draws, message):
    with pytest.raises(InputError, match=message):
        score_draws(named_model("full"), Steps.of(made_up(), short="skip"), draws)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (np.zeros((3, 2), dtype=int), "46 steps, places"),
        (np.zeros((46, 2)), "whole numbers"),
        (np.full((46, 2), ROWS * COLUMNS), "cells 0 to 62"),
        (np.full((46, 2), -1), "cells 0 to 62"),
    ],
)
def test_cells_that_are_not_on_the_grid_are_refused(cells, message):
    model = named_model("full")
    with pytest.raises(InputError, match=message):
        score_draws(model, Steps.of(made_up(), short="skip"), vectors_around(model, 2), cells)


@pytest.mark.usefixtures("unchecked_types")
def test_what_does_not_belong_together_is_refused():
    data, model = made_up(), named_model("full")
    scores = score_draws(model, Steps.of(data, short="skip"), vectors_around(model, 2))
    with pytest.raises(InputError, match="the data that the scores were made from"):
        StepScores.of(scores, data.select(observers=["a"]))
    with pytest.raises(InputError, match="equally many draws"):
        DrawScores.joined([])
    with pytest.raises(InputError, match="no scores"):
        StepScores.joined([])
    with pytest.raises(InputError, match="give a Dataset"):
        score_steps(model, data.paths, vectors_around(model, 2))  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="two or more"):
        centre_bias_maps(data.paths.select(pictures=["x"]), data.maps.grid)
    with pytest.raises(InputError, match="same grid"):
        baseline_nats(data, centre_bias_maps(data.paths, Grid(5, 5, EXTENT)))
