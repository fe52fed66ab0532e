"""The iterations of a hierarchical fit, from the first of the warm-up to the last draw, with places to go on from.

Randomness of an iteration comes from the key and the iteration's number alone: a run that was stopped and went on from
a checkpoint gives the same numbers as one that was not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from foveate.errors import InputError
from foveate.inference.hierarchy import Sampler, State
from foveate.inference.hierarchy_tuning import Averaging, Tuning

BLOCK = 10  # iterations between checkpoints

# What is kept of every draw, with the chain as first axis.
KEPT = ("mean", "log_spread", "theta", "lp", "acceptance", "population_acceptance", "diverging", "population_diverging")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Chains after so many iterations, with all draws so far."""

    done: int  # iterations, warm-up and draws together
    state: State
    tuning: Tuning
    draws: Mapping[str, Float[np.ndarray, "chain draw ..."]]  # by the names in KEPT

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it as arrays by name, for a file."""
        tuning = self.tuning
        found = {f"state_{name}": value for name, value in self.state._asdict().items()}
        for part in ("observers", "population"):
            found |= {f"{part}_{name}": np.asarray(it) for name, it in getattr(tuning, part)._asdict().items()}
        found |= {"scale": tuning.scale, "root": tuning.root, "leaps": np.array(tuning.leaps)}
        if tuning.seen:
            found["seen"] = np.stack(tuning.seen)
        return found | {f"draws_{name}": it for name, it in self.draws.items()} | {"done": np.array(self.done)}

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> "Checkpoint":
        """The one that `arrays` wrote down."""

        def averaging(part: str) -> Averaging:
            held = [np.asarray(arrays[f"{part}_{name}"]) for name in Averaging._fields]
            return Averaging(held[0], held[1], held[2], held[3], int(held[4]))

        tuning = Tuning(
            averaging("observers"),
            averaging("population"),
            arrays["scale"],
            arrays["root"],
            (int(arrays["leaps"][0]), int(arrays["leaps"][1])),
            tuple(arrays["seen"]) if "seen" in arrays else (),
        )
        state = State(*(arrays[f"state_{name}"] for name in State._fields))
        draws = {name: arrays[f"draws_{name}"] for name in KEPT if f"draws_{name}" in arrays}
        return cls(int(arrays["done"]), state, tuning, draws)


def checkpoints(
    sampler: Sampler, words: list[int], *, chains: int, warmup: int, draws: int, start: Checkpoint | None = None
) -> Iterator[Checkpoint]:
    """A checkpoint every few iterations, and after the last; `words` are the key's.

    In the warm-up step sizes are learnt in three windows; at the end of the first two, shapes are.
    """
    ends = {warmup // 4, warmup // 2}
    if start is None:
        first = np.random.default_rng([*words, 0])
        start = Checkpoint(0, sampler.begun(chains, first), Tuning.begun(sampler.population), {})
        if not np.isfinite(start.state.value).all():
            raise InputError("an observer's likelihood is not finite where the chains begin; give more starts.")
    done, state, tuning, kept = start.done, start.state, start.tuning, dict(start.draws)
    while done < warmup + draws:
        fresh: list[dict[str, np.ndarray]] = []
        for _ in range(min(BLOCK, warmup + draws - done)):
            state, moved = sampler.iteration(state, tuning, np.random.default_rng([*words, done + 1]))
            done += 1
            if done <= warmup:
                where = sampler.whitened(state, tuning)
                tuning = tuning.taught(moved.observers, moved.population, where, done in ends)
                tuning = tuning.settled() if done == warmup else tuning
            else:
                found = (state.mean, state.log_spread, state.theta, sampler.log_density(state), *moved)
                fresh.append(dict(zip(KEPT, found, strict=True)))
        if fresh:
            new = {name: np.stack([it[name] for it in fresh], axis=1) for name in KEPT}
            kept = {name: np.concatenate([kept[name], it], axis=1) if kept else it for name, it in new.items()}
        yield Checkpoint(done, state, tuning, kept)
