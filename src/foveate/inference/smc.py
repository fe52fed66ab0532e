"""Tempered sequential Monte Carlo: particles led from the prior, or from a mixture, to the posterior.

With start density p0 and q = posterior / p0 (not normalised), particles follow  p0(x) q(x)^t  from t = 0 to 1. At each
temperature: choose the next one so that the weights stay even enough, resample, move every particle by Metropolis
steps. The mean weights multiply to the evidence. Several modes are no obstacle as long as the start covers them all.

The loop is our own, on BlackJAX's parts (effective sample size, root finding, resampling): its adaptive kernel
evaluates the likelihood three more times per particle and temperature, moves at the temperature before, and ends with
weighted particles. Here a particle carries its densities with it, and a Metropolis step costs one evaluation.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.smc.ess import log_ess
from blackjax.smc.resampling import systematic
from blackjax.smc.solver import dichotomy
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Float, Int, Key, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.draws import check_count, generator, padded, prior_draws
from foveate.inference.mixture import DEGREES_OF_FREEDOM, Mixture, draw_from, log_density_at, seeded
from foveate.inference.samples import Progress, Report, Samples, silent
from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.precision import check_key, double_precision

# Particles that are moved in one call of the compiled function: a part of a second's worth.
GROUP = 50

# The next temperature is where the effective sample size of the weights falls to this share of the particles.
EVEN_ENOUGH = 0.5

# Of every three moves two propose from a mixture fitted to the particles, whatever the particle's place: they mix fast
# and reach all modes. The third is a random walk in the shape of one component, for places that the mixture misses.
CYCLE = 3

# The fitted mixture: components for modes and bent ridges, and a wide one with the covariance of all particles.
COMPONENTS = 5
WIDE_SHARE = 0.1
LEAST_SHARE = 0.02
BLUR = 0.03  # of the particles' spread

RIDGE = 1e-9  # relative, so that a covariance of too few particles is still one

MOST_TEMPERATURES = 200
PARTICLES_PER_NUMBER = 10  # at least

_log_ess: Callable[..., Any] = log_ess
_root: Callable[..., Any] = dichotomy


class Particles(NamedTuple):
    """Places on the real line with the logarithms of the start's density and of what the posterior has beyond it."""

    real: Any  # (particle, number)
    log_start: Any
    log_rest: Any  # minus infinity where one of the densities is not finite


class Replicate(NamedTuple):
    """The outcome of one run from the start to the posterior."""

    particles: Particles
    acceptance: Float[np.ndarray, " particle"]  # share of the last moves that were accepted
    log_evidence_nats: float
    temperatures: list[float]
    acceptances: list[float]
    evaluations: int


@double_precision
def tempered(
    target: Target,
    key: PRNGKeyArray,
    *,
    particles: int = 1000,
    replicates: int = 4,
    moves: int = 6,
    start: Mixture | None = None,
    report: Report = silent,
) -> Samples:
    """Equally weighted draws of the posterior and its evidence, by independent replicates.

    `start` is the density where particles begin: None is the prior, a mixture a shorter way. `moves` Metropolis steps
    follow each resampling. Draws of a heavy-tailed prior are cut at e^700 (double precision ends at e^709), and a place
    where a density is not finite has no weight: it counts in the evidence as zero and leaves no descendants.

    Proposals are learnt from the particles, so that the evidence is not free of bias. Where the prior is far from what
    the data say (ten temperatures and more) it tends to come out low, by up to a nat with 1000 particles and 6 moves,
    which the replicates' spread does not show: take more moves, or start from a mixture.
    """
    check_key(key)
    check_count("particles", particles, PARTICLES_PER_NUMBER * target.size)
    check_count("replicates", replicates, 2)  # the evidence's error comes from their spread
    check_count("moves", moves, 1)
    if target.size == 0:
        raise InputError(f"model {target.model.name!r} has no parameters: there is nothing to draw.")
    runs = [
        _replicate(target, start, own, particles, moves, _teller(report, index, replicates))
        for index, own in enumerate(jax.random.split(key, replicates))
    ]
    return Samples(
        real=np.stack([run.particles.real for run in runs]),
        sampler="smc",
        settings={"particles": particles, "replicates": replicates, "moves": moves, "from_prior": start is None},
        statistics={
            "lp": np.stack([run.particles.log_start + run.particles.log_rest for run in runs]),
            "acceptance_rate": np.stack([run.acceptance for run in runs]),
        },
        evaluations=sum(run.evaluations for run in runs),
        log_evidence_nats=_together([run.log_evidence_nats for run in runs]),
        facts={
            "log_evidence_nats": [run.log_evidence_nats for run in runs],
            "temperatures": [run.temperatures for run in runs],
            "acceptances": [run.acceptances for run in runs],
        },
    )


def _together(log_evidences: list[float]) -> tuple[float, float]:
    """Log of the mean evidence, and its standard error on the log scale."""
    top = max(log_evidences)
    evidences = np.exp(np.array(log_evidences) - top)
    error = evidences.std(ddof=1) / evidences.mean() / np.sqrt(len(evidences))
    return float(top + np.log(evidences.mean())), float(error)


# Told of the way from one temperature to the next: both, and the share of it that is done.
Tell = Callable[[float, float, float], None]


def _teller(report: Report, index: int, replicates: int) -> Tell:
    """Progress of one replicate among several, in percent of all."""

    def tell(last: float, temperature: float, share: float) -> None:
        # Temperatures grow by about the same factor each time: their fourth root grows evenly enough for a bar.
        done = last**0.25 + share * (temperature**0.25 - last**0.25)
        facts = {"replicate": index + 1, "temperature": temperature}
        report(Progress("tempering", int(100 * (index + done)), 100 * replicates, facts))

    return tell


def _replicate(
    target: Target, start: Mixture | None, key: PRNGKeyArray, count: int, moves: int, tell: Tell
) -> Replicate:
    for_start, for_path = jax.random.split(key)
    origin = None if start is None else padded(start)
    if start is None:
        place = prior_draws(target, for_start, count)
    else:
        rng = generator(for_start)
        # In no order: those of a mixture come component by component, and the halves must be alike.
        place = rng.permutation(start.sample(count, rng))
    # The first evaluation goes through the function that moves particles, as a move to where they are.
    nowhere = Particles(place, np.full(count, -np.inf), np.full(count, -np.inf))
    still = _proposals(place, np.full(count, 1 / count), np.random.default_rng(0))
    held, _ = _moved(target, origin, still, _half(count), nowhere, for_start, 0.0, 0, partial(tell, 0.0, 0.0))
    if not np.isfinite(held.log_rest).any():
        raise InputError(f"the posterior density is not finite at any of the {count} particles at the start.")
    temperature, log_evidence, evaluations = 0.0, 0.0, count
    temperatures, acceptances, accepted = [], [], np.zeros(count)
    while temperature < 1:
        if len(temperatures) == MOST_TEMPERATURES:
            raise InputError(f"temperature {temperature:g} after {MOST_TEMPERATURES} steps: take more particles.")
        own = jax.random.fold_in(for_path, len(temperatures))
        for_choice, for_fit, for_moves = jax.random.split(own, 3)
        found = _reweighted(held.log_rest, np.asarray(temperature), for_choice)
        last, temperature, gain, weights, chosen = temperature, float(found[0]), *map(np.asarray, found[1:])
        log_evidence += float(gain)
        proposals = _proposals(held.real, weights, generator(for_fit))
        held, half, here = _taken(held, chosen), _half(count)[chosen], partial(tell, last, temperature)
        held, accepted = _moved(target, origin, proposals, half, held, for_moves, temperature, moves, here)
        evaluations += count * moves
        temperatures.append(temperature)
        acceptances.append(float(accepted.mean()))
    return Replicate(held, accepted, log_evidence, temperatures, acceptances, evaluations)


@jax.jit
def _reweighted(
    log_rest: Float[Array, " particle"], temperature: Float[Array, ""], key: PRNGKeyArray
) -> tuple[Array, Array, Array, Array]:
    """The next temperature, the log of the mean weight there, the weights (sum one) and the particles to go on with."""
    possible = jnp.isfinite(log_rest)

    def log_weights(step: Float[Array, ""] | float) -> Float[Array, " particle"]:
        return jnp.where(possible, step * jnp.where(possible, log_rest, 0.0), -jnp.inf)

    # Relative to the particles that can have weight at all: the others would keep any step from being even enough.
    goal = jnp.log(EVEN_ENOUGH * jnp.sum(possible))
    step = _root(lambda step: _log_ess(log_weights(step)) - goal, 0.0, 1.0 - temperature)
    # Not 1 - 1e-17: the loop ends at one.
    following = jnp.where(temperature + step >= 1.0 - 1e-9, 1.0, temperature + step)
    log_weight = log_weights(following - temperature)
    total = logsumexp(log_weight)
    weights = jnp.exp(log_weight - total)
    return following, total - jnp.log(log_rest.size), weights, systematic(key, weights, log_rest.size)


def _half(count: int) -> Int[np.ndarray, " particle"]:
    """Which half each particle belongs to; brothers stand beside each other, and so in the same half."""
    return (np.arange(count) >= count // 2).astype(np.int64)


def _proposals(
    real: Float[np.ndarray, "particle number"], weights: Float[np.ndarray, " particle"], rng: np.random.Generator
) -> tuple[Mixture, Mixture]:
    """For either half of the particles a mixture fitted to the other half.

    A mixture fitted to the particles that it moves is too dense where they stand: they would leave too easily, for the
    mixture's wide tails, and the evidence come out too low (by half a nat, once).
    """

    def for_half(half: int) -> Mixture:
        others = np.where(_half(len(real)) != half, weights, 0.0)
        enough = np.count_nonzero(others) >= 2 * real.shape[1]
        return padded(_fitted(real, others if enough else weights, rng))

    return for_half(0), for_half(1)


def _fitted(
    real: Float[np.ndarray, "particle number"], weights: Float[np.ndarray, " particle"], rng: np.random.Generator
) -> Mixture:
    """A mixture fitted to weighted particles, with a wide component for what it may miss."""
    some = weights > 0
    real, weights = real[some], weights[some] / weights[some].sum()
    middle = weights @ real
    spread = (real - middle).T @ ((real - middle) * weights[:, None])
    spread += RIDGE * np.diag(np.maximum(np.diag(spread), RIDGE))
    # Copies of a few particles span no volume: each is given a little of its own, in the shape of all together.
    real = real + BLUR * rng.standard_normal(real.shape) @ np.linalg.cholesky(spread).T
    fitted = seeded(real, weights, COMPONENTS, rng).refitted(real, weights, LEAST_SHARE)
    return fitted.with_component(WIDE_SHARE, middle, spread, DEGREES_OF_FREEDOM)


def _moved(
    target: Target,
    start: Mixture | None,
    proposals: tuple[Mixture, Mixture],
    half: Int[np.ndarray, " particle"],
    held: Particles,
    key: PRNGKeyArray,
    temperature: float,
    moves: int,
    tell: Callable[[float], None],
) -> tuple[Particles, Float[np.ndarray, " particle"]]:
    """The particles after `moves` Metropolis steps, and which share each accepted; none: evaluated where they are."""
    count = len(held.real)
    extra = -count % GROUP
    all_held, all_half = jax.tree.map(lambda leaf: np.concatenate([leaf, leaf[-1:].repeat(extra, 0)]), (held, half))
    keys = jax.random.split(key, count + extra)
    # As arrays: a plain number would be compiled in.
    at, times = np.asarray(temperature), np.asarray(moves)
    parts = []
    for first in range(0, count, GROUP):
        some = slice(first, first + GROUP)
        part = _group(target, start, proposals, _taken(all_held, some), all_half[some], keys[some], at, times)
        parts.append(jax.tree.map(np.asarray, part))
        tell((first + GROUP) / len(keys))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


def _taken(particles: Any, which: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[which], particles)


@eqx.filter_jit
def _group(
    target: Target,
    start: Mixture | None,
    proposals: tuple[Mixture, Mixture],
    held: Particles,
    half: Int[Array, " particle"],
    keys: Key[Array, " particle"],
    temperature: Float[Array, ""],
    moves: Array,
) -> tuple[Particles, Float[Array, " particle"]]:
    size = target.size

    def evaluated(real: Float[Array, " number"]) -> Particles:
        if start is None:
            log_start, log_rest = target.log_prior(real), target.log_likelihood(real)
        else:
            log_start = log_density_at(start, real)
            log_rest = target.log_density(real) - log_start
        finite = jnp.isfinite(log_start) & jnp.isfinite(log_rest)
        return Particles(real, jnp.where(finite, log_start, -jnp.inf), jnp.where(finite, log_rest, -jnp.inf))

    def log_density(at: Particles) -> Float[Array, ""]:
        possible = jnp.isfinite(at.log_rest)
        return jnp.where(possible, at.log_start + temperature * jnp.where(possible, at.log_rest, 0.0), -jnp.inf)

    def move(index: Array, state: tuple[Particles, Array], proposal: Mixture, key: PRNGKeyArray):
        here, accepted = state
        for_place, for_part, for_length, for_step, for_choice = jax.random.split(jax.random.fold_in(key, index), 5)
        walking = index % CYCLE == CYCLE - 1
        part = jax.random.categorical(for_part, jnp.log(proposal.share))
        length = 2.38 / jnp.sqrt(size) * jnp.exp(-2.0 * jax.random.uniform(for_length))
        walked = here.real + length * proposal.factor[part] @ jax.random.normal(for_step, (size,))
        place = jnp.where(walking, walked, draw_from(proposal, for_place))
        only_look = moves == 0
        there = evaluated(jnp.where(only_look, here.real, place))
        balance = log_density_at(proposal, here.real) - log_density_at(proposal, there.real)
        log_ratio = log_density(there) - log_density(here) + jnp.where(walking, 0.0, balance)
        accept = only_look | (jnp.log(jax.random.uniform(for_choice)) < log_ratio)
        return jax.tree.map(lambda new, old: jnp.where(accept, new, old), there, here), accepted + accept

    def of_one(item: tuple[Particles, Array, PRNGKeyArray]) -> tuple[Particles, Float[Array, ""]]:
        here, half, key = item
        proposal = jax.tree.map(lambda first, second: jnp.where(half == 0, first, second), *proposals)
        steps = jnp.maximum(moves, 1)
        state = lax.fori_loop(0, steps, lambda index, state: move(index, state, proposal, key), (here, jnp.zeros(())))
        return state[0], state[1] / steps

    return lax.map(of_one, (held, half, keys))
