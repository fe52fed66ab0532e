"""Exact draws of Pólya-Gamma variables PG(1, c), for use inside compiled functions.

PG(1, c) is a quarter of a Jacobi variable with z = |c| / 2, whose density is

    f(x) = cosh(z) exp(-z^2 x / 2) (a_0(x) - a_1(x) + a_2(x) - ...)

    a_n(x) = pi (n + 1/2) (2 / (pi x))^(3/2) exp(-2 (n + 1/2)^2 / x)     for x <= T
             pi (n + 1/2) exp(-pi^2 (n + 1/2)^2 x / 2)                   for x > T

(both series have the same sum, and each falls fast on its side: Polson, Scott and Windle 2013, after Devroye). The
first term lies above the sum, so x is proposed from it and kept with probability 1 - a_1/a_0 + a_2/a_0 - ...

On the left exp(-z^2 x / 2) a_0(x) is 2 exp(-z) times an inverse Gaussian density with mean 1/z, of which only x <= T
is kept; for a small z it is proposed without the tilt, as 1 / N^2 with N in the tail of a Gaussian, and the tilt goes
into the probability of keeping. On the right it is an exponential.

All elements of an array are tried together until each has a draw: at least 64 in 100 are kept at each try.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Bool, Float, PRNGKeyArray

from foveate.model.history import Array
from foveate.precision import check_key, double_precision

# Where the two series change over: there both fall equally fast, by a factor below 0.006 from the first to the second.
CHANGE = 0.64


@double_precision
def polya_gamma(key: PRNGKeyArray, c: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """One draw of PG(1, c) for every element of `c`, of either sign; its density is even in c."""
    check_key(key)
    return _polya_gamma(key, jnp.asarray(c, jnp.float64))


@jax.jit
def _polya_gamma(key: PRNGKeyArray, c: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    z = jnp.abs(c) / 2
    proposal = _masses(z)

    def attempt(state: tuple[Array, Array, PRNGKeyArray]) -> tuple[Array, Array, PRNGKeyArray]:
        drawn, missing, key = state
        key, now = jax.random.split(key)
        uniform = 1 - jax.random.uniform(now, (4, *z.shape), jnp.float64)  # above zero
        x, kept = _propose(z, *proposal, uniform)
        return jnp.where(missing, x, drawn), missing & ~kept, key

    first = jnp.zeros_like(z), jnp.ones(z.shape, bool), key
    drawn, _, _ = lax.while_loop(lambda state: jnp.any(state[1]), attempt, first)
    return drawn / 4


def _masses(z: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Share of proposals on the right of the change, and the rate of their exponential."""
    rate = jnp.pi**2 / 8 + z**2 / 2
    log_right = jnp.log(jnp.pi / (2 * rate)) - rate * CHANGE
    # On the left: the whole inverse Gaussian, or 1 / N^2 up to the change.
    log_left = jnp.where(_tilted(z), jnp.log(2.0) - z, jnp.log(4 * ndtr(-1 / jnp.sqrt(CHANGE))))
    return jax.nn.sigmoid(log_right - log_left), rate


def _tilted(z: Float[Array, "*shape"]) -> Bool[Array, "*shape"]:
    """Whether the inverse Gaussian is proposed on the left: its mean 1 / z lies there."""
    return z > 1 / CHANGE


def _propose(
    z: Float[Array, "*shape"], right: Float[Array, "*shape"], rate: Float[Array, "*shape"], uniform: Array
) -> tuple[Float[Array, "*shape"], Bool[Array, "*shape"]]:
    """A proposal for each element, and whether it is kept."""
    side, place, root, height = uniform
    tilted, on_right = _tilted(z), side <= right
    # One tail of a Gaussian: the whole of it squares to a chi-square, the part beyond 1/sqrt(T) gives 1 / N^2 < T.
    squared = ndtri(place * jnp.where(tilted, 0.5, ndtr(-1 / jnp.sqrt(CHANGE)))) ** 2
    left = jnp.where(tilted, _inverse_gaussian(jnp.where(tilted, z, 1.0), squared, root), 1 / squared)
    x = jnp.where(on_right, CHANGE - jnp.log(place) / rate, left)
    log_tilt = jnp.where(on_right | tilted, 0.0, -(z**2) * x / 2)
    return x, (on_right | (x <= CHANGE)) & (height <= jnp.exp(log_tilt) * share_kept(x))


def _inverse_gaussian(
    z: Float[Array, "*shape"], squared: Float[Array, "*shape"], root: Float[Array, "*shape"]
) -> Float[Array, "*shape"]:
    """An inverse Gaussian variable with mean 1 / z and shape 1, from a chi-square and a uniform one.

    (z x - 1)^2 / x has the chi-square distribution; of its two roots, whose product is 1 / z^2, the smaller one is
    taken with probability 1 / (1 + z x).
    """
    half = squared / (2 * z)
    smaller = 1 / (1 + half + jnp.sqrt(half * (2 + half)))  # times z; written so that no digits cancel
    return jnp.where(root * (1 + smaller) <= 1, smaller, 1 / smaller) / z


def share_kept(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The density over its first term: 1 - a_1/a_0 + a_2/a_0 - a_3/a_0 + ...

    a_n / a_0 is (2 n + 1) exp(-2 n (n + 1) / x) on the left and (2 n + 1) exp(-pi^2 n (n + 1) x / 2) on the right. The
    fourth term is below 1e-26 everywhere, so in double precision these three are the whole sum, not a part of it.
    """
    fall = jnp.exp(-jnp.where(x <= CHANGE, 4 / x, jnp.pi**2 * x))
    return 1 - 3 * fall + 5 * fall**3 - 7 * fall**6
