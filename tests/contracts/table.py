"""The one table of the contract tests: a row for every policy, choice rule, prior and model.

A new class is held to the whole contract by one new row: the class (or the model's name in the catalogue), ordinary
values of its parameters, and an oracle for it that owes nothing to the package. Variances are also tried far outside
the ordinary (see `situations.py`).

The oracle of
- a policy or a factor gives its log-weight in every cell, from (scene, fixations, parameters);
- a choice gives the probability of the first policy, or of all, from (scene, fixations, parameters);
- a distribution of durations is a frozen distribution of scipy.stats, from (scene, fixations, next_deg, parameters);
- a prior is a frozen distribution of scipy.stats, from its parameters;
- a model gives the probability of every cell, from (scene, fixations, parameters).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from contracts.situations import DURATIONS_S
from foveate.model import catalogue
from foveate.model.choices import (
    Choice,
    FixedChoice,
    OnlyPolicy,
    SaliencyLevelChoice,
    SaliencyRatioChoice,
    SoftmaxChoice,
)
from foveate.model.directions import Cardinal, CardinalPeaks, Turning, TurningPeak
from foveate.model.durations import KNOWN, Durations, LogNormalDurations
from foveate.model.factors import Factor, Modulated, SaliencyDrift
from foveate.model.features import FEATURES
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
from foveate.model.places import Here, VisitedBefore
from foveate.model.policies import Global, Local, Policy, PrintedRepelledGlobal, RepelledGlobal, StaticSaliency
from foveate.model.priors import Beta, InverseGamma, LogNormal, Normal, Prior
from oracles import beyond, paper


@dataclass(frozen=True)
class Row:
    """A class or a model's name, its parameters, its oracle; `form` holds settings that are no parameters."""

    part: type | str
    parameters: dict[str, Any]
    oracle: Callable
    form: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As pytest shows it."""
        return (
            "-".join([self.part, *map(str, self.form.values())]) if isinstance(self.part, str) else self.part.__name__
        )

    def make(self) -> Any:
        """The part with its ordinary parameters."""
        if isinstance(self.part, str):
            return catalogue.named_model(self.part, **self.parameters, **self.form)
        return self.part(**self.parameters, **self.form)

    def policy(self) -> Policy:
        """The row's policy, or the row's factor alone: on a policy that has no preference."""
        part = self.make()
        return Modulated(Uniform(), (part,)) if isinstance(part, Factor) else part

    def model(self) -> Model:
        """A model to put to the test: the row's own, or one that consists of the row's policy alone."""
        if isinstance(self.part, str):
            return self.make()
        priors: dict[str, Prior] = {
            name: VARIANCE if np.ndim(value) else NUMBER for name, value in self.parameters.items()
        }
        return Model((self.policy(),), OnlyPolicy(), priors, self.name)

    def density(self, scene: paper.Scene, fixations: list, **parameters) -> np.ndarray:
        """The oracle's probability of every cell, of a model or of a policy alone."""
        if isinstance(self.part, str):
            return self.oracle(scene, fixations, **parameters, **self.form)
        return paper.normalised(self.oracle(scene, fixations, **parameters))


def at_gaze(oracle: Callable) -> Callable:
    """The oracle of a policy that looks at the present fixation alone, from all fixations."""
    return lambda scene, fixations, **parameters: oracle(scene, fixations[-1], **parameters)


# Of parameters in a policy's row: pairs are variances, single numbers may be any.
VARIANCE, NUMBER = LogNormal(1.0, 1.0), Normal(0.0, 1.0)

# Epsilon and xi differ between the axes, so that an exchange of the two shows. All in deg^2.
EPSILON, XI = (1.7, 4.1), (31.0, 19.0)

# Different everywhere, so that an exchange of two shows.
DIRECTIONS = {"rightward": 0.2, "upward": -0.3, "horizontal": 0.5, "diagonal": 0.15, "cardinal": 0.4}
TURNS = {"onward": 0.8, "axial": -0.35}
PEAKS, AHEAD, LOOKED_AT = {"sideways": 0.5, "above": -0.3}, {"ahead": 0.45, "behind": -0.25}, {"phi": -1.3, "psi": 0.8}
VISITED = {"mu": -1.4, "omega": 7.0, "lambda_": 0.6}

# Of the recommended model; no feature of its choice needs a duration, so that the oracle needs none either.
WAYFARER = {
    "epsilon": 1.7, "alpha": 1.6, "xi": 31.0, "zeta": 6.0, "kappa": 0.6, "eta": 2.5,
    **DIRECTIONS, **TURNS, **PEAKS, **AHEAD, **LOOKED_AT, **VISITED, "delta": -0.3,
    "base": (0.4, -1.1, -0.3), "slopes": ((0.3, -0.2, 0.5, 0.25), (-0.6, 0.7, 0.2, -0.4), (0.15, -0.35, 0.45, 0.1)),
}  # fmt: skip

TABLE = [
    # policies
    Row(StaticSaliency, {}, at_gaze(paper.static)),
    Row(Local, {"epsilon": EPSILON}, at_gaze(paper.local)),
    Row(Global, {"xi": XI}, at_gaze(paper.unrepelled)),
    Row(RepelledGlobal, {"xi": XI, "epsilon": EPSILON}, at_gaze(paper.released)),
    Row(PrintedRepelledGlobal, {"xi": XI, "epsilon": EPSILON}, at_gaze(paper.printed)),
    Row(SalientLocal, {"epsilon": EPSILON, "alpha": 1.6}, beyond.salient_local),
    Row(SalientGlobal, {"xi": XI, "alpha": 0.7}, beyond.salient_global),
    Row(HeavyTailedGlobal, {"xi": XI, "nu": 3.2, "alpha": 0.7}, beyond.heavy_tailed_global),
    Row(Momentum, {"zeta": (6.0, 2.5), "kappa": 0.6, "alpha": 1.3}, beyond.momentum),
    Row(Return, {"eta": (2.0, 3.5), "alpha": 0.4}, beyond.return_),
    Row(CentreBias, {"tau": (20.0, 41.0)}, beyond.centre_bias),
    Row(Uniform, {}, beyond.uniform),
    # factors
    Row(Cardinal, DIRECTIONS, beyond.cardinal),
    Row(Turning, TURNS, beyond.turning),
    Row(CardinalPeaks, PEAKS, beyond.cardinal_peaks),
    Row(TurningPeak, AHEAD, beyond.turning_peak),
    Row(Here, LOOKED_AT, beyond.here),
    Row(VisitedBefore, VISITED, beyond.visited_before),
    Row(SaliencyDrift, {"delta": -0.3}, beyond.saliency_drift),
    # choices
    Row(OnlyPolicy, {}, lambda scene, fixations: 1.0),
    Row(FixedChoice, {"rho": 0.3}, paper.fixed_choice_rho),
    Row(SaliencyRatioChoice, {"b": 0.7, "s0": 1.9}, paper.ratio_choice),
    Row(
        SoftmaxChoice,
        {"base": (0.4, -1.1), "slopes": ((0.3, -0.2, 0.5, 0.1, -0.4, 0.35), (-0.6, 0.7, 0.2, -0.3, 0.1, -0.15))},
        partial(beyond.softmax_choice, durations=DURATIONS_S),
        {"among": ("local", "global", "return"), "features": tuple(FEATURES)},
    ),
    Row(SaliencyLevelChoice, {"b": -0.4, "s0": 2.5}, paper.level_choice),
    # durations
    Row(
        LogNormalDurations,
        {"level": -1.2, "effects": (0.2, -0.3, 0.1, 0.15, 0.3, -0.25), "sigma": 0.45},
        beyond.log_normal_durations,
        {"features": KNOWN},
    ),
    # priors
    Row(Normal, {"mean": -1.3, "variance": 2.6}, lambda mean, variance: stats.norm(mean, np.sqrt(variance))),
    Row(InverseGamma, {"shape": 0.2, "scale": 25.0}, lambda shape, scale: stats.invgamma(shape, scale=scale)),
    Row(LogNormal, {"median": 3.0, "spread": 0.8}, lambda median, spread: stats.lognorm(spread, scale=median)),
    Row(Beta, {"first": 4.0, "second": 1.5}, lambda first, second: stats.beta(first, second)),
    # models, each with every form of the repulsion
    *(
        Row(name, {"epsilon": EPSILON, "xi": XI} | choice, oracle, {"repulsion": repulsion})
        for name, choice, oracle in (
            ("full", {"b": 0.7, "s0": 1.9}, paper.full),
            ("local_choice", {"b": -0.4, "s0": 2.5}, paper.local_choice),
            ("fixed_choice", {"rho": 0.3}, paper.fixed_choice),
        )
        for repulsion in ("released", "printed", "none")
    ),
    Row("local_saliency", {"xi": XI}, paper.local_saliency),
    Row("saliency_baseline", {}, paper.saliency_baseline),
    Row("wayfarer", WAYFARER, beyond.wayfarer, {"durations": False}),
]


def rows_of(*kinds: type) -> list:
    """The table's rows of these kinds (`Model`: those of the catalogue), as pytest parameters."""

    def belongs(row: Row) -> bool:
        return Model in kinds if isinstance(row.part, str) else issubclass(row.part, kinds)

    return [pytest.param(row, id=row.name) for row in TABLE if belongs(row)]


KINDS = (Policy, Factor, Choice, Durations, Prior)
