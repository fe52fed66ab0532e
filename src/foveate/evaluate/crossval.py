"""Cross-validation over pictures: every model fitted to every observer without each fold's pictures, then tested."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset, Observed, each_observer
from foveate.data.joining import join_paths
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of
from foveate.evaluate.folds import Folds
from foveate.execution.foldfits import FoldFits
from foveate.model.model import Model


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Whose data are predicted, in which folds, by which models' `fits`.

    `data` has a data set for each observer, since their maps may differ (leave-one-observer-out). What a fit sees is
    the observer's paths on the training pictures and the maps of those, nothing else. `pool` has the scan paths of
    everybody, also of observers who are not predicted: what scores compare with is made from them (centre bias,
    shuffled negatives, gold standard).
    """

    data: Mapping[Any, Dataset]
    folds: Folds
    fits: FoldFits
    pool: ScanPaths

    @classmethod
    def of(
        cls,
        folder: str | Path,
        models: Mapping[str, Model],
        data: Observed,
        folds: Folds,
        *,
        chosen_folds: tuple[int, ...] | None = None,
        pool: ScanPaths | None = None,
        seed: int = 1,
        sampler: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> "CrossValidation":
        """For all observers of a data set, or for each observer's own; without a `pool`, those observers are all.

        `settings` go to the `sampler`.
        """
        if not models:
            raise InputError("no model given: name at least one.")
        each = each_observer(data)
        which = tuple(range(1, len(folds) + 1)) if chosen_folds is None else chosen_folds
        unknown = [fold for fold in which if not 1 <= fold <= len(folds)]
        if unknown or not which:
            raise InputError(f"fold {some_of(list(unknown)) or 'none'}: there are folds 1 to {len(folds)}.")

        @cache  # one for all models: maps of thousands of fits would not fit into memory
        def seen(fold: int, observer: Any) -> Dataset:
            return split(each[observer], folds, fold)[0]

        def training(model: str, fold: int, observer: Any) -> Dataset:
            return seen(fold, observer)

        fits = FoldFits(Path(folder), dict(models), tuple(each), which, seed, training, sampler, dict(settings or {}))
        return cls(each, folds, fits, join_paths([own.paths for own in each.values()]) if pool is None else pool)

    @property
    def models(self) -> Mapping[str, Model]:
        """The models by name."""
        return self.fits.models

    @property
    def chosen_folds(self) -> tuple[int, ...]:
        """The folds that are fitted and tested."""
        return self.fits.folds

    @property
    def seed(self) -> int:
        """Of fits and simulations."""
        return self.fits.seed

    def test(self, observer: Any, fold: int) -> Dataset:
        """The observer's data on a fold's pictures."""
        return split(self.data[observer], self.folds, fold)[1]


def split(own: Dataset, folds: Folds, fold: int) -> tuple[Dataset, Dataset]:
    """(training data, test data) of one observer; a picture that they did not see is in neither."""
    held_out = [it for it in folds.test_pictures[fold - 1] if it in own.paths.pictures]
    if not held_out:
        who = own.paths.observers[0]
        raise InputError(f"observer {who!r} saw none of the pictures of fold {fold}; leave one of them out.")
    return own.split(held_out)
