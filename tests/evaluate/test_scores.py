"""Scores agree with what they are by definition, on numbers that can be worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.evaluate.scores import bits_per_fixation, over_observers
from foveate.model.catalogue import named_model
from foveate.model.steps import Steps


def steps_on(values: list[list[float]], cells: list[tuple[int, int]]) -> Steps:
    """One path whose fixations lie in these cells of one map, a degree a cell."""
    array = np.array(values)
    extent = Extent(float(array.shape[0]), float(array.shape[1]))
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": np.arange(1, len(cells) + 1)})
    table["y_deg"], table["x_deg"] = (np.array(cells) + 0.5).T
    maps = SaliencyMaps(Grid(*array.shape, extent), (1,), array[None])
    return Steps.of(Dataset(ScanPaths.from_table(table, extent), maps), paths=2, steps=5)


def test_bits_are_the_gain_over_uniform_from_the_third_fixation_on():
    """Cells of 1/2 and 1/8 on a map of four: log2(1/2) + 2 = 1 and log2(1/8) + 2 = -1; the padding does not count."""
    steps = steps_on([[0.5, 0.125], [0.25, 0.125]], [(1, 0), (1, 1), (0, 0), (0, 0), (0, 1), (0, 0)])
    assert bits_per_fixation(named_model("saliency_baseline"), steps) == pytest.approx((1 + 1 - 1 + 1) / 4)


def test_a_flat_map_gains_nothing():
    steps = steps_on([[0.25, 0.25], [0.25, 0.25]], [(1, 0), (1, 1), (0, 0)])
    assert bits_per_fixation(named_model("saliency_baseline"), steps) == pytest.approx(0, abs=1e-12)


def test_mean_and_standard_error_over_observers():
    scores = np.array([1.0, 1.5, 3.0, 2.0])
    assert over_observers(scores) == pytest.approx((1.875, stats.sem(scores)))


def test_one_observer_has_no_standard_error():
    with pytest.raises(InputError, match="at least two"):
        over_observers(np.array([1.0]))
