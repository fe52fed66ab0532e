"""Simulation-based calibration: are a sampler's posteriors as wide as they should be, and in the right place?

Parameters are drawn from the priors, scan paths simulated with them, and the model fitted to those. If everything is
right, the rank of the true value among draws of the posterior is uniform (Talts et al., 2018), for every parameter and
for the log-likelihood, which depends on the data too and so sees what ranks of parameters alone cannot (a posterior
that ignores the data equals the prior and would pass).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int, PRNGKeyArray
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.evaluate.trials import Drawn, Outcome, Store, Trial, ranks_outside, run_trials, thinned
from foveate.evaluate.uniformity import Band, ecdf_difference, simultaneous_band, uniformity
from foveate.inference.diagnosis import LARGEST_PARETO_K, MOST_DIVERGING, Diagnosis, diagnose
from foveate.inference.draws import generator
from foveate.inference.fit import SAMPLERS, draw
from foveate.inference.posterior import parameters_of
from foveate.inference.samples import Report, Samples, silent
from foveate.inference.target import Target, evaluate
from foveate.model.description import describe
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.precision import check_key
from foveate.simulation.simulate import simulate

MADE_BY = "foveate calibrate"
LOG_LIKELIHOOD = "log_likelihood"

EXTENT = Extent(18.0, 24.0)
UNIFORM_SHARE = 0.05  # of every map's mass
SMOOTH_DEG, CONTRAST = 1.5, 1.0  # width of a map's hills, standard deviation of its logarithm

# Ranks take values 0 to 99: a hundred cells, which share out evenly over the bins of a histogram.
DRAWS = 99

# Enough for a hundred nearly independent draws; users' fits take more.
SETTINGS: dict[str, dict[str, Any]] = {"nuts": {"chains": 2, "warmup": 300, "draws": 300}}

# Short runs: two chains of 300 draws exceed 1.01 by chance.
LARGEST_RHAT = 1.05


@dataclass(frozen=True, eq=False)
class Calibration:
    """Ranks of the truth among the draws of many fits, and whether they are uniform.

    All fits count, also those with problems: leaving them out would itself bend the ranks.
    """

    model: str
    sampler: str
    labels: tuple[str, ...]  # of the quantities: the numbers of the model, and the log-likelihood
    draws: int  # that the truth was ranked among
    outcomes: tuple[Outcome, ...]
    false_alarm: float  # probability that a right sampler fails, over all quantities

    @property
    def ranks(self) -> Int[np.ndarray, "data_set quantity"]:
        """The rank of the truth for every data set and quantity, 0 to `draws`."""
        return np.array([it.ranks for it in self.outcomes]).reshape(len(self.outcomes), len(self.labels))

    @property
    def unconverged(self) -> list[int]:
        """Indices of the data sets whose fit had problems."""
        return [it.index for it in self.outcomes if it.problems]

    @property
    def taken_over(self) -> list[int]:
        """Indices of the data sets where another sampler took over from the one that is calibrated."""
        return [it.index for it in self.outcomes if it.facts.get("instead_of")]

    @property
    def p_values(self) -> Float[np.ndarray, " quantity"]:
        """Of the test that each quantity's ranks are uniform."""
        return np.array([uniformity(ranks, self.draws) for ranks in self.ranks.T])

    @property
    def smallest_passing_p(self) -> float:
        """The false-alarm rate divided by the number of quantities (Bonferroni)."""
        return self.false_alarm / len(self.labels)

    @property
    def passed(self) -> bool:
        """Whether no quantity's ranks differ from uniform by more than chance."""
        return bool((self.p_values >= self.smallest_passing_p).all())

    @property
    def band(self) -> Band:
        """Around the empirical distribution of one quantity's ranks; leaving it is failing."""
        return simultaneous_band(len(self.outcomes), self.draws, self.smallest_passing_p)

    @property
    def differences(self) -> Float[np.ndarray, "quantity point"]:
        """Empirical less uniform distribution of each quantity's ranks."""
        return np.stack([ecdf_difference(ranks, self.draws) for ranks in self.ranks.T])

    def coverage(self, share: float) -> Float[np.ndarray, " quantity"]:
        """How often the truth lies in the central interval that holds this share of the draws, by quantity.

        Of `draws` + 1 ranks the middle ones are counted, so that it is `share` for a sampler that is right.
        """
        tail = ranks_outside(share, self.draws)
        return ((self.ranks >= tail) & (self.ranks <= self.draws - tail)).mean(axis=0)

    @property
    def correlations(self) -> Float[np.ndarray, " quantity"]:
        """Rank correlation (Spearman) of the truth and the mean of the draws over data sets, by quantity."""
        if len(self.outcomes) < 3 or not all(it.mean for it in self.outcomes):  # some kept by an earlier version
            return np.full(len(self.labels), np.nan)
        truth, mean = (np.array([getattr(it, name) for it in self.outcomes]) for name in ("truth", "mean"))
        return np.array([spearmanr(one, other)[0] for one, other in zip(truth.T, mean.T, strict=True)])

    def recovery(self) -> pd.DataFrame:
        """How well the truth is found: correlation and coverage of every number of the model."""
        columns = {"correlation": self.correlations, "inside_50": self.coverage(0.5), "inside_90": self.coverage(0.9)}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="number")).drop(index=LOG_LIKELIHOOD)

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        worst = int(np.argmin(self.p_values))
        found = f"smallest p {self.p_values[worst]:.2g} ({self.labels[worst]})"
        words = f"{'passed' if self.passed else 'FAILED'}: {found}, fails below {self.smallest_passing_p:.2g}"
        troubled, others, fits = len(self.unconverged), len(self.taken_over), len(self.outcomes)
        words += f"; {troubled} of {fits} fits had problems" if troubled else ""
        words += f"; tempered SMC took over in {others} of {fits}" if others else ""
        return f"{words}."

    def to_dict(self) -> dict[str, Any]:
        """As something that JSON can hold."""
        return {
            "model": self.model,
            "sampler": self.sampler,
            "data_sets": len(self.outcomes),
            "draws": self.draws,
            "false_alarm": self.false_alarm,
            "p_values": dict(zip(self.labels, self.p_values.tolist(), strict=True)),
            "smallest_passing_p": self.smallest_passing_p,
            "passed": self.passed,
            "recovery": self.recovery().to_dict(orient="index"),
            "unconverged": {it.index: list(it.problems) for it in self.outcomes if it.problems},
            "taken_over": self.taken_over,
            "fit_seconds": round(float(sum(it.seconds for it in self.outcomes)), 1),
            "verdict": self.verdict,
        }


def calibrate(
    model: Model,
    key: PRNGKeyArray,
    *,
    sampler: str = "importance",
    data_sets: int = 200,
    indices: Iterable[int] | None = None,
    cells: int = 24,
    paths: int = 8,
    fixations: int = 10,
    draws: int = DRAWS,
    settings: Mapping[str, Any] | None = None,
    false_alarm: float = 0.01,
    store: Path | None = None,
    workers: int | None = None,
    report: Report = silent,
) -> Calibration:
    """The calibration of a sampler for a model under its own priors, on small simulated data sets.

    Each of the `data_sets` has `paths` paths of `fixations` fixations, one on each of as many made-up maps of
    `cells` x `cells` cells (the same for all data sets). `indices` runs some of the data sets only; with `store`, a
    file, what was done is kept and not done again. `settings` go to the sampler.
    """
    check_key(key)
    _check(model, sampler, data_sets, fixations)
    settings = dict(SETTINGS.get(sampler, {}) if settings is None else settings)
    for_maps, for_trials = jax.random.split(key)
    maps = smooth_maps(cells, paths, for_maps)
    header = {
        "made_by": MADE_BY,
        "version": version("foveate"),
        "model": describe(model),
        "sampler": sampler,
        "key": np.asarray(jax.random.key_data(key)).ravel().tolist(),
        "cells": cells,
        "paths": paths,
        "fixations": fixations,
        "draws": draws,
        "settings": settings,
    }
    outcomes = run_trials(
        _trial(model, maps, sampler, fixations, draws, settings),
        for_trials,
        range(data_sets) if indices is None else indices,
        draws=draws,
        store=None if store is None else Store.open(store, header),
        workers=workers,
        report=report,
    )
    labels = (*model.labels, LOG_LIKELIHOOD)
    return Calibration(model.name, sampler, labels, draws, tuple(outcomes), false_alarm)


def smooth_maps(cells: int, pictures: int, key: PRNGKeyArray) -> SaliencyMaps:
    """Made-up maps: the exponential of smooth noise, mixed with a little of the uniform density."""
    rng = generator(key)
    grid = Grid(cells, cells, EXTENT)
    width = SMOOTH_DEG / np.array(grid.cell_deg)
    maps = {}
    for picture in range(1, pictures + 1):
        noise = gaussian_filter(rng.standard_normal(grid.shape), width, mode="reflect")
        maps[picture] = np.exp(CONTRAST * (noise - noise.mean()) / noise.std())
    return SaliencyMaps.from_arrays(maps, EXTENT, normalise=True).with_uniform_share(UNIFORM_SHARE)


def _check(model: Model, sampler: str, data_sets: int, fixations: int) -> None:
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: there are {some_of(list(SAMPLERS))}.")
    if not model.labels:
        raise InputError(f"model {model.name!r} has no parameters: there is nothing to calibrate.")
    if data_sets < 1:
        raise InputError(f"data_sets = {data_sets}: give 1 or more.")
    if fixations <= DRAWN_FROM_MAP:
        raise InputError(f"fixations = {fixations}: the first {DRAWN_FROM_MAP} are drawn from the map; give more.")


def _trial(
    model: Model, maps: SaliencyMaps, sampler: str, fixations: int, needed: int, settings: dict[str, Any]
) -> Trial:
    """A trial: parameters from the priors, scan paths with them, draws given the paths."""

    def trial(key: PRNGKeyArray, told: Report) -> Drawn:
        for_truth, for_paths, for_draws = jax.random.split(key, 3)
        truth = model.draw_from_prior(for_truth)
        target = Target.of(model, Dataset(simulate(truth, maps, fixations, for_paths), maps))
        samples = draw(target, for_draws, sampler, 1, told, settings)
        diagnosis = diagnose(model.labels, samples)
        kept = thinned(samples.real.reshape(-1, target.size), needed)
        values = _quantities(target, np.concatenate([np.asarray(truth.to_real())[None], kept]))
        return Drawn(values[0], values[1:], _problems(diagnosis, samples, needed), _facts(diagnosis, samples))

    return trial


def _quantities(target: Target, real: Float[np.ndarray, "draw number"]) -> Float[np.ndarray, "draw quantity"]:
    """The parameters and the log-likelihood of vectors on the real line."""
    numbers = [it.reshape(len(real), -1) for it in parameters_of(target.model, real).values()]
    log_likelihood = np.asarray(evaluate(Target.log_likelihood, target, real))
    log_likelihood = np.where(np.isnan(log_likelihood), -np.inf, log_likelihood)  # where double precision ends
    return np.concatenate([*numbers, log_likelihood[:, None]], axis=1)


def _problems(diagnosis: Diagnosis, samples: Samples, needed: int) -> tuple[str, ...]:
    """What speaks against draws of which only `needed` are ranked."""
    found = []
    if diagnosis.max_rhat > LARGEST_RHAT:
        found.append(f"R-hat {diagnosis.max_rhat:.2f}")
    if diagnosis.min_ess < needed:
        found.append(f"ESS {diagnosis.min_ess:.0f} below {needed}")
    if diagnosis.divergences > MOST_DIVERGING * samples.real.shape[0] * samples.real.shape[1]:
        found.append(f"{diagnosis.divergences} divergences")
    if diagnosis.pareto_k is not None and diagnosis.pareto_k > LARGEST_PARETO_K:
        found.append(f"Pareto k-hat {diagnosis.pareto_k:.2f}")
    return tuple(found)


def _facts(diagnosis: Diagnosis, samples: Samples) -> dict[str, Any]:
    return {
        "sampler": samples.sampler,
        "instead_of": samples.settings.get("instead_of"),  # the one asked for, where it gave up on itself
        "max_rhat": round(float(diagnosis.max_rhat), 4),
        "min_ess": round(float(diagnosis.min_ess), 1),
        "divergences": diagnosis.divergences,
        "pareto_k": diagnosis.pareto_k,
    }
