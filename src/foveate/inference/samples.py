"""What every sampler returns, and how it tells of its progress."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.inference.modes import Modes


@dataclass(frozen=True)
class Progress:
    """How far a sampler has come; `facts` are numbers worth showing, such as divergences or the worst R-hat so far."""

    stage: str  # in words: "climbing", "warm-up", "drawing"
    done: int
    total: int
    facts: Mapping[str, float] = field(default_factory=dict)


# Called by samplers every second or so; it may raise an exception to stop the sampler.
Report = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws of independent replicates from a known density, with the logarithms of their importance weights."""

    real: Float[np.ndarray, "replicate draw number"]
    log_weight: Float[np.ndarray, "replicate draw"]  # log posterior density (not normalised) less log proposal density

    def and_more(self, others: "Weighted") -> "Weighted":
        """These draws and others of the same proposal, replicate by replicate."""
        return Weighted(
            np.concatenate([self.real, others.real], axis=1),
            np.concatenate([self.log_weight, others.log_weight], axis=1),
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """Equally weighted draws of a posterior, on the real line, with what the sampler knows about them."""

    real: Float[np.ndarray, "chain draw number"]
    sampler: str
    settings: Mapping[str, Any]  # that the sampler ran with; JSON can hold them
    statistics: Mapping[str, Float[np.ndarray, "chain draw"]]  # ArviZ's names: diverging, acceptance_rate, energy, ...
    evaluations: int  # of the density; a gradient counts as one
    weighted: Weighted | None = None  # the draws behind `real`, where those were resampled
    log_evidence_nats: tuple[float, float] | None = None  # estimate and standard error
    modes: Modes | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # whatever else is worth keeping; JSON can hold it
