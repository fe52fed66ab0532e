"""Single numbers of a model, for figures: their prior and posterior densities, and what each chain knows of them."""

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float
from scipy.stats import gaussian_kde

from foveate.errors import InputError, some_of
from foveate.inference.posterior import Posterior
from foveate.model.model import Model
from foveate.model.priors import Prior
from foveate.precision import double_precision

NARROWEST = 0.2  # width of the smoothing, as a share of the usual one


def prior_of(model: Model, label: str) -> Prior:
    """The prior of the number with this label alone: of a pair, say, the axis' own."""
    if label not in model.labels:
        raise InputError(f"model {model.name!r} has no number {label!r}; it has {some_of(model.labels, 10)}.")
    if label in model.parameters:
        return model.priors[label]
    name, labels = next((name, labels) for name, labels in model.labels_of.items() if label in labels)
    index, shape = labels.index(label), np.shape(model.parameters[name])
    return jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), shape).ravel()[index], model.priors[name])


@double_precision
def prior_density(model: Model, label: str, values: Float[np.ndarray, " point"]) -> Float[np.ndarray, " point"]:
    """The prior density of the number with this label."""
    return np.exp(np.asarray(jax.vmap(prior_of(model, label).log_density)(jnp.asarray(values))))


@double_precision
def smooth_density(
    model: Model, label: str, draws: Float[np.ndarray, " draw"], values: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """The density of draws of a number, smoothed by a Gaussian on the real line (the logarithm of a variance, say).

    So it is zero where the number cannot be. Draws that are all the same have no density: not a number.
    """
    prior = prior_of(model, label)
    real = np.asarray(prior.to_real(jnp.asarray(draws)))
    if np.ptp(real) <= 1e-9 * max(1.0, float(np.abs(real).max())):
        return np.full(len(values), np.nan)
    at = prior.to_real(jnp.asarray(values))
    # The usual rule smears several modes into one; this one does not, but draws that repeat one another can fool it.
    width = float(array_stats.kde(real, bw="isj")[2]) / real.std(ddof=1)
    smooth = gaussian_kde(real, bw_method=max(width, NARROWEST * len(real) ** -0.2))
    return smooth(np.asarray(at)) / np.exp(np.asarray(jax.vmap(prior.log_jacobian)(at)))


def shown_range(draws: Float[np.ndarray, " draw"], *others: float) -> tuple[float, float]:
    """The range in which nearly all draws lie, widened so that some other values lie in it."""
    low, high = np.quantile(draws, [0.002, 0.998])
    low, high = min(low, *others, high), max(high, *others, low)
    margin = 0.12 * (high - low) or 0.5
    return float(max(low - margin, 0.5 * low)) if low > 0 else float(low - margin), float(high + margin)


def effective_in_a_chain(posterior: Posterior) -> Float[np.ndarray, " number"]:
    """The effective number of draws of a single chain, on average, for every number.

    Each chain is judged by itself: all together have few effective draws where they disagree, and it is just then that
    one wants to see by how much.
    """
    real = posterior.samples.real
    if posterior.samples.weighted is not None:  # resampled draws repeat one another
        return np.array(posterior.diagnosis.ess_bulk) / len(real)
    alone = [array_stats.ess(chain[None], chain_axis=0, draw_axis=1, method="bulk") for chain in real]
    return np.clip(np.nan_to_num(np.mean(alone, axis=0), nan=1.0), 1.0, real.shape[1])
