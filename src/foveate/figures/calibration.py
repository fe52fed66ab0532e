"""Simulation-based calibration: are the ranks of the truth among a posterior's draws uniform?"""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from foveate.figures.labels import words_of
from foveate.figures.style import FAINT, INK, TWO_COLUMNS_MM, new_figure

BAND = "#DDE3E8"
BARS = "#7FA8C9"
OUTSIDE = "#D55E00"

# Of each bar of a histogram alone; the test itself looks at the distribution below.
BAR_BAND = 0.99

# A bar needs about this many ranks to say anything, and a panel has room for so many bars.
RANKS_A_BAR, FEWEST_BARS, MOST_BARS = 10, 4, 20

MOST_COLUMNS, WORDS_WIDTH = 8, 16  # panels side by side; letters of a heading in a line


def bins_for(data_sets: int, draws: int) -> int:
    """How many bins share out the ranks 0, ..., `draws` evenly and hold enough of them each."""
    fitting = [count for count in range(1, MOST_BARS + 1) if (draws + 1) % count == 0]
    few = min((count for count in fitting if count >= FEWEST_BARS), default=1)
    return max((count for count in fitting if count * RANKS_A_BAR <= data_sets and count > few), default=few)


def rank_histogram(ranks: Int[np.ndarray, " data_set"], draws: int, ax: Axes) -> Axes:
    """How often each rank occurs, with the band in which 99 % of the bars of uniform ranks lie."""
    bins = bins_for(len(ranks), draws)
    edges = np.linspace(0, draws + 1, bins + 1)
    low, high = binom.interval(BAR_BAND, len(ranks), 1 / bins)
    ax.axhspan(low, high, color=BAND, linewidth=0, zorder=0)
    ax.axhline(len(ranks) / bins, color=FAINT, linewidth=0.6, zorder=1)
    ax.axhline(low, color=FAINT, linewidth=0.6, linestyle=":", zorder=3)  # bars hide where the band ends
    ax.hist(ranks, bins=edges.tolist(), color=BARS, edgecolor="white", linewidth=0.4, zorder=2)
    ax.set_xlim(0, draws + 1)
    ax.set_ylim(0, max(1.15 * high, *ax.get_ylim()))
    ax.set_xticks([0, (draws + 1) / 2, draws + 1], labels=["0", str((draws + 1) // 2), str(draws)])
    return ax


def ecdf_difference(
    difference: Float[np.ndarray, " point"],
    low: Float[np.ndarray, " point"],
    high: Float[np.ndarray, " point"],
    ax: Axes,
) -> Axes:
    """Empirical less uniform distribution of the ranks, with the band that uniform ranks keep to as a whole.

    Where the curve leaves the band it is drawn in another colour.
    """
    draws = len(difference)
    place = np.arange(1, draws + 1)
    ax.fill_between(place, low, high, color=BAND, linewidth=0, zorder=0)
    ax.axhline(0, color=FAINT, linewidth=0.6, zorder=1)
    ax.step(place, difference, where="post", color=INK, linewidth=0.9, zorder=2)
    outside = (difference < low) | (difference > high)
    ax.plot(place[outside], difference[outside], ".", color=OUTSIDE, markersize=3, zorder=3)
    most = 1.1 * max(np.abs([low, high, difference]).max(), 1e-3)
    ax.set_ylim(-most, most)
    ax.set_xlim(0, draws + 1)
    ax.set_xticks([0, (draws + 1) / 2, draws + 1], labels=["0", str((draws + 1) // 2), str(draws)])
    return ax


def calibration(
    ranks: Int[np.ndarray, "data_set quantity"],
    draws: int,
    differences: Float[np.ndarray, "quantity point"],
    low: Float[np.ndarray, " point"],
    high: Float[np.ndarray, " point"],
    labels: Sequence[str],
    title: str,
) -> Figure:
    """Histograms of the ranks above their distributions, a column for every quantity; `title` says what was found."""
    blocks = -(-len(labels) // MOST_COLUMNS)
    columns = -(-len(labels) // blocks)
    figure = new_figure(max(TWO_COLUMNS_MM * columns / 7, 110.0), 72.0 * blocks)
    axes = figure.subplots(2 * blocks, columns, squeeze=False)
    histograms, distributions = axes[::2].ravel(), axes[1::2].ravel()
    for index, label in enumerate(labels):
        rank_histogram(ranks[:, index], draws, histograms[index])
        histograms[index].set_title(fill(words_of(label), WORDS_WIDTH))
        histograms[index].tick_params(labelbottom=False)
        ecdf_difference(differences[index], low, high, distributions[index])
    # One scale for all panels of a kind, which must hold what is in any of them.
    tallest = max(patch.get_height() for ax in histograms[: len(labels)] for patch in ax.patches)
    highest = 1.1 * max(tallest, histograms[0].get_ylim()[1] / 1.15)
    most = 1.1 * float(np.abs([*differences, low, high]).max())
    for index, (above, below) in enumerate(zip(histograms, distributions, strict=True)):
        above.set_ylim(0, highest)
        below.set_ylim(-most, most)
        above.set_visible(index < len(labels))
        below.set_visible(index < len(labels))
        if index % columns:
            above.tick_params(labelleft=False)
            below.tick_params(labelleft=False)
        else:
            above.set_ylabel("data sets")
            below.set_ylabel("distribution of ranks,\nempirical less uniform")
    figure.supxlabel(f"rank of the truth among {draws} draws", fontsize=7.0)
    figure.suptitle(title, x=0.01, ha="left", fontsize=7.5)
    return figure
