"""Policies beyond the paper: the mechanisms that its Discussion asks for, one small class each.

All weigh places by a power of saliency, s(z)^alpha: with an exponent of 1 it is the map itself, with 0 the picture
does not matter, above 1 the most salient places matter more than the map says. Each policy has an exponent of its own,
since fields of one name are one parameter.
"""

from typing import ClassVar, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from foveate.errors import InputError
from foveate.model.history import Array, History, Picture
from foveate.model.policies import VARIANCES, Policy, as_float64, log_gaussian


def salient(picture: Picture, exponent: Float[Array, ""]) -> Float[Array, "*cells"]:
    """Log s(z)^exponent; a cell without saliency has no weight, whatever the exponent."""
    positive = picture.saliency > 0
    return jnp.where(positive, exponent * jnp.log(jnp.where(positive, picture.saliency, 1.0)), -jnp.inf)


@final
class SalientLocal(Policy):
    """Gaze stays near, at what is salient there: s(z)^alpha_local n(z; z_{t-1}, epsilon)."""

    epsilon: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    alpha_local: Float[Array, ""] = eqx.field(converter=as_float64)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha_local + log n(z; z_{t-1}, epsilon)."""
        return salient(picture, self.alpha_local) + log_gaussian(picture, history.gaze, self.epsilon)


@final
class SalientGlobal(Policy):
    """Gaze goes to salient places, near ones preferred: s(z)^alpha_global n(z; z_{t-1}, xi), without a repulsion."""

    xi: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    alpha_global: Float[Array, ""] = eqx.field(converter=as_float64)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha_global + log n(z; z_{t-1}, xi)."""
        return salient(picture, self.alpha_global) + log_gaussian(picture, history.gaze, self.xi)


@final
class HeavyTailedGlobal(Policy):
    """As `SalientGlobal`, but far places are less unlikely than under a Gaussian: a Student-t with nu degrees of
    freedom, (1 + d / nu)^(-(nu + 2) / 2) where d is the squared distance in units of xi."""

    xi: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    nu: Float[Array, ""] = eqx.field(converter=as_float64)
    alpha_global: Float[Array, ""] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse degrees of freedom that are not positive, unless they are being traced."""
        if not isinstance(self.nu, Tracer) and not np.all(self.nu > 0):
            raise InputError(f"nu = {np.asarray(self.nu)}: degrees of freedom must be a positive number.")

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha_global - (nu + 2) / 2 log(1 + d / nu)."""
        away = (picture.y_deg - history.gaze[0]) ** 2 / self.xi[0] + (picture.x_deg - history.gaze[1]) ** 2 / self.xi[1]
        return salient(picture, self.alpha_global) - (self.nu + 2) / 2 * jnp.log1p(away / self.nu)


@final
class Momentum(Policy):
    """Gaze carries on along the last saccade: s(z)^alpha_momentum n(z; z_{t-1} + kappa (z_{t-1} - z_{t-2}), zeta)."""

    memory: ClassVar[int] = 2

    zeta: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    kappa: Float[Array, ""] = eqx.field(converter=as_float64)  # share of the last saccade
    alpha_momentum: Float[Array, ""] = eqx.field(converter=as_float64)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha_momentum + log n(z; ahead, zeta)."""
        ahead = history.gaze + self.kappa * history.last_saccade
        return salient(picture, self.alpha_momentum) + log_gaussian(picture, ahead, self.zeta)


@final
class Return(Policy):
    """Gaze goes back to where it was before: s(z)^alpha_return n(z; z_{t-2}, eta)."""

    memory: ClassVar[int] = 2

    eta: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    alpha_return: Float[Array, ""] = eqx.field(converter=as_float64)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha_return + log n(z; z_{t-2}, eta)."""
        return salient(picture, self.alpha_return) + log_gaussian(picture, history.position_deg[1], self.eta)


@final
class CentreBias(Policy):
    """Gaze goes to the middle of the picture, whatever it shows: n(z; middle, tau)."""

    tau: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log n(z; middle, tau)."""
        extent = picture.grid.extent
        return log_gaussian(picture, jnp.asarray([extent.height_deg / 2, extent.width_deg / 2]), self.tau)


@final
class Uniform(Policy):
    """Gaze may go anywhere: a floor under the other policies."""

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Zero."""
        return jnp.zeros(jnp.shape(picture.saliency))
