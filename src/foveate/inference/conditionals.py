"""The conditional distributions of the Gibbs sampler: what each unknown is given all the others.

gamma_t says whether the local policy made step t. Its prior probability is sigmoid(f_t), and

    p(gamma_t) = exp((gamma_t - 1/2) f_t) / (2 cosh(f_t / 2))
               = exp(kappa_t f_t) / 2  times the mean of  exp(-omega_t f_t^2 / 2)  over  omega_t ~ PG(1, 0),

kappa_t = gamma_t - 1/2, so that given omega the log-density is quadratic in f_t = b (x_t - s0) (the paper's
supplement, whose second line has a slip, and whose mean of b a bracket in the wrong place).

All are pure functions of arrays over (path, step); `real` marks the steps that count, the others are padding.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, PRNGKeyArray

from foveate.inference.polya_gamma import polya_gamma
from foveate.model.choices import LogisticChoice
from foveate.model.history import Array, History
from foveate.model.priors import Beta, Normal
from foveate.model.steps import Steps


class Gaussian(NamedTuple):
    """A Gaussian distribution of one number."""

    mean: Float[Array, ""]
    variance: Float[Array, ""]

    def draw(self, key: PRNGKeyArray) -> Float[Array, ""]:
        """One draw."""
        return self.mean + jnp.sqrt(self.variance) * jax.random.normal(key, jnp.shape(self.mean), jnp.float64)


def features(choice: LogisticChoice, steps: Steps) -> Float[Array, "path step"]:
    """x_t of every step; it depends on the data alone."""

    def of_path(history: History, picture: Array) -> Float[Array, " step"]:
        whole = steps.picture_of(picture)
        return jax.vmap(lambda h: choice.feature(h, whole))(history)

    return jax.vmap(of_path)(steps.history, steps.picture)


def local_log_odds(
    f: Float[Array, "*choice"], log_local: Float[Array, "path step"], log_global: Float[Array, "path step"]
) -> Float[Array, "path step"]:
    """Log-odds of gamma_t = 1 given everything else: f_t + log p_local - log p_global."""
    return f + log_local - log_global


def draw_gamma(key: PRNGKeyArray, log_odds: Float[Array, "path step"]) -> Bool[Array, "path step"]:
    """gamma_t ~ Bernoulli(sigmoid(f_t + log p_local - log p_global)); True is a local step."""
    return jax.random.bernoulli(key, jax.nn.sigmoid(log_odds))


def draw_omega(key: PRNGKeyArray, f: Float[Array, "path step"]) -> Float[Array, "path step"]:
    """omega_t ~ PG(1, f_t)."""
    return polya_gamma(key, f)


def b_given(
    gamma: Bool[Array, "path step"],
    omega: Float[Array, "path step"],
    x: Float[Array, "path step"],
    s0: Float[Array, ""],
    prior: Normal,
    real: Bool[Array, "path step"],
) -> Gaussian:
    """b given gamma, omega and s0, for the prior N(mu, v).

    Variance  V = v / (1 + v sum omega_t (x_t - s0)^2),   mean  V (sum kappa_t (x_t - s0) + mu / v).
    """
    from_threshold = jnp.where(real, x - s0, 0.0)
    variance = prior.variance / (1 + prior.variance * jnp.sum(omega * from_threshold**2))
    return Gaussian(variance * (jnp.sum((gamma - 0.5) * from_threshold) + prior.mean / prior.variance), variance)


def s0_given(
    gamma: Bool[Array, "path step"],
    omega: Float[Array, "path step"],
    x: Float[Array, "path step"],
    b: Float[Array, ""],
    prior: Normal,
    real: Bool[Array, "path step"],
) -> Gaussian:
    """s0 given gamma, omega and b, for the prior N(mu, v).

    Variance  V = v / (1 + v b^2 sum omega_t),   mean  V (sum (b^2 omega_t x_t - b kappa_t) + mu / v).
    """
    variance = prior.variance / (1 + prior.variance * b**2 * jnp.sum(jnp.where(real, omega, 0.0)))
    pull = jnp.sum(jnp.where(real, b**2 * omega * x - b * (gamma - 0.5), 0.0))
    return Gaussian(variance * (pull + prior.mean / prior.variance), variance)


def rho_given(gamma: Bool[Array, "path step"], prior: Beta, real: Bool[Array, "path step"]) -> Beta:
    """rho given gamma, for the prior Beta(first, second): Beta(first + sum gamma, second + sum (1 - gamma))."""
    return Beta(prior.first + jnp.sum(gamma & real), prior.second + jnp.sum(~gamma & real))


def draw_log_odds(key: PRNGKeyArray, beta: Beta) -> Float[Array, ""]:
    """The log-odds of a draw of a Beta distribution: of two Gamma draws' ratio, so that no end of (0, 1) is hit."""
    first, second = jax.random.split(key)
    return jax.random.loggamma(first, beta.first) - jax.random.loggamma(second, beta.second)


def given_gamma(
    log_policy: Float[Array, "path step policy"], gamma: Bool[Array, "path step"], real: Bool[Array, "path step"]
) -> Float[Array, ""]:
    """sum over steps of  gamma_t log p_local + (1 - gamma_t) log p_global: what the data say about epsilon and xi.

    A step assigned to the global policy on a cell that the repulsion forbids counts about -460 (the log of the floor):
    gamma as good as forbids such an epsilon, and that is the model, not a numerical accident.
    """
    return jnp.sum(jnp.where(real, jnp.where(gamma, log_policy[..., 0], log_policy[..., 1]), 0.0))
