"""Scores of a model's predictions: one number per data set, computed from the density of every step."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from foveate.errors import InputError
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.model import Model
from foveate.model.steps import Steps


class MeanWithError(NamedTuple):
    """A mean over observers and its standard error."""

    mean: float
    standard_error: float


def bits_per_fixation(model: Model, steps: Steps) -> float:
    """Mean over all steps of log2 p(cell) + log2(number of cells): the gain over the uniform density."""
    nats = float(np.sum(np.asarray(step_log_likelihoods(model, steps)))) / steps.count
    return (nats + float(np.log(steps.grid.cells))) / float(np.log(2))


def over_observers(scores: Float[np.ndarray, " observer"]) -> MeanWithError:
    """Mean of one score per observer, with the standard error that the spread between observers gives."""
    if len(scores) < 2:
        raise InputError(f"{len(scores)} observer: a standard error over observers needs at least two.")
    return MeanWithError(float(np.mean(scores)), float(np.std(scores, ddof=1) / np.sqrt(len(scores))))
