"""Small models that between them hold every part beyond the paper, to put each part to the test: does a fit find the
parameters that made its data, and are its posteriors as wide as they should be?

Each has four to ten numbers, so that a hundred fits take minutes. Priors are the parts' own weak ones: data that they
make look like scan paths, also on small grids. Calibrating the recommended model instead would take hours, and a part
that is wrong could hide among thirty numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from foveate.errors import InputError, instead_of
from foveate.model.choices import Choice, FixedChoice, OnlyPolicy, SoftmaxChoice
from foveate.model.defaults import BASE_STARTS, COEFFICIENT, start_of, weak_prior
from foveate.model.directions import Cardinal, CardinalPeaks, Turning, TurningPeak
from foveate.model.durations import Durations, LogNormalDurations
from foveate.model.factors import Modulated, SaliencyDrift
from foveate.model.mechanisms import (
    CentreBias,
    HeavyTailedGlobal,
    Momentum,
    Return,
    SalientGlobal,
    SalientLocal,
    Uniform,
)
from foveate.model.model import Model
from foveate.model.parts import parameters_of
from foveate.model.places import Here, VisitedBefore
from foveate.model.policies import Global, Local, Policy
from foveate.model.priors import LogNormal, Normal, Prior

MEMORY_SPAN = 6  # fixations

# Fixations of about a quarter of a second, a factor of e to either side rare; no part of a composed model has them.
DURATION_STARTS: dict[str, float] = {"level": -1.4, "sigma": 0.4}
DURATION_PRIORS: dict[str, Prior] = {"level": Normal(-1.4, 0.25), "effects": COEFFICIENT, "sigma": LogNormal(0.4, 0.5)}


def _started(part: type, *names: str, **settings: Any) -> Any:
    """A part with the values that parameters of these names start from."""
    return part(**{name: start_of(name) for name in names}, **settings)


def _softmax(*among: str, features: tuple[str, ...] = ()) -> SoftmaxChoice:
    """A choice whose log-odds do not depend on the features yet."""
    base = np.array([BASE_STARTS[name] for name in among[1:]])
    return SoftmaxChoice(among, features, base, np.zeros((len(among) - 1, len(features))))


def _durations(*features: str) -> LogNormalDurations:
    return LogNormalDurations(features, effects=np.zeros(len(features)), **DURATION_STARTS)


def _model(name: str, *policies: Policy, choice: Choice | None = None, durations: Durations | None = None) -> Model:
    choice = OnlyPolicy() if choice is None else choice
    parts = (*policies, choice, *(() if durations is None else (durations,)))
    names = dict.fromkeys(parameter for part in parts for parameter, _ in parameters_of(part))
    priors = {it: DURATION_PRIORS[it] if it in DURATION_PRIORS else weak_prior(it) for it in names}
    return Model(policies, choice, priors, name, durations=durations)


def _salient() -> Model:
    local, around = _started(SalientLocal, "epsilon", "alpha"), _started(SalientGlobal, "xi", "alpha")
    return _model("salient", local, around, choice=_started(FixedChoice, "rho"))


def _heavy_tail() -> Model:
    local, around = _started(Local, "epsilon"), _started(HeavyTailedGlobal, "xi", "nu", "alpha")
    return _model("heavy_tail", local, around, choice=_started(FixedChoice, "rho"))


def _momentum() -> Model:
    local, ahead = _started(Local, "epsilon"), _started(Momentum, "zeta", "kappa", "alpha")
    choice = _softmax("local", "momentum", features=("amplitude", "saliency", "earlier"))
    return _model("momentum", local, ahead, choice=choice)


def _return() -> Model:
    around, back = _started(Global, "xi"), _started(Return, "eta", "alpha")
    choice = _softmax("global", "return", features=("ratio", "number"))
    return _model("return", around, back, choice=choice)


def _centre() -> Model:
    choice = _softmax("local", "centre", "floor")
    return _model("centre", _started(Local, "epsilon"), _started(CentreBias, "tau"), Uniform(), choice=choice)


def _directions() -> Model:
    seen = _started(Cardinal, "rightward", "upward", "horizontal", "diagonal", "cardinal")
    turns = _started(Turning, "onward", "axial")
    return _model("directions", Modulated(_started(SalientGlobal, "xi", "alpha"), (seen, turns)))


def _peaks() -> Model:
    seen, turns = _started(CardinalPeaks, "sideways", "above"), _started(TurningPeak, "ahead", "behind")
    return _model("peaks", Modulated(_started(SalientGlobal, "xi", "alpha"), (seen, turns)))


def _here() -> Model:
    return _model("here", Modulated(_started(SalientGlobal, "xi", "alpha"), (_started(Here, "phi", "psi"),)))


def _memory() -> Model:
    visited = _started(VisitedBefore, "mu", "omega", "lambda_", span=MEMORY_SPAN)
    return _model("memory", Modulated(_started(SalientGlobal, "xi", "alpha"), (visited,)))


def _drift() -> Model:
    """The local policy drifts away from the map, or to it, as well as the global one: two policies with one factor."""
    local, around = _started(SalientLocal, "epsilon", "alpha"), _started(SalientGlobal, "xi", "alpha")
    drift = (_started(SaliencyDrift, "delta"),)
    return _model("drift", Modulated(local, drift), Modulated(around, drift), choice=_started(FixedChoice, "rho"))


def _durations_before() -> Model:
    """The choice depends on how long the present fixation lasted, and that on what came before it."""
    choice = _softmax("local", "global", features=("duration",))
    local, around = _started(Local, "epsilon"), _started(Global, "xi")
    return _model("durations", local, around, choice=choice, durations=_durations("amplitude", "saliency"))


def _durations_ahead() -> Model:
    """The duration depends on the saccade that ends the fixation."""
    durations = _durations("ratio", "number", "earlier", "next_amplitude")
    return _model("durations_ahead", _started(Global, "xi"), durations=durations)


PART_MODELS: dict[str, Callable[[], Model]] = {
    "salient": _salient,
    "heavy_tail": _heavy_tail,
    "momentum": _momentum,
    "return": _return,
    "centre": _centre,
    "directions": _directions,
    "peaks": _peaks,
    "here": _here,
    "memory": _memory,
    "drift": _drift,
    "durations": _durations_before,
    "durations_ahead": _durations_ahead,
}

PART_TITLES = {
    "salient": "Salient local and global",
    "heavy_tail": "Heavy tail",
    "momentum": "Momentum, choice by features",
    "return": "Return, choice by features",
    "centre": "Centre and floor",
    "directions": "Directions and turns",
    "peaks": "Narrow peaks of directions",
    "here": "The place looked at",
    "memory": "Memory of places",
    "drift": "Drift of saliency",
    "durations": "Durations, read by the choice",
    "durations_ahead": "Durations, of the next saccade",
}


def part_model(name: str) -> Model:
    """The small model of this name."""
    if name not in PART_MODELS:
        raise InputError(f"no model of parts {name!r}; {instead_of(name, PART_MODELS)}")
    return PART_MODELS[name]()
