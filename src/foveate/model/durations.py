"""How long fixations last: a part of a model beside where gaze goes, with a likelihood and draws of its own.

The duration of a fixation may depend on what a choice may depend on, and on the saccade that ends it. Both cannot be
had at once: a choice that looks at the present fixation's duration needs it before the next saccade is known. Durations
of zero are not known and left out. So are the first one of a path, before which nothing was seen, and the last one,
which the end of the recording cut off. The next saccade reaches to the centre of the cell that is fixated next, as
models have it.
"""

from abc import abstractmethod
from typing import final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy import stats
from jaxtyping import Float

from foveate.errors import InputError, some_of
from foveate.model.features import FEATURES, amplitude_feature, memory_of
from foveate.model.history import Array, History, Picture
from foveate.model.policies import as_float64

NEXT_AMPLITUDE = "next_amplitude"
KNOWN = (*(name for name in FEATURES if name != "duration"), NEXT_AMPLITUDE)


class Durations(eqx.Module):
    """A distribution of the present fixation's duration."""

    @property
    @abstractmethod
    def looks_ahead(self) -> bool:
        """Whether it depends on the next saccade."""

    @abstractmethod
    def labels(self, parameter: str) -> list[str]:
        """A label for every number of a parameter."""

    @abstractmethod
    def log_density(
        self, seconds: Float[Array, ""], history: History, picture: Picture, next_deg: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Log-density per second; `next_deg` is the amplitude of the next saccade."""

    @abstractmethod
    def draw(
        self, normal: Float[Array, ""], history: History, picture: Picture, next_deg: Float[Array, ""]
    ) -> Float[Array, ""]:
        """A duration in seconds, from a standard normal number."""


@final
class LogNormalDurations(Durations):
    """log d ~ N(level + sum_f effects_f x_f, sigma^2), d in seconds, x_f features of the history.

    `features` are some of `KNOWN`; none is allowed.
    """

    features: tuple[str, ...] = eqx.field(static=True, converter=tuple)
    level: Float[Array, ""] = eqx.field(converter=as_float64)
    effects: Float[Array, " feature"] = eqx.field(converter=as_float64)
    sigma: Float[Array, ""] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse unknown features, and numbers that do not fit them."""
        unknown = [name for name in self.features if name not in KNOWN]
        if unknown:
            raise InputError(f"no feature {some_of(unknown)} for durations; there are {some_of(KNOWN, 10)}.")
        if self.effects.shape != (len(self.features),):
            raise InputError(
                f"effects has shape {self.effects.shape}: {len(self.features)} features need ({len(self.features)},)."
            )
        if not isinstance(self.sigma, Tracer) and not np.all(self.sigma > 0):
            raise InputError(f"sigma = {np.asarray(self.sigma)}: a standard deviation must be a positive number.")

    @property
    def looks_ahead(self) -> bool:
        """If the next amplitude is among the features."""
        return NEXT_AMPLITUDE in self.features

    def labels(self, parameter: str) -> list[str]:
        """'level', 'effect_saliency', ..., 'sigma'."""
        return [f"effect_{name}" for name in self.features] if parameter == "effects" else [parameter]

    @property
    def memory(self) -> int:
        """As far back as the features look."""
        return memory_of(self.features)

    def mean_log(self, history: History, picture: Picture, next_deg: Float[Array, ""]) -> Float[Array, ""]:
        """Mean of the logarithm."""
        values = [
            amplitude_feature(next_deg) if name == NEXT_AMPLITUDE else FEATURES[name](history, picture)
            for name in self.features
        ]
        return self.level + (self.effects @ jnp.stack(values) if values else 0.0)

    def log_density(
        self, seconds: Float[Array, ""], history: History, picture: Picture, next_deg: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Of the log-normal."""
        log_seconds = jnp.log(seconds)
        return stats.norm.logpdf(log_seconds, self.mean_log(history, picture, next_deg), self.sigma) - log_seconds

    def draw(
        self, normal: Float[Array, ""], history: History, picture: Picture, next_deg: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Of the log-normal."""
        return jnp.exp(self.mean_log(history, picture, next_deg) + self.sigma * normal)


def amplitude_deg(saccade_deg: Float[Array, "2"]) -> Float[Array, ""]:
    """The length of a saccade; its derivative is never asked for."""
    return jnp.sqrt(jnp.sum(saccade_deg * saccade_deg))
