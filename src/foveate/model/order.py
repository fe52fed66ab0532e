"""Epsilon below xi on both axes, as the paper wants its two policies: the prior restricted to that, and its mass."""

import jax.numpy as jnp
from jax.scipy.special import betainc, log_ndtr
from jaxtyping import Bool, Float

from foveate.errors import InputError
from foveate.model.history import Array
from foveate.model.priors import InverseGamma, LogNormal, Prior
from foveate.precision import double_precision

ORDERED = ("epsilon", "xi")  # the smaller one first


def check_order(name: str, priors: dict[str, Prior]) -> None:
    """Refuse to order a model whose parameters or priors do not allow it."""
    kinds = [type(priors[it]) for it in ORDERED if it in priors]
    if len(kinds) < len(ORDERED):
        raise InputError(f"model {name!r}: ordered = True needs both epsilon and xi; leave it out.")
    if kinds not in ([LogNormal] * 2, [InverseGamma] * 2):
        raise InputError(
            f"model {name!r}: ordered = True needs priors of epsilon and xi that are both LogNormal or both "
            f"InverseGamma; they are {kinds[0].__name__} and {kinds[1].__name__}."
        )


def in_order(values: dict[str, Float[Array, "..."]]) -> Bool[Array, ""]:
    """Whether epsilon is below xi on both axes."""
    return jnp.all(jnp.asarray(values["epsilon"]) < jnp.asarray(values["xi"]))


@double_precision
def log_mass_in_order(priors: dict[str, Prior]) -> Float[Array, ""]:
    """Log of the prior probability that epsilon is below xi on both axes, which are independent."""
    smaller, larger = (priors[it] for it in ORDERED)
    if isinstance(smaller, LogNormal) and isinstance(larger, LogNormal):
        distance = jnp.log(larger.median) - jnp.log(smaller.median)
        by_axis = log_ndtr(distance / jnp.hypot(smaller.spread, larger.spread))
    else:
        assert isinstance(smaller, InverseGamma)
        assert isinstance(larger, InverseGamma)
        # With unit Gamma variables u and v, epsilon = B_e / u < xi = B_x / v if v / (u + v) < B_x / (B_e + B_x).
        share = larger.scale / (smaller.scale + larger.scale)
        by_axis = jnp.log(betainc(larger.shape, smaller.shape, share))
    return jnp.sum(jnp.broadcast_to(by_axis, (2,)))
