"""ROC curves over pooled steps: the density of fixated cells against that of cells drawn at random.

The paper's AUC ("AUC-Borji") asks how well one threshold on the density tells fixated cells from random ones. Every
step gives one positive, its fixated cell, and in each repeat one negative, a random cell of the same map. All steps of
a fold are pooled, also those of different observers, and the area under their common ROC is averaged over repeats.

Two rules draw the negatives. Uniform (the paper's): any cell of the grid, each with the same chance. Shuffled: the
cell of a fixation that was made on another picture, each such fixation with the same chance; where everyone prefers
the centre of any picture, this gives no credit for knowing that. Only scored fixations are drawn from, the third of a
path and on.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.evaluate.predictions import DrawScores, MapScores
from foveate.inference.draws import generator
from foveate.model.model import DRAWN_FROM_MAP
from foveate.precision import check_key

REPEATS = 100
FALSE_ALARMS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True, eq=False)
class Roc:
    """A ROC curve, averaged over repeats (and draws), and the area under it."""

    false_alarms: Float[np.ndarray, " point"]
    hits: Float[np.ndarray, " point"]
    auc: float
    auc_of_draws: Float[np.ndarray, " draw"]  # each a mean over repeats; one for the predictive density


# --- negatives -------------------------------------------------------------------------------------------------------


def uniform_cells(
    steps: int, grid: Grid, key: PRNGKeyArray, *, repeats: int = REPEATS
) -> Int[np.ndarray, "step repeat"]:
    """For every step random cells of the whole grid, as `score_draws` takes them: the negatives of AUC-Borji."""
    _check_repeats(repeats)
    return _generator(key).integers(0, grid.cells, size=(steps, repeats))


def shuffled_cells(
    data: Dataset, key: PRNGKeyArray, *, pool: ScanPaths | None = None, repeats: int = REPEATS
) -> Int[np.ndarray, "step repeat"]:
    """For every scored step of `data` cells that were fixated on other pictures: the negatives of the shuffled AUC.

    They come from the scored fixations in `pool` (None: in `data` itself), by all observers, on all pictures but the
    step's own, with replacement. A cell that was fixated twice has twice the chance.
    """
    _check_repeats(repeats)
    source = data.paths if pool is None else pool
    if source.extent != data.paths.extent:
        raise InputError(f"the pool lies in {source.extent}, the data in {data.paths.extent}; they must be the same.")
    cell, seen = _scored(source, data.maps.grid)
    _, picture = _scored(data.paths, data.maps.grid)
    rng = _generator(key)
    drawn = np.zeros((len(picture), repeats), dtype=np.int64)
    for name in data.paths.pictures:
        others, mine = cell[seen != name], np.flatnonzero(picture == name)
        if len(mine) and not len(others):
            raise InputError(
                f"picture {name!r}: no fixation on another picture to draw from; give a pool of fixations on more."
            )
        drawn[mine] = others[rng.integers(0, max(len(others), 1), size=(len(mine), repeats))] if len(mine) else 0
    return drawn


def _scored(paths: ScanPaths, grid: Grid) -> tuple[Int[np.ndarray, " step"], np.ndarray]:
    """Cell and picture of every scored fixation, in the order of the paths."""
    path, fixation = np.nonzero(paths.scored(DRAWN_FROM_MAP))
    row, column = grid.cell_of(paths.y_deg[path, fixation], paths.x_deg[path, fixation])
    return row * grid.columns + column, paths.picture[path]


def _generator(key: PRNGKeyArray) -> np.random.Generator:
    check_key(key)
    return generator(key)


def _check_repeats(repeats: int) -> None:
    if repeats < 1:
        raise InputError(f"repeats = {repeats}: give 1 or more.")


# --- areas and curves ------------------------------------------------------------------------------------------------


def pooled_roc(scores: DrawScores, false_alarms: Float[np.ndarray, " point"] = FALSE_ALARMS) -> Roc:
    """The ROC of the draws, each by itself and then averaged, as in the paper.

    `scores` hold the densities at one negative per repeat (`score_draws` with `uniform_cells` or `shuffled_cells`), and
    the steps of a fold: `DrawScores.joined` puts observers together.
    """
    return _roc(scores.each, false_alarms)


def pooled_predictive_roc(scores: DrawScores, false_alarms: Float[np.ndarray, " point"] = FALSE_ALARMS) -> Roc:
    """The ROC of the posterior predictive density, the mean of the draws' densities."""
    return _roc(scores.predictive, false_alarms)


def pooled_auc(
    positive: Float[np.ndarray, " step"], negative: Float[np.ndarray, "other repeat"]
) -> Float[np.ndarray, " repeat"]:
    """For each repeat the share of all pairs in which the positive is the larger one; ties count one half."""
    if not len(positive) or not len(negative):
        raise InputError(f"{len(positive)} positives and {len(negative)} negatives: give at least one of each.")
    ordered = np.sort(positive)
    above = len(ordered) - np.searchsorted(ordered, negative, side="right")
    not_below = len(ordered) - np.searchsorted(ordered, negative, side="left")
    return (above + not_below).mean(axis=0) / (2 * len(ordered))


def roc_curve(
    positive: Float[np.ndarray, " step"],
    negative: Float[np.ndarray, "other repeat"],
    false_alarms: Float[np.ndarray, " point"] = FALSE_ALARMS,
) -> Float[np.ndarray, " point"]:
    """Share of hits at each share of false alarms, averaged over repeats.

    The curve of a repeat joins the points of all thresholds by straight lines, so that its area counts ties one half;
    where it rises steeply, at one share of false alarms, the highest point is taken.
    """
    return np.mean([_one_curve(positive, values, false_alarms) for values in negative.T], axis=0)


def _one_curve(positive: np.ndarray, negative: np.ndarray, false_alarms: np.ndarray) -> np.ndarray:
    thresholds = np.unique(np.concatenate([positive, negative]))[::-1]

    def reaching(values: np.ndarray) -> np.ndarray:
        reached = len(values) - np.searchsorted(np.sort(values), thresholds, side="left")
        return np.concatenate([[0.0], reached / len(values)])

    x, y = reaching(negative), reaching(positive)
    left = np.searchsorted(x, false_alarms, side="right") - 1
    right = np.minimum(left + 1, len(x) - 1)
    width = np.where(x[right] > x[left], x[right] - x[left], 1.0)
    return y[left] + (y[right] - y[left]) * (false_alarms - x[left]) / width


def _roc(scores: MapScores, false_alarms: np.ndarray) -> Roc:
    grid = np.asarray(false_alarms, dtype=np.float64)
    if not ((grid >= 0) & (grid <= 1)).all():
        raise InputError(f"false alarms {some_of(grid.tolist())}: shares lie between 0 and 1.")
    steps, repeats = scores.density_at.shape[-2:]
    if repeats == 0 or steps == 0:
        raise InputError("no negatives: score with cells, from uniform_cells or shuffled_cells.")
    pairs = list(zip(scores.density.reshape(-1, steps), scores.density_at.reshape(-1, steps, repeats), strict=True))
    auc = np.array([pooled_auc(positive, negative).mean() for positive, negative in pairs])
    hits = np.mean([roc_curve(positive, negative, grid) for positive, negative in pairs], axis=0)
    return Roc(grid, hits, float(auc.mean()), auc)
