"""Factors: what makes places more or less likely whichever policy decides, as a log-factor per cell.

A policy is modulated by factors, `Modulated(policy, factors)`: its weights are multiplied by theirs before they are
normalised. To add one: a final class with its parameters as fields and `log_factor`, a prior for each parameter where a
model uses it, and one row in tests/contracts. One and the same factor on several policies of a model is one factor,
since fields of one name are one parameter.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Float

from foveate.model.features import LEAST_RELATIVE_SALIENCY, fixation_number
from foveate.model.history import Array, History, Picture
from foveate.model.policies import Policy, as_float64


class Factor(eqx.Module):
    """A factor on the weights of policies."""

    @property
    def memory(self) -> int:
        """How many past fixations it looks at."""
        return 1

    @property
    def reads_duration(self) -> bool:
        """Whether it depends on how long the present fixation lasts; one that does must say so."""
        return False

    @abstractmethod
    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log of the factor on each cell of `picture` (or on its single cell)."""


@final
class Modulated(Policy):
    """A policy whose weights are multiplied by factors."""

    policy: Policy
    factors: tuple[Factor, ...] = eqx.field(converter=tuple)

    @property
    def base(self) -> Policy:
        """The policy without its factors."""
        return self.policy.base

    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """All log-factors together."""
        return sum((factor.log_factor(history, picture) for factor in self.factors), jnp.zeros(()))

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """The policy's log-weight plus all log-factors."""
        return self.policy.log_weight(history, picture) + self.log_factor(history, picture)


def log_weights(policies: Sequence[Policy], history: History, picture: Picture) -> list[Float[Array, "*cells"]]:
    """The log-weights of several policies; factors that modulate several of them are worked out once."""
    known: list[tuple[tuple[Factor, ...], Array]] = []

    def common(policy: Modulated) -> Array:
        for factors, value in known:
            if same_factors(factors, policy.factors):
                return value
        known.append((policy.factors, policy.log_factor(history, picture)))
        return known[-1][1]

    return [
        it.policy.log_weight(history, picture) + common(it)
        if isinstance(it, Modulated)
        else it.log_weight(history, picture)
        for it in policies
    ]


def same_factors(first: tuple[Factor, ...], second: tuple[Factor, ...]) -> bool:
    """Whether factors are of the same kinds with the very same parameters; inside a compiled function values are not
    known, so the parameters must be the same objects, as `Model.with_parameters` makes those of one name."""
    (ones, kind), (others, other_kind) = jax.tree.flatten(first), jax.tree.flatten(second)
    return kind == other_kind and all(one is other for one, other in zip(ones, others, strict=True))


@final
class SaliencyDrift(Factor):
    """The map matters more or less as viewing goes on: s(z)^(delta x), x the standardised log fixation number.

    Negative delta: the first fixations keep closer to the map than later ones.
    """

    delta: Float[Array, ""] = eqx.field(converter=as_float64)

    def exponent(self, history: History, picture: Picture) -> Float[Array, ""]:
        """delta x."""
        return self.delta * fixation_number(history, picture)

    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """delta x log of s(z) relative to uniform."""
        return self.exponent(history, picture) * log_relative_saliency(picture)


def log_relative_saliency(picture: Picture) -> Float[Array, "*cells"]:
    """Log of s(z) relative to uniform, which is never taken to be below a millionth."""
    return jnp.log(jnp.maximum(picture.grid.cells * picture.saliency, LEAST_RELATIVE_SALIENCY))
