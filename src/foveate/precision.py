"""Double precision for public calls, whatever the host program uses.

JAX computes in float32 unless told otherwise. Log-likelihoods here need float64, and switching it on globally
would change the numbers of a program that merely imports foveate, so it is switched on around each public call.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

P = ParamSpec("P")
R = TypeVar("R")


def double_precision(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, run with JAX's 64-bit types enabled."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped
