"""A study: models cross-validated on held-out pictures, compared, and set beside the saccades of the data.

`judge` works out all numbers of a finished cross-validation; `study_files.py` writes them down.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray

from foveate.data.scanpaths import ScanPaths
from foveate.evaluate.ceiling import GOLD, GoldStandard, gold_standard, seen_by_one, shares_of_gold
from foveate.evaluate.compare import BestShares, Comparison, best_shares, compare
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.distances import map_agreement
from foveate.evaluate.fitted import FittedFolds
from foveate.evaluate.fold_moments import FoldMoments
from foveate.evaluate.heldout import HeldOut, all_maps, centre_bias, score_held_out
from foveate.evaluate.saccades import spread_within_cells
from foveate.evaluate.scores import DRAWS, LABELS, NATS_PER_BIT, StepScores
from foveate.evaluate.simulated import observed_paths, simulated_data_sets
from foveate.evaluate.statistics import SaccadeComparison, compare_saccades
from foveate.evaluate.weights import Stacking, stacking

GAIN = "predictive_gain_over_uniform_bits"  # the score that models are ranked by
KEPT_DATA_SETS = 10  # simulated ones that are kept for maps and pictures

# Tells how far the work has come: in words, how much is done, of how much.
Tell = Callable[[str, float, float], None]


@dataclass(frozen=True, eq=False)
class Study:
    """All numbers of a cross-validation; models by name, in the order in which they were given."""

    validation: CrossValidation
    draws: int
    held_out: Mapping[str, HeldOut]
    comparison: Comparison | None  # in bits, of the posterior predictive density; None for a single model
    shares: BestShares | None
    weights: Stacking | None
    saccades: Mapping[str, SaccadeComparison]
    simulated: Mapping[str, list[ScanPaths]]  # some of the simulated data sets
    maps: Mapping[str, pd.DataFrame]  # how densities of simulated fixations compare with the pictures' maps
    agreement_by_fold: Mapping[str, pd.DataFrame]  # both R^2 of the observers' amplitudes, a row for each fold
    gold: GoldStandard | None  # None where a picture was seen by a single observer
    fits: pd.DataFrame  # a row for every fit: convergence, evidence

    @property
    def unconverged(self) -> int:
        """Fits with problems; they are in all results, and marked there."""
        return int(np.sum(~self.fits["converged"].to_numpy(dtype=bool))) if len(self.fits) else 0

    def scores(self) -> pd.DataFrame:
        """A row for each model: averages over fixations and over pictures, and the pooled AUCs."""
        rows = {}
        for name, found in self.held_out.items():
            averages = {"fixations": found.scores.mean_over_fixations(), "pictures": found.scores.mean_over_pictures()}
            row = {f"{score}, over {kind}": value for kind, it in averages.items() for score, value in it.items()}
            row |= {"auc_pooled": found.roc.auc, "auc_shuffled": found.shuffled.auc}
            row |= {"predictive_auc_pooled": found.predictive_roc.auc}
            rows[name] = row | {"predictive_auc_shuffled": found.predictive_shuffled.auc}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")

    def observer_scores(self) -> pd.DataFrame:
        """A row for each model and observer: averages over their fixations."""
        parts = {name: found.scores.observers_over_fixations() for name, found in self.held_out.items()}
        return pd.concat(parts, names=["model"]).reset_index()

    def by_fixation(self) -> pd.DataFrame:
        """A row for every model and step: what scores by fixation number are drawn from."""
        parts = [found.scores.shown().assign(model=name) for name, found in self.held_out.items()]
        return pd.concat(parts, ignore_index=True)

    def saccade_table(self) -> pd.DataFrame:
        """For each model every statistic of its saccades, observed and simulated."""
        return pd.concat({name: it.table() for name, it in self.saccades.items()}, names=["model"]).reset_index()

    def ceiling(self) -> pd.DataFrame | None:
        """For each model which share of the gold standard's gain it reaches; None where there is no gold standard."""
        if self.gold is None:
            return None
        scores = {name: found.scores for name, found in self.held_out.items()}
        return shares_of_gold(bits_of(scores | {GOLD: self.gold.scores}))

    def agreement_table(self) -> pd.DataFrame:
        """For each model both R^2 of the observers' mean and standard deviation of amplitude."""
        return pd.concat({name: it.agreement() for name, it in self.saccades.items()}, names=["model"]).reset_index()


def judge(validation: CrossValidation, *, draws: int = DRAWS, tell: Tell = lambda words, done, total: None) -> Study:
    """All numbers of a cross-validation whose fits are there."""
    for_scores, for_simulation, for_shares, for_weights = jax.random.split(jax.random.key(validation.seed), 4)
    names = list(validation.models)
    total = len(names) * (len(validation.data) * len(validation.chosen_folds) + draws)
    done = 0

    def scored(model: str, fold: int, observer: object) -> None:
        nonlocal done
        tell(f"scores of {model}, fold {fold}, observer {observer}", done, total)
        done += 1

    bias = centre_bias(validation)
    held_out, fits = {}, []
    saccades, kept, agreement, by_fold = {}, {}, {}, {}
    for name in names:
        fitted = FittedFolds.of(validation.fits, name, draws)
        fits += fitted.rows()
        held_out[name] = score_held_out(validation, fitted, for_scores, bias=bias, told=scored)
        some: list[ScanPaths] = []

        def told(name: str = name) -> None:
            nonlocal done
            tell(f"simulated paths of {name}", done, total)
            done += 1

        moments = FoldMoments.of(validation)
        saccades[name] = _saccades(validation, fitted, for_simulation, some, moments, told)
        by_fold[name] = moments.agreement()
        kept[name] = some
        agreement[name] = map_agreement(some, all_maps(validation))
    tables = bits_of({name: found.scores for name, found in held_out.items()})
    several = len(names) > 1
    return Study(
        validation,
        draws,
        held_out,
        compare(tables) if several else None,
        best_shares(tables, for_shares) if several and len(validation.data) > 1 else None,
        stacking(tables, for_weights, unit="bits") if several else None,
        saccades,
        kept,
        agreement,
        by_fold,
        gold_standard(validation) if not seen_by_one(validation.pool) else None,
        pd.DataFrame(fits),
    )


def _saccades(
    validation: CrossValidation,
    fitted: FittedFolds,
    key: PRNGKeyArray,
    kept: list[ScanPaths],
    moments: FoldMoments,
    told: Callable[[], None],
) -> SaccadeComparison:
    """Observed against simulated saccades; the first data sets are put into `kept`, `moments` sees them all."""
    grid = next(iter(validation.data.values())).maps.grid
    for_paths, for_places = jax.random.split(key)

    def spread():
        data_sets = simulated_data_sets(validation, fitted, for_paths)
        for paths, place in zip(data_sets, jax.random.split(for_places, fitted.draws), strict=True):
            told()
            if len(kept) < KEPT_DATA_SETS:
                kept.append(paths)
            spread_out = spread_within_cells(paths, grid, place)
            moments.add(spread_out)
            yield spread_out

    return compare_saccades(observed_paths(validation), spread())


def bits_of(scores: Mapping[str, StepScores]) -> pd.DataFrame:
    """The score that models are compared by, step by step, in the form that comparisons take."""
    parts = []
    for name, found in scores.items():
        nats = found.predictive["log_probability_nats"] - found.baseline_nats["uniform"]
        parts.append(pd.DataFrame({**{it: found.labels[it] for it in LABELS}, "value": nats / NATS_PER_BIT}))
        parts[-1].insert(0, "model", name)
    return pd.concat(parts, ignore_index=True)
