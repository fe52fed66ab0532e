"""How near models come to a gold standard: where everybody else looked in the same picture.

The gold standard predicts an observer's fixations by the smoothed density of all other observers' fixations on the
picture itself, at the bandwidth at which it does so best. No density that knows the picture but not the gaze can be
expected to do much better, so it is a ceiling for maps (Kümmerer, Wallis and Bethge, 2015). A model that knows where
gaze is may go beyond it: then its share says how much more the path tells than the picture does. Maps made with an
observer's own fixations know more than the gold standard, and may beat it for that reason alone.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from foveate.data.dataset import Dataset
from foveate.data.density import choose_bandwidth, leave_one_out_maps
from foveate.data.scanpaths import ScanPaths
from foveate.evaluate.baselines import BANDWIDTHS_DEG, UNIFORM_SHARE
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.paired import StepScores as ComparedSteps
from foveate.evaluate.paired import two_way
from foveate.evaluate.scores import StepScores, score_steps
from foveate.model.catalogue import named_model

GOLD = "gold_standard"


@dataclass(frozen=True, eq=False)
class GoldStandard:
    """Scores of the gold standard on the held-out steps, in the order in which models are scored."""

    bandwidth_deg: float
    scores: StepScores


def seen_by_one(paths: ScanPaths) -> list:
    """Pictures that a single observer saw: there is nobody else to predict from."""
    return [it for it in paths.pictures if len(set(paths.observer[paths.picture == it].tolist())) < 2]


def gold_standard(validation: CrossValidation) -> GoldStandard:
    """The gold standard of a cross-validation's test pictures, from everybody in its pool but the one predicted."""
    grid = next(iter(validation.data.values())).maps.grid
    chosen = choose_bandwidth(validation.pool, grid, BANDWIDTHS_DEG, uniform_share=UNIFORM_SHARE)
    maps = leave_one_out_maps(validation.pool, grid, chosen.best_deg, uniform_share=UNIFORM_SHARE)
    static = named_model("saliency_baseline")
    parts = []
    for fold in validation.chosen_folds:
        for observer in validation.data:
            paths = validation.test(observer, fold).paths
            data = Dataset(paths, maps[observer].select(paths.pictures))
            parts.append(score_steps(static, data, np.zeros((1, 0))))
    return GoldStandard(chosen.best_deg, StepScores.joined(parts))


def shares_of_gold(bits: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """A row for every model: its mean gain in bits, that of the gold standard, and the ratio with its interval.

    `bits` is a table as comparisons take it (model, observer, picture, fixation, value), the gold standard among its
    models. Intervals are for new observers and pictures; the ratio's error is to first order.
    """
    steps = ComparedSteps.of(bits)
    counts, sums = steps.counts, dict(zip(steps.models, steps.sums, strict=True))
    gold = sums.pop(GOLD)
    mean_gold = float(gold.sum() / counts.sum())
    rows = []
    for name, model in sums.items():
        share = float(model.sum() / gold.sum())
        around = two_way(model - share * gold, counts, "fixation")
        low, high = ((share + side / mean_gold) for side in around.interval(level))
        rows.append({"model": name, "bits": float(model.sum() / counts.sum()), "gold_bits": mean_gold, "share": share,
                     "low": min(low, high), "high": max(low, high)})  # fmt: skip
    return pd.DataFrame(rows)
