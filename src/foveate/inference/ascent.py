"""A climb as a plan (`plans.py`): to a nearby top of a posterior density by BFGS, one gradient at a time.

`climb.py` has SciPy's climbs, which call their function and so cannot wait for others. Here the inverse Hessian is held
whole (there are dozens of numbers, not thousands), and the line search looks for a weak Wolfe point by doubling and
halving, which needs no smoothness: densities have kinks (Lewis and Overton, 2013).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from foveate.inference.climb import FURTHEST
from foveate.inference.plans import Ask, Plan

# Of a step: what it shall gain of what the slope promises, and how much less steep it gets.
ENOUGH, LEVELLED = 1e-4, 0.9
MOST_TRIALS = 14  # of a line search
FIRST_LENGTH = 1.0  # of the first step, in units: the slope may be huge
LEVEL_NATS = 1e-4  # a climb ends when a step gains less, twice in a row


class Ascent(NamedTuple):
    """Where a climb ended, the log-density there, the gradients that it took, and what it learnt of the curvature."""

    vector: Float[np.ndarray, " number"]
    value: float
    evaluations: int
    covariance: Float[np.ndarray, "number number"]  # the inverse Hessian, roughly


def ascend(
    start: Float[np.ndarray, " number"],
    unit: Float[np.ndarray, " number"],
    most: int,
    rough: bool = False,
    covariance: Float[np.ndarray, "number number"] | None = None,
) -> Plan[Ascent]:
    """A climb from `start` of at most so many steps; `unit` has the length of an ordinary step in every number.

    `covariance` is an inverse Hessian to begin with, such as that of another climb of the same target.
    """
    place = np.clip(start, -FURTHEST, FURTHEST) / unit
    value, slope = yield from _at(place, unit, rough)
    squared_units = np.outer(unit, unit)
    spent, level, inverse = 1, 0, np.eye(len(unit)) if covariance is None else covariance / squared_units
    if not np.isfinite(value):
        return Ascent(place * unit, -np.inf, spent, inverse * squared_units)
    for turn in range(most):
        ahead = inverse @ slope
        promised = float(ahead @ slope)
        if not promised > 0:
            inverse, ahead, promised = np.eye(len(unit)), slope, float(slope @ slope)
        if promised < LEVEL_NATS**2:
            break
        unknown = turn == 0 and covariance is None
        step = min(1.0, FIRST_LENGTH / float(np.linalg.norm(ahead))) if unknown else 1.0
        found = yield from _searched(place, value, ahead, promised, step, unit, rough)
        if found is None:
            break
        there, there_value, there_slope, trials = found
        spent += trials
        moved, changed = there - place, slope - there_slope
        curved = float(moved @ changed)
        if curved > 0:
            if unknown:
                inverse *= curved / float(changed @ changed)
            inverse = _updated(inverse, moved, changed, curved)
        level = level + 1 if there_value - value < LEVEL_NATS else 0
        place, value, slope = there, there_value, there_slope
        if level == 2:
            break
    if not np.all(np.isfinite(inverse)):  # others begin with it
        inverse = np.eye(len(unit))
    return Ascent(np.clip(place * unit, -FURTHEST, FURTHEST), value, spent, inverse * squared_units)


def _at(place: np.ndarray, unit: np.ndarray, rough: bool) -> Plan[tuple[float, np.ndarray]]:
    """Value and slope at a place; beyond the bounds the value falls off, and slopes lead back."""
    inside = np.clip(place * unit, -FURTHEST, FURTHEST)
    beyond = place * unit - inside
    (value,), (slope,) = yield Ask(inside[None], slopes=True, rough=rough)
    return float(value) - float(np.sum(np.square(beyond))), (slope - 2 * beyond) * unit


def _searched(
    place: np.ndarray, value: float, ahead: np.ndarray, promised: float, step: float, unit: np.ndarray, rough: bool
) -> Plan[tuple[np.ndarray, float, np.ndarray, int] | None]:
    """(Place, value, slope, trials) of a step along `ahead` that gains enough, the best one met if none levels off."""
    short, long, best = 0.0, np.inf, None
    trials = 0
    while trials < MOST_TRIALS:
        there = place + step * ahead
        there_value, there_slope = yield from _at(there, unit, rough)
        trials += 1
        sound = np.isfinite(there_value) and np.all(np.isfinite(there_slope))
        if not sound or there_value < value + ENOUGH * step * promised:
            long = step
        else:
            if best is None or there_value > best[1]:
                best = there, there_value, there_slope
            if there_slope @ ahead <= LEVELLED * promised:
                break
            short = step
        step = 2 * step if np.isinf(long) else (short + long) / 2
    return None if best is None else (*best, trials)


def _updated(inverse: np.ndarray, moved: np.ndarray, changed: np.ndarray, curved: float) -> np.ndarray:
    """The inverse Hessian that explains the last step too."""
    onto = inverse @ changed
    by = (1 + float(changed @ onto) / curved) / curved
    crossed = np.outer(onto, moved) / curved
    return inverse + by * np.outer(moved, moved) - crossed - crossed.T
