"""What a model may look at: the picture, and the fixations so far."""

from typing import TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from foveate.data.grid import Grid
from foveate.data.saliency import check_probabilities
from foveate.errors import InputError

# Parameters and data may come as NumPy arrays; inside a compiled function they are JAX's.
Array: TypeAlias = jax.Array | np.ndarray


class Picture(eqx.Module):
    """The cells of one picture: all of them, or a single one (see `cell`).

    Policies are written once in terms of these arrays, which broadcast to (row, column) for the whole picture and
    to a number for a single cell; so the map and the probability of one fixation come from the same line of code.
    """

    saliency: Float[Array, "*cells"]
    y_deg: Float[Array, "*rows"]
    x_deg: Float[Array, "*columns"]
    grid: Grid = eqx.field(static=True)

    @classmethod
    def whole(cls, grid: Grid, saliency: Float[Array, "row column"]) -> "Picture":
        """All cells of a map on its grid; the map is a probability per cell."""
        if saliency.shape != grid.shape:
            raise InputError(f"a map of shape {saliency.shape} on a grid of {grid.shape}: they must be the same.")
        if not isinstance(saliency, jax.Array):
            check_probabilities("the map", saliency)
        return cls(saliency, grid.row_centres_deg[:, None], grid.column_centres_deg[None, :], grid)

    @property
    def log_saliency(self) -> Float[Array, "*cells"]:
        """Log-probability of each cell in the map; minus infinity where the map is zero."""
        positive = self.saliency > 0
        return jnp.where(positive, jnp.log(jnp.where(positive, self.saliency, 1.0)), -jnp.inf)

    def cell(self, row: Int[Array, ""], column: Int[Array, ""]) -> "Picture":
        """A single cell of the whole picture."""
        y_deg, x_deg = jnp.asarray(self.y_deg)[row, 0], jnp.asarray(self.x_deg)[0, column]
        return Picture(jnp.asarray(self.saliency)[row, column], y_deg, x_deg, self.grid)


class History(eqx.Module):
    """The last fixations, most recent first, as far back as the model's memory goes.

    Where fewer fixations were made than the memory holds, the oldest one is repeated; `count` says how many there
    were.
    """

    position_deg: Float[Array, "*batch memory 2"]  # (y, x)
    saliency: Float[Array, "*batch memory"]  # of the cell of each
    count: Int[Array, "*batch"]  # fixations made so far, also those beyond the memory
    duration_s: Float[Array, "*batch memory"]  # of each fixation; 0 where it is not known

    @classmethod
    def of(
        cls,
        picture: Picture,
        y_deg: Float[Array, " fixation"],
        x_deg: Float[Array, " fixation"],
        memory: int = 2,
        duration_s: Float[Array, " fixation"] | None = None,
    ) -> "History":
        """The history after these fixations (oldest first, none is allowed) in a whole picture."""
        y, x = np.asarray(y_deg, dtype=np.float64), np.asarray(x_deg, dtype=np.float64)
        count = len(y)
        if count == 0:  # nothing was looked at: the values are placeholders that no model reads
            y, x = np.array([picture.grid.extent.height_deg / 2]), np.array([picture.grid.extent.width_deg / 2])
        row, column = picture.grid.cell_of(y, x)
        recent = np.maximum(len(y) - 1 - np.arange(memory), 0)
        saliency = np.asarray(picture.saliency)[row, column]
        known = duration_s is not None and count > 0
        lasted = np.asarray(duration_s, dtype=np.float64) if known else np.zeros(len(y))
        return cls(np.stack([y, x], axis=-1)[recent], saliency[recent], np.asarray(count), lasted[recent])

    @property
    def gaze(self) -> Float[Array, "2"]:
        """Where gaze is now, z_{t-1}: (y, x) in degrees."""
        return self.position_deg[0]

    @property
    def last_saccade(self) -> Float[Array, "2"]:
        """From the fixation before to the present one, z_{t-1} - z_{t-2}, in degrees."""
        return self.position_deg[0] - self.position_deg[1]
