"""Finished fits of one model, as predictions and simulations need them: read from their files once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.errors import InputError
from foveate.evaluate.trials import thinned
from foveate.execution.foldfits import FoldFits
from foveate.inference.posterior import Posterior
from foveate.model.model import Model
from foveate.precision import double_precision


@dataclass(frozen=True, eq=False)
class Fitted:
    """Draws from one posterior as vectors on the real line, and what a table of fits says of it."""

    model: Model
    vectors: Float[np.ndarray, "draw number"]
    converged: bool
    facts: Mapping[str, Any]

    @classmethod
    def of(cls, posterior: Posterior, draws: int) -> "Fitted":
        """So many draws of a posterior, evenly picked."""
        vectors = posterior.samples.real.reshape(-1, len(posterior.model.labels))
        found, evidence = posterior.diagnosis, posterior.samples.log_evidence_nats or (np.nan, np.nan)
        facts = {
            "converged": posterior.converged,
            "sampler": posterior.samples.sampler,
            "max_rhat": found.max_rhat,
            "min_ess": found.min_ess,
            "moved": bool(posterior.samples.facts.get("moved", False)),
            "pareto_k": posterior.samples.facts.get("pareto_k", np.nan),
            "log_evidence_nats": evidence[0],
            "standard_error_nats": evidence[1],
            "seconds": posterior.provenance["seconds"],
            "problems": " ".join(found.problems),
            "notes": " ".join(found.notes),
        } | dict(zip(posterior.labels, posterior.numbers.mean(axis=(0, 1)).tolist(), strict=True))
        return cls(posterior.model, thinned(vectors, min(draws, len(vectors))), posterior.converged, facts)

    @double_precision
    def models(self) -> list[Model]:
        """The model of every draw."""
        return [self.model.from_real(vector) for vector in self.vectors] if self.model.labels else [self.model]


@dataclass(frozen=True, eq=False)
class FittedFolds:
    """All fits of a model by (fold, observer); one without parameters (the Saliency Baseline) needs none."""

    name: str
    draws: int
    parts: Mapping[tuple[int, Any], Fitted]

    @classmethod
    def of(cls, fits: FoldFits, name: str, draws: int) -> "FittedFolds":
        """Read from the folder of the fits."""
        if draws < 1:
            raise InputError(f"draws = {draws}: give 1 or more.")
        model, parts = fits.models[name], {}
        for fold in fits.folds:
            if model.labels:
                store = fits.store(name, fold)
                parts |= {(fold, observer): Fitted.of(store.load(observer), draws) for observer in fits.observers}
            else:
                parts |= {(fold, observer): Fitted(model, np.zeros((1, 0)), True, {}) for observer in fits.observers}
        return cls(name, draws, parts)

    def rows(self) -> list[dict[str, Any]]:
        """For every fit how it converged, its evidence, how long it took; none where there was nothing to fit."""
        return [
            {"model": self.name, "fold": fold, "observer": observer} | dict(it.facts)
            for (fold, observer), it in self.parts.items()
            if it.facts
        ]
