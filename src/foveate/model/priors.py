"""Prior distributions of parameters: log-density, draws, and the map to the whole real line.

Each holds arrays that broadcast against its parameter, so one prior serves both axes of a pair of variances.
"""

from abc import abstractmethod
from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.scipy import stats
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.model.history import Array
from foveate.model.policies import as_float64


def _positive(owner: eqx.Module, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, Tracer) and not (np.isfinite(value) & (np.asarray(value) > 0)).all():
            raise InputError(f"{type(owner).__name__} prior: {name} = {value}; it must be positive and finite.")


class Prior(eqx.Module):
    """A distribution over one parameter; the components of a pair are independent."""

    @property
    def pattern(self) -> tuple[int, ...]:
        """The shape of the prior's own numbers: () if one serves all components of the parameter."""
        return np.broadcast_shapes(*(np.shape(leaf) for leaf in jax.tree.leaves(self)))

    @abstractmethod
    def log_density(self, value: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Log-density of the parameter, summed over its components."""

    @abstractmethod
    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """A draw of this shape."""

    @abstractmethod
    def to_real(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The parameter mapped one-to-one to the real line."""

    @abstractmethod
    def from_real(self, real: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The inverse of `to_real`."""

    @abstractmethod
    def log_jacobian(self, real: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Log |d from_real / d real|, summed: added to the log-density, it gives the density of the real value."""


@final
class Normal(Prior):
    """N(mean, variance), on the real line."""

    mean: Float[Array, "..."] = eqx.field(converter=as_float64)
    variance: Float[Array, "..."] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse a mean that is no number and a variance that is not positive."""
        if not isinstance(self.mean, Tracer) and not np.isfinite(self.mean).all():
            raise InputError(f"Normal prior: mean = {self.mean}; it must be finite.")
        _positive(self, "variance")

    def log_density(self, value: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Of the Gaussian."""
        return stats.norm.logpdf(value, self.mean, jnp.sqrt(self.variance)).sum()

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """A Gaussian draw."""
        return self.mean + jnp.sqrt(self.variance) * jax.random.normal(key, shape)

    def to_real(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The value itself."""
        return jnp.asarray(value)

    def from_real(self, real: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """The value itself."""
        return jnp.asarray(real)

    def log_jacobian(self, real: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Zero."""
        return jnp.zeros(())


class PositivePrior(Prior):
    """A distribution over positive numbers; its real line is that of the logarithm."""

    def to_real(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log value."""
        return jnp.log(value)

    def from_real(self, real: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Exp real."""
        return jnp.exp(real)

    def log_jacobian(self, real: Float[Array, "*shape"]) -> Float[Array, ""]:
        """The sum of the real values."""
        return jnp.sum(real)


@final
class InverseGamma(PositivePrior):
    """IG(shape, scale): density proportional to v^(-shape - 1) exp(-scale / v)."""

    shape: Float[Array, "..."] = eqx.field(converter=as_float64)
    scale: Float[Array, "..."] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse parameters that are not positive."""
        _positive(self, "shape", "scale")

    def log_density(self, value: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Of the inverse Gamma."""
        normaliser = self.shape * jnp.log(self.scale) - jax.scipy.special.gammaln(self.shape)
        return jnp.sum(normaliser - (self.shape + 1) * jnp.log(value) - self.scale / value)

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """The scale divided by a Gamma draw."""
        # On the log scale: with the released shape of 0.2, Gamma draws come close to underflow.
        log_gamma = jax.random.loggamma(key, jnp.broadcast_to(self.shape, shape))
        return jnp.exp(jnp.log(self.scale) - log_gamma)


@final
class LogNormal(PositivePrior):
    """The logarithm is Gaussian around log(median) with standard deviation `spread`."""

    median: Float[Array, "..."] = eqx.field(converter=as_float64)
    spread: Float[Array, "..."] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse parameters that are not positive."""
        _positive(self, "median", "spread")

    def log_density(self, value: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Of the log-normal."""
        return jnp.sum(stats.norm.logpdf(jnp.log(value), jnp.log(self.median), self.spread) - jnp.log(value))

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """The exponential of a Gaussian draw."""
        return self.median * jnp.exp(self.spread * jax.random.normal(key, shape))


@final
class Beta(Prior):
    """Beta(first, second) over a probability; its real line is that of the log-odds."""

    first: Float[Array, "..."] = eqx.field(converter=as_float64)
    second: Float[Array, "..."] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse parameters that are not positive."""
        _positive(self, "first", "second")

    def log_density(self, value: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Of the Beta."""
        return stats.beta.logpdf(value, self.first, self.second).sum()

    def sample(self, key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[Array, "..."]:
        """A Beta draw."""
        return jax.random.beta(key, self.first, self.second, shape)

    def to_real(self, value: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Log-odds."""
        return jnp.log(value) - jnp.log1p(-value)

    def from_real(self, real: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
        """Sigmoid."""
        return jax.nn.sigmoid(real)

    def log_jacobian(self, real: Float[Array, "*shape"]) -> Float[Array, ""]:
        """Log rho + log (1 - rho)."""
        return jnp.sum(jax.nn.log_sigmoid(real) + jax.nn.log_sigmoid(-real))
