"""What the warm-up of a hierarchical fit learns: step sizes, lengths of trajectories, and shapes.

Chains run side by side and learn together: every observer has one step size for all chains, the population another.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from foveate.inference.population import Population

TARGET_ACCEPTANCE = 0.8
QUARTER = np.pi / 2  # of a turn: a trajectory of this length leads to an independent draw of a standard normal
LEAPS, MOST_LEAPS = 3, 12  # while step sizes are learnt, and ever
LONGEST = QUARTER / 2  # step: a quarter turn in two leaps
ROUNDING = 0.25  # leaps: a trajectory may be this much short of a quarter turn
PRIOR_DRAWS = 10  # by which standard deviations of coordinates are drawn towards one

Each = np.ndarray | np.floating  # a number of each observer, or the population's


class Averaging(NamedTuple):
    """Nesterov's dual averaging of log step sizes, as in Stan."""

    log_step: Each
    average: Each
    error: Each
    centre: Each
    times: int  # it was updated

    @classmethod
    def begun(cls, step: Each) -> "Averaging":
        """At these step sizes."""
        log_step = np.log(step)
        return cls(log_step, log_step, np.zeros_like(log_step), log_step + np.log(2.0), 0)

    def next(self, acceptance: Each) -> "Averaging":
        """After a transition that was accepted with this probability; steps stay below the longest that is of use."""
        times = self.times + 1
        error = self.error + (TARGET_ACCEPTANCE - acceptance - self.error) / (times + 10)
        log_step = np.minimum(self.centre - np.sqrt(times) / 0.05 * error, np.log(LONGEST))
        weight = times**-0.75
        return Averaging(log_step, weight * log_step + (1 - weight) * self.average, error, self.centre, times)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Step sizes, trajectories and shapes: learnt in the warm-up, then fixed."""

    observers: Averaging  # one step size each
    population: Averaging
    scale: Float[np.ndarray, "observer number"]  # of u
    root: Float[np.ndarray, "twice twice"]  # (m, log tau) = its mean + root v, with v close to standard normal
    leaps: tuple[int, int] = (LEAPS, LEAPS)  # of observers and population
    seen: tuple[Float[np.ndarray, "chain all"], ...] = ()  # coordinates u and v of the window so far

    @classmethod
    def begun(cls, population: Population) -> "Tuning":
        """As the parabolas have it."""
        observers, numbers = population.modes.shape
        return cls(
            Averaging.begun(np.full(observers, QUARTER / LEAPS / 2)),
            Averaging.begun(np.asarray(QUARTER / LEAPS / 2)),
            np.ones((observers, numbers)),
            np.linalg.cholesky(population.covariance),
        )

    def settled(self) -> "Tuning":
        """With what was learnt: averages of step sizes, and as many leaps as make a quarter turn."""
        steps = np.exp(self.observers.average), np.exp(self.population.average)
        leaps = [int(np.clip(np.ceil(QUARTER / np.median(step) - ROUNDING), 1, MOST_LEAPS)) for step in steps]
        capped = [np.log(np.minimum(step, QUARTER / count)) for step, count in zip(steps, leaps, strict=True)]
        return replace(
            self,
            observers=self.observers._replace(log_step=capped[0]),
            population=self.population._replace(log_step=capped[1]),
            leaps=(leaps[0], leaps[1]),
            seen=(),
        )

    def taught(
        self,
        observers: Float[np.ndarray, "chain observer"],
        population: Float[np.ndarray, " chain"],
        coordinates: Float[np.ndarray, "chain all"],
        window_ends: bool,
    ) -> "Tuning":
        """With what an iteration taught: acceptances, and where chains are, in u and v; shapes change with a window."""
        tuning = replace(
            self,
            observers=self.observers.next(observers.mean(axis=0)),
            population=self.population.next(population.mean()),
            seen=(*self.seen, coordinates),
        )
        if not window_ends:
            return tuning
        seen = np.concatenate(tuning.seen[len(tuning.seen) // 3 :])
        weight = len(seen) / (len(seen) + PRIOR_DRAWS)
        spread = np.sqrt(weight * seen.var(axis=0) + (1 - weight))
        size = self.scale.size
        return replace(
            tuning,
            scale=self.scale * spread[:size].reshape(self.scale.shape),
            root=self.root * spread[size:],
            observers=Averaging.begun(np.exp(tuning.observers.average)),
            population=Averaging.begun(np.exp(tuning.population.average)),
            seen=(),
        )
