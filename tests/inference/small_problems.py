"""Posteriors over two numbers that can be integrated by brute force, one with a single mode and one with two."""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, final

import jax
import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.special import logsumexp

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.inference.mixture import Mixture
from foveate.inference.target import Target, log_densities
from foveate.model.catalogue import full, local_saliency
from foveate.model.choices import FixedChoice, SaliencyRatioChoice
from foveate.model.history import Array, History, Picture
from foveate.model.model import Model
from foveate.model.policies import Policy, StaticSaliency, log_gaussian
from foveate.model.priors import Beta, InverseGamma, Normal
from foveate.simulation.simulate import simulate

GRID = Grid(24, 24, Extent(18.0, 24.0))
PICTURES = ("beach", "tower", "wood")

# Of a comparison with the brute-force answer; with a fixed key it is either raised or not.
FALSE_ALARM = 1e-4


@final
class Near(Policy):
    """Gaze stays within a degree or two; without parameters, so that a model's choice is all there is to find."""

    traced: ClassVar[list[str]] = []  # grows whenever a function with this policy inside is compiled

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        self.traced.append("again")
        return log_gaussian(picture, history.gaze, np.array([1.0, 2.0]))


def _target(truth: Model, fitted: Model, fixations: int, seed: int) -> Target:
    rng = np.random.default_rng(7)
    weights = {picture: rng.gamma(4.0, size=GRID.shape) for picture in PICTURES}
    maps = SaliencyMaps.from_arrays(weights, GRID.extent, normalise=True)
    return Target.of(fitted, Dataset(simulate(truth, maps, fixations, jax.random.key(seed)), maps))


@cache
def one_mode() -> Target:
    """Local Saliency, whose posterior over log xi (row, column) is skewed: a few steps on a small picture."""
    model = local_saliency(xi=(6.0, 14.0)).with_priors({"xi": InverseGamma(1.5, 20.0)})
    return _target(model, model, 8, 3)


@cache
def two_modes(seed: int = 5) -> Target:
    """b and s0 of a choice that seldom falls on the near policy: -b s0 is well known, the sign of b is not."""
    policies = Near(), StaticSaliency()
    truth = Model(policies, FixedChoice(0.12), {"rho": Beta(1.0, 1.0)}, "truth")
    priors = {"b": Normal(0.0, 0.25), "s0": Normal(1.0, 16.0)}
    return _target(truth, Model(policies, SaliencyRatioChoice(0.3, 6.0), priors, "near or salient"), 18, seed)


@cache
def six_numbers() -> Target:
    """The full model."""
    model = full(epsilon=(1.0, 2.0), xi=(12.0, 25.0), b=0.5, s0=2.0)
    return _target(model, model, 14, 9)


@dataclass(frozen=True, eq=False)
class Answer:
    """What sums over a fine grid say."""

    log_evidence: float
    points: Float[np.ndarray, "point 2"]
    weight: Float[np.ndarray, " point"]  # sum one

    def mean(self, values: Float[np.ndarray, "point ..."]) -> np.ndarray:
        return np.tensordot(self.weight, values, axes=1)

    def within(self, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of a part of the posterior."""
        weight = self.weight[chosen] / self.weight[chosen].sum()
        middle = weight @ self.points[chosen]
        away = self.points[chosen] - middle
        return middle, away.T @ (away * weight[:, None])


def _integrated(target: Target, first: np.ndarray, second: np.ndarray) -> Answer:
    points = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2)
    heights = log_densities(target, points)
    edge = (np.isin(points[:, 0], first[[0, -1]])) | (np.isin(points[:, 1], second[[0, -1]]))
    log_sum = logsumexp(heights)
    assert np.exp(logsumexp(heights[edge]) - log_sum) < 1e-6, "the grid cuts off a part of the posterior"
    area = (first[1] - first[0]) * (second[1] - second[0])
    return Answer(float(log_sum + np.log(area)), points, np.exp(heights - log_sum))


@cache
def one_mode_answer() -> Answer:
    return _integrated(one_mode(), np.linspace(-1.0, 8.0, 61), np.linspace(-1.0, 8.0, 61))


@cache
def two_modes_answer() -> Answer:
    return _integrated(two_modes(), np.linspace(-2.6, 2.6, 105), np.linspace(-19.0, 21.0, 101))


def both_modes(share_of_positive: float) -> Mixture:
    """A component on each side of b = 0, as wide as the posterior is there."""
    answer = two_modes_answer()
    positive = answer.points[:, 0] > 0
    (up, up_spread), (down, down_spread) = answer.within(positive), answer.within(~positive)
    share = np.array([share_of_positive, 1 - share_of_positive])
    return Mixture.of(share, np.stack([up, down]), np.stack([up_spread, down_spread]), 5.0)


def surprise(values: Float[np.ndarray, "chain draw"], expected: float, batches: int = 10) -> float:
    """Two-sided p-value of a mean that is expected, from means of batches: correlated draws count as what they are."""
    count = values.shape[1] // batches * batches
    means = values[:, :count].reshape(len(values) * batches, -1).mean(axis=1)
    if means.std() == 0:
        return float(np.isclose(means[0], expected))
    return float(stats.ttest_1samp(means, expected).pvalue)
