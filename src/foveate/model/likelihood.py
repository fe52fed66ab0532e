"""Log-probability of observed steps: the model's map read at the cells that were fixated.

`log_weight` at the fixated cell minus the log of the policy's normaliser. The normaliser is the sum of the same
`log_weight` over all cells, unless a faster way to the same number is registered here; contract tests hold the two
together.
"""

from collections.abc import Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Float

from foveate.errors import InputError, some_of
from foveate.model import modulated_sums
from foveate.model.at_once import log_salient_sum
from foveate.model.durations import Durations, amplitude_deg
from foveate.model.factors import log_weights
from foveate.model.history import Array, History, Picture
from foveate.model.kernels import CANCELLATION, log_nearest, peak
from foveate.model.model import Model, mix
from foveate.model.policies import Global, Local, Policy, RepelledGlobal, StaticSaliency
from foveate.model.repulsion import repelled_sum
from foveate.model.scene import Scene, differentiable_salient_value, log_gaussian_sum
from foveate.model.steps import Steps
from foveate.precision import double_precision
from foveate.threads import on_all_cores

# Parameter sets that are evaluated together.
GROUP = 32

# Steps whose maps are worked out together by the plain way: 64 x 64 cells of four steps are 128 kB.
STEPS_AT_ONCE = 4


def check_model_and_steps(model: Any, steps: Any) -> None:
    """Refuse arguments that are something else or in the wrong order."""
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}: give a Model, such as foveate.named_model('full').")
    if not isinstance(steps, Steps):
        raise InputError(f"steps is a {type(steps).__name__}: give Steps, made with foveate.Steps.of(dataset).")
    if model.reads_durations and not np.any(np.asarray(steps.history.duration_s) > 0):
        raise InputError(
            f"model {model.name!r} needs to know how long fixations lasted, and the data do not say it: name their "
            "column when they are read, or leave durations out of the model."
        )


@double_precision
def step_log_likelihoods(model: Model, steps: Steps) -> Float[Array, "path step"]:
    """Log-probability (nats) of every step; zero in the padding."""
    check_model_and_steps(model, steps)
    return _step_log_likelihoods(model, steps)


@double_precision
def log_likelihood(model: Model, steps: Steps) -> Float[Array, ""]:
    """Log-probability (nats) of all steps together: of where gaze goes, without durations."""
    check_model_and_steps(model, steps)
    return _log_likelihood(model, steps)


@double_precision
def value_and_gradient(model: Model, steps: Steps) -> tuple[Float[Array, ""], dict[str, Array]]:
    """`log_likelihood` and its derivative in every parameter."""
    check_model_and_steps(model, steps)
    return _value_and_gradient(model, steps)


def log_likelihoods(
    model: Model, steps: Steps, parameters: Mapping[str, Float[Array, "set ..."]]
) -> Float[np.ndarray, " set"]:
    """`log_likelihood` of many parameter sets: every parameter by name, with a leading axis over the sets.

    Sets are taken in groups of a fixed size, so that one compilation serves any number of them.
    """
    check_model_and_steps(model, steps)
    values = {name: np.asarray(value, dtype=np.float64) for name, value in parameters.items()}
    if set(values) != set(model.parameters):
        wrong = sorted(set(values) ^ set(model.parameters))
        raise InputError(f"parameters {some_of(wrong)} do not match those of model {model.name!r}.")
    for name, value in values.items():
        shape = np.shape(model.parameters[name])
        if value.ndim != len(shape) + 1 or value.shape[1:] != shape:
            raise InputError(f"{name} has shape {value.shape}: give (sets, {', '.join(map(str, shape))}).")
        with jax.enable_x64(True):
            impossible = ~np.isfinite(np.asarray(model.priors[name].to_real(value)))
        if impossible.any():
            index = int(np.argwhere(impossible)[0][0])
            raise InputError(f"{name} = {value[index]} in set {index}: the parameter cannot have that value.")
    sizes = {value.shape[:1] for value in values.values()}
    if len(sizes) != 1 or sizes == {()}:
        raise InputError("every parameter needs a leading axis over the sets, as long as the others'.")
    (count,) = sizes.pop()
    missing = -count % GROUP
    padded = {name: np.concatenate([value, value[-1:].repeat(missing, 0)]) for name, value in values.items()}
    groups = [
        {name: value[first : first + GROUP] for name, value in padded.items()} for first in range(0, count, GROUP)
    ]
    return np.concatenate(on_all_cores(partial(_log_likelihoods, model, steps), groups))[:count]


@eqx.filter_jit
def _log_likelihoods(model: Model, steps: Steps, parameters: Mapping[str, Array]) -> Float[Array, " set"]:
    # One by one where sums may take another way for each set: side by side every way would be taken for all.
    together = partial(partial, jax.lax.map) if any(map(is_modulated_sum, model.policies)) else jax.vmap
    return together(lambda values: _log_likelihood(model.with_parameters(values), steps))(parameters)


@eqx.filter_jit
def _step_log_likelihoods(model: Model, steps: Steps) -> Float[Array, "path step"]:
    return jnp.where(steps.real, log_probability(model, steps), 0.0)


@eqx.filter_jit
def _log_likelihood(model: Model, steps: Steps) -> Float[Array, ""]:
    return jnp.sum(_step_log_likelihoods(model, steps))


@eqx.filter_jit
def _value_and_gradient(model: Model, steps: Steps) -> tuple[Float[Array, ""], dict[str, Array]]:
    values = {name: jnp.asarray(value) for name, value in model.parameters.items()}
    return jax.value_and_grad(lambda values: _log_likelihood(model.with_parameters(values), steps))(values)


def log_probability(model: Model, steps: Steps) -> Float[Array, "path step"]:
    """Log-probability of every step, also in the padding, for use inside compiled functions."""
    if steps.memory < model.memory:
        raise InputError(
            f"model {model.name!r} looks {model.memory} fixations back, the steps hold {steps.memory}: make them with "
            f"Steps.of(data, memory={model.memory})."
        )
    choice = choice_log_probability(model, steps)
    policies = model.with_parameters(model.parameters).policies  # fields of one name are one object: see `same_factors`
    if all(map(is_modulated_sum, policies)) and modulated_sums.serves_mixture(policies, steps):
        rest = choice + target_log_weights(policies, steps)
        return modulated_sums.log_mixture(policies, rest, steps, partial(plain_log_normalisers, steps=steps))
    return mix(choice, policy_log_probability(model, steps), axis=-1)


def joint_log_density(model: Model, steps: Steps) -> Float[Array, "path step"]:
    """Log-probability of every step, and where the model has durations the log-density of that of the fixation before:
    what is fitted. Scores are of the steps alone."""
    where = log_probability(model, steps)
    if model.durations is None:
        return where
    return where + duration_log_density(model.durations, steps)


def duration_log_density(durations: Durations, steps: Steps) -> Float[Array, "path step"]:
    """For every step the log-density of how long the fixation before it lasted; zero where that is not known."""

    def of_path(history: History, target: Picture, picture_index: Array) -> Float[Array, " step"]:
        picture = steps.picture_of(picture_index)

        def of_step(history: History, target: Picture) -> Float[Array, ""]:
            seconds = jnp.asarray(history.duration_s)[0]
            known = seconds > 0
            next_deg = amplitude_deg(jnp.stack([target.y_deg, target.x_deg]) - history.gaze)
            found = durations.log_density(jnp.where(known, seconds, 1.0), history, picture, next_deg)
            return jnp.where(known, found, 0.0)

        return jax.vmap(of_step)(history, target)

    return jax.vmap(of_path)(steps.history, steps.target, steps.picture)


def choice_log_probability(model: Model, steps: Steps) -> Float[Array, "path step policy"]:
    """Log-probability of each policy at every step, before the step is seen."""

    def of_path(history: History, picture_index: Array):
        picture = steps.picture_of(picture_index)
        return jax.vmap(lambda h: model.choice.log_probabilities(h, picture))(history)

    return jax.vmap(of_path)(steps.history, steps.picture)


def policy_log_probability(model: Model, steps: Steps) -> Float[Array, "path step policy"]:
    """Log-probability of the cell fixated next under each policy alone."""
    model = model.with_parameters(model.parameters)  # fields of one name become one object: see `same_factors`
    sums = log_normalisers(model.policies, steps)
    return target_log_weights(model.policies, steps) - jnp.stack(sums, axis=-1)


def target_log_weights(policies: Sequence[Policy], steps: Steps) -> Float[Array, "path step policy"]:
    """Each policy's log-weight at the cell fixated next; factors that modulate several are worked out once, and so are
    their slopes."""

    def of_step(history: History, target: Picture) -> Float[Array, " policy"]:
        return jnp.stack(log_weights(policies, history, target))

    return jax.vmap(jax.vmap(of_step))(steps.history, steps.target)


# --- normalisers ---------------------------------------------------------------------------------------------------


def log_normalisers(policies: Sequence[Policy], steps: Steps) -> list[Float[Array, "path step"]]:
    """Log of the sum of each policy's weight over all cells, for every step, by the fastest way there is.

    Policies without a way of their own go together: what they have in common, such as factors that modulate each, is
    worked out once.
    """
    scene, by_definition = steps.scene(), partial(plain_log_normalisers, steps=steps)
    modulated = [policy for policy in policies if is_modulated_sum(policy)]
    plain = [policy for policy in policies if not has_fast_normaliser(policy) and not is_modulated_sum(policy)]
    of_modulated = iter(modulated_sums.log_sums(modulated, steps, by_definition))
    of_plain = iter(by_definition(plain) if plain else ())

    def of(policy: Policy) -> Float[Array, "path step"]:
        if has_fast_normaliser(policy):
            return log_normaliser(policy, steps, scene)
        return next(of_modulated if is_modulated_sum(policy) else of_plain)

    return [of(policy) for policy in policies]


def is_modulated_sum(policy: Policy) -> bool:
    """Whether the policy's normaliser is one of the sums in `modulated_sums.py`."""
    return not has_fast_normaliser(policy) and modulated_sums.known(policy)


@singledispatch
def log_normaliser(policy: Policy, steps: Steps, scene: Scene) -> Float[Array, "path step"]:
    """Log of the sum of the policy's weight over all cells, for every step: here by its definition."""
    return plain_log_normaliser(policy, steps)


def has_fast_normaliser(policy: Policy) -> bool:
    """Whether a way to the policy's normaliser is registered that is faster than the plain sum."""
    return log_normaliser.dispatch(type(policy)) is not log_normaliser.dispatch(Policy)


def plain_log_normaliser(policy: Policy, steps: Steps) -> Float[Array, "path step"]:
    """By definition: the log-weight of every cell, summed."""
    return plain_log_normalisers([policy], steps)[0]


def plain_log_normalisers(policies: Sequence[Policy], steps: Steps) -> Float[Array, "policy path step"]:
    """`plain_log_normaliser` of several policies. A few steps at a time, so that their maps stay in a processor's cache
    (a GPU takes a path at a time); maps are worked out again for the gradient."""

    @jax.checkpoint
    def of_step(item: tuple[History, Array]) -> Float[Array, " policy"]:
        history, picture_index = item
        picture = steps.picture_of(picture_index)
        weights = log_weights(policies, history, picture)
        return jnp.stack([logsumexp(jnp.broadcast_to(it, steps.grid.shape)) for it in weights])

    paths, length = steps.real.shape
    history = jax.tree.map(lambda leaf: jnp.reshape(leaf, (paths * length, *leaf.shape[2:])), steps.history)
    pictures = jnp.repeat(jnp.asarray(steps.picture), length)
    found = lax.map(of_step, (history, pictures), batch_size=length if steps.batched else STEPS_AT_ONCE)
    return found.T.reshape(len(policies), paths, length)


@log_normaliser.register
def _(policy: StaticSaliency, steps: Steps, scene: Scene) -> Float[Array, "path step"]:
    totals = jnp.log(jnp.sum(scene.maps, axis=(1, 2)))[scene.picture]
    return jnp.broadcast_to(totals[:, None], steps.real.shape)


@log_normaliser.register
def _(policy: Local, steps: Steps, scene: Scene) -> Float[Array, "path step"]:
    return log_gaussian_sum(scene, policy.variances)


@log_normaliser.register
def _(policy: Global, steps: Steps, scene: Scene) -> Float[Array, "path step"]:
    if scene.batched:
        return log_salient_sum(scene, policy.variances)
    total = differentiable_salient_value(scene, policy.variances)
    least = CANCELLATION * peak(steps.grid, policy.variances)
    # Far from everything salient the sum loses its digits, and then underflows; the definition works on logs.
    return lax.cond(
        jnp.all(total > least),
        lambda: jnp.log(jnp.maximum(total, least)) - log_nearest(steps.grid, scene.gaze, policy.variances),
        lambda: plain_log_normaliser(policy, steps),
    )


@log_normaliser.register
def _(policy: RepelledGlobal, steps: Steps, scene: Scene) -> Float[Array, "path step"]:
    return jnp.log(repelled_sum(scene, policy.xi, policy.repelling))
