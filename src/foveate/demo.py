"""The job of `foveate demo`: from example data to a ranking of models, with every step's result in a folder.

Calls, no science: each step is a public function that does the same on anybody's data.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.axes import Axes

from foveate.data.dataset import Dataset
from foveate.data.scanpaths import ScanPath
from foveate.errors import InputError, some_of
from foveate.evaluate.scores import MeanWithError, bits_per_fixation, over_observers
from foveate.example import OBSERVERS, ExampleData, example_data
from foveate.figures import maps as map_figures
from foveate.figures.ranking import ranking
from foveate.figures.scanpath import scan_path
from foveate.figures.style import journal_style, new_figure, save
from foveate.inference.fit import fit
from foveate.inference.point import maximum_a_posteriori
from foveate.inference.posterior import Posterior
from foveate.model.catalogue import CATALOGUE, TITLES, named_model
from foveate.model.history import History, Picture
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.model.steps import Steps
from foveate.precision import double_precision
from foveate.simulation.simulate import simulate

MADE_BY = "foveate demo"
FIGURES = ("maps", "scanpath", "policies", "ranking")
FILES = (
    "scores.json", "scores.csv", "fixations.csv", "simulated.csv", "posterior.nc",
    *(f"{name}.{ending}" for name in FIGURES for ending in ("png", "svg")),
)  # fmt: skip

HELD_OUT = 4  # pictures

# The model of which a posterior is shown, for the first observer: the one that compiles fastest.
SHOWN_POSTERIOR = "local_saliency"

# The step whose densities are drawn: the path so far has this many fixations.
SHOWN_STEP = 10

# What a step's first run costs in seconds, compilation included, and every other run: only the progress bar reads it.
FIRST_FIT_S = {"full": 12.0, "local_choice": 12.0, "fixed_choice": 12.0, "local_saliency": 5.0}
OTHER_S, POSTERIOR_S = 1.0, 6.0

Notify = Callable[[str, float], None]  # what is being done, and which share of the work is behind


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What was found, and where it is."""

    folder: Path
    files: tuple[Path, ...]
    about: dict  # as in scores.json
    scores: Mapping[str, MeanWithError]  # bits per fixation by model
    behind_best: Mapping[str, MeanWithError]  # paired by observer
    posterior: Posterior


def run_demo(out: Path, seed: int, notify: Notify) -> DemoResult:
    """Make the example data, simulate, fit and score the five models, draw, and write everything into `out`."""
    started = time.monotonic()
    folder = _own_folder(out)
    progress = _Progress(notify)
    progress.begin("making the example data", 4.0)
    example = example_data(seed)
    for_simulation, for_fits = jax.random.split(jax.random.key(seed + 1))
    progress.begin("simulating scan paths", OTHER_S)
    simulated = simulate(example.models, example.data.maps, example.data.paths, for_simulation)
    bits = _held_out_bits(example.data, for_fits, progress)
    observers = example.data.paths.observers
    progress.begin(f"drawing the posterior of observer {observers[0]}", POSTERIOR_S)
    shown, own_key = example.data.select(observers=[observers[0]]), jax.random.fold_in(for_fits, len(observers))
    posterior = fit(named_model(SHOWN_POSTERIOR), shown, own_key)

    progress.begin("drawing", 5.0)
    scores = {name: over_observers(values) for name, values in bits.items()}
    best = max(scores, key=lambda name: scores[name].mean)
    behind = {name: over_observers(bits[best] - values) for name, values in bits.items()}
    about = _about(seed, example.data, bits, scores, behind) | {"run_time_s": round(time.monotonic() - started, 1)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "scores.json").write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    _table(bits, observers).to_csv(folder / "scores.csv", index=False)
    example.data.paths.to_table().to_csv(folder / "fixations.csv", index=False)
    simulated.to_table().to_csv(folder / "simulated.csv", index=False)
    first = next(iter(simulated.select(observers=[observers[0]])))
    posterior.save(folder / "posterior.nc")
    _draw(folder, example, first, bits, scores)
    progress.finish()
    return DemoResult(folder, tuple(folder / name for name in FILES), about, scores, behind, posterior)


class _Progress:
    """Tells what begins, and which share of the expected time is behind."""

    def __init__(self, notify: Notify):
        observers = len(OBSERVERS)
        fits = sum(FIRST_FIT_S.get(name, OTHER_S) + (observers - 1) * OTHER_S for name in CATALOGUE)
        self._total = 10.0 + POSTERIOR_S + observers * OTHER_S + fits
        self._notify, self._done, self._next = notify, 0.0, 0.0

    def begin(self, label: str, expected_s: float) -> None:
        self._done, self._next = self._done + self._next, expected_s
        self._notify(label, min(self._done / self._total, 0.99))

    def finish(self) -> None:
        self._notify("done", 1.0)


def _held_out_bits(data: Dataset, key: PRNGKeyArray, progress: _Progress) -> dict[str, np.ndarray]:
    """For each model the score of every observer on the last pictures, fitted to the others."""
    train, test = data.split(data.paths.pictures[-HELD_OUT:])
    observers = data.paths.observers
    # All observers' steps get one size, so that one compilation serves them all.
    longest = int(data.paths.length.max()) - DRAWN_FROM_MAP

    def steps_of(part: Dataset, observer: Any) -> Steps:
        return Steps.of(part.select(observers=[observer]), paths=len(part.maps), steps=longest)

    steps = {}
    for observer in observers:
        progress.begin(f"tabulating observer {observer}", OTHER_S)
        steps[observer] = steps_of(train, observer).tabulated(), steps_of(test, observer)
    bits = {}
    for name in CATALOGUE:
        values = []
        for index, observer in enumerate(observers):
            expected_s = OTHER_S if index else FIRST_FIT_S.get(name, OTHER_S)
            progress.begin(f"fitting {TITLES[name]}, observer {observer}", expected_s)
            to_fit, to_score = steps[observer]
            estimate = maximum_a_posteriori(named_model(name), to_fit, jax.random.fold_in(key, index))
            values.append(bits_per_fixation(estimate.model, to_score))
        bits[name] = np.array(values)
    return bits


def _table(bits: Mapping[str, np.ndarray], observers: list) -> pd.DataFrame:
    rows = [(name, who, value) for name, values in bits.items() for who, value in zip(observers, values, strict=True)]
    return pd.DataFrame(rows, columns=["model", "observer", "bits_per_fixation"])


def _about(
    seed: int,
    data: Dataset,
    bits: Mapping[str, np.ndarray],
    scores: Mapping[str, MeanWithError],
    behind: Mapping[str, MeanWithError],
) -> dict:
    """Everything that scores.json says."""
    return {
        "made_by": MADE_BY,
        "seed": seed,
        "versions": {"python": sys.version.split()[0]}
        | {name: version(name) for name in ("foveate", "jax", "numpy", "scipy")},
        "score": "bits per fixation over uniform, from the third fixation on, mean over fixations",
        "parameters": "point estimates at the highest posterior density, per observer",
        "held_out_pictures": data.paths.pictures[-HELD_OUT:],
        "models": {
            name: {
                "mean_bits": scores[name].mean,
                "standard_error_bits": scores[name].standard_error,
                "behind_best_bits": behind[name].mean,
                "behind_best_standard_error_bits": behind[name].standard_error,
                "observers_bits": dict(zip(data.paths.observers, values.tolist(), strict=True)),
            }
            for name, values in bits.items()
        },
    }


def _draw(
    folder: Path,
    example: ExampleData,
    path: ScanPath,
    bits: Mapping[str, np.ndarray],
    scores: Mapping[str, MeanWithError],
) -> None:
    maps, shown = example.data.maps, example.models[path.observer]
    policies = [type(policy).__name__ for policy in shown.policies]
    with journal_style():
        figure = new_figure(183, 110)
        map_figures.map_grid(maps, list(figure.subplots(3, 4).flat))
        save(figure, folder, "maps")

        figure = new_figure(140, 112)
        scan_path(path, maps[path.picture], maps.grid, policies, figure.subplots())
        save(figure, folder, "scanpath")

        figure = new_figure(183, 56)
        picture = Picture.whole(maps.grid, maps[path.picture])
        _draw_densities(shown, picture, path, policies, list(figure.subplots(1, len(policies) + 1)))
        save(figure, folder, "policies")

        figure = new_figure(130, 60)
        means = {name: score.mean for name, score in scores.items()}
        errors = {name: score.standard_error for name, score in scores.items()}
        ranking(bits, means, errors, TITLES, figure.subplots())
        save(figure, folder, "ranking")


def _draw_densities(shown: Model, picture: Picture, path: ScanPath, policies: list[str], axes: list[Axes]) -> None:
    history = History.of(picture, path.y_deg[:SHOWN_STEP], path.x_deg[:SHOWN_STEP])
    map_figures.policy_densities(
        np.exp(shown.policy_log_densities(history, picture)),
        np.exp(shown.log_density(history, picture)),
        np.exp(double_precision(shown.choice.log_probabilities)(history, picture)),
        policies,
        np.asarray(history.position_deg),
        (path.y_deg[SHOWN_STEP], path.x_deg[SHOWN_STEP]),
        picture.grid,
        axes,
    )


def _own_folder(out: Path) -> Path:
    """The folder, if nothing in it would be lost: files of these names are written over only if foveate made them."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give the name of a folder with --out.")
    present = [name for name in FILES if (out / name).exists()]
    if present and not _is_ours(out / "scores.json"):
        raise InputError(
            f"{out} holds {some_of(present, 3)}, which foveate did not make; nothing was written: give another folder."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the folder cannot be made ({error.strerror}); give another one.") from error
    return out


def _is_ours(file: Path) -> bool:
    try:
        return json.loads(file.read_text(encoding="utf-8")).get("made_by") == MADE_BY
    except (OSError, ValueError, AttributeError):
        return False
