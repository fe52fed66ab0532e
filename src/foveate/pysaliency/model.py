"""A fitted model as a `ScanpathModel` of pysaliency, and its densities as saliency maps, for AUC and NSS.

pysaliency asks for the log-probability of every pixel being fixated next, given the stimulus, where gaze has been
(pixels from the top left corner, oldest first) and attributes such as the subject. Everything else it works out of
that; here log-likelihoods and series of densities have a faster way to the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any, final, overload

import numpy as np
from jaxtyping import Float
from pysaliency import models, saliency_map_models  # pyright: ignore[reportMissingImports]
from pysaliency.datasets import as_stimulus  # pyright: ignore[reportMissingImports]
from tqdm import tqdm  # pyright: ignore[reportMissingModuleSource]

from foveate.data.grid import PixelFrame
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.evaluate.scores import DRAWS
from foveate.model.history import History
from foveate.pysaliency.densities import Fitted, Predictive
from foveate.pysaliency.pixels import Raster, raster
from foveate.pysaliency.stimuli import picture_of, plain, subject_attribute, subject_in

# Fixations whose maps are made, and held, at once.
CHUNK = 512


class ScanpathModel(models.ScanpathModel):
    """The density of the next fixation by a fit, or by every observer's own, on the pixels of pysaliency's stimuli.

    `posterior` is a Posterior (the mean of the densities of `draws` draws, evenly picked: the posterior predictive), a
    point estimate or a Model; or a dictionary, observer -> one of these, from which a fixation's attribute
    `subject_name`, `subject` or `subjects` (the first that is there) chooses. `maps` are the pictures' saliency maps,
    or a dictionary with each observer's own. Every stimulus must be as large as the maps: `pixels_per_degree` is one
    number, or two for (rows, columns). `pictures` says which stimulus is which picture, by stimulus id, as
    `pictures_in_order` and `pictures_by_file` do; without it maps are named by stimulus ids.

    The first two fixations of a path are drawn from the map, as in all models here; histories of any length will do.
    """

    def __init__(
        self,
        posterior: Fitted | Mapping[Any, Fitted],
        maps: SaliencyMaps | Mapping[Any, SaliencyMaps],
        *,
        pixels_per_degree: float | Sequence[float],
        pictures: Mapping[str, Any] | None = None,
        draws: int = DRAWS,
    ):
        """Refuse what does not fit together; stimuli are looked at when they are asked for."""
        super().__init__()
        if draws < 1:
            raise InputError(f"draws = {draws}: give 1 or more.")
        one = np.ndim(pixels_per_degree) == 0
        scale: Any = pixels_per_degree if one else tuple(np.asarray(pixels_per_degree, dtype=float).tolist())
        PixelFrame(1, 1, scale)  # which refuses what is no scale
        self._pixels_per_degree, self._pictures = scale, pictures
        self._only: Predictive | None = None  # takes all fixations for its own
        self._each: dict[Any, Predictive] = {}
        if isinstance(posterior, Mapping):
            _check_observers(posterior, maps)
            for who, fitted in posterior.items():
                self._each[who] = Predictive.of(fitted, maps[who] if isinstance(maps, Mapping) else maps, draws)
        elif isinstance(maps, Mapping):
            raise InputError("maps are a dictionary, but posterior is a single one; give that observer's maps.")
        else:
            self._only = Predictive.of(posterior, maps, draws)

    def __repr__(self) -> str:
        """The models, and whose fits are not to be trusted, in a line."""
        each = self._each if self._only is None else {"all": self._only}
        names = list(dict.fromkeys(it.model.name for it in each.values()))
        bad = [who for who, it in each.items() if not it.converged]
        words = f"subjects {some_of(list(each))}" if self._only is None else "any subject"
        return f"ScanpathModel({some_of(names)}, {words}{f'; NOT CONVERGED: {some_of(bad)}' if bad else ''})"

    def of_subject(self, subject: Any) -> "ScanpathModel":
        """The model of one subject, which then takes all fixations for theirs; what sampling needs."""
        alone = copy(self)
        alone._only = self._of(subject)
        return alone

    # --- one fixation ------------------------------------------------------------------------------------------

    def conditional_log_density(
        self, stimulus: Any, x_hist: Any, y_hist: Any, t_hist: Any, attributes: Any = None, out: Any = None
    ) -> Float[np.ndarray, "y x"]:
        """The log-probability (nats) of every pixel being fixated next; `out` and times are not used."""
        log_cells, where = self._log_cells(stimulus, x_hist, y_hist, attributes)
        return where.spread(log_cells)

    def sample_fixation(
        self,
        stimulus: Any,
        x_hist: Any,
        y_hist: Any,
        t_hist: Any,
        attributes: Any = None,
        verbose: bool = False,
        rst: np.random.Generator | np.random.RandomState | None = None,
    ) -> tuple[float, float, int]:
        """(x, y, t): the centre of a pixel drawn from the density, and the number of fixations before it."""
        if rst is None:
            raise InputError(
                "rst = None: sampling needs a source of randomness; give rst=numpy.random.default_rng(seed)."
            )
        log_cells, where = self._log_cells(stimulus, x_hist, y_hist, attributes)
        y_px, x_px = where.draw(np.exp(log_cells), rst)
        return x_px, y_px, len(t_hist)

    # --- many fixations ----------------------------------------------------------------------------------------

    def conditional_log_densities(
        self, stimuli: Any, fixations: Any, verbose: bool = False, **kwargs: Any
    ) -> "LogDensities":
        """The density before each fixation; a sequence that makes them when they are asked for."""
        return LogDensities(self, stimuli, fixations)

    def log_likelihoods(self, stimuli: Any, fixations: Any, verbose: bool = False) -> Float[np.ndarray, " fixation"]:
        """The log-probability (nats) of the pixel of each fixation."""
        y_px, x_px = np.asarray(fixations.y_int), np.asarray(fixations.x_int)
        found = np.empty(len(x_px))
        for first in tqdm(range(0, len(found), CHUNK), disable=not verbose):
            for where, chosen, log_cells in self._maps_before(stimuli, fixations, first):
                _check_inside(where, chosen, y_px[chosen], x_px[chosen])
                found[chosen] = where.read(log_cells, y_px[chosen], x_px[chosen])
        return found

    def _maps_before(
        self, stimuli: Any, fixations: Any, first: int
    ) -> Iterator[tuple[Raster, np.ndarray, Float[np.ndarray, "step row column"]]]:
        """(pixels, indices of fixations, the cells' log-densities before them) of a chunk, subject by subject."""
        chunk = np.arange(first, min(first + CHUNK, len(fixations.x)))
        for predictive, mine in self._by_subject(fixations, chunk):
            places = [self._place(predictive, stimuli[int(fixations.n[index])]) for index in mine]
            histories = [
                self._history(predictive, *place, fixations.x_hist[index], fixations.y_hist[index])
                for place, index in zip(places, mine, strict=True)
            ]
            log_cells = predictive.log_densities(histories, np.array([picture for picture, _ in places]))
            yield places[0][1], mine, log_cells  # all have one: no two sizes fit the maps to half a pixel

    def _by_subject(self, fixations: Any, chunk: np.ndarray) -> Iterator[tuple[Predictive, np.ndarray]]:
        if self._only is not None:
            yield self._only, chunk
            return
        values = getattr(fixations, subject_attribute(list(fixations.__attributes__)))
        subjects = [plain(values[index]) for index in chunk]
        for subject in dict.fromkeys(subjects):
            yield self._of(subject), chunk[[other == subject for other in subjects]]

    # --- who, what and where -----------------------------------------------------------------------------------

    def _of(self, subject: Any) -> Predictive:
        if self._only is not None:
            return self._only
        if subject not in self._each:
            raise InputError(
                f"no posterior for subject {subject!r}; there are posteriors for "
                f"{some_of([repr(who) for who in self._each], 10)}: name them as pysaliency's fixations do."
            )
        return self._each[subject]

    def _log_cells(
        self, stimulus: Any, x_hist: Any, y_hist: Any, attributes: Any
    ) -> tuple[Float[np.ndarray, "row column"], Raster]:
        predictive = self._only or self._of(subject_in(attributes))
        index, where = self._place(predictive, stimulus)
        history = self._history(predictive, index, where, x_hist, y_hist)
        return predictive.log_density(history, predictive.picture(index)), where

    def _place(self, predictive: Predictive, stimulus: Any) -> tuple[int, Raster]:
        """The index of the stimulus' map, and its pixels."""
        known = as_stimulus(stimulus)
        height_px, width_px = (int(size) for size in known.size)
        picture = picture_of(known.stimulus_id, self._pictures, predictive.maps.pictures)
        index = int(predictive.maps.index_of([picture])[0])
        return index, raster(predictive.maps.grid, height_px, width_px, self._pixels_per_degree)

    def _history(self, predictive: Predictive, index: int, where: Raster, x_hist: Any, y_hist: Any) -> History:
        """What the model looks at: the last fixations before the padding."""
        x_px, y_px = (np.asarray(values, dtype=np.float64) for values in (x_hist, y_hist))
        if x_px.shape != y_px.shape or x_px.ndim != 1:
            raise InputError(
                f"histories of shapes {x_px.shape} and {y_px.shape}: x and y must be as many, one after the other."
            )
        known = np.flatnonzero(~np.isnan(x_px) | ~np.isnan(y_px))
        count = int(known[-1]) + 1 if len(known) else 0
        return predictive.history(index, *where.to_degrees(y_px[:count], x_px[:count], predictive.model.memory), count)


@final
class LogDensities(Sequence):
    """The log-densities before each of pysaliency's fixations, made when asked for; one chunk is held, on cells."""

    def __init__(self, model: ScanpathModel, stimuli: Any, fixations: Any):
        """Nothing is made yet."""
        self._model, self._stimuli, self._fixations = model, stimuli, fixations
        self._first: int | None = None
        self._chunk: dict[int, tuple[Raster, np.ndarray]] = {}

    def __len__(self) -> int:
        """Number of fixations."""
        return len(self._fixations.x)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...
    def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
        """The density before one fixation, (y, x), or a list of them."""
        if isinstance(index, slice):
            return [self[one] for one in range(len(self))[index]]
        index = range(len(self))[index]
        first = index - index % CHUNK
        if self._first != first:
            self._chunk = {
                one: (where, cells)
                for where, chosen, log_cells in self._model._maps_before(self._stimuli, self._fixations, first)
                for one, cells in zip(chosen.tolist(), log_cells, strict=True)
            }
            self._first = first
        where, cells = self._chunk[index]
        return where.spread(cells)


class ScanpathSaliencyMapModel(saliency_map_models.ScanpathSaliencyMapModel):
    """The densities of a `ScanpathModel` as saliency maps, of which pysaliency works out AUC and NSS."""

    def __init__(self, model: Any):
        """Of any probabilistic model of pysaliency's."""
        super().__init__()
        self.model = model

    def conditional_saliency_map(
        self, stimulus: Any, x_hist: Any, y_hist: Any, t_hist: Any, attributes: Any = None, out: Any = None
    ) -> Float[np.ndarray, "y x"]:
        """The probability of every pixel being fixated next."""
        return np.exp(self.model.conditional_log_density(stimulus, x_hist, y_hist, t_hist, attributes=attributes))

    def conditional_saliency_maps(
        self, stimuli: Any, fixations: Any, verbose: bool = False, **kwargs: Any
    ) -> Iterator[Float[np.ndarray, "y x"]]:
        """The map before each fixation."""
        return (np.exp(density) for density in self.model.conditional_log_densities(stimuli, fixations, verbose))


def _check_observers(posterior: Mapping[Any, Fitted], maps: SaliencyMaps | Mapping[Any, SaliencyMaps]) -> None:
    if not posterior:
        raise InputError("no posteriors given: there must be one for each subject.")
    missing = [who for who in posterior if isinstance(maps, Mapping) and who not in maps]
    if missing:
        raise InputError(f"no maps for observer {some_of(missing)}; give everybody's, or one set of maps for all.")


def _check_inside(where: Raster, chosen: np.ndarray, y_px: np.ndarray, x_px: np.ndarray) -> None:
    outside = ~((y_px >= 0) & (y_px < where.height_px) & (x_px >= 0) & (x_px < where.width_px))
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError(
            f"fixation {chosen[first]} lies in pixel y = {y_px[first]}, x = {x_px[first]}, outside its stimulus "
            f"({where.height_px} x {where.width_px} px); leave such fixations out with pysaliency's "
            "remove_out_of_stimulus_fixations."
        )
