"""The No-U-Turn sampler on the marginal posterior, with independence moves between modes.

Hamiltonian trajectories explore one mode; where a mixture over all modes is known (from importance sampling, say),
Metropolis moves that propose from it follow each trajectory, so that chains visit the modes in their proportions.
"""

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.draws import check_count, padded, spread_over
from foveate.inference.mixture import Mixture
from foveate.inference.samples import Progress, Report, Samples, silent
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target
from foveate.inference.transitions import (
    BLOCK,
    Chain,
    Record,
    Task,
    begun,
    block,
    drawing_task,
    state_at,
    warmed_up,
    warmup_task,
)
from foveate.precision import check_key, double_precision

# Below this, BlackJAX's schedule learns no mass matrix.
SHORTEST_WARMUP = 20

# Places that are tried as a chain's start before giving up on a finite density.
TRIALS = 100


@double_precision
def nuts(
    target: Target,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 500,
    draws: int = 1000,
    mixture: Mixture | None = None,
    starts: Float[np.ndarray, "chain number"] | None = None,
    report: Report = silent,
) -> Samples:
    """Draws of the posterior, by chains that run one after the other.

    `mixture` is the proposal of moves between modes; without one there are no such moves, and a chain stays in the
    mode that it finds first. Chains start at `starts` (on the real line), else spread over the mixture's components,
    else at draws from the prior with variances between those of a cell and of the picture.
    """
    check_key(key)
    _check(target, chains, warmup, draws, starts)
    proposal = None if mixture is None else padded(mixture)
    total = chains * (warmup + draws)
    tried, learning, kept = 0, [], []

    def run(chain: Chain, stage: str, before: int, task: Task) -> tuple[Chain, Record]:
        parts, count = [], int(task.active.sum())
        for first in range(0, count, BLOCK):
            chain, part = block(target, proposal, chain, _slice(task, first, first + BLOCK))
            parts.append(jax.tree.map(np.asarray, part))
            divergences = sum(int(one.diverging.sum()) for one in (*kept, *(parts if stage == "drawing" else ())))
            report(Progress(stage, before + min(first + BLOCK, count), total, {"divergences": divergences}))
        return chain, _slice(jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts), 0, count)

    for index, own in enumerate(jax.random.split(key, chains)):
        for_start, for_warmup, for_draws = jax.random.split(own, 3)
        state, trials = _first_state(target, mixture, None if starts is None else starts[index], for_start, index)
        tried += trials
        before = index * (warmup + draws)
        chain, learnt = run(begun(state, mixture), "warm-up", before, warmup_task(for_warmup, warmup))
        _, drawn = run(warmed_up(chain), "drawing", before + warmup, drawing_task(for_draws, draws))
        learning.append(learnt)
        kept.append(drawn)
    settings = {"chains": chains, "warmup": warmup, "draws": draws, "moves_between_modes": mixture is not None}
    return _samples(mixture, settings, tried, _stack(learning), _stack(kept))


def _check(
    target: Target, chains: int, warmup: int, draws: int, starts: Float[np.ndarray, "chain number"] | None
) -> None:
    check_count("chains", chains, 1)
    check_count("warmup", warmup, SHORTEST_WARMUP)
    check_count("draws", draws, 4)
    if target.size == 0:
        raise InputError(f"model {target.model.name!r} has no parameters: there is nothing to draw.")
    if starts is not None and np.shape(starts) != (chains, target.size):
        raise InputError(
            f"starts has shape {np.shape(starts)}: give a row of {target.size} numbers for each of {chains} chains."
        )


def _first_state(
    target: Target, mixture: Mixture | None, given: np.ndarray | None, key: PRNGKeyArray, index: int
) -> tuple[Any, int]:
    """The state in which the chain of this index starts, and how many places were tried."""
    for trial in range(TRIALS):
        if given is not None:
            place = np.asarray(given, dtype=np.float64)
        else:
            own = jax.random.fold_in(key, trial)
            place = (dispersed_starts(target, own, 1) if mixture is None else spread_over(mixture, own, index + 1))[-1]
        state = state_at(target, place)
        if np.isfinite(state.logdensity) and np.isfinite(state.logdensity_grad).all():
            return state, trial + 1
        if given is not None:
            raise InputError(f"chain {index}: the posterior density is not finite at its start {place.tolist()}.")
    raise InputError(f"chain {index}: no start with a finite posterior density in {TRIALS} trials; give starts.")


def _slice(steps: Any, first: int, last: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[first:last], steps)


def _stack(records: list[Record]) -> Record:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *records)


def _samples(mixture: Mixture | None, settings: dict[str, Any], tried: int, learning: Record, kept: Record) -> Samples:
    names = ["lp", "diverging", "acceptance_rate", "energy", "tree_depth", "n_steps", "step_size"]
    warmup_evaluations = tried + int(learning.n_steps.sum() + learning.proposals.sum())
    facts: dict[str, Any] = {
        "step_size": kept.step_size[:, 0].tolist(),
        "warmup_evaluations": warmup_evaluations,
        "warmup_divergences": int(learning.diverging.sum()),
    }
    if mixture is not None:
        names += ["independence_acceptance", "independence_accepted"]
        facts["independence_accepted"] = float(kept.independence_accepted.mean())
        facts["independence_switched"] = float(_switched(mixture, kept).mean())
    return Samples(
        real=kept.real,
        sampler="nuts",
        settings=settings,
        statistics={name: getattr(kept, name).astype(np.float64) for name in names},
        evaluations=warmup_evaluations + int(kept.n_steps.sum() + kept.proposals.sum()),
        facts=facts,
    )


def _switched(mixture: Mixture, kept: Record) -> Bool[np.ndarray, "chain draw"]:
    """Whether the independence moves led to where another component is the most probable one."""

    def component(real: np.ndarray) -> np.ndarray:
        terms = mixture.component_log_densities(real.reshape(-1, real.shape[-1])) + np.log(mixture.share)
        return terms.argmax(axis=1).reshape(real.shape[:-1])

    return component(kept.landed) != component(kept.real)
