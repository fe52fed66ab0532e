"""Choice rules: the log-probability of each policy of a model, given the history.

To add one: a final class with its parameters as fields and `log_probabilities`, and one row in tests/contracts.
"""

from abc import abstractmethod
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from foveate.errors import InputError, some_of
from foveate.model.features import FEATURES, memory_of
from foveate.model.history import Array, History, Picture
from foveate.model.parts import number_labels
from foveate.model.policies import as_float64

# A ratio of saliencies stays finite on a map with empty cells: the local policy can step on one.
SMALLEST_SALIENCY = 1e-300


def check_number(name: str, value: Array) -> None:
    """Refuse what is not a single number; also while it is being traced."""
    if value.shape != ():
        raise InputError(f"{name} has shape {value.shape}: give one number.")


class Choice(eqx.Module):
    """How one policy is chosen among those of a model."""

    @property
    def memory(self) -> int:
        """How many past fixations it looks at."""
        return 1

    @property
    @abstractmethod
    def policies(self) -> int:
        """How many policies there are to choose from."""

    @property
    def reads_duration(self) -> bool:
        """Whether it depends on how long the present fixation lasts."""
        return False

    def labels(self, parameter: str) -> list[str]:
        """A label for every number of a parameter."""
        return number_labels(parameter, getattr(self, parameter))

    @abstractmethod
    def log_probabilities(self, history: History, picture: Picture) -> Float[Array, " policy"]:
        """Log-probability of each policy, in the model's order; they sum to one."""


@final
class OnlyPolicy(Choice):
    """There is a single policy."""

    @property
    def policies(self) -> int:
        """One."""
        return 1

    def log_probabilities(self, history: History, picture: Picture) -> Float[Array, " policy"]:
        """Log 1."""
        return jnp.zeros(1)


@final
class FixedChoice(Choice):
    """The first of two policies with probability rho, always."""

    rho: Float[Array, ""] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse what is not a probability, unless it is being traced."""
        check_number("rho", self.rho)
        if not isinstance(self.rho, Tracer) and not 0 < float(self.rho) < 1:
            raise InputError(f"rho = {float(self.rho):g}: a probability between 0 and 1 is needed, without the ends.")

    @property
    def policies(self) -> int:
        """Two."""
        return 2

    def log_probabilities(self, history: History, picture: Picture) -> Float[Array, " policy"]:
        """Log rho and log (1 - rho)."""
        return jnp.stack([jnp.log(self.rho), jnp.log1p(-self.rho)])


class LogisticChoice(Choice):
    """The first of two policies with probability sigmoid(b (x_t - s0)), x_t a feature of the history (Eqs. 6, 7)."""

    b: eqx.AbstractVar[Float[Array, ""]]
    s0: eqx.AbstractVar[Float[Array, ""]]

    @abstractmethod
    def feature(self, history: History, picture: Picture) -> Float[Array, ""]:
        """x_t."""

    def __check_init__(self):
        """Refuse numbers that are not finite, unless they are being traced."""
        for name in ("b", "s0"):
            value = getattr(self, name)
            check_number(name, value)
            if not isinstance(value, Tracer) and not np.isfinite(value):
                raise InputError(f"{name} = {value}: a finite number is needed.")

    @property
    def policies(self) -> int:
        """Two."""
        return 2

    def log_probabilities(self, history: History, picture: Picture) -> Float[Array, " policy"]:
        """Log sigmoid(f) and log sigmoid(-f), f = b (x_t - s0)."""
        f = self.b * (self.feature(history, picture) - self.s0)
        return jnp.stack([jax.nn.log_sigmoid(f), jax.nn.log_sigmoid(-f)])


@final
class SaliencyRatioChoice(LogisticChoice):
    """The full model's: x_t = s_{t-1} / s_{t-2}, the saliency here relative to that of the fixation before (Eq. 7)."""

    @property
    def memory(self) -> int:
        """Two fixations."""
        return 2

    b: Float[Array, ""] = eqx.field(converter=as_float64)
    s0: Float[Array, ""] = eqx.field(converter=as_float64)

    def feature(self, history: History, picture: Picture) -> Float[Array, ""]:
        """s_{t-1} / s_{t-2}."""
        return jnp.asarray(history.saliency)[0] / jnp.maximum(history.saliency[1], SMALLEST_SALIENCY)


@final
class SaliencyLevelChoice(LogisticChoice):
    """Local Choice: x_t = H W s_{t-1}, the saliency here relative to uniform; b and s0 mean the same on any grid.

    The paper has s_{t-1} itself (Eq. 9), a probability per cell of its 64 x 64 grid: its b is 4096 times ours, its s0
    ours divided by 4096.
    """

    b: Float[Array, ""] = eqx.field(converter=as_float64)
    s0: Float[Array, ""] = eqx.field(converter=as_float64)

    def feature(self, history: History, picture: Picture) -> Float[Array, ""]:
        """H W s_{t-1}."""
        return picture.grid.cells * jnp.asarray(history.saliency)[0]


@final
class SoftmaxChoice(Choice):
    """One of K policies by a softmax: log-odds against the first one that are linear in features of the history,
    base_k + sum_f slopes_kf x_f.

    `among` names the policies in the model's order, `features` some of `features.FEATURES`; none is allowed.
    """

    among: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    features: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    base: Float[Array, " policy"] = eqx.field(converter=as_float64)
    slopes: Float[Array, "policy feature"] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse unknown features and coefficients that do not fit them."""
        unknown = [name for name in self.features if name not in FEATURES]
        if unknown:
            raise InputError(f"no feature {some_of(unknown)} of the history; there are {some_of(list(FEATURES), 10)}.")
        if len(set(self.among)) < len(self.among) or len(self.among) < 2:
            raise InputError(f"among = {self.among}: name two policies or more, each once.")
        wanted = {"base": (len(self.among) - 1,), "slopes": (len(self.among) - 1, len(self.features))}
        for name, shape in wanted.items():
            value = getattr(self, name)
            if value.shape != shape:
                raise InputError(f"{name} has shape {value.shape}: {len(self.among)} policies and "
                                 f"{len(self.features)} features need {shape}.")  # fmt: skip
            if not isinstance(value, Tracer) and not np.isfinite(value).all():
                raise InputError(f"{name} = {np.asarray(value)}: finite numbers are needed.")

    @property
    def policies(self) -> int:
        """As many as are named."""
        return len(self.among)

    @property
    def reads_duration(self) -> bool:
        """If duration is among the features."""
        return "duration" in self.features

    @property
    def memory(self) -> int:
        """As far as the features do."""
        return memory_of(self.features)

    def labels(self, parameter: str) -> list[str]:
        """'base_global', 'slope_global_amplitude', ..."""
        others = self.among[1:]
        if parameter == "base":
            return [f"base_{name}" for name in others]
        return [f"slope_{name}_{feature}" for name in others for feature in self.features]

    def log_probabilities(self, history: History, picture: Picture) -> Float[Array, " policy"]:
        """Log-softmax of the log-odds."""
        values = [FEATURES[name](history, picture) for name in self.features]
        odds = self.base + (self.slopes @ jnp.stack(values) if values else 0.0)
        return jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1), odds]))
