"""Factors that prefer directions: on the picture as a viewer sees it, and relative to the last saccade.

To add one: a final class with its parameters as fields and `harmonics`, priors, and one row in tests/contracts.
"""

from abc import abstractmethod
from typing import final

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ive

from foveate.model.factors import Factor
from foveate.model.history import Array, History, Picture
from foveate.model.policies import as_float64

# Directions fade within this distance, in degrees: the cell under the gaze has none, and derivatives stay finite.
NEAR_DEG = 0.25

HARMONICS = 8  # of the circle: what is narrower than some 20 degrees is beyond them


def direction_to(history: History, picture: Picture) -> tuple[Float[Array, "*cells"], Float[Array, "*cells"]]:
    """Sine and cosine of the direction from the gaze to each cell as a viewer sees it; both fade close to the gaze."""
    return _direction(picture, picture.y_deg - history.gaze[0], picture.x_deg - history.gaze[1])


def _direction(picture: Picture, along_y: Array, along_x: Array) -> tuple[Array, Array]:
    up = along_y if picture.grid.extent.origin == "bottom" else -along_y
    length = jnp.sqrt(up * up + along_x * along_x + NEAR_DEG**2)
    return up / length, along_x / length


def directions(sine: Float[Array, "*cells"], cosine: Float[Array, "*cells"]) -> list[Float[Array, "*cells"]]:
    """cos a, ..., cos 8a, sin a, ..., sin 8a of the direction a with this sine and cosine."""
    powers = [(cosine, sine)]  # of cosine + i sine
    while len(powers) < HARMONICS:
        x, y = powers[-1]
        powers.append((x * cosine - y * sine, x * sine + y * cosine))
    return [x for x, _ in powers] + [y for _, y in powers]


class Directions(Factor):
    """Places by their direction from the gaze: exp of harmonics . (cos a, ..., cos 8a, sin a, ..., sin 8a), where a is
    the direction as a viewer sees it: 0 right, 90 degrees up. Sums of such factors over cells are fast."""

    @abstractmethod
    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """The coefficients."""

    def log_factor(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """The sum, as one product, whose derivative in the coefficients is one, too: sums over cells for each of them
        by itself would cost several times as much."""
        values = directions(*direction_to(history, picture))
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

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """The five parameters."""
        given = jnp.stack([self.rightward, self.horizontal, self.cardinal, self.upward, self.diagonal])
        return jnp.zeros(2 * HARMONICS).at[np.array([0, 1, 3, HARMONICS, HARMONICS + 1])].set(given)


def _turned(shape: Float[Array, "8"], history: History, picture: Picture) -> Float[Array, "16"]:
    """The harmonics of a shape that is even around zero, turned by the direction of the last saccade."""
    return jnp.stack(directions(*_direction(picture, *history.last_saccade))) * jnp.tile(shape, 2)


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

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """Those of the direction itself, turned by that of the last saccade; they fade if that was short."""
        return _turned(jnp.pad(jnp.stack([self.onward, self.axial]), (0, HARMONICS - 2)), history, picture)


# A narrow peak at one direction: a von Mises density with this concentration, which falls to half its height within 20
# degrees, as far as the harmonics can make it; without its mean, and one at the top.
CONCENTRATION = 12.0
PEAK = ive(np.arange(1, HARMONICS + 1), CONCENTRATION)
PEAK = PEAK / PEAK.sum()


@final
class CardinalPeaks(Directions):
    """Narrow peaks at the directions along the picture's sides, but for downward:
    exp(sideways (p(a) + p(a - 180)) + above p(a - 90)), where p is the `PEAK`."""

    sideways: Float[Array, ""] = eqx.field(converter=as_float64)
    above: Float[Array, ""] = eqx.field(converter=as_float64)

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """Those of the peak, turned by right angles."""
        number = np.arange(1, HARMONICS + 1)
        level = np.concatenate([PEAK * (1 + (-1.0) ** number), np.zeros(HARMONICS)])
        up = np.concatenate([PEAK * np.cos(number * np.pi / 2), PEAK * np.sin(number * np.pi / 2)])
        return self.sideways * level + self.above * up


@final
class TurningPeak(Directions):
    """Narrow peaks straight on and straight back: exp(ahead p(turn) + behind p(turn - 180)), where p is the `PEAK`."""

    ahead: Float[Array, ""] = eqx.field(converter=as_float64)
    behind: Float[Array, ""] = eqx.field(converter=as_float64)

    @property
    def memory(self) -> int:
        """Two fixations."""
        return 2

    def harmonics(self, history: History, picture: Picture) -> Float[Array, "16"]:
        """Those of the peaks, turned by the direction of the last saccade; they fade if that was short."""
        back = PEAK * (-1.0) ** np.arange(1, HARMONICS + 1)
        return _turned(self.ahead * PEAK + self.behind * back, history, picture)
