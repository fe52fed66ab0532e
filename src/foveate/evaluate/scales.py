"""What the real line of each parameter is, in words: it depends on the kind of the prior.

Positive parameters are there as logarithms, so that a difference is the logarithm of a ratio; probabilities as
log-odds; the others as they are.
"""

from collections.abc import Mapping

import numpy as np

from foveate.model.model import Model
from foveate.model.priors import Beta, Normal, PositivePrior

LOG_RATIO, LOG_ODDS_RATIO = "log ratio", "log odds ratio"

VALUES = {PositivePrior: "log", Beta: "log-odds", Normal: "as it is"}
DIFFERENCES = {PositivePrior: LOG_RATIO, Beta: LOG_ODDS_RATIO, Normal: "difference"}


def value_scales(model: Model) -> dict[str, str]:
    """For each number of a model the scale of its value."""
    return _scales(model, VALUES, "real line")


def difference_scales(model: Model) -> dict[str, str]:
    """For each number of a model what a difference is."""
    return _scales(model, DIFFERENCES, "difference on the prior's real line")


def _scales(model: Model, words: Mapping[type, str], other: str) -> dict[str, str]:
    said = []
    for name, value in model.parameters.items():
        kind = next((it for prior, it in words.items() if isinstance(model.priors[name], prior)), other)
        said += [kind] * int(np.size(value))
    return dict(zip(model.labels, said, strict=True))
