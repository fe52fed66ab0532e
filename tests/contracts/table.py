"""The one table of the contract tests: a row for every policy, choice rule, prior and model.

A new class is held to the whole contract by one new row: the class (or the model's name in the catalogue), ordinary
values of its parameters, and an oracle for it that owes nothing to the package. Variances are also tried far outside
the ordinary (see `situations.py`).

The oracle of
- a policy gives its log-weight in every cell, from (scene, gaze, parameters);
- a choice gives the probability of the first policy, from (scene, fixations, parameters);
- a prior is a frozen distribution of scipy.stats, from its parameters;
- a model gives the probability of every cell, from (scene, fixations, parameters).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

from foveate.model import catalogue
from foveate.model.choices import Choice, FixedChoice, OnlyPolicy, SaliencyLevelChoice, SaliencyRatioChoice
from foveate.model.model import Model
from foveate.model.policies import Global, Local, Policy, PrintedRepelledGlobal, RepelledGlobal, StaticSaliency
from foveate.model.priors import Beta, InverseGamma, LogNormal, Normal, Prior
from oracles import paper


@dataclass(frozen=True)
class Row:
    """A class or a model's name, its parameters, its oracle; `form` holds a model's settings that are no parameters."""

    part: type | str
    parameters: dict[str, Any]
    oracle: Callable
    form: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As pytest shows it."""
        name = self.part if isinstance(self.part, str) else self.part.__name__
        return "-".join([name, *self.form.values()])

    def make(self) -> Any:
        """The part with its ordinary parameters."""
        if isinstance(self.part, str):
            return catalogue.named_model(self.part, **self.parameters, **self.form)
        return self.part(**self.parameters)

    def model(self) -> Model:
        """A model to put to the test: the row's own, or one that consists of the row's policy alone."""
        part = self.make()
        if isinstance(part, Model):
            return part
        return Model((part,), OnlyPolicy(), dict.fromkeys(self.parameters, ANY_PRIOR), self.name)

    def density(self, scene: paper.Scene, fixations: list, **parameters) -> np.ndarray:
        """The oracle's probability of every cell, of a model or of a policy alone."""
        if isinstance(self.part, str):
            return self.oracle(scene, fixations, **parameters, **self.form)
        return paper.normalised(self.oracle(scene, fixations[-1], **parameters))


ANY_PRIOR = LogNormal(1.0, 1.0)

# Epsilon and xi differ between the axes, so that an exchange of the two shows. All in deg^2.
EPSILON, XI = (1.7, 4.1), (31.0, 19.0)

TABLE = [
    # policies
    Row(StaticSaliency, {}, paper.static),
    Row(Local, {"epsilon": EPSILON}, paper.local),
    Row(Global, {"xi": XI}, paper.unrepelled),
    Row(RepelledGlobal, {"xi": XI, "epsilon": EPSILON}, paper.released),
    Row(PrintedRepelledGlobal, {"xi": XI, "epsilon": EPSILON}, paper.printed),
    # choices
    Row(OnlyPolicy, {}, lambda scene, fixations: 1.0),
    Row(FixedChoice, {"rho": 0.3}, paper.fixed_choice_rho),
    Row(SaliencyRatioChoice, {"b": 0.7, "s0": 1.9}, paper.ratio_choice),
    Row(SaliencyLevelChoice, {"b": -0.4, "s0": 2.5}, paper.level_choice),
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
]


def rows_of(*kinds: type) -> list:
    """The table's rows of these kinds (`Model`: those of the catalogue), as pytest parameters."""

    def belongs(row: Row) -> bool:
        return Model in kinds if isinstance(row.part, str) else issubclass(row.part, kinds)

    return [pytest.param(row, id=row.name) for row in TABLE if belongs(row)]


KINDS = (Policy, Choice, Prior)
