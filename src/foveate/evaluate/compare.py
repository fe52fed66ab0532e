"""Models compared with the uncertainty that observers and pictures leave, and for how many observers each is best."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError, some_of
from foveate.evaluate.paired import Average, Estimate, StepScores, two_way
from foveate.inference.draws import generator
from foveate.precision import check_key

# Jeffreys' prior of shares: intervals from it have close to their nominal coverage, also for a share of none.
SHARE_PRIOR = 0.5


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every model's mean score and every pair's difference, with intervals; the best model first.

    `pairs` has a row for each two models, the better one `first`: `difference` (first - second), `low` and `high` (its
    interval), `low_all` and `high_all` (wider, so that all pairs hold together with that probability: to be read where
    the best was picked by its score), and in how many observers the first is ahead.
    """

    models: pd.DataFrame
    pairs: pd.DataFrame
    average: Average
    level: float

    @property
    def best(self) -> str:
        """The model with the highest mean."""
        return str(self.models["model"].iloc[0])

    def against_best(self) -> pd.DataFrame:
        """The rows of `pairs` in which the best model is compared with each of the others."""
        return cast(pd.DataFrame, self.pairs[self.pairs["first"] == self.best]).reset_index(drop=True)


def compare(table: pd.DataFrame, *, average: Average = "fixation", level: float = 0.95) -> Comparison:
    """Models compared on a table of scores per step (see `StepScores.of`), higher being better.

    `average` is 'fixation' (every step counts the same) or 'picture' (every path does). Differences are paired by
    observer and picture.
    """
    _check(average, level)
    scores = StepScores.of(table)
    if len(scores.models) < 2:
        raise InputError(f"only model {some_of(list(scores.models))} in the table: a comparison needs at least two.")
    counts, sums, names = scores.counts, scores.sums, scores.models
    means = [two_way(model, counts, average) for model in sums]
    order = sorted(range(len(means)), key=lambda index: -means[index].mean)
    models = {"model": [names[index] for index in order]} | _columns([means[index] for index in order], level, "mean")

    places = [(first, second) for place, first in enumerate(order) for second in order[place + 1 :]]
    differences = [sums[first] - sums[second] for first, second in places]
    found = [two_way(difference, counts, average) for difference in differences]
    together = [it.interval(1 - (1 - level) / len(places)) for it in found]
    ahead = [int((_observer_means(difference, counts, average) > 0).sum()) for difference in differences]
    pairs = {"first": [names[first] for first, _ in places], "second": [names[second] for _, second in places]}
    pairs |= _columns(found, level, "difference")
    pairs |= {"low_all": [low for low, _ in together], "high_all": [high for _, high in together]}
    pairs |= {"observers_ahead": ahead, "observers": [len(scores.observers)] * len(places)}
    return Comparison(pd.DataFrame(models), pd.DataFrame(pairs), average, level)


def _columns(estimates: list[Estimate], level: float, name: str) -> dict[str, list]:
    intervals = [it.interval(level) for it in estimates]
    return {
        name: [it.mean for it in estimates],
        "low": [low for low, _ in intervals],
        "high": [high for _, high in intervals],
        "standard_error": [it.standard_error for it in estimates],
        "degrees_of_freedom": [it.degrees_of_freedom for it in estimates],
    }


def _check(average: str, level: float) -> None:
    if average not in ("fixation", "picture"):
        raise InputError(f"average = {average!r}: say 'fixation' or 'picture'.")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: the probability of an interval lies between 0 and 1, such as 0.95.")


def _observer_means(
    sums: Float[np.ndarray, "*models observer picture"], counts: Float[np.ndarray, "observer picture"], average: Average
) -> Float[np.ndarray, "*models observer"]:
    if average == "fixation":
        return sums.sum(axis=-1) / counts.sum(axis=-1)
    return (sums / np.maximum(counts, 1)).sum(axis=-1) / (counts > 0).sum(axis=-1)


# --- for how many observers is each model the best? ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BestShares:
    """`shares`: for each model the share of observers whose best it is, with an interval for new observers.

    `by_observer`: for each observer the probability that each model is the best one, pictures being a sample.
    """

    shares: pd.DataFrame
    by_observer: pd.DataFrame
    level: float


def best_shares(
    table: pd.DataFrame,
    key: PRNGKeyArray,
    *,
    average: Average = "fixation",
    level: float = 0.95,
    draws: int = 4000,
) -> BestShares:
    """The share of observers for whom each model predicts best, from a table of scores per step.

    Two things are uncertain, and both are in the interval. Which model is best for an observer: pictures get random
    weights (Bayesian bootstrap), the same for all observers. Which observers there are: given the winners, the shares
    follow a Dirichlet distribution. A tie counts for each of its models by a part. Where models are hardly apart for an
    observer, the winner is a toss-up and shares are drawn towards each other: `by_observer` shows it. The interval of a
    model that is best for nobody reaches down to 0, and of one that is best for all up to 1.
    """
    check_key(key)
    _check(average, level)
    if draws < 100:
        raise InputError(f"draws = {draws}: an interval needs at least 100.")
    rng = generator(key)
    scores = StepScores.of(table)
    sums, counts = scores.sums, scores.counts
    if average == "picture":
        sums, counts = sums / np.maximum(counts, 1), (counts > 0).astype(np.float64)
    observed = _winners(sums.sum(axis=2) / counts.sum(axis=1)).sum(axis=1)
    weight = rng.exponential(size=(draws, len(scores.pictures)))
    means = np.einsum("dp,mop->dmo", weight, sums, optimize=True) / (weight @ counts.T)[:, None, :]
    winners = _winners(means)
    shares = rng.standard_gamma(winners.sum(axis=2) + SHARE_PRIOR)
    shares /= shares.sum(axis=1, keepdims=True)
    low, high = np.quantile(shares, [(1 - level) / 2, (1 + level) / 2], axis=0)
    share = observed / len(scores.observers)
    low, high = np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)
    columns = {"model": scores.models, "observers": observed, "share": share}
    by_observer = pd.DataFrame(winners.mean(axis=0).T, columns=list(scores.models))
    by_observer.insert(0, "observer", list(scores.observers))
    best_first = np.argsort(-observed, kind="stable")
    found = pd.DataFrame(columns | {"low": low, "high": high}).iloc[best_first].reset_index(drop=True)
    return BestShares(found, by_observer, level)


def _winners(means: Float[np.ndarray, "*draws model observer"]) -> Float[np.ndarray, "*draws model observer"]:
    """One for the best model of each observer, zero for the others; parts of one where several are equally good."""
    top = (means == means.max(axis=-2, keepdims=True)).astype(np.float64)
    return top / top.sum(axis=-2, keepdims=True)
