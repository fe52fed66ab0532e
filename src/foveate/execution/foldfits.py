"""Fits of models to observers without each fold's pictures, in one folder: `fits/MODEL/fold-N`, a file per observer.

One fit is a task of its own, (model, fold, observer). Each of those folders is one as `foveate fit` makes them, so a
run that was stopped in any way goes on with the fits that are missing.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset
from foveate.execution.graph import completed
from foveate.execution.places import Place
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.execution.tasks import FitTask
from foveate.inference.fit import chosen_sampler
from foveate.inference.posterior import Posterior
from foveate.model.model import Model

ALTERNATING = 4  # models that are fitted at a time

# Called with every fit that is there: its task, the posterior, how many are done, of how many.
Finished = Callable[[FitTask, Posterior, int, int], None]

# The data that a fit sees: of a model, a fold and an observer.
Training = Callable[[str, int, Any], Dataset]


@dataclass(frozen=True, eq=False)
class FoldFits:
    """Which models are fitted to whom, without which folds; `training` has what each fit sees, and nothing else."""

    folder: Path
    models: Mapping[str, Model]
    observers: tuple
    folds: tuple[int, ...]
    seed: int
    training: Training
    sampler: str = "auto"
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the sampler
    _fingerprints: dict[tuple[str, int], dict[Any, str]] = field(default_factory=dict)  # of each observer's data

    @property
    def fitted(self) -> list[str]:
        """The models that have something to fit; a baseline has not."""
        return [name for name, model in self.models.items() if model.labels]

    def check(self) -> None:
        """Refuse a folder that holds fits of other data or settings; nothing is written."""
        for model in self.fitted:
            for fold in self.folds:
                self.store(model, fold)

    def store(self, model: str, fold: int) -> FitStore:
        """Where the fits of a model and a fold are; an error if the folder holds those of other data or settings."""
        fitted = self.models[model]
        each = "".join(self._seen(model, fold).values())
        run = Run(
            model=fitted,
            data=hashlib.sha256(each.encode()).hexdigest()[:16],
            observers=self.observers,
            seed=self.seed,
            sampler=chosen_sampler(fitted, self.sampler),
            settings=dict(self.settings),
            version=version("foveate"),
        )
        return FitStore.resume(self.folder / "fits" / model / f"fold-{fold}", run)

    def _seen(self, model: str, fold: int) -> dict[Any, str]:
        """Fingerprints of what the fits see alone: nothing that is held out can change them."""
        if (model, fold) not in self._fingerprints:
            each = {observer: self.training(model, fold, observer).fingerprint() for observer in self.observers}
            self._fingerprints[model, fold] = each
        return self._fingerprints[model, fold]

    def fit(self, place: Place, finished: Finished) -> None:
        """Fit what is missing; every fit is saved before it is told of."""
        stores = {(model, fold): self.store(model, fold) for model in self.fitted for fold in self.folds}
        with ExitStack() as kept:
            for store in stores.values():
                kept.enter_context(store.writing())
            there = {where: set(store.finished()) for where, store in stores.items()}
            # Some models alternate, so that no two workers begin by compiling the same: one finds what the other made.
            # Not all: what is compiled of many models does not fit into a process (`compiled.py`).
            some = [self.fitted[first : first + ALTERNATING] for first in range(0, len(self.fitted), ALTERNATING)]
            missing = [
                (model, fold, observer)
                for models in some
                for fold in self.folds
                for observer in self.observers
                for model in models
                if observer not in there[model, fold]
            ]
            if not missing:
                return
            tasks = [
                FitTask(stores[model, fold].run, self.training(model, fold, observer), _called(model, fold, observer))
                for model, fold, observer in missing
            ]
            total = len(stores) * len(self.observers)
            done = total - len(tasks)
            with place:
                for task, posterior in completed(tasks, place):
                    stores[task.where["model"], task.where["fold"]].save(posterior)
                    done += 1
                    finished(task, posterior, done, total)

    def posterior(self, model: str, fold: int, observer: Any) -> Posterior:
        """A finished fit."""
        return self.store(model, fold).load(observer, self._seen(model, fold)[observer])


def _called(model: str, fold: int, observer: Any) -> dict[str, Any]:
    return {"model": model, "fold": fold, "observer": observer}
