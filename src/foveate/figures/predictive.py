"""Posterior predictive checks: the data's curves and statistics in the bands of the models' copies."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from foveate.figures.saccades import (
    DATA_TITLE,
    Curves,
    amplitude_density,
    autocorrelation,
    direction_density,
    turn_density,
)
from foveate.figures.style import INK, TWO_COLUMNS_MM, model_colours, new_figure, write_short
from foveate.model.catalogue import TITLES

COLUMNS, ROW_MM, LEGEND_MM = 3, 21.0, 12.0


def predictive_curves(
    amplitude: Mapping[str, Curves],
    turn: Mapping[str, Curves],
    direction: Mapping[str, Curves],
    lags: Mapping[str, Curves],
) -> Figure:
    """Densities of amplitude, turn and direction and the autocorrelation by lag, with the bands of all models."""
    figure = new_figure(TWO_COLUMNS_MM, 130.0)
    axes = figure.subplots(2, 2)
    bands = list(amplitude)
    amplitude_density(amplitude, axes[0, 0], bands=bands)
    turn_density(turn, axes[0, 1], bands=bands)
    direction_density(direction, axes[1, 0], bands=bands)
    autocorrelation(lags, axes[1, 1], bands=bands)
    for ax in axes.flat:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    handles = [line for line in axes[0, 1].lines if not str(line.get_label()).startswith("_")]
    handles.sort(key=lambda line: line.get_label() != DATA_TITLE)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.6)
    return figure


def statistic_panel(table: pd.DataFrame, title: str, ax: Axes) -> Axes:
    """One statistic: the data as a line, every model's mean and band as a row, the first model at the top.

    `table` has a row for each model, in the index: observed, simulated, low, high, inside.
    """
    models = [str(name) for name in table.index]
    ax.axvline(float(table["observed"].iloc[0]), color=INK, linewidth=1.2, zorder=1)
    for place, (name, colour) in enumerate(zip(models, model_colours(models), strict=True)):
        row, height = table.loc[name], len(models) - 1 - place
        ax.plot([row["low"], row["high"]], [height] * 2, color=colour, linewidth=2.2, solid_capstyle="butt", zorder=2)
        inner = colour if bool(row["inside"]) else "white"
        ax.plot(row["simulated"], height, "o", color=colour, markersize=4.5, markerfacecolor=inner, zorder=3)
    ax.set_yticks([])
    ax.set_ylim(-0.8, len(models) - 0.2)
    ax.spines["left"].set_visible(False)
    ax.margins(x=0.12)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    write_short(ax.xaxis)
    ax.set_title(title, fontsize=6.5)
    return ax


def predictive_statistics(tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str]) -> Figure:
    """A panel for every statistic that any model has; `tables` has a row each, by model; `titles` their words."""
    shown = [name for name in titles if any(name in it.index for it in tables.values())]
    rows = -(-len(shown) // COLUMNS)
    figure = new_figure(TWO_COLUMNS_MM, ROW_MM * rows + LEGEND_MM)
    axes: Sequence[Axes] = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for ax, name in zip(axes, shown, strict=False):
        each = {model: it.loc[name] for model, it in tables.items() if name in it.index}
        statistic_panel(pd.DataFrame.from_dict(each, orient="index"), titles[name], ax)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    _legend(figure, list(tables))
    return figure


def _legend(figure: Figure, models: list[str]) -> None:
    handles = [Line2D([], [], color=INK, linewidth=1.2, label=DATA_TITLE)]
    handles += [
        Line2D([], [], color=colour, linewidth=2.2, label=f"{TITLES.get(name, name)}, 95 % band")
        for name, colour in zip(models, model_colours(models), strict=True)
    ]
    handles += [
        Line2D([], [], color=INK, linestyle="", marker="o", markersize=4.5, markerfacecolor=inner, label=words)
        for inner, words in ((INK, "mean, data inside"), ("white", "mean, data outside"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.6)
