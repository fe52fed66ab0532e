"""What the viewer of a report is given: scan paths, maps, every model's estimates, its numbers of every fixation, and
a simulated path beside each observed one.

Arrays run over all fixations of all paths, one path after another, so that one offset finds a path in each of them.
In a study each picture is shown with the fits that have not seen it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from foveate.data.dataset import Dataset
from foveate.data.joining import join_paths
from foveate.data.scanpaths import ScanPaths
from foveate.figures.style import policy_colours, policy_titles
from foveate.inference.fit import observer_key
from foveate.model.description import describe
from foveate.model.model import Model
from foveate.report.compact import EmbeddedMaps, embedded_maps, packed, position_step_deg
from foveate.report.folders import ALL_PICTURES, Results
from foveate.report.payload import in_order, title_of
from foveate.report.steps import step_numbers
from foveate.simulation.simulate import simulate

NO_POLICY = 255  # of simulated fixations that were drawn from the map
MOST_MS = 65535

Told = Callable[[str, float, float], None]


@dataclass(frozen=True, eq=False)
class Shown:
    """One model's numbers of one observer's paths on the pictures of a fold, over their fixations."""

    probability: Float[np.ndarray, "fixation policy"]
    surprise_bits: Float[np.ndarray, " fixation"]
    simulated_deg: Float[np.ndarray, "fixation 2"]  # (y, x)
    chosen: Int[np.ndarray, " fixation"]  # the policy of each simulated fixation
    parameters: dict[str, Any]  # at the mean


def shown_data(results: Results, each: Mapping[Any, Dataset]) -> dict[Any, dict[int, Dataset]]:
    """For each observer the paths that are shown, by the fold whose fits have not seen them."""
    if not results.test_pictures:
        return {observer: {ALL_PICTURES: own} for observer, own in each.items()}
    found: dict[Any, dict[int, Dataset]] = {}
    for observer, own in each.items():
        seen = own.paths.pictures
        held = {fold: [it for it in some if it in seen] for fold, some in results.test_pictures.items()}
        found[observer] = {fold: own.select(pictures=some) for fold, some in held.items() if some}
    return found


def shown(model: Model, mean: Model, vectors: np.ndarray, data: Dataset, key: jax.Array) -> Shown:
    """The numbers of a model on these paths; one path is simulated for each, at the mean."""
    probability, surprise = step_numbers(model, vectors, data)
    paths = simulate(mean, data.maps, data.paths, key)
    real = paths.real
    places = np.stack([paths.y_deg[real], paths.x_deg[real]], axis=-1)
    values = {name: np.asarray(it).tolist() for name, it in mean.parameters.items()}
    return Shown(probability, surprise, places, paths.columns["policy"][real].astype(int), values)


def viewer(
    results: Results, each: Mapping[Any, Dataset], told: Told = lambda words, done, total: None
) -> tuple[dict[str, Any], list[str]]:
    """The viewer's data, and sentences on what they are."""
    by_observer = shown_data(results, each)
    parts = [(observer, fold, data) for observer, some in by_observer.items() for fold, data in some.items()]
    maps = embedded_maps({observer: _whole(some) for observer, some in by_observer.items()})
    paths, fold_of_path = _paths(parts)
    total, models = len(results.models) * len(parts), []
    for number, (name, model) in enumerate(results.models.items()):
        found = []
        for place, (observer, fold, data) in enumerate(parts):
            told(f"steps of observer {observer}, {title_of(name)}", number * len(parts) + place, total)
            fit = results.fit_of(name, fold, observer)
            vectors = np.zeros((1, 0)) if fit is None else fit.posterior.samples.real[0]
            key = jax.random.fold_in(observer_key(jax.random.key(results.seed), observer), 1000 * number + fold)
            found.append(shown(model, model if fit is None else fit.mean, vectors, data, key))
        models.append(model_payload(name, model, found, [(observer, fold) for observer, fold, _ in parts], paths))
    cells = next(iter(each.values())).maps.grid.cells  # of the models' own grid, on which surprise is worked out
    found = viewer_payload(paths, fold_of_path, maps, models) | {
        "uniform_bits": float(np.log2(cells)),
        "duration_ms": _durations_ms([data.paths for _, _, data in parts]),
    }
    return found, _notes(results, maps, paths)


def _whole(parts: Mapping[int, Dataset]) -> Dataset:
    """The data of all folds of one observer."""
    several = list(parts.values())
    if len(several) == 1:
        return several[0]
    maps = several[0].maps
    pictures = tuple(it for some in several for it in some.maps.pictures)
    values = np.concatenate([some.maps.values for some in several])
    return Dataset(join_paths([it.paths for it in several]), type(maps)(maps.grid, pictures, values))


def _paths(parts: list[tuple[Any, int, Dataset]]) -> tuple[ScanPaths, list[int]]:
    """All paths in the order in which they are embedded, and the fold of each."""
    folds = [fold for _, fold, data in parts for _ in range(len(data.paths))]
    return join_paths([data.paths for _, _, data in parts]), folds


def viewer_payload(
    paths: ScanPaths, folds: list[int], maps: EmbeddedMaps, models: list[dict[str, Any]]
) -> dict[str, Any]:
    """All that does not belong to a single model; `folds` has that of each path."""
    extent, real = paths.extent, paths.real
    step = position_step_deg(extent.width_deg, extent.height_deg)
    observers = list(dict.fromkeys(paths.observer.tolist()))
    pictures = in_order(set(paths.picture.tolist()))
    who, what = ({it: place for place, it in enumerate(names)} for names in (observers, pictures))
    several = _several(paths)
    places = np.stack([paths.y_deg[real], paths.x_deg[real]], axis=-1)
    grid = {"rows": maps.grid.rows, "columns": maps.grid.columns, "up": extent.origin == "bottom"}
    return {
        "grid": grid | {"height_deg": extent.height_deg, "width_deg": extent.width_deg},
        "step_deg": step,
        "observers": [str(it) for it in observers],
        "pictures": [str(it) for it in pictures],
        "images": {},
        "paths": [
            {
                "observer": who[observer],
                "picture": what[picture],
                "trial": str(trial) if (observer, picture) in several else None,
                "length": int(length),
                "map": maps.index[observer, picture],
                "fold": fold,
            }
            for observer, picture, trial, length, fold in zip(
                paths.observer.tolist(), paths.picture.tolist(), paths.trial.tolist(), paths.length, folds, strict=True
            )
        ],
        "positions": packed(np.rint(places / step), "u2"),
        "maps": maps.encoded(),
        "models": models,
    }


def _durations_ms(parts: list[ScanPaths]) -> str | None:
    """Of every fixation, packed; None where none was recorded. Zero is one that is not known, and no other is zero."""
    if all(it.duration_s is None for it in parts):
        return None
    found = [np.zeros(it.length.sum()) if it.duration_s is None else it.duration_s[it.real] for it in parts]
    lasted = np.concatenate(found)
    return packed(np.where(lasted > 0, np.clip(np.rint(1000 * lasted), 1, MOST_MS), 0), "u2")


def _several(paths: ScanPaths) -> set[tuple[Any, Any]]:
    """Who saw which picture more than once."""
    counts = Counter(zip(paths.observer.tolist(), paths.picture.tolist(), strict=True))
    return {pair for pair, count in counts.items() if count > 1}


def model_payload(
    name: str, model: Model, found: list[Shown], places: list[tuple[Any, int]], paths: ScanPaths
) -> dict[str, Any]:
    """One model: its structure, its estimates for each observer and fold, its numbers over all fixations."""
    step = position_step_deg(paths.extent.width_deg, paths.extent.height_deg)
    classes = model.policy_names
    described = describe(model)
    observers = list(dict.fromkeys(observer for observer, _ in places))
    estimates: list[dict[str, Any]] = [{} for _ in observers]
    for (observer, fold), it in zip(places, found, strict=True):
        estimates[observers.index(observer)][str(fold)] = it.parameters
    probability = np.concatenate([it.probability for it in found])
    chosen = np.concatenate([it.chosen for it in found])
    return {
        "name": name,
        "title": title_of(name),
        "description": {"policies": described["policies"], "choice": described["choice"]},
        "policies": [
            {"title": title, "colour": colour}
            for title, colour in zip(policy_titles(classes), policy_colours(classes), strict=True)
        ],
        "estimates": estimates,
        # The first two of a path are NaN; as whole numbers they are zero, and never looked at.
        "probability": packed(np.rint(MOST_MS * np.nan_to_num(probability)), "u2") if len(classes) > 1 else None,
        "surprise_bits": packed(np.concatenate([it.surprise_bits for it in found]), "f4"),
        "simulated": packed(np.rint(np.concatenate([it.simulated_deg for it in found]) / step), "u2"),
        "chosen": packed(np.where(chosen < 0, NO_POLICY, chosen), "u1"),
    }  # fmt: skip


def _notes(results: Results, maps: EmbeddedMaps, paths: ScanPaths) -> list[str]:
    step = position_step_deg(paths.extent.width_deg, paths.extent.height_deg)
    seen = "Each picture is shown with the fits that have not seen it. " if results.test_pictures else ""
    return [
        f"{seen}Probabilities of policies and surprise are exact, averaged over up to 100 draws of the posterior. Maps "
        "of the next fixation are worked out here in the page, at the posterior's mean on the real line (one "
        "point, which may lie between modes), and simulated paths are drawn from the model at the same point.",
        f"{maps.words} Positions are rounded to {step:.2g} deg.",
    ]
