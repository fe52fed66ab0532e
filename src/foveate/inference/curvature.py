"""Tops of a posterior, and its shape around them: climbs, and Hessians by differences of the gradient.

These are plans (`plans.py`): they ask for densities, and whoever carries them out answers for one target or for many.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.inference.ascent import ascend
from foveate.inference.draws import prior_draws
from foveate.inference.plans import Ask, Plan, side_by_side
from foveate.inference.target import Target
from foveate.precision import double_precision

PRIOR_DRAWS = 512  # that tell how wide the prior is
WIDEST_UNIT = 1.0  # on the real line: heavy-tailed priors tell nothing about the posterior
QUARTILES_APART = 1.349  # of a standard Gaussian

# Differences are taken over a third of a standard deviation: wide enough that the noise of a gradient in single
# precision is drowned, narrow enough that the top still looks like a parabola. Where the first guess was further off
# than `FURTHEST_STEP` standard deviations, it is taken again.
FIRST_STEP, STEP, FURTHEST_STEP, TRIALS = 0.1, 0.3, 0.5, 3
LEAST_FIRST_STEP = 0.01  # of the prior's spread

# No direction is taken to be wider than this many of the prior's standard deviations. On a ridge, at a kink or on a
# shoulder the Hessian has eigenvalues near zero or below it.
WIDEST = 2.0

# Tops that are lower than the best by more than this are no use; two ends of climbs that one parabola joins within a
# nat are one top. On a cheaper density, which may be off by some nats, more are kept.
KEPT_NATS, SAME_NATS, MOST_TOPS = 15.0, 1.0, 4
ROUGHLY_KEPT_NATS = 25.0

# A top is level enough where the next step promises less than this.
LEVEL_NATS, MOST_LIFTS = 0.01, 12


@dataclass(frozen=True, eq=False)
class Top:
    """A local maximum of a posterior density, and the covariance of the Gaussian that touches it."""

    vector: Float[np.ndarray, " number"]
    log_density: float
    covariance: Float[np.ndarray, "number number"]
    widened: int  # directions in which the Hessian was no help, and `WIDEST` took its place

    @property
    def log_mass(self) -> float:
        """Laplace's approximation of the log of the integral around the top."""
        return self.log_density + 0.5 * float(np.linalg.slogdet(2 * np.pi * self.covariance)[1])

    def nats_below(self, vector: Float[np.ndarray, " number"]) -> float:
        """How far below the top a vector lies on the parabola that touches it."""
        away = vector - self.vector
        return 0.5 * float(away @ np.linalg.solve(self.covariance, away))


@double_precision
def prior_spread(target: Target, key: PRNGKeyArray) -> Float[np.ndarray, " number"]:
    """How wide the prior is in every number, on the real line: a standard deviation, from quartiles."""
    low, high = np.quantile(prior_draws(target, key, PRIOR_DRAWS), [0.25, 0.75], axis=0)
    return np.minimum((high - low) / QUARTILES_APART, WIDEST_UNIT)


def hessian(
    top: Float[np.ndarray, " number"],
    spread: Float[np.ndarray, " number"],
    rough: bool = False,
    covariance: Float[np.ndarray, "number number"] | None = None,
) -> Plan[tuple[Float[np.ndarray, "number number"], int]]:
    """Minus the second derivatives of the log posterior density at a vector, and the gradients that it took.

    Central differences; `spread`, or a rough `covariance` that a climb has found, sets the first steps. A column whose
    step was too long for what it found is worked out again.
    """
    size = len(top)
    found, step, spent = np.zeros((size, size)), FIRST_STEP * spread, 0
    if covariance is not None:
        alone = 1 / np.sqrt(np.abs(np.diag(np.linalg.pinv(covariance))))  # each number's deviation given the others
        step = np.clip(STEP * alone, LEAST_FIRST_STEP * spread, FIRST_STEP * spread)
    columns = np.arange(size)
    for _ in range(TRIALS):
        moved = np.zeros((2, len(columns), size))
        moved[:, np.arange(len(columns)), columns] = np.stack([step[columns], -step[columns]])
        slopes = (yield Ask((top + moved).reshape(-1, size), slopes=True, rough=rough)).slopes.reshape(2, -1, size)
        found[columns] = (slopes[1] - slopes[0]) / (2 * step[columns, None])
        spent += 2 * len(columns)
        deviation = 1 / np.sqrt(np.maximum(np.diag(found), np.square(1 / (WIDEST * spread))))
        columns = np.nonzero(step > FURTHEST_STEP * deviation)[0]
        step[columns] = STEP * deviation[columns]
        if not len(columns):
            break
    return 0.5 * (found + found.T), spent


def as_covariance(
    second: Float[np.ndarray, "number number"], spread: Float[np.ndarray, " number"]
) -> tuple[Float[np.ndarray, "number number"], int]:
    """The inverse of a Hessian with directions widened at most to `WIDEST` spreads, and how many of them were."""
    values, directions = np.linalg.eigh(np.where(np.isfinite(second), second, 0.0) * np.outer(spread, spread))
    least = 1 / WIDEST**2
    across = spread[:, None] * directions
    return (across / np.maximum(values, least)) @ across.T, int((values < least).sum())


def find_tops(
    starts: Float[np.ndarray, "start number"], spread: Float[np.ndarray, " number"], most: int
) -> Plan[tuple[list[Top], list[float], int]]:
    """Distinct tops that climbs from `starts` end at, the highest first; where each climb ended; evaluations spent.

    Most of the way, and the curvature, are on a cheaper density much like the target (`Target.coarsened`); a few steps
    by that curvature then lead to the target's own top.
    """
    first = yield from ascend(starts[0], spread, most, rough=True)
    shape = first.covariance if np.isfinite(first.value) else None  # much the same wherever climbs of a target end
    others = [ascend(start, spread, most, rough=True, covariance=shape) for start in starts[1:]]
    climbed = sorted([first, *(yield from side_by_side(others))], key=lambda it: -it.value)
    spent = sum(it.evaluations for it in climbed)
    below: list[Top] = []
    lifted: list[Top] = []
    for end in climbed:
        known = any(top.nats_below(end.vector) < SAME_NATS for top in below)
        low = not np.isfinite(end.value) or end.value < climbed[0].value - ROUGHLY_KEPT_NATS
        if known or low or len(below) == MOST_TOPS:
            continue
        second, gradients = yield from hessian(end.vector, spread, rough=True, covariance=end.covariance)
        below.append(Top(end.vector, end.value, *as_covariance(second, spread)))
        found, gradients_there = yield from _lifted(below[-1])
        spent += gradients + gradients_there
        lifted.append(found)
    ends = (yield Ask(np.stack([it.vector for it in climbed]))).values
    tops: list[Top] = []
    for top in sorted((it for it in lifted if np.isfinite(it.log_density)), key=lambda it: -it.log_density):
        known = any(other.nats_below(top.vector) < SAME_NATS for other in tops)
        if not known and top.log_density >= (tops or [top])[0].log_density - KEPT_NATS:
            tops.append(top)
    return tops, sorted(map(float, ends), reverse=True), spent + len(ends)


def _lifted(top: Top) -> Plan[tuple[Top, int]]:
    """The top of the target near that of a density much like it, by Newton's steps with the curvature of the latter;
    and the gradients that it took."""
    (value,), (slope,) = yield Ask(top.vector[None], slopes=True)
    best, step, spent = (top.vector, value, slope), 1.0, 1
    while spent < MOST_LIFTS and np.isfinite(best[1]):
        ahead = step * (top.covariance @ best[2])
        if 0.5 * step * float(best[2] @ top.covariance @ best[2]) < LEVEL_NATS:
            break
        (value,), (slope,) = yield Ask((best[0] + ahead)[None], slopes=True)
        spent += 1
        if value > best[1]:
            best, step = (best[0] + ahead, value, slope), min(1.0, 2 * step)
        else:
            step /= 2
    return Top(best[0], float(best[1]), top.covariance, top.widened), spent


def near_starts(
    target: Target, key: PRNGKeyArray, count: int, spread: Float[np.ndarray, " number"], away: float
) -> Float[np.ndarray, "start number"]:
    """The model's present values, and others around them: Gaussian, `away` of the prior's spread from it."""
    with jax.enable_x64(True):
        present = np.asarray(target.model.to_real())
        steps = np.asarray(jax.random.normal(key, (count, len(present))))
    return present + away * spread * steps * (np.arange(count) > 0)[:, None]
