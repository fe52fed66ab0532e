"""The figure of a calibration shows ranks in even bins, their band, and where the curve leaves it."""

import numpy as np
import pandas as pd
import pytest

from foveate.evaluate.uniformity import ecdf_difference as difference_of
from foveate.evaluate.uniformity import simultaneous_band
from foveate.figures import style
from foveate.figures.calibration import OUTSIDE, bins_for, calibration, ecdf_difference, rank_histogram
from foveate.figures.recovery import MISSED, true_and_found

LABELS = ("xi_row", "b", "log_likelihood")


def figure_of(ranks: np.ndarray):
    band = simultaneous_band(len(ranks), 99, 0.01)
    differences = np.stack([difference_of(column, 99) for column in ranks.T])
    return calibration(ranks, 99, differences, band.low_difference, band.high_difference, LABELS, "passed")


def test_columns_are_quantities_and_the_file_can_be_written(tmp_path):
    ranks = np.random.default_rng(1).integers(0, 100, (200, 3))
    with style.journal_style():
        figure = figure_of(ranks)
        files = style.save(figure, tmp_path, "calibration")
    assert all(file.stat().st_size > 1000 for file in files)
    assert [ax.get_title(loc="left") for ax in figure.axes[:3]] == ["ξ row", "b", "log-likelihood"]
    curves = np.stack([np.asarray(ax.lines[1].get_ydata()) for ax in figure.axes[3:6]])
    np.testing.assert_allclose(curves, [difference_of(column, 99) for column in ranks.T])
    low, high = figure.axes[3].get_ylim()
    assert low < curves.min()
    assert curves.max() < high


@pytest.mark.parametrize(("data_sets", "bins"), [(200, 20), (150, 10), (50, 5), (10, 4)])
def test_bins_share_out_the_ranks_evenly(data_sets, bins):
    assert bins_for(data_sets, 99) == bins
    ax = style.new_figure().subplots()
    rank_histogram(np.arange(100).repeat(2), 99, ax)
    heights = [patch.get_height() for patch in ax.patches[1:]]  # after the band
    assert heights == [10] * 20


def test_only_what_leaves_the_band_is_coloured():
    band = simultaneous_band(200, 99, 0.01)
    for ranks, outside in ((np.arange(200) // 2, False), (np.arange(200) // 4, True)):
        ax = style.new_figure().subplots()
        ecdf_difference(difference_of(ranks, 99), band.low_difference, band.high_difference, ax)
        dots = next(line for line in ax.lines if line.get_color() == OUTSIDE)
        assert (len(dots.get_xdata()) > 0) == outside


def test_many_quantities_share_rows_of_panels():
    ranks = np.random.default_rng(1).integers(0, 100, (50, 11))
    band = simultaneous_band(50, 99, 0.01)
    differences = np.stack([difference_of(column, 99) for column in ranks.T])
    labels = [f"slope_momentum_{index}" for index in range(11)]
    figure = calibration(ranks, 99, differences, band.low_difference, band.high_difference, labels, "passed")
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert len(shown) == 22
    assert sum(bool(ax.get_title()) for ax in shown) == 11
    assert len({ax.get_subplotspec().colspan.start for ax in shown}) == 6  # type: ignore[union-attr]


def test_true_values_and_those_found_are_drawn_and_misses_are_coloured():
    truth = np.array([[1.0, 0.0], [10.0, 1.0], [100.0, 2.0]])
    low, high = truth * 0.5 - 0.1, truth * 2 + 0.1
    low[2, 0] = 150.0  # this interval does not hold the truth
    columns = {"correlation": [1.0, -0.5], "inside_90": [2 / 3, 1.0]}
    found = pd.DataFrame(columns, index=pd.Index(["xi_row", "kappa"]))
    figure = true_and_found(truth, truth, low, high, ["xi_row", "kappa"], found, "momentum")
    first, second = figure.axes
    assert (first.get_xscale(), second.get_xscale()) == ("log", "linear")
    missed = [len(line.get_xdata()) for ax in figure.axes for line in ax.lines if line.get_color() == MISSED]
    assert missed == [1, 0]
    assert second.get_title() == "kappa\nr −0.50, 100% inside"
