"""Sums over all cells of salient Gaussians that factors modulate: the normalisers of the models beyond the paper.

    Z_k = sum_z  s(z)^alpha_k  n(z; m_k, v_k)  F(z)
    log F(z) = c . directions(z) + sum_j d_j g(z; z_j) + e log s(z)

The factor F is common to all policies k of a group, so one exponential a cell serves all of them; powers of the map
are common to all steps on a picture, and to all policies with the same exponent; and a Gaussian is a factor on the rows
times one on the columns, so that what is left are products of matrices and vectors (`modulated_kernel.py`).

In single precision (`Steps.in_single_precision`) the logarithm of a sum is good to about 1e-6, in half the time.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Float

from foveate.model.factors import (
    Directions,
    Factor,
    Modulated,
    SaliencyDrift,
    VisitedBefore,
    log_relative_saliency,
    same_factors,
)
from foveate.model.history import Array, History, Picture
from foveate.model.modulated_kernel import Kind, Scenery, Shape, sums, upper_bound
from foveate.model.policies import Policy, SalientGaussian
from foveate.model.steps import Steps

SUMMED = Directions | VisitedBefore | SaliencyDrift  # the factors that these sums know

# A sum below this (relative to the map's largest cell, with the factor at its largest) may have lost its digits to
# underflow: the definition, which works on logarithms, takes over.
SMALLEST = {"float32": 1e-28, "float64": 1e-280}

# Log of the sum of each policy's weight by its definition.
ByDefinition = Callable[[Sequence[Policy]], Float[Array, "policy path step"]]


def known(policy: Policy) -> bool:
    """Whether these sums serve the policy."""
    if isinstance(policy, Modulated):
        return isinstance(policy.policy, SalientGaussian) and all(isinstance(it, SUMMED) for it in policy.factors)
    return isinstance(policy, SalientGaussian)


def log_sums(policies: Sequence[Policy], steps: Steps, otherwise: ByDefinition) -> list[Float[Array, "path step"]]:
    """Log of the sum of each policy's weight over all cells; `otherwise` does it by definition, where it must."""
    found: dict[int, Array] = {}
    left = list(range(len(policies)))
    while left:  # those with the same factors together
        factors = _factors(policies[left[0]])
        together = [index for index in left if same_factors(_factors(policies[index]), factors)]
        some = [policies[index] for index in together]
        totals = _with_common_factors(some, factors, steps, otherwise)
        found |= {index: totals[..., place] for place, index in enumerate(together)}
        left = [index for index in left if index not in together]
    return [found[index] for index in range(len(policies))]


def _factors(policy: Policy) -> tuple[Factor, ...]:
    return policy.factors if isinstance(policy, Modulated) else ()


def _with_common_factors(
    policies: Sequence[Policy],
    factors: tuple[Factor, ...],
    steps: Steps,
    otherwise: ByDefinition,
) -> Float[Array, "path step policy"]:
    gaussians = [base for base in (it.base for it in policies) if isinstance(base, SalientGaussian)]
    groups, exponents = _by_exponent(gaussians)
    kind = Kind(groups, steps.grid, "float32" if steps.single else "float64")
    maps, largest = _maps(steps)

    def of_row(row: tuple[Array, History]) -> tuple[Array, Array]:
        """The sums themselves, and the logarithm of what each was divided by."""
        index, history = row
        picture = steps.picture_of(index)
        shape, places = _shape(gaussians, factors, exponents, history, picture)
        log_map, positive, relative = (it[index] for it in maps)
        scenery = Scenery(log_map, positive, relative, jnp.asarray(history.position_deg)[:, 0], places)
        bound = lax.stop_gradient(upper_bound(shape, scenery))
        powers = jnp.stack([jnp.zeros(()) if group is None else exponents[group] for group in groups])
        return sums(kind, scenery, bound, shape), bound[:, None] + powers * largest[index]

    found, scale = lax.map(of_row, (jnp.asarray(steps.picture), steps.history))
    least = SMALLEST[kind.digits]

    def trusted() -> Array:
        return jnp.log(jnp.maximum(found, least)) + scale

    if steps.batched:  # maps without empty cells, in double precision: sums are nowhere near where posteriors lie
        return trusted()
    exact = jnp.all((found > least) & jnp.isfinite(found))
    return lax.cond(exact, trusted, lambda: jnp.moveaxis(jnp.asarray(otherwise(policies)), 0, -1))


def _maps(steps: Steps) -> tuple[tuple[Array, Array, Array], Float[Array, " picture"]]:
    """The first three of a row's `Scenery` for every picture, and the logarithm of the largest cell of each."""
    saliency = jnp.asarray(steps.saliency)
    positive = saliency > 0
    log_map = jnp.where(positive, jnp.log(jnp.where(positive, saliency, 1.0)), -jnp.inf)
    largest = jnp.max(log_map, axis=(1, 2))
    relative = jax.vmap(lambda it: log_relative_saliency(Picture.whole(steps.grid, it)))(saliency)
    return (
        jnp.where(positive, log_map - largest[:, None, None], 0.0),
        positive.astype(jnp.float64),
        relative,
    ), largest


def _by_exponent(policies: Sequence[SalientGaussian]) -> tuple[tuple[int | None, ...], Float[Array, " group"]]:
    """For each policy the place of its exponent among the different ones (None: the map does not matter)."""
    different: list[Array | float] = []
    places: list[int | None] = []
    for policy in policies:
        exponent = policy.exponent
        if exponent is None:
            places.append(None)
            continue
        place = next((index for index, it in enumerate(different) if it is exponent), len(different))
        if place == len(different):
            different.append(exponent)
        places.append(place)
    return tuple(places), jnp.stack([jnp.asarray(it, jnp.float64) for it in different] or [jnp.zeros(())])


def _shape(
    policies: Sequence[SalientGaussian],
    factors: tuple[Factor, ...],
    exponents: Float[Array, " group"],
    history: History,
    picture: Picture,
) -> tuple[Shape, Float[Array, "step place 2"]]:
    """The shape of a row of steps, and the places that attract or repel."""
    steps = len(jnp.asarray(history.count))
    harmonics = jnp.zeros((steps, 5 if any(isinstance(it, Directions) for it in factors) else 0))
    strength: list[Array] = [jnp.zeros((steps, 0))]
    place: list[Array] = [jnp.zeros((steps, 0, 2))]
    variance: list[Array] = [jnp.zeros(0)]
    drift: list[Array] = []
    for factor in factors:
        if isinstance(factor, Directions):
            harmonics = harmonics + jax.vmap(lambda h, it=factor: it.harmonics(h, picture))(history)
        elif isinstance(factor, VisitedBefore):
            how_much, where = jax.vmap(factor.places)(history)
            strength.append(how_much)
            place.append(where)
            variance.append(jnp.broadcast_to(factor.omega, how_much.shape[1:]))
        elif isinstance(factor, SaliencyDrift):
            drift.append(jax.vmap(lambda h, it=factor: it.exponent(h, picture))(history))
    centres = [jnp.broadcast_to(jax.vmap(lambda h, it=it: it.centre(h, picture))(history), (steps, 2))
               for it in policies]  # fmt: skip
    shape = Shape(
        centres=jnp.stack(centres, axis=1),
        variances=jnp.stack([jnp.asarray(it.variances) for it in policies]),
        exponents=exponents,
        harmonics=harmonics,
        strength=jnp.concatenate(strength, axis=1),
        place_variance=jnp.concatenate(variance),
        drift=sum(drift, jnp.zeros(steps))[:, None] if drift else jnp.zeros((steps, 0)),
    )
    return shape, jnp.concatenate(place, axis=1)
