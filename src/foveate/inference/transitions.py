"""Transitions of a NUTS chain: a trajectory, then independence moves between modes, and what is learnt from them.

Compiled as blocks of one size, for the warm-up and for the draws alike: one compilation serves chains of any length,
and observers whose steps are packed to the same size.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from blackjax.adaptation.mass_matrix import MassMatrixAdaptationState, mass_matrix_adaptation
from blackjax.adaptation.staged_adaptation import build_schedule
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from blackjax.mcmc import hmc
from blackjax.mcmc.nuts import build_kernel
from jax import lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from foveate.inference.mixture import Mixture, draw_from, log_density_at
from foveate.inference.target import Target
from foveate.model.history import Array

# Transitions in one call of the compiled function: about a second's worth on an observer's data.
BLOCK = 50

# Up to this many numbers the mass matrix is a whole matrix; beyond, too few warm-up draws would go into each entry.
LARGEST_DENSE = 20

# Independence moves after each trajectory: one costs a single evaluation, a trajectory ten to thirty.
JUMPS = 3

TARGET_ACCEPTANCE = 0.8
FIRST_STEP_SIZE = 1.0

# Stages of a transition; the first two as BlackJAX's schedule numbers them. In the slow windows of the warm-up the mass
# matrix is learnt, without moves between modes: it shall have the shape of one mode, not the distance between two.
FAST, SLOW, DRAWING = 0, 1, 2

_state_at: Callable[..., Any] = hmc.init
_trajectory: Callable[..., Any] = build_kernel()
_first_average, _next_average, _averaged = dual_averaging_adaptation(TARGET_ACCEPTANCE)


class Chain(NamedTuple):
    """Where a chain is and what its warm-up has learnt."""

    state: Any  # BlackJAX's: position, log density and its gradient
    step_size: Float[Array, ""]
    averaging: DualAveragingAdaptationState
    mass: MassMatrixAdaptationState


class Task(NamedTuple):
    """What to do in each transition."""

    key: PRNGKeyArray
    stage: Int[Array, "*step"]
    window_ends: Bool[Array, "*step"]
    active: Bool[Array, "*step"]  # False: nothing, up to the end of the block


class Record(NamedTuple):
    """What is kept of each transition."""

    landed: Any  # where the trajectory led, before the independence moves: (step, number)
    real: Any  # and after it
    lp: Any
    diverging: Any
    acceptance_rate: Any
    energy: Any
    tree_depth: Any
    n_steps: Any
    step_size: Any
    proposals: Any  # how many independence moves there were
    independence_acceptance: Any  # the mean probability with which they were accepted; without any not a number
    independence_accepted: Any  # the share that was


@eqx.filter_jit
def state_at(target: Target, position: Float[Array, " number"]) -> Any:
    """A chain's state at this position."""
    return _state_at(position, target.log_density)


def begun(state: Any, mixture: Mixture | None) -> Chain:
    """A chain before its warm-up; a mixture gives a first idea of the shape of a mode."""
    size = state.position.shape[0]
    shape = None if mixture is None else np.einsum("k,kij->ij", np.asarray(mixture.share), mixture.scale)
    if shape is not None and size > LARGEST_DENSE:
        shape = np.diag(shape)
    init: Callable[..., Any] = mass_matrix_adaptation(size > LARGEST_DENSE)[0]
    averaging = _first_average(FIRST_STEP_SIZE)
    return jax.tree.map(jnp.asarray, Chain(state, jnp.asarray(FIRST_STEP_SIZE), averaging, init(size, shape)))


def warmed_up(chain: Chain) -> Chain:
    """The chain with the step size to draw with: the average over the last window of the warm-up."""
    return chain._replace(step_size=jnp.asarray(_averaged(chain.averaging)))


def warmup_task(key: PRNGKeyArray, count: int) -> Task:
    """Stan's schedule: windows in which the step size is learnt, and between them those of the mass matrix."""
    stage, window_ends = np.asarray(build_schedule(count)).T
    return _whole_blocks(key, stage, window_ends.astype(bool))


def drawing_task(key: PRNGKeyArray, count: int) -> Task:
    """Draws, with nothing more to learn."""
    return _whole_blocks(key, np.full(count, DRAWING), np.zeros(count, dtype=bool))


def _whole_blocks(key: PRNGKeyArray, stage: np.ndarray, window_ends: np.ndarray) -> Task:
    extra = (0, -len(stage) % BLOCK)
    whole = len(stage) + extra[1]
    active = np.arange(whole) < len(stage)
    return Task(jax.random.split(key, whole), np.pad(stage, extra), np.pad(window_ends, extra), active)


@eqx.filter_jit
def block(target: Target, mixture: Mixture | None, chain: Chain, task: Task) -> tuple[Chain, Record]:
    """The chain after a block of transitions, and their records."""

    def step(chain: Chain, one: Task) -> tuple[Chain, Record]:
        for_trajectory, for_jump = jax.random.split(one.key)
        matrix = chain.mass.inverse_mass_matrix
        state, info = _trajectory(for_trajectory, chain.state, target.log_density, chain.step_size, matrix)
        stay = state, jnp.asarray(jnp.nan), jnp.asarray(jnp.nan)
        if mixture is None:
            proposed, (jumped, chance, accepted) = jnp.asarray(False), stay
        else:
            proposed = one.stage != SLOW
            jumped, chance, accepted = lax.cond(proposed, _jumps, lambda *_: stay, target, mixture, state, for_jump)
        record = Record(
            landed=state.position,
            real=jumped.position,
            lp=jumped.logdensity,
            diverging=info.is_divergent,
            acceptance_rate=info.acceptance_rate,
            energy=info.energy,
            tree_depth=info.num_trajectory_expansions,
            n_steps=info.num_integration_steps,
            step_size=chain.step_size,
            proposals=JUMPS * proposed,
            independence_acceptance=chance,
            independence_accepted=accepted,
        )
        return _learnt(chain._replace(state=jumped), one, state.position, info.acceptance_rate), record

    first = jax.tree.map(lambda leaf: leaf[0], task)
    shapes = jax.eval_shape(step, chain, first)[1]
    nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)

    def step_if_active(chain: Chain, one: Task) -> tuple[Chain, Record]:
        return lax.cond(one.active, step, lambda chain, _: (chain, nothing), chain, one)

    return lax.scan(step_if_active, chain, task)


def _jumps(
    target: Target, mixture: Mixture, state: Any, key: PRNGKeyArray
) -> tuple[Any, Float[Array, ""], Float[Array, ""]]:
    """The state after Metropolis moves whose proposal does not depend on it, their mean chance and accepted share."""

    def jump(state: Any, key: PRNGKeyArray) -> tuple[Any, tuple[Array, Array]]:
        for_place, for_choice = jax.random.split(key)
        place = draw_from(mixture, for_place)
        there = _state_at(place, target.log_density)
        gain = there.logdensity - log_density_at(mixture, place)
        held = state.logdensity - log_density_at(mixture, state.position)
        chance = jnp.where(jnp.isfinite(there.logdensity), jnp.exp(jnp.minimum(gain - held, 0.0)), 0.0)
        accepted = jax.random.uniform(for_choice) < chance
        return jax.tree.map(lambda new, old: jnp.where(accepted, new, old), there, state), (chance, accepted)

    state, (chance, accepted) = lax.scan(jump, state, jax.random.split(key, JUMPS))
    return state, chance.mean(), accepted.mean(dtype=chance.dtype)


def _learnt(chain: Chain, one: Task, landed: Float[Array, " number"], acceptance_rate: Float[Array, ""]) -> Chain:
    """The chain with what the transition taught, on BlackJAX's parts of Stan's warm-up."""
    _, seen, summed_up = mass_matrix_adaptation(landed.shape[0] > LARGEST_DENSE)

    def warm(chain: Chain) -> Chain:
        averaging: Any = _next_average(chain.averaging, acceptance_rate)  # pyright: ignore[reportArgumentType]
        mass = lax.cond(one.stage == SLOW, lambda: seen(chain.mass, landed), lambda: chain.mass)
        return chain._replace(averaging=averaging, mass=mass, step_size=jnp.exp(averaging.log_step_size))

    def window_end(chain: Chain) -> Chain:
        averaging: Any = _first_average(_averaged(chain.averaging))
        step_size = jnp.exp(averaging.log_step_size)
        return chain._replace(averaging=averaging, mass=summed_up(chain.mass), step_size=step_size)

    chain = lax.cond(one.stage == DRAWING, lambda chain: chain, warm, chain)
    return lax.cond(one.window_ends, window_end, lambda chain: chain, chain)
