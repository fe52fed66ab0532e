"""Importance sampling, NUTS and Gibbs give the same posterior: nearly everything is tested at once.

Means and standard deviations of every number are compared within Monte Carlo error, inside the largest mode (Gibbs
chains hardly leave it: observer 2 has three modes of epsilon on one side of b). What counts as inside is one rule for
all samplers: where a Gaussian fitted to that mode has more density than those of the others. Errors: of importance
sampling from its weights, of chains from their effective sample size. Keys are fixed; the false-alarm rate is 1e-4 a
comparison of two samplers.
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
# Local Choice, observer 20, came out 5 standard errors off in one moment, with 4 x 30,000 within 2.1 in all.
SWEEPS = {("local_choice", "20"): 30_000}
FEWEST_EFFECTIVE = 60
MODELS = ("full", "local_choice", "fixed_choice")


def data_of(source: str, folder):
    if source == "example":
        return example_data().data.select(observers=["cleo"])
    return read_potsdam35(folder).select(observers=[int(source)])


@dataclass(frozen=True)
class Region:
    """Where the Gaussian of the largest mode, times its mass, exceeds those of the other modes."""

    mass: np.ndarray
    mean: list[np.ndarray]
    covariance: list[np.ndarray]

    @classmethod
    def of_largest_mode(cls, samples: Samples) -> "Region":
        real, log_weight, modes = samples.weighted.real, samples.weighted.log_weight, samples.modes
        weight, parts = np.exp(log_weight - log_weight.max()), []
        for mode in range(len(modes.mass)):
            mine = modes.label == mode
            mean = np.average(real[mine], axis=0, weights=weight[mine])
            parts.append((mean, np.cov(real[mine].T, aweights=weight[mine]) + 1e-4 * np.eye(len(mean))))
        return cls(modes.mass, *zip(*parts, strict=True))

    def holds(self, real: np.ndarray) -> np.ndarray:
        each = [
            np.log(mass) + stats.multivariate_normal(mean, covariance).logpdf(real)
            for mass, mean, covariance in zip(self.mass, self.mean, self.covariance, strict=True)
        ]
        return np.argmax(each, axis=0) == 0


def inside(samples: Samples, region: Region) -> np.ndarray:
    """Weights of the draws: those of importance sampling, or ones; zero outside the region."""
    if samples.weighted is not None:
        weight = np.exp(samples.weighted.log_weight - samples.weighted.log_weight.max())
        return weight * region.holds(samples.weighted.real)
    return region.holds(samples.real).astype(float)


def moments(samples: Samples, region: Region, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of every number and of its square around `centre`, and their Monte Carlo errors."""
    real = samples.weighted.real if samples.weighted is not None else samples.real
    weight = inside(samples, region)
    values = np.concatenate([real - centre, (real - centre) ** 2], axis=-1)
    share = weight / weight.sum()
    mean = np.einsum("cd,cdn->n", share, values)
    if samples.weighted is not None:
        return mean, np.sqrt(np.einsum("cd,cdn->n", share**2, (values - mean) ** 2))
    variance = np.einsum("cd,cdn->n", share, (values - mean) ** 2)
    # A draw outside the mode counts as the mean: chains keep their order and so their autocorrelation.
    held = np.where(weight[..., None] > 0, values, mean)
    worth = array_stats.ess(held, chain_axis=0, draw_axis=1, method="mean") * (weight > 0).mean()
    assert worth.min() >= FEWEST_EFFECTIVE, f"{samples.sampler}: {worth.min():.0f} effective draws tell no error"
    return mean, np.sqrt(variance / worth)


def surprise(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """The smallest p-value of all moments, times their number."""
    distance = np.abs(one[0] - other[0]) / np.hypot(one[1], other[1])
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
    # Gibbs chains start in the largest mode, at draws of another sampler: how long they take to get there is not
    # what is tested.
    region = Region.of_largest_mode(by_weights)
    starts = by_weights.real.reshape(-1, target.size)
    starts = starts[region.holds(starts)]
    sweeps = SWEEPS.get((name, source), 5000)
    by_gibbs = gibbs(target, keys[3], starts=starts[:: len(starts) // 4][:4], warmup=1000, draws=sweeps)
    centre = starts.mean(axis=0)
    found = {
        kind: moments(samples, region, centre)
        for kind, samples in {"importance": by_weights, "nuts": by_nuts, "gibbs": by_gibbs}.items()
    }
    assert surprise(found["importance"], found["nuts"]) > FALSE_ALARM
    assert surprise(found["importance"], found["gibbs"]) > FALSE_ALARM
    if name != "fixed_choice":  # and the modes have the same mass
        column = target.model.labels.index("b")
        weight = np.exp(by_weights.weighted.log_weight - by_weights.weighted.log_weight.max())
        positive = float((weight * (by_weights.weighted.real[..., column] > 0)).sum() / weight.sum())
        share = (by_nuts.real[..., column] > 0).astype(float)
        worth = array_stats.ess(share, chain_axis=0, draw_axis=1, method="mean") if 0 < share.mean() < 1 else 1e9
        assert abs(share.mean() - positive) < 4.5 * np.sqrt(0.25 / worth) + 0.01
