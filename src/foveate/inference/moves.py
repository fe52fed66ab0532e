"""Hamiltonian moves in a known metric: chains that start inside the posterior and know its shape need few of them.

Where all directions are measured in their own standard deviations, four to seven leaps of half of one lead far enough
for the next draw to have forgotten the last. Between them, one of a few places that a mixture over all known modes
proposes may be taken instead of the present one, by their weights: that is how chains change modes. One place alone
would rarely be taken where there are dozens of numbers.

A cheaper density much like the target (`Target.coarsened`) says where trajectories go and which proposal is picked; the
target itself then says whether the place is taken. That costs some acceptance, and nothing of what is exact: leaps
may follow any force, and a move that leaves one density as it is may propose for another (delayed acceptance; Christen
and Fox, 2005). It must not be zero where the target is not, though; every few trajectories follow the target itself, in
case it is, or nearly so.

Chains are plans (`plans.py`): they ask for densities and gradients, and whoever carries them out answers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from foveate.inference.mixture import Mixture
from foveate.inference.plans import Ask, Plan
from foveate.inference.samples import Progress, Report

# Leaps of a trajectory, one of these after another: a fixed number may come back to where it started. The order is the
# same for all chains, so that those that are carried out together have as many.
LEAPS, LEAPS_STRIDE = (4, 5, 6, 7), 3
JITTER = 0.2  # of the step, for the same reason
ACCEPTANCE, LEARNING = 0.8, 1.0  # wanted; how fast the step follows, less with every move
DIVERGENCE = 1000.0  # nats of energy lost or gained on a trajectory
JUMP_EVERY = 1  # trajectories: a choice among proposals of the mixture
PROPOSALS = 8  # in each: values alone, side by side, cost less than a trajectory, which is a gradient after another
EXACT_EVERY = 8  # trajectories: one that follows the target
BLOCK = 50  # moves between two looks at whether there are enough

# Long warm-ups learn the metric from what chains have seen since the last of these moves. Curvature at a top may take a
# posterior's width in some directions for a third of what it is.
LEARNT_AFTER = (30, 70, 150)
HELD = 0.4  # effective draws for each draw, about: they count against the curvature as far as there are many


@dataclass(frozen=True, eq=False)
class Moved:
    """Draws of chains that ran side by side, with their log-densities and acceptance rates."""

    real: Float[np.ndarray, "chain draw number"]
    log_density: Float[np.ndarray, "chain draw"]
    acceptance: Float[np.ndarray, "chain draw"]
    diverging: Float[np.ndarray, "chain draw"]  # 1 where a trajectory went where the density is not finite, or far off
    step: float
    jumped: float  # share of the choices among proposals that led somewhere else
    evaluations: int


def move(
    starts: Float[np.ndarray, "chain number"],
    mixture: Mixture,
    rng: np.random.Generator,
    *,
    warmup: int,
    draws: int,
    report: Report,
    enough: Callable[[Float[np.ndarray, "chain draw number"]], bool] = lambda real: False,
) -> Plan[Moved]:
    """Chains from `starts` by Hamiltonian moves in the metric of the mixture's largest component.

    The first `warmup` moves find the step and, where there are many, the metric; they are forgotten. There are `draws`
    more, or fewer where those so far are `enough`.
    """
    given, factor = mixture, _largest(mixture)
    place = np.array(starts, dtype=np.float64)
    value = (yield Ask(place)).values
    rough, slope = yield Ask(place, slopes=True, rough=True)
    first_step = np.log(1.2 * place.shape[1] ** -0.25)
    log_step, since, evaluations, seen, kept = first_step, 0, len(place), [], []
    jumps = proposals = 0
    for turn in range(warmup + draws):
        if turn in LEARNT_AFTER and turn < warmup:
            if turn > LEARNT_AFTER[0]:
                met = np.concatenate(seen)
                mixture = given.leaning_to(met, np.ones(len(met)), HELD)
                factor = _largest(mixture)
            log_step, since, seen = first_step, turn, []
        step = np.exp(log_step) * rng.uniform(1 - JITTER, 1 + JITTER)
        leaps = LEAPS[turn * LEAPS_STRIDE % len(LEAPS)]
        speed = rng.standard_normal(place.shape)
        energy = value - 0.5 * np.square(speed).sum(axis=1)
        led_by_rough = turn % EXACT_EVERY != EXACT_EVERY - 1
        there, reached = place, value
        there_slope = slope if led_by_rough else (yield Ask(place, slopes=True)).slopes
        for _ in range(leaps):
            speed = speed + 0.5 * step * there_slope @ factor
            there = there + step * speed @ factor.T
            reached, there_slope = yield Ask(there, slopes=True, rough=led_by_rough)
            speed = speed + 0.5 * step * there_slope @ factor
        if led_by_rough:
            there_rough, there_value = reached, (yield Ask(there)).values
        else:
            there_value, (there_rough, there_slope) = reached, (yield Ask(there, slopes=True, rough=True))
        slower = 0.5 * np.square(speed).sum(axis=1)
        gained = there_value - slower - energy
        led = gained if not led_by_rough else there_rough - slower - (energy - value + rough)
        acceptance, diverging = _chance(gained), ~(np.abs(gained) < DIVERGENCE)
        new, old = (there, there_value, there_rough, there_slope), (place, value, rough, slope)
        place, value, rough, slope = _taken(rng, acceptance, new, old)
        evaluations += (leaps + (1 if led_by_rough else 2)) * len(place)
        if turn % JUMP_EVERY == 0:
            place, value, rough, jumped = yield from _jump(mixture, rng, place, value, rough)
            if jumped.any():
                slope[jumped] = (yield Ask(place[jumped], slopes=True, rough=True)).slopes
            jumps, proposals = jumps + int(jumped.sum()), proposals + len(place)
            evaluations += len(place) * PROPOSALS + 2 * int(jumped.sum())
        if turn < warmup:
            # By what leads, not by the target: no step is so small that the two would agree.
            log_step += LEARNING * (_chance(led).mean() - ACCEPTANCE) / np.sqrt(turn - since + 1)
            seen.append(place)
        else:
            kept.append((place, value, acceptance, diverging.astype(np.float64)))
        report(Progress("moving", turn + 1, warmup + draws, {"acceptance": float(acceptance.mean())}))
        if kept and len(kept) % BLOCK == 0 and enough(np.stack([it[0] for it in kept], axis=1)):
            break
    real, log_density, rates, diverged = (np.stack(part, axis=1) for part in zip(*kept, strict=True))
    return Moved(real, log_density, rates, diverged, float(np.exp(log_step)), jumps / proposals, evaluations)


def _largest(mixture: Mixture) -> Float[np.ndarray, "number number"]:
    """The factor of the scale of the component with the largest share."""
    return np.asarray(mixture.factor[int(np.argmax(mixture.share))])


def _chance(gained: Float[np.ndarray, " chain"]) -> Float[np.ndarray, " chain"]:
    """The probability of accepting a change of the log-density by so much."""
    return np.exp(np.minimum(np.where(np.isnan(gained), -np.inf, gained), 0.0))


def _taken(rng: np.random.Generator, chance: np.ndarray, new: tuple, old: tuple) -> tuple:
    """For each chain the new place, value and slope with this probability, else the old ones."""
    return _where(rng.random(len(chance)) < chance, new, old)


def _where(taken: np.ndarray, new: tuple, old: tuple) -> tuple:
    return tuple(np.where(taken.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(new, old, strict=True))


def _jump(
    mixture: Mixture, rng: np.random.Generator, place: np.ndarray, value: np.ndarray, rough: np.ndarray
) -> Plan[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Some proposals of the mixture to each chain: places, values, rough values, and which chains took one.

    Of the present place and the proposals one is picked by its importance weight, rough density over proposal density,
    which leaves the rough density as it is (iterated sampling and importance resampling; Andrieu, Lee and Vihola,
    2018); the target takes it or leaves it.
    """
    chains = len(place)
    proposed = mixture.independent(chains * PROPOSALS, rng)
    found, log_proposal = (yield Ask(proposed, rough=True)).values, mixture.log_density(proposed)
    log_weight = np.column_stack([rough - mixture.log_density(place), (found - log_proposal).reshape(chains, -1)])
    picked = np.argmax(log_weight + rng.gumbel(size=log_weight.shape), axis=1)
    asked, mine = np.flatnonzero(picked > 0), np.arange(chains)
    new_place, new_rough, new_value = place.copy(), rough.copy(), value.copy()
    if len(asked):
        chosen = mine[asked] * PROPOSALS + picked[asked] - 1
        new_place[asked], new_rough[asked] = proposed[chosen], found[chosen]
        new_value[asked] = (yield Ask(new_place[asked])).values
    taken = rng.random(chains) < _chance((new_value - new_rough) - (value - rough))
    lost = np.isneginf(value) & np.isfinite(new_value)  # where the target has no mass: any way out is right
    moved = (taken | lost) & (picked > 0)
    kept = _where(moved, (new_place, new_value, new_rough), (place, value, rough))
    return *kept, moved
