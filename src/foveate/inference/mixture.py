"""A mixture of multivariate Student-t distributions: the proposal of importance sampling and of moves between modes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Float

from foveate.model.history import Array

# Tails heavier than a posterior's, so that importance weights are bounded, but light enough to be efficient.
DEGREES_OF_FREEDOM = 5.0

# A component's covariance is shrunk towards the overall one by as much as this many draws would weigh.
PRIOR_DRAWS = 5.0

SWEEPS = 8  # of expectation maximisation: enough, since each starts from the components of the round before


@dataclass(frozen=True, eq=False)
class Mixture:
    """Student-t components with shares, centres and the Cholesky factors of their scale matrices."""

    share: Float[Array, " component"]
    centre: Float[Array, "component number"]
    factor: Float[Array, "component number number"]  # lower triangular
    freedom: Float[Array, " component"]

    @classmethod
    def of(cls, share: np.ndarray, centre: np.ndarray, scale: np.ndarray, freedom: float | np.ndarray) -> "Mixture":
        """From scale matrices; shares are made to sum to one."""
        share = np.asarray(share, dtype=np.float64)
        freedom = np.broadcast_to(np.asarray(freedom, dtype=np.float64), share.shape)
        return cls(share / share.sum(), np.asarray(centre), np.linalg.cholesky(scale), freedom)

    @property
    def scale(self) -> Float[np.ndarray, "component number number"]:
        """The scale matrix of every component."""
        return np.asarray(self.factor @ np.swapaxes(self.factor, -1, -2))

    def with_component(self, share: float, centre: np.ndarray, scale: np.ndarray, freedom: float) -> "Mixture":
        """This mixture with one more component, which has `share` of the whole."""
        return Mixture.of(
            np.append(np.asarray(self.share) * (1 - share), share),
            np.concatenate([self.centre, centre[None]]),
            np.concatenate([self.scale, scale[None]]),
            np.append(self.freedom, freedom),
        )

    def sample(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "draw number"]:
        """Draws, stratified over the components: each gets its share of them, up to rounding at random."""
        points = (np.arange(count) + rng.random()) / count
        component = np.searchsorted(np.cumsum(self.share), points).clip(max=len(self.share) - 1)
        normal = rng.standard_normal((count, self.centre.shape[1]))
        freedom = np.asarray(self.freedom)[component]
        stretch = np.sqrt(freedom / rng.chisquare(freedom))
        return self.centre[component] + stretch[:, None] * np.einsum("nij,nj->ni", self.factor[component], normal)

    def component_log_densities(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, "set component"]:
        """Log-density of every vector under every component."""
        return np.stack([_log_t(np, vectors, *part) for part in self._parts()], axis=-1)

    def log_density(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, " set"]:
        """Log-density of every vector."""
        terms = self.component_log_densities(vectors) + np.log(self.share)
        top = terms.max(axis=-1, keepdims=True)
        return top[:, 0] + np.log(np.exp(terms - top).sum(axis=-1))

    def _parts(self):
        return zip(self.centre, self.factor, self.freedom, strict=True)

    def refitted(
        self, vectors: Float[np.ndarray, "set number"], weights: Float[np.ndarray, " set"], least_share: float
    ) -> "Mixture":
        """The mixture fitted to weighted vectors by expectation maximisation from here, degrees of freedom as they are.

        No component falls below `least_share`: one that looks empty may only have been looked at too seldom.
        """
        weights = weights / weights.sum()
        overall = _covariance(vectors, weights, weights @ vectors)
        mixture = self
        for _ in range(SWEEPS):
            log_part = mixture.component_log_densities(vectors) + np.log(mixture.share)
            log_part -= log_part.max(axis=1, keepdims=True)
            part = np.exp(log_part)
            part *= (weights / part.sum(axis=1))[:, None]
            centres, scales = [], []
            for k, (centre, factor, freedom) in enumerate(mixture._parts()):
                away = np.linalg.solve(factor, (vectors - centre).T)
                # How much a Student-t counts a point far out, and then its own weight.
                near = (freedom + len(centre)) / (freedom + np.sum(away**2, axis=0))
                share = part[:, k].sum()
                held = 1 / np.sum((part[:, k] / share) ** 2) if share > 0 else 0.0  # draws' worth
                if held < 2 * len(centre):
                    centres.append(centre)
                    scales.append(mixture.scale[k])
                    continue
                pull = part[:, k] * near
                middle = pull @ vectors / pull.sum()
                spread = (vectors - middle).T @ ((vectors - middle) * pull[:, None]) / share
                kept = PRIOR_DRAWS / (PRIOR_DRAWS + held)
                centres.append(middle)
                scales.append((1 - kept) * spread + kept * _like(overall, spread))
            share = np.maximum(part.sum(axis=0), least_share)
            mixture = Mixture.of(share, np.stack(centres), np.stack(scales), mixture.freedom)
        return mixture


def _like(overall: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """The diagonal of `spread`, never quite zero: what a component with few draws is shrunk towards."""
    return np.diag(np.maximum(np.diag(spread), 1e-6 * np.diag(overall)))


def _covariance(vectors: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return (vectors - centre).T @ ((vectors - centre) * weights[:, None])


def _log_t(xp, vectors, centre, factor, freedom):
    """Log-density of a multivariate Student-t; `xp` is NumPy or JAX's."""
    size = centre.shape[-1]
    if xp is np:
        from scipy.linalg import solve_triangular
        from scipy.special import gammaln as log_gamma

        away = solve_triangular(factor, (vectors - centre).T, lower=True)
    else:
        log_gamma = gammaln
        away = jax.scipy.linalg.solve_triangular(factor, (vectors - centre).T, lower=True)
    constant = log_gamma((freedom + size) / 2) - log_gamma(freedom / 2) - size / 2 * xp.log(freedom * xp.pi)
    volume = xp.sum(xp.log(xp.diagonal(factor)))
    return constant - volume - (freedom + size) / 2 * xp.log1p(xp.sum(away**2, axis=0) / freedom)


# --- for use inside compiled functions -----------------------------------------------------------------------------


def draw_from(mixture: Mixture, key) -> Float[Array, " number"]:
    """One draw, inside a compiled function."""
    which, normal, chi = jax.random.split(key, 3)
    component = jax.random.categorical(which, jnp.log(jnp.asarray(mixture.share)))
    freedom = jnp.asarray(mixture.freedom)[component]
    stretch = jnp.sqrt(freedom / (2 * jax.random.gamma(chi, freedom / 2)))
    step = jnp.asarray(mixture.factor)[component] @ jax.random.normal(normal, mixture.centre.shape[1:])
    return jnp.asarray(mixture.centre)[component] + stretch * step


def log_density_at(mixture: Mixture, vector: Float[Array, " number"]) -> Float[Array, ""]:
    """`Mixture.log_density` of one vector, inside a compiled function."""
    parts = (mixture.centre, mixture.factor, mixture.freedom)
    terms = jax.vmap(lambda *part: _log_t(jnp, vector[None], *part)[0])(*map(jnp.asarray, parts))
    return logsumexp(terms + jnp.log(jnp.asarray(mixture.share)))


jax.tree_util.register_dataclass(Mixture, data_fields=["share", "centre", "factor", "freedom"], meta_fields=[])
