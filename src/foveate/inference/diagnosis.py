"""Whether draws can be trusted, in numbers and in words.

Chains are judged by rank-normalised R-hat, bulk and tail effective sample size (ArviZ), divergences and E-BFMI.
Importance sampling is judged by its weights and by its replicates, never by the resampled draws: a resampled draw that
occurs ten times is still one draw.

A problem says that the draws are not good enough; a note says what a reader should know of draws that are.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float
from scipy.stats import norm

from foveate.inference.samples import Samples, Weighted

LARGEST_RHAT = 1.01
FEWEST_EFFECTIVE = 400.0
MOST_DIVERGING = 0.01  # share of draws
LEAST_BFMI = 0.3
LARGEST_PARETO_K = 0.7  # above it a mean with importance weights is not reliable (Vehtari et al.)
TAIL = 0.05

# Between the evidences of explorations from scratch and the final one. Explorations are rough: in nine of ten fits to
# real observers these lie within 2.1. One that is further off has seen less than a twentieth of the posterior.
FURTHEST_EXPLORATION_NATS = 3.0


@dataclass(frozen=True)
class Diagnosis:
    """Convergence of a fit, number by number and in all; `problems` are sentences, none where it has converged.

    `notes` are sentences, too, and nothing against the draws.
    """

    labels: tuple[str, ...]
    rhat: tuple[float, ...]
    ess_bulk: tuple[float, ...]
    ess_tail: tuple[float, ...]
    divergences: int
    acceptance: float | None  # mean acceptance rate of a chain's steps
    bfmi: float | None  # the lowest of all chains
    pareto_k: float | None
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether nothing was found against the fit."""
        return not self.problems

    @property
    def max_rhat(self) -> float:
        """The worst R-hat of all numbers."""
        return max(self.rhat, default=1.0)

    @property
    def min_ess(self) -> float:
        """The least effective sample size of all numbers, bulk or tail."""
        return min((*self.ess_bulk, *self.ess_tail), default=np.inf)

    @property
    def verdict(self) -> str:
        """The judgement in a sentence or more."""
        said = "NOT CONVERGED: " + " ".join(self.problems)
        if self.converged:
            said = f"converged: R-hat at most {self.max_rhat:.3f}, at least {self.min_ess:.0f} effective draws."
        return " ".join([said, *(f"Note: {note}" for note in self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """As something that JSON can hold."""
        return asdict(self) | {"converged": self.converged, "verdict": self.verdict}


def chain_diagnostics(
    draws: Float[np.ndarray, "chain draw number"],
) -> tuple[Float[np.ndarray, " number"], Float[np.ndarray, " number"], Float[np.ndarray, " number"]]:
    """R-hat and effective draws, in bulk and in the tails, of every number of chains."""
    with np.errstate(all="ignore"):  # chains that never moved divide zero by zero: `_clean` sees to them
        rhat = _clean(array_stats.rhat(draws, chain_axis=0, draw_axis=1), np.inf)
        bulk = _clean(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="bulk"), 0.0)
        tails = (TAIL, 1 - TAIL)
        tail = _clean(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="tail", prob=tails), 0.0)
    return rhat, bulk, tail


def diagnose(labels: list[str], samples: Samples) -> Diagnosis:
    """The diagnosis of these draws."""
    if samples.weighted is not None:
        rhat, bulk, tail = weighted_diagnostics(samples.weighted)
    else:
        rhat, bulk, tail = chain_diagnostics(samples.real)
    statistics, k = samples.statistics, samples.facts.get("pareto_k") if samples.weighted is not None else None
    diverging = int(np.sum(statistics["diverging"])) if "diverging" in statistics else 0
    acceptance = float(np.mean(statistics["acceptance_rate"])) if "acceptance_rate" in statistics else None
    bfmi = float(np.min(array_stats.bfmi(statistics["energy"]))) if "energy" in statistics else None
    problems = []
    for name, values, wrong, words in (
        ("R-hat", rhat, rhat > LARGEST_RHAT, f"above {LARGEST_RHAT}: replicates disagree"),
        ("bulk ESS", bulk, bulk < FEWEST_EFFECTIVE, f"below {FEWEST_EFFECTIVE:.0f}: take more draws"),
        ("tail ESS", tail, tail < FEWEST_EFFECTIVE, f"below {FEWEST_EFFECTIVE:.0f}: take more draws"),
    ):
        if wrong.any():
            items = ", ".join(f"{labels[i]} {values[i]:.{3 if name == 'R-hat' else 0}f}" for i in np.nonzero(wrong)[0])
            problems.append(f"{name} of {items} {words}.")
    if diverging > MOST_DIVERGING * samples.real.shape[0] * samples.real.shape[1]:
        problems.append(f"{diverging} divergences: steps were too long for the shape of the posterior.")
    if bfmi is not None and bfmi < LEAST_BFMI:
        problems.append(f"E-BFMI {bfmi:.2f} below {LEAST_BFMI}: chains cross the posterior's energies too slowly.")
    if k is not None and k > LARGEST_PARETO_K:
        problems.append(f"Pareto k-hat {k:.2f} above {LARGEST_PARETO_K}: a few draws carry nearly all weight.")
    return Diagnosis(
        tuple(labels), tuple(rhat.tolist()), tuple(bulk.tolist()), tuple(tail.tolist()),
        diverging, acceptance, bfmi, k, tuple(problems), tuple(_notes(samples)),
    )  # fmt: skip


def _notes(samples: Samples) -> list[str]:
    """Whether the explorations behind a proposal disagree: where one missed a mode, both may have missed another."""
    evidences = list(samples.facts.get("exploration_log_evidence_nats", ()))
    if evidences and samples.log_evidence_nats is not None:
        evidences.append(samples.log_evidence_nats[0])
    evidences = [it for it in evidences if np.isfinite(it)]
    apart = max(evidences, default=0.0) - min(evidences, default=0.0)
    if apart <= FURTHEST_EXPLORATION_NATS:
        return []
    return [
        f"evidences of the explorations from scratch and of the fit lie up to {apart:.1f} nats apart: what one missed "
        "all may have missed; compare with another seed or with sampler 'smc'."
    ]


def _clean(values: Any, otherwise: float) -> Float[np.ndarray, " number"]:
    """Values with what could not be worked out (a chain that never moved) replaced by the worst."""
    values = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(values), values, otherwise)


# --- weighted draws ------------------------------------------------------------------------------------------------


def weighted_diagnostics(
    weighted: Weighted,
) -> tuple[Float[np.ndarray, " number"], Float[np.ndarray, " number"], Float[np.ndarray, " number"]]:
    """R-hat over replicates, bulk and tail ESS of every number, from weights.

    R-hat is the usual one (rank-normalised and folded, the larger) with weighted means and variances. The effective
    number of draws for a function f is the variance of f divided by the squared Monte Carlo error of its mean; f is
    the rank-normalised number (bulk), and whether it lies in either tail (the smaller).
    """
    weight = np.exp(weighted.log_weight - weighted.log_weight.max())
    found = [_of_number(weighted.real[:, :, i], weight) for i in range(weighted.real.shape[-1])]
    rhat, bulk, tail = (np.array(it) for it in zip(*found, strict=True)) if found else (np.zeros(0),) * 3
    return rhat, bulk, tail


def _of_number(values: np.ndarray, weight: np.ndarray) -> tuple[float, float, float]:
    rank = _weighted_rank(values, weight)
    scores = norm.ppf(rank)
    middle = _quantile(values, weight, 0.5)
    folded = norm.ppf(_weighted_rank(np.abs(values - middle), weight))
    tails = [_effective((rank <= TAIL).astype(float), weight), _effective((rank >= 1 - TAIL).astype(float), weight)]
    return max(_rhat(scores, weight), _rhat(folded, weight)), _effective(scores, weight), min(tails)


def _weighted_rank(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Share of the weight below each value (half of its own counted), within (0, 1)."""
    order = np.argsort(values, axis=None)
    flat = weight.ravel()[order] / weight.sum()
    rank = np.empty(values.size)
    rank[order] = np.cumsum(flat) - 0.5 * flat
    tiny = 0.25 / values.size
    return np.clip(rank, tiny, 1 - tiny).reshape(values.shape)


def _quantile(values: np.ndarray, weight: np.ndarray, share: float) -> float:
    order = np.argsort(values, axis=None)
    cumulative = np.cumsum(weight.ravel()[order]) / weight.sum()
    return float(values.ravel()[order][np.searchsorted(cumulative, share).clip(max=values.size - 1)])


def _rhat(values: np.ndarray, weight: np.ndarray) -> float:
    share = weight / weight.sum(axis=1, keepdims=True)
    means = (share * values).sum(axis=1)
    within = (share * np.square(values - means[:, None])).sum(axis=1).mean()
    return float(np.sqrt((within + means.var(ddof=1)) / within)) if within > 0 else np.inf


def _effective(values: np.ndarray, weight: np.ndarray) -> float:
    share = weight / weight.sum()
    away = np.square(values - (share * values).sum())
    error = (np.square(share) * away).sum()
    return float((share * away).sum() / error) if error > 0 else 0.0
