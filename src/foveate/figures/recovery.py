"""Recovery of known parameters, as in the paper's Figure 4: do chains that start far apart find the truth?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from foveate.figures.labels import VARIANCE_UNIT, unit, words_of
from foveate.figures.panels import finish, panels_for, row_word, shades
from foveate.figures.posterior import density_of, legend_above
from foveate.figures.style import INK, ONE_COLUMN_MM, TWO_COLUMNS_MM, new_figure, with_minus, write_short
from foveate.inference.posterior import Posterior

COLUMNS, PANEL_MM, HEADING_MM = 5, 36.0, 14.0
HELD, MISSED = "#0072B2", "#D55E00"  # of intervals that hold the truth, and that do not


def recovery(posterior: Posterior, truths: Float[np.ndarray, " number"]) -> Figure:
    """For every number the posterior density of each chain, the prior dashed and the truth as a vertical line."""
    figure, axes = panels_for(len(posterior.labels))
    each = row_word(posterior)
    colours = shades(posterior.model.name, len(posterior.numbers))
    for index, (label, ax) in enumerate(zip(posterior.labels, axes, strict=True)):
        draws = posterior.numbers[:, :, index]
        density_of(posterior.model, draws, label, colours, ax, truth=float(truths[index]), each=each)
    legend_above(figure, axes[0])
    return finish(figure, axes, posterior)


def true_and_found(
    truth: Float[np.ndarray, "data_set number"],
    mean: Float[np.ndarray, "data_set number"],
    low: Float[np.ndarray, "data_set number"],
    high: Float[np.ndarray, "data_set number"],
    labels: Sequence[str],
    found: pd.DataFrame,
    title: str,
) -> Figure:
    """For every number the mean of the draws against the truth, data set by data set, with 90 % intervals.

    `found` has a row for every number: the correlation r of the two and how often the truth is inside. Values
    of variances are on a logarithmic axis. An interval that does not hold the truth is drawn in another colour.
    """
    rows = -(-len(labels) // COLUMNS)
    columns = -(-len(labels) // rows)
    figure = new_figure(max(TWO_COLUMNS_MM * columns / COLUMNS, ONE_COLUMN_MM), rows * PANEL_MM + HEADING_MM)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for index, (label, ax) in enumerate(zip(labels, axes, strict=False)):
        x, y, ends = truth[:, index], mean[:, index], (low[:, index], high[:, index])
        held = (ends[0] <= x) & (x <= ends[1])
        for which, colour in ((held, HELD), (~held, MISSED)):
            ax.vlines(x[which], ends[0][which], ends[1][which], color=colour, linewidth=0.5, alpha=0.6)
            ax.plot(x[which], y[which], ".", color=colour, markersize=2.5)
        limits = min(x.min(), y.min()), max(x.max(), y.max())
        ax.plot(limits, limits, color=INK, linewidth=0.6, zorder=3)
        if unit(label) == VARIANCE_UNIT:
            ax.set_xscale("log")
            ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(numticks=6) if unit(label) == VARIANCE_UNIT else MaxNLocator(4))
            axis.set_minor_locator(NullLocator())
            write_short(axis)
        row = found.loc[label]
        said = f"r {row['correlation']:.2f}, {row['inside_90']:.0%} inside"
        ax.set_title(f"{words_of(label)}\n{with_minus(said)}", fontsize=6.5)
    for ax in axes[len(labels) :]:
        ax.set_visible(False)
    figure.supxlabel("true value (variances in deg²)", fontsize=7.0)
    figure.supylabel("mean and 90 % interval of the draws", fontsize=7.0)
    figure.suptitle(title, x=0.01, ha="left", fontsize=7.5)
    return figure
