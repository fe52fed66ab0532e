"""Double precision for public calls, whatever the host program uses.

JAX computes in float32 unless told otherwise. Log-likelihoods here need float64, and switching it on globally
would change the numbers of a program that merely imports foveate, so it is switched on around each public call.
What such a call returns are NumPy arrays: JAX would cut its own float64 arrays to float32 in the host's next operation.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from foveate.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, run with JAX's 64-bit types; a call from outside such a region gets its results as NumPy arrays."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        if jax.config.read("jax_enable_x64"):
            return function(*args, **kwargs)
        if any(map(_traced, (*args, *kwargs.values()))):
            raise InputError(
                f"{function.__name__} inside jax.jit, grad or vmap of a program in single precision: its inputs are "
                "cut to float32 before they arrive; put the outermost call into `with jax.enable_x64(True):`."
            )
        with jax.enable_x64(True):
            return jax.tree.map(_to_numpy, function(*args, **kwargs))

    return wrapped


def check_key(key: Any) -> None:
    """Refuse what is not a JAX key, such as a bare seed."""
    if not isinstance(key, jax.Array):
        raise InputError(f"key = {key!r}: randomness needs a JAX key; make one from a seed with jax.random.key(seed).")


def _traced(value: Any) -> bool:
    """Whether some array in here is being traced."""
    if isinstance(value, Mapping):  # whose keys need not sort, as JAX wants them to
        return any(map(_traced, value.values()))
    return any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def _to_numpy(leaf: Any) -> Any:
    convert = isinstance(leaf, jax.Array) and not isinstance(leaf, Tracer)
    return np.asarray(leaf) if convert and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
