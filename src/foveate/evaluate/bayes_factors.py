"""Bayes factors between models from their evidences, and how much evidences and posteriors owe to the priors.

The evidence of a model is the probability of an observer's scan paths, averaged over the prior. It depends on the prior
even where the posterior does not: a prior that is twice as wide as need be costs log 2 per number. So a Bayes factor is
to be shown with its sensitivity. Power-scaling (Kallioinen et al., 2024) raises the prior to a power alpha, above one
for a narrower and below one for a wider prior, and reweights the draws that there are.

Priors are scaled as densities on the real line on which models are fitted (logarithms of variances, log-odds). There
every power of them is a proper density; on the scale of variances IG(0.2, 25) to the power 0.8 already is not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.data.columns import check_names, labels, numbers
from foveate.errors import InputError
from foveate.inference.diagnosis import LARGEST_PARETO_K
from foveate.inference.posterior import Posterior
from foveate.model.model import Model
from foveate.precision import check_key

# Jeffreys' words for the size of a Bayes factor: each holds from this log10 on.
STRENGTHS = ((0.0, "hardly any"), (0.5, "substantial"), (1.0, "strong"), (1.5, "very strong"), (2.0, "decisive"))

# Above this a posterior is said to be sensitive (Kallioinen et al.).
SENSITIVE = 0.05

# An interval of 95 % for a Monte Carlo error.
TWO_SIDED = 1.959964


@dataclass(frozen=True, eq=False)
class BayesFactors:
    """log10 of the Bayes factors of all pairs of models, the one with more evidence in all being the `first`.

    `low` and `high` are 95 % intervals for the Monte Carlo error of the evidences alone. `together` is for all
    observers, each with parameters of their own: the logarithms add up. It also says for how many observers the factor
    favours the first model, and which share the largest single factor has in the sum of their sizes.
    """

    by_observer: pd.DataFrame
    together: pd.DataFrame


def evidence_table(posteriors: Iterable[Posterior]) -> pd.DataFrame:
    """The table that `bayes_factors` reads: model, observer, log_evidence_nats, standard_error_nats and converged."""
    rows, timed = [], set()
    for posterior in posteriors:
        timed.add(posterior.model.durations is not None)
        found = posterior.samples.log_evidence_nats
        if found is None:
            raise InputError(
                f"model {posterior.model.name!r}, observer {posterior.observer}: draws by {posterior.samples.sampler} "
                "give no evidence; fit with the sampler 'importance' or 'smc'."
            )
        rows.append((posterior.model.name, posterior.observer, *found, posterior.converged))
    if len(timed) > 1:
        raise InputError(
            "some models say how long fixations last and some do not: their evidences are of different data and cannot "
            "be compared; give all of them durations, or none."
        )
    if not rows:
        raise InputError("no posteriors given: there are no evidences to compare.")
    names = ("model", "observer", "log_evidence_nats", "standard_error_nats", "converged")
    return pd.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)))


def bayes_factors(table: pd.DataFrame) -> BayesFactors:
    """Bayes factors from the evidence of every model for every observer (columns: see `evidence_table`).

    `converged` may be missing; where it says no, the factors that rest on it are marked.
    """
    required = ("model", "observer", "log_evidence_nats", "standard_error_nats")
    check_names(list(table.columns), required, "the table of evidences")
    whole = pd.DataFrame({name: labels(table, name) for name in required[:2]})
    for name in required[2:]:
        whole[name] = numbers(table, name)
    whole["converged"] = table["converged"].to_numpy(dtype=bool) if "converged" in table.columns else True
    _check_evidences(whole)
    wide = {name: whole.pivot(index="observer", columns="model", values=name) for name in whole.columns[2:]}
    evidence, error = wide["log_evidence_nats"], wide["standard_error_nats"]
    models = sorted(evidence.columns, key=lambda model: -evidence[model].to_numpy().sum())
    by_observer, together = [], []
    for place, first in enumerate(models):
        for second in models[place + 1 :]:
            log10 = ((evidence[first] - evidence[second]) / np.log(10)).to_numpy()
            spread = (np.hypot(error[first], error[second]) / np.log(10)).to_numpy()
            good = (wide["converged"][first] & wide["converged"][second]).to_numpy(dtype=bool)
            for index, observer in enumerate(evidence.index):
                row = {"observer": observer, "first": first, "second": second}
                by_observer.append(row | _factor(log10[index], spread[index], first, second, bool(good[index])))
            total = _factor(log10.sum(), np.sqrt(np.square(spread).sum()), first, second, bool(good.all()))
            total |= {"observers_for_first": int((log10 > 0).sum()), "observers": len(log10)}
            total["largest_share"] = float(np.abs(log10).max() / max(np.abs(log10).sum(), 1e-300))
            together.append({"first": first, "second": second} | total)
    return BayesFactors(pd.DataFrame(by_observer), pd.DataFrame(together))


def in_words(log10: float, low: float, high: float, first: str, second: str) -> str:
    """A Bayes factor in Jeffreys' words, with a range of words where its error spans several."""
    if low <= 0 <= high:
        return "undecided: the evidences are not known well enough" if high > low else "none either way"
    winner = first if log10 > 0 else second
    weaker, stronger = (
        next(word for least, word in reversed(STRENGTHS) if size >= least) for size in sorted((abs(low), abs(high)))
    )
    return f"{weaker if weaker == stronger else f'{weaker} to {stronger}'} evidence for {winner}"


def _factor(log10: float, error: float, first: str, second: str, converged: bool) -> dict[str, Any]:
    low, high = log10 - TWO_SIDED * error, log10 + TWO_SIDED * error
    words = in_words(log10, low, high, first, second)
    if not converged:
        words += "; NOT CONVERGED"
    return {"log10": float(log10), "standard_error": float(error), "low": float(low), "high": float(high)} | {
        "words": words,
        "converged": converged,
    }


def _check_evidences(table: pd.DataFrame) -> None:
    for name in ("log_evidence_nats", "standard_error_nats"):
        bad = ~np.isfinite(table[name].to_numpy())
        if name == "standard_error_nats":
            bad |= table[name].to_numpy() < 0
        for row in np.flatnonzero(bad):
            raise InputError(
                f"model {table['model'].iloc[row]}, observer {table['observer'].iloc[row]}: {name} is "
                f"{table[name].iloc[row]}; it must be a finite number, and an error not negative."
            )
    counts = table.groupby(["observer", "model"]).size().unstack(fill_value=0)
    if counts.shape[1] < 2:
        raise InputError("a Bayes factor needs the evidences of at least two models.")
    for row, column in np.argwhere(counts.to_numpy() != 1):
        number = int(counts.to_numpy()[row, column])
        raise InputError(
            f"model {counts.columns[column]}, observer {counts.index[row]}: {number} evidences; every model needs one "
            "for every observer, or they would be judged on different data."
        )


# --- sensitivity to the prior ----------------------------------------------------------------------------------------


def prior_sensitivity(
    draws: Mapping[str, Float[np.ndarray, "chain draw"]],
    log_prior: Float[np.ndarray, "chain draw"],
    log_likelihood: Float[np.ndarray, "chain draw"],
) -> pd.DataFrame:
    """For each number how much its posterior moves when prior or likelihood get a little stronger (ArviZ's psense).

    The measure is the slope in log2(alpha) of the cumulative Jensen-Shannon distance; above 0.05 it counts. A prior
    that matters together with the likelihood is in conflict with the data; alone, it is all that is known.
    """
    from arviz_base import from_dict
    from arviz_stats.psense import psense

    tree = from_dict(
        {
            "posterior": {name: np.asarray(values) for name, values in draws.items()},
            "log_prior": {"prior": np.asarray(log_prior)},
            "log_likelihood": {"steps": np.asarray(log_likelihood)[..., None]},
        }
    )
    found = {group: psense(tree, group=group) for group in ("prior", "likelihood")}
    rows = []
    for name in draws:
        prior, likelihood = (float(found[group][name]) for group in ("prior", "likelihood"))
        verdict = "prior and data agree, or the prior hardly matters"
        if prior > SENSITIVE:
            verdict = "prior in conflict with the data" if likelihood > SENSITIVE else "strong prior or weak data"
        rows.append({"parameter": name, "prior": prior, "likelihood": likelihood, "verdict": verdict})
    return pd.DataFrame(rows)


def evidence_sensitivity(
    posterior_log_prior: Float[np.ndarray, "chain draw"],
    prior_log_prior: Float[np.ndarray, " prior_draw"],
    powers: Sequence[float] = (0.5, 0.8, 1.25, 2.0),
) -> pd.DataFrame:
    """By how many nats the log evidence changes if the prior is raised to each power (and normalised anew).

        log Z(alpha) - log Z(1) = log E_posterior p^(alpha - 1) - log E_prior p^(alpha - 1),

    p the prior density. The arguments are log p of draws from the posterior and of draws from the prior. Columns:
    power, change_nats, standard_error_nats, pareto_k (the larger of the two), reliable (pareto_k up to 0.7).
    """
    from arviz_stats.base.array import array_stats

    statistics: Any = array_stats  # which does not declare what it returns

    rows = []
    for power in powers:
        if not (np.isfinite(power) and power > 0):
            raise InputError(f"power = {power}: a prior can be raised to a positive power.")
        change, variance, worst = 0.0, 0.0, 0.0
        for sign, values in ((1, posterior_log_prior), (-1, np.asarray(prior_log_prior)[None])):
            values = np.asarray(values, dtype=np.float64)
            if values.ndim != 2 or values.size < 100 or not np.isfinite(values).all():
                raise InputError("log prior densities of at least 100 draws are needed, all of them finite.")
            log_weight = (power - 1) * values
            top = log_weight.max()
            weight = np.exp(log_weight - top)
            change += sign * (top + np.log(weight.mean()))
            if power != 1:
                worth = float(statistics.ess(weight, method="mean"))
                variance += float(weight.var(ddof=1)) / weight.mean() ** 2 / worth
                worst = max(worst, float(statistics.psislw(-log_weight.ravel())[1]))
        rows.append((power, change, np.sqrt(variance), worst, worst <= LARGEST_PARETO_K))
    names = ("power", "change_nats", "standard_error_nats", "pareto_k", "reliable")
    return pd.DataFrame(dict(zip(names, zip(*rows, strict=True), strict=True)))


def log_prior_of(posterior: Posterior) -> Float[np.ndarray, "chain draw"]:
    """Log prior density of every draw, on the real line."""
    real = posterior.samples.real
    return _log_prior(posterior.model, real.reshape(-1, real.shape[-1])).reshape(real.shape[:2])


def log_prior_of_prior(model: Model, key: PRNGKeyArray, draws: int = 4000) -> Float[np.ndarray, " draw"]:
    """Log prior density of draws from the prior itself, on the real line."""
    check_key(key)
    with jax.enable_x64(True):
        vectors = jax.vmap(lambda it: model.draw_from_prior(it).to_real())(jax.random.split(key, draws))
        return _log_prior(model, np.asarray(vectors))


def _log_prior(model: Model, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, " set"]:
    with jax.enable_x64(True):
        return np.asarray(
            jax.vmap(lambda it: model.from_real(it).log_prior() + model.log_jacobian(it))(jnp.asarray(vectors))
        )
