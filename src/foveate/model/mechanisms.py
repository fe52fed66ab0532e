"""Policies beyond the paper: the mechanisms that its Discussion asks for, one small class each.

All weigh places by a power of saliency, s(z)^alpha: with an exponent of 1 it is the map itself, with 0 the picture
does not matter, above 1 the most salient places matter more than the map says. The exponent is one for all policies
of a model, since fields of one name are one parameter: in a trial on potsdam35 (docs/results/wayfarer.md) exponents of
each policy's own predicted no better, and with one the sums over cells are worked out once for all
(`modulated_sums.py`).
"""

from typing import ClassVar, final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from foveate.errors import InputError
from foveate.model.history import Array, History, Picture
from foveate.model.policies import ONE_OR_TWO, Policy, SalientGaussian, as_float64, both_axes, log_power


@final
class SalientLocal(SalientGaussian):
    """Gaze stays near, at what is salient there: s(z)^alpha n(z; z_{t-1}, epsilon)."""

    epsilon: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)
    alpha: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def exponent(self) -> Float[Array, ""]:
        """Alpha."""
        return self.alpha

    @property
    def variances(self) -> Float[Array, "2"]:
        """Epsilon."""
        return both_axes(self.epsilon)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The gaze."""
        return history.gaze


@final
class SalientGlobal(SalientGaussian):
    """Gaze goes to salient places, near ones preferred: s(z)^alpha n(z; z_{t-1}, xi), without a repulsion."""

    xi: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)
    alpha: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def exponent(self) -> Float[Array, ""]:
        """Alpha."""
        return self.alpha

    @property
    def variances(self) -> Float[Array, "2"]:
        """Xi."""
        return both_axes(self.xi)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The gaze."""
        return history.gaze


@final
class HeavyTailedGlobal(Policy):
    """As `SalientGlobal`, but far places are less unlikely than under a Gaussian: a Student-t with nu degrees of
    freedom, (1 + d / nu)^(-(nu + 2) / 2) where d is the squared distance in units of xi."""

    xi: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)
    nu: Float[Array, ""] = eqx.field(converter=as_float64)
    alpha: Float[Array, ""] = eqx.field(converter=as_float64)

    def __check_init__(self):
        """Refuse degrees of freedom that are not positive, unless they are being traced."""
        if not isinstance(self.nu, Tracer) and not np.all(self.nu > 0):
            raise InputError(f"nu = {np.asarray(self.nu)}: degrees of freedom must be a positive number.")

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)^alpha - (nu + 2) / 2 log(1 + d / nu)."""
        rows, columns = both_axes(self.xi)
        away = (picture.y_deg - history.gaze[0]) ** 2 / rows + (picture.x_deg - history.gaze[1]) ** 2 / columns
        return log_power(picture, self.alpha) - (self.nu + 2) / 2 * jnp.log1p(away / self.nu)


@final
class Momentum(SalientGaussian):
    """Gaze carries on along the last saccade: s(z)^alpha n(z; z_{t-1} + kappa (z_{t-1} - z_{t-2}), zeta)."""

    memory: ClassVar[int] = 2

    zeta: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)
    kappa: Float[Array, ""] = eqx.field(converter=as_float64)  # share of the last saccade
    alpha: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def exponent(self) -> Float[Array, ""]:
        """Alpha."""
        return self.alpha

    @property
    def variances(self) -> Float[Array, "2"]:
        """Zeta."""
        return both_axes(self.zeta)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """Ahead of the gaze."""
        return history.gaze + self.kappa * history.last_saccade


@final
class Return(SalientGaussian):
    """Gaze goes back to where it was before: s(z)^alpha n(z; z_{t-2}, eta)."""

    memory: ClassVar[int] = 2

    eta: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)
    alpha: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def exponent(self) -> Float[Array, ""]:
        """Alpha."""
        return self.alpha

    @property
    def variances(self) -> Float[Array, "2"]:
        """Eta."""
        return both_axes(self.eta)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The fixation before."""
        return history.position_deg[1]


@final
class CentreBias(SalientGaussian):
    """Gaze goes to the middle of the picture, whatever it shows: n(z; middle, tau)."""

    tau: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)

    @property
    def exponent(self) -> None:
        """None."""
        return None

    @property
    def variances(self) -> Float[Array, "2"]:
        """Tau."""
        return both_axes(self.tau)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The middle of the picture."""
        extent = picture.grid.extent
        return jnp.asarray([extent.height_deg / 2, extent.width_deg / 2])


@final
class Uniform(SalientGaussian):
    """Gaze may go anywhere: a floor under the other policies."""

    @property
    def exponent(self) -> None:
        """None."""
        return None

    @property
    def variances(self) -> Float[Array, "2"]:
        """Without bounds: the Gaussian is flat."""
        return jnp.full(2, jnp.inf)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The gaze, as any place would do."""
        return history.gaze
