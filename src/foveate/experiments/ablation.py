"""An ablation: what each mechanism adds to the paper's model, and what the recommended one loses without it.

Every row is a model, fitted to each observer without the pictures of each fold and judged by the posterior predictive
bits of those pictures. Its difference from its base is paired by observer and picture. The structure of the recommended
model was chosen on folds 1 to 3 of potsdam35, so that folds 4 and 5 confirm it; all are shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from foveate.errors import InputError, some_of
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import FittedFolds
from foveate.evaluate.folds import potsdam35_folds
from foveate.evaluate.paired import Estimate, StepScores, two_way
from foveate.evaluate.predictive import held_out_bits
from foveate.inference.diagnosis import LARGEST_PARETO_K
from foveate.model.catalogue import TITLES, named_model
from foveate.model.composed import PAPER, RECOMMENDED, composed
from foveate.model.model import Model

SAMPLER = "laplace"
# Predictions average over draws and need fewer of them than a posterior's own numbers: weighted draws from Laplace's
# approximation at the tops that climbs found.
SAMPLER_SETTINGS = {"moves": 0, "effective_draws": 60, "draws": 64}
LEVEL = 0.95
FULL, BEST = "full", "wayfarer"

# Folds on which the structure was chosen, and those that confirm it.
FOLDS: dict[str, tuple[int, ...]] = {"1 to 3": (1, 2, 3), "4 and 5": (4, 5), "all": ()}

WORDS = {
    "anisotropic": "a variance for each axis",
    "salient_local": "salient local steps",
    "exponent": "exponent on saliency",
    "repulsion": "repulsion",
    "heavy_tail": "heavy tail",
    "momentum": "momentum",
    "return": "return",
    "centre": "centre bias",
    "floor": "uniform floor",
    "cardinal": "directions",
    "turning": "turns",
    "cardinal_peaks": "narrow peaks of directions",
    "turning_peak": "narrow peaks straight on and back",
    "here": "the place looked at",
    "memory": "memory of 24 fixations",
    "drift": "drift of saliency",
    "ratio": "choice by the ratio",
    "features": "choice by features",
}

# Mechanisms that are added to the paper's model, those whose global policy must not be repelled, and those of the
# recommended one, each in the order of the table.
ADDED = (
    "salient_local", "momentum", "return", "here", "cardinal", "cardinal_peaks", "turning", "turning_peak", "memory",
    "drift", "features", "centre", "floor",
)  # fmt: skip
UNREPELLED = ("exponent", "heavy_tail")
REMOVED = (
    "salient_local", "exponent", "momentum", "return", "here", "cardinal", "cardinal_peaks", "turning", "turning_peak",
    "memory", "drift", "features",
)  # fmt: skip
EXTRA = ("anisotropic", "ratio", "heavy_tail", "centre", "floor")  # on top of it, if they are asked for


@dataclass(frozen=True, eq=False)
class Row:
    """A model of the ablation: what it is called, what it is compared with, and where it stands in the table."""

    name: str
    title: str
    group: str  # "reference", "full" or "wayfarer"
    base: str | None  # the row that it is compared with
    model: Model


def ablation_rows(durations: bool = True) -> dict[str, Row]:
    """All rows by name; `durations=False` for data that do not say how long fixations lasted."""
    rows = [Row(name, TITLES[name], "reference", None, named_model(name)) for name in
            ("saliency_baseline", "local_saliency")]  # fmt: skip

    def add(group: str, name: str, title: str, base: str | None, mechanisms: frozenset[str]) -> None:
        rows.append(Row(name, title, group, base, composed(mechanisms, name=name, durations=durations)))

    bare, bare_name = PAPER - {"repulsion"}, f"{FULL}-repulsion"
    add(FULL, FULL, TITLES[FULL], None, PAPER)
    add(FULL, bare_name, f"- {WORDS['repulsion']}", FULL, bare)
    for it in UNREPELLED:
        add(FULL, f"{bare_name}+{it}", f"- repulsion + {WORDS[it]}", bare_name, bare | {it})
    for it in ADDED:
        add(FULL, f"{FULL}+{it}", f"+ {WORDS[it]}", FULL, PAPER | {it})
    add(BEST, BEST, TITLES[BEST], None, RECOMMENDED)
    for it in REMOVED:
        add(BEST, f"{BEST}-{it}", f"- {WORDS[it]}", BEST, RECOMMENDED - {it})
    for it in EXTRA:
        add(BEST, f"{BEST}+{it}", f"+ {WORDS[it]}", BEST, RECOMMENDED | {it})
    return {row.name: row for row in rows}


def chosen_rows(names: str, durations: bool = True) -> dict[str, Row]:
    """The rows that were asked for ("all": those of the table without extras), with those that they are compared with.

    In the order of the table.
    """
    known = ablation_rows(durations)
    extras = {f"{BEST}+{it}" for it in EXTRA}
    asked = [it.strip() for it in names.split(",") if it.strip()]
    if names.strip() == "all":
        asked = [name for name in known if name not in extras]
    unknown = [name for name in asked if name not in known]
    if unknown or not asked:
        raise InputError(f"no row {some_of(unknown) or repr(names)} of the ablation; there are {', '.join(known)}.")
    wanted = set(asked)
    while needed := {known[name].base for name in wanted} - wanted - {None}:
        wanted |= {it for it in needed if it is not None}
    return {name: row for name, row in known.items() if name in wanted}


@dataclass(frozen=True, eq=False)
class Ablation:
    """The judged rows with one kind of maps: `table` by row and folds, `observers` by observer, `fits` one by one."""

    table: pd.DataFrame
    observers: pd.DataFrame
    fits: pd.DataFrame
    steps: int


def judge_rows(
    validation: CrossValidation,
    rows: Mapping[str, Row],
    draws: int,
    told: Callable[[str, float, float], None] = lambda words, done, total: None,
) -> Ablation:
    """All numbers of an ablation whose fits are there."""
    total, done = len(rows) * len(validation.chosen_folds) * len(validation.data), 0

    def tell(model: str, fold: int, observer: Any) -> None:
        nonlocal done
        told(f"scores of {model}, fold {fold}, observer {observer}", done, total)
        done += 1

    bits, fits = {}, []
    for name in rows:
        fitted = FittedFolds.of(validation.fits, name, draws)
        fits += fitted.rows()
        bits[name] = held_out_bits(validation, fitted, tell)
    of_fits, lines, observers = pd.DataFrame(fits), [], []
    for name, row in rows.items():
        spent = _spent(of_fits, name)
        for folds, which in _fold_sets(validation).items():
            mine = _within(bits[name], which)
            theirs = None if row.base is None else _within(bits[row.base], which)
            about = {"row": name, "title": row.title, "group": row.group, "base": row.base, "folds": folds}
            lines.append(about | _estimated(mine, theirs) | {"numbers": len(row.model.labels)} | spent)
            for who, own in mine.groupby("observer", sort=False):
                observers.append(
                    {"row": name, "folds": folds, "observer": who, "bits": float(np.mean(own["value"].to_numpy()))}
                )
    steps = len(next(iter(bits.values())))
    return Ablation(pd.DataFrame(lines), pd.DataFrame(observers), of_fits, steps)


def _fold_sets(validation: CrossValidation) -> dict[str, tuple[int, ...]]:
    """Those of `FOLDS` that something was fitted in; where one of them is all there is, it is not shown twice.

    Other folds than those of potsdam35 had no part in choosing a structure: there is nothing to be set apart.
    """
    chosen = validation.chosen_folds
    if validation.folds.test_pictures != potsdam35_folds().test_pictures:
        return {"all": tuple(chosen)}
    some = {name: tuple(fold for fold in chosen if fold in which) for name, which in FOLDS.items() if which}
    some = {name: which for name, which in some.items() if which and len(which) < len(chosen)}
    return some | {"all": tuple(chosen)}


def _within(bits: pd.DataFrame, folds: Sequence[int]) -> pd.DataFrame:
    return bits.loc[bits["fold"].isin(folds).to_numpy()].drop(columns="fold").reset_index(drop=True)


def _estimated(mine: pd.DataFrame, theirs: pd.DataFrame | None) -> dict[str, Any]:
    """Mean bits with their interval, and the paired difference from the base with its own."""
    scores = StepScores.of(mine if theirs is None else pd.concat([mine, theirs], ignore_index=True))
    counts, sums = scores.counts, scores.sums
    found = _interval("bits", two_way(sums[0], counts, "fixation"))
    apart = None if theirs is None else sums[0] - sums[1]
    estimate = Estimate(np.nan, np.nan, np.nan) if apart is None else two_way(apart, counts, "fixation")
    found |= _interval("difference", estimate)
    ahead = np.nan if apart is None else int((apart.sum(axis=1) > 0).sum())
    return found | {"observers_ahead": ahead, "observers": len(scores.observers)}


def _interval(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.interval(LEVEL)
    return {name: estimate.mean, f"{name}_low": low, f"{name}_high": high}


def _spent(fits: pd.DataFrame, name: str) -> dict[str, Any]:
    """What the fits of a row took, and how far their weights can be trusted."""
    mine = fits.loc[(fits["model"] == name).to_numpy()] if len(fits) else fits
    if not len(mine):
        return dict.fromkeys(("fits", "seconds", "share_pareto_k_above"), np.nan)
    return {
        "fits": len(mine),
        "seconds": float(np.median(mine["seconds"].to_numpy())),
        "share_pareto_k_above": float(np.mean(mine["pareto_k"].to_numpy() > LARGEST_PARETO_K)),
    }
