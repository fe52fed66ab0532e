"""What a posterior says about every single step: its log-likelihood, and which policy it came from."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.errors import InputError
from foveate.inference.diagnosis import LARGEST_PARETO_K
from foveate.inference.posterior import Posterior
from foveate.inference.target import Target, evaluate
from foveate.model.history import Array
from foveate.model.likelihood import choice_log_probability, log_probability, policy_log_probability
from foveate.model.model import DRAWN_FROM_MAP
from foveate.threads import cores


@dataclass(frozen=True)
class Accuracy:
    """Expected log predictive density of new steps, in nats over all steps, with its standard error."""

    method: str  # "PSIS-LOO" or "WAIC"
    elpd_nats: float
    standard_error_nats: float
    effective_parameters: float
    steps: int
    bits_per_fixation: float  # gain over uniform, per step
    doubtful_steps: int  # with Pareto k-hat above 0.7 (LOO), or a variance above 0.4 (WAIC)
    converged: bool  # the fit behind it


def step_log_probabilities(target: Target, vector: Float[Array, " number"]) -> Float[Array, "row step"]:
    """Log-probability of every step of a target, padding included, for use with `evaluate`."""
    return log_probability(target.model.from_real(vector), target.steps)


def _policies(target: Target, vector: Float[Array, " number"]) -> Float[Array, "row step policy"]:
    model = target.model.from_real(vector)
    joint = choice_log_probability(model, target.steps) + policy_log_probability(model, target.steps)
    return jax.nn.softmax(joint, axis=-1)


def _target(posterior: Posterior, data: Dataset) -> Target:
    if not isinstance(data, Dataset):
        raise InputError(f"data is a {type(data).__name__}: give a Dataset, Dataset(paths, maps).")
    return Target.of(posterior.model, data)


def _each(function: Any, posterior: Posterior, target: Target, most: int) -> Float[np.ndarray, "draw step ..."]:
    """`function` of every step for up to `most` draws, evenly picked; steps in the order of the paths."""
    vectors = posterior.samples.real.reshape(-1, target.size)
    chosen = vectors[np.linspace(0, len(vectors) - 1, min(most, len(vectors))).astype(int)]
    values = np.asarray(evaluate(function, target, chosen, threads=cores()))
    return values[:, np.asarray(target.steps.real)]


def pointwise_log_likelihood(posterior: Posterior, data: Dataset) -> Float[np.ndarray, "chain draw step"]:
    """Log-probability (nats) of every scored step of `data` under every draw, in the order of `step_table`."""
    target = _target(posterior, data)
    chains, draws = posterior.samples.real.shape[:2]
    values = _each(step_log_probabilities, posterior, target, chains * draws)
    return values.reshape(chains, draws, -1)


def step_table(data: Dataset) -> pd.DataFrame:
    """Observer, picture, trial and fixation number of every scored step: the third fixation of a path and on, but for
    forced ones."""
    paths = data.paths
    path, fixation = np.nonzero(paths.scored(DRAWN_FROM_MAP))
    return pd.DataFrame(
        {
            "observer": paths.observer[path],
            "picture": paths.picture[path],
            "trial": paths.trial[path],
            "fixation": paths.fixation[path, fixation],
        }
    )


def policy_probabilities(posterior: Posterior, data: Dataset, *, draws: int = 400) -> pd.DataFrame:
    """For every scored step the posterior probability that each policy made it, averaged over so many draws.

    One column per policy, named after it: `local` for the paper's local steps.
    """
    found = _each(_policies, posterior, _target(posterior, data), draws).mean(axis=0)
    names = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in posterior.model.policy_names]
    table = step_table(data).assign(**dict(zip(names, found.T, strict=True)))
    return table.assign(converged=posterior.converged) if not posterior.converged else table


# --- predictive accuracy -------------------------------------------------------------------------------------------


def loo(posterior: Posterior, data: Dataset) -> Accuracy:
    """Leave-one-step-out accuracy by Pareto-smoothed importance sampling (ArviZ)."""
    from arviz_base import from_dict
    from arviz_stats.loo.loo import loo as arviz_loo

    values = pointwise_log_likelihood(posterior, data)
    tree = from_dict({"posterior": posterior.draws, "log_likelihood": {"steps": values}})
    # Draws were resampled or come from chains: their own autocorrelation says how many they are worth.
    worth = min(1.0, posterior.diagnosis.min_ess / (values.shape[0] * values.shape[1]))
    with warnings.catch_warnings():  # of doubtful steps, which are counted below
        warnings.filterwarnings("ignore", message="Estimated shape parameter", category=UserWarning)
        found: Any = arviz_loo(tree, pointwise=True, reff=worth)
    doubtful = int(np.sum(np.asarray(found.pareto_k) > LARGEST_PARETO_K))
    return _accuracy("PSIS-LOO", posterior, data, np.asarray(found.elpd_i), float(found.p), doubtful)


def waic(posterior: Posterior, data: Dataset) -> Accuracy:
    """The widely applicable information criterion, as an expected log predictive density.

    elpd = log mean_s p(y_i | s) - var_s log p(y_i | s). ArviZ dropped it in favour of LOO; it is kept for comparison
    with older work.
    """
    values = pointwise_log_likelihood(posterior, data)
    flat = values.reshape(-1, values.shape[-1])
    with jax.enable_x64(True):
        log_mean = np.asarray(jax.scipy.special.logsumexp(jnp.asarray(flat), axis=0)) - np.log(len(flat))
    variance = flat.var(axis=0, ddof=1)
    doubtful = int(np.sum(variance > 0.4))
    return _accuracy("WAIC", posterior, data, log_mean - variance, float(variance.sum()), doubtful)


def _accuracy(
    method: str, posterior: Posterior, data: Dataset, pointwise: np.ndarray, parameters: float, doubtful: int
) -> Accuracy:
    count = pointwise.size
    bits = (pointwise.mean() + np.log(data.maps.grid.cells)) / np.log(2)
    error = float(np.sqrt(count * pointwise.var(ddof=1)))
    return Accuracy(
        method, float(pointwise.sum()), error, parameters, count, float(bits), doubtful, posterior.converged
    )
