"""A population's posterior: draws of the population together with an ordinary posterior for each observer."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.compiled import make_room
from foveate.data.dataset import Dataset, Observed, each_observer, fingerprint_of
from foveate.errors import InputError
from foveate.inference.diagnosis import Diagnosis, diagnose
from foveate.inference.draws import check_count
from foveate.inference.fit import made_with, observer_key
from foveate.inference.hierarchy import Sampler
from foveate.inference.likelihoods import TargetLikelihoods, targets_of
from foveate.inference.population import Population, hyperprior_of, learn_population
from foveate.inference.population_chains import Checkpoint, checkpoints
from foveate.inference.posterior import Posterior, parameters_of
from foveate.inference.samples import Progress, Report, Samples, silent
from foveate.model.model import Model
from foveate.precision import check_key, double_precision
from foveate.threads import one_thread_each

SAMPLER: Literal["hierarchy"] = "hierarchy"
FEWEST_OBSERVERS = 3
SETTINGS = {"chains": 4, "warmup": 120, "draws": 300}


@dataclass(frozen=True, eq=False)
class PopulationPosterior:
    """Draws of a population, theta_i ~ N(mean, spread^2) on the real line, and a posterior of each observer in it.

    Draw by draw the population and its observers belong together: `posteriors[observer].samples.real[chain, draw]` goes
    with `mean[chain, draw]` and `spread[chain, draw]`.
    """

    model: Model
    mean: Float[np.ndarray, "chain draw number"]
    spread: Float[np.ndarray, "chain draw number"]
    statistics: Mapping[str, Float[np.ndarray, "chain draw"]]
    posteriors: Mapping[Any, Posterior]  # by observer
    diagnosis: Diagnosis  # of mean and spread: 'mean epsilon_row', ..., 'spread epsilon_row', ...
    provenance: Mapping[str, Any]  # key, data, versions, seconds, what the sampler learnt; JSON can hold it

    def __repr__(self) -> str:
        """The model, the observers and the verdict, in a line."""
        wrong = sum(not posterior.converged for posterior in self.posteriors.values())
        others = f", {wrong} of them NOT CONVERGED" if wrong else ""
        return (
            f"PopulationPosterior({self.model.name!r}, {len(self.posteriors)} observers{others}, "
            f"{self.mean.shape[0]} x {self.mean.shape[1]} draws; population {self.diagnosis.verdict})"
        )

    @property
    def converged(self) -> bool:
        """Whether nothing was found against the draws of the population and of every observer."""
        return self.diagnosis.converged and all(posterior.converged for posterior in self.posteriors.values())

    def table(self) -> pd.DataFrame:
        """A row for every number: the population's median, the range of 95 % of its observers, and the spread.

        `median` is that of the population's observers on the natural scale, with its interval of 95 %; between
        `observers_low` and `observers_high` lie 95 % of them. `spread` is tau, on the real line.
        """
        numbers = self.mean.shape[-1]
        mean, spread = (it.reshape(-1, numbers) for it in (self.mean, self.spread))
        median = _natural(self.model, np.quantile(mean, [0.025, 0.5, 0.975], axis=0))
        centre, width = self.new_observer()
        ends = _natural(self.model, np.stack([centre - 1.96 * width, centre + 1.96 * width]))
        low, middle, high = np.quantile(spread, [0.025, 0.5, 0.975], axis=0)
        said = self.diagnosis
        columns = {"median": median[1], "2.5%": median[0], "97.5%": median[2]}
        columns |= {"observers_low": ends[0], "observers_high": ends[1]}
        columns |= {"spread": middle, "spread_2.5%": low, "spread_97.5%": high}
        for name, values in (("rhat", said.rhat), ("ess_bulk", said.ess_bulk), ("ess_tail", said.ess_tail)):
            columns |= {f"mean_{name}": values[:numbers], f"spread_{name}": values[numbers:]}
        return pd.DataFrame(columns, index=pd.Index(self.model.labels, name="parameter"))

    def new_observer(self) -> tuple[Float[np.ndarray, " number"], Float[np.ndarray, " number"]]:
        """(mean, standard deviation) on the real line of an observer of whom nothing has been seen yet.

        Of draws of N(m, tau^2) over all draws of (m, tau): the Gaussian with the same moments is a prior for new
        observers.
        """
        numbers = self.mean.shape[-1]
        mean, spread = (it.reshape(-1, numbers) for it in (self.mean, self.spread))
        return mean.mean(axis=0), np.sqrt(mean.var(axis=0) + np.square(spread).mean(axis=0))

    @double_precision
    def draws_of_new_observer(self, key: PRNGKeyArray) -> Float[np.ndarray, "draw number"]:
        """Vectors of new observers on the real line, one from each draw of the population: `score_steps` takes them."""
        check_key(key)
        numbers = self.mean.shape[-1]
        mean, spread = (it.reshape(-1, numbers) for it in (self.mean, self.spread))
        return mean + spread * np.asarray(jax.random.normal(key, mean.shape))


def _natural(model: Model, real: Float[np.ndarray, "set number"]) -> Float[np.ndarray, "set number"]:
    parts = parameters_of(model, real).values()
    return np.concatenate([np.zeros((len(real), 0)), *(it.reshape(len(real), -1) for it in parts)], axis=1)


@double_precision
@one_thread_each()
def fit_population(
    model: Model,
    data: Observed,
    key: PRNGKeyArray,
    *,
    chains: int = SETTINGS["chains"],
    warmup: int = SETTINGS["warmup"],
    draws: int = SETTINGS["draws"],
    threads: int | None = None,
    report: Report = silent,
    population: Population | None = None,
    start: Checkpoint | None = None,
    keep: Callable[[Population | Checkpoint], None] = lambda held: None,
) -> PopulationPosterior:
    """The posterior of a population together with that of each of its observers.

    On the real line observers' parameters come from N(m, diag(tau^2)), with m and tau learnt: the fewer data an
    observer has, the more is taken from the others. The model's own priors say where m and tau may lie (see
    `inference/population.py`). The same key gives the same numbers, on any number of `threads` (None: one per core).

    To go on with a run that was stopped, give the `population` and the last `start` that `keep` was called with.
    """
    each = checked(model, data, key, chains, warmup, draws)
    started = time.perf_counter()
    make_room()
    report(Progress("preparing", 0, 1))
    targets = targets_of(model, each)
    for_start, for_chains = jax.random.split(key)
    if population is None:
        population = learn_population(targets, for_start, threads=threads, report=report)
        keep(population)
    sampler = Sampler(TargetLikelihoods(targets.values(), threads), hyperprior_of(model), population)
    words, total = np.asarray(jax.random.key_data(for_chains)).ravel().tolist(), warmup + draws
    held = start
    if held is None or held.done < total:
        for held in checkpoints(sampler, words, chains=chains, warmup=warmup, draws=draws, start=start):
            keep(held)
            report(Progress("warm-up" if held.done < warmup else "drawing", held.done, total, _facts(held)))
    assert held is not None
    seconds = round(time.perf_counter() - started, 3)
    settings = {"chains": chains, "warmup": warmup, "draws": draws}
    return assembled(model, each, key, population, held, settings, fingerprint_of(data), seconds)


def checked(
    model: Model, data: Observed, key: PRNGKeyArray, chains: int, warmup: int, draws: int
) -> dict[Any, Dataset]:
    """The data of each observer; refuses what cannot be fitted, before anything is worked out."""
    check_key(key)
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}: give a Model, such as foveate.named_model('full').")
    if not model.labels:
        raise InputError(f"model {model.name!r} has no parameters: there is nothing to fit.")
    for name, value, least in (("chains", chains, 1), ("warmup", warmup, 20), ("draws", draws, 4)):
        check_count(name, value, least)
    hyperprior_of(model)
    each = each_observer(data)
    if len(each) < FEWEST_OBSERVERS:
        raise InputError(f"{len(each)} observers: a population needs {FEWEST_OBSERVERS} or more; fit fits one by one.")
    return each


def _facts(held: Checkpoint) -> dict[str, float]:
    if not held.draws:
        return {}
    diverged = float(held.draws["diverging"].any(axis=2).sum() + held.draws["population_diverging"].sum())
    return {"divergences": diverged, "acceptance_rate": float(held.draws["acceptance"].mean())}


def assembled(
    model: Model,
    data: Mapping[Any, Dataset],
    key: PRNGKeyArray,
    population: Population,
    held: Checkpoint,
    settings: Mapping[str, Any],
    fingerprint: str,
    seconds: float,
) -> PopulationPosterior:
    """The posterior of the population and of its observers from the chains' draws."""
    draws, tuning = held.draws, held.tuning
    evaluations = population.evaluations // len(data) + held.done * settings["chains"] * sum(tuning.leaps)
    common = {"seconds": seconds, **made_with()}
    posteriors = {}
    for place, (observer, own) in enumerate(data.items()):
        samples = Samples(
            real=draws["theta"][:, :, place],
            sampler=SAMPLER,
            settings=dict(settings),
            statistics={
                "lp": draws["lp"],
                "acceptance_rate": draws["acceptance"][:, :, place],
                "diverging": draws["diverging"][:, :, place].astype(np.float64),
            },
            evaluations=evaluations,
            facts={"step_size": float(np.exp(np.asarray(tuning.observers.log_step)[place])), "leaps": tuning.leaps[0]},
        )
        said = {
            "key": np.asarray(jax.random.key_data(observer_key(key, observer))).ravel().tolist(),
            "data": own.fingerprint(),
            "steps": int(own.paths.scored(2).sum()),
            "pictures": len(own.paths.pictures),
            "grid": list(own.maps.grid.shape),
        }
        posteriors[observer] = Posterior(model, observer, samples, diagnose(model.labels, samples), said | common)
    statistics = {
        "lp": draws["lp"],
        "acceptance_rate": draws["population_acceptance"],
        "diverging": draws["population_diverging"].astype(np.float64),
    }
    provenance = {
        "key": np.asarray(jax.random.key_data(key)).ravel().tolist(),
        "data": fingerprint,
        "settings": dict(settings),
        "step_size": float(np.exp(tuning.population.log_step)),
        "leaps": list(tuning.leaps),
        "evaluations": evaluations * len(data),
    }
    mean, spread = draws["mean"], np.exp(draws["log_spread"])
    diagnosis = population_diagnosis(model, mean, spread, statistics)
    return PopulationPosterior(model, mean, spread, statistics, posteriors, diagnosis, provenance | common)


def population_diagnosis(
    model: Model, mean: np.ndarray, spread: np.ndarray, statistics: Mapping[str, np.ndarray]
) -> Diagnosis:
    """The diagnosis of the population's own numbers."""
    labels = [f"{which} {label}" for which in ("mean", "spread") for label in model.labels]
    real = np.concatenate([mean, np.log(spread)], axis=-1)
    return diagnose(labels, Samples(real, SAMPLER, {}, statistics, 0))
