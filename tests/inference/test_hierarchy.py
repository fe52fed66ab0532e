"""Draws of a population and its observers together, against sums over grids."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from scipy import stats

from foveate.inference.hierarchy import Sampler
from foveate.inference.population import learnt
from foveate.inference.population_chains import Checkpoint, checkpoints
from foveate.inference.quadratic import Hyperprior
from inference.known_hierarchies import Counts, Gaussian, summed

# Of a whole comparison (all numbers, means and standard deviations); with a fixed key it is either raised or not.
FALSE_ALARM = 1e-3

HYPER = Hyperprior(np.array([0.5]), np.array([1.5]), np.log(np.array([0.5])))


def drawn(likelihoods, seed: int, spoil: float = 1.0, draws: int = 800, fixed: bool = False) -> Checkpoint:
    population = learnt(likelihoods, HYPER, [np.zeros((1, 1))] * likelihoods.observers, rounds=4)
    population = replace(population, hessians=spoil * population.hessians)
    sampler = Sampler(likelihoods, HYPER, population, fixed)
    return list(checkpoints(sampler, [seed], chains=4, warmup=120, draws=draws))[-1]


def disagreements(held: Checkpoint, expected: dict[str, tuple[float, float]]) -> dict[str, float]:
    """The p-values of means and standard deviations that are too small for chance, all comparisons together."""
    numbers = {"mean": held.draws["mean"][..., 0], "log_spread": held.draws["log_spread"][..., 0]}
    numbers |= {f"theta {place}": held.draws["theta"][:, :, place, 0] for place in range(held.draws["theta"].shape[2])}
    wrong = {}
    for name, (mean, sd) in expected.items():
        squares = (numbers[name] - mean) ** 2
        for what, values, truth in (("mean", numbers[name], mean), ("sd", squares, sd**2)):
            error = values.std() / np.sqrt(array_stats.ess(values, chain_axis=0, draw_axis=1, method="mean"))
            chance = 2 * stats.norm.sf(abs(values.mean() - truth) / error)
            if chance < FALSE_ALARM / (2 * len(expected)):
                wrong[f"{what} of {name}"] = float(chance)
    return wrong


@pytest.mark.parametrize("spoil", [1.0, 4.0, 0.25])
def test_draws_agree_with_sums_over_a_grid_however_wrong_the_parabolas_are(spoil):
    """Counts of none to many: skewed likelihoods, some without a top; parabolas four times too narrow or too wide."""
    likelihoods = Counts(np.array([0, 0, 1, 3, 9, 30]))
    held = drawn(likelihoods, 3, spoil)
    assert disagreements(held, summed(likelihoods, HYPER)) == {}


def test_draws_of_gaussian_observers_of_all_kinds_agree_with_sums_and_are_nearly_independent():
    """From one who says nothing to one who says all."""
    precision = np.array([0.0, 0.01, 0.5, 4.0, 100.0, 1e4])[:, None, None]
    likelihoods = Gaussian(np.array([[0.0], [3.0], [1.5], [0.2], [1.1], [0.7]]), precision)
    held = drawn(likelihoods, 4)
    assert disagreements(held, summed(likelihoods, HYPER)) == {}
    for name in ("mean", "log_spread"):
        effective = array_stats.ess(held.draws[name][..., 0], chain_axis=0, draw_axis=1, method="bulk")
        assert effective > 0.4 * held.draws[name][..., 0].size


def test_a_fixed_population_leaves_observers_their_own_posteriors():
    """Conjugate: N(0.2 of precision 4) and N(m, tau^2), with m and tau where they were."""
    likelihoods = Gaussian(np.array([[0.2], [2.0], [1.0]]), np.array([4.0, 1.0, 0.3])[:, None, None])
    held = drawn(likelihoods, 6, fixed=True)
    m, tau = held.draws["mean"][0, 0, 0], np.exp(held.draws["log_spread"][0, 0, 0])
    assert np.ptp(held.draws["mean"]) == 0
    whole = likelihoods.precision[:, 0, 0] + tau**-2
    mean = (likelihoods.precision[:, 0, 0] * likelihoods.y[:, 0] + m / tau**2) / whole
    expected = {f"theta {place}": (mean[place], whole[place] ** -0.5) for place in range(3)}
    assert disagreements(held, expected) == {}


def test_a_run_that_went_on_from_a_file_gives_the_same_draws():
    likelihoods = Counts(np.array([0, 2, 5]))
    population = learnt(likelihoods, HYPER, [np.zeros((1, 1))] * 3, rounds=2)
    sampler = Sampler(likelihoods, HYPER, population)
    settings: dict[str, Any] = {"chains": 2, "warmup": 40, "draws": 30}
    whole = list(checkpoints(sampler, [1], **settings))
    for stopped in (whole[1], whole[-2]):  # in the warm-up, and among the draws
        again = Checkpoint.of({name: np.array(value) for name, value in stopped.arrays().items()})
        last = list(checkpoints(sampler, [1], start=again, **settings))[-1]
        for name, values in whole[-1].draws.items():
            np.testing.assert_array_equal(last.draws[name], values)
