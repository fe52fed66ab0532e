"""Folders that `foveate fit`, `foveate compare` and `foveate reproduce` made, read for a report.

Of every fit stays what a page shows: its table and diagnosis, the model at the mean of the draws, and a hundred draws.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foveate.data.dataset import Dataset
from foveate.errors import InputError, some_of
from foveate.execution.store import RUN, FitStore
from foveate.inference.diagnosis import Diagnosis
from foveate.inference.posterior import Posterior
from foveate.model.catalogue import CATALOGUE, named_model
from foveate.model.model import Model

STUDY = "study.json"
STUDIES = ("foveate compare", "foveate reproduce")
FIT = "foveate fit"
ALL_PICTURES = 0  # the fold of a fit that has seen every picture
MOST_DRAWS = 100  # of each posterior, for the numbers of single steps

Told = Callable[[str, float, float], None]


@dataclass(frozen=True, eq=False)
class Fit:
    """What a page shows of one fit; `posterior` has at most `MOST_DRAWS` draws, evenly picked."""

    model: str
    fold: int
    observer: Any
    posterior: Posterior
    mean: Model  # at the mean of all draws on the real line
    table: pd.DataFrame  # of all draws
    modes: int | None
    when: float  # when its file was written, in seconds of the system's clock

    @classmethod
    def of(cls, name: str, fold: int, posterior: Posterior, when: float = 0.0) -> "Fit":
        """Of a posterior, whose draws are then forgotten but for some."""
        samples = posterior.samples
        vectors = samples.real.reshape(-1, len(posterior.labels))
        chosen = vectors[np.linspace(0, len(vectors) - 1, min(MOST_DRAWS, len(vectors))).astype(int)]
        some = replace(samples, real=chosen[None], statistics={}, weighted=None, modes=None)
        modes = None if samples.modes is None else len(samples.modes.mass)
        thin = replace(posterior, samples=some)
        return cls(name, fold, posterior.observer, thin, posterior.mean_model(), posterior.table(), modes, when)

    @property
    def diagnosis(self) -> Diagnosis:
        """Of all draws."""
        return self.posterior.diagnosis


@dataclass(frozen=True, eq=False)
class Results:
    """What is in a folder: who made it with which settings, the models, their fits, and the folds if there are any."""

    folder: Path
    made_by: str
    said: Mapping[str, Any]  # the folder's own JSON file
    models: Mapping[str, Model]
    fits: tuple[Fit, ...]
    observers: tuple
    missing: tuple  # observers in the data without a fit
    test_pictures: Mapping[int, tuple]  # by fold; none where every fit has seen all pictures

    @property
    def is_study(self) -> bool:
        """Whether models were cross-validated."""
        return self.made_by != FIT

    @property
    def seed(self) -> int:
        """That the folder was made with."""
        return int(self.said["seed"])

    @property
    def cells(self) -> int:
        """Of a map, along a side."""
        asked = self.said.get("asked", {}).get("cells", 64)
        return int(self.fits[0].posterior.provenance["grid"][0]) if self.fits else int(asked)

    @property
    def when(self) -> datetime:
        """When the last of its results was written."""
        file = self.folder / (STUDY if self.is_study else RUN)
        return datetime.fromtimestamp(max([file.stat().st_mtime, *(fit.when for fit in self.fits)]))

    def fit_of(self, model: str, fold: int, observer: Any) -> Fit | None:
        """The fit, or none where the model has nothing to fit."""
        return self._by_place.get((model, fold, observer))

    @cached_property
    def _by_place(self) -> dict[tuple[str, int, Any], Fit]:
        return {(fit.model, fit.fold, fit.observer): fit for fit in self.fits}


def read_results(folder: Path, parts: tuple[type, ...] = (), told: Told = lambda words, done, total: None) -> Results:
    """The results in a folder; `parts` are policies and choices of one's own that its models are made of."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; give one that `foveate fit` or `foveate compare` made.")
    if (folder / STUDY).is_file():
        return _study(folder, parts, told)
    if not (folder / RUN).is_file():
        raise InputError(
            f"{folder} holds neither {RUN} nor {STUDY}: give a folder that `foveate fit`, `foveate compare` or "
            "`foveate reproduce` made."
        )
    store = FitStore.read(folder, parts)
    finished = store.finished()
    if not finished:
        raise InputError(f"{folder} holds no finished fit; go on with `foveate fit`.")
    name = store.run.model.name
    fits = tuple(_loaded(store, name, ALL_PICTURES, finished, told, 0, len(finished)))
    missing = tuple(it for it in store.run.observers if it not in finished)
    return Results(folder, FIT, store.run.to_dict(), {name: store.run.model}, fits, tuple(finished), missing, {})


def _loaded(store: FitStore, name: str, fold: int, observers: list, told: Told, done: int, total: int) -> list[Fit]:
    found = []
    for number, observer in enumerate(observers):
        told(f"reading the fit of observer {observer}", done + number, total)
        found.append(Fit.of(name, fold, store.load(observer), store.file_of(observer).stat().st_mtime))
    return found


def _study(folder: Path, parts: tuple[type, ...], told: Told) -> Results:
    said = _json(folder / STUDY)
    made_by = said.get("made_by")
    if made_by not in STUDIES:
        raise InputError(f"{folder} was made by '{made_by}'; a report is made of those of {' or '.join(STUDIES)}.")
    if not said.get("finished"):
        raise InputError(f"{folder}: '{made_by}' has not finished there; run the same command again to go on.")
    try:
        names, folds = list(map(str, said["models"])), [int(it) for it in said["folds"]]
        test = {fold: tuple(said["test_pictures"][fold - 1]) for fold in folds}
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{folder / STUDY} is not one that '{made_by}' wrote, or was changed; restore it.") from error
    places = {(name, fold): folder / "fits" / name / f"fold-{fold}" for name in names for fold in folds}
    stores = {at: FitStore.read(place, parts) for at, place in places.items() if _plain(at[0]) and place.is_dir()}
    models, fits = {}, []
    total = sum(len(store.finished()) for store in stores.values())
    for name in names:
        own = {fold: stores[name, fold] for fold in folds if (name, fold) in stores}
        if own:
            models[name] = own[folds[0]].run.model if folds[0] in own else next(iter(own.values())).run.model
        elif name in CATALOGUE and not named_model(name).labels:
            models[name] = named_model(name)
        else:
            raise InputError(f"{folder}: the fits of model {name!r} are missing; run the same command again.")
        for fold, store in own.items():
            fits += _loaded(store, name, fold, store.finished(), told, len(fits), total)
    observers = tuple(dict.fromkeys(it for store in stores.values() for it in store.run.observers))
    return Results(folder, str(made_by), said, models, tuple(fits), observers, (), test)


def _plain(name: str) -> bool:
    """Whether a name is that of one folder, and not a way out of this one."""
    return Path(name).name == name and name not in ("", ".", "..")


def _json(file: Path) -> dict[str, Any]:
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}); restore it.") from error
    if not isinstance(said, dict):
        raise InputError(f"{file} holds no settings; restore it.")
    return said


def observers_data(results: Results, every: Mapping[Any, Dataset]) -> dict[Any, Dataset]:
    """The data of the folder's observers, checked to be those that every fit has seen."""
    who = results.observers or tuple(every)
    absent = [observer for observer in who if observer not in every]
    if absent:
        raise InputError(f"observer {some_of(absent)} is not in the data; give those that were fitted with --data.")
    each = {observer: every[observer] for observer in who}
    seen: dict[tuple[int, Any], str] = {}
    for fit in results.fits:
        at = (fit.fold, fit.observer)
        own = each[fit.observer]
        if at not in seen:
            held_out = [it for it in results.test_pictures.get(fit.fold, ()) if it in own.paths.pictures]
            seen[at] = (own.split(held_out)[0] if held_out else own).fingerprint()
        if fit.posterior.provenance.get("data", seen[at]) != seen[at]:
            raise InputError(
                f"{results.folder}: the fit of observer {fit.observer} is of other data or maps; give those that were "
                "fitted with --data."
            )
    return each
