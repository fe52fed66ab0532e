"""A model scored on its own data: it gains what theory says, and nobody gains more.

Each step's log-probability, less its expectation (minus the entropy of the map before the step), is a martingale
difference: its mean is zero, with the error of independent terms. Scores are those that cross-validations report.
Keys are fixed; false-alarm rates are 1e-4 a comparison.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.evaluate.folds import random_folds
from foveate.evaluate.scores import score_posterior, score_steps
from foveate.example import example_data
from foveate.inference.fit import fit
from foveate.model import catalogue
from foveate.model.densities import step_densities
from foveate.model.model import Model
from foveate.model.steps import Steps
from foveate.simulation.simulate import simulate

FALSE_ALARM = 1e-4
EPSILON, XI = (2.0, 3.0), (20.0, 40.0)
TRUTHS = {
    "full": catalogue.full(epsilon=EPSILON, xi=XI, b=0.4, s0=2.0),
    "local_choice": catalogue.local_choice(epsilon=EPSILON, xi=XI, b=0.6, s0=2.0),
    "fixed_choice": catalogue.fixed_choice(epsilon=EPSILON, xi=XI, rho=0.5),
    "local_saliency": catalogue.local_saliency(xi=XI),
}


def own_data(truth: Model, fixations: int, key: int) -> Dataset:
    """Paths of one observer on the example's pictures."""
    maps = example_data().data.maps
    maps = maps.resample(Grid(24, 24, maps.grid.extent))
    return Dataset(simulate(truth, maps, fixations, jax.random.key(key)), maps)


def negative_entropy_nats(truth: Model, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the log-probability of every step's cell, given what came before."""
    steps = Steps.of(data, memory=truth.memory)
    found = []
    for real, maps in zip(np.asarray(steps.real), step_densities(truth, steps), strict=True):
        for density in np.asarray(maps)[real]:
            p = density[density > 0]
            mean = (p * np.log(p)).sum()
            found.append((mean, (p * np.log(p) ** 2).sum() - mean**2))
    return np.array(found).T


@pytest.mark.parametrize("name", ["full", *(pytest.param(it, marks=pytest.mark.slow) for it in TRUTHS if it != "full")])
def test_the_true_model_gains_what_the_entropy_says(name):
    truth = TRUTHS[name]
    data = own_data(truth, 120, key=11)
    scores = score_steps(truth, data, np.asarray(truth.to_real())[None]).predictive["log_probability_nats"]
    expected, variance = negative_entropy_nats(truth, data)
    surprise = (scores - expected).sum() / np.sqrt(variance.sum())
    assert abs(surprise) < stats.norm.isf(FALSE_ALARM / 2)
    assert variance.sum() / len(scores) < 4  # nats^2 a step: the check has teeth, a hundredth of a bit for 1,400 steps


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_on_its_own_held_out_data_a_model_is_beaten_by_no_rival(name):
    """Fitted to half of the pictures: as good as the truth but for what estimating costs, and better than rivals."""
    truth = TRUTHS[name]
    data = own_data(truth, 120, key=12)
    training, test = data.split(random_folds(data.paths.pictures, 2, seed=3).test_pictures[0])
    true_nats = score_steps(truth, test, np.asarray(truth.to_real())[None]).predictive["log_probability_nats"]
    expected, variance = negative_entropy_nats(truth, test)
    nats = {}
    for rival in ("saliency_baseline", *TRUTHS):
        model = catalogue.named_model(rival)
        if model.labels:
            posterior = fit(model, training, jax.random.key(13))
            nats[rival] = score_posterior(posterior, test).predictive["log_probability_nats"]
        else:
            nats[rival] = score_steps(model, test, np.zeros((1, 0))).predictive["log_probability_nats"]
    # Estimating k numbers from n steps costs about k / (2 n) nats a step; four times that is far out in its tail.
    lost = (true_nats - nats[name]).mean()
    assert lost < 4 * len(truth.labels) / len(true_nats)
    assert abs((nats[name] - expected).sum() / np.sqrt(variance.sum())) < stats.norm.isf(FALSE_ALARM / 2)
    for rival, theirs in nats.items():
        if rival == name:
            continue
        ahead = theirs - nats[name]
        # A richer model may be as good on data of a simpler one, within what estimating its numbers costs.
        error = ahead.std() / np.sqrt(len(ahead))
        assert ahead.mean() < stats.norm.isf(FALSE_ALARM) * error, rival
    assert nats[name].mean() > nats["saliency_baseline"].mean() + 0.05
