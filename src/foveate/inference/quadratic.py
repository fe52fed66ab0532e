"""Observers' log-likelihoods as parabolas, and what follows in closed form when a Gaussian population is put to them.

Observer i's log-likelihood is taken for  b_i' theta - theta' H_i theta / 2  plus a constant, with H_i positive
semi-definite. With theta ~ N(m, S^2), S = diag(tau), and  A_i = I + S H_i S = R_i R_i',

    theta | data, m, tau ~ N(E_i, C_i),      E_i = m + S A_i^-1 S (b_i - H_i m),      C_i = S A_i^-1 S
    log p(data | m, tau) = b_i' m - m' H_i m / 2 + |R_i^-1 S (b_i - H_i m)|^2 / 2 - log |R_i|.

Nothing has to be inverted that may be singular: H_i where data say nothing, S where observers do not differ.

Observers (and chains) are taken one after another, by `lax.map`. Side by side their triangular systems would be shared
out among XLA's threads by LAPACK's kernels in jaxlib, each of which holds one of these threads while it waits for the
others: with two cores, two such kernels wait for each other forever (jaxlib 0.10.2).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float

from foveate.model.history import Array


class Quadratics(NamedTuple):
    """The parabolas of all observers."""

    linear: Float[Array, "observer number"]  # b
    curvature: Float[Array, "observer number number"]  # H

    @classmethod
    def at(
        cls,
        places: Float[np.ndarray, "observer number"],
        slopes: Float[np.ndarray, "observer number"],
        curvature: Float[np.ndarray, "observer number number"],
    ) -> "Quadratics":
        """Those with this slope at these places."""
        return cls(slopes + np.einsum("ojk,ok->oj", curvature, places), curvature)


class Hyperprior(NamedTuple):
    """m_j ~ N(centre, width^2) and log tau_j ~ N(log_spread, LOG_SPREAD_WIDTH^2), on the real line."""

    centre: Float[Array, " number"]
    width: Float[Array, " number"]
    log_spread: Float[Array, " number"]


# The population's spread is known beforehand to a factor of e, as a standard deviation.
LOG_SPREAD_WIDTH = 1.0


def log_hyperprior(hyper: Hyperprior, mean: Array, log_spread: Array) -> Array:
    """Log-density of (m, log tau), up to a constant."""
    from_mean, from_spread = (mean - hyper.centre) / hyper.width, (log_spread - hyper.log_spread) / LOG_SPREAD_WIDTH
    return -0.5 * jnp.sum(jnp.square(from_mean)) - 0.5 * jnp.sum(jnp.square(from_spread))


def conditional(
    quadratics: Quadratics, mean: Float[Array, " number"], log_spread: Float[Array, " number"]
) -> tuple[Float[Array, "observer number"], Float[Array, "observer number number"]]:
    """(E, R) of every observer: theta = E + S R^-T u with u standard normal."""
    spread = jnp.exp(log_spread)

    def of(linear: Array, curvature: Array) -> tuple[Array, Array]:
        factor = jnp.linalg.cholesky(jnp.eye(len(spread)) + spread[:, None] * curvature * spread)
        pull = solve_triangular(factor, spread * (linear - curvature @ mean), lower=True)
        return mean + spread * solve_triangular(factor, pull, lower=True, trans=1), factor

    return lax.map(lambda it: of(*it), tuple(quadratics))


def places(
    quadratics: Quadratics, mean: Array, log_spread: Array, coordinates: Float[Array, "observer number"]
) -> tuple[Float[Array, "observer number"], Float[Array, ""]]:
    """theta of every observer at coordinates u, and the log-volume  sum_i log |S R_i^-T|  without that of S."""
    centre, factor = conditional(quadratics, mean, log_spread)
    away = lax.map(lambda it: solve_triangular(*it, lower=True, trans=1), (factor, coordinates))
    volume = -jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)))
    return centre + jnp.exp(log_spread) * away, volume


def log_marginal(quadratics: Quadratics, hyper: Hyperprior, both: Float[Array, " twice"]) -> Float[Array, ""]:
    """Log of hyperprior times the probability of all data, observers' vectors integrated out; of (m, log tau)."""
    mean, log_spread = jnp.split(both, 2)
    spread = jnp.exp(log_spread)

    def of(linear: Array, curvature: Array) -> Array:
        factor = jnp.linalg.cholesky(jnp.eye(len(spread)) + spread[:, None] * curvature * spread)
        pull = solve_triangular(factor, spread * (linear - curvature @ mean), lower=True)
        level = linear @ mean - 0.5 * mean @ curvature @ mean
        return level + 0.5 * pull @ pull - jnp.sum(jnp.log(jnp.diagonal(factor)))

    return jnp.sum(lax.map(lambda it: of(*it), tuple(quadratics))) + log_hyperprior(hyper, mean, log_spread)


@eqx.filter_jit
def marginal_and_slope(quadratics: Quadratics, hyper: Hyperprior, both: Array) -> tuple[Array, Array]:
    """`log_marginal` and its gradient."""
    return jax.value_and_grad(lambda it: log_marginal(quadratics, hyper, it))(both)


@eqx.filter_jit
def marginal_hessian(quadratics: Quadratics, hyper: Hyperprior, both: Array) -> Array:
    """The second derivatives of `log_marginal`."""
    return jax.hessian(lambda it: log_marginal(quadratics, hyper, it))(both)
