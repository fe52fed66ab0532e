"""The paper's Gibbs sampler: Pólya-Gamma variables for the choice, Hamiltonian moves for epsilon and xi.

A sweep draws gamma, then omega, b and s0 (or rho), then moves epsilon and xi, each given the others. Given gamma a
saccade of the global policy forbids every epsilon whose repulsion would cover it, so the chain crawls in epsilon:
importance sampling and NUTS, which sum gamma out, are faster; this one is the paper's.
"""

from typing import Any, get_args

import jax
import numpy as np
from blackjax.adaptation.staged_adaptation import build_schedule
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.draws import check_count
from foveate.inference.gibbs_sweep import Record, begin, sweeps
from foveate.inference.hmc_within_gibbs import (
    MOST_STEPS,
    PAPER_STEP_SIZES,
    PAPER_STEPS,
    TARGET_ACCEPTANCE,
    Scheme,
    Stage,
    Tuning,
)
from foveate.inference.samples import Progress, Report, Samples, silent
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target
from foveate.model.choices import FixedChoice, SaliencyLevelChoice, SaliencyRatioChoice
from foveate.model.model import Model
from foveate.model.policies import Global, Local, PrintedRepelledGlobal, RepelledGlobal
from foveate.model.priors import Beta, Normal, PositivePrior
from foveate.precision import check_key, double_precision

BLOCK = 50  # sweeps in one call of the compiled function: about a second's worth on an observer's data

FEWEST_WARMUP = 20  # sweeps: with fewer the adapted scheme learns no mass matrix

# Hamiltonian moves of each scheme, as they are told with the draws.
MOVES: dict[str, dict[str, Any]] = {
    "adapted": {"target_acceptance": TARGET_ACCEPTANCE, "most_leapfrog_steps": MOST_STEPS},
    "paper": {"leapfrog_steps": PAPER_STEPS, "step_sizes_px2": list(PAPER_STEP_SIZES)},
}


@double_precision
def gibbs(
    target: Target,
    key: PRNGKeyArray,
    *,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    scheme: Scheme = "adapted",
    starts: Float[np.ndarray, "chain number"] | None = None,
    report: Report = silent,
) -> Samples:
    """Draws of the posterior from chains that run one after the other; every `thin`-th sweep is kept.

    With the scheme "adapted" the logarithms of epsilon and xi move together, with a step size and a mass matrix that
    are learnt during the warm-up; with "paper" epsilon and xi move one after the other in px^2, as published. Chains
    begin at `starts` (on the real line), else at draws from the prior with variances between those of a cell and of the
    picture. The statistic `lp` is the log posterior density on the real line, gamma summed out, up to the evidence.
    """
    check_key(key)
    check_composition(target.model)
    _check_settings(scheme, chains=(chains, 1), warmup=(warmup, 0), draws=(draws, 1), thin=(thin, 1))
    for_starts, for_chains = jax.random.split(key)
    if starts is None:
        starts = dispersed_starts(target, for_starts, chains)
    starts = _checked_starts(target, starts, chains)
    told = _Telling(report, chains, warmup, draws * thin)
    found = [
        _run(target, own, start, scheme, told, index)
        for index, (own, start) in enumerate(zip(jax.random.split(for_chains, chains), starts, strict=True))
    ]
    whole = jax.tree.map(lambda *parts: np.stack(parts), *(record for record, _ in found))
    kept = jax.tree.map(lambda it: it[:, warmup + thin - 1 :: thin], whole)
    statistics = kept._asdict()
    del statistics["real"], statistics["evaluations"]
    settings = {"chains": chains, "warmup": warmup, "draws": draws, "thin": thin, "scheme": scheme}
    return Samples(
        kept.real,
        "gibbs",
        settings | MOVES[scheme],
        {name: value.astype(np.float64) for name, value in statistics.items()},
        int(whole.evaluations.sum()),
        facts=_learnt([tuning for _, tuning in found]) if scheme == "adapted" else {},
    )


class _Telling:
    """Tells how far the chains have come."""

    def __init__(self, report: Report, chains: int, warmup: int, drawing: int):
        self.report, self.chains, self.warmup, self.drawing = report, chains, warmup, drawing
        self.diverging, self.acceptance = 0, 0.0

    def __call__(self, chain: int, done: int, block: Record) -> None:
        sweeps = self.warmup + self.drawing
        self.diverging += int(block.diverging.sum())
        self.report(
            Progress(
                "warm-up" if done <= self.warmup else "drawing",
                chain * sweeps + min(done, sweeps),
                self.chains * sweeps,
                {"divergences": self.diverging, "acceptance_rate": float(block.acceptance_rate.mean())},
            )
        )


def _run(
    target: Target, key: PRNGKeyArray, start: Float[np.ndarray, " number"], scheme: Scheme, told: _Telling, chain: int
) -> tuple[Record, Tuning]:
    """All sweeps of one chain, in blocks of one size; those of the last block that nobody asked for are dropped."""
    asked = told.warmup + told.drawing
    stages, state, blocks = _stages(scheme, told.warmup, asked), begin(target, start), []
    for first in range(0, len(stages.looks), BLOCK):
        stage = Stage(*(part[first : first + BLOCK] for part in stages))
        state, block = sweeps(target, key, state, stage, np.asarray(first), scheme)
        blocks.append(jax.tree.map(np.asarray, block))
        if not np.isfinite(blocks[0].lp[0]):
            raise InputError(f"chain {chain} starts where the posterior density is not finite; give it another start.")
        told(chain, first + BLOCK - 1, blocks[-1])
    return jax.tree.map(lambda *parts: np.concatenate(parts)[1 : asked + 1], *blocks), state.tuning


def _stages(scheme: Scheme, warmup: int, asked: int) -> Stage:
    """What every sweep does, for whole blocks: the first looks, then windows as in Stan's warm-up, then no learning."""
    whole = -(-(asked + 1) // BLOCK) * BLOCK
    looks, step_size, mass, mass_ends = np.zeros((4, whole), dtype=bool)
    looks[0] = True
    if scheme == "adapted":
        step_size[1 : warmup + 1] = True
        mass[1 : warmup + 1], mass_ends[1 : warmup + 1] = np.asarray(build_schedule(warmup)).T
    return Stage(looks, step_size, mass, mass_ends)


def _learnt(tunings: list[Tuning]) -> dict[str, Any]:
    return {
        "step_size": [float(tuning.step_size) for tuning in tunings],
        "inverse_mass": [np.asarray(tuning.inverse_mass).tolist() for tuning in tunings],
    }


# --- what can be sampled so ----------------------------------------------------------------------------------------


def check_composition(model: Model) -> None:
    """Refuse models whose conditionals are not those of the paper."""
    globals_ = (Global, RepelledGlobal, PrintedRepelledGlobal)
    choices = (SaliencyRatioChoice, SaliencyLevelChoice, FixedChoice)
    local, other = (*model.policies, None, None)[:2]
    two = len(model.policies) == 2 and isinstance(local, Local) and isinstance(other, globals_)
    if not two or not isinstance(model.choice, choices) or model.durations is not None:
        raise InputError(
            f"model {model.name!r}: Gibbs sampling knows the conditionals of 'full', 'local_choice' and "
            "'fixed_choice' alone, without durations; NUTS and importance sampling fit any model."
        )
    needed = {"epsilon": PositivePrior, "xi": PositivePrior, "b": Normal, "s0": Normal, "rho": Beta}
    words = {PositivePrior: "one over positive numbers", Normal: "Normal", Beta: "Beta"}
    for name, prior in model.priors.items():
        if not isinstance(prior, needed[name]):
            raise InputError(
                f"model {model.name!r}: for Gibbs sampling the prior of {name} must be {words[needed[name]]}, and it "
                f"is {type(prior).__name__}; NUTS and importance sampling take any prior."
            )


def _check_settings(scheme: str, **counts: tuple[Any, int]) -> None:
    if scheme not in get_args(Scheme):
        raise InputError(f"scheme = {scheme!r}: there are 'adapted' and 'paper'.")
    if scheme == "adapted":
        counts["warmup"] = counts["warmup"][0], FEWEST_WARMUP
    for name, (count, least) in counts.items():
        check_count(name, count, least)


def _checked_starts(target: Target, starts: Any, chains: int) -> Float[np.ndarray, "chain number"]:
    vectors = np.asarray(starts, dtype=np.float64)
    if vectors.shape != (chains, target.size):
        raise InputError(
            f"starts have shape {vectors.shape}: give one vector of {target.size} numbers on the real line for each of "
            f"{chains} chains, as Model.to_real() gives them."
        )
    if not np.isfinite(vectors).all():
        raise InputError(f"starts of chain {int(np.argwhere(~np.isfinite(vectors))[0][0])}: numbers must be finite.")
    return vectors
