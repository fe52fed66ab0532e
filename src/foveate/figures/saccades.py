"""Saccades of the data and of models: amplitudes, their autocorrelation, observers, directions (the paper's Figs. 6-9).

Every function takes curves by model's name, all with the same observed one (`Curves`: `foveate.evaluate.statistics`
makes them). The data are black; a model has its colour and, so that no one needs colour to tell them apart, its dashes.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from foveate.errors import InputError
from foveate.figures.style import (
    FAINT,
    INK,
    ONE_COLUMN_MM,
    TWO_COLUMNS_MM,
    model_colours,
    new_figure,
    with_minus,
    write_short,
)
from foveate.model.catalogue import TITLES

DATA_TITLE, UNIFORM_TITLE = "Data", "uniform"
BAND_ALPHA = 0.25

DASHES: dict[str, Any] = {
    "full": "-",
    "local_choice": (0, (5, 1.5)),
    "fixed_choice": (0, (3, 1, 1, 1)),
    "local_saliency": (0, (1.5, 1)),
    "saliency_baseline": (0, (6, 2, 1, 2, 1, 2)),
    "wayfarer": (0, (8, 1)),
}

# Share of the observed and simulated mass that an axis of amplitudes shows: beyond there is only a flat tail.
SHOWN_MASS = 0.999

# The density of angles if all were alike, drawn for comparison.
UNIFORM = 1 / 360
UNIFORM_LINE: dict[str, Any] = {
    "color": FAINT, "linewidth": 0.6, "linestyle": ":", "zorder": 0, "label": UNIFORM_TITLE,
}  # fmt: skip

ROUND = [1, 2, 5, 10]  # leading digits of ticks
RIGHT_UP_LEFT_DOWN = ("right", "up", "left", "down")


@runtime_checkable
class Curves(Protocol):
    """An observed curve, and the mean and the band of simulated ones at the same points."""

    @property
    def at(self) -> np.ndarray:
        """Where the curves are known."""
        ...

    @property
    def observed(self) -> np.ndarray:
        """The data's."""
        ...

    @property
    def mean(self) -> np.ndarray:
        """Mean over draws of the simulated ones."""
        ...

    @property
    def low(self) -> np.ndarray:
        """Lower end of the band over draws."""
        ...

    @property
    def high(self) -> np.ndarray:
        """Upper end of the band over draws."""
        ...


def _same_data(models: Mapping[str, Curves]) -> Curves:
    """The curves of the first model, whose observed one is that of all."""
    if not models:
        raise InputError("no model given: there is nothing to draw against the data.")
    first, *others = models.values()
    for name, curves in zip(list(models)[1:], others, strict=True):
        same = np.array_equal(curves.at, first.at) and np.array_equal(curves.observed, first.observed, equal_nan=True)
        if not same:
            raise InputError(f"model {name!r} was compared with other data than {next(iter(models))!r}.")
    return first


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _draw(models: Mapping[str, Curves], ax: Axes, bands: Collection[str], closed: bool = False) -> None:
    """The data's curve and every model's, with the bands of those that are named; `closed`: round the circle."""

    def joined(values: np.ndarray) -> np.ndarray:
        return np.append(values, values[0]) if closed else values

    data = _same_data(models)
    at = np.append(data.at, data.at[0] + 360.0) if closed else data.at
    at = np.radians(at) if ax.name == "polar" else at
    for (name, curves), colour in zip(models.items(), model_colours(list(models)), strict=True):
        if name in bands:
            ax.fill_between(at, joined(curves.low), joined(curves.high), color=colour, alpha=BAND_ALPHA, linewidth=0)
        ax.plot(
            at, joined(curves.mean), color=colour, linestyle=DASHES.get(name, "-"), linewidth=1.1, label=_title(name)
        )
    ax.plot(at, joined(data.observed), color=INK, linewidth=1.4, label=DATA_TITLE, zorder=3)


def _legend(ax: Axes, **place: Any) -> None:
    """A legend with the data first."""
    handles, names = ax.get_legend_handles_labels()
    order = sorted(range(len(names)), key=lambda index: names[index] != DATA_TITLE)
    ax.legend([handles[i] for i in order], [names[i] for i in order], handlelength=2.6, **place)


def _round_ticks(axis: Axis, most: int) -> None:
    """Few ticks at round numbers."""
    axis.set_major_locator(MaxNLocator(most, steps=ROUND))
    write_short(axis)


def amplitude_density(models: Mapping[str, Curves], ax: Axes, *, bands: Collection[str] = ()) -> Axes:
    """Density of saccade amplitudes of the data and of every model, with the bands of those in `bands` (Fig. 6)."""
    _draw(models, ax, bands)
    data = _same_data(models)
    shares = [np.cumsum(curve) / np.sum(curve) for curve in (data.observed, *(c.mean for c in models.values()))]
    end = max(int(np.searchsorted(share, SHOWN_MASS)) for share in shares)
    ax.set_xlim(0, float(data.at[min(end + 1, len(data.at) - 1)]))
    ax.set_ylim(bottom=0)
    _round_ticks(ax.yaxis, 5)
    ax.set_xlabel("saccade amplitude (deg)")
    ax.set_ylabel("density (1/deg)")
    _legend(ax, loc="upper right")
    return ax


def autocorrelation(models: Mapping[str, Curves], ax: Axes, *, bands: Collection[str] = ()) -> Axes:
    """Autocorrelation of saccade amplitudes by lag, from lag 1 on (Fig. 7); it is 1 at lag 0."""
    data = _same_data(models)
    shown = data.at >= 1
    ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    styles = zip(models.items(), model_colours(list(models)), "osD^v<>p*h" * len(models), strict=False)
    for (name, curves), colour, marker in styles:
        at, mean = curves.at[shown], curves.mean[shown]
        if name in bands:
            ax.fill_between(at, curves.low[shown], curves.high[shown], color=colour, alpha=BAND_ALPHA, linewidth=0)
        line = {"linestyle": DASHES.get(name, "-"), "linewidth": 0.9, "marker": marker, "markersize": 2.6}
        ax.plot(at, mean, color=colour, markeredgewidth=0, label=_title(name), **line)
    ax.plot(data.at[shown], data.observed[shown], color=INK, linewidth=1.3, marker="o", markersize=3.2,
            markeredgewidth=0, label=DATA_TITLE, zorder=3)  # fmt: skip
    last = int(data.at[-1])
    ax.set_xticks([1, *range(5, last + 1, 5)] if last >= 5 else range(1, last + 1))
    ax.set_xlabel("lag (saccades)")
    ax.set_ylabel("autocorrelation of amplitude")
    _legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3)
    return ax


def observers(curves: Curves, model: str, quantity: str, r2_identity: float, r2_correlation: float, ax: Axes) -> Axes:
    """A number of every observer, simulated against observed, with its band and the identity line (Fig. 8).

    `quantity` is what the number is: "mean saccade amplitude (deg)". The two R^2 stand in the panel by their names.
    """
    colour = model_colours([model])[0]
    low, high = np.minimum(curves.low, curves.mean), np.maximum(curves.high, curves.mean)
    everything = np.concatenate([curves.observed, low, high])
    margin = 0.05 * (np.nanmax(everything) - np.nanmin(everything)) or 0.5
    limits = (float(np.nanmin(everything) - margin), float(np.nanmax(everything) + margin))
    ax.plot(limits, limits, color=FAINT, linewidth=0.8, linestyle="--", zorder=1)
    ax.errorbar(
        curves.observed,
        curves.mean,
        yerr=np.stack([curves.mean - low, high - curves.mean]),
        color=colour,
        linestyle="",
        marker="o",
        markersize=3.4,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.7,
        zorder=2,
    )
    ax.set_xlim(*limits)
    ax.set_ylim(*limits)
    ax.set_aspect("equal")
    for axis in (ax.xaxis, ax.yaxis):
        _round_ticks(axis, 5)
    words = f"R² (identity line) = {r2_identity:.2f}\nR² (correlation) = {r2_correlation:.2f}"
    # Where the points leave room: models that make too short saccades have theirs below the line.
    below = float(np.nanmean(curves.mean)) < float(np.nanmean(curves.observed))
    place = {"x": 0.03, "y": 0.97, "ha": "left", "va": "top"} if below else {"x": 0.97, "y": 0.03, "ha": "right"}
    ax.text(s=with_minus(words), transform=ax.transAxes, **place)
    ax.set_title(quantity)
    ax.set_xlabel("data")
    ax.set_ylabel(f"{_title(model)} model" if model in TITLES else model)
    return ax


# --- directions ----------------------------------------------------------------------------------------------------


def direction_density(models: Mapping[str, Curves], ax: Axes, *, bands: Collection[str] = ()) -> Axes:
    """Density of the directions of saccades as a viewer sees them (Fig. 9, left); polar axes or plain ones."""
    _draw(models, ax, bands, closed=True)
    if ax.name == "polar":
        ax.set_ylim(bottom=0)
        ax.set_xticks(np.radians([0, 90, 180, 270]), labels=RIGHT_UP_LEFT_DOWN)
        ax.plot(np.linspace(0, 2 * np.pi, 181), np.full(181, UNIFORM), **UNIFORM_LINE)
        # The circle itself is at a round number, written outside: within, it would stand in the curves or on a ring.
        most = float(MaxNLocator(6, steps=ROUND).tick_values(0, ax.get_ylim()[1])[-1])
        ax.set_ylim(0, most)
        ax.set_yticks([])
        ax.annotate(f"{most:g}", (np.radians(50), most), xytext=(2, 2), textcoords="offset points")
        ax.grid(color="#E4E4E4", linewidth=0.5)
        ax.spines["polar"].set_color(FAINT)
        return ax
    _angle_axis(ax, ("left", "down", "right", "up", "left"))
    ax.set_xlabel("direction of saccade")
    return ax


def turn_density(models: Mapping[str, Curves], ax: Axes, *, bands: Collection[str] = ()) -> Axes:
    """Density of the change of direction from one saccade to the next (Fig. 9, right)."""
    _draw(models, ax, bands, closed=True)
    _angle_axis(ax, ("−180\nback", "−90\nright", "0\nstraight on", "90\nleft", "180\nback"))
    ax.set_xlabel("change of direction (deg)")
    return ax


def _angle_axis(ax: Axes, labels: tuple[str, ...]) -> None:
    ax.set_xlim(-180, 180)
    ax.set_xticks([-180, -90, 0, 90, 180], labels=labels)
    ax.set_ylim(bottom=0)
    _round_ticks(ax.yaxis, 5)
    ax.axhline(UNIFORM, **UNIFORM_LINE)
    ax.set_ylabel("density (1/deg)")


# --- whole figures -------------------------------------------------------------------------------------------------


def amplitudes(models: Mapping[str, Curves], bands: Collection[str] = ("full", "local_saliency")) -> Figure:
    """All models against the data, and beside it those of `bands` with their bands (Fig. 6)."""
    with_band = {name: curves for name, curves in models.items() if name in bands}
    figure = new_figure(TWO_COLUMNS_MM if with_band else ONE_COLUMN_MM, 65.0)
    axes = figure.subplots(1, 2 if with_band else 1, squeeze=False, sharey=True)[0]
    amplitude_density(models, axes[0])
    axes[0].set_title("all models")
    if with_band:
        amplitude_density(with_band, axes[1], bands=bands)
        axes[1].set_title("with 95 % bands over posterior draws")
        axes[1].set_ylabel("")
        axes[1].set_xlim(axes[0].get_xlim())
    return figure


def directions(models: Mapping[str, Curves], turns: Mapping[str, Curves], bands: Collection[str] = ()) -> Figure:
    """Directions on a circle, and changes of direction beside them (Fig. 9)."""
    figure = new_figure(TWO_COLUMNS_MM, 75.0)
    left = figure.add_subplot(1, 2, 1, projection="polar")
    right = figure.add_subplot(1, 2, 2)
    direction_density(models, left, bands=bands).set_title("direction; density (1/deg)")
    turn_density(turns, right, bands=bands).set_title("change of direction")
    handles: list[Line2D] = [line for line in right.lines if not str(line.get_label()).startswith("_")]
    handles.sort(key=lambda line: line.get_label() != DATA_TITLE)
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=2.6)
    return figure
