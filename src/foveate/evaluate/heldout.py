"""A cross-validation's held-out steps, scored: every model on the pictures that its fits did not see."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from foveate.data.dataset import Dataset
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.evaluate.baselines import centre_bias_maps
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import FittedFolds
from foveate.evaluate.predictions import DrawScores, MapScores, score_draws
from foveate.evaluate.roc import Roc, pooled_predictive_roc, pooled_roc, shuffled_cells, uniform_cells
from foveate.evaluate.scores import StepScores
from foveate.model.steps import Steps

REPEATS = 20  # negatives of every step for pooled AUCs: with thousands of steps their mean is good to 1e-3

# Tells of every part that is scored: model, fold, observer.
Told = Callable[[str, int, Any], None]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How well one model predicts what its fits did not see.

    `roc` and `shuffled` are the pooled ROC curves of the draws (as in the paper) with uniform and with shuffled
    negatives, averaged over folds; those named `predictive` are of the posterior predictive density.
    """

    scores: StepScores
    roc: Roc
    shuffled: Roc
    predictive_roc: Roc
    predictive_shuffled: Roc


def all_maps(validation: CrossValidation) -> SaliencyMaps:
    """A map of every picture: that of the first observer who saw it, where maps differ between observers."""
    found = {}
    for own in validation.data.values():
        found |= {picture: own.maps[picture] for picture in own.maps.pictures if picture not in found}
    grid = next(iter(validation.data.values())).maps.grid
    return SaliencyMaps(grid, tuple(found), np.stack(list(found.values())))


def centre_bias(validation: CrossValidation) -> SaliencyMaps:
    """For each picture the density of everybody's fixations on the others."""
    grid = next(iter(validation.data.values())).maps.grid
    return centre_bias_maps(validation.pool, grid)


def score_held_out(
    validation: CrossValidation,
    fitted: FittedFolds,
    key: PRNGKeyArray,
    *,
    bias: SaliencyMaps | None = None,
    told: Told = lambda model, fold, observer: None,
) -> HeldOut:
    """Scores of one model on the test pictures of the chosen folds; `bias` as `centre_bias` makes it."""
    parts, curves = [], []
    for fold in validation.chosen_folds:
        of_fold = []
        for observer in validation.data:
            told(fitted.name, fold, observer)
            data, part = validation.test(observer, fold), fitted.parts[fold, observer]
            steps = Steps.of(data, memory=part.model.memory, short="skip")
            cells = _negatives(data, steps.count, validation.pool, _key(key, fold, observer))
            found = score_draws(part.model, steps, part.vectors, cells)
            of_fold.append(found)
            scores = StepScores.of(found, data, centre_bias=bias)
            parts.append(scores if part.converged else replace(scores, unconverged=(observer,)))
        curves.append(_curves(DrawScores.joined(of_fold)))
    return HeldOut(StepScores.joined(parts), *(_mean(list(kind)) for kind in zip(*curves, strict=True)))


def _key(key: PRNGKeyArray, fold: int, observer: Any) -> PRNGKeyArray:
    """The same for all models: they are compared on the same negatives."""
    return jax.random.fold_in(jax.random.fold_in(key, fold), zlib.crc32(str(observer).encode()))


def _negatives(data: Dataset, steps: int, pool: ScanPaths, key: PRNGKeyArray) -> np.ndarray:
    """Cells of the whole grid, then cells fixated on other pictures, for every step."""
    first, second = jax.random.split(key)
    uniform = uniform_cells(steps, data.maps.grid, first, repeats=REPEATS)
    return np.concatenate([uniform, shuffled_cells(data, second, pool=pool, repeats=REPEATS)], axis=1)


def _curves(scores: DrawScores) -> tuple[Roc, Roc, Roc, Roc]:
    """The ROC curves of a fold, in the order of `HeldOut`."""

    def with_negatives(part: slice) -> DrawScores:
        def cut(it: MapScores) -> MapScores:
            return replace(it, density_at=it.density_at[..., part])

        return DrawScores(cut(scores.each), cut(scores.predictive))

    uniform, shuffled = with_negatives(slice(0, REPEATS)), with_negatives(slice(REPEATS, None))
    return pooled_roc(uniform), pooled_roc(shuffled), pooled_predictive_roc(uniform), pooled_predictive_roc(shuffled)


def _mean(folds: list[Roc]) -> Roc:
    """The curve and the area averaged over folds."""
    return Roc(
        folds[0].false_alarms,
        np.mean([it.hits for it in folds], axis=0),
        float(np.mean([it.auc for it in folds])),
        np.mean([it.auc_of_draws for it in folds], axis=0),
    )
