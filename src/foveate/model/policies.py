"""Attention policies: each says where gaze would go next, as an unnormalised log-weight per cell.

To add one: a final class with its parameters as fields and `log_weight`, a prior for each parameter where a model
uses it, and one row in tests/contracts. Fields that carry the same name in several parts of a model are one
parameter (the paper's epsilon is both the local policy's spread and the repulsion's). Variances are (row, column)
in deg^2.
"""

from abc import abstractmethod
from dataclasses import fields
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float
from numpy.typing import ArrayLike

from foveate.data.grid import Grid
from foveate.errors import InputError
from foveate.model.history import Array, History, Picture

# The released code repels with a quarter of epsilon's covariance ("cov_ratio" 4; the paper does not mention it).
COVARIANCE_RATIO = 4.0

# Where the repulsion forbids a cell its weight is not zero but this, as in the released code: a picture whose every
# salient cell is forbidden then has the density s instead of 0 / 0. Needs float64: in float32 it is zero.
REPELLED_WEIGHT = 1e-200


def as_float64(value: ArrayLike) -> Array:
    """`value` as a float64 array; arrays inside a compiled function pass as they are."""
    if isinstance(value, Tracer):
        if value.dtype != jnp.float64:
            raise InputError(
                f"a parameter is being traced as {value.dtype}: models compute in float64; put the outermost jax.jit, "
                "grad or vmap into `with jax.enable_x64(True):`."
            )
        return value
    return value if isinstance(value, jax.Array) and value.dtype == jnp.float64 else np.asarray(value, np.float64)


# Marks a field that holds two variances, (row, column), in deg^2, or one that may hold a single one for both axes;
# checked when the policy is made.
VARIANCES: dict[str, tuple[tuple[int, ...], ...]] = {"variances": ((2,),)}
ONE_OR_TWO: dict[str, tuple[tuple[int, ...], ...]] = {"variances": ((2,), ())}


def both_axes(variances: Float[Array, "*axis"]) -> Float[Array, "2"]:
    """(row, column) variances, of a field that may hold one for both."""
    return jnp.broadcast_to(variances, (2,))


class Policy(eqx.Module):
    """Where gaze would go if this policy alone decided; `memory` is how many past fixations it looks at."""

    memory: ClassVar[int] = 1

    @property
    def reads_duration(self) -> bool:
        """Whether it depends on how long the present fixation lasts; one that does must say so."""
        return False

    @property
    def base(self) -> "Policy":
        """The policy itself; that of a modulated policy is the one that its factors modulate."""
        return self

    @abstractmethod
    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log of the unnormalised probability of each cell of `picture` (or of its single cell)."""

    def __check_init__(self):
        """Refuse variances that are not positive, unless they are being traced."""
        for field in fields(self):
            name, value, shapes = field.name, getattr(self, field.name), field.metadata.get("variances")
            if not shapes or isinstance(value, Tracer):
                continue
            if value.shape not in shapes:
                wanted = "two variances, (row, column)" + (", or one for both" if () in shapes else "")
                raise InputError(f"{name} has shape {value.shape}: give {wanted}, in deg^2.")
            if not (np.isfinite(value) & (np.asarray(value) > 0)).all():
                raise InputError(f"{name} = {np.asarray(value)}: variances must be positive numbers of deg^2.")


def axis_gaussian(
    distance_deg: Float[Array, "*cells"], variance_deg2: Float[Array, "*one"], cell_deg: float
) -> Float[Array, "*cells"]:
    """One axis' factor of a Gaussian: density times the cell's side, so the product of both is a mass per cell."""
    # The scalars are worked out first: a division per cell would cost more than its exponential.
    scale, rate = cell_deg / jnp.sqrt(2 * jnp.pi * variance_deg2), -0.5 / variance_deg2
    return scale * jnp.exp(rate * (distance_deg * distance_deg))


def gaussian(picture: Picture, centre: Float[Array, "2"], variances: Float[Array, "2"]) -> Float[Array, "*cells"]:
    """n(z; centre, variances) times the area of a cell, at the centre of each cell."""
    height, width = picture.grid.cell_deg
    rows = axis_gaussian(picture.y_deg - centre[0], variances[0], height)
    columns = axis_gaussian(picture.x_deg - centre[1], variances[1], width)
    return rows * columns


def log_gaussian(picture: Picture, centre: Float[Array, "2"], variances: Float[Array, "2"]) -> Float[Array, "*cells"]:
    """Log n(z; centre, variances), relative to its value at the cell nearest to the centre.

    Relative, so that a policy's weights are of order one near the gaze however small the variances are: with absolute
    ones a weight and its normaliser would be huge numbers whose difference is rounding.
    """
    near = nearest_centre(picture.grid, centre)
    rows = squared_beyond(picture.y_deg, near[0], centre[0])
    columns = squared_beyond(picture.x_deg, near[1], centre[1])
    return (-0.5 / variances[0]) * rows + (-0.5 / variances[1]) * columns


# Where two cells are as near as this (in cells), rounding must not say which is nearest: a weight relative to one and a
# sum relative to the other would agree in their values and not in their slopes.
TIE = 1e-12


def nearest_centre(grid: Grid, position: Float[Array, "*batch 2"]) -> tuple[Array, Array]:
    """y and x of the centre of the cell that is nearest to each position, which may lie outside the picture."""
    cell = jnp.floor(position / jnp.asarray(grid.cell_deg) + TIE)
    row = jnp.clip(cell[..., 0], 0, grid.rows - 1).astype(int)
    column = jnp.clip(cell[..., 1], 0, grid.columns - 1).astype(int)
    # Looked up, not worked out: the very number that the cells carry, so that the difference below is exactly zero.
    return jnp.asarray(grid.row_centres_deg)[row], jnp.asarray(grid.column_centres_deg)[column]


def squared_beyond(
    cells_deg: Float[Array, "*cells"], nearest_deg: Float[Array, "*near"], centre_deg: Float[Array, "*near"]
) -> Float[Array, "..."]:
    """Squared distance of cells from a centre, less that of the nearest cell: zero there, and never below.

    Below zero there is rounding alone: the derivative is that of the difference, also where two cells are as near.
    """
    beyond = (cells_deg - nearest_deg) * (cells_deg + nearest_deg - 2 * centre_deg)
    return beyond + jax.lax.stop_gradient(jnp.maximum(-beyond, 0))


class SalientGaussian(Policy):
    """A power of the map through a Gaussian: s(z)^exponent n(z; centre, variances). Sums of such weights are fast."""

    @property
    @abstractmethod
    def exponent(self) -> Float[Array, ""] | float | None:
        """Of saliency; None: the map does not matter, not even where it is empty."""

    @property
    @abstractmethod
    def variances(self) -> Float[Array, "2"]:
        """(row, column), in deg^2."""

    @abstractmethod
    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """Where the Gaussian is, (y, x) in degrees."""

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """exponent log s(z) + log n(z; centre, variances)."""
        near = log_gaussian(picture, self.centre(history, picture), self.variances)
        return near if self.exponent is None else log_power(picture, self.exponent) + near


def log_power(picture: Picture, exponent: Float[Array, ""] | float) -> Float[Array, "*cells"]:
    """Log s(z)^exponent; a cell without saliency has no weight, whatever the exponent."""
    positive = picture.saliency > 0
    return jnp.where(positive, exponent * jnp.log(jnp.where(positive, picture.saliency, 1.0)), -jnp.inf)


@final
class StaticSaliency(Policy):
    """Gaze is drawn from the map, wherever it was: s(z)."""

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z)."""
        return picture.log_saliency


@final
class Local(SalientGaussian):
    """Gaze stays near: n(z; z_{t-1}, epsilon), whatever the picture shows (Eq. 2)."""

    epsilon: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)

    @property
    def exponent(self) -> None:
        """None."""
        return None

    @property
    def variances(self) -> Float[Array, "2"]:
        """Epsilon."""
        return both_axes(self.epsilon)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The gaze."""
        return history.gaze


@final
class Global(SalientGaussian):
    """Gaze goes to salient places, near ones preferred: s(z) n(z; z_{t-1}, xi) (Eq. 3; alone, Eq. 10)."""

    xi: Float[Array, "*axis"] = eqx.field(converter=as_float64, metadata=ONE_OR_TWO)

    @property
    def exponent(self) -> float:
        """One."""
        return 1.0

    @property
    def variances(self) -> Float[Array, "2"]:
        """Xi."""
        return both_axes(self.xi)

    def centre(self, history: History, picture: Picture) -> Float[Array, "2"]:
        """The gaze."""
        return history.gaze


@final
class RepelledGlobal(Policy):
    """Eq. 4 as in the released code: s(z) max(n(z; z_{t-1}, xi) - n(z; z_{t-1}, epsilon / 4), 0)."""

    xi: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    epsilon: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)

    @property
    def repelling(self) -> Float[Array, "2"]:
        """The variances of the repelling Gaussian."""
        return self.epsilon / COVARIANCE_RATIO

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z) + log max(n_xi - n_{epsilon / 4}, floor)."""
        wide = gaussian(picture, history.gaze, self.xi)
        narrow = gaussian(picture, history.gaze, self.repelling)
        return picture.log_saliency + jnp.log(jnp.maximum(wide - narrow, REPELLED_WEIGHT))


@final
class PrintedRepelledGlobal(Policy):
    """Eq. 4 as printed, with s relative to uniform: max(s(z) H W n(z; z_{t-1}, xi) - n(z; z_{t-1}, epsilon), 0).

    The paper does not say on which scale s stands here, and it matters: with s summing to one the repulsion forbids
    nearly the whole picture. Read with a mean of one, it predicts as well as the released form.
    """

    xi: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)
    epsilon: Float[Array, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """Log s(z) + log max(n_xi - n_epsilon / (s(z) H W), floor)."""
        positive = picture.saliency > 0
        relative = jnp.where(positive, picture.saliency, 1.0) * picture.grid.cells
        wide = gaussian(picture, history.gaze, self.xi)
        narrow = gaussian(picture, history.gaze, self.epsilon) / relative
        return picture.log_saliency + jnp.log(jnp.maximum(wide - narrow, REPELLED_WEIGHT))
