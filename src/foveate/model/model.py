"""The model: policies and a choice rule composed into one conditional density over the cells of the grid.

    p(z_t | history) = sum_k  choice_k(history)  weight_k(z_t) / sum_z weight_k(z)          (Eq. 5)

Everything else, likelihood, simulation, scores, figures, reads that map.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.scipy.special import logsumexp
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError, some_of
from foveate.model.choices import Choice
from foveate.model.durations import Durations
from foveate.model.history import Array, History, Picture
from foveate.model.order import check_order, in_order, log_mass_in_order
from foveate.model.parts import duration_readers, every_part, number_labels, own_parameters, parameters_of, with_values
from foveate.model.policies import Policy
from foveate.model.priors import Prior
from foveate.precision import double_precision

# Every model draws this many fixations of a path from the map (Eq. 8); scores start with the next one.
DRAWN_FROM_MAP = 2


class Model(eqx.Module):
    """K policies, a choice rule among them, perhaps how long fixations last, and a prior for every parameter.

    Parameters are fields of the parts; fields of one name are one parameter. A model is frozen: `with_parameters`
    gives another one.
    """

    policies: tuple[Policy, ...]
    choice: Choice
    priors: dict[str, Prior]
    name: str = eqx.field(static=True)
    ordered: bool = eqx.field(static=True, default=False)  # the prior allows epsilon below xi only, on both axes
    durations: Durations | None = None  # how long fixations last; None: nothing is said of it

    def __check_init__(self):
        """Refuse parts that do not fit together."""
        if self.choice.policies != len(self.policies):
            raise InputError(
                f"model {self.name!r}: {type(self.choice).__name__} chooses among {self.choice.policies} policies, "
                f"but there are {len(self.policies)}."
            )
        if self.ordered:
            check_order(self.name, self.priors)
        if self.durations is not None and self.durations.looks_ahead:
            reading = duration_readers(*self._outermost)
            if reading:
                raise InputError(
                    f"model {self.name!r}: durations depend on the next saccade, and the next saccade on the duration "
                    f"({some_of(reading)}); leave one of the two out."
                )
        values: dict[str, Array] = {}
        for part in self._outermost:
            for name, value in parameters_of(part):
                known = values.setdefault(name, value)
                traced = isinstance(known, Tracer) or isinstance(value, Tracer)
                if not traced and not np.array_equal(known, value):
                    raise InputError(
                        f"model {self.name!r}: {name} is {np.asarray(known)} in one part and {np.asarray(value)} in "
                        "another; fields of one name are one parameter and must be equal."
                    )
        for name, labels in self.labels_of.items():
            if len(labels) != np.size(values[name]):
                raise InputError(
                    f"model {self.name!r}: {name} has {np.size(values[name])} numbers and {len(labels)} labels; the "
                    "part's `labels` must name each."
                )
        if set(values) != set(self.priors):
            wrong = sorted(set(values) ^ set(self.priors))
            raise InputError(f"model {self.name!r}: priors and parameters do not match in {some_of(wrong)}.")
        for name, value in values.items():
            pattern = self.priors[name].pattern
            if pattern not in ((), np.shape(value)):
                raise InputError(
                    f"model {self.name!r}: the prior of {name} has shape {pattern}, the parameter {np.shape(value)}; "
                    "give it one number, or as many as the parameter has."
                )

    def __repr__(self) -> str:
        """The model's name and parameter values, in a line."""

        def words(value: Array) -> str:
            if isinstance(value, Tracer):
                return "traced"
            return np.array2string(np.asarray(value), precision=4, separator=", ")

        return f"Model({', '.join([repr(self.name), *(f'{k}={words(v)}' for k, v in self.parameters.items())])})"

    @property
    def parameters(self) -> dict[str, Array]:
        """The value of every parameter by name, in the order of the parts."""
        return {name: value for part in self._outermost for name, value in parameters_of(part)}

    @property
    def labels_of(self) -> dict[str, list[str]]:
        """For every parameter a label for each of its numbers: 'epsilon' has 'epsilon_row' and 'epsilon_column'."""
        labels: dict[str, list[str]] = {name: [] for name in self.parameters}
        for part in self.parts:
            for name, value in own_parameters(part):
                labels[name] = part.labels(name) if isinstance(part, Choice | Durations) else number_labels(name, value)
        return labels

    @property
    def labels(self) -> list[str]:
        """A label for every number in the parameters: 'epsilon_row', 'epsilon_column', ..., 'b'."""
        return [label for labels in self.labels_of.values() for label in labels]

    @property
    def memory(self) -> int:
        """How many past fixations the model looks at (at least the two that every history carries)."""
        return max(DRAWN_FROM_MAP, *(getattr(part, "memory", 1) for part in self.parts))

    @property
    def policy_names(self) -> list[str]:
        """The class of every policy, of a modulated one that of the policy itself; a second one has a 2 behind it."""
        names: list[str] = []
        for policy in self.policies:
            name = type(policy.base).__name__
            before = sum(type(it.base).__name__ == name for it in self.policies[: len(names)])
            names.append(f"{name}{before + 1}" if before else name)
        return names

    @property
    def reads_durations(self) -> bool:
        """Whether durations matter to any part."""
        return self.durations is not None or bool(duration_readers(*self._outermost))

    @property
    def parts(self) -> list[eqx.Module]:
        """The policies, the choice rule and the durations, and all parts that they hold."""
        return list(every_part(*self._outermost))

    @property
    def _outermost(self) -> tuple[Policy | Choice | Durations, ...]:
        return (*self.policies, self.choice, *(() if self.durations is None else (self.durations,)))

    def with_parameters(self, values: Mapping[str, Any]) -> "Model":
        """The same model with other values for some of its parameters."""
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise InputError(
                f"model {self.name!r} has no parameter {some_of(unknown)}; it has {some_of(list(self.parameters))}."
            )
        policies = tuple(with_values(policy, values) for policy in self.policies)
        durations = None if self.durations is None else with_values(self.durations, values)
        return replace(self, policies=policies, choice=with_values(self.choice, values), durations=durations)

    def with_priors(self, priors: Mapping[str, Prior]) -> "Model":
        """The same model with other priors for some of its parameters."""
        return replace(self, priors=self.priors | dict(priors))

    # --- the density -------------------------------------------------------------------------------------------

    @double_precision
    def log_density(self, history: History, picture: Picture) -> Float[Array, "row column"]:
        """Log-probability of every cell being fixated next: the one definition that everything else reads."""
        self._check_memory(history)
        return _log_density(self, history, picture)

    @double_precision
    def policy_log_densities(self, history: History, picture: Picture) -> Float[Array, "policy row column"]:
        """The normalised log-density of each policy alone."""
        self._check_memory(history)
        return _policy_log_densities(self, history, picture)

    def _check_memory(self, history: History) -> None:
        held = history.saliency.shape[-1]
        if held < self.memory:
            raise InputError(
                f"model {self.name!r} looks {self.memory} fixations back, the history holds {held}: make it with "
                f"History.of(..., memory={self.memory})."
            )

    # --- priors and the real line ------------------------------------------------------------------------------

    @double_precision
    def log_prior(self) -> Float[Array, ""]:
        """Log prior density of the model's present parameter values."""
        values = self.parameters
        density = sum((self.priors[name].log_density(value) for name, value in values.items()), jnp.zeros(()))
        if not self.ordered:
            return density
        return jnp.where(in_order(values), density - log_mass_in_order(self.priors), -jnp.inf)

    @double_precision
    def draw_from_prior(self, key: PRNGKeyArray) -> "Model":
        """The model with parameters drawn from the priors."""
        items = self.parameters.items()

        def draw(key: PRNGKeyArray) -> dict[str, Array]:
            keys = jax.random.split(key, max(len(items), 1))
            pairs = zip(items, keys, strict=False)
            return {name: self.priors[name].sample(k, np.shape(value)) for (name, value), k in pairs}

        def again(state: tuple[PRNGKeyArray, dict[str, Array]]) -> tuple[PRNGKeyArray, dict[str, Array]]:
            for_next, key = jax.random.split(state[0])
            return for_next, draw(key)

        values = draw(key)
        if self.ordered:
            values = lax.while_loop(lambda state: ~in_order(state[1]), again, (key, values))[1]
        return self.with_parameters(values)

    @double_precision
    def to_real(self) -> Float[Array, " number"]:
        """The parameters as one vector on the real line (logs of variances, log-odds of probabilities)."""
        numbers = [jnp.ravel(self.priors[name].to_real(value)) for name, value in self.parameters.items()]
        return jnp.concatenate([*numbers, jnp.zeros(0)])

    @double_precision
    def from_real(self, vector: Float[Array, " number"]) -> "Model":
        """The model whose parameters have this vector on the real line."""
        return self.with_parameters(
            {name: self.priors[name].from_real(part) for name, part in self._parts(vector).items()}
        )

    @double_precision
    def log_jacobian(self, vector: Float[Array, " number"]) -> Float[Array, ""]:
        """Log-density change from parameters to their vector on the real line."""
        parts = self._parts(vector).items()
        return sum((self.priors[name].log_jacobian(part) for name, part in parts), jnp.zeros(()))

    def _parts(self, vector: Float[Array, " number"]) -> dict[str, Array]:
        parts, start = {}, 0
        for name, value in self.parameters.items():
            size = int(np.size(value))
            parts[name] = jnp.reshape(vector[start : start + size], np.shape(value))
            start += size
        return parts


def policy_log_densities(model: Model, history: History, picture: Picture) -> Float[Array, "policy row column"]:
    """`Model.policy_log_densities` for use inside compiled functions."""
    weights = jnp.stack(
        [jnp.broadcast_to(policy.log_weight(history, picture), picture.grid.shape) for policy in model.policies]
    )
    # With a tiny variance all weights are around -1e8: without this shift the sum of the map would be one to 1e-8 only.
    weights -= lax.stop_gradient(weights.max(axis=(1, 2), keepdims=True))
    return weights - logsumexp(weights, axis=(1, 2), keepdims=True)


def mixture_log_density(model: Model, history: History, picture: Picture) -> Float[Array, "row column"]:
    """`Model.log_density` for use inside compiled functions."""
    densities = policy_log_densities(model, history, picture)
    mixture = mix(model.choice.log_probabilities(history, picture)[:, None, None], densities, axis=0)
    from_map = picture.log_saliency - jnp.log(jnp.sum(picture.saliency))  # maps sum to one, but not to the last digit
    return jnp.where(history.count < DRAWN_FROM_MAP, from_map, mixture)


def mix(choice: Float[Array, "..."], densities: Float[Array, "..."], axis: int) -> Float[Array, "..."]:
    """Log of the sum over policies of choice times density; a single policy passes as it is."""
    if densities.shape[axis] == 1:
        return jnp.squeeze(densities, axis)
    terms = choice + densities
    if densities.shape[axis] == 2:
        return jnp.logaddexp(jnp.take(terms, 0, axis), jnp.take(terms, 1, axis))
    # Where no policy goes the result is minus infinity, and its derivative zero: that of the sum would be none.
    possible = jnp.isfinite(jnp.max(terms, axis, keepdims=True))
    summed = logsumexp(jnp.where(possible, terms, 0.0), axis=axis)
    return jnp.where(jnp.squeeze(possible, axis), summed, -jnp.inf)


_log_density = eqx.filter_jit(mixture_log_density)
_policy_log_densities = eqx.filter_jit(policy_log_densities)
