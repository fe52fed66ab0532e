"""Factors by which places attract or repel: the one that is being looked at, and those that were.

To add one: a final class with its parameters as fields, `variance`, `count` and `places`, priors, and one row in
tests/contracts.
"""

from abc import abstractmethod
from typing import final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Bool, Float

from foveate.errors import InputError
from foveate.model.factors import Factor
from foveate.model.history import Array, History, Picture
from foveate.model.policies import as_float64


class Places(Factor):
    """Places attract or repel: exp(sum_j strength_j g(z; place_j)), g(z; m) = exp(-|z - m|^2 / (2 variance)). Sums of
    such factors over cells are fast."""

    @property
    @abstractmethod
    def variance(self) -> Float[Array, ""]:
        """In deg^2."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many places there are."""

    @abstractmethod
    def places(self, history: History) -> tuple[Float[Array, " place"], Float[Array, "place 2"]]:
        """How strongly each place attracts, and where it is, (y, x) in degrees."""

    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """The sum."""
        rate, (strength, places) = -0.5 / self.variance, self.places(history)
        down = jnp.square(jnp.ravel(picture.y_deg) - places[:, :1])  # (place, row)
        along = jnp.square(jnp.ravel(picture.x_deg) - places[:, 1:])  # (place, column)
        if down.shape[1] == along.shape[1] == 1:
            found = jnp.sum(strength * jnp.exp(rate * (down + along)[:, 0]))
        else:  # the exponential of a sum is a product
            found = (strength[:, None] * jnp.exp(rate * down)).T @ jnp.exp(rate * along)
        return jnp.reshape(found, jnp.shape(picture.y_deg * picture.x_deg))


@final
class Here(Places):
    """The place that is being looked at attracts or repels: exp(phi g(z; z_{t-1})).

    Negative phi with a small psi: few saccades are as short as the fovea is wide.
    """

    phi: Float[Array, ""] = eqx.field(converter=as_float64)
    psi: Float[Array, ""] = eqx.field(converter=as_float64)  # deg^2

    def __check_init__(self):
        """Refuse a variance that is none, unless it is being traced."""
        if not isinstance(self.psi, Tracer) and not np.all(self.psi > 0):
            raise InputError(f"psi = {np.asarray(self.psi)}: a variance must be a positive number of deg^2.")

    @property
    def variance(self) -> Float[Array, ""]:
        """Psi."""
        return self.psi

    @property
    def count(self) -> int:
        """One."""
        return 1

    def places(self, history: History) -> tuple[Float[Array, "1"], Float[Array, "1 2"]]:
        """Phi, and the gaze."""
        return jnp.asarray(self.phi)[None], history.gaze[None]


class Trail(Places):
    """The places of the fixations before the present one, the latest first, each weaker than the one after it by the
    same factor: strength decay^j, over as many as `span` says. Sums of a trail of any length are as fast as those of
    one place.

    The place that is being looked at is no part of it: `Here` is for that. With both at one place neither could be told
    from a trail that fades at once.
    """

    span: eqx.AbstractVar[int]

    @property
    @abstractmethod
    def strength(self) -> Float[Array, ""]:
        """Of the latest."""

    @property
    @abstractmethod
    def decay(self) -> Float[Array, ""]:
        """By which it fades with every fixation, 0 to 1."""

    @property
    def memory(self) -> int:
        """As many as `span` says, and the present fixation."""
        return self.span + 1

    @property
    def count(self) -> int:
        """As many as `span` says."""
        return self.span

    def there(self, history: History) -> Bool[Array, " place"]:
        """Whether there was such a fixation."""
        return jnp.asarray(np.arange(1, self.span + 1) < history.count)

    def places(self, history: History) -> tuple[Float[Array, " place"], Float[Array, "place 2"]]:
        """How strongly each place attracts, and where it is; what was before the first fixation does not count."""
        strength = jnp.where(self.there(history), self.strength * self.decay ** np.arange(self.span), 0.0)
        return strength, jnp.asarray(history.position_deg)[1 : self.span + 1]


@final
class VisitedBefore(Trail):
    """The places of fixations before the present one attract or repel: exp(mu sum_j lambda^j g(z; z_{t-2-j})),
    j = 0, 1, ..., g(z; m) = exp(-|z - m|^2 / (2 omega)), over as many fixations as `span` says.

    Negative mu is an inhibition of return, positive a facilitation; it decays by lambda with every fixation.
    """

    mu: Float[Array, ""] = eqx.field(converter=as_float64)
    omega: Float[Array, ""] = eqx.field(converter=as_float64)  # deg^2
    lambda_: Float[Array, ""] = eqx.field(converter=as_float64)  # 0 to 1
    span: int = eqx.field(static=True, default=6)

    def __check_init__(self):
        """Refuse a variance or a decay that is none, unless they are being traced."""
        if not isinstance(self.omega, Tracer) and not np.all(self.omega > 0):
            raise InputError(f"omega = {np.asarray(self.omega)}: a variance must be a positive number of deg^2.")
        if not isinstance(self.lambda_, Tracer) and not np.all((self.lambda_ > 0) & (self.lambda_ < 1)):
            raise InputError(f"lambda_ = {np.asarray(self.lambda_)}: the decay must lie between 0 and 1.")
        if isinstance(self.span, bool) or not isinstance(self.span, int) or self.span < 1:
            raise InputError(f"span = {self.span!r}: give a number of fixations, 1 or more.")

    @property
    def variance(self) -> Float[Array, ""]:
        """Omega."""
        return self.omega

    @property
    def strength(self) -> Float[Array, ""]:
        """Mu."""
        return self.mu

    @property
    def decay(self) -> Float[Array, ""]:
        """Lambda."""
        return self.lambda_
