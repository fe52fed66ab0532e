"""Importance sampling, NUTS and Gibbs give the same posterior: nearly everything is tested at once.

Means and standard deviations of every number are compared within Monte Carlo error, inside each mode of some mass
(Gibbs chains hardly leave one: observer 2 has three modes of epsilon on one side of b). What counts as inside is one
rule for all samplers: where a Gaussian fitted to that mode has more density than those of the others. Errors: of
importance sampling from its weights, of chains from their effective sample size. Keys are fixed; the false-alarm rate
is 1e-4 a comparison of two samplers in a mode.
"""

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from arviz_stats.base.array import array_stats
from scipy import stats

from foveate.data.readers.potsdam35 import read_potsdam35
from foveate.example import example_data
from foveate.inference.gibbs import gibbs
from foveate.inference.importance import importance
from foveate.inference.nuts import nuts
from foveate.inference.proposal import learn_proposal
from foveate.inference.samples import Samples, silent
from foveate.inference.target import Target
from foveate.model.catalogue import named_model

pytestmark = pytest.mark.slow

FALSE_ALARM = 1e-4

# Gibbs chains crawl in epsilon. With too few effective draws their error is itself a guess: with 4 x 5,000 sweeps
# Local Choice, observer 20, came out 5 standard errors off in one moment, with 4 x 30,000 within 2.1 in all. So chains
# get longer until every moment has this many effective draws.
SWEEPS = 5_000, 30_000, 90_000
FEWEST_EFFECTIVE = 60
LEAST_MASS = 0.1  # of a mode that is looked into
MODELS = ("full", "local_choice", "fixed_choice")


def data_of(source: str, folder):
    if source == "example":
        return example_data().data.select(observers=["cleo"])
    return read_potsdam35(folder).select(observers=[int(source)])


@dataclass(frozen=True)
class Region:
    """Where the Gaussian of one mode, times its mass, exceeds those of the other modes."""

    number: int
    mass: np.ndarray
    mean: list[np.ndarray]
    covariance: list[np.ndarray]

    @classmethod
    def of_mode(cls, number: int, samples: Samples) -> "Region":
        real, log_weight, modes = samples.weighted.real, samples.weighted.log_weight, samples.modes
        weight, parts = np.exp(log_weight - log_weight.max()), []
        for mode in range(len(modes.mass)):
            mine = modes.label == mode
            mean = np.average(real[mine], axis=0, weights=weight[mine])
            parts.append((mean, np.cov(real[mine].T, aweights=weight[mine]) + 1e-4 * np.eye(len(mean))))
        return cls(number, modes.mass, *zip(*parts, strict=True))

    def holds(self, real: np.ndarray) -> np.ndarray:
        each = [
            np.log(mass) + stats.multivariate_normal(mean, covariance).logpdf(real)
            for mass, mean, covariance in zip(self.mass, self.mean, self.covariance, strict=True)
        ]
        return np.argmax(each, axis=0) == self.number


def inside(samples: Samples, region: Region) -> np.ndarray:
    """Weights of the draws: those of importance sampling, or ones; zero outside the region."""
    if samples.weighted is not None:
        weight = np.exp(samples.weighted.log_weight - samples.weighted.log_weight.max())
        return weight * region.holds(samples.weighted.real)
    return region.holds(samples.real).astype(float)


@dataclass(frozen=True)
class Moments:
    """Means of every number and of its square around a centre, their Monte Carlo errors and effective draws."""

    mean: np.ndarray
    error: np.ndarray
    effective: np.ndarray

    @classmethod
    def of(cls, samples: Samples, region: Region, centre: np.ndarray) -> "Moments":
        real = samples.weighted.real if samples.weighted is not None else samples.real
        weight = inside(samples, region)
        values = np.concatenate([real - centre, (real - centre) ** 2], axis=-1)
        share = weight / weight.sum()
        mean = np.einsum("cd,cdn->n", share, values)
        variance = np.einsum("cd,cdn->n", share, (values - mean) ** 2)
        if samples.weighted is not None:
            error = np.sqrt(np.einsum("cd,cdn->n", share**2, (values - mean) ** 2))
            return cls(mean, error, variance / error**2)
        # A draw outside the mode counts as the mean: chains keep their order and so their autocorrelation.
        held = np.where(weight[..., None] > 0, values, mean)
        effective = array_stats.ess(held, chain_axis=0, draw_axis=1, method="mean") * (weight > 0).mean()
        return cls(mean, np.sqrt(variance / effective), effective)


def surprise(one: Moments, other: Moments) -> float:
    """The smallest p-value of all moments, times their number."""
    assert min(one.effective.min(), other.effective.min()) >= FEWEST_EFFECTIVE
    distance = np.abs(one.mean - other.mean) / np.hypot(one.error, other.error)
    return float(2 * stats.norm.sf(distance.max()) * len(distance))


@pytest.mark.parametrize("source", ["example", "2", "20"])
@pytest.mark.parametrize("name", MODELS)
def test_three_samplers_give_the_same_posterior(name, source, request):
    folder = None if source == "example" else request.getfixturevalue("potsdam35_folder")
    target = Target.of(named_model(name), data_of(source, folder))
    keys = jax.random.split(jax.random.key(3), 4)
    by_weights = importance(target, keys[0])
    mixture = learn_proposal(target, keys[1], silent).mixture
    by_nuts = nuts(target, keys[2], mixture=mixture, draws=1500)
    for number in np.nonzero(by_weights.modes.mass >= LEAST_MASS)[0]:
        region = Region.of_mode(number, by_weights)
        # Gibbs chains start in the mode, at draws of another sampler: how long they take to get there is not what is
        # tested.
        starts = by_weights.real.reshape(-1, target.size)
        starts = starts[region.holds(starts)]
        centre = starts.mean(axis=0)
        expected = Moments.of(by_weights, region, centre)
        assert surprise(expected, Moments.of(by_nuts, region, centre)) > FALSE_ALARM
        for sweeps in SWEEPS:
            by_gibbs = gibbs(target, keys[3], starts=starts[:: len(starts) // 4][:4], warmup=1000, draws=sweeps)
            found = Moments.of(by_gibbs, region, centre)
            if found.effective.min() >= FEWEST_EFFECTIVE:
                break
        assert surprise(expected, found) > FALSE_ALARM
    if name != "fixed_choice":  # and the modes have the same mass
        column = target.model.labels.index("b")
        weight = np.exp(by_weights.weighted.log_weight - by_weights.weighted.log_weight.max())
        positive = float((weight * (by_weights.weighted.real[..., column] > 0)).sum() / weight.sum())
        share = (by_nuts.real[..., column] > 0).astype(float)
        worth = array_stats.ess(share, chain_axis=0, draw_axis=1, method="mean") if 0 < share.mean() < 1 else 1e9
        assert abs(share.mean() - positive) < 4.5 * np.sqrt(0.25 / worth) + 0.01
