"""What the paper says, what its released files do and what is done here: eighteen differences, with their evidence.

A function a row, from potsdam35's folder, and nothing is fitted: where a model needs parameters, they are those of the
recovery experiment. The released code is not in that folder: where it alone shows a difference, that is said.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.signal import fftconvolve
from scipy.stats import norm

from foveate.data.dataset import Dataset
from foveate.data.density import density_maps
from foveate.data.grid import PUBLISHED_PX_DEG
from foveate.data.readers.potsdam35 import PUBLISHED_BANDWIDTH_DEG, potsdam35_leave_one_out, read_potsdam35, released_px
from foveate.data.readers.released import Released, SideOfFold, read_released
from foveate.evaluate.saccades import Saccades, angle_between_deg, autocorrelation, pooled_autocorrelation
from foveate.evaluate.statistics import observer_moments_deg
from foveate.experiments.recovery import TRUTHS
from foveate.model.catalogue import PUBLISHED_FULL, PUBLISHED_RIVALS, from_published
from foveate.model.history import Picture
from foveate.model.order import log_mass_in_order
from foveate.model.policies import REPELLED_WEIGHT, Policy
from foveate.model.steps import Steps

CODE_ONLY = "Seen in the released code; cannot be shown from the data."
TRUTH: dict[str, Any] = TRUTHS["full"]  # variances in px^2

# Paper | released files | here.
ROWS = """
Eq. 4: `max(s n_xi - n_eps, 0)` | `s max(n_xi - n_{eps/4}, 0)`: `cov_ratio`, not in the paper | both, by name, or none
the scale of `s` in Eq. 4 is not stated, and it matters | - | `s` relative to uniform (mean 1) in the printed form
Gaussian priors on b and s0 | first draws truncated to positive, conditionals not; failed draws restart | as printed
inverse gamma prior on each epsilon | the prior energy ends in `beta_eps / xi_y` | as printed
HMC with the energy's gradient | a picture's gradient is summed over both axes: one number for both | the gradient
8 leapfrog steps of 0.03 and 0.5 | 10 in all but Local Choice; of 1.5 in Local Saliency | adapted, or the paper's
whole scan paths | no first and no last fixation of any path | all fixations; every model is scored from the third on
- | positions are `x * 64 / x_max`, but the maps tile x_min to x_max | `(x - x_min) / (x_max - x_min) * 64`, by floor
test pictures | beside the test fixations of picture k stands the map of picture k - 1 (cyclic) | matched by picture
NSS of the likelihood's map | rho is evaluated at the candidate cell, not at the fixation | rho_t from the history only
amplitudes in degrees | the notebook scales rows by the x range and columns by the y range | true degrees
saliency is the empirical density | maps of all observers, the scored one included | offered, and maps without them
directions of saccades | `arctan2(dcol, drow)` in pixels: axes swapped, pixels not square | true angles as seen
simulated paths | without the two initial draws | first two from `s` (or observed), kept, not scored
- | the full model is scored from the third remaining fixation, the others from the second | all from the third
- | the notebook pairs parameters by observer with fixations by position in a directory listing | by observer
AUC, R^2, autocorrelation | no code | defined on the page on scores; R^2 and autocorrelation in both usual ways
xi above epsilon on both axes | not enforced | optional (`ordered=True`); the mass that violates it is reported
"""


@dataclass(frozen=True)
class Finding:
    """A row: what paper, released files and this package say, and the evidence, in words and as numbers."""

    number: int
    paper: str
    released: str
    here: str
    evidence: str
    values: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Material:
    """What the rows look at: the data as recorded (`fine`: with the maps as published) and the released files."""

    data: Dataset
    fine: Dataset
    released: Released

    @classmethod
    def read(cls, folder: str | Path | None = None) -> "Material":
        """All of it from potsdam35's folder."""
        return cls(read_potsdam35(folder), read_potsdam35(folder, cells=128), read_released(folder))


def _finding(number: int, evidence: str, **values: Any) -> Finding:
    """The row of this number; `evidence` names its values in braces."""
    paper, released, here = ROWS.strip().split("\n")[number - 1].split(" | ")
    return Finding(number, paper, released, here, evidence.format(**values), {k: float(it) for k, it in values.items()})


def repelled_shares(policy: Policy, data: Dataset, scale: float = 1.0) -> dict[str, float]:
    """Shares that a policy forbids, means over all scored steps: of cells, of the map's mass, of fixations made next.

    `scale` multiplies the maps that the policy sees. A cell is forbidden where the policy leaves its least weight.
    """
    steps, shares = Steps.of(data, short="skip"), []
    weights = jax.jit(lambda policy, *seen: jax.vmap(policy.log_weight, (0, None))(*seen))
    for path, real in enumerate(np.asarray(steps.real)):
        values = np.asarray(steps.saliency)[steps.picture[path]]
        with jax.enable_x64(True):
            picture = replace(Picture.whole(steps.grid, values), saliency=values * scale)
            history = jax.tree.map(lambda it, path=path: it[path], steps.history)
            weight = weights(policy, history, picture) - picture.log_saliency
        least = np.asarray(weight) < np.log(REPELLED_WEIGHT) + 1e-6
        at_next = least[np.arange(len(real)), steps.row[path], steps.column[path]]
        shares.append(np.stack([least.mean(axis=(1, 2)), (least * values).sum(axis=(1, 2)), at_next])[:, real])
    return dict(zip(("cells", "mass", "fixations"), np.concatenate(shares, axis=1).mean(axis=1).tolist(), strict=True))


def _bits(data: Dataset, fixations: slice = slice(None)) -> np.ndarray:
    """Gain over uniform of the maps at all fixations, or at some of each path, in bits."""
    bits = np.log2(data.maps.at(data.paths) * data.maps.grid.cells)[:, fixations]
    return bits[np.isfinite(bits)]


def repulsion_form(material: Material) -> Finding:
    """Which Gaussian repels."""
    words = """ With the recovery experiment's variances the released form forbids {cells:.1%} of the cells, \
{mass:.1%} of the map's mass and {fixations:.1%} of the saccades that were made: those are left to the local policy."""
    return _finding(1, CODE_ONLY + words, **repelled_shares(from_published("full", **TRUTH).policies[1], material.data))


def repulsion_scale(material: Material) -> Finding:
    """The scale of s in the printed form."""
    printed, data = from_published("full", **TRUTH, repulsion="printed").policies[1], material.data
    relative = {f"relative_{name}": it for name, it in repelled_shares(printed, data).items()}
    words = """With s summing to 1 and the recovery experiment's variances the printed form forbids {cells:.1%} of the \
cells, {mass:.1%} of the map's mass and {fixations:.1%} of the saccades that were made; with s relative to uniform \
{relative_cells:.1%}, {relative_mass:.1%} and {relative_fixations:.1%}. What either predicts needs fits."""
    return _finding(2, words, **repelled_shares(printed, data, 1 / data.maps.grid.cells), **relative)


def signs_of_priors(_: Material) -> Finding:
    """Prior mass of b and s0 below zero."""
    priors: dict[str, Any] = {it: PUBLISHED_FULL[it] for it in ("b", "s0")}
    words = """ Under the full model's published priors P(b < 0) is {b:.2%} and P(s0 < 0) is {s0:.1%}: truncation \
takes little of the prior away, but every chain starts with b above 0."""
    return _finding(3, CODE_ONLY + words, **{k: norm.cdf(0, it.mean, it.variance**0.5) for k, it in priors.items()})


def prior_of_epsilon(_: Material) -> Finding:
    """The inverse gamma prior on epsilon's second axis: its term scale / epsilon, with the scale 80 px^2."""
    words = """ At the recovery experiment's values that term is {released:.2f}, not {printed:.2f} nats; without \
epsilon in it, nothing in the prior keeps this variance away from zero."""
    return _finding(4, CODE_ONLY + words, printed=80 / TRUTH["epsilon"][1], released=80 / TRUTH["xi"][1])


def gradient(_: Material) -> Finding:
    """The gradient that HMC follows."""
    return _finding(5, f"{CODE_ONLY} Chains stay valid (the energy itself accepts or rejects); proposals are poor.")


def leapfrog(_: Material) -> Finding:
    """The steps of HMC."""
    return _finding(6, f"{CODE_ONLY} The paper says that step and number were tuned for an acceptance of 100 %.")


def dropped_fixations(material: Material) -> Finding:
    """First and last fixation of every path."""
    paths, px = material.data.paths, np.stack(released_px(material.data.paths))
    inner = {(it.observer, it.picture): px[:, index, 1 : len(it) - 1] for index, it in enumerate(paths)}
    kept, same, count = 0, 0, 0
    for side in (fold.test for fold in material.released.folds):
        for picture, found in zip(side.pictures, side.fixations_px, strict=True):
            for observer, path in enumerate(found, start=1):
                own = inner[observer, picture]
                same += path.shape == own.shape and np.allclose(path, own, rtol=0, atol=1e-4)  # x_max: four digits
                kept, count = kept + path.shape[1], count + 1
    words = """Of {recorded:,.0f} recorded fixations {kept:,.0f} are in the released files; {same:,.0f} of the \
{paths:,.0f} released paths are the recorded ones without their first and last fixation."""
    return _finding(7, words, recorded=paths.fixations, kept=kept, same=same, paths=count)


def coordinates(material: Material) -> Finding:
    """Where fixations lie on the maps."""
    maps, paths, side = material.fine.maps, material.fine.paths, material.fine.maps.grid.rows
    picture = np.repeat(maps.index_of(paths.picture.tolist()), paths.length)
    px = np.stack(released_px(paths, cells=side))[:, paths.real]
    cells = {name: np.clip(to(px), 0, side - 1).astype(int) for name, to in (("round", np.round), ("floor", np.floor))}
    bits = {name: np.log2(maps.values[picture, row, column] * side**2).mean() for name, (row, column) in cells.items()}
    true = np.stack([paths.y_deg / paths.extent.height_deg, paths.x_deg / paths.extent.width_deg])[:, paths.real]
    off_px = (px / side - true) * 64
    words = """Positions are up to {most_px:.2f} px ({most_deg:.2f} deg) off, {mean_px:.2f} px on average. Gain of the \
published maps over uniform (128 x 128, all fixations): {round:.3f} bits as released, {true:.3f} here. A part of it is \
the released code's rounding, not the mapping: floored, the released positions gain {floor:.3f} bits."""
    off = {"most_px": off_px.max(), "mean_px": off_px.mean(), "most_deg": off_px[1].max() * PUBLISHED_PX_DEG[1]}
    return _finding(8, words, **bits, **off, true=_bits(material.fine).mean())


def maps_of_tests(material: Material) -> Finding:
    """Which maps stand beside the test fixations."""
    maps, values = material.data.maps, {}
    for kind, before in (("train", 0), ("test", 1)):
        sides: list[SideOfFold] = [getattr(fold, kind) for fold in material.released.folds]
        own = maps.index_of(it for side in sides for it in side.pictures)
        beside = np.concatenate([side.maps for side in sides])
        like = np.corrcoef(beside.reshape(len(own), -1), maps.values.reshape(len(maps), -1))[: len(own), len(own) :]
        values |= {kind: len(own), f"{kind}_found": np.sum(like.argmax(axis=1) == (own - before) % len(maps))}
        values |= {"best": like.max(axis=1).min(), "own": like[range(len(own)), own].mean()}
    known = {name: it for side in sides for name, it in zip(side.map_pictures, side.maps, strict=True)}
    mended = [replace(side, maps=np.stack([known[name] for name in side.pictures])) for side in sides]
    given, right = (np.concatenate([_bits(it.dataset()) for it in some]).mean() for some in (sides, mended))
    words = """{test_found:.0f} of {test:.0f} test maps are most like the published map of the picture before, with a \
correlation of {best:.5f} or more (with the own picture's {own:.2f} on average), {train_found:.0f} of {train:.0f} \
training maps like their own. Test fixations gain {given:.3f} bits over uniform as paired, {right:.3f} put right."""
    return _finding(9, words, **values, given=given, right=right)


def choice_in_nss(_: Material) -> Finding:
    """Where rho is evaluated for the NSS."""
    return _finding(10, f"{CODE_ONLY} With a rho of its own for every cell a map need not sum to 1.")


def amplitudes(material: Material) -> Finding:
    """Amplitudes in degrees."""
    paths, true = material.data.paths, Saccades.of(material.data.paths)
    px, range_deg = released_px(paths), (paths.extent.width_deg, paths.extent.height_deg)
    by_row, by_column = (np.diff(it, axis=1)[true.real] * deg / 64 for it, deg in zip(px, range_deg, strict=True))
    found, factor = np.hypot(by_row, by_column), np.array(range_deg) / 64 / PUBLISHED_PX_DEG
    words = """By the notebook's formula vertical saccades come out {vertical:.2f} times as long as they are, \
horizontal ones {horizontal:.2f} times: a mean amplitude of {found_deg:.2f}, not {true_deg:.2f} deg, a mean error of \
{error_deg:.2f} deg a saccade."""
    values = {"true_deg": true.amplitudes_deg.mean(), "error_deg": np.abs(found - true.amplitudes_deg).mean()}
    return _finding(11, words, **values, found_deg=found.mean(), vertical=factor[0], horizontal=factor[1])


def own_fixations(material: Material) -> Finding:
    """The scored observer's part in the maps."""
    data, fine = material.data, material.fine
    built = density_maps(fine.paths, fine.maps.grid, PUBLISHED_BANDWIDTH_DEG)
    without = potsdam35_leave_one_out(data.paths)
    bits = [_bits(Dataset(data.paths.select([it]), maps), slice(2, None)) for it, maps in without.items()]
    words = """The density of all observers' fixations is the published maps (to {off:.0e} of a peak). From the third \
fixation on (64 x 64) they gain {all:.3f} bits over uniform; made without the scored observer {without:.3f}."""
    values = {"all": _bits(data, slice(2, None)).mean(), "without": np.concatenate(bits).mean()}
    return _finding(12, words, **values, off=np.abs(built.values - fine.maps.values).max() / fine.maps.values.max())


def directions(material: Material) -> Finding:
    """Directions of saccades."""
    true, (row, column) = Saccades.of(material.data.paths), released_px(material.data.paths)
    angle = np.degrees(np.arctan2(np.diff(column), np.diff(row)))[np.isfinite(true.direction_deg)]
    values = {f"at_{at:.0f}": np.mean(angle_between_deg(angle, at) <= 15) for at in (0.0, 90.0, 180.0, 270.0)}
    values |= true.summary() | {"off_deg": angle_between_deg(90 - angle - true.directions_deg, 0.0).mean()}
    words = """Within 15 deg of right, up, left and down go {share_right:.1%}, {share_up:.1%}, {share_left:.1%} and \
{share_down:.1%} of the saccades; in the released way {at_0:.1%}, {at_90:.1%}, {at_180:.1%} and {at_270:.1%} lie at \
0, 90, 180 and 270 deg, where 0 is up and 90 right. Apart from the swap, angles are {off_deg:.1f} deg off on average."""
    return _finding(13, words, **values)


def initial_draws(material: Material) -> Finding:
    """The first two fixations, drawn from the map."""
    maps, amplitude_deg = material.data.maps, Saccades.of(material.data.paths).amplitude_deg
    y, x = ((np.arange(2 * n - 1) - n + 1) * it for n, it in zip(maps.grid.shape, maps.grid.cell_deg, strict=True))
    apart = [np.sum(fftconvolve(it, it[::-1, ::-1]) * np.hypot(y[:, None], x)) for it in maps.values]
    words = """ Two places drawn from a map lie {drawn_deg:.1f} deg apart on average; the first saccades \
made span {first_deg:.1f} deg, all of them {all_deg:.1f}."""
    drawn, first, made = np.mean(apart), np.nanmean(amplitude_deg[:, 0]), np.nanmean(amplitude_deg)
    return _finding(14, CODE_ONLY + words, drawn_deg=drawn, first_deg=first, all_deg=made)


def scored_steps(material: Material) -> Finding:
    """Which steps are scored."""
    tests, data = (fold.test for fold in material.released.folds), material.data
    length = np.array([path.shape[1] for side in tests for paths in side.fixations_px for path in paths])
    counts = {"full": np.maximum(length - 2, 0).sum(), "others": np.maximum(length - 1, 0).sum()}
    words = """With the released files the full model is scored on {full:,.0f} fixations, the others on {others:,.0f}; \
here all on {here:,.0f}. The recorded third fixations, on which there all but the full model are scored, are easier: \
the map alone gains {third:.3f} bits over uniform at them, {later:.3f} at later ones."""
    gains = {"third": _bits(data, slice(2, 3)).mean(), "later": _bits(data, slice(3, None)).mean()}
    return _finding(15, words, **counts, **gains, here=Steps.of(data, short="skip").count)


def pairing_of_observers(material: Material) -> Finding:
    """How much observers differ, whom a wrong pairing would compare."""
    mean_deg, _ = observer_moments_deg(Saccades.of(material.data.paths))
    words = f"{CODE_ONLY} Observers' mean amplitudes range from {{least_deg:.1f}} to {{most_deg:.1f}} deg."
    return _finding(16, words, least_deg=mean_deg.min(), most_deg=mean_deg.max())


def undefined_scores(material: Material) -> Finding:
    """Scores that the paper shows and no released code computes."""
    ways = {"paths": autocorrelation, "pooled": pooled_autocorrelation}
    words = """Nothing to compare with. Definitions matter: the autocorrelation of recorded amplitudes at lag 1 is \
{paths:.3f} as a mean over paths and {pooled:.3f} pooled."""
    return _finding(17, words, **{name: way(Saccades.of(material.data.paths), 1)[1] for name, way in ways.items()})


def order_of_variances(_: Material) -> Finding:
    """Prior mass where epsilon is not below xi."""
    full, rivals = (-np.expm1(log_mass_in_order(it)) for it in (PUBLISHED_FULL, PUBLISHED_RIVALS))
    words = (
        " {full:.1%} (full model) and {rivals:.1%} (Local and Fixed Choice) of the published priors' mass violate it."
    )
    return _finding(18, CODE_ONLY + words, full=full, rivals=rivals)


FINDINGS: tuple[Callable[[Material], Finding], ...] = (
    *(repulsion_form, repulsion_scale, signs_of_priors, prior_of_epsilon, gradient, leapfrog),
    *(dropped_fixations, coordinates, maps_of_tests, choice_in_nss, amplitudes, own_fixations),
    *(directions, initial_draws, scored_steps, pairing_of_observers, undefined_scores, order_of_variances),
)
