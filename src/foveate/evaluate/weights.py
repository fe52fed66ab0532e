"""Weights of models: how to mix their predictions, and how sure it is which of them predicts best.

Both take a table of log predictive densities per step (see `StepScores.of`): held-out ones, or those of leave-one-out.
A constant per step, such as the logarithm of the number of cells, changes no weight. Steps of an observer or on a
picture are not independent, so intervals come from random weights of observers times random weights of pictures (a
two-way Bayesian bootstrap), not from weights of single steps, which would make them far too narrow.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from scipy.special import logsumexp, softmax

from foveate.errors import InputError
from foveate.evaluate.paired import Estimate, StepScores, two_way
from foveate.inference.draws import generator
from foveate.precision import check_key

Unit = Literal["nats", "bits"]

# The log score of the mixture is within this of the highest possible one, in nats per step (see `_maximise`).
GAP_NATS, ROUGH_GAP_NATS = 1e-8, 1e-5
MOST_ROUNDS = 50_000

# Plain rounds (1) approach the optimum from one side only; below 2 longer ones still arrive, in fewer rounds.
OVERRELAXATION = 1.8


@dataclass(frozen=True, eq=False)
class Stacking:
    """The mixture of models with the highest log score over the given steps.

    `weights` has a row per model: weight, low, high. `gain` is how much better than the best single model the mixture
    predicts, in nats per step. It was fitted on these very steps, so it is too large by some nats over all of them:
    next to nothing per step where there are thousands.
    """

    weights: pd.DataFrame
    gain: Estimate
    best: str
    level: float


def stacking(table: pd.DataFrame, key: PRNGKeyArray, *, unit: Unit, level: float = 0.95, draws: int = 200) -> Stacking:
    """Stacking weights (Yao et al., 2018): w maximises sum over steps of log sum_m w_m p_m(step); a convex problem.

    `unit` is that of the table's log densities. A weight is not the probability of a model: two models that predict
    alike share one weight in any way, and a poor model that knows what the others do not gets some.
    """
    scores, log_density = _log_densities(table, unit, draws, level)
    rng = _generator(key)
    # Relative to the best model of each step nothing underflows, and the weights stay the same.
    density = np.exp(log_density - log_density.max(axis=0))
    found = _maximise(density, np.ones(density.shape[1]), np.full(len(density), 1 / len(density)), GAP_NATS)
    start = 0.9 * found + 0.1 / len(found)  # a weight of zero would stay there
    others = [
        _maximise(density, weight[scores.observer, scores.picture], start, ROUGH_GAP_NATS)
        for weight in _random_weights(scores, rng, draws)
    ]
    low, high = np.quantile(others, [(1 - level) / 2, (1 + level) / 2], axis=0)
    # Rough optima stop a little short of zero, where a weight may well be.
    low, high = np.minimum(low, found), np.maximum(high, found)
    best = int(np.argmax(log_density.sum(axis=1)))
    with np.errstate(divide="ignore"):
        mixed = logsumexp(log_density + np.log(found)[:, None], axis=0)
    columns = {"model": scores.models, "weight": found, "low": low, "high": high}
    return Stacking(
        _sorted(pd.DataFrame(columns), "weight"), _mean(scores, mixed - log_density[best]), scores.models[best], level
    )


def pseudo_bma(
    table: pd.DataFrame, key: PRNGKeyArray, *, unit: Unit, level: float = 0.95, draws: int = 4000
) -> pd.DataFrame:
    """Pseudo-BMA+ weights (Yao et al., 2018), with the expected log predictive densities that they are made from.

    Columns: model; elpd_nats, summed over all steps, and its standard_error_nats; difference_nats to the best model and
    its difference_error_nats (paired, see `two_way`); weight, the mean over random weights of observers and pictures of
    exp(elpd_m) / sum exp(elpd), and its interval. Without that mean a difference of a few nats would pass for certainty
    however uncertain it is.
    """
    scores, log_density = _log_densities(table, unit, draws, level)
    rng = _generator(key)
    steps = log_density.shape[1]
    own = [_mean(scores, values) for values in log_density]
    best = int(np.argmax([it.mean for it in own]))
    to_best = [_mean(scores, values - log_density[best]) for values in log_density]
    sums, counts = _sums(scores, log_density), scores.counts
    elpd = np.stack(
        [
            steps * np.tensordot(sums, weight, axes=2) / float((weight * counts).sum())
            for weight in _random_weights(scores, rng, draws)
        ]
    )
    weights = softmax(elpd, axis=1)
    low, high = np.quantile(weights, [(1 - level) / 2, (1 + level) / 2], axis=0)
    columns = {
        "model": scores.models,
        "elpd_nats": [steps * it.mean for it in own],
        "standard_error_nats": [steps * it.standard_error for it in own],
        "difference_nats": [steps * it.mean for it in to_best],
        "difference_error_nats": [steps * it.standard_error for it in to_best],
        "weight": weights.mean(axis=0),
        "low": low,
        "high": high,
    }
    return _sorted(pd.DataFrame(columns), "elpd_nats")


def _maximise(
    density: Float[np.ndarray, "model step"],
    step_weight: Float[np.ndarray, " step"],
    start: Float[np.ndarray, " model"],
    gap_nats: float,
) -> Float[np.ndarray, " model"]:
    """The weights of the mixture with the highest weighted mean log score, by expectation and maximisation.

    Each round multiplies a weight by a power of r_m, the mean of p_m / mixture. As the score is concave, no weights are
    better than the present ones by more than max_m r_m - 1: the rounds end when that is small enough.
    """
    share = step_weight / step_weight.sum()
    weights = start
    for _ in range(MOST_ROUNDS):
        ratio = density @ (share / (weights @ density))
        if ratio.max() - 1 <= gap_nats:
            break
        weights = weights * ratio**OVERRELAXATION
        weights = weights / weights.sum()
    return weights


def _random_weights(
    scores: StepScores, rng: np.random.Generator, draws: int
) -> Iterator[Float[np.ndarray, "observer picture"]]:
    """Random weights of paths: those of their observers times those of their pictures, each flat on the simplex."""
    for _ in range(draws):
        # One of a kind has nobody to be weighed against.
        observers, pictures = (
            rng.exponential(size=len(names)) if len(names) > 1 else np.ones(1)
            for names in (scores.observers, scores.pictures)
        )
        yield np.outer(observers, pictures)


def _log_densities(
    table: pd.DataFrame, unit: Unit, draws: int, level: float
) -> tuple[StepScores, Float[np.ndarray, "model step"]]:
    """The table's scores, and their values in nats."""
    if unit not in ("nats", "bits"):
        raise InputError(f"unit = {unit!r}: say 'nats' or 'bits', the unit of the table's log densities.")
    if draws < 100:
        raise InputError(f"draws = {draws}: an interval needs at least 100.")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: the probability of an interval lies between 0 and 1, such as 0.95.")
    scores = StepScores.of(table)
    return scores, scores.values * (np.log(2) if unit == "bits" else 1.0)


def _generator(key: PRNGKeyArray) -> np.random.Generator:
    check_key(key)
    return generator(key)


def _sums(scores: StepScores, values: Float[np.ndarray, "some step"]) -> Float[np.ndarray, "some observer picture"]:
    sums = np.zeros((len(values), len(scores.observers), len(scores.pictures)))
    for own, given in zip(sums, values, strict=True):
        np.add.at(own, (scores.observer, scores.picture), given)
    return sums


def _mean(scores: StepScores, values: Float[np.ndarray, " step"]) -> Estimate:
    return two_way(_sums(scores, values[None])[0], scores.counts, "fixation")


def _sorted(weights: pd.DataFrame, name: str) -> pd.DataFrame:
    return weights.sort_values(name, ascending=False, kind="stable").reset_index(drop=True)
