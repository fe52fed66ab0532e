"""Models by name: the published ones, with published or weakly informative priors, in degrees or in the paper's pixels,
and the recommended one beyond them."""

from collections.abc import Callable
from inspect import signature
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from foveate.data.grid import PUBLISHED_PX_DEG, deg2_from_px2, px2_from_deg2
from foveate.errors import InputError, instead_of, some_of
from foveate.model.choices import Choice, FixedChoice, OnlyPolicy, SaliencyLevelChoice, SaliencyRatioChoice
from foveate.model.composed import RECOMMENDED, composed
from foveate.model.defaults import EPSILON, WEAK, WEAK_LEVEL, WEAK_RATIO, XI
from foveate.model.model import Model
from foveate.model.policies import Global, Local, Policy, PrintedRepelledGlobal, RepelledGlobal, StaticSaliency
from foveate.model.priors import Beta, InverseGamma, Normal, Prior

Repulsion = Literal["released", "printed", "none"]
Priors = Literal["weak", "published"]

# The paper's Local Choice takes saliency as a probability per cell of its 64 x 64 grid; ours is relative to uniform.
PUBLISHED_CELLS = 64 * 64


def _inverse_gamma_px2(shape: float, scale_px2: float) -> InverseGamma:
    """IG(shape, scale) on px^2 as a prior on deg^2: if v_px ~ IG(a, B), then k^2 v_px ~ IG(a, B k^2)."""
    return InverseGamma(shape, scale_px2 * np.square(PUBLISHED_PX_DEG))


PUBLISHED_FULL: dict[str, Prior] = {
    "epsilon": _inverse_gamma_px2(3, 80),
    "xi": _inverse_gamma_px2(3, 600),
    "b": Normal(3.5, 1.0),
    "s0": Normal(1.2, 1.0),
}
PUBLISHED_RIVALS: dict[str, Prior] = {
    "epsilon": _inverse_gamma_px2(0.2, 25),
    "xi": _inverse_gamma_px2(0.5, 200),
    "b": Normal(3000 / PUBLISHED_CELLS, 5e5 / PUBLISHED_CELLS**2),
    "s0": Normal(9e-4 * PUBLISHED_CELLS, 1e-7 * PUBLISHED_CELLS**2),
    "rho": Beta(4.0, 4.0),
}


def _global_policy(repulsion: Repulsion, xi: ArrayLike, epsilon: ArrayLike) -> Policy:
    forms: dict[str, Callable[[], Policy]] = {
        "released": lambda: RepelledGlobal(xi, epsilon),
        "printed": lambda: PrintedRepelledGlobal(xi, epsilon),
        "none": lambda: Global(xi),
    }
    if repulsion not in forms:
        raise InputError(f"repulsion = {repulsion!r}: there are {some_of(list(forms))}.")
    return forms[repulsion]()


def _two_policies(
    name: str,
    choice: Choice,
    repulsion: Repulsion,
    epsilon: ArrayLike,
    xi: ArrayLike,
    priors: dict[str, Prior],
    ordered: bool,
) -> Model:
    policies = (Local(epsilon), _global_policy(repulsion, xi, epsilon))
    names = {"epsilon", "xi", *(vars(choice))}
    return Model(policies, choice, {key: prior for key, prior in priors.items() if key in names}, name, ordered)


def _pick(priors: Priors, published: dict[str, Prior], weak: dict[str, Prior]) -> dict[str, Prior]:
    if priors not in ("weak", "published"):
        raise InputError(f"priors = {priors!r}: there are 'weak' and 'published'.")
    return published if priors == "published" else weak


def full(
    *,
    epsilon: ArrayLike = EPSILON,
    xi: ArrayLike = XI,
    b: float = 0.3,
    s0: float = 3.0,
    repulsion: Repulsion = "released",
    priors: Priors = "weak",
    ordered: bool = False,
) -> Model:
    """The Local and Global Attention model: the choice depends on s_{t-1} / s_{t-2} (Eqs. 2 to 7).

    `ordered` restricts the prior of this and the next two models to epsilon below xi on both axes (after Eq. 3).
    """
    chosen = _pick(priors, PUBLISHED_FULL, WEAK | WEAK_RATIO)
    return _two_policies("full", SaliencyRatioChoice(b, s0), repulsion, epsilon, xi, chosen, ordered)


def local_choice(
    *,
    epsilon: ArrayLike = EPSILON,
    xi: ArrayLike = XI,
    b: float = 0.3,
    s0: float = 3.0,
    repulsion: Repulsion = "released",
    priors: Priors = "weak",
    ordered: bool = False,
) -> Model:
    """The choice depends on the saliency of the present fixation alone (Eq. 9)."""
    chosen = _pick(priors, PUBLISHED_RIVALS, WEAK | WEAK_LEVEL)
    return _two_policies("local_choice", SaliencyLevelChoice(b, s0), repulsion, epsilon, xi, chosen, ordered)


def fixed_choice(
    *,
    epsilon: ArrayLike = EPSILON,
    xi: ArrayLike = XI,
    rho: float = 0.5,
    repulsion: Repulsion = "released",
    priors: Priors = "weak",
    ordered: bool = False,
) -> Model:
    """The local policy with a fixed probability rho."""
    chosen = _pick(priors, PUBLISHED_RIVALS, WEAK)
    return _two_policies("fixed_choice", FixedChoice(rho), repulsion, epsilon, xi, chosen, ordered)


def local_saliency(*, xi: ArrayLike = XI, priors: Priors = "weak") -> Model:
    """One policy: the map seen through a Gaussian around the gaze (Eq. 10)."""
    chosen = _pick(priors, PUBLISHED_RIVALS, WEAK)
    return Model((Global(xi),), OnlyPolicy(), {"xi": chosen["xi"]}, "local_saliency")


def saliency_baseline() -> Model:
    """Every fixation drawn from the map; there is nothing to fit."""
    return Model((StaticSaliency(),), OnlyPolicy(), {}, "saliency_baseline")


def wayfarer(*, durations: bool = True, priors: Priors = "weak", **values: ArrayLike) -> Model:
    """The recommended model, beyond the paper: four policies, factors on all of them, a choice by features.

    Gaze stays near, roams, carries on or returns (`SalientLocal`, `SalientGlobal`, `Momentum`, `Return`, each with
    one variance for both axes, and all with one exponent on saliency). Directions, turns, the place that is being
    looked at, those of the 24 fixations before and a map that matters less as viewing goes on count whichever decides;
    the choice depends on the last two amplitudes, the duration, the saliency and the fixation's number.
    `durations=False` leaves the duration out, for data that do not say it. `values` are those of parameters, by name.
    """
    if _pick(priors, {}, WEAK) is not WEAK:
        raise InputError("priors = 'published': model 'wayfarer' is not in the paper; its priors are 'weak'.")
    return composed(RECOMMENDED, name="wayfarer", durations=durations).with_parameters(values)


PUBLISHED = ("full", "local_choice", "fixed_choice", "local_saliency", "saliency_baseline")  # those of the paper

CATALOGUE: dict[str, Callable[..., Model]] = {
    "full": full,
    "local_choice": local_choice,
    "fixed_choice": fixed_choice,
    "local_saliency": local_saliency,
    "saliency_baseline": saliency_baseline,
    "wayfarer": wayfarer,
}

TITLES = {
    "full": "Full",
    "local_choice": "Local Choice",
    "fixed_choice": "Fixed Choice",
    "local_saliency": "Local Saliency",
    "saliency_baseline": "Saliency Baseline",
    "wayfarer": "Wayfarer",
}


def named_model(name: str, **settings) -> Model:
    """The catalogue's model of this name; `settings` are its parameters, its repulsion and its priors."""
    if name not in CATALOGUE:
        raise InputError(f"no model {name!r}; {instead_of(name, CATALOGUE)}")
    taken = signature(CATALOGUE[name]).parameters.values()
    known = [it.name for it in taken if it.kind is not it.VAR_KEYWORD]
    anything = len(known) < len(taken)  # the model itself refuses parameters that it does not have
    unknown = [setting for setting in settings if setting not in known and not anything]
    if unknown:
        raise InputError(
            f"model {name!r} has no setting {some_of(unknown)}; it has {some_of(known, 10) if known else 'none'}."
        )
    return CATALOGUE[name](**settings)


def _published_scale(by_level: bool, parameter: str) -> float:
    """Factor from the published value of a choice parameter to ours; `by_level`: the choice reads H W s."""
    if not by_level:
        return 1.0
    return {"b": 1 / PUBLISHED_CELLS, "s0": float(PUBLISHED_CELLS)}.get(parameter, 1.0)


def from_published(name: str, **values) -> Model:
    """The model of this name with parameter values as the paper gives them: variances (row, column) in px^2.

    Local Choice's b and s0 are for saliency as a probability per cell of the paper's 64 x 64 grid. Priors are the
    published ones, unless `priors` says otherwise; `repulsion` may be given too.
    """
    settings = {key: values.pop(key) for key in ("repulsion", "priors", "ordered") if key in values}
    ours = {
        key: deg2_from_px2(value)
        if np.shape(value) == (2,)
        else _published_scale(name == "local_choice", key) * np.asarray(value)
        for key, value in values.items()
    }
    published = {} if name == "saliency_baseline" else {"priors": "published"}
    return named_model(name, **ours, **(published | settings))


def to_published(fitted: Model) -> dict[str, tuple[float, float] | float]:
    """The model's parameter values as the paper gives them: the inverse of `from_published`."""
    by_level = isinstance(fitted.choice, SaliencyLevelChoice)
    return {
        key: px2_from_deg2(value) if np.ndim(value) else float(value) / _published_scale(by_level, key)
        for key, value in fitted.parameters.items()
    }
