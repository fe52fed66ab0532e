"""How far an observer's parameters can be trusted: one half of the pictures against the other.

A model is fitted to both halves of the pictures (`picture_subsets.py`). The correlation r over observers of the halves'
posterior means says how well half of the pictures tells observers apart; Spearman and Brown's 2 r / (1 + r) is what
that means for all of them. How many pictures are needed is worked out from the same fits (`pictures_needed.py`).

All numbers are on the model's own real line (`Model.to_real`): logarithms of variances, log-odds of probabilities, b
and s0 as they are. There posteriors are about normal, and a standard deviation of 0.1 is about 10 % of a variance.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from foveate.errors import InputError
from foveate.evaluate.scales import value_scales
from foveate.experiments.picture_subsets import PictureSubsets
from foveate.experiments.pictures_needed import needed_row, sd_line
from foveate.inference.posterior import Posterior
from foveate.model.model import Model

FEWEST_FOR_BOOTSTRAP = 10  # observers; with fewer, some resamples hold little but one of them
RESAMPLES, LEVEL = 4999, 0.95  # of the bootstrap, and of intervals

BEYOND = 2.0  # a difference of the halves this many standard deviations wide is worth counting
SMALLEST_SIDE = 0.05  # a posterior has b on both sides of zero if each has at least this share of it
PRIOR_DRAWS = 4000  # from which the priors' variances are worked out


# --- two halves ------------------------------------------------------------------------------------------------------


class SplitHalf(NamedTuple):
    """The correlation of two halves with its interval, and the word for how that was made."""

    correlation: float
    low: float
    high: float
    interval: str


def spearman_brown(correlation: float) -> float:
    """What the correlation of two halves means for the whole: 2 r / (1 + r), and -2 |r| / (1 + |r|) if r < 0.

    A negative one has no meaning as a reliability; mirrored, limits of intervals stay between -1 and 1.
    """
    return 2 * correlation / (1 + abs(correlation))


def split_half(
    first: Float[np.ndarray, "split observer"], second: Float[np.ndarray, "split observer"], rng: np.random.Generator
) -> SplitHalf:
    """Pearson's correlation over observers between the halves, averaged over splits, with an interval of 95 %.

    Of a single split it is Fisher's (tanh of atanh r ± 1.96 / sqrt(observers - 3)), of several the BCa bootstrap over
    observers, all splits of an observer together. Where observers are too few for that it is the mean of the splits'
    own Fisher intervals, which is wide: it does not know that there is more than one split.
    """
    each: list[Any] = [stats.pearsonr(*halves) for halves in zip(first, second, strict=True)]
    average, observers = float(np.mean([it.statistic for it in each])), first.shape[1]
    if len(each) == 1 or observers < FEWEST_FOR_BOOTSTRAP:
        low, high = np.mean([it.confidence_interval(LEVEL) for it in each], axis=0)
        return SplitHalf(average, float(low), float(high), "Fisher z")

    def average_of(observer: np.ndarray, axis: int = -1) -> Any:
        found: Any = stats.pearsonr(first[:, observer], second[:, observer], axis=axis)
        return found.statistic.mean(axis=0)

    settings: Any = {"n_resamples": RESAMPLES, "batch": 100, "confidence_level": LEVEL}
    settings["random_state"] = rng  # its name before SciPy 1.15, which later ones know too
    found = stats.bootstrap((np.arange(observers),), average_of, **settings).confidence_interval
    return SplitHalf(average, float(found.low), float(found.high), "bootstrap over observers")


def expected_spread(
    means: Float[np.ndarray, "half observer"], variances: Float[np.ndarray, "half observer"], prior_variance: float
) -> tuple[float, float]:
    """(between observers, error of one): standard deviations of posterior means, as posteriors themselves expect them.

    A posterior mean scatters around the truth with the posterior variance v if the prior is wide; one with variance p
    holds it back, so that it scatters with v (1 - v / p) only. What is left of the variance of the means is that
    between observers: zero where they differ by less than they scatter.
    """
    error = float(np.mean(variances * (1 - np.minimum(variances / prior_variance, 1))))
    between = float(means.var(axis=1, ddof=1).mean()) - error
    return float(np.sqrt(max(between, 0.0))), float(np.sqrt(error))


# --- all numbers -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reliability:
    """All numbers of a model's reliability; means and standard deviations are on the real line."""

    subsets: PictureSubsets
    precision: float  # the posterior standard deviation that is asked for
    parameters: pd.DataFrame  # a row for each number of the model: correlations, reliabilities, differences
    halves: pd.DataFrame  # a row for each split, observer and number
    sizes: pd.DataFrame  # a row for each fit and number: mean and standard deviation by number of pictures
    needed: pd.DataFrame  # a row for each number: the line, and the pictures needed
    fits: pd.DataFrame  # a row for each fit: convergence, modes

    @property
    def unconverged(self) -> int:
        """Fits with problems; they are in all results, and marked there."""
        return int(np.sum(~self.fits["converged"].to_numpy(dtype=bool)))

    @property
    def both_sides(self) -> int | None:
        """Fits with b on both sides of zero, whose mean may lie between two modes; None if the model has no b."""
        if "b_positive" not in self.fits:
            return None
        share = self.fits["b_positive"].to_numpy()
        return int(np.sum(np.minimum(share, 1 - share) >= SMALLEST_SIDE))


def reliability(subsets: PictureSubsets, *, precision: float = 0.1) -> Reliability:
    """All numbers, once the fits are there; `precision` is the posterior standard deviation that one would like."""
    if not 0 < precision < np.inf:
        raise InputError(f"precision = {precision}: give a posterior standard deviation, a positive number.")
    mean, sd, fits = _read(subsets)
    labels, folds = subsets.model.labels, subsets.fits.folds
    sizes = fits.loc[fits.index.repeat(len(labels)), ["observer", "part", "pictures", "converged"]]
    sizes = sizes.reset_index(drop=True).assign(mean=mean.ravel(), sd=sd.ravel())
    sizes.insert(0, "parameter", np.tile(labels, len(fits)))
    first, second = ([folds.index(2 * split - half) for split in subsets.splits] for half in (1, 0))
    halves = pd.concat([_side_by_side(sizes, subsets, split) for split in subsets.splits], ignore_index=True)
    pictures = fits["pictures"].to_numpy(dtype=np.float64).reshape(mean.shape[:2])
    converged = fits["converged"].to_numpy(dtype=bool).reshape(mean.shape[:2])
    rng, prior_variances = np.random.default_rng(subsets.fits.seed), _prior_variances(subsets.model)
    parameters, needed = [], []
    for number, (label, scale) in enumerate(value_scales(subsets.model).items()):
        about = {"parameter": label, "scale": scale, "observers": len(subsets.data)}
        found = split_half(mean[first, :, number], mean[second, :, number], rng)
        both = mean[first + second, :, number], np.square(sd[first + second, :, number])
        spread = expected_spread(*both, float(prior_variances[number]))
        z = halves.loc[halves["parameter"] == label, "z"].to_numpy()
        bad, all_bad = ({"fits_not_converged": int(np.sum(~it))} for it in (converged[first + second], converged))
        parameters.append(about | {"splits": len(first)} | _row(found, *spread, z) | bad)
        needed.append(about | needed_row(sd_line(pictures, sd[:, :, number]), pictures, precision) | all_bad)
    return Reliability(subsets, precision, pd.DataFrame(parameters), halves, sizes, pd.DataFrame(needed), fits)


def _prior_variances(model: Model) -> Float[np.ndarray, " number"]:
    """Of every number on the real line, from draws; an order among parameters is left aside."""
    found = []
    with jax.enable_x64(True):
        for name, value in model.parameters.items():
            prior, shape = model.priors[name], (PRIOR_DRAWS, *np.shape(value))
            real = np.asarray(prior.to_real(prior.sample(jax.random.key(len(found)), shape)))
            found += np.ravel(real.var(axis=0, ddof=1)).tolist()
    return np.array(found)


def _read(subsets: PictureSubsets) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Every posterior, read once: (means, standard deviations) by part, observer and number, and a row for each fit."""
    folds, observers, rows = subsets.fits.folds, list(subsets.data), []
    mean, sd = np.zeros((2, len(folds), len(observers), len(subsets.model.labels)))
    for part, fold in enumerate(folds):
        store = subsets.fits.store(subsets.model.name, fold)
        for place, observer in enumerate(observers):
            posterior = store.load(observer)
            draws = posterior.samples.real.reshape(-1, mean.shape[-1])
            mean[part, place], sd[part, place] = draws.mean(axis=0), draws.std(axis=0, ddof=1)
            pictures = len(subsets.pictures_of(fold, observer))
            about = {"observer": observer, "part": subsets.called(fold), "pictures": pictures}
            rows.append(about | _facts(posterior))
    return mean, sd, pd.DataFrame(rows)


def _facts(posterior: Posterior) -> dict[str, Any]:
    found, modes = posterior.diagnosis, posterior.samples.modes
    facts = {
        "converged": posterior.converged,
        "sampler": posterior.samples.sampler,
        "max_rhat": found.max_rhat,
        "min_ess": found.min_ess,
        "modes": np.nan if modes is None else len(modes.mass),
        "seconds": posterior.provenance["seconds"],
        "problems": " ".join(found.problems),
        "notes": " ".join(found.notes),
    }
    return facts | ({"b_positive": float((posterior.draws["b"] > 0).mean())} if "b" in posterior.draws else {})


def _side_by_side(sizes: pd.DataFrame, subsets: PictureSubsets, split: int) -> pd.DataFrame:
    """The halves of a split, and their difference in posterior standard deviations."""
    first, second = (sizes[sizes["part"] == subsets.called(2 * split - half)].drop(columns="part") for half in (1, 0))
    both = first.merge(second, on=["parameter", "observer"], suffixes=("_1", "_2"), validate="one_to_one")
    both.insert(2, "split", split)
    return both.assign(z=(both["mean_1"] - both["mean_2"]) / np.hypot(both["sd_1"], both["sd_2"]))


def _row(found: SplitHalf, between_sd: float, error_sd: float, z: Float[np.ndarray, " difference"]) -> dict[str, Any]:
    """What is known of one number's reliability."""
    total = between_sd**2 + error_sd**2
    expected = between_sd**2 / total if total > 0 else np.nan
    return {
        "correlation": found.correlation,
        "correlation_low": found.low,
        "correlation_high": found.high,
        "reliability": spearman_brown(found.correlation),
        "reliability_low": spearman_brown(found.low),
        "reliability_high": spearman_brown(found.high),
        "interval": found.interval,
        "expected_correlation": expected,
        "expected_reliability": spearman_brown(expected),
        "between_sd": between_sd,
        "error_sd": error_sd,
        "share_beyond_2": float(np.mean(np.abs(z) > BEYOND)),
        "largest_z": float(np.abs(z).max()),
    }
