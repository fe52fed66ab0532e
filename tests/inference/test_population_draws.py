"""Weighted draws of observers given a population, against sums over a grid.

Keys are fixed; all comparisons of a test together would raise a false alarm for one key in ten thousand.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from foveate.inference.population import learnt
from foveate.inference.population_draws import observer_draws
from foveate.inference.quadratic import Hyperprior
from inference.known_hierarchies import Counts

FALSE_ALARM, DRAWS, COUNT = 1e-4, 400, 8000
HYPER = Hyperprior(np.array([0.5]), np.array([1.5]), np.log(np.array([0.5])))
COUNTS = np.array([0, 0, 1, 3, 9, 30])


@pytest.mark.parametrize("spoil", [1.0, 3.0, 0.5])
def test_draws_have_the_moments_of_each_observer_given_the_population(spoil):
    """Skewed likelihoods, some without a top; also where parabolas are too narrow or too wide."""
    likelihoods = Counts(COUNTS)
    known = learnt(likelihoods, HYPER, [np.zeros((1, 1))] * len(COUNTS), rounds=4)
    spoilt = replace(known, hessians=spoil * known.hessians)
    found, shapes = observer_draws(likelihoods, spoilt, np.random.default_rng(1), count=COUNT, draws=DRAWS)
    assert found.shape == (DRAWS, len(COUNTS), 1)
    assert np.max(shapes) < 0.7
    line = np.linspace(-9, 9, 6001)
    for observer, count in enumerate(COUNTS):
        log_density = count * line - np.exp(line) - 0.5 * np.square((line - known.mean[0]) / known.spread[0])
        weight = np.exp(log_density - log_density.max())
        expected = [weight @ (line**power) / weight.sum() for power in (1, 2, 3, 4)]
        for power in (1, 2):
            sd = np.sqrt((expected[2 * power - 1] - expected[power - 1] ** 2) / DRAWS)
            away = np.mean(found[:, observer, 0] ** power) - expected[power - 1]
            assert 2 * stats.norm.sf(abs(away) / sd) > FALSE_ALARM / (2 * len(COUNTS))
