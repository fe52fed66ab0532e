"""Many targets of one model side by side: their plans' questions are answered in batches, as a GPU likes them.

Targets are those of different observers or folds; their steps are packed to one size. A row of a batch is one target
with some vectors, since what only depends on the target is worked out once for them. Batches are cut so that they fit
into a share of the machine's memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from foveate.compiled import compiled_for_speed
from foveate.data.dataset import Dataset
from foveate.inference.plans import Answer, Ask, Plan
from foveate.inference.target import Target, bytes_each
from foveate.model.history import Array
from foveate.model.model import Model
from foveate.model.packing import packed_size
from foveate.model.steps import Steps
from foveate.precision import double_precision

# Vectors in a row of a batch, by whether slopes are asked for, and rows of a batch, of which the largest that fit are
# taken: each is compiled for itself.
PER_ROW = {False: 16, True: 4}
ROWS = (128, 16, 2)

MEMORY_SHARE = 0.125  # of the machine's, that a batch may take
UNKNOWN_MEMORY = 4 * 2**30  # bytes, where a machine does not say


class Stack(eqx.Module):
    """Targets of one model whose arrays have one shape."""

    model: Model
    steps: Steps  # with a leading axis over targets
    times: Float[Array, " target"]
    rows: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def of(cls, targets: Sequence[Target]) -> "Stack":
        """These targets, which `targets_of_one_size` makes alike."""
        most = int(MEMORY_SHARE * _memory() / (bytes_each(targets[0].steps) * max(PER_ROW.values())))
        rows = tuple(it for it in ROWS if it <= max(most, min(ROWS)))
        with jax.enable_x64(True):  # as JAX's arrays, so that no call has to copy them
            steps, times = jax.tree.map(lambda *leaves: jnp.stack(leaves), *((it.steps, it.times) for it in targets))
            return cls(targets[0].model, steps, times, rows)

    @double_precision
    def ask(self, questions: Mapping[int, Ask]) -> Callable[[], dict[int, Answer]]:
        """Begin to work out the answers to questions, by the place of their target; what is returned waits for them."""
        waiting = [self._begun({index: it for index, it in questions.items() if it.slopes == slopes}, slopes)
                   for slopes in (False, True)]  # fmt: skip

        def answers() -> dict[int, Answer]:
            return {index: answer for wait in waiting for index, answer in wait().items()}

        return answers

    def _begun(self, questions: Mapping[int, Ask], slopes: bool) -> Callable[[], dict[int, Answer]]:
        size = PER_ROW[slopes]
        which: list[int] = []
        vectors: list[np.ndarray] = []
        for index, ask in questions.items():
            whole = np.concatenate([ask.vectors, ask.vectors[-1:].repeat(-len(ask.vectors) % size, axis=0)])
            which += [index] * (len(whole) // size)
            vectors.append(whole.reshape(-1, size, whole.shape[1]))
        if not which:
            return dict
        begun = self._batches(np.array(which), np.concatenate(vectors), slopes)

        def answers() -> dict[int, Answer]:
            values, gradients = _joined(begun, size)
            found, at = {}, 0
            for index, ask in questions.items():
                some = slice(at, at + len(ask.vectors))
                value = values[some]
                found[index] = Answer(np.where(np.isfinite(value), value, -np.inf), gradients[some])
                at += -(-len(ask.vectors) // size) * size
            return found

        return answers

    def _batches(
        self, which: Int[np.ndarray, " row"], vectors: Float[np.ndarray, "row set number"], slopes: bool
    ) -> list[tuple[Any, int]]:
        """Results of batches that are being worked out, with how many of their rows count."""
        begun, at = [], 0
        while at < len(which):
            left = len(which) - at
            rows = next((it for it in self.rows if it <= left), self.rows[-1])
            # One larger batch that is not full costs less than many small ones.
            larger = [it for it in self.rows if it >= left]
            rows = min(larger) if larger and min(larger) <= 2 * left else rows
            count = min(rows, left)
            place = np.minimum(np.arange(at, at + rows), len(which) - 1)
            begun.append((_of_rows(slopes, self, which[place], vectors[place]), count))
            at += count
        return begun


def _joined(begun: list[tuple[Any, int]], size: int) -> tuple[np.ndarray, np.ndarray]:
    """(values, gradients) of all rows that count, one vector after another."""
    values = np.concatenate([np.asarray(found[0])[:count] for found, count in begun])
    gradients = np.concatenate([np.asarray(found[1])[:count] for found, count in begun])
    return values.reshape(len(values) * size), gradients.reshape(len(values) * size, -1)


@compiled_for_speed
def _of_rows(
    slopes: bool, stack: Stack, which: Int[Array, " row"], vectors: Float[Array, "row set number"]
) -> tuple[Array, Array]:
    """Log posterior densities of every row's vectors, and their gradients (without numbers if not asked for)."""

    def of_row(index: Array, some: Array) -> tuple[Array, Array]:
        steps, times = jax.tree.map(lambda leaf: leaf[index], (stack.steps, stack.times))
        density = Target(stack.model, steps, times).log_density
        if slopes:
            return jax.vmap(jax.value_and_grad(density))(some)
        return jax.vmap(density)(some), jnp.zeros((len(some), 0))

    return jax.vmap(of_row)(which, vectors)


def _memory() -> int:
    """Bytes that the machine's accelerator has for us."""
    stats = jax.devices()[0].memory_stats() or {}
    return int(stats.get("bytes_limit", UNKNOWN_MEMORY))


def targets_of_one_size(model: Model, each: Sequence[Dataset]) -> list[Target]:
    """The targets of several observers' data, packed to the size of the largest."""
    steps = [Steps.of(data, memory=model.memory, short="skip") for data in each]
    sizes = np.array([packed_size(it) for it in steps])
    size = (int(sizes[:, 0].max()), int(sizes[:, 1].max()))
    return [Target.of_steps(model, it, size) for it in steps]


def together(plans: Sequence[Plan[Any]], stack: Stack) -> Iterator[tuple[int, Any]]:
    """What each plan comes to, by its place, as soon as it is there; plan i's questions are about the stack's target i.

    Plans are in two halves: while one half's questions are answered, the other half's answers are thought about.
    """
    asked: list[dict[int, Ask]] = [{}, {}]
    waiting: list[Callable[[], dict[int, Answer]]] = [dict, dict]

    def go_on(index: int, answer: Answer | None) -> list[tuple[int, Any]]:
        half = asked[index % 2]
        try:
            with jax.enable_x64(True):
                half[index] = next(plans[index]) if answer is None else plans[index].send(answer)
        except StopIteration as done:
            half.pop(index, None)
            return [(index, done.value)]
        return []

    for index in range(len(plans)):
        yield from go_on(index, None)
    waiting = [stack.ask(half) for half in asked]
    while any(asked):
        for place, half in enumerate(asked):
            for index, answer in waiting[place]().items():
                yield from go_on(index, answer)
            waiting[place] = stack.ask(half)
