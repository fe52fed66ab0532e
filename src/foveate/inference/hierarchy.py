"""Exact draws of a population together with all of its observers.

Chains run side by side. What they move in is made from the observers' parabolas (`quadratic.py`): with E_i, S and R_i
as there, u_i = R_i' S^-1 (theta_i - E_i(m, tau)) is close to standard normal and nearly independent of (m, tau),
however much or little the data say; where they say nothing it is the non-centred form, where they say all the centred
one. Parabolas are fixed, and the density is the true one: they make chains fast, never wrong. An iteration has three
parts, each of which leaves the posterior as it is:

1. Observers: a Hamiltonian trajectory of every u_i given (m, tau), each accepted or not by itself.
2. Population: a trajectory of (m, log tau) given all u, which moves every theta along.
3. Population again, given all theta: Gibbs draws of m and Metropolis steps of log tau, which cost no likelihoods.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from foveate.inference.hierarchy_tuning import Tuning
from foveate.inference.likelihoods import Likelihoods
from foveate.inference.population import Population
from foveate.inference.quadratic import (
    LOG_SPREAD_WIDTH,
    Hyperprior,
    Quadratics,
    conditional,
    log_hyperprior,
    places,
)
from foveate.model.history import Array
from foveate.precision import double_precision

JITTER = 0.2  # of step sizes, so that no trajectory comes round to its start
SWEEPS = 5  # of the population given all theta
DIVERGENCE = 1000.0  # nats of energy lost or gained on a trajectory
WITHIN_NATS = 5.0  # chains begin at different tops if these are no further below the mode


class State(NamedTuple):
    """Where all chains are."""

    mean: Float[np.ndarray, "chain number"]
    log_spread: Float[np.ndarray, "chain number"]
    theta: Float[np.ndarray, "chain observer number"]
    value: Float[np.ndarray, "chain observer"]  # log-likelihood
    slope: Float[np.ndarray, "chain observer number"]


class Moved(NamedTuple):
    """What trajectories were like: the probabilities of acceptance, and which ones diverged."""

    observers: Float[np.ndarray, "chain observer"]
    population: Float[np.ndarray, " chain"]
    observers_diverged: np.ndarray
    population_diverged: np.ndarray


@dataclass(frozen=True, eq=False)
class Sampler:
    """A population's joint posterior, ready to be drawn from; `fixed` keeps (m, tau) where they are."""

    likelihoods: Likelihoods
    hyper: Hyperprior
    population: Population
    fixed: bool = False

    @property
    def quadratics(self) -> Quadratics:
        """The observers' parabolas."""
        return Quadratics(*(np.asarray(it) for it in self.population.quadratics))

    def log_density(self, state: State) -> Float[np.ndarray, " chain"]:
        """Log joint density of (m, log tau, theta), up to a constant."""
        away = (state.theta - state.mean[:, None]) / np.exp(state.log_spread)[:, None]
        prior = -0.5 * np.square(away).sum(axis=(1, 2)) - state.theta.shape[1] * state.log_spread.sum(axis=1)
        hyper = [float(log_hyperprior(self.hyper, m, s)) for m, s in zip(state.mean, state.log_spread, strict=True)]
        return state.value.sum(axis=1) + prior + np.array(hyper)

    @double_precision
    def begun(self, chains: int, rng: np.random.Generator) -> State:
        """Chains apart: populations drawn around the learnt one, observers around their tops."""
        known = self.population
        numbers, root = len(known.mean), np.linalg.cholesky(known.covariance)
        both = np.concatenate([known.mean, np.log(known.spread)])
        both = both + (0 if self.fixed else 1) * rng.standard_normal((chains, 2 * numbers)) @ root.T
        mean, log_spread = both[:, :numbers], both[:, numbers:]
        u = rng.standard_normal((chains, *known.modes.shape))
        centre, lift = self._coordinates(mean, log_spread)
        theta = centre + np.einsum("cojk,cok->coj", lift, u)
        for observer, (tops, below) in enumerate(zip(known.tops, known.below_nats, strict=True)):
            close = tops[below <= WITHIN_NATS]
            for chain in range(chains):
                theta[chain, observer] += close[chain % len(close)] - tops[0]
        value, slope = self.likelihoods(theta)
        lost = ~np.isfinite(value)
        if lost.any():
            theta = np.where(lost[:, :, None], known.modes, theta)
            value, slope = self.likelihoods(theta)
        return State(mean, log_spread, theta, value, slope)

    def _coordinates(self, mean: np.ndarray, log_spread: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E and S R^-T of every chain and observer."""
        centre, factor = (np.asarray(it) for it in _conditionals(self.quadratics, mean, log_spread))
        return centre, np.exp(log_spread)[:, None, :, None] * np.swapaxes(np.linalg.inv(factor), -1, -2)

    @double_precision
    def iteration(self, state: State, tuning: Tuning, rng: np.random.Generator) -> tuple[State, Moved]:
        """All three parts, once."""
        with np.errstate(over="ignore", invalid="ignore"):  # of trajectories that diverge: they are not accepted
            state, observers, lost = self._observers(state, tuning, rng)
            if self.fixed:
                return state, Moved(observers, np.ones(len(observers)), lost, np.zeros(len(observers), dtype=bool))
            state, population, diverged = self._population(state, tuning, rng)
            return self._centred(state, rng), Moved(observers, population, lost, diverged)

    def _observers(
        self, state: State, tuning: Tuning, rng: np.random.Generator
    ) -> tuple[State, np.ndarray, np.ndarray]:
        """Trajectories of every observer given (m, tau)."""
        _, lift = self._coordinates(state.mean, state.log_spread)
        lift = lift * tuning.scale[:, None, :]
        precision = np.exp(-2 * state.log_spread)[:, None]
        step = np.exp(tuning.observers.log_step) * rng.uniform(1 - JITTER, 1 + JITTER, state.value.shape)
        momentum = rng.standard_normal(state.theta.shape)
        choice = rng.random(state.value.shape)
        theta, value, slope = state.theta, state.value, state.slope

        def force(theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
            return np.einsum("cokj,cok->coj", lift, slope - (theta - state.mean[:, None]) * precision)

        def energy(theta: np.ndarray, value: np.ndarray, momentum: np.ndarray) -> np.ndarray:
            prior = -0.5 * np.square(theta - state.mean[:, None]) * precision
            return value + prior.sum(axis=-1) - 0.5 * np.square(momentum).sum(axis=-1)

        before = energy(theta, value, momentum)
        for _ in range(tuning.leaps[0]):
            momentum = momentum + 0.5 * step[..., None] * force(theta, slope)
            theta = theta + step[..., None] * np.einsum("cojk,cok->coj", lift, momentum)
            value, slope = self.likelihoods(theta)
            momentum = momentum + 0.5 * step[..., None] * force(theta, slope)
        chance, diverged = _chance(energy(theta, value, momentum) - before)
        taken = choice < chance
        many = taken[..., None]
        state = state._replace(
            theta=np.where(many, theta, state.theta),
            value=np.where(taken, value, state.value),
            slope=np.where(many, slope, state.slope),
        )
        return state, chance, diverged

    def _population(
        self, state: State, tuning: Tuning, rng: np.random.Generator
    ) -> tuple[State, np.ndarray, np.ndarray]:
        """Trajectories of (m, log tau) given all u."""
        both = np.concatenate([state.mean, state.log_spread], axis=1)
        centre, lift = self._coordinates(state.mean, state.log_spread)
        u = np.linalg.solve(lift, (state.theta - centre)[..., None])[..., 0]
        step = np.exp(tuning.population.log_step) * rng.uniform(1 - JITTER, 1 + JITTER, len(both))
        momentum = rng.standard_normal(both.shape)
        choice = rng.random(len(both))

        def pulled(both: np.ndarray, slope: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            terms, force = _pulled(self.quadratics, self.hyper, both, u, slope)
            return np.asarray(terms), np.asarray(force) @ tuning.root

        theta, value, slope = state.theta, state.value, state.slope
        terms, force = pulled(both, slope)
        before = value.sum(axis=1) + terms - 0.5 * np.square(momentum).sum(axis=1)
        here = both
        for _ in range(tuning.leaps[1]):
            momentum = momentum + 0.5 * step[:, None] * force
            here = here + step[:, None] * momentum @ tuning.root.T
            theta = np.asarray(_placed(self.quadratics, here, u))
            value, slope = self.likelihoods(theta)
            terms, force = pulled(here, slope)
            momentum = momentum + 0.5 * step[:, None] * force
        after = value.sum(axis=1) + terms - 0.5 * np.square(momentum).sum(axis=1)
        chance, diverged = _chance(after - before)
        taken = choice < chance
        numbers = state.mean.shape[1]
        moved = State(here[:, :numbers], here[:, numbers:], theta, value, slope)
        pairs = zip(moved, state, strict=True)
        chosen = [np.where(taken.reshape(-1, *[1] * (new.ndim - 1)), new, old) for new, old in pairs]
        return State(*chosen), chance, diverged

    def _centred(self, state: State, rng: np.random.Generator) -> State:
        """(m, tau) given all theta."""
        mean, log_spread, theta = state.mean, state.log_spread, state.theta
        observers, hyper = theta.shape[1], self.hyper
        width = 2.4 / np.sqrt(2 * observers + LOG_SPREAD_WIDTH**-2)

        def log_density(log_spread: np.ndarray, squares: np.ndarray) -> np.ndarray:
            from_usual = (log_spread - hyper.log_spread) / LOG_SPREAD_WIDTH
            return -observers * log_spread - 0.5 * squares * np.exp(-2 * log_spread) - 0.5 * np.square(from_usual)

        for _ in range(SWEEPS):
            precision = observers * np.exp(-2 * log_spread) + np.asarray(hyper.width) ** -2
            pull = theta.sum(axis=1) * np.exp(-2 * log_spread) + hyper.centre * np.asarray(hyper.width) ** -2
            mean = pull / precision + rng.standard_normal(mean.shape) / np.sqrt(precision)
            squares = np.square(theta - mean[:, None]).sum(axis=1)
            proposed = log_spread + width * rng.standard_normal(log_spread.shape)
            gain = log_density(proposed, squares) - log_density(log_spread, squares)
            log_spread = np.where(np.log(rng.random(gain.shape)) < gain, proposed, log_spread)
        return state._replace(mean=mean, log_spread=log_spread)

    def whitened(self, state: State, tuning: Tuning) -> Float[np.ndarray, "chain all"]:
        """u and v: standard normal where the parabolas and their tuning are right."""
        centre, lift = self._coordinates(state.mean, state.log_spread)
        u = np.linalg.solve(lift, (state.theta - centre)[..., None])[..., 0] / tuning.scale
        both = np.concatenate([state.mean, state.log_spread], axis=1)
        known = np.concatenate([self.population.mean, np.log(self.population.spread)])
        v = np.linalg.solve(tuning.root, (both - known).T).T
        return np.concatenate([u.reshape(len(u), -1), v], axis=1)


def _chance(gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probability of accepting a trajectory with this change in energy, and whether it diverged."""
    gain = np.where(np.isnan(gain), -np.inf, gain)
    return np.exp(np.minimum(gain, 0.0)), np.abs(gain) > DIVERGENCE


@eqx.filter_jit
def _conditionals(quadratics: Quadratics, mean: Array, log_spread: Array) -> tuple[Array, Array]:
    return lax.map(lambda own: conditional(quadratics, *own), (mean, log_spread))


@eqx.filter_jit
def _placed(quadratics: Quadratics, both: Array, u: Array) -> Array:
    mean, log_spread = jnp.split(both, 2, axis=1)
    return lax.map(lambda own: places(quadratics, *own)[0], (mean, log_spread, u))


@eqx.filter_jit
def _pulled(quadratics: Quadratics, hyper: Hyperprior, both: Array, u: Array, slope: Array) -> tuple[Array, Array]:
    """Log joint density at (m, log tau, u) without the likelihoods, and the gradient of all in (m, log tau)."""

    def terms(both: Array, u: Array) -> tuple[Array, Array]:
        mean, log_spread = jnp.split(both, 2)
        theta, volume = places(quadratics, mean, log_spread, u)
        away = (theta - mean) * jnp.exp(-log_spread)
        return volume - 0.5 * jnp.sum(jnp.square(away)) + log_hyperprior(hyper, mean, log_spread), theta

    def one(own: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        both, u, slope = own
        value = terms(both, u)[0]

        def linear(it: Array) -> Array:
            own, theta = terms(it, u)
            return own + jnp.sum(slope * theta)

        return value, jax.grad(linear)(both)

    return lax.map(one, (both, u, slope))
