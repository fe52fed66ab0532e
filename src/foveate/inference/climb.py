"""Climbs: from a start to a nearby top of the posterior density on the real line."""

from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from foveate.inference.target import Target
from foveate.model.history import Array
from foveate.precision import double_precision

# A climb stays within these on the real line (standard deviations from e^-9 to e^9 degrees): far outside any data.
FURTHEST = 18.0

MOST_ITERATIONS = 15_000  # where nobody asks for fewer: no climb of ours takes nearly as many


@eqx.filter_jit
def value_and_gradient(target: Target, vector: Float[Array, " number"]) -> tuple[Array, Array]:
    """Log posterior density of a vector and its gradient."""
    return jax.value_and_grad(target.log_density)(vector)


@double_precision
def climb(target: Target, start: Float[np.ndarray, " number"], most: int) -> tuple[np.ndarray, float, int]:
    """The highest vector met from `start` in at most so many iterations, its log-density, and the evaluations spent."""

    def downhill(vector: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = value_and_gradient(target, vector)
        return -float(value), -np.asarray(slope)

    return climb_against(downhill, start, most)


def climb_against(
    downhill: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: Float[np.ndarray, " number"],
    most: int = MOST_ITERATIONS,
) -> tuple[np.ndarray, float, int]:
    """As `climb`, for any function, given as its negative with the gradient of that."""
    start = np.clip(start, -FURTHEST, FURTHEST)
    found = minimize(
        downhill,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(-FURTHEST, FURTHEST)] * len(start),
        options={"maxiter": most},
    )
    value = -float(found.fun) if np.isfinite(found.fun) else -np.inf
    return found.x, value, int(found.nfev)
