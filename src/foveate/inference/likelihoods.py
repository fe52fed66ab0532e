"""Log-likelihoods of many observers with their gradients: what a population is learnt and sampled from.

All observers' arrays have one shape, so one compilation serves them all. On a processor each evaluation is a call of
its own, on as many threads as there are cores; on a GPU all observers and vectors go side by side.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.errors import InputError
from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.model.model import Model
from foveate.model.packing import packed_size
from foveate.model.steps import Steps
from foveate.precision import double_precision
from foveate.threads import cores

T = TypeVar("T")
R = TypeVar("R")

Values = Float[np.ndarray, "set observer"]
Vectors = Float[np.ndarray, "set observer number"]


@runtime_checkable
class Likelihoods(Protocol):
    """Log-likelihood and gradient of every observer; where it is not finite, minus infinity and a gradient of zero."""

    observers: int
    numbers: int
    threads: int

    def one(self, observer: int, vector: Float[np.ndarray, " number"]) -> tuple[float, Float[np.ndarray, " number"]]:
        """Of one observer (counted from zero) at a vector on the real line."""
        ...

    def __call__(self, vectors: Vectors) -> tuple[Values, Vectors]:
        """Of all observers, each at as many vectors as there are sets."""
        ...


def targets_of(model: Model, data: Mapping[Any, Dataset]) -> dict[Any, Target]:
    """The target of every observer, in arrays of one shape; few steps are enough, since others' data help."""
    each = {observer: Steps.of(own, memory=model.memory, short="skip") for observer, own in data.items()}
    sizes = [packed_size(steps) for steps in each.values()]
    common = max(rows for rows, _ in sizes), max(maps for _, maps in sizes)
    return {observer: Target.of_steps(model, steps, common) for observer, steps in each.items()}


class TargetLikelihoods:
    """The likelihoods of targets, or of another function of them that is defined once, such as `Target.log_density`."""

    def __init__(
        self,
        targets: Iterable[Target],
        threads: int | None = None,
        function: Callable[[Target, Array], Array] = Target.log_likelihood,
    ):
        """On so many threads (None: one per core)."""
        self.targets, self.threads, self.function = list(targets), threads or cores(), function
        if not self.targets:
            raise InputError("no observers: a population needs some.")
        self.observers, self.numbers = len(self.targets), self.targets[0].size
        self._together = None
        shapes = {str(jax.tree.map(np.shape, target)) for target in self.targets}
        if len(shapes) > 1:
            raise InputError("the observers' targets differ in shape: make them with targets_of.")
        if self.targets[0].steps.batched:
            with jax.enable_x64(True):
                self._together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *self.targets)

    @double_precision
    def one(self, observer: int, vector: Float[np.ndarray, " number"]) -> tuple[float, Float[np.ndarray, " number"]]:
        """Of one observer (counted from zero) at a vector on the real line."""
        value, slope = _value_and_gradient(self.function, self.targets[observer], jnp.asarray(vector))
        return _finite(float(value), np.asarray(slope))

    def __call__(self, vectors: Vectors) -> tuple[Values, Vectors]:
        """Of all observers, each at as many vectors as there are sets."""
        if self._together is not None:
            with jax.enable_x64(True):
                values, slopes = _side_by_side(self.function, self._together, jnp.asarray(vectors))
            pairs = [[_finite(v, s) for v, s in zip(*it, strict=True)]
                     for it in zip(np.asarray(values), np.asarray(slopes), strict=True)]  # fmt: skip
        else:
            places = [(row, observer) for row in range(len(vectors)) for observer in range(self.observers)]
            found = in_threads(lambda at: self.one(at[1], vectors[at]), places, self.threads)
            pairs = [found[first : first + self.observers] for first in range(0, len(found), self.observers)]
        return np.array([[v for v, _ in row] for row in pairs]), np.array([[s for _, s in row] for row in pairs])


class AgainstGaussian:
    """Posterior densities less that of a Gaussian prior: times that Gaussian they are the posteriors themselves.

    So that a sampler for a population that is fixed at this Gaussian draws from posteriors with any prior.
    """

    def __init__(
        self, densities: Likelihoods, centre: Float[np.ndarray, " number"], width: Float[np.ndarray, " number"]
    ):
        """From densities such as those of `TargetLikelihoods` with `Target.log_density`."""
        self.densities, self.centre, self.width = densities, centre, width
        self.observers, self.numbers, self.threads = densities.observers, densities.numbers, densities.threads

    def one(self, observer: int, vector: Float[np.ndarray, " number"]) -> tuple[float, Float[np.ndarray, " number"]]:
        """Of one observer."""
        value, slope = self.densities.one(observer, vector)
        away = (vector - self.centre) / self.width
        return value + 0.5 * float(away @ away), slope + away / self.width

    def __call__(self, vectors: Vectors) -> tuple[Values, Vectors]:
        """Of all observers."""
        values, slopes = self.densities(vectors)
        away = (vectors - self.centre) / self.width
        return values + 0.5 * np.square(away).sum(axis=-1), slopes + away / self.width


class Pooled:
    """All observers taken for one: the sum of their log-likelihoods at the same vector."""

    observers = 1

    def __init__(self, each: Likelihoods):
        """From the likelihoods of the observers."""
        self.each, self.numbers, self.threads = each, each.numbers, each.threads

    def one(self, observer: int, vector: Float[np.ndarray, " number"]) -> tuple[float, Float[np.ndarray, " number"]]:
        """Of the only observer."""
        values, slopes = self(vector[None, None])
        return float(values[0, 0]), slopes[0, 0]

    def __call__(self, vectors: Float[np.ndarray, "set 1 number"]) -> tuple[Values, Vectors]:
        """Of the only observer at as many vectors as there are sets."""
        values, slopes = self.each(np.repeat(vectors, self.each.observers, axis=1))
        return values.sum(axis=1, keepdims=True), slopes.sum(axis=1, keepdims=True)


@eqx.filter_jit
def _value_and_gradient(function: Callable, target: Target, vector: Float[Array, " number"]) -> tuple[Array, Array]:
    return jax.value_and_grad(lambda at: function(target, at))(vector)


@eqx.filter_jit
def _side_by_side(function: Callable, targets: Target, vectors: Array) -> tuple[Array, Array]:
    def one(target: Target, vector: Array) -> tuple[Array, Array]:
        return jax.value_and_grad(lambda at: function(target, at))(vector)

    return jax.vmap(jax.vmap(one), (None, 0))(targets, vectors)


def _finite(value: float, slope: np.ndarray) -> tuple[float, np.ndarray]:
    fine = bool(np.isfinite(value) and np.isfinite(slope).all())
    return (float(value), slope) if fine else (-np.inf, np.zeros_like(slope))


def in_threads(function: Callable[[T], R], items: Iterable[T], threads: int) -> list[R]:
    """The results in the order of the items; the first is worked out alone, so that it is compiled once."""
    places = list(items)
    first = [function(item) for item in places[:1]]
    if threads == 1 or len(places) < 3:
        return first + [function(item) for item in places[1:]]
    with ThreadPoolExecutor(threads) as pool:
        return first + list(pool.map(function, places[1:]))
