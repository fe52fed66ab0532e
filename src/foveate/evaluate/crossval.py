"""Cross-validation over pictures: every model fitted to every observer without each fold's pictures, then tested.

One fit is a task of its own, (model, fold, observer). Finished ones are in a folder, `fits/MODEL/fold-N`, each a folder
as `foveate fit` makes them, so a run that was stopped in any way goes on with those that are missing.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset
from foveate.errors import InputError, some_of
from foveate.evaluate.folds import Folds
from foveate.execution.graph import completed
from foveate.execution.places import Place
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.execution.tasks import FitTask
from foveate.inference.fit import chosen_sampler
from foveate.inference.posterior import Posterior
from foveate.model.model import Model

# Called with every fit that is there: its task, the posterior, how many are done, of how many.
Finished = Callable[[FitTask, Posterior, int, int], None]


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Which models are fitted to whose data, without which pictures.

    `data` has a data set for each observer, since their maps may differ (leave-one-observer-out). What a fit sees is
    the observer's paths on the training pictures and the maps of those, nothing else.
    """

    folder: Path
    models: Mapping[str, Model]
    data: Mapping[Any, Dataset]
    folds: Folds
    chosen_folds: tuple[int, ...]
    seed: int

    @classmethod
    def of(
        cls,
        folder: str | Path,
        models: Mapping[str, Model],
        data: Dataset | Mapping[Any, Dataset],
        folds: Folds,
        *,
        chosen_folds: tuple[int, ...] | None = None,
        seed: int = 1,
    ) -> "CrossValidation":
        """For all observers of a data set, or for each observer's own."""
        if not models:
            raise InputError("no model given: name at least one.")
        each = (
            {observer: data.select(observers=[observer]) for observer in data.paths.observers}
            if isinstance(data, Dataset)
            else dict(data)
        )
        for observer, own in each.items():
            if own.paths.observers != [observer]:
                raise InputError(f"the data of observer {observer!r} are of {some_of(own.paths.observers)}.")
        which = tuple(range(1, len(folds) + 1)) if chosen_folds is None else chosen_folds
        unknown = [fold for fold in which if not 1 <= fold <= len(folds)]
        if unknown or not which:
            raise InputError(f"fold {some_of(list(unknown)) or 'none'}: there are folds 1 to {len(folds)}.")
        return cls(Path(folder), dict(models), each, folds, which, seed)

    def split(self, observer: Any, fold: int) -> tuple[Dataset, Dataset]:
        """(training data, test data) of one observer; a picture that they did not see is in neither."""
        own = self.data[observer]
        held_out = [it for it in self.folds.test_pictures[fold - 1] if it in own.paths.pictures]
        if not held_out:
            raise InputError(f"observer {observer!r} saw none of the pictures of fold {fold}; leave one of them out.")
        return own.split(held_out)

    def store(self, model: str, fold: int) -> FitStore:
        """Where the fits of a model and a fold are; an error if the folder holds those of other data or settings."""
        observers = list(self.data)
        fitted = self.models[model]
        run = Run(
            model=fitted,
            data=self._fingerprint(fold),
            observers=tuple(observers),
            seed=self.seed,
            sampler=chosen_sampler(fitted, "auto"),
            settings={},
            version=version("foveate"),
        )
        return FitStore.resume(self.folder / "fits" / model / f"fold-{fold}", run)

    @cache  # noqa: B019 (as long as the object: a few short texts)
    def _fingerprint(self, fold: int) -> str:
        """Of the training data of a fold alone: nothing that is held out can change it."""
        each = "".join(self.split(observer, fold)[0].fingerprint() for observer in self.data)
        return hashlib.sha256(each.encode()).hexdigest()[:16]

    def fit(self, place: Place, finished: Finished) -> None:
        """Fit what is missing; every fit is saved before it is told of."""
        fitted = [name for name, model in self.models.items() if model.labels]  # a baseline has nothing to fit
        stores = {(model, fold): self.store(model, fold) for model in fitted for fold in self.chosen_folds}
        with ExitStack() as kept:
            for store in stores.values():
                kept.enter_context(store.writing())
            there = {where: set(store.finished()) for where, store in stores.items()}
            tasks = [
                FitTask(
                    stores[model, fold].run,
                    self.split(observer, fold)[0],
                    {"model": model, "fold": fold, "observer": observer},
                )
                for fold in self.chosen_folds
                for model in fitted
                for observer in self.data
                if observer not in there[model, fold]
            ]
            total = len(stores) * len(self.data)
            done = total - len(tasks)
            if not tasks:
                return
            with place:
                for task, posterior in completed(tasks, place):
                    stores[task.where["model"], task.where["fold"]].save(posterior)
                    done += 1
                    finished(task, posterior, done, total)

    def posterior(self, model: str, fold: int, observer: Any) -> Posterior:
        """A finished fit."""
        return self.store(model, fold).load(observer)
