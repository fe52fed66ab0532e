"""Empirical Bayes: the population that observers' parameters come from, by climbs and parabolas.

On the real line observer i's vector is theta_i ~ N(m, diag(tau^2)). Of m_j the model's own prior is believed: a
Gaussian with that prior's mean and standard deviation s_j on the real line. Of tau_j: log tau_j ~ N(log(s_j / 3), 1).
A third is the median of a half-normal of scale s_j / 2; the log-normal keeps tau_j away from zero (a share of 2 % lies
below s_j / 25, where observers are alike for all that data can tell), so that logarithms stay in a range.

Climbs find the mode of each observer's likelihood times N(m, tau^2); parabolas there give the probability of all data
as a function of (m, tau) in closed form, whose top is the next (m, tau).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.optimize import minimize

from foveate.errors import InputError
from foveate.inference.climb import climb_against
from foveate.inference.draws import check_count, prior_draws
from foveate.inference.fit import observer_key
from foveate.inference.likelihoods import Likelihoods, TargetLikelihoods, in_threads
from foveate.inference.quadratic import Hyperprior, Quadratics, marginal_and_slope, marginal_hessian
from foveate.inference.samples import Progress, Report, silent
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target
from foveate.model.model import Model
from foveate.model.priors import LogNormal, Normal, Prior
from foveate.precision import check_key, double_precision
from foveate.threads import one_thread_each

TYPICAL_SPREAD = 1 / 3  # of the population, in prior standard deviations

# Second derivatives are slopes of the gradient between points this many conditional standard deviations apart, each
# way: wide enough that kinks of the likelihood even out.
REACH = 0.5

FIRST_ITERATIONS, MOST_ITERATIONS = 150, 60  # of climbs from anywhere, and from near a top
MOST_TOPS, FURTHEST_NATS = 3, 10.0  # of an observer that are climbed again, and how far below the best they may lie
FURTHEST = 5.0  # from what is believed beforehand to where the population is looked for, in standard deviations of that
APART = 1.0  # conditional standard deviations between different tops, in some coordinate
SETTLED = 0.1  # the population stands still if no number of it moves by more than this, in its standard deviations
POINTS, SIDE = 8001, 40.0  # of sums over a prior's real line, and how far they reach in standard deviations

Tops = list[tuple[np.ndarray, float]]  # places, and how far below the first in nats


@dataclass(frozen=True, eq=False)
class Population:
    """A population and the observers in it, on the real line."""

    mean: Float[np.ndarray, " number"]
    spread: Float[np.ndarray, " number"]
    modes: Float[np.ndarray, "observer number"]  # of likelihood times N(mean, spread^2)
    hessians: Float[np.ndarray, "observer number number"]  # of minus the log-likelihood there, positive semi-definite
    slopes: Float[np.ndarray, "observer number"]  # of the log-likelihood there
    covariance: Float[np.ndarray, "twice twice"]  # of (mean, log spread), from the parabolas
    tops: tuple[Float[np.ndarray, "top number"], ...]  # of each observer: the mode first, then lower ones
    below_nats: tuple[Float[np.ndarray, " top"], ...]  # by how much they are lower
    evaluations: int

    @property
    def quadratics(self) -> Quadratics:
        """The observers' parabolas."""
        return Quadratics.at(self.modes, self.slopes, self.hessians)


@double_precision
def hyperprior_of(model: Model) -> Hyperprior:
    """What is believed of the population beforehand: moments of the model's prior on the real line."""
    if model.ordered:
        raise InputError(f"model {model.name!r} is ordered: a population needs observers' numbers free of each other.")
    moments = [_moments(model.priors[name], np.shape(value)) for name, value in model.parameters.items()]
    centre, width = (np.concatenate([np.ravel(it[place]) for it in moments]) for place in (0, 1))
    return Hyperprior(centre, width, np.log(TYPICAL_SPREAD * width))


def _moments(prior: Prior, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation on the real line of every number of a parameter."""
    if isinstance(prior, Normal):
        return np.broadcast_to(prior.mean, shape), np.broadcast_to(np.sqrt(prior.variance), shape)
    if isinstance(prior, LogNormal):
        return np.broadcast_to(np.log(prior.median), shape), np.broadcast_to(prior.spread, shape)
    whole = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape).reshape(-1), prior)
    found = [_summed(jax.tree.map(lambda leaf, at=at: leaf[at], whole)) for at in range(int(np.prod(shape)))]
    mean, sd = np.array(found).T
    return mean.reshape(shape), sd.reshape(shape)


def _summed(prior: Prior) -> tuple[float, float]:
    """The same of a prior over one number: sums over a grid that a few draws place."""
    draws = np.asarray(prior.to_real(prior.sample(jax.random.key(0), (2000,))))
    line = np.median(draws) + SIDE * draws.std() * np.linspace(-1, 1, POINTS)
    log_density = jax.vmap(lambda real: prior.log_density(prior.from_real(real)) + prior.log_jacobian(real))(line)
    log_density = np.where(np.isfinite(log_density), log_density, -np.inf)
    weight = np.exp(log_density - log_density.max())
    weight /= weight.sum()
    mean = weight @ line
    return float(mean), float(np.sqrt(weight @ np.square(line - mean)))


@double_precision
@one_thread_each()
def learn_population(
    targets: Mapping[Any, Target],
    key: PRNGKeyArray,
    *,
    rounds: int = 6,
    starts: int = 4,
    threads: int | None = None,
    report: Report = silent,
) -> Population:
    """The population of these observers, by name, and each one's mode in it.

    `targets` are as `targets_of` makes them. Every observer is climbed from so many dispersed `starts`, then again in
    each round from where it stood and from the population's mean; fewer `rounds` are taken where it stands still.
    """
    check_key(key)
    check_count("rounds", rounds, 1)
    check_count("starts", starts, 1)
    likelihoods = TargetLikelihoods(targets.values(), threads)
    hyper = hyperprior_of(next(iter(targets.values())).model)
    keys = [observer_key(key, observer) for observer in targets]
    first = [dispersed(target, own, starts) for target, own in zip(targets.values(), keys, strict=True)]
    return learnt(likelihoods, hyper, first, rounds=rounds, report=report)


def dispersed(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "start number"]:
    """Half drawn from the prior, and half dispersed."""
    return np.concatenate([prior_draws(target, key, (count + 1) // 2), dispersed_starts(target, key, count)])[:count]


@double_precision
def learnt(
    likelihoods: Likelihoods,
    hyper: Hyperprior,
    starts: list[Float[np.ndarray, "start number"]],
    *,
    rounds: int,
    fixed: bool = False,
    report: Report = silent,
) -> Population:
    """`learn_population` for any likelihoods and starts; `fixed` leaves the population at the prior's moments."""
    observers, total = range(likelihoods.observers), likelihoods.observers * (rounds + 1)
    mean, spread = np.array(hyper.centre), np.array(hyper.width)
    done = spent = 0

    def climbed(observer: int, from_there: np.ndarray, lift: np.ndarray, most: int) -> Tops:
        nonlocal done, spent
        against = partial(_downhill, likelihoods, observer, mean, spread)
        ends = [_climb(against, start, lift, most) for start in from_there]
        done, spent = done + 1, spent + sum(count for *_, count in ends)
        report(Progress("climbing", min(done, total), total))
        return _different(ends, lift)

    def everybody(from_there: list[np.ndarray], lifts: np.ndarray, most: int) -> list[Tops]:
        items = zip(observers, from_there, lifts, strict=True)
        found = in_threads(lambda item: climbed(*item, most), items, likelihoods.threads)
        lost = [at for at, tops in enumerate(found) if not tops]
        if lost:
            raise InputError(f"observer number {lost[0] + 1}: no start has a finite likelihood; give more starts.")
        return found

    lifts = np.broadcast_to(np.diag(spread), (len(observers), len(spread), len(spread)))
    found = everybody(starts, lifts, FIRST_ITERATIONS)
    reach = np.broadcast_to(REACH * TYPICAL_SPREAD * spread, (len(observers), len(spread)))
    turn = 0
    while True:
        modes = np.stack([tops[0][0] for tops in found])
        places = list(zip(observers, modes, reach, strict=True))
        at_modes = in_threads(lambda item: _parabola(likelihoods, *item), places, likelihoods.threads)
        spent += len(observers) * (2 * len(mean) + 1)
        slopes, curvature = (np.stack([it[place] for it in at_modes]) for place in (0, 1))
        before = np.concatenate([mean, np.log(spread)])
        both, covariance = before, np.eye(len(before))
        if not fixed:
            both, covariance = _top(Quadratics.at(modes, slopes, curvature), hyper, before)
        mean, spread = both[: len(mean)], np.exp(both[len(mean) :])
        factor = np.linalg.cholesky(np.eye(len(spread)) + spread[:, None] * curvature * spread)
        lifts = spread[:, None] * np.swapaxes(np.linalg.inv(factor), -1, -2)
        reach = REACH * np.sqrt(np.square(lifts).sum(axis=2))
        moved = np.abs(both - before) / np.sqrt(np.diag(covariance))
        if turn == rounds or (turn > 0 and moved.max() < SETTLED):
            break
        turn += 1
        near = [[place for place, below in tops[:MOST_TOPS] if below < FURTHEST_NATS] for tops in found]
        found = everybody([np.stack([*tops, mean]) for tops in near], lifts, MOST_ITERATIONS)
    below = tuple(np.array([it[1] for it in tops]) for tops in found)
    return Population(
        mean, spread, modes, curvature, slopes, covariance, tuple(np.stack([it[0] for it in tops]) for tops in found),
        below, spent,
    )  # fmt: skip


def _climb(
    downhill: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, lift: np.ndarray, most: int
) -> tuple[np.ndarray, float, int]:
    """`climb_against` in coordinates u, theta = start + lift u, in which tops are about round."""

    def lifted(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = downhill(start + lift @ u)
        return value, slope @ lift

    u, value, count = climb_against(lifted, np.zeros(len(start)), most)
    return start + lift @ u, value, count


def _different(ends: list[tuple[np.ndarray, float, int]], lift: np.ndarray) -> Tops:
    """Tops that are not nearly the same one: the highest first, each with how far it lies below that."""
    kept: list[tuple[np.ndarray, float]] = []
    for place, value, _ in sorted(ends, key=lambda end: -end[1]):
        apart = [np.abs(np.linalg.solve(lift, place - other)).max() > APART for other, _ in kept]
        if np.isfinite(value) and all(apart):
            kept.append((place, value))
    return [(place, kept[0][1] - value) for place, value in kept]


def _downhill(
    likelihoods: Likelihoods, observer: int, mean: np.ndarray, spread: np.ndarray, vector: np.ndarray
) -> tuple[float, np.ndarray]:
    value, slope = likelihoods.one(observer, vector)
    away = (vector - mean) / spread
    return 0.5 * float(away @ away) - value, away / spread - slope


def _parabola(
    likelihoods: Likelihoods, observer: int, place: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Slope and curvature of an observer's log-likelihood; directions that bend upwards count as flat."""
    _, slope = likelihoods.one(observer, place)
    rows = []
    for number, step in enumerate(reach):
        (up, above), (down, under) = (
            likelihoods.one(observer, place + sign * step * np.eye(len(place))[number]) for sign in (1, -1)
        )
        fine = np.isfinite(up) and np.isfinite(down)
        rows.append((under - above) / (2 * step) if fine else np.zeros(len(place)))
    bent = 0.5 * (np.array(rows) + np.array(rows).T)
    scaled, vectors = np.linalg.eigh(bent * np.outer(reach, reach))
    curvature = (vectors * np.maximum(scaled, 0.0)) @ vectors.T / np.outer(reach, reach)
    return slope, curvature


def _top(quadratics: Quadratics, hyper: Hyperprior, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, log tau) at the top of the marginal, and their covariance there."""
    scale = np.concatenate([hyper.width, np.ones(len(hyper.width))])
    origin = np.concatenate([hyper.centre, hyper.log_spread])

    def downhill(scaled: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = marginal_and_slope(quadratics, hyper, jnp.asarray(origin + scaled * scale))
        return -float(value), -np.asarray(slope) * scale

    usual = np.concatenate([start[: len(hyper.width)], hyper.log_spread])
    ends = [minimize(downhill, np.clip((place - origin) / scale, -FURTHEST, FURTHEST), jac=True, method="L-BFGS-B",
                     bounds=[(-FURTHEST, FURTHEST)] * len(origin)) for place in (start, usual)]  # fmt: skip
    both = origin + min(ends, key=lambda end: end.fun).x * scale
    bent = -np.asarray(marginal_hessian(quadratics, hyper, jnp.asarray(both))) * np.outer(scale, scale)
    values, vectors = np.linalg.eigh(0.5 * (bent + bent.T))
    covariance = (vectors / np.maximum(values, 1.0)) @ vectors.T * np.outer(scale, scale)  # the hyperprior's at most
    return both, covariance
