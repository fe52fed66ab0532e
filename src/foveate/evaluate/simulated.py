"""Scan paths simulated from a cross-validation's posteriors: on the held-out pictures, one data set for each draw."""

import hashlib
from collections.abc import Iterator
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from foveate.data.dataset import Dataset
from foveate.data.joining import join_paths
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import FittedFolds
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.simulation.simulate import simulate


def observed_paths(validation: CrossValidation) -> ScanPaths:
    """The observed scan paths that simulated ones imitate: those on the chosen folds' pictures."""
    parts = [validation.test(observer, fold).paths for fold in validation.chosen_folds for observer in validation.data]
    return join_paths(parts).at_least(DRAWN_FROM_MAP + 1)


def simulated_data_sets(
    validation: CrossValidation, fitted: FittedFolds, key: PRNGKeyArray, *, observed_start: bool = False
) -> Iterator[ScanPaths]:
    """For each draw the scan paths of all observers on the chosen folds' pictures.

    Every path has the observer, picture, length and forced fixations of an observed one, with `observed_start` its
    first two fixations, too; its model was fitted without its picture. Where a model depends on how long fixations last
    and does not say it, they last as long as the observed ones.
    """
    model = validation.models[fitted.name]
    as_observed = {
        "observed_start": observed_start,
        "observed_durations": model.reads_durations and model.durations is None,
    }
    groups = [group for fold in validation.chosen_folds for group in _groups(validation, fitted, fold)]
    for draw, of_draw in enumerate(jax.random.split(key, fitted.draws)):
        parts = [
            simulate(_models(models, draw), maps, paths, jax.random.fold_in(of_draw, number), **as_observed)
            for number, (models, maps, paths) in enumerate(groups)
        ]
        yield join_paths(parts)


def _groups(
    validation: CrossValidation, fitted: FittedFolds, fold: int
) -> list[tuple[dict[Any, list[Model]], SaliencyMaps, ScanPaths]]:
    """Observers of a fold who share their maps, with their models draw by draw: simulated together."""
    tests = {observer: validation.test(observer, fold) for observer in validation.data}
    groups: dict[str, list[Any]] = {}
    for observer, data in tests.items():
        groups.setdefault(_name_of_maps(data), []).append(observer)
    found = []
    for observers in groups.values():
        paths = join_paths([tests[observer].paths for observer in observers]).at_least(DRAWN_FROM_MAP + 1)
        models = {observer: fitted.parts[fold, observer].models() for observer in observers}
        found.append((models, tests[observers[0]].maps.select(paths.pictures), paths))
    return found


def _name_of_maps(data: Dataset) -> str:
    """Equal for equal maps."""
    return hashlib.sha256(repr(data.maps.pictures).encode() + data.maps.values.tobytes()).hexdigest()


def _models(models: dict[Any, list[Model]], draw: int) -> dict[Any, Model]:
    return {observer: each[draw % len(each)] for observer, each in models.items()}
