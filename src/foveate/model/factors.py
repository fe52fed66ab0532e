"""Factors: what makes places more or less likely whichever policy decides, as a log-factor per cell.

A policy is modulated by factors, `Modulated(policy, factors)`: its weights are multiplied by theirs before they are
normalised. To add one: a final class with its parameters as fields and `log_factor`, a prior for each parameter where a
model uses it, and one row in tests/contracts. One and the same factor on several policies of a model is one factor,
since fields of one name are one parameter.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float
from scipy.special import ive

from foveate.errors import InputError
from foveate.model.features import LEAST_RELATIVE_SALIENCY, fixation_number
from foveate.model.history import Array, History, Picture
from foveate.model.policies import Policy, as_float64

# Directions fade within this distance, in degrees: the cell under the gaze has none, and derivatives stay finite.
NEAR_DEG = 0.25


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


def direction_to(history: History, picture: Picture) -> tuple[Float[Array, "*cells"], Float[Array, "*cells"]]:
    """Sine and cosine of the direction from the gaze to each cell as a viewer sees it; both fade close to the gaze."""
    return _direction(picture, picture.y_deg - history.gaze[0], picture.x_deg - history.gaze[1])


def _direction(picture: Picture, along_y: Array, along_x: Array) -> tuple[Array, Array]:
    up = along_y if picture.grid.extent.origin == "bottom" else -along_y
    length = jnp.sqrt(up * up + along_x * along_x + NEAR_DEG**2)
    return up / length, along_x / length


def directions(
    sine: Float[Array, "*cells"], cosine: Float[Array, "*cells"], order: int
) -> list[Float[Array, "*cells"]]:
    """cos a, ..., cos n a, sin a, ..., sin n a of the direction a with this sine and cosine, for the order n."""
    powers = [(cosine, sine)]  # of cosine + i sine
    while len(powers) < order:
        x, y = powers[-1]
        powers.append((x * cosine - y * sine, x * sine + y * cosine))
    return [x for x, _ in powers] + [y for _, y in powers]


class Directions(Factor):
    """Places by their direction from the gaze: exp of harmonics . (cos a, ..., cos n a, sin a, ..., sin n a), where a is
    the direction as a viewer sees it: 0 right, 90 degrees up. Sums of such factors over cells are fast."""

    order: ClassVar[int] = 4  # n: a multiple of four

    @abstractmethod
    def harmonics(self, history: History, picture: Picture) -> Float[Array, " harmonic"]:
        """The coefficients, 2 n of them."""

    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """The sum, as one product, whose derivative in the coefficients is one, too: sums over cells for each of them
        by itself would cost several times as much."""
        values = directions(*direction_to(history, picture), self.order)
        return jnp.tensordot(self.harmonics(history, picture), jnp.stack(values), 1)


@final
class Cardinal(Directions):
    """Directions as seen on the picture: exp of the sum of
    rightward cos(a), upward sin(a), horizontal cos(2a), diagonal sin(2a) and cardinal cos(4a),
    where a is the direction from the gaze to the place as a viewer sees it: 0 right, 90 degrees up.

    Positive `horizontal` prefers left and right over up and down; positive `cardinal` all four over the oblique ones.
    """

    rightward: Float[Array, ""] = eqx.field(converter=as_float64)
    upward: Float[Array, ""] = eqx.field(converter=as_float64)
    horizontal: Float[Array, ""] = eqx.field(converter=as_float64)
    diagonal: Float[Array, ""] = eqx.field(converter=as_float64)
    cardinal: Float[Array, ""] = eqx.field(converter=as_float64)

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "8"]:
        """The five parameters."""
        zero = jnp.zeros(())
        return jnp.stack([self.rightward, self.horizontal, zero, self.cardinal, self.upward, self.diagonal, zero, zero])


@final
class Turning(Directions):
    """The turn from the last saccade: exp(onward cos(turn) + axial cos(2 turn)).

    Positive `onward` carries on, negative turns back; positive `axial` prefers both to turning aside.
    """

    onward: Float[Array, ""] = eqx.field(converter=as_float64)
    axial: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def memory(self) -> int:
        """Two fixations."""
        return 2

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "8"]:
        """Those of the direction itself, turned by that of the last saccade; they fade if that was short."""
        up, right = _direction(picture, *history.last_saccade)
        values = jnp.stack(directions(up, right, self.order))
        return values * jnp.tile(jnp.stack([self.onward, self.axial, jnp.zeros(()), jnp.zeros(())]), 2)


# A narrow peak at one direction: a von Mises density with this concentration, which falls to half its height within 20
# degrees, as far as eight harmonics can make it; without its mean, and one at the top.
CONCENTRATION, PEAK_ORDER = 12.0, 8
PEAK = ive(np.arange(1, PEAK_ORDER + 1), CONCENTRATION)
PEAK = PEAK / PEAK.sum()


@final
class CardinalPeaks(Directions):
    """Narrow peaks at the directions along the picture's sides, but for downward:
    exp(sideways (p(a) + p(a - 180)) + above p(a - 90)), where p is the `PEAK`."""

    order: ClassVar[int] = PEAK_ORDER

    sideways: Float[Array, ""] = eqx.field(converter=as_float64)
    above: Float[Array, ""] = eqx.field(converter=as_float64)

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """Those of the peak, turned by right angles."""
        number = np.arange(1, self.order + 1)
        level = np.concatenate([PEAK * (1 + (-1.0) ** number), np.zeros(self.order)])
        up = np.concatenate([PEAK * np.cos(number * np.pi / 2), PEAK * np.sin(number * np.pi / 2)])
        return self.sideways * level + self.above * up


@final
class TurningPeak(Directions):
    """A narrow peak straight on: exp(ahead p(turn)), where p is the `PEAK`."""

    order: ClassVar[int] = PEAK_ORDER

    ahead: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def memory(self) -> int:
        """Two fixations."""
        return 2

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """Those of the peak, turned by the direction of the last saccade; they fade if that was short."""
        values = jnp.stack(directions(*_direction(picture, *history.last_saccade), self.order))
        return self.ahead * values * np.tile(PEAK, 2)


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
        # By rows and columns, (place, row) and (place, column): the exponential of a sum is a product.
        rows = jnp.exp(rate * jnp.square(jnp.ravel(picture.y_deg) - places[:, :1]))
        columns = jnp.exp(rate * jnp.square(jnp.ravel(picture.x_deg) - places[:, 1:]))
        return jnp.reshape((strength[:, None] * rows).T @ columns, jnp.shape(picture.y_deg * picture.x_deg))


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


@final
class VisitedBefore(Places):
    """The places of the last fixations attract or repel: exp(mu sum_j lambda^j g(z; z_{t-1-j})), j = 0, 1, ...,
    g(z; m) = exp(-|z - m|^2 / (2 omega)), over as many fixations as `span` says.

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
    def memory(self) -> int:
        """As many as `span` says."""
        return self.span

    @property
    def variance(self) -> Float[Array, ""]:
        """Omega."""
        return self.omega

    @property
    def count(self) -> int:
        """As many as `span` says."""
        return self.span

    def places(self, history: History) -> tuple[Float[Array, " place"], Float[Array, "place 2"]]:
        """How strongly each place attracts, and where it is; what was before the first fixation does not count."""
        back = np.arange(self.span)
        strength = jnp.where(back < history.count, self.mu * self.lambda_**back, 0.0)
        return strength, jnp.asarray(history.position_deg)[: self.span]


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
