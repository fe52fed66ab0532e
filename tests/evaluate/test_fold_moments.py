"""R^2 of observers' amplitudes, fold by fold, against a plain loop over saccades."""

from dataclasses import replace

import numpy as np
import pytest

from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fold_moments import FoldMoments
from foveate.evaluate.folds import random_folds
from foveate.evaluate.simulated import observed_paths
from foveate.example import example_data
from foveate.model.catalogue import named_model


def amplitudes(paths, observer, pictures) -> list[float]:
    """All saccades but the first of each path."""
    found = []
    for index in range(len(paths)):
        if paths.observer[index] == observer and paths.picture[index] in pictures:
            x, y = (it[index, : paths.length[index]] for it in (paths.x_deg, paths.y_deg))
            found += [float(np.hypot(x[i] - x[i - 1], y[i] - y[i - 1])) for i in range(2, len(x))]
    return found


def test_each_fold_compares_the_observers_own_moments(tmp_path):
    data = example_data().data
    folds = random_folds(data.paths.pictures, 3, seed=2)
    validation = CrossValidation.of(tmp_path, {"baseline": named_model("saliency_baseline")}, data, folds)
    observed = observed_paths(validation)
    # Two "simulated" sets: everything shrunk, a little more on the right.
    made = [replace(observed, x_deg=factor * observed.x_deg, y_deg=0.8 * observed.y_deg) for factor in (0.9, 0.7)]
    moments = FoldMoments.of(validation)
    for paths in made:
        moments.add(paths)
    table = moments.agreement()
    assert list(table["fold"]) == [1, 2, 3]
    for row, pictures in zip(table.to_dict(orient="records"), folds.test_pictures, strict=True):
        for kind, of in (("mean", np.mean), ("sd", lambda it: np.std(it, ddof=1))):
            true = np.array([of(amplitudes(observed, who, pictures)) for who in data.paths.observers])
            each = [[of(amplitudes(paths, who, pictures)) for who in data.paths.observers] for paths in made]
            predicted = np.mean(each, axis=0)
            line = 1 - sum((true - predicted) ** 2) / sum((true - np.mean(true)) ** 2)
            assert row[f"{kind}_r2_identity"] == pytest.approx(line, rel=1e-9)
            assert row[f"{kind}_r2_correlation"] == pytest.approx(np.corrcoef(true, predicted)[0, 1] ** 2, rel=1e-9)
