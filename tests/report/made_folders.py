"""Folders of results made without fitting: posteriors of known draws, so that a report is what is tested."""

import json
from pathlib import Path

import jax
import numpy as np

from foveate import Dataset, Model
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.inference.diagnosis import diagnose
from foveate.inference.fit import observer_key
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples
from foveate.model.choices import SoftmaxChoice
from foveate.model.directions import Cardinal, Turning
from foveate.model.durations import LogNormalDurations
from foveate.model.factors import Modulated, SaliencyDrift
from foveate.model.features import FEATURES
from foveate.model.mechanisms import HeavyTailedGlobal, Momentum, Return, SalientLocal
from foveate.model.places import VisitedBefore
from foveate.model.priors import Beta, LogNormal, Normal

DRAWS = 250  # of four chains: 1000 in all


def four_policies() -> Model:
    """Four policies, each modulated by the same factors, a choice by every feature of the history, and durations."""
    factors = (
        Cardinal(rightward=0.2, upward=-0.6, horizontal=0.5, diagonal=0.15, cardinal=0.4),
        Turning(onward=0.8, axial=-0.35),
        VisitedBefore(mu=-1.4, omega=7.0, lambda_=0.6, span=3),
        SaliencyDrift(delta=-0.3),
    )
    policies = (
        SalientLocal((1.7, 4.1), 1.6),
        HeavyTailedGlobal((31.0, 19.0), 3.2, 1.6),
        Momentum((6.0, 2.5), 0.6, 1.6),
        Return((2.0, 3.5), 1.6),
    )
    slopes = (
        (0.3, -0.8, 0.5, 0.1, -0.4, 0.25),
        (-0.6, 0.9, 0.2, -0.3, 0.1, -0.5),
        (0.2, 0.4, -0.5, 0.6, -0.2, 0.15),
    )
    choice = SoftmaxChoice(("local", "global", "momentum", "return"), tuple(FEATURES), (0.4, -0.7, -0.2), slopes)
    variances = {name: LogNormal(5.0, 1.0) for name in ("epsilon", "xi", "zeta", "eta", "omega", "nu", "sigma")}
    numbers = ("kappa", "alpha", "rightward", "upward",
               "horizontal", "diagonal", "cardinal", "onward", "axial", "mu", "delta", "base",
               "slopes", "level", "effects")  # fmt: skip
    priors = variances | {name: Normal(0.0, 1.0) for name in numbers} | {"lambda_": Beta(1.0, 1.0)}
    durations = LogNormalDurations(("number",), -1.3, (0.1,), 0.4)
    modulated = tuple(Modulated(it, factors) for it in policies)
    return Model(modulated, choice, priors, "four policies", durations=durations)


def posterior(model: Model, own: Dataset, run: Run, converged: bool = True) -> Posterior:
    """Draws around the model's own values, as if a sampler had made them from these data."""
    observer = own.paths.observers[0]
    rng = np.random.default_rng(len(str(observer)))
    centre = np.asarray(model.to_real())
    real = centre + 0.1 * rng.standard_normal((4, DRAWS, len(centre)))
    if not converged:
        real[0] += 1.0  # one chain is elsewhere
    samples = Samples(real, run.sampler, {}, {}, 0)
    steps = int(np.maximum(own.paths.length - 2, 0).sum())
    said = {
        "key": np.asarray(jax.random.key_data(observer_key(run.key, observer))).ravel().tolist(),
        "data": own.fingerprint(), "steps": steps, "grid": list(own.maps.grid.shape), "seconds": 1.0,
        "versions": {"foveate": run.version, "jax": "1.2.3"},
    }  # fmt: skip
    return Posterior(model, observer, samples, diagnose(model.labels, samples), said)


def fit_folder(folder: Path, model: Model, data: Dataset, bad: tuple = ()) -> Path:
    """A folder as `foveate fit` makes it."""
    store = FitStore.resume(folder, Run.of(model, data, 1, sampler="nuts"))
    with store.writing():
        for observer in data.paths.observers:
            own = data.select(observers=[observer])
            store.save(posterior(model, own, store.run, observer not in bad))
    return folder


def study_folder(folder: Path, models: dict[str, Model], data: Dataset, folds: list[list]) -> Path:
    """A folder as `foveate compare` makes it, with some of its tables and a figure."""
    for name, model in models.items():
        for fold, pictures in enumerate(folds, 1):
            if model.labels:
                fit_folder(folder / "fits" / name / f"fold-{fold}", model, data.split(pictures)[0])
    asked = {"data": "example", "models": list(models), "cells": data.maps.grid.rows, "observers": "all"}
    said = {"made_by": "foveate compare", "asked": asked, "finished": True, "versions": {"foveate": "0.1.0"},
            "models": list(models), "folds": list(range(1, len(folds) + 1)), "test_pictures": folds, "draws": 5,
            "seed": 1, "figures": ["figures/ranking.svg"]}  # fmt: skip
    (folder / "study.json").write_text(json.dumps(said))
    (folder / "ranking.csv").write_text(
        "model,mean,low,high\nfixed_choice,1.25,0.75,1.75\nsaliency_baseline,0.5,0.25,0.75\n"
    )
    (folder / "pairs.csv").write_text(
        "first,second,difference,low,high,observers_ahead,observers\nfixed_choice,saliency_baseline,0.75,-0.5,2.0,2,2\n"
    )
    (folder / "saccades.csv").write_text(
        "model,statistic,observed,simulated,low,high,inside\nfixed_choice,mean_deg,5.0,5.5,4.5,6.5,True\n"
    )
    (folder / "figures").mkdir()
    (folder / "figures" / "ranking.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><defs><clipPath id="a"><rect/></clipPath></defs>'
        '<path id="b" clip-path="url(#a)" d="M0 0"/></svg>'
    )
    return folder
