"""A proposal for a posterior: a Student-t mixture learnt by annealed adaptive importance sampling.

Posteriors of real observers have several modes and are rough in epsilon: each short saccade puts a wall into the
landscape, where the repelled zone reaches it, so that climbs end anywhere. A proposal is therefore learnt from draws,
hottest first: draws are weighted by the posterior to a power that rises from near 0 to 1 as fast as their effective
number allows, and a mixture fitted to them proposes the next ones. The draws of all rounds count, each weighted by the
average density of all proposals so far ("deterministic mixture weights"), so nothing that was found is forgotten.
Several explorations start from scratch, each with its own climbs; what one of them missed another may have found.
Densities that are off by some tenths of a nat serve here, and cost less (`Target.coarsened`): the samplers that use a
proposal work with exact ones.
"""

from dataclasses import dataclass, field

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.inference.climb import climbs
from foveate.inference.draws import generator
from foveate.inference.mirror import mirror_of
from foveate.inference.mixture import DEGREES_OF_FREEDOM, Mixture, seeded
from foveate.inference.samples import Progress, Report
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target, log_densities

EXPLORATIONS = 2  # from scratch
CLIMBS, CLIMB_ITERATIONS = 24, 12  # per exploration: short ones, they only say where to begin
ENDS_KEPT_NATS = 60.0  # ends of climbs that are lower than the best by more than this are no use

EXPLORING_ROUND, EXPLORING_ROUNDS = 480, 12  # draws a round; rounds at most, per exploration
EXPLORED = 0.5  # power of the weights at which an exploration has found its way
ROUND = 800  # draws a round of learning
LEARNING_ROUNDS = 12  # at most, with the draws of all explorations together
COMPONENTS = 16
FLATTENING = 0.6  # power of the shares: small modes get draws enough to be known well
GOOD_EFFICIENCY = 0.4  # effective draws per draw of a round: no more learning needed
# Effective draws that set the first temperature; every round asks for so many more, up to a limit. Modes are lost
# where this is too low or grows too slowly: the power then rises before they are known.
LEAST_EFFECTIVE, GROWTH, MOST_EFFECTIVE = 100.0, 30.0, 500.0
LEAST_SHARE = 0.005
SMALLEST_START = 0.2  # standard deviation of the components to begin with, on the real line
FITTED = 3000  # draws that a mixture is fitted to


@dataclass(eq=False)
class Record:
    """All draws so far, and the density of the average proposal at each."""

    vectors: np.ndarray
    log_density: np.ndarray
    log_sum: np.ndarray  # log of the sum over rounds of (draws of the round x proposal density)
    rounds: list[tuple[float, Mixture]] = field(default_factory=list)

    @classmethod
    def empty(cls, size: int) -> "Record":
        """Of vectors with `size` numbers."""
        return cls(np.zeros((0, size)), np.zeros(0), np.zeros(0))

    def add(self, proposal: Mixture, vectors: np.ndarray, log_density: np.ndarray) -> None:
        """Take the draws of one round."""
        self.rounds.append((np.log(len(vectors)), proposal))
        self.log_sum = np.logaddexp(self.log_sum, np.log(len(vectors)) + proposal.log_density(self.vectors))
        terms = [log_count + mixture.log_density(vectors) for log_count, mixture in self.rounds]
        self.log_sum = np.concatenate([self.log_sum, np.logaddexp.reduce(terms, axis=0)])
        self.vectors = np.concatenate([self.vectors, vectors])
        self.log_density = np.concatenate([self.log_density, log_density])

    def merge(self, other: "Record") -> "Record":
        """The draws of two records, each weighted by all proposals of both."""

        def under(record: Record, vectors: np.ndarray) -> np.ndarray:
            return np.logaddexp.reduce(
                [log_count + mixture.log_density(vectors) for log_count, mixture in record.rounds], axis=0
            )

        mine = np.logaddexp(self.log_sum, under(other, self.vectors))
        theirs = np.logaddexp(other.log_sum, under(self, other.vectors))
        return Record(
            np.concatenate([self.vectors, other.vectors]),
            np.concatenate([self.log_density, other.log_density]),
            np.concatenate([mine, theirs]),
            self.rounds + other.rounds,
        )

    @property
    def log_weight(self) -> np.ndarray:
        """Log importance weight of every draw; their mean estimates the evidence."""
        return self.log_density - self.log_sum + np.log(len(self.vectors))

    def tempered(self, least: float) -> tuple[Float[np.ndarray, " draw"], float]:
        """Normalised weights at the highest power of the weights, up to 1, that keeps so many effective draws."""
        log_weight = self.log_weight - self.log_weight.max()
        power = 1.0
        if effective(log_weight) < least:
            low, high = 0.0, 1.0
            while high - low > 1e-3 * high:
                power = 0.5 * (low + high)
                low, high = (power, high) if effective(log_weight * power) >= least else (low, power)
            power = low
        weights = np.exp(log_weight * power)
        return weights / weights.sum(), power


def effective(log_weight: Float[np.ndarray, " draw"]) -> float:
    """Effective number of draws with these log-weights (Kish)."""
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / np.square(weight).sum())


@dataclass(frozen=True, eq=False)
class Proposal:
    """A learnt mixture, the draws behind it, and how it was found."""

    mixture: Mixture
    record: Record
    exploration_log_evidence_nats: tuple[float, ...]  # what each exploration alone would have said
    efficiency: float  # effective draws per draw in the last round
    evaluations: int


def learn_proposal(target: Target, key: PRNGKeyArray, report: Report, threads: int = 1) -> Proposal:
    """A proposal for importance sampling, or for moves between modes."""
    target = target.coarsened()
    rng, mirror = generator(key), mirror_of(target)
    explored, evaluations = [], 0
    rounds = EXPLORATIONS * EXPLORING_ROUNDS + LEARNING_ROUNDS
    for number, k in enumerate(jax.random.split(key, EXPLORATIONS)):
        done = number * EXPLORING_ROUNDS
        report(Progress("exploring", done, rounds))
        mixture, spent = _climbed(target, target.thinned(number), k)
        evaluations += spent
        record = Record.empty(target.size)
        for turn in range(EXPLORING_ROUNDS):
            proposed = mixture if mirror is None else mirror.both_sides(mixture)
            _round(target, proposed, record, rng, threads, EXPLORING_ROUND)
            report(Progress("exploring", done + turn + 1, rounds))
            weights, power = record.tempered(min(LEAST_EFFECTIVE + GROWTH * turn, MOST_EFFECTIVE))
            mixture = _fitted(record, weights, None, rng)
            if power >= EXPLORED:
                break
        explored.append(record)
    alone = tuple(float(np.logaddexp.reduce(it.log_weight) - np.log(len(it.log_weight))) for it in explored)
    record = explored[0]
    for other in explored[1:]:
        record = record.merge(other)
    mixture, efficiency = learn_more(target, record, rng, report, threads)
    return Proposal(mixture, record, alone, efficiency, evaluations + len(record.vectors))


def learn_more(
    target: Target, record: Record, rng: np.random.Generator, report: Report, threads: int
) -> tuple[Mixture, float]:
    """A mixture fitted to a record, after rounds that make it efficient; the record takes their draws."""
    target = target.coarsened()
    best, efficiency, worse = None, 0.0, 0
    first = EXPLORATIONS * EXPLORING_ROUNDS
    for turn in range(LEARNING_ROUNDS):
        weights, power = record.tempered(MOST_EFFECTIVE)
        # While the weights have to be tempered, components are sought anew; then the last ones are refined.
        mixture = _fitted(record, weights, best if power == 1.0 else None, rng).flattened(FLATTENING)
        gained = _round(target, mixture, record, rng, threads, ROUND)
        worse = 0 if gained > efficiency else worse + 1
        if gained > efficiency or best is None:
            best = mixture
        efficiency = max(gained, efficiency) if power == 1.0 else gained
        report(Progress("learning", first + turn + 1, first + LEARNING_ROUNDS, {"efficiency": gained}))
        if power == 1.0 and (gained > GOOD_EFFICIENCY or worse >= 3):
            break
    assert best is not None
    return _fitted(record, record.tempered(MOST_EFFECTIVE)[0], best, rng).flattened(FLATTENING), efficiency


def _fitted(record: Record, weights: np.ndarray, start: Mixture | None, rng: np.random.Generator) -> Mixture:
    """A mixture fitted to the record's draws: to some thousand of them that matter, drawn by weight."""
    points = (np.arange(FITTED) + rng.random()) / FITTED
    chosen, times = np.unique(
        np.searchsorted(np.cumsum(weights), points).clip(max=len(weights) - 1), return_counts=True
    )
    vectors, share = record.vectors[chosen], times / FITTED
    return (start or seeded(vectors, share, COMPONENTS, rng)).refitted(vectors, share, LEAST_SHARE)


def _round(
    target: Target, mixture: Mixture, record: Record, rng: np.random.Generator, threads: int, count: int
) -> float:
    """Draw so many from a mixture into the record; effective draws per draw."""
    vectors = mixture.sample(count, rng)
    log_density = log_densities(target, vectors, threads=threads)
    record.add(mixture, vectors, log_density)
    return effective(log_density - mixture.log_density(vectors)) / count


def _climbed(target: Target, thinned: Target, key: PRNGKeyArray) -> tuple[Mixture, int]:
    """Where to begin: a component at the end of every useful climb, each as wide as all ends together."""
    starts = dispersed_starts(target, key, CLIMBS)
    possible = np.isfinite(log_densities(target, starts))
    climbed = climbs(thinned, starts[possible | ~possible.any()], CLIMB_ITERATIONS)
    ends = np.stack([end for end, *_ in climbed])
    heights = log_densities(target, ends)
    ends = ends[heights >= heights.max() - ENDS_KEPT_NATS]
    low, high = np.quantile(ends, [0.25, 0.75], axis=0)  # a few ends far away shall not widen all
    spread = np.maximum((high - low) / 1.35, SMALLEST_START)
    scales = np.tile(np.diag(spread**2), (len(ends), 1, 1))
    spent = len(starts) + len(climbed) + sum(evaluations for *_, evaluations in climbed)
    return Mixture.of(np.ones(len(ends)), ends, scales, DEGREES_OF_FREEDOM), spent
