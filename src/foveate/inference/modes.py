"""Modes of a posterior: regions that a walk can only leave through a valley, and the mass in each.

The density of real observers is rough, so every component of a mixture has small tops of its own. Two components belong
to one mode if the density on the straight line between their best draws nowhere falls far below both; components are
joined through others too, so a curved ridge is one mode.

A mass is the mean over draws of whether they lie in the mode. How uncertain that is depends on how draws hang together,
so every sampler names the error of its own: `error_of_independent`, `error_of_chains` or `error_of_replicates`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float, Int

from foveate.inference.mixture import Mixture
from foveate.inference.target import GROUP, Target, log_densities

# A valley separates two modes if it is this much lower than the lower of their tops: a chain then crosses it
# less than once in a hundred steps.
VALLEY_NATS = 4.0
POINTS = 15  # on the line between two tops
UNSURE_NATS = 2.5  # as near to the limit as this, a valley is looked at again with exact densities
SMALLEST_MASS = 1e-3  # components with less are no mode of their own


@dataclass(frozen=True, eq=False)
class Modes:
    """The modes of a posterior, the largest first; draws in components too small to tell belong to none (-1)."""

    top: Float[np.ndarray, "mode number"]  # the best draw of each, on the real line
    log_density: Float[np.ndarray, " mode"]  # of the posterior there, up to the evidence
    mass: Float[np.ndarray, " mode"]
    mass_error: Float[np.ndarray, " mode"]  # Monte Carlo standard error
    label: Int[np.ndarray, "replicate draw"]  # mode of every draw that it was worked out from
    evaluations: int


# Monte Carlo standard error of a mode's mass: from whether each draw lies in it, and the draws' weights (sum one).
MassError = Callable[[Float[np.ndarray, "replicate draw"], Float[np.ndarray, "replicate draw"]], float]


def error_of_independent(
    inside: Float[np.ndarray, "replicate draw"], weight: Float[np.ndarray, "replicate draw"]
) -> float:
    """For independent draws with weights: that of a ratio of two means, sqrt(sum w^2 (inside - mass)^2)."""
    return float(np.sqrt(np.sum(np.square(weight * (inside - np.sum(weight * inside))))))


def error_of_chains(inside: Float[np.ndarray, "chain draw"], weight: Float[np.ndarray, "chain draw"]) -> float:
    """For equally weighted draws of chains: a chain stays in a mode for a while, so only effective draws count."""
    mass = inside.mean()
    return float(np.sqrt(mass * (1 - mass) / array_stats.ess(inside, chain_axis=0, draw_axis=1, method="mean")))


def error_of_replicates(
    inside: Float[np.ndarray, "replicate particle"], weight: Float[np.ndarray, "replicate particle"]
) -> float:
    """For equally weighted particles of independent replicates: from the spread of the replicates' masses.

    Particles descend from common ancestors and share what moves them. Their order is no time, so that no
    autocorrelation tells; only replicates do. These are few, and may agree by luck: the error is not put below that of
    as many independent draws.
    """
    by_spread = inside.mean(axis=1).std(ddof=1) / np.sqrt(len(inside))
    return max(float(by_spread), error_of_independent(inside, weight))


def find_modes(
    target: Target,
    real: Float[np.ndarray, "replicate draw number"],
    log_weight: Float[np.ndarray, "replicate draw"],
    log_density: Float[np.ndarray, "replicate draw"],
    mixture: Mixture,
    error_of_mass: MassError,
) -> Modes:
    """The modes among weighted draws with these posterior densities.

    `mixture` is one that covers the draws, without a component that reaches over several modes.
    """
    vectors, flat, heights = real.reshape(-1, real.shape[-1]), log_weight.ravel(), log_density.ravel()
    weight = np.exp(flat - np.logaddexp.reduce(flat))
    component = (mixture.component_log_densities(vectors) + np.log(mixture.share)).argmax(axis=1)
    counts = np.bincount(component, weights=weight, minlength=len(mixture.share))
    kept = np.nonzero(counts >= SMALLEST_MASS)[0]
    kept = kept[np.argsort(-counts[kept])]
    candidates = [np.nonzero(component == k)[0] for k in kept]
    tops = np.array([mine[np.argmax(heights[mine])] for mine in candidates])
    values, evaluations = heights[tops], 0
    family = np.arange(len(kept))
    along = np.linspace(0, 1, POINTS + 2)[1:-1, None]
    distance = np.sqrt(np.square((vectors[tops][:, None] - vectors[tops][None]) / vectors.std(axis=0)).sum(axis=2))
    pairs = sorted((distance[i, j], i, j) for i in range(len(kept)) for j in range(i))
    rough = target.coarsened() if pairs else target  # most valleys are deep, or none, beyond its errors
    roughly = log_densities(rough, vectors[tops]) if pairs else values
    for _, i, j in pairs:
        if family[i] == family[j]:
            continue
        line = vectors[tops[i]] * (1 - along) + vectors[tops[j]] * along
        lowest, limit = log_densities(rough, line).min(), min(roughly[i], roughly[j]) - VALLEY_NATS
        evaluations += GROUP
        if abs(lowest - limit) < UNSURE_NATS:
            lowest, limit = log_densities(target, line).min(), min(values[i], values[j]) - VALLEY_NATS
            evaluations += GROUP
        if lowest > limit:
            family[family == family[i]] = family[j]
    label = np.full(len(vectors), -1)
    for place, k in enumerate(kept):
        label[component == k] = family[place]
    names, mass = np.unique(family), []
    for name in names:
        inside = (label == name).astype(float)
        error = error_of_mass(inside.reshape(log_weight.shape), weight.reshape(log_weight.shape))
        mass.append((float(weight @ inside), error))
    order = np.argsort([-share for share, _ in mass])
    best = [max(np.nonzero(family == names[o])[0], key=lambda place: values[place]) for o in order]
    renamed = {int(names[o]): rank for rank, o in enumerate(order)} | {-1: -1}
    return Modes(
        top=vectors[tops[best]],
        log_density=values[best],
        mass=np.array([mass[o][0] for o in order]),
        mass_error=np.array([mass[o][1] for o in order]),
        label=np.array([renamed[int(name)] for name in label]).reshape(log_weight.shape),
        evaluations=evaluations,
    )
