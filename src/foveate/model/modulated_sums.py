"""Sums over all cells of salient Gaussians that factors modulate: the normalisers of the models beyond the paper.

    Z_k = sum_z  s(z)^alpha_k  n(z; m_k, v_k)  F(z)
    log F(z) = c . directions(z) + sum_j d_j g(z; z_j) + e log s(z)

The factor F is common to all policies k of a group, and so is the power of the map to those with the same exponent: one
exponential a cell serves them all. A Gaussian is a factor on the rows times one on the columns, so what is left are
products of matrices and vectors (`modulated_kernel.py`), for the scored steps, some at a time (`modulated_blocks.py`).

In single precision (`Steps.in_single_precision`) the logarithm of a sum is good to about 1e-6, in half the time.

The paper's repelled policy, once factors modulate it, is the positive part of the difference of two such Gaussians,
which the loop for processors sums cell by cell (`repelled_loop.py`). In single precision the logarithm of such a sum is
good to about 1e-7 times the sum without what is repelled over that with it: where next to nothing is left digits get
lost.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Bool, Float

from foveate.data.grid import Grid
from foveate.model.directions import HARMONICS, Directions
from foveate.model.factors import Factor, Modulated, SaliencyDrift, same_factors
from foveate.model.history import Array, History, Picture
from foveate.model.log_maps import LogMaps
from foveate.model.model import mix
from foveate.model.modulated_blocks import mixed, sums_of_scored
from foveate.model.modulated_kernel import Common, Kind, Maps, OfSteps, Scenery, sums, upper_bound
from foveate.model.modulated_tiles import available
from foveate.model.places import Places, Trail
from foveate.model.policies import Global, Policy, RepelledGlobal, SalientGaussian, nearest_centre
from foveate.model.steps import Steps, larger_cells

SUMMED = Directions | Places | SaliencyDrift  # the factors that these sums know

# A sum below this (relative to the map's largest cell, with the factor at its largest) may have lost its digits to
# underflow: the definition, which works on logarithms, takes over.
SMALLEST = {"float32": 1e-28, "float64": 1e-280}

MOST_RATIO = 600.0  # of two Gaussians, as a logarithm: still a number, and whatever is repelled so much is gone

# Log of the sum of each policy's weight by its definition.
ByDefinition = Callable[[Sequence[Policy]], Float[Array, "policy path step"]]


def known(policy: Policy) -> bool:
    """Whether these sums serve the policy."""
    if isinstance(policy, Modulated):
        served = isinstance(policy.policy, SalientGaussian | RepelledGlobal)
        return served and all(isinstance(it, SUMMED) for it in policy.factors)
    return isinstance(policy, SalientGaussian)


def _repelled(policies: Sequence[Policy]) -> tuple[bool, ...]:
    return tuple(isinstance(it.base, RepelledGlobal) for it in policies)


def log_sums(policies: Sequence[Policy], steps: Steps, otherwise: ByDefinition) -> list[Float[Array, "path step"]]:
    """Log of the sum of each policy's weight over all cells; `otherwise` does it by definition, where it must."""
    found: dict[int, Array] = {}
    left = list(range(len(policies)))
    while left:  # those with the same factors together
        factors = _factors(policies[left[0]])
        together = [index for index in left if same_factors(_factors(policies[index]), factors)]
        some = [policies[index] for index in together]
        totals = _with_common_factors(some, steps, otherwise)
        found |= {index: totals[..., place] for place, index in enumerate(together)}
        left = [index for index in left if index not in together]
    return [found[index] for index in range(len(policies))]


def _factors(policy: Policy) -> tuple[Factor, ...]:
    return policy.factors if isinstance(policy, Modulated) else ()


def serves_mixture(policies: Sequence[Policy], steps: Steps) -> bool:
    """Whether `log_mixture` can be asked for: all policies have the same factors, and their sums come with slopes."""
    factors = _factors(policies[0])
    return _with_slopes(policies, steps) and all(known(it) and same_factors(_factors(it), factors) for it in policies)


def _in_loops(steps: Steps) -> bool:
    """Whether the loop for processors gives the sums."""
    return jax.default_backend() == "cpu" and not steps.batched


def _with_slopes(policies: Sequence[Policy], steps: Steps) -> bool:
    """Whether one visit gives sums and slopes: by the loop for processors, or by the kernel for GPUs, which knows no
    repulsion."""
    if steps.batched:
        return steps.single and available() and not any(_repelled(policies))
    return _in_loops(steps)


def log_mixture(
    policies: Sequence[Policy], log_rest: Float[Array, "path step policy"], steps: Steps, otherwise: ByDefinition
) -> Float[Array, "path step"]:
    """Log of the sum over policies of exp(log_rest) divided by the policy's sum: the probability of each step, where
    `log_rest` has the choice and the weight of the fixated cell. Value and slopes take one pass over the cells."""
    ready = _Ready.of(policies, steps)
    flat = jax.tree.map(lambda leaf: jnp.reshape(leaf, (steps.real.size, *leaf.shape[2:])),
                        (ready.scenery, ready.own, log_rest - ready.scale))  # fmt: skip
    scored = jnp.ravel(jnp.asarray(steps.real))
    every: Any = mixed(ready.kind, ready.maps, flat[0], scored, flat[2], ready.common, flat[1])
    found, sums = every
    if steps.batched:  # side by side both ways would be taken; sums are nowhere near zero where posteriors lie
        return jnp.reshape(found, steps.real.shape)
    return lax.cond(
        ready.exact(lax.stop_gradient(sums)),
        lambda: jnp.reshape(found, steps.real.shape),
        lambda: mix(jnp.zeros(()), log_rest - jnp.moveaxis(jnp.asarray(otherwise(policies)), 0, -1), axis=-1),
    )


def _with_common_factors(
    policies: Sequence[Policy], steps: Steps, otherwise: ByDefinition
) -> Float[Array, "path step policy"]:
    if any(_repelled(policies)) and not _with_slopes(policies, steps):
        return jnp.moveaxis(jnp.asarray(otherwise(policies)), 0, -1)
    ready = _Ready.of(policies, steps)
    kind, maps, common = ready.kind, ready.maps, ready.common
    if not _with_slopes(policies, steps):
        found = jnp.asarray(lax.map(lambda row: sums(kind, maps, row[0], common, row[1]), (ready.scenery, ready.own)))
    else:
        flat = jax.tree.map(
            lambda leaf: jnp.reshape(leaf, (steps.real.size, *leaf.shape[2:])), (ready.scenery, ready.own)
        )
        every: Any = sums_of_scored(kind, maps, flat[0], jnp.ravel(jnp.asarray(steps.real)), common, flat[1])
        found = jnp.reshape(every, (*steps.real.shape, len(policies)))

    def trusted() -> Array:
        return jnp.log(jnp.maximum(found, SMALLEST[kind.digits])) + ready.scale

    if steps.batched:  # maps without empty cells: sums are nowhere near zero where posteriors lie
        return trusted()
    return lax.cond(ready.exact(found), trusted, lambda: jnp.moveaxis(jnp.asarray(otherwise(policies)), 0, -1))


class _Ready(NamedTuple):
    """All that the kernel is asked with, and the logarithm of what its sums were divided by."""

    kind: Kind
    maps: Maps
    scenery: Scenery
    common: Common
    own: OfSteps
    scale: Float[Array, "path step policy"]

    @classmethod
    def of(cls, policies: Sequence[Policy], steps: Steps) -> "_Ready":
        """For policies with the same factors."""
        factors = _factors(policies[0])
        gaussians, repelled = [_gaussian(it.base) for it in policies], _repelled(policies)
        groups, exponents = _by_exponent(gaussians)
        grid = larger_cells(steps.grid) if steps.larger else steps.grid
        single = steps.single or steps.larger
        trails = [it for it in factors if isinstance(it, Trail) and _in_loops(steps)]
        kind = Kind(
            groups,
            grid,
            "float32" if single else "float64",
            tiles=steps.batched and single and available(),
            spans=tuple(it.span for it in trails),
        )
        maps, largest = _maps(steps, kind, drift=any(isinstance(it, SaliencyDrift) for it in factors))
        steepest = jnp.max(jnp.abs(maps.log_relative), axis=(1, 2), initial=0.0)
        narrow = [it.base.repelling if isinstance(it.base, RepelledGlobal) else jnp.ones(2) for it in policies]
        common = _common(gaussians, factors, trails, exponents, narrow if any(repelled) else [])

        def of_row(row: tuple[Array, History]) -> tuple[Scenery, OfSteps]:
            index, history = row
            own, places = _of_steps(gaussians, factors, trails, history, steps.picture_of(index))
            picture = jnp.broadcast_to(index, places.shape[:1])
            most, trail, in_trail = _along_trails(trails, history)
            bound = lax.stop_gradient(upper_bound(own, steepest[picture]) + most)
            return Scenery(picture, jnp.asarray(history.position_deg)[:, 0], places, bound, trail, in_trail), own

        scenery, own = jax.vmap(of_row)((jnp.asarray(steps.picture), steps.history))
        powers = jnp.stack([jnp.zeros(()) if group is None else exponents[group] for group in groups])
        scale = scenery.bound[..., None] + powers * largest[jnp.asarray(steps.picture)][:, None, None]
        if steps.larger:
            common, more = _on_larger_cells(steps.grid, grid, common, own.centres)
            scale = scale + np.log(steps.grid.cells / grid.cells) + jnp.where(np.array(repelled), 0.0, more)
        if any(repelled):
            wide, narrower = _log_at_nearest(steps.grid, grid, common, own.centres)
            ratio = jnp.exp(jnp.minimum(narrower - wide, MOST_RATIO))
            own = own._replace(ratio=jnp.where(np.array(repelled), ratio, 0.0))
            scale = scale + jnp.where(np.array(repelled), wide, 0.0)
        return cls(kind, maps, scenery, common, own, scale)

    def exact(self, found: Array) -> Bool[Array, ""]:
        """Whether no sum has lost its digits."""
        return jnp.all((found > SMALLEST[self.kind.digits]) & jnp.isfinite(found))


def _on_larger_cells(
    grid: Grid, larger: Grid, common: Common, centres: Float[Array, "path step policy 2"]
) -> tuple[Common, Float[Array, "path step policy"]]:
    """Gaussians as they are on average over the cells that a larger one is made of, and what the logarithm of their
    sums then lacks, other than that each larger cell stands for several.

    The average of exp(-d^2 / 2 v) over places spread with variance u around d is about sqrt(v / w) exp(-d^2 / 2 w) with
    w = v + u: narrow Gaussians do not slip between the centres of larger cells. And Gaussians are
    relative to their value at the nearest cell, which is another one.
    """
    sides, larger_sides = np.asarray(grid.cell_deg), np.asarray(larger.cell_deg)
    spread = (np.square(larger_sides) - np.square(sides)) / 12  # of the centres of the cells of a larger one
    narrow, wide = common.variances, common.variances + spread
    away = [jnp.square(jnp.stack(nearest_centre(it, centres), axis=-1) - centres) for it in (larger, grid)]
    lacking = 0.5 * jnp.log(narrow / wide) - 0.5 * away[0] / wide + 0.5 * away[1] / narrow
    return common._replace(variances=wide, narrow=common.narrow + spread), jnp.sum(lacking, axis=-1)


def _log_at_nearest(
    grid: Grid, summed: Grid, common: Common, centres: Float[Array, "path step policy 2"]
) -> list[Float[Array, "path step policy"]]:
    """Log of the wide and of the narrow Gaussian, as masses of a cell of the grid, at the centre of the cell nearest to
    them on the grid that is summed over."""
    away = jnp.square(jnp.stack(nearest_centre(summed, centres), axis=-1) - centres)
    side = np.log(np.asarray(grid.cell_deg))
    return [jnp.sum(side - 0.5 * jnp.log(2 * jnp.pi * it) - 0.5 * away / it, axis=-1)
            for it in (common.variances, common.narrow)]  # fmt: skip


def _maps(steps: Steps, kind: Kind, drift: bool) -> tuple[Maps, Float[Array, " picture"]]:
    """All maps on the grid of the sums, and the logarithm of the largest cell of each."""
    kept = steps.log_maps
    if kept is None or (kept.log_map.dtype, kept.log_map.shape[1:]) != (kind.digits, kind.grid.shape):
        kept = LogMaps.of(steps.saliency, steps.grid, kind.grid, kind.digits)
    relative = kept.log_relative if drift else jnp.zeros((len(kept.largest), 0, 0), kind.digits)
    return Maps(jnp.asarray(kept.log_map), jnp.asarray(relative)), jnp.asarray(kept.largest)


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


def _gaussian(policy: Policy) -> SalientGaussian:
    """The policy's wide Gaussian, if it is repelled."""
    if isinstance(policy, RepelledGlobal):
        return Global(policy.xi)
    assert isinstance(policy, SalientGaussian)
    return policy


def _common(
    policies: Sequence[SalientGaussian],
    factors: tuple[Factor, ...],
    trails: Sequence[Trail],
    exponents: Float[Array, " group"],
    narrow: Sequence[Array],
) -> Common:
    variance = [jnp.broadcast_to(it.variance, (it.count,)) for it in factors if _as_places(it, trails)]
    fading = [jnp.stack([jnp.asarray(it.strength), jnp.asarray(it.variance), jnp.asarray(it.decay)]) for it in trails]
    return Common(
        variances=jnp.stack([jnp.asarray(it.variances) for it in policies]),
        exponents=exponents,
        place_variance=jnp.concatenate([jnp.zeros(0), *variance]),
        narrow=jnp.stack(narrow) if narrow else jnp.zeros((0, 2)),
        trail=jnp.stack(fading) if fading else jnp.zeros((0, 3)),
    )


def _as_places(factor: Factor, trails: Sequence[Trail]) -> TypeGuard[Places]:
    """Whether a factor is summed place by place."""
    return isinstance(factor, Places) and not any(factor is it for it in trails)


def _along_trails(
    trails: Sequence[Trail], history: History
) -> tuple[Float[Array, " step"], Float[Array, "step trail fixation 2"], Bool[Array, "step trail fixation"]]:
    """What trails add to the log-factor at most, where gaze has been at each step, and whether it was: padded to the
    longest trail."""
    most = jnp.zeros(jnp.shape(history.count))
    longest = max((it.span for it in trails), default=0)
    where = [jnp.zeros((*most.shape, 0, longest, 2))]
    there = [jnp.zeros((*most.shape, 0, longest), bool)]
    for trail in trails:
        strength, places = jax.vmap(trail.places)(history)
        most = most + jnp.maximum(strength, 0).sum(axis=1)
        missing = longest - trail.span
        where.append(jnp.pad(places, ((0, 0), (0, missing), (0, 0)))[:, None])
        there.append(jnp.pad(jax.vmap(trail.there)(history), ((0, 0), (0, missing)))[:, None])
    return most, jnp.concatenate(where, axis=1), jnp.concatenate(there, axis=1)


def _of_steps(
    policies: Sequence[SalientGaussian],
    factors: tuple[Factor, ...],
    trails: Sequence[Trail],
    history: History,
    picture: Picture,
) -> tuple[OfSteps, Float[Array, "step place 2"]]:
    """What a row of steps has for itself, and the places that attract or repel."""
    steps = len(jnp.asarray(history.count))
    harmonics = jnp.zeros((steps, 2 * HARMONICS if any(isinstance(it, Directions) for it in factors) else 0))
    strength: list[Array] = [jnp.zeros((steps, 0))]
    place: list[Array] = [jnp.zeros((steps, 0, 2))]
    drift: list[Array] = []
    for factor in factors:
        if isinstance(factor, Directions):
            harmonics = harmonics + jax.vmap(lambda h, it=factor: it.harmonics(h, picture))(history)
        elif _as_places(factor, trails):
            how_much, where = jax.vmap(factor.places)(history)
            strength.append(how_much)
            place.append(where)
        elif isinstance(factor, SaliencyDrift):
            drift.append(jax.vmap(lambda h, it=factor: it.exponent(h, picture))(history))
    centres = [jnp.broadcast_to(jax.vmap(lambda h, it=it: it.centre(h, picture))(history), (steps, 2))
               for it in policies]  # fmt: skip
    own = OfSteps(
        centres=jnp.stack(centres, axis=1),
        harmonics=harmonics,
        strength=jnp.concatenate(strength, axis=1),
        drift=sum(drift, jnp.zeros(steps))[:, None] if drift else jnp.zeros((steps, 0)),
        ratio=jnp.zeros((steps, 0)),
    )
    return own, jnp.concatenate(place, axis=1)
