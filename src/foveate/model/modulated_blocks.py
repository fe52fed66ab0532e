"""Sums of modulated salient Gaussians (`modulated_kernel.py`) for all steps of an observer, some at a time.

Steps that are scored are taken one after another, whatever rows they are packed in: padding costs nothing and changes
nothing. How many blocks there are is known only when the sums run, so the loop is inside the derivative's rule.

Where all that is wanted of the sums is the mixture of the policies, one pass gives it and its slopes (`mixed`).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Bool, Float, Int

from foveate.model.history import Array
from foveate.model.model import mix
from foveate.model.modulated_kernel import Block, Common, Kind, Maps, OfSteps, Scenery, nowhere

# Cells at a time: maps of so many stay in a processor's cache, and a turn is long beside what it takes to begin one.
CELLS_AT_ONCE = 2**16


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def sums_of_scored(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Bool[Array, " step"], common: Common, own: OfSteps
) -> Float[Array, "step policy"]:
    """The sums of every step and policy, with the log-factor less its bound; one where a step is not scored."""
    return _forward(kind, maps, scenery, scored, common, own)[0]


def _forward(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Array, common: Common, own: OfSteps
) -> tuple[Array, Any]:
    order, blocks = _in_blocks(kind, scored)
    steps = jax.tree.map(lambda leaf: leaf[order], (scenery, own))

    def turn(index: Array, found: Array) -> Array:
        here, some = _at(kind, index, steps)
        return _written(index, found, Block.of(kind, maps, here, common, some).sums)

    found = lax.fori_loop(0, blocks, turn, jnp.ones((len(order), len(kind.groups))))
    place = jnp.argsort(order[: len(scored)])
    return jnp.where(scored[:, None], found[place], 1.0), (maps, scenery, scored, common, own)


def _backward(kind: Kind, kept: Any, change: Float[Array, "step policy"]) -> tuple:
    maps, scenery, scored, common, own = kept
    order, blocks = _in_blocks(kind, scored)
    change = jnp.where(scored[:, None], change, 0.0)
    # The last places may repeat a step to fill a block.
    last = (jnp.arange(len(order)) < jnp.sum(scored))[:, None]
    steps = *jax.tree.map(lambda leaf: leaf[order], (scenery, own)), jnp.where(last, change[order], 0.0)

    def turn(index: Array, found: tuple[Common, OfSteps]) -> tuple[Common, OfSteps]:
        here, some, changes = _at(kind, index, steps)
        of_common, of_own = Block.of(kind, maps, here, common, some).change(changes)
        whole = jax.tree.map(lambda so_far, part: so_far + jnp.sum(part, axis=0), found[0], of_common)
        return whole, _written(index, found[1], of_own)

    start = jax.tree.map(jnp.zeros_like, common), jax.tree.map(jnp.zeros_like, steps[1])
    of_common, of_own = lax.fori_loop(0, blocks, turn, start)
    place = jnp.argsort(order[: len(scored)])
    return *nowhere((maps, scenery, scored)), of_common, jax.tree.map(lambda leaf: leaf[place], of_own)


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

    Once the sums of a block are there, it is known how the result changes with them: where slopes are asked for, they
    come from the same pass over the cells. The sums are to be looked at, not to be differentiated.
    """
    found = _forward(kind, maps, scenery, scored, common, own)[0]
    return _mixed(log_rest, found)[0], found


def _mixed_forward(
    kind: Kind, maps: Maps, scenery: Scenery, scored: Array, log_rest: Array, common: Common, own: OfSteps
) -> tuple[tuple[Array, Array], Any]:
    order, blocks = _in_blocks(kind, scored)
    steps = jax.tree.map(lambda leaf: leaf[order], (scenery, own, log_rest))
    size, policies = len(order), len(kind.groups)

    def turn(index: Array, found: tuple[Array, Array, Common, OfSteps]) -> tuple[Array, Array, Common, OfSteps]:
        here, some, rest = _at(kind, index, steps)
        block = Block.of(kind, maps, here, common, some)
        share = _mixed(rest, block.sums)[1]
        return _written(index, found, (block.sums, share, *block.change(-share / block.sums)))

    each = jax.tree.map(lambda leaf: jnp.zeros((size, *leaf.shape)), common)
    start = jnp.ones((size, policies)), jnp.zeros((size, policies)), each, jax.tree.map(jnp.zeros_like, steps[1])
    place = jnp.argsort(order[: len(scored)])
    sums, *slopes = jax.tree.map(lambda leaf: leaf[place], lax.fori_loop(0, blocks, turn, start))
    sums = jnp.where(scored[:, None], sums, 1.0)
    return (_mixed(log_rest, sums)[0], sums), (maps, scenery, scored, log_rest, sums, slopes)


def _mixed_backward(kind: Kind, kept: Any, changes: tuple[Float[Array, " step"], Any]) -> tuple:
    maps, scenery, scored, log_rest, sums, slopes = kept
    change, _ = changes

    def times(leaf: Array) -> Array:
        """Nothing comes of a step that nothing depends on, even where its slopes are no numbers."""
        by = change.reshape(-1, *[1] * (leaf.ndim - 1))
        return jnp.where(by == 0, 0.0, by * leaf)

    share, of_common, of_own = jax.tree.map(times, slopes)
    share = jnp.where(scored[:, None], share, times(_mixed(log_rest, sums)[1]))
    whole = jax.tree.map(lambda it: jnp.sum(it, axis=0), of_common)
    return *nowhere((maps, scenery, scored)), share, whole, of_own


mixed.defvjp(_mixed_forward, _mixed_backward)


def _mixed(log_rest: Array, sums: Array) -> tuple[Float[Array, " step"], Float[Array, "step policy"]]:
    """The mixture over policies, and the share of each in it."""
    each = log_rest - jnp.log(sums)
    total = mix(jnp.zeros(()), each, axis=-1)
    possible = jnp.isfinite(total)
    return total, jnp.where(possible[:, None], jnp.exp(each - jnp.where(possible, total, 0.0)[:, None]), 0.0)


def _in_blocks(kind: Kind, scored: Bool[Array, " step"]) -> tuple[Int[Array, " place"], Int[Array, ""]]:
    """Steps in order, those that are scored first, filled up to whole blocks; and how many blocks hold one."""
    order, at_once = jnp.argsort(~scored, stable=True), _at_once(kind)
    order = jnp.concatenate([order, jnp.zeros(-len(order) % at_once, order.dtype)])
    return order, -(-jnp.sum(scored) // at_once)


def _at_once(kind: Kind) -> int:
    """How many steps a block has."""
    return max(1, CELLS_AT_ONCE // kind.grid.cells)


def _at(kind: Kind, index: Array, steps: Any) -> Any:
    """The steps of a block."""
    size = _at_once(kind)
    return jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, index * size, size), steps)


def _written(index: Array, found: Any, of_block: Any) -> Any:
    """`found` with the results of a block in their place."""
    return jax.tree.map(
        lambda whole, part: lax.dynamic_update_slice_in_dim(whole, part.astype(whole.dtype), index * len(part), 0),
        found,
        of_block,
    )
