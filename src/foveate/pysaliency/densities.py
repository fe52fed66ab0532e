"""What an observer's fit predicts: the mean, over draws, of the density of every cell being fixated next.

`log_density` is that by its definition, for one history. `log_densities` is the same for many histories, from the maps
that scores are made of.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import logsumexp
from jaxtyping import Bool, Float, Int

from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.evaluate.trials import thinned
from foveate.inference.point import PointEstimate
from foveate.inference.posterior import Posterior, parameters_of
from foveate.model.densities import step_densities
from foveate.model.history import Array, History, Picture
from foveate.model.model import DRAWN_FROM_MAP, Model, mixture_log_density
from foveate.model.packing import WIDTH
from foveate.model.parts import duration_readers
from foveate.model.steps import Steps
from foveate.precision import double_precision

Fitted = Posterior | PointEstimate | Model

# Where a map holds less than this in some cell it is worked out in logarithms: smaller numbers lose their digits.
SMALLEST_DENSITY = 1e-290

# Rows of steps whose maps are made at once.
ROWS = 8


@dataclass(frozen=True, eq=False)
class Predictive:
    """Draws of one observer's parameters, and the maps of the pictures."""

    model: Model
    parameters: Mapping[str, Float[np.ndarray, "draw ..."]]
    draws: int
    maps: SaliencyMaps
    converged: bool = True

    @classmethod
    def of(cls, fitted: Fitted, maps: SaliencyMaps, draws: int) -> "Predictive":
        """From so many draws of a posterior, evenly picked as for scores (all, if it has fewer), or from a point."""
        if isinstance(fitted, Posterior):
            vectors = fitted.samples.real.reshape(-1, len(fitted.labels))
            some = thinned(vectors, min(draws, len(vectors)))
            return cls(fitted.model, parameters_of(fitted.model, some), len(some), maps, fitted.converged)
        model = fitted.model if isinstance(fitted, PointEstimate) else fitted
        if not isinstance(model, Model):
            raise InputError(
                f"posterior is a {type(fitted).__name__}: give a Posterior, a point estimate or a Model, or a "
                "dictionary, observer -> one of these."
            )
        return cls(model, {name: np.asarray(value)[None] for name, value in model.parameters.items()}, 1, maps)

    def __post_init__(self):
        """Refuse a model that asks for more than pysaliency's histories hold."""
        reading = duration_readers(*self.model.policies, self.model.choice)
        if reading:
            raise InputError(
                f"model {self.model.name!r}: {some_of(reading)} depends on how long fixations last, which pysaliency "
                "does not pass on; leave it out."
            )

    def picture(self, index: int) -> Picture:
        """The whole picture with this index among the maps."""
        return Picture.whole(self.maps.grid, self.maps.values[index])

    def history(self, index: int, y_deg: np.ndarray, x_deg: np.ndarray, count: int) -> History:
        """What the model may look at on a picture: these fixations, the last (oldest first) of `count`."""
        history = History.of(self.picture(index), y_deg, x_deg, self.model.memory)
        if count and (history.saliency <= 0).any():
            y, x = history.position_deg[np.argmax(history.saliency <= 0)]
            raise InputError(
                f"picture {self.maps.pictures[index]!r}: a history has a fixation at y = {y:g}, x = {x:g} deg, where "
                "the map is zero, so that no model explains it; give every cell some mass with "
                "maps.with_uniform_share(0.01)."
            )
        return replace(history, count=np.asarray(count))

    def log_density(self, history: History, picture: Picture) -> Float[np.ndarray, "row column"]:
        """Log of the mean over draws of the probability of every cell; the first two fixations come from the map."""
        return np.asarray(_log_mean_density(self.model, self.parameters, self.draws, history, picture))

    def log_densities(
        self, histories: Sequence[History], pictures: Int[np.ndarray, " step"]
    ) -> Float[np.ndarray, "step row column"]:
        """`log_density` for many histories, each with the index of its picture."""
        found = np.empty((len(histories), *self.maps.grid.shape))
        early = np.array([int(history.count) < DRAWN_FROM_MAP for history in histories], dtype=bool)
        for index in np.unique(pictures[early]):
            nothing = np.zeros(0)
            history = self.history(int(index), nothing, nothing, 0)
            found[early & (pictures == index)] = self.log_density(history, self.picture(int(index)))
        later = np.flatnonzero(~early).tolist()
        if len(later):
            found[later] = self._log_means([histories[step] for step in later], pictures[later])
        return found

    def _log_means(
        self, histories: Sequence[History], pictures: Int[np.ndarray, " step"]
    ) -> Float[np.ndarray, "step row column"]:
        mean = np.empty((len(histories), *self.maps.grid.shape))
        models = [
            self.model.with_parameters({name: values[draw] for name, values in self.parameters.items()})
            for draw in range(self.draws)
        ]
        for place, real in _rows(pictures):
            steps, summed = _steps(histories, pictures, self.maps, place, real), np.zeros(())
            for model in models:
                summed = summed + np.stack(list(step_densities(model, steps)))
            mean[place[real]] = summed[real] / self.draws
        small = np.flatnonzero((mean < SMALLEST_DENSITY).any(axis=(1, 2))).tolist()
        with np.errstate(divide="ignore"):
            logs = np.log(mean)
        for step in small:
            logs[step] = self.log_density(histories[step], self.picture(int(pictures[step])))
        return logs


@double_precision
@eqx.filter_jit
def _log_mean_density(
    model: Model, parameters: Mapping[str, Array], draws: int, history: History, picture: Picture
) -> Float[Array, "row column"]:
    def of_draw(draw: tuple[Array, dict[str, Array]]) -> Float[Array, "row column"]:
        return mixture_log_density(model.with_parameters(draw[1]), history, picture)

    each = lax.map(of_draw, (jnp.arange(draws), dict(parameters)))  # the count, as a model may have no parameters
    return logsumexp(each, axis=0) - jnp.log(draws) if draws > 1 else each[0]


def _rows(
    pictures: Int[np.ndarray, " step"],
) -> Iterator[tuple[Int[np.ndarray, "row place"], Bool[np.ndarray, "row place"]]]:
    """Which step stands where in rows of one picture each, and what is real: the padding repeats real steps.

    Always as many rows of one width, so that what is compiled once serves all fixations.
    """
    rows = []
    for picture in np.unique(pictures):
        mine = np.flatnonzero(pictures == picture)
        rows += [mine[first : first + WIDTH] for first in range(0, len(mine), WIDTH)]
    for first in range(0, len(rows), ROWS):
        some = rows[first : first + ROWS]
        place = np.array([np.pad(row, (0, WIDTH - len(row)), mode="edge") for row in some])
        real = np.array([np.arange(WIDTH) < len(row) for row in some])
        more = ((0, ROWS - len(some)), (0, 0))
        yield np.pad(place, more, mode="edge"), np.pad(real, more)


def _steps(
    histories: Sequence[History],
    pictures: Int[np.ndarray, " step"],
    maps: SaliencyMaps,
    place: Int[np.ndarray, "row place"],
    real: Bool[np.ndarray, "row place"],
) -> Steps:
    """The histories in their places. As a target, which steps have to have, any cell will do: nothing is scored."""
    chosen = [histories[step] for step in place.ravel().tolist()]
    history: History = jax.tree.map(lambda *leaves: np.stack(leaves).reshape(*place.shape, *leaves[0].shape), *chosen)
    gaze = history.position_deg[:, :, 0]
    row, column = maps.grid.cell_of(gaze[..., 0], gaze[..., 1])
    target = Picture(history.saliency[:, :, 0], *maps.grid.centre_of(row, column), maps.grid)
    return Steps(maps.values, pictures[place[:, 0]], history, target, row, column, real, None, maps.grid)
