"""Samplers that ask for densities instead of working them out: so that one may be carried out alone, or many together.

A plan is a generator. It yields an `Ask`, vectors at which it wants to know a target's log posterior density, and is
sent an `Answer`; what it returns is its result. `alone` answers one plan on its own target. Plans of many targets that
are answered side by side (`inference/stack.py`) are what a GPU is good at: it works on all their vectors at once, and
no plan knows of the others.
"""

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float

from foveate.inference.climb import values_and_gradients
from foveate.inference.target import Target, log_densities

T = TypeVar("T")


class Ask(NamedTuple):
    """A question: log posterior densities at some vectors, with their gradients if `slopes`.

    With `rough` those of a cheaper density much like the target's will do (`Target.coarsened`).
    """

    vectors: Float[np.ndarray, "set number"]
    slopes: bool = False
    rough: bool = False


class Answer(NamedTuple):
    """Log posterior densities, minus infinity where double precision ends, and their gradients if asked for."""

    values: Float[np.ndarray, " set"]
    slopes: Float[np.ndarray, "set number"]


Plan = Generator[Ask, Answer, T]


def alone(plan: Plan[T], target: Target, *, threads: int = 1) -> T:
    """What a plan comes to, its questions answered by its target."""
    rough: Target | None = None
    try:
        asked = next(plan)
        while True:
            if asked.rough and rough is None:
                rough = target.coarsened()
            of = rough if asked.rough and rough is not None else target
            asked = plan.send(_answer(of, asked, threads))
    except StopIteration as done:
        return done.value


def _answer(target: Target, asked: Ask, threads: int) -> Answer:
    if asked.slopes:
        return Answer(*values_and_gradients(target, asked.vectors))
    return Answer(log_densities(target, asked.vectors, threads=threads), np.zeros((0, asked.vectors.shape[1])))


def side_by_side(plans: Sequence[Plan[T]]) -> Plan[list[T]]:
    """Several plans of one target as one: their questions are asked together. All are of one kind (slopes, rough)."""
    results: list[T | None] = [None] * len(plans)
    asked: dict[int, Ask] = {}

    def go_on(index: int, answer: Answer | None) -> None:
        try:
            asked[index] = next(plans[index]) if answer is None else plans[index].send(answer)
        except StopIteration as done:
            asked.pop(index, None)
            results[index] = done.value

    for index in range(len(plans)):
        go_on(index, None)
    while asked:
        each = list(asked.items())
        ends = np.cumsum([len(ask.vectors) for _, ask in each])[:-1]
        kind = each[0][1]
        answer = yield Ask(np.concatenate([ask.vectors for _, ask in each]), kind.slopes, kind.rough)
        slopes = np.split(answer.slopes, ends if kind.slopes else ends * 0)
        parts = zip(np.split(answer.values, ends), slopes, strict=True)
        for (index, _), part in zip(each, parts, strict=True):
            go_on(index, Answer(*part))
    return [result for result in results if result is not None]
