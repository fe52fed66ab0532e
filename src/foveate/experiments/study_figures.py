"""The figures of a study: one file each, numbered as in the paper where the paper has them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from foveate.data.density import density_maps
from foveate.data.joining import join_paths
from foveate.data.scanpaths import ScanPath, ScanPaths
from foveate.evaluate.compare import compare
from foveate.evaluate.distances import map_agreement
from foveate.evaluate.heldout import all_maps
from foveate.evaluate.simulated import observed_paths
from foveate.experiments.study import GAIN, Study
from foveate.figures.contours import recovered_maps
from foveate.figures.curves import differences, roc_curves, scores_by_fixation
from foveate.figures.paper import attention_maps, autocorrelations, data_and_density, observer_amplitudes, scan_paths
from foveate.figures.saccades import amplitudes, directions
from foveate.figures.style import ONE_COLUMN_MM, TWO_COLUMNS_MM, journal_style, new_figure, save

BANDWIDTH_DEG = 1.05  # of densities of fixations, as published
SHOWN_PATHS, SHOWN_AT = 3, 6  # paths side by side; fixations after which the policies' maps are shown
MOST_NUMBERS = 20  # fixation numbers that scores are drawn for
FEWEST_STEPS = 100  # of a fixation number, for its mean to be worth drawing


def draw_all(study: Study, folder: Path) -> list[str]:
    """Every figure of the study as SVG and PNG; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    with journal_style():
        for name, figure in _figures(study):
            save(figure, folder, name)
            names.append(name)
    return names


def _figures(study: Study) -> Iterator[tuple[str, Figure]]:
    parts: list[tuple[str, Callable[[Study], Figure | None]]] = [
        ("fig1-data", _data),
        ("fig2-policies", _policies),
        ("fig3-scan-paths", _paths),
        ("fig5-maps", _maps),
        ("fig6-amplitudes", lambda it: amplitudes({name: found.amplitude for name, found in it.saccades.items()})),
        ("fig7-autocorrelation", _lags),
        ("fig8-observers", lambda it: observer_amplitudes(it.saccades)),
        ("fig9-directions", _directions),
        ("fig10-roc", _roc),
        ("ranking", _ranking),
        ("by-fixation", _by_fixation),
    ]
    for name, draw in parts:
        figure = draw(study)
        if figure is not None:
            yield name, figure


def _shown(study: Study) -> tuple[ScanPaths, list[ScanPath]]:
    """Everybody's paths, and long ones of different observers on different pictures."""
    everyone = observed_paths(study.validation)
    found: list[ScanPath] = []
    for path in sorted(everyone, key=lambda it: -len(it)):
        if all(path.picture != it.picture and path.observer != it.observer for it in found):
            found.append(path)
        if len(found) == SHOWN_PATHS:
            break
    return everyone, found


def _own_maps(study: Study, path: ScanPath):
    return study.validation.data[path.observer].maps


def _data(study: Study) -> Figure:
    everyone, paths, maps = study.validation.pool, _shown(study)[1], all_maps(study.validation)
    density = density_maps(everyone, maps.grid, BANDWIDTH_DEG)
    return data_and_density(paths[0], everyone, maps, density)


def _example_model(study: Study, path: ScanPath):
    """The first model with two policies or more, fitted to the path's observer without its picture; None if none is."""
    validation = study.validation
    for name, model in validation.models.items():
        if len(model.policies) > 1 and model.labels:
            fold = validation.folds.fold_of(path.picture)
            return name, validation.fits.posterior(name, fold, path.observer).mean_model()
    return None


def _policies(study: Study) -> Figure | None:
    path = _shown(study)[1][0]
    found = _example_model(study, path)
    if found is None:
        return None
    return attention_maps(found[1], _own_maps(study, path), path, min(SHOWN_AT, len(path) - 1))


def _paths(study: Study) -> Figure | None:
    paths = _shown(study)[1]
    found = _example_model(study, paths[0])
    if found is None:
        return None
    simulated = study.simulated[found[0]][0]
    pairs = []
    for path in paths:
        same = [it for it in simulated if it.picture == path.picture and it.observer == path.observer]
        pairs += [(path, same[0])] if same else []
    observed, made = (list(it) for it in zip(*pairs, strict=True))
    return scan_paths(observed, made, all_maps(study.validation), found[1])


def _maps(study: Study) -> Figure:
    path, maps = _shown(study)[1][0], all_maps(study.validation)
    picture, grid = path.picture, maps.grid
    observed = observed_paths(study.validation)
    sets = {"data": [observed]} | {name: found[:1] for name, found in study.simulated.items()}
    densities = {
        name: density_maps(join_paths(some).select(pictures=[picture]), grid, BANDWIDTH_DEG)
        for name, some in sets.items()
    }
    agreement = {name: map_agreement([it.select(pictures=[picture]) for it in some], maps.select([picture]))
                 for name, some in sets.items()}  # fmt: skip
    return recovered_maps(maps.select([picture]), densities, agreement, [picture])


def _lags(study: Study) -> Figure:
    return autocorrelations({name: found.autocorrelation for name, found in study.saccades.items()})


def _directions(study: Study) -> Figure:
    turns = {name: found.turn for name, found in study.saccades.items()}
    return directions({name: found.direction for name, found in study.saccades.items()}, turns)


def _roc(study: Study) -> Figure:
    figure = new_figure(ONE_COLUMN_MM, 90.0)
    roc_curves({name: found.roc for name, found in study.held_out.items()}, figure.subplots())
    return figure


def _ranking(study: Study) -> Figure | None:
    if study.comparison is None:
        return None
    figure = new_figure(TWO_COLUMNS_MM, 25.0 + 9.0 * len(study.held_out))
    differences(study.comparison, figure.subplots())
    return figure


def by_number(study: Study) -> pd.DataFrame:
    """For each model the mean score of the fixations with each number, with its interval."""
    steps = study.by_fixation().rename(columns={GAIN: "value"})
    mine = (steps["model"] == next(iter(study.held_out))).to_numpy()
    each, counts = np.unique(steps["fixation"].to_numpy()[mine], return_counts=True)
    numbers = each[counts >= FEWEST_STEPS][:MOST_NUMBERS]
    rows = []
    for number in numbers:
        columns = ["model", "observer", "picture", "trial", "fixation", "value"]
        rows.append(compare(steps.loc[steps["fixation"] == number, columns]).models.assign(fixation=number))
    columns = ["model", "fixation", "mean", "low", "high"]
    whole = pd.concat(rows, ignore_index=True) if rows else pd.DataFrame(columns=columns)
    return cast(pd.DataFrame, whole[columns])


def _by_fixation(study: Study) -> Figure | None:
    if study.comparison is None:
        return None
    table = by_number(study)
    if table.empty:
        return None
    figure = new_figure(1.5 * ONE_COLUMN_MM, 80.0)
    scores_by_fixation(table, figure.subplots(), bands=list(study.held_out)[:1])
    return figure
