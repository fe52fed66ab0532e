"""Stand-ins for observers whose likelihoods are known in closed form, and what sums over a grid say of them."""

import numpy as np
from scipy.special import logsumexp

from foveate.inference.quadratic import LOG_SPREAD_WIDTH, Hyperprior


class Gaussian:
    """Observer i's log-likelihood is -(theta - y_i)' P_i (theta - y_i) / 2."""

    threads = 1

    def __init__(self, y: np.ndarray, precision: np.ndarray):
        self.y, self.precision = y, precision
        self.observers, self.numbers = y.shape

    def one(self, observer: int, vector: np.ndarray) -> tuple[float, np.ndarray]:
        away = vector - self.y[observer]
        return float(-0.5 * away @ self.precision[observer] @ away), -self.precision[observer] @ away

    def __call__(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [[self.one(observer, at) for observer, at in enumerate(row)] for row in vectors]
        return np.array([[v for v, _ in row] for row in found]), np.array([[s for _, s in row] for row in found])


class Counts:
    """Observer i counted k_i events at a rate of e^theta: skewed, far from a parabola where k is small."""

    threads, numbers = 1, 1

    def __init__(self, counts: np.ndarray):
        self.counts, self.observers = np.asarray(counts, dtype=np.float64), len(counts)

    def one(self, observer: int, vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self(np.broadcast_to(vector, (1, self.observers, 1)))
        return float(value[0, observer]), slope[0, observer]

    def __call__(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = vectors[..., 0]
        with np.errstate(over="ignore"):
            rate = np.exp(theta)
        return self.counts * theta - rate, (self.counts - rate)[..., None]


def gaussian_observers(observers: int, numbers: int, seed: int) -> tuple[Gaussian, Hyperprior]:
    """Precisions that differ by orders of magnitude between observers and directions."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(observers, numbers, numbers))
    precision = np.einsum("oij,okj->oik", factor, factor) * np.exp(2 * rng.normal(size=(observers, 1, 1)))
    y = rng.normal(size=numbers) + rng.normal(size=(observers, numbers)) * np.linspace(0.6, 0.1, numbers)
    return Gaussian(y, precision), Hyperprior(
        np.linspace(0.5, -0.5, numbers), np.full(numbers, 2.0), np.log(np.full(numbers, 0.5))
    )


def summed(likelihoods, hyper: Hyperprior) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of m, log tau and every theta, for one number: sums over fine grids."""
    m = hyper.centre[0] + hyper.width[0] * np.linspace(-4, 4, 161)
    s = hyper.log_spread[0] + LOG_SPREAD_WIDTH * np.linspace(-4.5, 4, 121)
    theta = np.linspace(-9, 9, 1201)
    own = np.stack([[likelihoods.one(at, np.array([x]))[0] for x in theta] for at in range(likelihoods.observers)])
    log_normal = -0.5 * ((theta - m[:, None, None]) * np.exp(-s[:, None])) ** 2 - s[:, None]  # (m, s, theta)
    marginal = np.stack([logsumexp(log_normal + it, axis=2) for it in own])  # (observer, m, s)
    joint = marginal.sum(axis=0) - 0.5 * ((m - hyper.centre[0]) / hyper.width[0])[:, None] ** 2
    joint = joint - 0.5 * ((s - hyper.log_spread[0]) / LOG_SPREAD_WIDTH) ** 2
    weight = np.exp(joint - logsumexp(joint))
    found = {"mean": _moments(m, weight.sum(axis=1)), "log_spread": _moments(s, weight.sum(axis=0))}
    for place, it in enumerate(own):
        given = np.exp(log_normal + it - marginal[place][..., None])
        found[f"theta {place}"] = _moments(theta, np.einsum("ms,mst->t", weight, given))
    return found


def _moments(points: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    mean = weight @ points / weight.sum()
    return float(mean), float(np.sqrt(weight @ (points - mean) ** 2 / weight.sum()))
