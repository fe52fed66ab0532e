"""One sweep of the Gibbs sampler: each unknown drawn once, given all the others. For use inside compiled functions."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from foveate.inference import conditionals
from foveate.inference.hmc_within_gibbs import VARIANCES, Scheme, Stage, Tuning, adapted_move, paper_move
from foveate.inference.target import Target
from foveate.model.choices import LogisticChoice
from foveate.model.history import Array
from foveate.model.likelihood import choice_log_probability
from foveate.model.model import Model, mix
from foveate.model.priors import Beta, Normal


class State(NamedTuple):
    """Where a chain is: the parameters on the real line, and what each policy makes of the steps there."""

    vector: Float[Array, " number"]
    log_policy: Float[Array, "path step policy"]
    tuning: Tuning


class Record(NamedTuple):
    """What is kept of a sweep."""

    real: Float[Array, "*sweep number"]
    lp: Float[Array, "*sweep"]  # log posterior density on the real line, gamma summed out, up to the evidence
    acceptance_rate: Float[Array, "*sweep"]
    diverging: Bool[Array, "*sweep"]
    local_share: Float[Array, "*sweep"]  # of the steps, by gamma
    evaluations: Int[Array, "*sweep"]


def begin(target: Target, vector: Float[Array, " number"]) -> State:
    """A chain at its start, which its first sweep must look at."""
    unknown = jnp.zeros((*target.steps.real.shape, len(target.model.policies)))
    return State(jnp.asarray(vector), unknown, Tuning.first())


@eqx.filter_jit
def sweeps(
    target: Target, key: PRNGKeyArray, state: State, stages: Stage, first: Int[Array, ""], scheme: Scheme
) -> tuple[State, Record]:
    """A block of sweeps; what a sweep draws depends on the chain's key and on its own number."""
    x = feature_or_none(target)

    def one(state: State, item: tuple[Array, Stage]) -> tuple[State, Record]:
        number, stage = item
        return sweep(jax.random.fold_in(key, number), target, x, state, stage, scheme)

    return lax.scan(one, state, (first + jnp.arange(len(stages.step_size)), stages))


def feature_or_none(target: Target) -> Float[Array, "path step"] | None:
    """The feature that the choice depends on, if it does on any."""
    choice = target.model.choice
    return conditionals.features(choice, target.steps) if isinstance(choice, LogisticChoice) else None


def sweep(
    key: PRNGKeyArray,
    target: Target,
    x: Float[Array, "path step"] | None,
    state: State,
    stage: Stage,
    scheme: Scheme,
) -> tuple[State, Record]:
    """The chain after each unknown was drawn once given the others, and what is kept of it."""
    for_gamma, for_choice, for_move = jax.random.split(key, 3)
    model, steps = target.model, target.steps
    f = _f(model, state.vector, x)
    log_odds = conditionals.local_log_odds(f, state.log_policy[..., 0], state.log_policy[..., 1])
    gamma = conditionals.draw_gamma(for_gamma, log_odds)
    if x is None:
        choice = draw_rho(for_choice, model, gamma, steps.real)
    else:
        choice = draw_b_and_s0(for_choice, model, state.vector[VARIANCES:], gamma, x, steps.real)
    choice = jnp.where(stage.looks, state.vector[VARIANCES:], choice)
    vector = jnp.concatenate([state.vector[:VARIANCES], choice])
    if scheme == "paper":
        moved, tuning = paper_move(for_move, target, vector, gamma, stage), state.tuning
    else:
        moved, tuning = adapted_move(for_move, target, vector, gamma, state.tuning, stage)
    chosen = choice_log_probability(model.from_real(moved.vector), steps)
    marginal = jnp.where(steps.real, mix(chosen, moved.log_policy, axis=-1), 0.0)
    record = Record(
        real=moved.vector,
        lp=jnp.sum(marginal) + target.log_prior(moved.vector),
        acceptance_rate=moved.acceptance_rate,
        diverging=moved.diverging,
        local_share=jnp.sum(gamma & steps.real) / jnp.sum(steps.real),
        evaluations=moved.evaluations,
    )
    return State(moved.vector, moved.log_policy, tuning), record


def _f(model: Model, vector: Float[Array, " number"], x: Float[Array, "path step"] | None) -> Float[Array, "*step"]:
    """f_t = b (x_t - s0); for a fixed choice the log-odds of rho, which are the number on the real line."""
    if x is None:
        return vector[VARIANCES]
    b, s0 = vector[VARIANCES:]
    return b * (x - s0)


def draw_b_and_s0(
    key: PRNGKeyArray,
    model: Model,
    present: Float[Array, "2"],
    gamma: Bool[Array, "path step"],
    x: Float[Array, "path step"],
    real: Bool[Array, "path step"],
) -> Float[Array, "2"]:
    """omega, then b given s0, then s0 given b; the last two are returned."""
    for_omega, for_b, for_s0 = jax.random.split(key, 3)
    b, s0 = present
    b_prior, s0_prior = model.priors["b"], model.priors["s0"]
    assert isinstance(b_prior, Normal)
    assert isinstance(s0_prior, Normal)
    omega = conditionals.draw_omega(for_omega, b * (x - s0))
    b = conditionals.b_given(gamma, omega, x, s0, b_prior, real).draw(for_b)
    s0 = conditionals.s0_given(gamma, omega, x, b, s0_prior, real).draw(for_s0)
    return jnp.stack([b, s0])


def draw_rho(
    key: PRNGKeyArray, model: Model, gamma: Bool[Array, "path step"], real: Bool[Array, "path step"]
) -> Float[Array, "1"]:
    """The log-odds of rho, drawn given gamma."""
    prior = model.priors["rho"]
    assert isinstance(prior, Beta)
    return conditionals.draw_log_odds(key, conditionals.rho_given(gamma, prior, real))[None]
