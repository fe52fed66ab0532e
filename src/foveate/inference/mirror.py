"""The other side of a wall: a logistic choice with the feature's effect turned round.

The threshold moves along, so that the probability of a local step stays what it is at a usual value of the feature. The
likelihoods of a vector and its mirror image are much the same, but between them, at b = 0, the prior of the threshold
builds a wall. Draws therefore go to both sides while the walls are low, or one side would be lost by chance.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from foveate.inference.conditionals import features
from foveate.inference.mixture import Mixture
from foveate.inference.target import Target
from foveate.model.choices import LogisticChoice
from foveate.model.priors import Normal
from foveate.precision import double_precision

SHARE = 0.3  # of the draws that go to the other side


@dataclass(frozen=True, eq=False)
class Mirror:
    """v becomes `shift` + `sign` v."""

    sign: Float[np.ndarray, " number"]
    shift: Float[np.ndarray, " number"]

    def image(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, "set number"]:
        """The vectors on the other side."""
        return self.shift + self.sign * vectors

    def both_sides(self, mixture: Mixture) -> Mixture:
        """The mixture with its image, which has a smaller share."""
        turned = self.sign[:, None] * np.asarray(mixture.factor) * self.sign
        return Mixture(
            np.concatenate([(1 - SHARE) * np.asarray(mixture.share), SHARE * np.asarray(mixture.share)]),
            np.concatenate([mixture.centre, self.image(np.asarray(mixture.centre))]),
            np.concatenate([mixture.factor, turned]),
            np.concatenate([mixture.freedom, mixture.freedom]),
        )


@double_precision
def mirror_of(target: Target) -> Mirror | None:
    """The mirror of a target, if its choice has one."""
    model = target.model
    if not isinstance(model.choice, LogisticChoice):
        return None
    if not all(isinstance(model.priors[name], Normal) for name in ("b", "s0")):
        return None  # on the real line they would be something else than themselves
    usual = np.median(np.asarray(features(model.choice, target.steps))[np.asarray(target.steps.real)])
    sign, shift = np.ones(target.size), np.zeros(target.size)
    sign[[model.labels.index(name) for name in ("b", "s0")]] = -1
    shift[model.labels.index("s0")] = 2 * usual
    return Mirror(sign, shift)
