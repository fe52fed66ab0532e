"""Sums of modulated salient Gaussians for all steps of an observer as functions of JAX with their derivatives: by the
loop of `modulated_loop.py` on a CPU, by the kernel of `modulated_tiles.py` on a GPU.

Only steps that are scored are visited: padding costs nothing and changes nothing. Where all that is wanted of the sums
is the mixture of the policies, one call gives it and its slopes (`mixed`).
"""

from functools import cache, partial
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from foveate.model.history import Array
from foveate.model.model import mix
from foveate.model.modulated_kernel import Common, Kind, Maps, OfSteps, Scenery, nowhere
from foveate.model.modulated_tiles import visit

REGISTERING = Lock()


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def sums_of_scored(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Bool[Array, " step"], common: Common, own: OfSteps
) -> Float[Array, "step policy"]:
    """The sums of every step and policy, with the log-factor less its bound; one where a step is not scored."""
    return _values(kind, maps, scenery, scored, common, own)


def _forward(kind: Kind, *given: Any) -> tuple[Array, Any]:
    return _values(kind, *given), given


def _backward(kind: Kind, kept: Any, change: Float[Array, "step policy"]) -> tuple:
    maps, scenery, scored, common, own = kept
    *_, of_common, of_own = _slopes(kind, maps, scenery, scored, change, False, common, own)
    whole, each = jax.tree.map(lambda it: _of_scored(scored, it), (of_common, of_own))
    return *nowhere((maps, scenery, scored)), jax.tree.map(lambda it: jnp.sum(it, axis=0), whole), each


sums_of_scored.defvjp(_forward, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def mixed(
    kind: Kind,
    maps: Maps,
    scenery: Scenery,
    scored: Bool[Array, " step"],
    log_rest: Float[Array, "step policy"],
    common: Common,
    own: OfSteps,
) -> tuple[Float[Array, " step"], Float[Array, "step policy"]]:
    """Log of the sum over policies of exp(log_rest) divided by the sum of each step and policy; and these sums.

    Once the sums of a step are there, it is known how the result changes with them: where slopes are asked for, they
    come from the same visit. The sums are to be looked at, not to be differentiated.
    """
    found = _values(kind, maps, scenery, scored, common, own)
    return _mixture(log_rest, found), found


def _mixed_forward(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Array, log_rest: Array, common: Common, own: OfSteps
) -> tuple[tuple[Array, Array], Any]:
    sums, *slopes = _slopes(kind, maps, scenery, scored, log_rest, True, common, own)
    return (_mixture(log_rest, sums), sums), (maps, scenery, scored, log_rest, sums, slopes)


def _mixed_backward(kind: Kind, kept: Any, changes: tuple[Float[Array, " step"], Any]) -> tuple:
    maps, scenery, scored, log_rest, sums, slopes = kept
    change, _ = changes

    def times(leaf: Array) -> Array:
        """Nothing comes of a step that nothing depends on, even where its slopes are no numbers."""
        by = change.reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(by == 0, 0.0, by * leaf)

    share, of_common, of_own = jax.tree.map(lambda it: times(_of_scored(scored, it)), slopes)
    share = jnp.where(scored[:, None], share, times(_shares(log_rest, sums)))
    whole = jax.tree.map(lambda it: jnp.sum(it, axis=0), of_common)
    return *nowhere((maps, scenery, scored)), share, whole, of_own


mixed.defvjp(_mixed_forward, _mixed_backward)


def _mixture(log_rest: Array, sums: Array) -> Float[Array, " step"]:
    return mix(jnp.zeros(()), log_rest - jnp.log(sums), axis=-1)


def _shares(log_rest: Array, sums: Array) -> Float[Array, "step policy"]:
    """The share of each policy in the mixture."""
    each, total = log_rest - jnp.log(sums), _mixture(log_rest, sums)
    possible = jnp.isfinite(total)
    return jnp.where(possible[:, None], jnp.exp(each - jnp.where(possible, total, 0.0)[:, None]), 0.0)


def _of_scored(scored: Bool[Array, " step"], leaf: Array) -> Array:
    """The loop leaves alone what belongs to other steps."""
    return jnp.where(scored.reshape(-1, *[1] * (leaf.ndim - 1)), leaf, 0.0)


# --- the loop as operations of JAX ----------------------------------------------------------------------------------


def _values(kind: Kind, maps: Maps, scenery: Scenery, scored: Array, common: Common, own: OfSteps) -> Array:
    given = jnp.zeros((len(scored), len(kind.groups)))
    return _call(kind, "values", maps, scenery, scored, given, False, common, own)[0]


def _slopes(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Array, given: Array, mixture: bool, common: Common, own: OfSteps
) -> tuple[Array, Array, Common, OfSteps]:
    """Sums, shares, and how the result changes with what steps have in common (step by step) and for themselves."""
    sums, share, *more = _call(kind, "slopes", maps, scenery, scored, given, mixture, common, own)
    of_common = len(Common._fields)
    return sums, share, Common(*more[:of_common]), OfSteps(*more[of_common:])


def _call(
    kind: Kind,
    what: str,
    maps: Maps,
    scenery: Scenery,
    scored: Array,
    given: Array,
    mixture: bool,
    common: Common,
    own: OfSteps,
) -> list[Array]:
    if kind.tiles:
        return visit(kind, maps, scenery, scored, given, mixture, what == "slopes", common, own)
    steps, grid = len(scored), kind.grid
    found: list[tuple[int, ...]] = [(steps, len(kind.groups))]
    if what == "slopes":
        found += [found[0], *((steps, *jnp.shape(it)) for it in common), *(jnp.shape(it) for it in own)]
    call = jax.ffi.ffi_call(
        _registered(what, kind.digits),
        [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in found],
        vmap_method="sequential",
    )
    answer = call(
        np.array([-1 if group is None else group for group in kind.groups], np.int32),
        *maps,
        jnp.asarray(scenery.picture, jnp.int32),
        *scenery[1:],
        scored,
        np.asarray(grid.row_centres_deg, np.float64),
        np.asarray(grid.column_centres_deg, np.float64),
        np.asarray(grid.cell_deg, np.float64),
        np.array([1 if grid.extent.origin == "bottom" else -1, mixture], np.int32),
        np.array(kind.spans, np.int32),
        given,
        *common,
        *own,
    )
    return list(answer)


def _registered(what: str, digits: str) -> str:
    """The name under which XLA knows the loop, which is registered once, whichever thread comes first."""
    with REGISTERING:
        return _register(what, digits)


@cache
def _register(what: str, digits: str) -> str:
    """Numba, which compiles the loop, is imported when it is first needed."""
    from foveate.model.modulated_entry import entry

    name = f"foveate_modulated_{what}_{digits}"
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(entry(what, digits).ctypes), platform="cpu")
    return name
