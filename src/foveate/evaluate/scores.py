"""Scores of a model's predictions: of every step, from the density before it, and their averages.

Held-out steps are scored by every draw of a posterior. Two numbers follow for each score: its mean over draws, as in
the paper, and its value for the posterior predictive density, the mean of the draws' densities.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.evaluate.baselines import baseline_nats
from foveate.evaluate.predictions import DrawScores, score_draws
from foveate.evaluate.trials import thinned
from foveate.inference.pointwise import step_table
from foveate.inference.posterior import Posterior
from foveate.model.history import Array
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.model import Model
from foveate.model.steps import Steps

LABELS = ("observer", "picture", "trial", "fixation")
NATS_PER_BIT = float(np.log(2))

# As in the paper.
DRAWS = 50


class MeanWithError(NamedTuple):
    """A mean over observers and its standard error."""

    mean: float
    standard_error: float


def bits_per_fixation(model: Model, steps: Steps) -> float:
    """Mean over all steps of log2 p(cell) + log2(number of cells): the gain over the uniform density."""
    nats = float(np.sum(np.asarray(step_log_likelihoods(model, steps)))) / steps.count
    return (nats + float(np.log(steps.grid.cells))) / NATS_PER_BIT


def over_observers(scores: Float[np.ndarray, " observer"]) -> MeanWithError:
    """Mean of one score per observer, with the standard error that the spread between observers gives."""
    if len(scores) < 2:
        raise InputError(f"{len(scores)} observer: a standard error over observers needs at least two.")
    return MeanWithError(float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(len(scores))))


@dataclass(frozen=True, eq=False)
class StepScores:
    """The scores of every step: `mean` over draws, and of the posterior's `predictive` density.

    Both hold log_probability_nats, nss and auc. `baseline_nats` is the log-probability of the same cells under
    densities that do not know the gaze; what a model gains is the difference to them.
    """

    labels: Mapping[str, np.ndarray]  # observer, picture, trial, fixation (its number as recorded)
    draws: int
    mean: Mapping[str, Float[np.ndarray, " step"]]
    predictive: Mapping[str, Float[np.ndarray, " step"]]
    baseline_nats: Mapping[str, Float[np.ndarray, " step"]] = field(default_factory=dict)
    unconverged: tuple = ()  # observers whose fit had problems

    def __repr__(self) -> str:
        """What is in here, in a line."""
        observers, pictures = (len(set(self.labels[name].tolist())) for name in ("observer", "picture"))
        words = f"{len(self):,} steps, {observers} observers, {pictures} pictures, {self.draws} draws"
        return f"StepScores({words}{f'; NOT CONVERGED: {some_of([*self.unconverged])}' if self.unconverged else ''})"

    def __len__(self) -> int:
        """Number of steps."""
        return len(self.labels["observer"])

    @classmethod
    def of(cls, scores: DrawScores, data: Dataset, *, centre_bias: SaliencyMaps | None = None) -> "StepScores":
        """From the scores of `data`'s steps draw by draw; `centre_bias` are maps as `centre_bias_maps` makes them."""
        table = step_table(data)
        if len(table) != scores.predictive.density.shape[0]:
            raise InputError(
                f"scores of {scores.predictive.density.shape[0]} steps, but the data have {len(table)}: give the data "
                "that the scores were made from."
            )
        labels = {name: table[name].to_numpy() for name in LABELS}
        baselines = baseline_nats(data, centre_bias)
        return cls(labels, len(scores.each.density), scores.each.means(), scores.predictive.means(), baselines)

    @classmethod
    def joined(cls, parts: Sequence["StepScores"]) -> "StepScores":
        """The steps of several parts, one behind the other: observers, or folds."""
        if not parts:
            raise InputError("no scores given: there must be one part or more.")
        draws, baselines = {it.draws for it in parts}, {tuple(it.baseline_nats) for it in parts}
        if len(draws) > 1 or len(baselines) > 1:
            raise InputError("parts with different numbers of draws or other baselines cannot be joined.")

        def together(which: str) -> dict[str, np.ndarray]:
            return {
                name: np.concatenate([getattr(it, which)[name] for it in parts]) for name in getattr(parts[0], which)
            }

        values = (together("mean"), together("predictive"), together("baseline_nats"))
        unconverged = tuple(dict.fromkeys(observer for it in parts for observer in it.unconverged))
        return cls(together("labels"), parts[0].draws, *values, unconverged)

    # --- what is shown -----------------------------------------------------------------------------------------

    def table(self) -> pd.DataFrame:
        """A row for every step: labels, the scores as they are (nats), and those of the predictive density."""
        columns = {**self.labels, **self.mean}
        columns |= {f"predictive_{name}": values for name, values in self.predictive.items()}
        columns |= {f"{name}_nats": values for name, values in self.baseline_nats.items()}
        return self._marked(pd.DataFrame(columns))

    def shown(self) -> pd.DataFrame:
        """A row for every step as people read it: gains over each baseline in bits, NSS and AUC."""
        columns: dict[str, Any] = dict(self.labels)
        for prefix, scores in (("", self.mean), ("predictive_", self.predictive)):
            for name, nats in self.baseline_nats.items():
                gain = scores["log_probability_nats"] - nats
                columns[f"{prefix}gain_over_{name}_bits"] = gain / NATS_PER_BIT
            columns |= {f"{prefix}{name}": scores[name] for name in ("nss", "auc")}
        return self._marked(pd.DataFrame(columns))

    def _marked(self, table: pd.DataFrame) -> pd.DataFrame:
        """With a column that says whose fit had problems, where there are such."""
        return table.assign(converged=~table["observer"].isin(self.unconverged)) if self.unconverged else table

    # --- averages of what is shown -----------------------------------------------------------------------------

    def mean_over_fixations(self) -> pd.Series:
        """Every fixation weighs the same."""
        return self.shown().drop(columns=[*LABELS, "converged"], errors="ignore").mean()

    def mean_over_pictures(self) -> pd.Series:
        """Every picture of an observer weighs the same, then every observer: means of means."""
        return self.observers_over_pictures().mean()

    def observers_over_fixations(self) -> pd.DataFrame:
        """A row for each observer, the mean over all of their fixations; `over_observers` takes a column of it."""
        return _means(self.shown(), "observer")

    def observers_over_pictures(self) -> pd.DataFrame:
        """A row for each observer, the mean over pictures of the mean over each picture's fixations."""
        return _means(_means(self.shown(), "observer", "picture").reset_index(), "observer")

    def pictures_over_fixations(self) -> pd.DataFrame:
        """A row for each picture, the mean over all fixations on it."""
        return _means(self.shown(), "picture")


def _means(shown: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Means of the scores within each group, in the order in which the groups come."""
    numbers = [name for name in shown.columns if name not in (*LABELS, "converged")]
    grouped: Any = shown.groupby(list(by), sort=False)
    return grouped[numbers].mean()


def score_steps(
    model: Model,
    data: Dataset,
    draws: Float[np.ndarray, "draw number"] | Mapping[str, Array],
    *,
    centre_bias: SaliencyMaps | None = None,
) -> StepScores:
    """Scores of every scored step of `data` (the third fixation of a path and on) under draws of the parameters.

    `draws` are vectors on the real line, or every parameter by name with a leading axis over the draws.
    """
    if not isinstance(data, Dataset):
        raise InputError(f"data is a {type(data).__name__}: give a Dataset, Dataset(paths, maps).")
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}: give a Model, such as foveate.named_model('full').")
    steps = Steps.of(data, memory=model.memory, short="skip")
    return StepScores.of(score_draws(model, steps, draws), data, centre_bias=centre_bias)


def score_posterior(
    posterior: Posterior, data: Dataset, *, draws: int = DRAWS, centre_bias: SaliencyMaps | None = None
) -> StepScores:
    """Scores of `data`, which should be held out from the fit, under so many draws of a posterior, evenly picked."""
    if draws < 1:
        raise InputError(f"draws = {draws}: give 1 or more.")
    vectors = posterior.samples.real.reshape(-1, len(posterior.model.labels))
    some = thinned(vectors, min(draws, len(vectors)))
    scores = score_steps(posterior.model, data, some, centre_bias=centre_bias)
    return scores if posterior.converged else replace(scores, unconverged=(posterior.observer,))
