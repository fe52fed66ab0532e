"""What a posterior says about every fixation of a path, exactly: which policy made it, and how surprising it was.

The same numbers as `policy_probabilities` and `pointwise_log_likelihood` of `inference/pointwise.py`, both from one
pass over the steps, also for paths with fewer steps than the model has parameters.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, softmax

from foveate.data.dataset import Dataset
from foveate.inference.target import Target, evaluate
from foveate.model.history import Array
from foveate.model.likelihood import choice_log_probability, policy_log_probability
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.model.packing import packed
from foveate.model.steps import Steps
from foveate.precision import double_precision
from foveate.threads import cores


def _joint(target: Target, vector: Float[Array, " number"]) -> Float[Array, "row step policy"]:
    model = target.model.from_real(vector)
    return choice_log_probability(model, target.steps) + policy_log_probability(model, target.steps)


@double_precision
def _target(model: Model, data: Dataset) -> Target:
    steps = packed(Steps.of(data, memory=model.memory, short="skip"))
    return jax.tree.map(jnp.asarray, Target(model, steps))


def step_numbers(
    model: Model, vectors: Float[np.ndarray, "draw number"], data: Dataset
) -> tuple[Float[np.ndarray, "fixation policy"], Float[np.ndarray, " fixation"]]:
    """For every fixation of the paths, one after another, (probability of each policy, surprise in bits).

    Averaged over the draws: the probabilities, and the density whose negative log2 the surprise is. The first two
    fixations of a path and forced ones, which no policy makes, are NaN.
    """
    real = data.paths.real
    scored = data.paths.scored(DRAWN_FROM_MAP)
    probability = np.full((*real.shape, len(model.policies)), np.nan)
    surprise = np.full(real.shape, np.nan)
    if scored.any():
        target = _target(model, data)
        found = np.asarray(evaluate(_joint, target, vectors, threads=cores()))[:, np.asarray(target.steps.real)]
        probability[scored] = softmax(found, axis=-1).mean(axis=0)
        density = logsumexp(found, axis=(0, 2)) - np.log(len(vectors))
        surprise[scored] = -density / np.log(2)
    return probability[real], surprise[real]
