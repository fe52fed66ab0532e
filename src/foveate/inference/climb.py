"""Climbs: from a start to a nearby top of the posterior density on the real line."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from foveate.compiled import compiled_for_speed
from foveate.inference.target import GROUP, Target
from foveate.model.history import Array
from foveate.precision import double_precision

# A climb stays within these on the real line (standard deviations from e^-9 to e^9 degrees): far outside any data.
FURTHEST = 18.0

# What is climbed, at a vector, as its negative with the gradient of that.
Answer = tuple[float, np.ndarray]

STEEP = 1.0  # nats: a climb that stops at once where it is steeper than this has not begun

MOST_ITERATIONS = 15_000  # where nobody asks for fewer: no climb of ours takes nearly as many


@compiled_for_speed
def value_and_gradient(target: Target, vector: Float[Array, " number"]) -> tuple[Array, Array]:
    """Log posterior density of a vector and its gradient."""
    return jax.value_and_grad(target.log_density)(vector)


@double_precision
def climb(
    target: Target,
    start: Float[np.ndarray, " number"],
    most: int,
    unit: Float[np.ndarray, " number"] | None = None,
) -> tuple[np.ndarray, float, int]:
    """The highest vector met from `start` in at most so many iterations, its log-density, and the evaluations spent.

    `unit` has the length of an ordinary step in every number, where they differ much.
    """

    def downhill(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = value_and_gradient(target, vector)
        return -float(value), -np.asarray(slope)

    return climb_against(downhill, start, most, unit)


def climbs(
    target: Target,
    starts: Float[np.ndarray, "start number"],
    most: int,
    unit: Float[np.ndarray, " number"] | None = None,
) -> list[tuple[np.ndarray, float, int]]:
    """`climb` from every start: one after another, or side by side where evaluations are cheaper in batches."""
    if not target.steps.batched:
        return [climb(target, start, most, unit) for start in starts]
    meeting = _Meeting(len(starts), -(-len(starts) // GROUP) * GROUP, partial(_values_and_gradients, target))

    def one(start: np.ndarray) -> tuple[np.ndarray, float, int]:
        try:
            return climb_against(meeting.ask, start, most, unit)
        finally:
            meeting.leave()

    with ThreadPoolExecutor(len(starts)) as pool:
        return list(pool.map(one, starts))


@double_precision
def values_and_gradients(
    target: Target, vectors: Float[np.ndarray, "set number"]
) -> tuple[Float[np.ndarray, " set"], Float[np.ndarray, "set number"]]:
    """Log posterior densities and gradients of some vectors, by what climbs have compiled already."""
    if target.steps.batched:
        whole = np.concatenate([vectors, vectors[-1:].repeat(-len(vectors) % GROUP, axis=0)])
        groups = [_side_by_side(target, whole[at : at + GROUP]) for at in range(0, len(whole), GROUP)]
        values, slopes = (np.concatenate([np.asarray(it) for it in part]) for part in zip(*groups, strict=True))
        return values[: len(vectors)], slopes[: len(vectors)]
    found = [value_and_gradient(target, vector) for vector in vectors]
    return np.array([float(value) for value, _ in found]), np.stack([np.asarray(slope) for _, slope in found])


@double_precision
def _values_and_gradients(target: Target, vectors: np.ndarray) -> list[Answer]:
    values, slopes = jax.tree.map(np.asarray, _side_by_side(target, vectors))
    return [(-float(value), -slope) for value, slope in zip(values, slopes, strict=True)]


@compiled_for_speed
def _side_by_side(target: Target, vectors: Float[Array, "set number"]) -> tuple[Array, Array]:
    return jax.vmap(jax.value_and_grad(target.log_density))(vectors)


class _Meeting:
    """Questions of several threads, answered all at once: as soon as each thread that has not left has asked.

    There are always `size` questions, so that what answers them is compiled once: the last one is repeated.
    """

    def __init__(self, threads: int, size: int, answer: Callable[[np.ndarray], list[Answer]]):
        self.present, self.size, self.answer = threads, size, answer
        self.changed = threading.Condition()
        self.asked: dict[int, np.ndarray] = {}
        self.answered: dict[int, Answer | BaseException] = {}

    def ask(self, question: np.ndarray) -> Answer:
        """The answer to a question, once all have asked; an error of the one who answers is everybody's."""
        who = threading.get_ident()
        with self.changed:
            self.asked[who] = question
            self._answer_if_all_have_asked()
            self.changed.wait_for(lambda: who in self.answered)
            answer = self.answered.pop(who)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def leave(self) -> None:
        """The others need not wait any more."""
        with self.changed:
            self.present -= 1
            self._answer_if_all_have_asked()

    def _answer_if_all_have_asked(self) -> None:
        if not self.asked or len(self.asked) < self.present:
            return
        questions = np.stack(list(self.asked.values()))
        whole = np.concatenate([questions, questions[-1:].repeat(self.size - len(questions), axis=0)])
        try:
            answers = self.answer(whole)[: len(questions)]
        except BaseException as error:
            answers = [error] * len(questions)
        self.answered |= dict(zip(self.asked, answers, strict=True))
        self.asked = {}
        self.changed.notify_all()


def climb_against(
    downhill: Callable[[np.ndarray], Answer],
    start: Float[np.ndarray, " number"],
    most: int = MOST_ITERATIONS,
    unit: Float[np.ndarray, " number"] | None = None,
) -> tuple[np.ndarray, float, int]:
    """As `climb`, for any function, given as its negative with the gradient of that."""
    start = np.clip(start, -FURTHEST, FURTHEST)
    unit = np.ones(len(start)) if unit is None else unit

    def in_units(steps: np.ndarray) -> Answer:
        inside = np.clip(steps * unit, -FURTHEST, FURTHEST)
        beyond = steps * unit - inside  # without bounds, slopes that lead back
        value, slope = downhill(inside)
        return value + float(np.sum(np.square(beyond))), (slope + 2 * beyond) * unit

    settings: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "options": {"maxiter": most}}
    bounds = [(-FURTHEST / it, FURTHEST / it) for it in unit]
    found = minimize(in_units, start / unit, bounds=bounds, **settings)
    evaluations = int(found.nfev)
    if found.nit <= 1 and np.abs(found.jac).max() > STEEP:
        # With bounds the first step is as long as the gradient, which may lead nowhere; without bounds it is short.
        found = minimize(in_units, start / unit, **settings)
        evaluations += int(found.nfev)
    value = -float(found.fun) if np.isfinite(found.fun) else -np.inf
    return np.clip(found.x * unit, -FURTHEST, FURTHEST), value, evaluations
