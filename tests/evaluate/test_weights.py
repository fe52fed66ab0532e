"""Weights of models: optima that others find too, and intervals that know of observers and pictures."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from foveate.errors import InputError
from foveate.evaluate.paired import StepScores
from foveate.evaluate.weights import pseudo_bma, stacking

KEY = jax.random.key(11)
OBSERVERS, PICTURES, STEPS = 8, 6, 10


def table_of(log_density: dict[str, np.ndarray]) -> pd.DataFrame:
    observer, picture, step = (it.ravel() for it in np.indices((OBSERVERS, PICTURES, STEPS)))
    keys = {"observer": observer, "picture": picture, "fixation": step + 3}
    return pd.concat(
        [pd.DataFrame({"model": name} | keys | {"value": it.ravel()}) for name, it in log_density.items()],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Three densities on three cells; the truth is 0.5 of the first, 0.3 of the second and 0.2 of the third."""
    rng = np.random.default_rng(1)
    models = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    cell = rng.choice(3, size=(OBSERVERS, PICTURES, STEPS), p=np.array([0.5, 0.3, 0.2]) @ models)
    return table_of({name: np.log(own[cell]) for name, own in zip("abc", models, strict=True)})


def test_stacking_finds_the_optimum_that_another_optimiser_finds(table):
    values = StepScores.of(table).values

    def loss(free: np.ndarray) -> float:
        return -logsumexp(values + np.log(np.maximum(softmax(free), 1e-300))[:, None], axis=0).mean()

    expected = softmax(minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-14}).x)
    found = stacking(table, KEY, unit="nats", draws=100).weights.set_index("model")["weight"]
    assert found[list("abc")].to_numpy() == pytest.approx(expected, abs=1e-4)
    assert found.sum() == pytest.approx(1.0)


def test_stacking_recovers_the_mixture_that_made_the_data(table):
    found = stacking(table, KEY, unit="nats", draws=100)
    weights = found.weights.set_index("model")
    for model, truth in zip("abc", (0.5, 0.3, 0.2), strict=True):
        # 480 steps and weights that are known to about 0.05: beyond four of those, one false alarm in 10,000
        assert abs(weights.loc[model, "weight"] - truth) < 0.2
        assert weights.loc[model, "low"] < weights.loc[model, "weight"] < weights.loc[model, "high"]
    assert found.best == "a"
    assert found.gain.interval(0.95)[0] > 0


def test_a_model_that_is_better_everywhere_gets_all_the_weight(table):
    values = StepScores.of(table).values[0].reshape(OBSERVERS, PICTURES, STEPS)
    found = stacking(table_of({"worse": values - 0.5, "better": values}), KEY, unit="nats", draws=100)
    assert found.weights["model"].tolist() == ["better", "worse"]
    assert found.weights["weight"].tolist() == pytest.approx([1, 0], abs=1e-6)
    assert found.gain.mean == pytest.approx(0, abs=1e-6)


def test_units_and_constants_of_steps_change_no_weight(table):
    first = stacking(table, KEY, unit="nats", draws=100).weights
    shift = np.random.default_rng(2).normal(size=OBSERVERS * PICTURES * STEPS) * 300  # far below what exp can hold
    bits = table.assign(value=(table["value"] + np.tile(shift, 3)) / np.log(2))
    pd.testing.assert_frame_equal(stacking(bits, KEY, unit="bits", draws=100).weights, first, rtol=1e-6)
    found = stacking(bits, KEY, unit="nats", draws=100).weights
    assert np.abs(found["weight"] - first["weight"]).max() > 0.01  # the unit does matter


def test_weights_are_as_uncertain_as_observers_make_them():
    """Half of the observers follow one model, half the other: the weight is known as well as a share of 8 is."""
    rng = np.random.default_rng(3)
    side = np.where(np.arange(OBSERVERS) % 2, 1.0, -1.0)[:, None, None]
    values = side + 0.1 * rng.normal(size=(OBSERVERS, PICTURES, STEPS))
    weights = stacking(table_of({"one": values, "two": -values}), KEY, unit="nats").weights
    width = (weights["high"] - weights["low"]).max()
    # Weights flat on the simplex of 8 observers: the mass of 4 is Beta(4, 4), 95 % of which is 0.63 wide; the mixture
    # stretches it. Were all 480 steps independent it would be 0.1.
    assert 0.5 < width <= 1.0


def test_pseudo_bma_is_the_mean_of_softmax_of_bootstrapped_elpd(table):
    scores = StepScores.of(table)
    found = pseudo_bma(table, KEY, unit="nats").set_index("model").loc[list("abc")]
    assert found["elpd_nats"].to_numpy() == pytest.approx(scores.values.sum(axis=1))
    best = found["elpd_nats"].max()
    assert found["difference_nats"].to_numpy() == pytest.approx(found["elpd_nats"] - best)
    assert found["difference_error_nats"].min() == 0
    # by hand, with other random numbers: 3000 draws of a weight between 0 and 1 give its mean to 0.01
    rng = np.random.default_rng(4)
    sums = scores.values.reshape(3, OBSERVERS, PICTURES, STEPS).sum(axis=3)
    weights = []
    for _ in range(3000):
        path = np.outer(rng.dirichlet(np.ones(OBSERVERS)), rng.dirichlet(np.ones(PICTURES)))
        weights.append(softmax(480 * (sums * path).sum(axis=(1, 2)) / (10 * path.sum())))
    assert found["weight"].to_numpy() == pytest.approx(np.mean(weights, axis=0), abs=0.04)


def test_pseudo_bma_does_not_take_a_chance_difference_for_certain():
    """Two models that differ by noise alone, by some nats in all: plain exp(elpd) weights would be near 0 and 1."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=(OBSERVERS, PICTURES, STEPS))
    other = values + rng.normal(size=values.shape)
    found = pseudo_bma(table_of({"one": values, "two": other}), KEY, unit="nats")
    assert abs(found["difference_nats"]).max() > 5
    assert found["weight"].max() < 0.97
    assert (found["low"] <= found["weight"]).all()
    assert (found["weight"] <= found["high"]).all()


def test_a_single_observer_has_weights_too(table):
    alone = table[table["observer"] == 0]
    for weights in (stacking(alone, KEY, unit="nats", draws=100).weights, pseudo_bma(alone, KEY, unit="nats")):
        assert weights["weight"].sum() == pytest.approx(1.0)
        assert (weights["high"] > weights["low"]).all()


def test_mistakes_are_named(table, unchecked_types):
    for call, message in (
        (lambda: stacking(table, KEY, unit="bans"), "say 'nats' or 'bits'"),
        (lambda: stacking(table, 7, unit="nats"), "randomness needs a JAX key"),
        (lambda: stacking(table, KEY, unit="nats", draws=3), "draws = 3"),
        (lambda: pseudo_bma(table, KEY, unit="nats", level=0), "level = 0"),
        (lambda: pseudo_bma(table.iloc[1:], KEY, unit="nats"), "model a has no score there"),
    ):
        with pytest.raises(InputError, match=message):
            call()
