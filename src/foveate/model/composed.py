"""Models put together from named mechanisms: what the paper has, and what its Discussion asks for, each to be switched.

    composed(PAPER)                       the paper's full model
    composed(PAPER | {"momentum"})        with one mechanism more
    composed(RECOMMENDED - {"memory"})    the recommended model with one less

There is always a local and a global policy. With more than two policies a softmax whose log-odds are linear in the
standardised log ratio of saliencies stands for the paper's logistic choice, which is for two.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from foveate.errors import InputError, instead_of, some_of
from foveate.model.choices import Choice, FixedChoice, SaliencyRatioChoice, SoftmaxChoice
from foveate.model.defaults import BASE_STARTS, HELD_EXPONENT, start_of, weak_prior
from foveate.model.directions import Cardinal, CardinalPeaks, Turning, TurningPeak
from foveate.model.factors import Factor, Modulated, SaliencyDrift
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
from foveate.model.policies import Global, Local, Policy, RepelledGlobal
from foveate.model.priors import Prior

MECHANISMS: dict[str, str] = {
    "anisotropic": "Gaussians have one variance on rows and one on columns, as the paper's; without it one for both",
    "salient_local": "local steps go to what is salient there; without it the local policy does not see the picture",
    "exponent": "policies weigh saliency by a power of it; without it by the map as it is",
    "repulsion": "the global policy is repelled by the gaze (the paper's Eq. 4, as released); it has no exponent then",
    "heavy_tail": "global steps have the tail of a Student-t, not of a Gaussian",
    "momentum": "gaze carries on along the last saccade",
    "return": "gaze goes back to the fixation before",
    "centre": "gaze goes to the middle of the picture",
    "floor": "gaze may go anywhere",
    "cardinal": "directions on the picture are preferred, whichever policy decides",
    "turning": "so are turns from the last saccade",
    "cardinal_peaks": "narrow peaks leftward, rightward and upward",
    "turning_peak": "narrow peaks straight on and straight back",
    "here": "the place that is being looked at attracts or repels",
    "memory": "so do the places of the 24 fixations before it, the older the less",
    "drift": "the map matters more or less as viewing goes on",
    "ratio": "the choice depends on the ratio of saliencies (the paper's Eq. 7)",
    "features": "the choice depends on the last two amplitudes, the duration, the saliency and the fixation's number",
}

PAPER = frozenset({"anisotropic", "repulsion", "ratio"})
RECOMMENDED = frozenset(
    {"salient_local", "exponent", "momentum", "return", "here", "cardinal", "cardinal_peaks", "turning", "turning_peak",
     "memory", "drift", "features"}
)  # fmt: skip

FEATURES_READ = ("amplitude", "duration", "saliency", "number", "earlier")
MEMORY_SPAN = 24  # fixations: nearly all of a path of some ten seconds

FACTORS: dict[str, Callable[[], Factor]] = {
    "cardinal": lambda: _started(Cardinal),
    "turning": lambda: _started(Turning),
    "cardinal_peaks": lambda: _started(CardinalPeaks),
    "turning_peak": lambda: _started(TurningPeak),
    "here": lambda: _started(Here),
    "memory": lambda: _started(VisitedBefore, span=MEMORY_SPAN),
    "drift": lambda: _started(SaliencyDrift),
}


def composed(mechanisms: Iterable[str], *, name: str, durations: bool = True) -> Model:
    """The model that has these mechanisms, with weakly informative priors and values near a typical observer's.

    `mechanisms` are some of `MECHANISMS`. `durations=False` leaves the duration out of the features that the choice
    depends on: for data that do not say how long fixations lasted.
    """
    asked = _checked(mechanisms)
    policies = dict(_policies(asked))
    factors = tuple(make() for mechanism, make in FACTORS.items() if mechanism in asked)
    modulated = tuple(Modulated(policy, factors) if factors else policy for policy in policies.values())
    choice = _choice(tuple(policies), asked, durations)
    priors = _priors((*modulated, choice), asked)
    held = {parameter: HELD_EXPONENT.mean for parameter, prior in priors.items() if prior is HELD_EXPONENT}
    return Model(modulated, choice, priors, name).with_parameters(held)


def _checked(mechanisms: Iterable[str]) -> frozenset[str]:
    if isinstance(mechanisms, str):
        raise InputError(f"mechanisms = {mechanisms!r}: give a collection of names, such as PAPER | {{'momentum'}}.")
    asked = frozenset(mechanisms)
    unknown = sorted(asked - set(MECHANISMS))
    if unknown:
        raise InputError(f"no mechanism {unknown[0]!r}; {instead_of(unknown[0], MECHANISMS)}")
    if {"repulsion", "heavy_tail"} <= asked:
        raise InputError(f"mechanisms {some_of(sorted(asked), 20)}: the global policy has a repulsion or a heavy tail.")
    if "repulsion" in asked and "anisotropic" not in asked:
        raise InputError(f"mechanisms {some_of(sorted(asked), 20)}: 'repulsion' is there with 'anisotropic' alone.")
    return asked


def _started(part: type, **settings: Any) -> Any:
    """A part with the values that its parameters start from."""
    names = [it.name for it in fields(part) if it.name not in settings]
    return part(**{name: start_of(name) for name in names}, **settings)


def _policies(asked: frozenset[str]) -> Iterator[tuple[str, Policy]]:
    """The policies by the names that the choice has for them; the local one is first."""
    yield "local", _policy(SalientLocal if "salient_local" in asked else Local, asked)
    yield "global", _policy(_global(asked), asked)
    for mechanism, part in (("momentum", Momentum), ("return", Return), ("centre", CentreBias), ("floor", Uniform)):
        if mechanism in asked:
            yield mechanism, _policy(part, asked)


def _policy(part: type[Policy], asked: frozenset[str]) -> Policy:
    """With a variance for each axis, or one for both: the geometric mean of those that policies start from."""
    spread = {it.name: start_of(it.name) for it in fields(part) if "variances" in it.metadata}
    if "anisotropic" not in asked:
        spread = {name: np.exp(np.mean(np.log(value))) for name, value in spread.items()}
    return part(**{it.name: start_of(it.name) for it in fields(part)} | spread)


def _global(asked: frozenset[str]) -> type[Policy]:
    if "repulsion" in asked:
        return RepelledGlobal
    if "heavy_tail" in asked:
        return HeavyTailedGlobal
    return SalientGlobal if "exponent" in asked else Global


def _choice(among: tuple[str, ...], asked: frozenset[str], durations: bool) -> Choice:
    features = [it for it in FEATURES_READ if durations or it != "duration"] if "features" in asked else []
    if len(among) == 2 and not features:
        return _started(SaliencyRatioChoice if "ratio" in asked else FixedChoice)
    features += ["ratio"] if "ratio" in asked else []
    base = np.array([BASE_STARTS[it] for it in among[1:]])
    return SoftmaxChoice(among, tuple(features), base, np.zeros((len(among) - 1, len(features))))


def _priors(parts: tuple[Policy | Choice, ...], asked: frozenset[str]) -> dict[str, Prior]:
    names = dict.fromkeys(name for part in parts for name, _ in parameters_of(part))
    held = "exponent" not in asked
    return {name: HELD_EXPONENT if held and name == "alpha" else weak_prior(name) for name in names}
