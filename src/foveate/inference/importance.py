"""Adaptive importance sampling of the marginal posterior: the default where there are few parameters.

A proposal is learnt (`proposal.py`) and then frozen. Independent replicates are drawn from it, so weights are exact
and Monte Carlo errors follow from them. How many are drawn depends on their own weights, and so does whether they are
kept: up to that the evidence is estimated without bias. Where the weights are too uneven
to be trusted (Pareto k-hat, effective draws), the draws go into the proposal and it is tried again; in the end tempered
SMC takes over, from the same proposal.
"""

import jax
import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.diagnosis import LARGEST_PARETO_K, weighted_diagnostics
from foveate.inference.draws import generator
from foveate.inference.mixture import Mixture
from foveate.inference.modes import error_of_independent, error_of_replicates, find_modes
from foveate.inference.plans import Ask, Plan, alone
from foveate.inference.proposal import LEAST_EFFECTIVE, Proposal, effective, learn_more, learn_proposal
from foveate.inference.samples import Progress, Report, Samples, Weighted, silent
from foveate.inference.smc import tempered
from foveate.inference.target import GROUP, Target
from foveate.precision import check_key, double_precision

ATTEMPTS = 4  # to learn a proposal; the last one is drawn from for as long as it takes
# Drawing goes on until every number has this many effective draws, bulk and tails, over all replicates, which then
# agree as well as this; a replicate draws so many at a time, and so many at most.
EFFECTIVE_DRAWS, LARGEST_RHAT = 1000, 1.006
FEWEST_DRAWS, MOST_DRAWS = 512, 16_384
LEAST_EFFICIENCY = 0.1  # with fewer effective draws per draw it is better to learn more than to draw more

FEWEST_PARTICLES = 1000  # of tempered SMC where it takes over, however few draws are asked for

# A wide component beside the learnt ones, so that no weight is huge where they leave a gap.
WIDE_SHARE, WIDE_STRETCH, WIDE_FREEDOM = 0.1, 1.5, 3.0


def pareto_k(log_weight: Float[np.ndarray, " draw"]) -> float:
    """Pareto k-hat of importance weights: how heavy their tail is."""
    finite = np.sort(log_weight[np.isfinite(log_weight)])
    if len(finite) < 2:
        return np.inf
    if finite[-1] - finite[len(finite) // 2] < 1e-12:  # weights that are all the same have no tail to fit
        return 0.0
    return float(array_stats.psislw(-finite)[1])


def log_evidence(log_weight: Float[np.ndarray, "replicate draw"]) -> tuple[float, float]:
    """Log of the mean weight, and its standard error from the spread of the weights."""
    flat = log_weight.ravel()
    value = float(np.logaddexp.reduce(flat) - np.log(flat.size))
    return value, float(np.std(np.exp(flat - value), ddof=1) / np.sqrt(flat.size))


@double_precision
def importance(
    target: Target,
    key: PRNGKeyArray,
    *,
    replicates: int = 4,
    draws: int = 1000,
    threads: int = 1,
    report: Report = silent,
) -> Samples:
    """Draws of the posterior by adaptive importance sampling: `draws` equally weighted ones from each replicate."""
    check_key(key)
    if replicates < 2 or draws < 4:
        raise InputError(f"replicates = {replicates}, draws = {draws}: at least 2 replicates of 4 draws are needed.")
    for_proposal, for_draws, for_smc = jax.random.split(key, 3)
    proposal = learn_proposal(target, for_proposal, report, threads)
    rng = generator(for_draws)
    settings = {"replicates": replicates, "draws": draws}
    mixture, efficiency, evaluations = proposal.mixture, proposal.efficiency, proposal.evaluations
    tries = 0
    while True:
        frozen = _defended(mixture, proposal)
        tries += 1
        last = tries == ATTEMPTS
        weighted, enough = _draw_until_enough(target, frozen, replicates, efficiency, last, rng, threads, report)
        evaluations += weighted.log_weight.size
        if enough or last:
            break
        for vectors, log_weight in zip(weighted.real, weighted.log_weight, strict=True):
            proposal.record.add(frozen, vectors, log_weight + frozen.log_density(vectors))
        before = len(proposal.record.vectors)
        mixture, efficiency = learn_more(target, proposal.record, rng, report, threads)
        evaluations += len(proposal.record.vectors) - before
    k = pareto_k(weighted.log_weight.ravel())
    facts = {
        "pareto_k": k,
        "attempts": tries,
        "efficiency": effective(weighted.log_weight.ravel()) / weighted.log_weight.size,
        "exploration_log_evidence_nats": list(proposal.exploration_log_evidence_nats),
    }
    if k > LARGEST_PARETO_K:
        return _by_smc(target, for_smc, mixture, replicates, draws, settings, facts, evaluations, report)
    log_density = weighted.log_weight + np.stack([frozen.log_density(vectors) for vectors in weighted.real])
    # Not the frozen mixture: draws that are nearest to its wide component may lie in any mode.
    modes = find_modes(target, weighted.real, weighted.log_weight, log_density, mixture, error_of_independent)
    chosen = [resample(weight, draws, rng) for weight in weighted.log_weight]
    picked = [np.stack([it[rows] for it, rows in zip(part, chosen, strict=True)])
              for part in (weighted.real, weighted.log_weight)]  # fmt: skip
    return Samples(
        real=picked[0],
        sampler="importance",
        settings=settings,
        statistics={"log_weight": picked[1]},
        evaluations=evaluations + modes.evaluations,
        weighted=weighted,
        log_evidence_nats=log_evidence(weighted.log_weight),
        modes=modes,
        facts=facts,
    )


def _draw_until_enough(
    target: Target,
    frozen: Mixture,
    replicates: int,
    efficiency: float,
    last: bool,
    rng: np.random.Generator,
    threads: int,
    report: Report,
) -> tuple[Weighted, bool]:
    """Weighted draws of a frozen proposal, and whether they are enough.

    Drawing stops early where it is better to learn more, unless this is the `last` attempt.
    """
    weighted = None
    while True:
        weighted = _more_draws(target, frozen, weighted, replicates, efficiency, rng, threads)
        rhat, bulk, tail = weighted_diagnostics(weighted)
        k, worst = pareto_k(weighted.log_weight.ravel()), float(np.min([bulk, tail]))
        report(
            Progress(
                "drawing",
                min(int(worst), EFFECTIVE_DRAWS),
                EFFECTIVE_DRAWS,
                {"max_rhat": float(rhat.max()), "pareto_k": k},
            )
        )
        trusted = k <= LARGEST_PARETO_K
        if trusted and worst >= EFFECTIVE_DRAWS and rhat.max() <= LARGEST_RHAT:
            return weighted, True
        wasteful = worst < LEAST_EFFICIENCY * weighted.log_weight.size
        if weighted.log_weight.shape[1] >= MOST_DRAWS or (not last and (wasteful or not trusted)):
            return weighted, False


def _defended(mixture: Mixture, proposal: Proposal) -> Mixture:
    """The mixture with a wide component as large as all that it was learnt from."""
    record = proposal.record
    weight = record.tempered(LEAST_EFFECTIVE)[0]
    middle = weight @ record.vectors
    away = record.vectors - middle
    scale = WIDE_STRETCH**2 * (away.T @ (away * weight[:, None])) + 1e-8 * np.eye(len(middle))
    return mixture.with_component(WIDE_SHARE, middle, scale, WIDE_FREEDOM)


def _more_draws(
    target: Target,
    mixture: Mixture,
    weighted: Weighted | None,
    replicates: int,
    efficiency: float,
    rng: np.random.Generator,
    threads: int,
) -> Weighted:
    """The draws so far with half as many again for every replicate; the first ones would do if all were as good as the
    learning said."""
    if weighted is None:
        wanted = EFFECTIVE_DRAWS / replicates / max(efficiency, 1e-3)
    else:
        wanted = weighted.log_weight.shape[1] / 2
    count = int(np.clip(wanted, FEWEST_DRAWS, MOST_DRAWS // 4)) // GROUP * GROUP
    found = alone(weighted_draws(mixture, replicates, count, rng), target, threads=threads)
    return found if weighted is None else weighted.and_more(found)


def weighted_draws(mixture: Mixture, replicates: int, count: int, rng: np.random.Generator) -> Plan[Weighted]:
    """`count` draws of a mixture for every replicate, with their importance weights."""
    vectors = np.concatenate([mixture.sample(count, rng) for _ in range(replicates)])
    log_weight = (yield Ask(vectors)).values - mixture.log_density(vectors)
    return Weighted(vectors.reshape(replicates, count, -1), log_weight.reshape(replicates, count))


def resample(log_weight: Float[np.ndarray, " draw"], count: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `count` draws with equal weights, systematically, in an order that means nothing."""
    weight = np.exp(log_weight - log_weight.max())
    points = (np.arange(count) + rng.random()) / count
    rows = np.searchsorted(np.cumsum(weight / weight.sum()), points).clip(max=len(weight) - 1)
    return rng.permutation(rows)


def _by_smc(target, key, mixture, replicates, draws, settings, facts, evaluations, report) -> Samples:
    """The draws of tempered SMC from the proposal, where importance sampling does not trust its own."""
    particles = max(draws, FEWEST_PARTICLES)
    found = tempered(target, key, particles=particles, replicates=replicates, start=mixture, report=report)
    equal, log_density = np.zeros(found.real.shape[:2]), found.statistics["lp"]
    modes = find_modes(target, found.real, equal, log_density, mixture, error_of_replicates)
    kept = np.linspace(0, particles - 1, draws).round().astype(int)
    return Samples(
        real=found.real[:, kept],
        sampler="smc",
        settings=settings | dict(found.settings) | {"instead_of": "importance"},
        statistics={name: values[:, kept] for name, values in found.statistics.items()},
        evaluations=evaluations + found.evaluations + modes.evaluations,
        log_evidence_nats=found.log_evidence_nats,
        modes=modes,
        facts=facts | dict(found.facts),
    )
