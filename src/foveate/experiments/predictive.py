"""Posterior predictive checks of models that were cross-validated: copies of the held-out data, model by model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import jax
import pandas as pd
from jaxtyping import PRNGKeyArray

from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, counted
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import FittedFolds
from foveate.evaluate.predictive_checks import PredictiveChecks, predictive_checks
from foveate.evaluate.saccades import spread_within_cells
from foveate.evaluate.simulated import observed_paths, simulated_data_sets
from foveate.execution.store import FitStore
from foveate.experiments.ablation import SAMPLER, SAMPLER_SETTINGS
from foveate.inference.fit import chosen_sampler
from foveate.model.model import DRAWN_FROM_MAP, Model

# Tells how far the work has come: in words, how much is done, of how much.
Tell = Callable[[str, float, float], None]


@final
@dataclass(frozen=True, eq=False)
class Checked:
    """A model's checks, its fits one by one, and how many of the posterior draws behind its copies are different."""

    checks: PredictiveChecks
    fits: pd.DataFrame
    different_draws: int


def check_model(
    validation: CrossValidation,
    name: str,
    draws: int,
    key: PRNGKeyArray,
    tell: Tell = lambda words, done, total: None,
) -> Checked:
    """The checks of one model whose fits are there, by `draws` copies of the data on the chosen folds' pictures.

    Every copy has the observed paths' observers, pictures, lengths and first two fixations; the draw behind it is each
    observer's own, from the fit that did not see the picture. Durations are checked where the model says them.
    """
    fitted = FittedFolds.of(validation.fits, name, draws)

    def told() -> Iterator[ScanPaths]:
        for number, paths in enumerate(copies(validation, fitted, key)):
            tell(f"copies by {name}", number, draws)
            yield paths

    checks = predictive_checks(observed_paths(validation), told())
    return Checked(checks, pd.DataFrame(fitted.rows()), min(len(it.vectors) for it in fitted.parts.values()))


def copies(validation: CrossValidation, fitted: FittedFolds, key: PRNGKeyArray) -> Iterator[ScanPaths]:
    """Copies of the held-out data, one for each draw, at random places within cells."""
    for_paths, for_places = jax.random.split(key)
    grid = next(iter(validation.data.values())).maps.grid
    says_durations = validation.models[fitted.name].durations is not None
    made = simulated_data_sets(validation, fitted, for_paths, observed_start=True)
    for paths, place in zip(made, jax.random.split(for_places, fitted.draws), strict=True):
        spread = _with_starts_of(paths, spread_within_cells(paths, grid, place))
        yield spread if says_durations else replace(spread, duration_s=None)


def _with_starts_of(paths: ScanPaths, spread: ScanPaths) -> ScanPaths:
    """The observed fixations that copies begin with are where they were; the others are cells."""
    x_deg, y_deg = spread.x_deg.copy(), spread.y_deg.copy()
    for moved, there in ((x_deg, paths.x_deg), (y_deg, paths.y_deg)):
        moved[:, :DRAWN_FROM_MAP] = there[:, :DRAWN_FROM_MAP]
    return replace(spread, x_deg=x_deg, y_deg=y_deg)


def sampling(model: Model, folder: Path | None, name: str, fold: int) -> dict[str, Any]:
    """Sampler and settings of a model's fits: those that the folder's were made with, or those that suit the model.

    Predictions need few draws: beyond what the exact samplers can do, short chains.
    """
    if folder is not None and model.labels:
        run = FitStore.read(folder / "fits" / name / f"fold-{fold}").run
        return {"sampler": run.sampler, "settings": run.settings}
    by_chains = bool(model.labels) and chosen_sampler(model, "auto") == SAMPLER
    return {"sampler": SAMPLER, "settings": SAMPLER_SETTINGS} if by_chains else {}


def require_fits(validation: CrossValidation, folder: Path) -> None:
    """Refuse a folder in which fits are missing."""
    for name in validation.fits.fitted:
        for fold in validation.chosen_folds:
            missing = len(validation.data) - len(validation.fits.store(name, fold).finished())
            if missing:
                raise InputError(
                    f"{folder} lacks {counted(missing, 'fit')} of {name!r} in fold {fold}: finish it with the command "
                    "that made it, or leave --fits out."
                )


def fits_in(folder: Path, name: str, kinds: tuple[str, ...]) -> Path | None:
    """The folder under `folder` that holds fits of this model, as studies and ablations (by `kinds`) keep them."""
    if not folder.is_dir():
        raise InputError(f"--fits {folder}: there is no such folder; give one of `foveate ablate`, or leave it out.")
    places = [folder, *(folder / kind for kind in kinds)]
    return next((it for it in places if (it / "fits" / name).is_dir()), None)


def tables(found: Mapping[str, Checked]) -> dict[str, pd.DataFrame]:
    """All numbers in long form: statistics, distances, curves point by point, the copies' statistics, the fits."""
    parts: dict[str, dict[str, Any]] = {"statistics": {}, "distances": {}, "curves": {}, "copies": {}, "fits": {}}
    for name, it in found.items():
        parts["statistics"][name] = it.checks.table().reset_index()
        parts["distances"][name] = it.checks.distances.reset_index()
        curves = {quantity: getattr(it.checks.curves, quantity).table() for quantity in CURVES}
        parts["curves"][name] = pd.concat(curves, names=["curve"]).reset_index()
        parts["copies"][name] = it.checks.copies.reset_index()
        parts["fits"][name] = it.fits.drop(columns="model", errors="ignore")
    return {
        title: pd.concat(each, names=["model"]).reset_index(level="model").reset_index(drop=True)
        for title, each in parts.items()
    }


CURVES = ("amplitude", "direction", "turn", "autocorrelation")
