"""The target of every sampler: a model's posterior density as a function of a vector on the real line.

gamma, the policy behind each step, is summed out, so the density is an ordinary function of a few numbers: logarithms
of variances, log-odds of probabilities, and the others as they are.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from foveate.compiled import compiled_for_speed
from foveate.data.dataset import Dataset
from foveate.errors import InputError
from foveate.model.history import Array
from foveate.model.likelihood import (
    check_model_and_steps,
    has_fast_normaliser,
    joint_log_density,
)
from foveate.model.model import Model
from foveate.model.packing import packed
from foveate.model.steps import Steps
from foveate.precision import double_precision

# Vectors that are evaluated in one call of a compiled function; side by side on a GPU, more where there are more, but
# no more than a worker's share of its memory holds.
GROUP, SIDE_BY_SIDE, MOST_BYTES = 32, 512, 2**31

# A thinned target keeps every so manieth row of steps, but not fewer rows than this.
THINNING, FEWEST_ROWS = 4, 8


class Target(eqx.Module):
    """Log posterior density of `model`'s parameters given `steps`; the model's present values do
    not matter to it, though some samplers start there."""

    model: Model
    steps: Steps
    times: Float[Array, ""] | float = 1.0  # how often each step counts: more than once where some stand for all

    @classmethod
    def of(cls, model: Model, data: Dataset) -> "Target":
        """The target of one observer's data (or of a data set taken as one observer's), ready for many evaluations."""
        steps = Steps.of(data, memory=model.memory, short="skip")
        if steps.count < len(model.labels):
            raise InputError(
                f"{steps.count} steps to fit the {len(model.labels)} numbers of model {model.name!r}: there must be at "
                "least as many steps (fixations from the third on) as numbers; give longer or more scan paths."
            )
        return cls.of_steps(model, steps)

    @classmethod
    def of_steps(cls, model: Model, steps: Steps, size: tuple[int, int] | None = None) -> "Target":
        """The target of these steps, however few; `size` as `packed` in `model/packing.py` has it."""
        steps = packed(steps, size)
        if jax.default_backend() != "cpu":
            steps = steps.in_batches()
        steps = steps.in_single_precision()
        if not steps.batched and any(map(has_fast_normaliser, model.policies)):  # nobody else reads the table
            steps = steps.tabulated()
        check_model_and_steps(model, steps)
        with jax.enable_x64(True):  # as JAX's arrays, so that no call has to copy them
            return jax.tree.map(jnp.asarray, cls(model, steps))

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return len(self.model.labels)

    def thinned(self, part: int) -> "Target":
        """A target much like this one that is cheaper by up to `THINNING` times: some of the steps stand for all.

        There are as many different parts as it is times cheaper, and they are counted round and round.
        """
        every = min(THINNING, max(1, len(self.steps.real) // FEWEST_ROWS))
        some = self.steps.paths(slice(part % every, None, every))
        with jax.enable_x64(True):
            times = self.times * jnp.sum(self.steps.real) / jnp.sum(some.real)
            return jax.tree.map(jnp.asarray, Target(self.model, some, times))

    def coarsened(self) -> "Target":
        """A target much like this one that is cheaper, with larger cells and fewer digits: see `Steps.coarsened`."""
        return self if self.steps.batched else Target(self.model, self.steps.coarsened(), self.times)

    # For use inside compiled functions:

    def log_likelihood(self, vector: Float[Array, " number"]) -> Float[Array, ""]:
        """Log-probability of all steps, with durations where the model has any."""
        at = self.model.from_real(vector)
        return self.times * jnp.sum(jnp.where(self.steps.real, joint_log_density(at, self.steps), 0.0))

    def log_prior(self, vector: Float[Array, " number"]) -> Float[Array, ""]:
        """Log prior density of the vector itself: that of the parameters times the Jacobian."""
        return self.model.from_real(vector).log_prior() + self.model.log_jacobian(vector)

    def log_density(self, vector: Float[Array, " number"]) -> Float[Array, ""]:
        """Log posterior density of the vector, up to the evidence."""
        return self.log_likelihood(vector) + self.log_prior(vector)


@compiled_for_speed
def _group(
    function: Callable[[Target, Array], Array], target: Target, vectors: Float[Array, "set number"], count: Array
) -> Array:
    """Of a group's vectors the first `count` matter; the others cost nothing where one comes after another."""
    of = partial(function, target)
    if target.steps.batched:
        return jax.vmap(of)(vectors)
    nothing = jax.tree.map(lambda it: jnp.zeros(it.shape, it.dtype), jax.eval_shape(of, vectors[0]))
    places = jnp.arange(len(vectors))
    return lax.map(lambda it: lax.cond(it[0] < count, of, lambda _: nothing, it[1]), (places, vectors))


def bytes_each(steps: Steps) -> int:
    """Memory for a vector: four Gaussians' factors on rows and columns are held for every step, or some maps of the
    steps of a row."""
    return 8 * max(4 * steps.real.size * sum(steps.grid.shape), 6 * steps.real.shape[1] * steps.grid.cells)


def _side_by_side(steps: Steps) -> int:
    """How many vectors fit."""
    return int(np.clip(MOST_BYTES // bytes_each(steps) // GROUP * GROUP, GROUP, SIDE_BY_SIDE))


@double_precision
def evaluate(
    function: Callable[[Target, Array], Array],
    target: Target,
    vectors: Float[np.ndarray, "set number"],
    *,
    threads: int = 1,
) -> Array:
    """`function(target, vector)` of many vectors, in groups of a fixed size: one compilation serves any number.

    `function` must be one that is defined once (a method of `Target`, say): it is part of what is compiled.
    """
    count = len(vectors)
    size = _side_by_side(target.steps) if target.steps.batched and count > GROUP else GROUP
    whole = np.concatenate([vectors, vectors[-1:].repeat(-count % size, axis=0)])
    groups = [(whole[first : first + size], np.asarray(min(size, count - first))) for first in range(0, count, size)]
    call = double_precision(lambda group: np.asarray(_group(function, target, *group)))
    if threads == 1 or len(groups) == 1:
        found = [call(group) for group in groups]
    else:
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(call, groups))
    return np.concatenate(found)[:count]


def log_densities(target: Target, vectors: Float[np.ndarray, "set number"], *, threads: int = 1) -> np.ndarray:
    """Log posterior density of many vectors; minus infinity where double precision ends."""
    values = np.asarray(evaluate(Target.log_density, target, vectors, threads=threads))
    return np.where(np.isfinite(values), values, -np.inf)
