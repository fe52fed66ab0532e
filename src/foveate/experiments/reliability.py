"""How far an observer's parameters can be trusted: one half of the pictures against the other, and how many are needed.

*Split halves.* Pictures are dealt into two halves, the same for all observers, and the model is fitted to each. The
correlation r over observers of the halves' posterior means says how well half of the pictures tells observers apart;
Spearman and Brown's 2 r / (1 + r) is what that means for all of them.

*Nested subsets.* The posterior's standard deviation falls with the number n of pictures, by theory as 1 / sqrt(n). A
line through its logarithm says how many pictures an observer must see.

All numbers are on the model's own real line (`Model.to_real`): logarithms of variances, log-odds of probabilities, b
and s0 as they are. There posteriors are about normal, and a standard deviation of 0.1 is about 10 % of a variance.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.errors import InputError, some_of
from foveate.evaluate.folds import random_folds
from foveate.execution.foldfits import FoldFits
from foveate.inference.posterior import Posterior
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.model.priors import Beta, Normal, PositivePrior

FEWEST_OBSERVERS = 3  # two always lie on a line
FEWEST_PICTURES = 2  # of an observer in a half
FEWEST_FOR_BOOTSTRAP = 10  # observers; with fewer, some resamples hold little but one of them
RESAMPLES, LEVEL = 4999, 0.95  # of the bootstrap, and of all intervals

# Folds 2k - 1 and 2k are the halves of split k, NESTED + n is the subset of n pictures: whatever is asked for later, a
# folder can be gone on with. A seed has as many orders of the pictures.
NESTED = 1000
MOST_SPLITS = NESTED // 2 - 1
ALL = 0  # stands for as many pictures as an observer saw

# A slope of log sd on log n needs numbers of pictures that differ by this factor; else it is taken from theory.
SMALLEST_RANGE, THEORY = 1.5, -0.5

BEYOND = 2.0  # a difference of the halves this many standard deviations wide is worth counting
SMALLEST_SIDE = 0.05  # a posterior has b on both sides of zero if each has at least this share of it
PRIOR_DRAWS = 4000  # from which the priors' variances are worked out


# --- what is fitted ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PictureSubsets:
    """One model fitted to parts of what each observer saw: both halves of every split, and nested subsets.

    To `fits` every part is a fold; here that stands for the pictures that a fit sees.
    """

    data: Mapping[Any, Dataset]  # of each observer
    pictures: Mapping[int, tuple]  # of a half; of a nested subset all, in the order in which it grows
    fits: FoldFits

    @classmethod
    def of(
        cls, folder: str | Path, model: Model, data: Dataset, *, seed: int, splits: int = 1, numbers: Iterable[int] = ()
    ) -> "PictureSubsets":
        """For all observers of a data set, with pictures dealt in an order drawn from the seed.

        `numbers` says how many pictures the nested subsets have, ALL as many as an observer saw.
        """
        each, every = {it: data.select(observers=[it]) for it in data.paths.observers}, data.paths.pictures
        if not model.labels:
            raise InputError(f"model {model.name!r} has no parameters: there is nothing to fit.")
        if len(each) < FEWEST_OBSERVERS:
            raise InputError(
                f"{len(each)} observer{'s' * (len(each) > 1)} ({some_of(list(each))}): reliability is how well "
                f"observers are told apart; give at least {FEWEST_OBSERVERS}."
            )
        if len(every) < 2 * FEWEST_PICTURES:
            raise InputError(f"{len(every)} pictures: each half needs {FEWEST_PICTURES} at least; give more pictures.")
        if not 1 <= splits <= MOST_SPLITS:
            raise InputError(f"{splits} splits: give 1 to {MOST_SPLITS}.")
        (fewest, who), *_, (most, _) = sorted((len(own.paths.pictures), observer) for observer, own in each.items())
        wanted = sorted({ALL if number == fewest == most else number for number in numbers})
        for number in wanted:
            if not 0 <= number <= min(fewest, NESTED - 1):
                raise InputError(f"{number} pictures: give 1 to {fewest}, as many as observer {who!r} saw, or all.")
        pictures: dict[int, tuple] = {}
        for split in range(1, splits + 1):
            pictures[2 * split - 1], pictures[2 * split] = random_folds(every, 2, NESTED * seed + split).test_pictures
        grown = random_folds(every, len(every), NESTED * seed).pictures
        pictures |= {NESTED + number: grown for number in wanted}

        def part(model: str, fold: int, observer: Any) -> Dataset:
            return each[observer].select(pictures=_seen(each[observer], pictures, fold))

        made = cls(
            each, pictures, FoldFits(Path(folder), {model.name: model}, tuple(each), tuple(pictures), seed, part)
        )
        made._check()
        return made

    @property
    def model(self) -> Model:
        """The one that is fitted."""
        return next(iter(self.fits.models.values()))

    @property
    def splits(self) -> list[int]:
        """Their numbers, from 1."""
        return [(fold + 1) // 2 for fold in self.fits.folds if fold < NESTED and fold % 2]

    def called(self, fold: int) -> str:
        """A part in words."""
        if fold < NESTED:
            return f"half {2 - fold % 2} of split {(fold + 1) // 2}"
        return "all pictures" if fold == NESTED + ALL else f"subset of {fold - NESTED}"

    def pictures_of(self, fold: int, observer: Any) -> list:
        """The pictures that a fit sees."""
        return _seen(self.data[observer], self.pictures, fold)

    def _check(self) -> None:
        """Refuse parts that are too small, before anything is fitted."""
        numbers = len(self.model.labels)
        for fold in self.fits.folds:
            for observer, own in self.data.items():
                where = f"observer {observer!r}, {self.called(fold)}"
                seen = self.pictures_of(fold, observer)
                if fold < NESTED and len(seen) < FEWEST_PICTURES:
                    raise InputError(
                        f"{where}: they saw {len(seen)} of its pictures, and a half needs {FEWEST_PICTURES} at least; "
                        "leave the observer out, or give another seed."
                    )
                steps = int(np.maximum(own.select(pictures=seen).paths.length - DRAWN_FROM_MAP, 0).sum())
                if steps < numbers:
                    raise InputError(
                        f"{where}: {steps} steps (fixations from the third on) to fit {numbers} numbers; there must "
                        "be at least as many: give more pictures, or leave the observer out."
                    )


def _seen(own: Dataset, pictures: Mapping[int, tuple], fold: int) -> list:
    """The pictures of a part that the observer saw."""
    there = set(own.paths.pictures)
    seen = [picture for picture in pictures[fold] if picture in there]
    return seen[: fold - NESTED] if fold > NESTED else seen


# --- plain statistics ----------------------------------------------------------------------------------------------


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


class Line(NamedTuple):
    """log sd = intercept of the observer + slope log n; the slope's interval is NaN where it was not fitted."""

    intercept: Float[np.ndarray, " observer"]
    slope: float
    low: float
    high: float


def sd_line(pictures: Float[np.ndarray, "part observer"], sd: Float[np.ndarray, "part observer"]) -> Line:
    """The line of each observer through the posterior standard deviations of fits to so many pictures.

    The slope is the mean of the observers' own, with Student's interval of 95 %: subsets are nested, so the fits of an
    observer are not independent, and observers are.
    """
    x, y = np.log(pictures), np.log(sd)
    if np.ptp(x, axis=0).min() < np.log(SMALLEST_RANGE):
        slope, low, high = THEORY, np.nan, np.nan
    else:
        slopes = np.array([np.polyfit(*own, 1)[0] for own in zip(x.T, y.T, strict=True)])
        slope = float(slopes.mean())
        width = stats.t.ppf((1 + LEVEL) / 2, len(slopes) - 1) * stats.sem(slopes)
        low, high = slope - width, slope + width
    return Line(y.mean(axis=0) - slope * x.mean(axis=0), slope, float(low), float(high))


def pictures_needed(line: Line, sd: float) -> Float[np.ndarray, " observer"]:
    """How many pictures bring each observer's posterior standard deviation down to `sd`; infinite if none do."""
    if line.slope >= 0:
        return np.where(line.intercept <= np.log(sd), 1.0, np.inf)
    with np.errstate(over="ignore"):  # a slope of nearly zero
        return np.maximum(np.ceil(np.exp((np.log(sd) - line.intercept) / line.slope) - 1e-9), 1.0)


# --- all numbers ---------------------------------------------------------------------------------------------------


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
    for number, (label, scale) in enumerate(scales(subsets.model).items()):
        about = {"parameter": label, "scale": scale, "observers": len(subsets.data)}
        found = split_half(mean[first, :, number], mean[second, :, number], rng)
        both = mean[first + second, :, number], np.square(sd[first + second, :, number])
        spread = expected_spread(*both, float(prior_variances[number]))
        z = halves.loc[halves["parameter"] == label, "z"].to_numpy()
        bad, all_bad = ({"fits_not_converged": int(np.sum(~it))} for it in (converged[first + second], converged))
        parameters.append(about | {"splits": len(first)} | _row(found, *spread, z) | bad)
        needed.append(about | _needed(sd_line(pictures, sd[:, :, number]), pictures, precision) | all_bad)
    return Reliability(subsets, precision, pd.DataFrame(parameters), halves, sizes, pd.DataFrame(needed), fits)


def scales(model: Model) -> dict[str, str]:
    """For each number of a model the scale on which it is judged, in words."""
    words = {PositivePrior: "log", Beta: "log-odds", Normal: "as it is"}
    said = []
    for name, value in model.parameters.items():
        kind = next((it for prior, it in words.items() if isinstance(model.priors[name], prior)), "real line")
        said += [kind] * int(np.size(value))
    return dict(zip(model.labels, said, strict=True))


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
        "max_rhat": found.max_rhat,
        "min_ess": found.min_ess,
        "modes": np.nan if modes is None else len(modes.mass),
        "seconds": posterior.provenance["seconds"],
        "problems": " ".join(found.problems),
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


def _needed(line: Line, pictures: Float[np.ndarray, "part observer"], precision: float) -> dict[str, Any]:
    """How many pictures are needed for one number."""
    most, middle = int(pictures.max()), np.median(line.intercept, keepdims=True)
    half = float(pictures_needed(line._replace(intercept=middle), precision)[0])
    nine = float(np.quantile(pictures_needed(line, precision), 0.9, method="inverted_cdf"))
    return {
        "fewest_pictures_fitted": int(pictures.min()),
        "most_pictures_fitted": most,
        "slope": line.slope,
        "slope_low": line.low,
        "slope_high": line.high,
        "slope_fitted": bool(np.isfinite(line.low)),
        "log_sd_of_one_picture": float(middle[0]),
        "precision": precision,
        "pictures_median_observer": half,
        "pictures_90_percent": nine,
        "median_extrapolated": half > most,
        "90_percent_extrapolated": nine > most,
    }
