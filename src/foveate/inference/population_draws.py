"""Weighted draws of every observer given a population: what predictions need, at a fraction of what chains cost.

Given (m, tau) observers are independent. At each top of an observer's likelihood times N(m, tau^2) its parabola gives a
Gaussian; draws from Student-t distributions of that shape are weighted by the density itself. The population stands
where it was learnt (empirical Bayes): what is not known of it is left out, which chains (`hierarchy.py`) put in.
"""

import numpy as np
from jaxtyping import Float

from foveate.errors import InputError
from foveate.inference.importance import pareto_k, resample
from foveate.inference.laplace import FREEDOM, smoothed_weights
from foveate.inference.likelihoods import Likelihoods, in_threads
from foveate.inference.mixture import Mixture
from foveate.inference.population import Population
from foveate.inference.quadratic import conditional
from foveate.precision import double_precision

WITHIN_NATS = 8.0  # lower tops have no part


@double_precision
def observer_draws(
    likelihoods: Likelihoods, population: Population, rng: np.random.Generator, *, count: int, draws: int
) -> tuple[Float[np.ndarray, "draw observer number"], Float[np.ndarray, " observer"]]:
    """So many draws of every observer's vector with equal weights, picked among `count` weighted ones; and the Pareto
    k-hat of the weights."""
    centres = np.asarray(conditional(population.quadratics, population.mean, np.log(population.spread))[0])
    proposals = [_proposal(population, observer, centre) for observer, centre in enumerate(centres)]
    vectors = [proposal.sample(count, rng) for proposal in proposals]
    places = [(observer, vector) for observer, own in enumerate(vectors) for vector in own]
    values = np.array([it[0] for it in in_threads(lambda at: likelihoods.one(*at), places, likelihoods.threads)])
    found, shapes = [], []
    for own, proposal, value in zip(vectors, proposals, values.reshape(-1, count), strict=True):
        away = (own - population.mean) / population.spread
        log_weight = value - 0.5 * np.square(away).sum(axis=1) - proposal.log_density(own)
        if not np.isfinite(log_weight).any():
            raise InputError(
                f"observer number {len(shapes) + 1}: no draw has a finite likelihood; sample by chains instead."
            )
        found.append(own[resample(smoothed_weights(log_weight[None])[0], draws, rng)])
        shapes.append(pareto_k(log_weight))
    return np.stack(found, axis=1), np.array(shapes)


def _proposal(population: Population, observer: int, centre: Float[np.ndarray, " number"]) -> Mixture:
    """A component at every top that matters, with the shape of the highest, which lies where its parabola has it given
    the population: that has moved since climbs ended there."""
    below = population.below_nats[observer]
    tops, near = population.tops[observer][below <= WITHIN_NATS], below[below <= WITHIN_NATS]
    precision = population.hessians[observer] + np.diag(population.spread**-2.0)
    covariance = np.linalg.inv(precision)
    tops = tops + (centre - population.tops[observer][0])
    return Mixture.of(np.exp(-near), tops, np.stack([covariance] * len(tops)), FREEDOM)
