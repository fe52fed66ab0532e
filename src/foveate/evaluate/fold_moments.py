"""Observers' mean and standard deviation of saccade amplitude, fold by fold: the paper averages R^2 over folds."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from jaxtyping import Float

from foveate.data.scanpaths import ScanPaths
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.distances import r2_correlation, r2_identity
from foveate.evaluate.saccades import Saccades
from foveate.evaluate.simulated import observed_paths
from foveate.evaluate.statistics import SKIP, observer_moments_deg


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The observed moments of every fold, and sums of the simulated ones over the data sets seen so far."""

    pictures: dict[int, list]
    observed: dict[int, Float[np.ndarray, "2 observer"]]
    simulated: dict[int, list[np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(cls, validation: CrossValidation) -> "FoldMoments":
        """Of the chosen folds."""
        paths = observed_paths(validation)
        pictures = {
            fold: [it for it in paths.pictures if it in validation.folds.test_pictures[fold - 1]]
            for fold in validation.chosen_folds
        }
        return cls(pictures, {fold: _moments(paths, some) for fold, some in pictures.items()})

    def add(self, paths: ScanPaths) -> None:
        """Take one simulated data set."""
        for fold, some in self.pictures.items():
            self.simulated.setdefault(fold, []).append(_moments(paths, some))

    def agreement(self) -> pd.DataFrame:
        """A row for each fold: both R^2 of the mean over data sets against the observed, NaN for fewer than two."""
        rows = []
        for fold, observed in self.observed.items():
            row: dict[str, float] = {"fold": fold}
            for kind, true, made in zip(("mean", "sd"), observed, np.mean(self.simulated[fold], axis=0), strict=True):
                enough = len(true) > 1 and np.ptp(true) > 0
                row[f"{kind}_r2_identity"] = r2_identity(true, made) if enough else np.nan
                row[f"{kind}_r2_correlation"] = r2_correlation(true, made) if enough else np.nan
            rows.append(row)
        return pd.DataFrame(rows)


def _moments(paths: ScanPaths, pictures: list) -> Float[np.ndarray, "2 observer"]:
    return observer_moments_deg(Saccades.of(paths.select(pictures=pictures), SKIP))
