"""Differences between groups of observers: an interval for every parameter, and a line where there is none."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from foveate.errors import InputError, some_of
from foveate.figures.labels import symbol
from foveate.figures.panels import NOT_CONVERGED, WARNING
from foveate.figures.style import FAINT, INK, TWO_COLUMNS_MM, new_figure

COLUMNS = (
    "first", "second", "parameter", "scale", "difference", "low", "high", "low_all", "high_all",
    "probability_above_zero",
)  # fmt: skip

# Of pairs of groups, in turn.
PAIR_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")

# Differences that are logarithms share an axis of ratios; each of the others has its own unit, and its own axis.
RATIOS = {"log ratio": "ratio", "log odds ratio": "odds ratio"}

# Heights in millimetres: of a parameter with one pair, of every further pair, of an axis with its ticks, of what stands
# above and below.
ROW_MM, PAIR_MM, AXIS_MM, AROUND_MM = 5.0, 3.0, 9.0, 22.0

LEAST_SHOWN = 0.001  # a smaller probability is not known better than that

SPREAD = 0.6  # of the height of a parameter's row that its pairs take up


def contrasts(table: pd.DataFrame, *, level: float = 0.95, unconverged: int = 0) -> Figure:
    """A row for every parameter with its difference between each two groups; `table` is that of a `Contrasts`.

    A thick bar is the interval of one difference, a thin one that in which all of the figure hold together; beside
    them stands the probability that the first group has the higher mean.
    """
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing or not len(table):
        raise InputError(f"the table of contrasts has no {some_of(missing) or 'rows'}; give that of a Contrasts.")
    pairs = list(dict.fromkeys(zip(table["first"], table["second"], strict=True)))
    panels = _panels(table)
    heights = [len(names) * (ROW_MM + PAIR_MM * (len(pairs) - 1)) + AXIS_MM for names, _ in panels]
    figure = new_figure(TWO_COLUMNS_MM * 0.75, sum(heights) + AROUND_MM + 3.5 * len(pairs))
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for (names, ratios), ax in zip(panels, axes, strict=True):
        _panel(table, names, pairs, ratios, ax)
    axes[0].text(1.02, 1.0, "P(first\nhigher)", transform=axes[0].transAxes, va="bottom", fontsize=6.0, color=INK)
    bars = f"{100 * level:g} % interval"
    if len(table) > 1:  # a single difference has no other interval
        bars = f"thick: {bars}; thin: all {len(table)} together"
    words = f"{bars}; grey line: no difference"
    figure.supxlabel(words, fontsize=6.5)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=1, handlelength=1.5)
    if unconverged:
        figure.text(0.99, 0.995, f"{unconverged} fits {NOT_CONVERGED.upper()}", ha="right", va="top", color=WARNING)
    return figure


def _panels(table: pd.DataFrame) -> list[tuple[list[str], bool]]:
    """Parameters that share an axis, and whether it is one of ratios."""
    scales = dict(zip(table["parameter"], table["scale"], strict=True))
    ratios = [name for name, scale in scales.items() if scale in RATIOS]
    return [(ratios, True)] * bool(ratios) + [([name], False) for name in scales if name not in ratios]


def _panel(table: pd.DataFrame, names: list[str], pairs: list[tuple[Any, Any]], ratios: bool, ax: Axes) -> None:
    shown = np.exp if ratios else np.asarray
    ax.axvline(1.0 if ratios else 0.0, color=FAINT, linewidth=0.8, zorder=1)
    offsets = np.linspace(SPREAD / 2, -SPREAD / 2, len(pairs)) if len(pairs) > 1 else np.zeros(1)
    for row in table.to_dict("records"):
        if row["parameter"] not in names:
            continue
        place = pairs.index((row["first"], row["second"]))
        height = len(names) - 1 - names.index(row["parameter"]) + offsets[place]
        colour = PAIR_COLOURS[place % len(PAIR_COLOURS)]
        ends = shown([row["low_all"], row["low"], row["difference"], row["high"], row["high_all"]])
        ax.plot(ends[[0, 4]], [height, height], color=colour, linewidth=0.8, zorder=2)
        ax.plot(ends[[1, 3]], [height, height], color=colour, linewidth=2.4, zorder=3)
        disc = {"markersize": 5, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 4}
        label = f"{row['first']} against {row['second']}" if row["parameter"] == names[0] else None
        ax.plot(ends[2], height, "o", color=colour, label=label, **disc)
        beside = _probability(row["probability_above_zero"])
        ax.text(1.02, height, beside, transform=ax.get_yaxis_transform(), va="center", fontsize=6.0, color=INK)
    scales = dict(zip(table["parameter"], table["scale"], strict=True))
    ax.set_yticks(range(len(names))[::-1], labels=[symbol(name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.5, len(names) - 0.5)
    ax.grid(axis="x", color="#E4E4E4", linewidth=0.5)
    ax.set_axisbelow(True)
    if ratios:
        _ratio_axis(ax)
        kinds = {RATIOS[scales[name]] for name in names}
        of_odds = f" ({', '.join(symbol(it) for it in names if scales[it] == 'log odds ratio')}: of odds)"
        ax.set_xlabel(f"ratio of geometric means, first to second{of_odds if 'odds ratio' in kinds else ''}")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.set_xlabel(f"difference of means in {symbol(names[0])}, first − second")


def _probability(value: float) -> str:
    if value < LEAST_SHOWN:
        return f"<{LEAST_SHOWN}"
    return f">{1 - LEAST_SHOWN}" if value > 1 - LEAST_SHOWN else f"{value:.3f}"


def _ratio_axis(ax: Axes) -> None:
    """A logarithmic axis with as many of the usual ratios as it has room for."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    steps: tuple[float, ...] = (1.1, 1.25, 1.5, 2, 4, 10, 100, 1e3)
    wide = max(high, 1 / low)
    most = next((index for index, step in enumerate(steps) if step >= wide), len(steps) - 1)
    chosen = steps[max(0, most - 3) : most + 1]
    ticks = [it for it in sorted({1.0, *chosen, *(1 / step for step in chosen)}) if low <= it <= high]
    ax.set_xticks(ticks)
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}" if value < 1 else f"{value:g}"))
    ax.set_xlim(low, high)
