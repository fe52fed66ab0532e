"""One Hamiltonian move of epsilon and xi given gamma: adapted, on logarithms; or with the paper's settings, on px^2.

The density changes with gamma from sweep to sweep, so every trajectory begins by evaluating it where the chain stands.
The policies' parameters are the first numbers of a model's vector: epsilon (row, column), xi (row, column).
"""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from blackjax.adaptation.mass_matrix import MassMatrixAdaptationState, mass_matrix_adaptation
from blackjax.adaptation.step_size import DualAveragingAdaptationState, dual_averaging_adaptation
from jax import lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from foveate.data.grid import PUBLISHED_PX_DEG
from foveate.inference.conditionals import given_gamma
from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.model.likelihood import policy_log_probability
from foveate.model.model import Model

T = TypeVar("T")

Scheme = Literal["adapted", "paper"]

VARIANCES = 4  # how many numbers epsilon and xi have

DIVERGENCE = 1000.0  # energy gained along a trajectory beyond which it has lost its way, as in Stan and BlackJAX

# Adapted. Trajectories of random length, so that none returns to its start by rule; short ones, since gamma changes
# the density before a long one would pay.
TARGET_ACCEPTANCE = 0.8
FIRST_STEP_SIZE = 0.1
MOST_STEPS = 5

# The paper's, for variances in px^2 with unit mass: epsilon moves first, then xi.
PAPER_STEPS = 8
PAPER_STEP_SIZES = (0.03, 0.5)

_begin_averaging, _average, _averaged = dual_averaging_adaptation(TARGET_ACCEPTANCE)
_begin_mass, _learn_mass, _learnt_mass = mass_matrix_adaptation(is_diagonal_matrix=True)


class Stage(NamedTuple):
    """What a sweep does beyond drawing: it may learn, in the warm-up; the first of a chain does nothing but look."""

    looks: Bool[Array, "*sweep"]  # only: the chain stays, and learns the density where it stands
    step_size: Bool[Array, "*sweep"]
    mass: Bool[Array, "*sweep"]
    mass_ends: Bool[Array, "*sweep"]  # the window's last sweep: from here on its mass matrix is used


class Tuning(NamedTuple):
    """What the warm-up has learnt so far."""

    averaging: DualAveragingAdaptationState
    mass: MassMatrixAdaptationState

    @classmethod
    def first(cls) -> "Tuning":
        """Before the warm-up."""
        fresh = cls(_begin_averaging(FIRST_STEP_SIZE), _begin_mass(VARIANCES))
        return jax.tree.map(jnp.asarray, fresh)

    @property
    def step_size(self) -> Float[Array, ""]:
        """The step size to keep after the warm-up."""
        return jnp.asarray(_averaged(self.averaging))

    @property
    def inverse_mass(self) -> Float[Array, " number"]:
        """The variance of each number, as far as known."""
        return self.mass.inverse_mass_matrix


class Moved(NamedTuple):
    """Where a move ended and how it went."""

    vector: Float[Array, " number"]  # on the real line
    log_policy: Float[Array, "path step policy"]  # of every step under each policy alone, there
    acceptance_rate: Float[Array, ""]
    diverging: Bool[Array, ""]
    evaluations: Int[Array, ""]


def adapted_move(
    key: PRNGKeyArray,
    target: Target,
    vector: Float[Array, " number"],
    gamma: Bool[Array, "path step"],
    tuning: Tuning,
    stage: Stage,
) -> tuple[Moved, Tuning]:
    """The vector after a move of the logarithms of epsilon and xi, all together, and what it taught."""

    def log_density(variances: Float[Array, " number"]) -> tuple[Float[Array, ""], Array]:
        whole = jnp.concatenate([variances, vector[VARIANCES:]])
        log_policy = policy_log_probability(target.model.from_real(whole), target.steps)
        return given_gamma(log_policy, gamma, target.steps.real) + target.log_prior(whole), log_policy

    for_length, for_move = jax.random.split(key)
    steps = jnp.where(stage.looks, 0, jax.random.randint(for_length, (), 1, MOST_STEPS + 1))
    step_size = jnp.where(stage.step_size, jnp.exp(tuning.averaging.log_step_size), tuning.step_size)
    end = trajectory(for_move, log_density, vector[:VARIANCES], step_size, tuning.inverse_mass, steps)
    whole = jnp.concatenate([end.position, vector[VARIANCES:]])
    moved = Moved(whole, end.extra, end.acceptance_rate, end.diverging, steps + 1)
    return moved, _learn(tuning, stage, end.position, end.acceptance_rate)


def _learn(tuning: Tuning, stage: Stage, position: Float[Array, " number"], acceptance_rate: Any) -> Tuning:
    averaging, mass = tuning
    averaging = _if(stage.step_size, lambda it: _average(it, acceptance_rate), averaging)
    mass = _if(stage.mass, lambda it: _learn_mass(it, position), mass)
    # A new mass matrix makes a new scale, on which the search for the step size starts again.
    averaging = _if(stage.mass_ends, lambda it: _begin_averaging(_averaged(it)), averaging)
    return Tuning(averaging, _if(stage.mass_ends, _learnt_mass, mass))


def _if(condition: Bool[Array, ""], change: Callable[[T], Any], tree: T) -> T:
    """`change(tree)` where the condition holds, with the types of `tree`."""

    def changed(tree: T) -> T:
        return jax.tree.map(lambda new, old: jnp.asarray(new, old.dtype), change(tree), tree)

    return lax.cond(condition, changed, lambda tree: tree, tree)


def paper_move(
    key: PRNGKeyArray,
    target: Target,
    vector: Float[Array, " number"],
    gamma: Bool[Array, "path step"],
    stage: Stage,
) -> Moved:
    """The vector after a move of epsilon, then one of xi, on px^2 itself; a variance below zero is never accepted."""
    px2 = jnp.tile(jnp.square(jnp.asarray(PUBLISHED_PX_DEG)), 2)
    start = target.model.from_real(vector)

    def with_variances(variances_deg2: Float[Array, " number"]) -> Model:
        return start.with_parameters({"epsilon": variances_deg2[:2], "xi": variances_deg2[2:]})

    def log_density(variances_px2: Float[Array, " number"]) -> tuple[Float[Array, ""], Array]:
        positive = variances_px2 > 0
        at = with_variances(jnp.where(positive, variances_px2, 1.0) * px2)
        log_policy = policy_log_probability(at, target.steps)
        value = given_gamma(log_policy, gamma, target.steps.real) + at.log_prior()
        # Off the allowed range the density is zero and has no slope: a trajectory passes straight through it.
        return jnp.where(positive.all(), value, -jnp.inf), log_policy

    def one(at: tuple[Array, Array], item: tuple[PRNGKeyArray, Array]) -> tuple[tuple[Array, Array], tuple]:
        own, step_sizes = item  # zero for the numbers that stay
        end = trajectory(own, log_density, at[0], step_sizes, jnp.ones(VARIANCES), steps)
        return (end.position, end.extra), (end.acceptance_rate, end.diverging)

    steps = jnp.where(stage.looks, 0, PAPER_STEPS)
    step_sizes = jnp.kron(jnp.diag(jnp.asarray(PAPER_STEP_SIZES)), jnp.ones(2))
    before = jnp.concatenate([start.parameters["epsilon"], start.parameters["xi"]]) / px2
    first = before, jnp.zeros((*target.steps.real.shape, 2))
    (after, log_policy), (acceptance_rate, diverging) = lax.scan(one, first, (jax.random.split(key), step_sizes))
    whole = jnp.concatenate([jnp.log(after * px2), vector[VARIANCES:]])
    return Moved(whole, log_policy, jnp.mean(acceptance_rate), jnp.any(diverging), 2 * (steps + 1))


# --- Hamiltonian trajectories --------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """Where a trajectory left the chain: at its end, or where it began if the end was rejected."""

    position: Float[Array, " number"]
    extra: Any  # what the density gives beside its value
    acceptance_rate: Float[Array, ""]
    diverging: Bool[Array, ""]


class _Point(NamedTuple):
    position: Float[Array, " number"]
    log_density: Float[Array, ""]
    slope: Float[Array, " number"]
    extra: Any


def trajectory(
    key: PRNGKeyArray,
    log_density: Callable[[Float[Array, " number"]], tuple[Float[Array, ""], Any]],
    position: Float[Array, " number"],
    step_size: Float[Array, "*number"],
    inverse_mass: Float[Array, " number"],
    steps: Int[Array, ""],
) -> Ended:
    """The end of a trajectory of `steps` leapfrog steps from `position` with a Gaussian momentum, if accepted.

    What BlackJAX's kernel does, but the density stands here once, in a loop whose first round only looks: compiling it
    takes longer than most chains run, and BlackJAX's has it twice.
    """
    for_momentum, for_decision = jax.random.split(key)
    momentum = jax.random.normal(for_momentum, position.shape, jnp.float64) / jnp.sqrt(inverse_mass)

    def look(position: Float[Array, " number"]) -> _Point:
        (value, extra), slope = jax.value_and_grad(log_density, has_aux=True)(position)
        return _Point(position, value, slope, extra)

    def leap(index: Array, state: tuple[_Point, Array, _Point]) -> tuple[_Point, Array, _Point]:
        point, momentum, start = state
        time = jnp.where(index == 0, 0.0, step_size)
        halfway = momentum + 0.5 * time * point.slope
        after = look(point.position + time * inverse_mass * halfway)
        start = jax.tree.map(lambda new, old: jnp.where(index == 0, new, old), after, start)
        return after, jnp.where(index == 0, momentum, halfway + 0.5 * time * after.slope), start

    def energy(point: _Point, momentum: Array) -> Float[Array, ""]:
        return 0.5 * jnp.sum(inverse_mass * momentum**2) - point.log_density

    shapes = jax.eval_shape(look, position)
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)._replace(position=position)
    end, last, start = lax.fori_loop(0, steps + 1, leap, (blank, momentum, blank))
    gained = energy(end, last) - energy(start, momentum)
    gained = jnp.where(jnp.isnan(gained), jnp.inf, gained)
    acceptance_rate = jnp.minimum(jnp.exp(-gained), 1.0)
    accepted = jax.random.bernoulli(for_decision, acceptance_rate)
    left = jax.tree.map(lambda new, old: jnp.where(accepted, new, old), end, start)
    return Ended(left.position, left.extra, acceptance_rate, gained > DIVERGENCE)
