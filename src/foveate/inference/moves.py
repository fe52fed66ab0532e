"""Hamiltonian moves in a known metric: chains that start inside the posterior and know its shape need few of them.

Where all directions are measured in their own standard deviations, three or four leaps of half of one lead far enough
for the next draw to have forgotten the last.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from foveate.inference.climb import values_and_gradients
from foveate.inference.samples import Progress, Report
from foveate.inference.target import Target

LEAPS = (2, 3, 4)  # of a trajectory, one of them at random: a fixed number may come back to where it started
JITTER = 0.2  # of the step, for the same reason
ACCEPTANCE, LEARNING = 0.8, 1.0  # wanted; how fast the step follows, less with every move


@dataclass(frozen=True, eq=False)
class Moved:
    """Draws of chains that ran side by side, with their log-densities and acceptance rates."""

    real: Float[np.ndarray, "chain draw number"]
    log_density: Float[np.ndarray, "chain draw"]
    acceptance: Float[np.ndarray, "chain draw"]
    step: float
    evaluations: int  # of gradients


def move(
    target: Target,
    starts: Float[np.ndarray, "chain number"],
    covariance: Float[np.ndarray, "number number"],
    rng: np.random.Generator,
    *,
    warmup: int,
    draws: int,
    report: Report,
) -> Moved:
    """Chains from `starts` by Hamiltonian moves whose metric is the inverse of `covariance`.

    The first `warmup` moves find the step, and are forgotten.
    """
    factor = np.linalg.cholesky(covariance)
    place = np.array(starts, dtype=np.float64)
    value, slope = values_and_gradients(target, place)
    log_step, evaluations, kept = np.log(1.2 * place.shape[1] ** -0.25), len(place), []
    for turn in range(warmup + draws):
        step = np.exp(log_step) * rng.uniform(1 - JITTER, 1 + JITTER)
        leaps = int(rng.choice(LEAPS))
        speed = rng.standard_normal(place.shape)
        energy = value - 0.5 * np.square(speed).sum(axis=1)
        there, there_value, there_slope = place, value, slope
        for _ in range(leaps):
            speed = speed + 0.5 * step * there_slope @ factor
            there = there + step * speed @ factor.T
            there_value, there_slope = values_and_gradients(target, there)
            speed = speed + 0.5 * step * there_slope @ factor
        evaluations += leaps * len(place)
        gained = there_value - 0.5 * np.square(speed).sum(axis=1) - energy
        gained = np.where(np.isfinite(gained), gained, -np.inf)
        acceptance = np.exp(np.minimum(gained, 0.0))
        taken = rng.random(len(place)) < acceptance
        place, slope = (np.where(taken[:, None], *it) for it in ((there, place), (there_slope, slope)))
        value = np.where(taken, there_value, value)
        if turn < warmup:
            log_step += LEARNING * (acceptance.mean() - ACCEPTANCE) / np.sqrt(turn + 1)
        else:
            kept.append((place, value, acceptance))
        report(Progress("moving", turn + 1, warmup + draws, {"acceptance": float(acceptance.mean())}))
    real, log_density, rates = (np.stack(part, axis=1) for part in zip(*kept, strict=True))
    return Moved(real, log_density, rates, float(np.exp(log_step)), evaluations)
