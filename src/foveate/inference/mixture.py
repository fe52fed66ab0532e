"""A mixture of multivariate Student-t distributions: the proposal of importance sampling and of moves between modes."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from foveate.model.history import Array

# Tails heavier than a posterior's, so that importance weights are bounded, but light enough to be efficient.
DEGREES_OF_FREEDOM = 8.0

# A component's covariance is shrunk towards the overall one by as much as this many draws would weigh.
PRIOR_DRAWS = 5.0

SMALLEST_SPREAD = 0.01  # of all draws together, on the real line: so that no direction is lost
LEAST_SEEDED_SHARE = 0.01

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

    def flattened(self, power: float) -> "Mixture":
        """The same components with shares more alike, so that small ones get draws enough to be known well."""
        share = np.asarray(self.share) ** power
        return Mixture(share / share.sum(), self.centre, self.factor, self.freedom)

    def sample(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "draw number"]:
        """Draws, stratified over the components: each gets its share of them, up to rounding at random."""
        points = (np.arange(count) + rng.random()) / count
        return self._of_components(np.searchsorted(np.cumsum(self.share), points).clip(max=len(self.share) - 1), rng)

    def independent(self, count: int, rng: np.random.Generator) -> Float[np.ndarray, "draw number"]:
        """Draws that know nothing of each other, as the moves of a chain need them."""
        return self._of_components(rng.choice(len(self.share), count, p=np.asarray(self.share)), rng)

    def _of_components(self, component: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "draw number"]:
        normal = rng.standard_normal((len(component), self.centre.shape[1]))
        freedom = np.asarray(self.freedom)[component]
        stretch = np.sqrt(freedom / rng.chisquare(freedom))
        return self.centre[component] + stretch[:, None] * np.einsum("nij,nj->ni", self.factor[component], normal)

    def component_log_densities(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, "set component"]:
        """Log-density of every vector under every component."""
        freedom, size = np.asarray(self.freedom), vectors.shape[1]
        constant = gammaln((freedom + size) / 2) - gammaln(freedom / 2) - size / 2 * np.log(freedom * np.pi)
        volume = np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        tails = (freedom + size) / 2 * np.log1p(self._squared_distances(vectors) / freedom)
        return constant - volume - tails

    def _squared_distances(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, "set component"]:
        """Of every vector from every centre, in units of the component's scale."""
        inverse = np.linalg.inv(self.factor)  # small and triangular: one product then serves all vectors
        centres = np.einsum("kij,kj->ki", inverse, self.centre)
        return np.stack(
            [np.square(vectors @ one.T - at).sum(axis=1) for one, at in zip(inverse, centres, strict=True)], 1
        )

    def log_density(self, vectors: Float[np.ndarray, "set number"]) -> Float[np.ndarray, " set"]:
        """Log-density of every vector."""
        return np.logaddexp.reduce(self.component_log_densities(vectors) + np.log(self.share), axis=1)

    def leaning_to(
        self, vectors: Float[np.ndarray, "set number"], weights: Float[np.ndarray, " set"], worth: float = 1.0
    ) -> "Mixture":
        """Every component with the centre and scale of the weighted vectors that are likely its own, as far as these
        tell more than what it had: as many independent ones as a vector has numbers count as much.

        `worth` is how many independent ones a vector stands for: less than one, if they come from a chain.
        """
        log_part = self.component_log_densities(vectors) + np.log(self.share)
        part = np.exp(log_part - np.logaddexp.reduce(log_part, axis=1)[:, None]) * weights[:, None]
        centres, scales = np.array(self.centre), self.scale.copy()
        for k, mine in enumerate(part.T):
            total = max(mine.sum(), 1e-300)
            held = worth * total**2 / max(np.square(mine).sum(), 1e-300)
            known = held / (held + vectors.shape[1])
            centre = mine @ vectors / total
            scales[k] = (1 - known) * scales[k] + known * _covariance(vectors, mine / total, centre)
            centres[k] = (1 - known) * centres[k] + known * centre
        return Mixture.of(np.asarray(self.share), centres, scales, np.asarray(self.freedom))

    def refitted(
        self, vectors: Float[np.ndarray, "set number"], weights: Float[np.ndarray, " set"], least_share: float
    ) -> "Mixture":
        """The mixture fitted to weighted vectors by expectation maximisation from here, degrees of freedom as they are.

        No component falls below `least_share`: one that looks empty may only have been looked at too seldom.
        """
        weights = weights / weights.sum()
        overall, mixture, size = np.diag(_covariance(vectors, weights, weights @ vectors)), self, vectors.shape[1]
        for _ in range(SWEEPS):
            log_part = mixture.component_log_densities(vectors) + np.log(mixture.share)
            part = np.exp(log_part - log_part.max(axis=1, keepdims=True))
            part *= (weights / part.sum(axis=1))[:, None]
            share = part.sum(axis=0)
            # Draws' worth of each component, and how much a Student-t counts a point far out.
            held = np.square(share) / np.maximum(np.square(part).sum(axis=0), 1e-300)
            pull = part * ((mixture.freedom + size) / (mixture.freedom + mixture._squared_distances(vectors)))
            centres, scales = np.array(mixture.centre), mixture.scale.copy()
            for k in np.nonzero((held >= 2 * size) & (share >= least_share / 2))[0]:  # too few draws tell nothing
                centres[k] = pull[:, k] @ vectors / pull[:, k].sum()
                spread = _covariance(vectors, pull[:, k] / share[k], centres[k])
                kept = PRIOR_DRAWS / (PRIOR_DRAWS + held[k])
                alone = np.diag(np.maximum(np.diag(spread), 1e-6 * overall))
                scales[k] = (1 - kept) * spread + kept * alone
            mixture = Mixture.of(np.maximum(share, least_share), centres, scales, np.asarray(mixture.freedom))
        return mixture


def _covariance(vectors: np.ndarray, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
    return (vectors - centre).T @ ((vectors - centre) * weights[:, None])


def seeded(
    vectors: Float[np.ndarray, "set number"], weights: Float[np.ndarray, " set"], count: int, rng: np.random.Generator
) -> Mixture:
    """A first mixture for weighted vectors: centres far from each other (k-means++), and the spread around each."""
    middle = weights @ vectors
    overall = _covariance(vectors, weights, middle) + SMALLEST_SPREAD**2 * np.eye(vectors.shape[1])
    whitened = np.linalg.solve(np.linalg.cholesky(overall), (vectors - middle).T).T
    away = np.full((count, len(vectors)), np.inf)
    for k in range(count):
        chance = weights if k == 0 else weights * away[:k].min(axis=0)
        if not chance.sum() > 0:
            break
        centre = whitened[rng.choice(len(vectors), p=chance / chance.sum())]
        away[k] = np.square(whitened - centre).sum(axis=1)
    nearest = away.argmin(axis=0)
    parts = []
    for k in range(count):
        mine = nearest == k
        share = weights[mine].sum()
        if share < 1e-4:
            continue
        weight = weights[mine] / share
        held = 1 / np.square(weight).sum()
        centre = weight @ vectors[mine]
        spread = _covariance(vectors[mine], weight, centre)
        kept = PRIOR_DRAWS / (PRIOR_DRAWS + held)
        parts.append((share, centre, (1 - kept) * spread + kept * overall / count ** (2 / vectors.shape[1])))
    share, centre, scale = (np.array(it) for it in zip(*parts, strict=True))
    return Mixture.of(np.maximum(share, LEAST_SEEDED_SHARE), centre, scale, DEGREES_OF_FREEDOM)


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
    share, centre, factor, freedom = map(jnp.asarray, (mixture.share, mixture.centre, mixture.factor, mixture.freedom))
    size = centre.shape[-1]
    away = jax.vmap(lambda one, at: jax.scipy.linalg.solve_triangular(one, vector - at, lower=True))(factor, centre)
    gamma = jax.scipy.special.gammaln
    constant = gamma((freedom + size) / 2) - gamma(freedom / 2) - size / 2 * jnp.log(freedom * jnp.pi)
    volume = jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    tails = (freedom + size) / 2 * jnp.log1p(jnp.square(away).sum(axis=1) / freedom)
    return jax.scipy.special.logsumexp(constant - volume - tails + jnp.log(share))


jax.tree_util.register_dataclass(Mixture, data_fields=["share", "centre", "factor", "freedom"], meta_fields=[])
