"""Posteriors of models with many numbers (ten to ninety): Laplace's approximation, weighted, and moved where need be.

Climbs start at the model's present values, which should be near what observers show, and close by. At each distinct top
the curvature gives a Gaussian; a Student-t of its shape is a component of the proposal, with Laplace's mass as its
share. A first round of weighted draws widens or moves it. Independent replicates are then drawn, with exact densities.
Where their weights can be trusted (Pareto k-hat, effective draws) they are the result, with the evidence. Else, and
with dozens of numbers that is the rule, Hamiltonian chains start from draws picked by weight, in the proposal's metric,
with the proposal's own draws as jumps between modes; they run until they agree. Shorter chains before them come across
modes that climbs had missed.

It knows the modes that its climbs and chains met, and no others: where several are to be expected, importance sampling
or tempered SMC explore.
"""

from typing import Any

import jax
import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.curvature import Top, find_tops, near_starts, prior_spread
from foveate.inference.diagnosis import LARGEST_PARETO_K, chain_diagnostics, weighted_diagnostics
from foveate.inference.draws import check_count, generator
from foveate.inference.importance import log_evidence, pareto_k, resample, weighted_draws
from foveate.inference.mixture import Mixture
from foveate.inference.moves import Moved, move
from foveate.inference.plans import Ask, Plan, alone
from foveate.inference.proposal import Record, effective
from foveate.inference.samples import Progress, Report, Samples, Weighted, silent
from foveate.inference.target import Target
from foveate.precision import check_key, double_precision

# Climbs of models with many numbers, and with few (as `MOST_LEARNT` has it): those of the paper's models are short, and
# end at one of several tops.
CLIMBS, CLIMBS_OF_FEW = 2, 8
AWAY = 0.5  # of the prior's spread: how far from the present values the other climbs start
MOST_ITERATIONS = 300  # of a climb

# With dozens of numbers heavier tails would put nearly all draws far out.
FREEDOM = 20.0
LEAST_SHARE, FLATTENING = 0.02, 0.6  # of a top's component: Laplace's masses are rough

LEARNING_ROUND = 256  # draws from Laplace's approximation that improve it
EFFECTIVE_PER_NUMBER = 4.0  # effective draws that its weights are tempered to
MOST_LEARNT = 16  # numbers: of more a round tells less than the curvature does (efficiencies of 0.02 instead of 0.05)
ROUND = 64  # draws of a replicate at a time
EFFECTIVE_DRAWS, MOST_DRAWS = 450, 1024  # every number shall have so many effective draws; of a replicate at most
LEAST_EFFICIENCY = 0.1  # with fewer effective draws per draw, chains cost less

WARMUP, LONG_WARMUP = 12, 180  # moves that find the step; of chains that run until they agree, the metric too
# Before those, shorter chains (so many moves, and as many more) come across other tops: climbs start from some places
# of each.
EXPLORING, CLIMBED_FROM = 70, 4
# Chains run until every number has this many effective draws and they agree as well as this, but no longer than that.
MOVED_EFFECTIVE, MOVED_RHAT, MOST_MOVES = 420, 1.009, 3000


@double_precision
def laplace(
    target: Target,
    key: PRNGKeyArray,
    *,
    climbs: int | None = None,
    starts: Float[np.ndarray, "start number"] | None = None,
    replicates: int = 4,
    draws: int = 1000,
    moves: int | None = None,
    effective_draws: int = EFFECTIVE_DRAWS,
    threads: int = 1,
    report: Report = silent,
) -> Samples:
    """Draws of the posterior: `draws` from each replicate, or `moves` from each chain where weights are not trusted
    (None: until the chains agree).

    There are as many `climbs` as the number of parameters calls for, unless it is said. `starts` (on the real line) are
    climbed from instead of the model's present values and places nearby. Weighted draws are made until every number has
    so many `effective_draws`, or until it is plain that weights will not do; with `moves=0` they are the result,
    whatever their diagnosis.
    """
    settings = {"climbs": climbs, "starts": starts, "replicates": replicates, "draws": draws, "moves": moves}
    plan = laplace_plan(target, key, **settings, effective_draws=effective_draws, report=report)
    return alone(plan, target, threads=threads)


def laplace_plan(
    target: Target,
    key: PRNGKeyArray,
    *,
    climbs: int | None = None,
    starts: Float[np.ndarray, "start number"] | None = None,
    replicates: int = 4,
    draws: int = 1000,
    moves: int | None = None,
    effective_draws: int = EFFECTIVE_DRAWS,
    report: Report = silent,
) -> Plan[Samples]:
    """`laplace` as a plan: arguments are checked here and now."""
    check_key(key)
    if climbs is None:
        climbs = CLIMBS_OF_FEW if target.size <= MOST_LEARNT else CLIMBS
    _check(target, climbs, starts, replicates, draws, moves, effective_draws)
    return _laplace(target, key, climbs, starts, replicates, draws, moves, effective_draws, report)


def _laplace(
    target: Target,
    key: PRNGKeyArray,
    climbs: int,
    starts: Float[np.ndarray, "start number"] | None,
    replicates: int,
    draws: int,
    moves: int | None,
    wanted: int,
    report: Report,
) -> Plan[Samples]:
    for_spread, for_starts, for_draws = jax.random.split(key, 3)
    rng, spread = generator(for_draws), prior_spread(target, for_spread)
    report(Progress("climbing", 0, 1))
    begun = near_starts(target, for_starts, climbs, spread, AWAY) if starts is None else np.asarray(starts, np.float64)
    tops, ends, evaluations = yield from find_tops(begun, spread, MOST_ITERATIONS)
    if not tops:
        raise InputError(f"model {target.model.name!r}: no climb met a finite posterior density; give other starts.")
    report(Progress("climbing", 1, 1))
    mixture = yield from _learnt(_approximation(tops), rng)
    weighted = yield from _drawn(mixture, replicates, wanted, rng, report)
    evaluations += LEARNING_ROUND * (target.size <= MOST_LEARNT) + weighted.log_weight.size
    flat, count = weighted.log_weight.ravel(), weighted.log_weight.size
    facts = {
        "pareto_k": pareto_k(flat),
        "efficiency": effective(flat) / count,
        "tops": len(tops),
        "climbs_ended_nats": ends,
        "directions_widened": tops[0].widened,
        "weighted_log_evidence_nats": list(log_evidence(weighted.log_weight)),
    }
    settings = {"climbs": len(begun), "replicates": replicates, "draws": draws, "moves": moves}
    settings |= {"effective_draws": wanted}
    if moves != 0 and not _trusted(weighted):
        places = _picked(weighted, rng)
        if moves is None:
            tops, places, spent = yield from _explored(tops, mixture, places, spread, rng, report)
            mixture = yield from _learnt(_approximation(tops), rng)
            evaluations += spent + LEARNING_ROUND * (target.size <= MOST_LEARNT)
        found = yield from _moved(mixture, places, moves, rng, report)
        return Samples(
            real=found.real,
            sampler="laplace",
            settings=settings,
            statistics={"lp": found.log_density, "acceptance_rate": found.acceptance, "diverging": found.diverging},
            evaluations=evaluations + found.evaluations,
            facts=facts | {"tops": len(tops), "step_size": found.step, "moved": True, "jumped": found.jumped},
        )
    real, log_weight = _resampled(weighted, draws, rng)
    return Samples(
        real=real,
        sampler="laplace",
        settings=settings,
        statistics={"log_weight": log_weight},
        evaluations=evaluations,
        weighted=weighted,
        log_evidence_nats=log_evidence(weighted.log_weight),
        facts=facts,
    )


def _check(
    target: Target, climbs: int, starts: Any, replicates: int, draws: int, moves: int | None, effective_draws: int
) -> None:
    counts = {"climbs": (climbs, 1), "replicates": (replicates, 2), "draws": (draws, 4)}
    for name, (value, least) in (counts | {"effective_draws": (effective_draws, 1)}).items():
        check_count(name, value, least)
    check_count("moves", 0 if moves is None else moves, 0)
    if moves is not None and 0 < moves < 4:
        raise InputError(f"moves = {moves}: give 4 or more, or 0 for weighted draws alone.")
    if starts is not None and (np.ndim(starts) != 2 or np.shape(starts)[1] != target.size or not len(starts)):
        raise InputError(f"starts has shape {np.shape(starts)}: give rows of {target.size} numbers, one or more.")


def _approximation(tops: list[Top]) -> Mixture:
    """Laplace's approximation: a component at every top, in the shares of their masses, made more alike."""
    mass = np.array([top.log_mass for top in tops])
    share = np.maximum(np.exp(mass - np.logaddexp.reduce(mass)), LEAST_SHARE)
    scales = np.stack([top.covariance for top in tops])
    return Mixture.of(share, np.stack([top.vector for top in tops]), scales, FREEDOM).flattened(FLATTENING)


def _learnt(mixture: Mixture, rng: np.random.Generator) -> Plan[Mixture]:
    """The mixture with centres and scales from weighted draws, as far as those can tell more than the curvature."""
    size = mixture.centre.shape[1]
    if size > MOST_LEARNT:
        return mixture
    record, vectors = Record.empty(size), mixture.sample(LEARNING_ROUND, rng)
    record.add(mixture, vectors, (yield Ask(vectors, rough=True)).values)
    if not np.isfinite(record.log_density).any():
        return mixture
    weight, _ = record.tempered(min(EFFECTIVE_PER_NUMBER * size, LEARNING_ROUND / 2))
    return mixture.leaning_to(vectors, weight)


def _drawn(mixture: Mixture, replicates: int, wanted: int, rng: np.random.Generator, report: Report) -> Plan[Weighted]:
    """Weighted draws: until there are enough, or until it is plain that weights will not do."""
    weighted = yield from weighted_draws(mixture, replicates, ROUND, rng)
    while True:
        worst = float(np.min(weighted_diagnostics(weighted)[1:]))
        report(Progress("drawing", min(int(worst), wanted), wanted))
        count = weighted.log_weight.shape[1]
        if worst >= wanted or count >= MOST_DRAWS or not _trusted(weighted):
            return weighted
        weighted = weighted.and_more((yield from weighted_draws(mixture, replicates, count // 2, rng)))


def _trusted(weighted: Weighted) -> bool:
    flat = weighted.log_weight.ravel()
    if not np.isfinite(flat).any():
        return False
    return effective(flat) >= LEAST_EFFICIENCY * flat.size and pareto_k(flat) <= LARGEST_PARETO_K


def smoothed_weights(log_weight: Float[np.ndarray, "replicate draw"]) -> Float[np.ndarray, "replicate draw"]:
    """Log-weights whose largest are those that a Pareto tail fitted to them would have (Vehtari et al.)."""
    flat = log_weight.ravel()
    possible = np.isfinite(flat)
    if np.ptp(flat[possible]) < 1e-12:
        return log_weight
    smoothed = flat.copy()
    smoothed[possible] = array_stats.psislw(-flat[possible])[0]
    return smoothed.reshape(log_weight.shape)


def _resampled(
    weighted: Weighted, draws: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "replicate draw number"], Float[np.ndarray, "replicate draw"]]:
    """So many draws by weight for every replicate, and the log-weights that they had; out of its own draws, unless
    weights are not to be trusted: then a replicate alone has too few, and all are drawn from together."""
    smoothed, real, log_weight = smoothed_weights(weighted.log_weight), weighted.real, weighted.log_weight
    if not _trusted(weighted):
        count = len(log_weight)
        smoothed, log_weight = (np.tile(it.ravel(), (count, 1)) for it in (smoothed, log_weight))
        real = np.tile(real.reshape(-1, real.shape[-1]), (count, 1, 1))
    rows = [resample(weight, draws, rng) for weight in smoothed]
    return (
        np.stack([it[row] for it, row in zip(real, rows, strict=True)]),
        np.stack([it[row] for it, row in zip(log_weight, rows, strict=True)]),
    )


def _picked(weighted: Weighted, rng: np.random.Generator) -> Float[np.ndarray, "chain number"]:
    """A place for a chain to start from in every replicate, drawn by weight."""
    best = np.argmax(weighted.log_weight + rng.gumbel(size=weighted.log_weight.shape), axis=1)
    return weighted.real[np.arange(len(best)), best]


def _explored(
    tops: list[Top],
    mixture: Mixture,
    places: Float[np.ndarray, "chain number"],
    spread: Float[np.ndarray, " number"],
    rng: np.random.Generator,
    report: Report,
) -> Plan[tuple[list[Top], Float[np.ndarray, "chain number"], int]]:
    """The tops below what short chains come across, where these chains ended, and the evaluations spent.

    A lower top with a wider foot may hold a tenth of the mass though no climb from the present values meets it: chains
    walk over to it, but so rarely that without jumps thousands of moves would not agree on how much it holds.
    """
    found = yield from move(
        places, mixture, rng, warmup=EXPLORING, draws=EXPLORING,
        report=lambda it: report(Progress("exploring", it.done, it.total, it.facts)),
    )  # fmt: skip
    met = found.real[:, :: -(-EXPLORING // CLIMBED_FROM)].reshape(-1, len(spread))
    known = np.stack([top.vector for top in tops])
    more, _, spent = yield from find_tops(np.concatenate([known, met]), spread, MOST_ITERATIONS)
    return more or tops, found.real[:, -1], found.evaluations + spent


def _moved(
    mixture: Mixture,
    places: Float[np.ndarray, "chain number"],
    wanted: int | None,
    rng: np.random.Generator,
    report: Report,
) -> Plan[Moved]:
    """Chains from these places in the metric of the largest component: so many moves, or until they agree."""
    return move(
        places, mixture, rng, report=report,
        warmup=LONG_WARMUP if wanted is None else WARMUP, draws=MOST_MOVES if wanted is None else wanted,
        enough=(lambda real: False) if wanted else _agree,
    )  # fmt: skip


def _agree(real: Float[np.ndarray, "chain draw number"]) -> bool:
    """Whether chains have come to the same, and there are draws enough."""
    rhat, *counts = chain_diagnostics(real)
    return bool(rhat.max() <= MOVED_RHAT and np.min(counts) >= MOVED_EFFECTIVE)
