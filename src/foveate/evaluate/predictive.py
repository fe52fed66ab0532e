"""How well the draws of a fit predict steps that it did not see: the log of the mean density, and nothing else.

`heldout.py` scores whole maps (NSS, AUC); where many models are compared by bits alone, this takes a fraction of that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.special import logsumexp

from foveate.data.dataset import Dataset
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import Fitted, FittedFolds
from foveate.evaluate.heldout import Told
from foveate.evaluate.scores import NATS_PER_BIT
from foveate.inference.pointwise import step_log_probabilities, step_table
from foveate.inference.target import Target, evaluate
from foveate.model.likelihood import check_model_and_steps
from foveate.model.packing import packed
from foveate.model.steps import Steps


def predictive_bits(fitted: Fitted, data: Dataset) -> pd.DataFrame:
    """For every scored step of the data the bits over uniform of the mean density of the draws (`value`)."""
    steps = packed(Steps.of(data, memory=fitted.model.memory, short="skip"))
    check_model_and_steps(fitted.model, steps)
    with jax.enable_x64(True):
        target = jax.tree.map(jnp.asarray, Target(fitted.model, steps))
    each = np.asarray(evaluate(step_log_probabilities, target, fitted.vectors))[:, np.asarray(steps.real)]
    nats = logsumexp(each, axis=0) - np.log(len(each))
    return step_table(data).assign(value=(nats + np.log(data.maps.grid.cells)) / NATS_PER_BIT)


def held_out_bits(
    validation: CrossValidation, fitted: FittedFolds, told: Told = lambda model, fold, observer: None
) -> pd.DataFrame:
    """`predictive_bits` on the test pictures of every fold and observer, with the model's name and the fold."""
    parts = []
    for (fold, observer), it in fitted.parts.items():
        told(fitted.name, fold, observer)
        parts.append(predictive_bits(it, validation.test(observer, fold)).assign(fold=fold))
    found = pd.concat(parts, ignore_index=True)
    found.insert(0, "model", fitted.name)
    return found
