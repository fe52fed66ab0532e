"""Reliability of observers' parameters: one half of the pictures against the other, and precision by their number."""

from typing import cast

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from foveate.figures.labels import symbol, with_unit
from foveate.figures.panels import MOST_COLUMNS, NOT_CONVERGED, WARNING
from foveate.figures.style import FAINT, INK, TWO_COLUMNS_MM, model_colours, new_figure, with_minus, write_short
from foveate.model.catalogue import TITLES

SQUARE_MM, HEADING_MM = 58.0, 16.0
MARGIN = 0.08  # of the range, around what is shown
FURTHEST = 4.0  # the line is drawn up to so many times the most pictures that were fitted


def half_against_half(halves: pd.DataFrame, parameters: pd.DataFrame, model: str) -> Figure:
    """For every number the posterior means of the first split's halves, an observer each, with one sd to each side.

    Variances are on logarithmic axes: there the correlation is worked out. Fits that have not converged are in the
    colour of warnings.
    """
    figure, axes = _square_panels(len(parameters))
    colour = model_colours([model])[0]
    first = cast(pd.DataFrame, halves[halves["split"] == halves["split"].min()])
    for ax, about in zip(axes, parameters.to_dict(orient="records"), strict=True):
        mine = cast(pd.DataFrame, first[first["parameter"] == about["parameter"]])
        _scatter(ax, mine, about["scale"] == "log", colour)
        label = about["parameter"]
        name = f"{symbol(label)} (log-odds)" if about["scale"] == "log-odds" else with_unit(label)
        ax.set_xlabel(f"{name}, first half")
        ax.set_ylabel(f"{name}, second half")
        whole = f"{about['reliability']:.2f} ({about['reliability_low']:.2f} to {about['reliability_high']:.2f})"
        words = with_minus(f"r = {about['correlation']:.2f} between halves\nreliability {whole}")
        ax.set_title(f"{symbol(label)}: {words}")
    splits = len(np.unique(halves["split"].to_numpy()))
    several = f"; the first of {splits} splits" if splits > 1 else ""
    bad = not (first["converged_1"] & first["converged_2"]).to_numpy(dtype=bool).all()
    return _finish(figure, axes, model, f"posterior means ± sd of each observer{several}", bad)


def _scatter(ax: Axes, mine: pd.DataFrame, log: bool, colour: str) -> None:
    ends = np.stack([_ends(mine, half, log) for half in (1, 2)])  # (half, low middle high, observer)
    good = (mine["converged_1"] & mine["converged_2"]).to_numpy(dtype=bool)
    for kept, shade, label in ((good, colour, "observer"), (~good, WARNING, NOT_CONVERGED)):
        if not kept.any():
            continue
        (x_low, x, x_high), (y_low, y, y_high) = ends[:, :, kept]
        ax.errorbar(
            x, y, yerr=[y - y_low, y_high - y], xerr=[x - x_low, x_high - x], color=shade, linestyle="", marker="o",
            markersize=3.5, markeredgecolor="white", markeredgewidth=0.4, elinewidth=0.7, label=label, zorder=3,
        )  # fmt: skip
    if log:
        ax.set_xscale("log")
        ax.set_yscale("log")
    low, high = float(ends.min()), float(ends.max())
    if log:
        room = (high / low) ** MARGIN
        low, high = low / room, high * room
    else:
        room = (high - low) * MARGIN
        low, high = low - room, high + room
    ax.plot([low, high], [low, high], color=FAINT, linewidth=0.8, zorder=1, label="equal halves")
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_box_aspect(1)
    _plain_ticks(ax, log)


def _ends(mine: pd.DataFrame, half: int, log: bool) -> Float[np.ndarray, "3 observer"]:
    """Mean less one sd, mean, mean and one sd; back from the logarithm where it is one."""
    mean, sd = (mine[f"{name}_{half}"].to_numpy(dtype=np.float64) for name in ("mean", "sd"))
    ends = np.stack([mean - sd, mean, mean + sd])
    return np.exp(ends) if log else ends


def sd_by_pictures(sizes: pd.DataFrame, needed: pd.DataFrame, model: str) -> Figure:
    """For every number the posterior standard deviation by the number of pictures, both on logarithmic axes.

    Thin: each observer, with a dot for every fit. Thick: the line of the median observer, dashed beyond the pictures
    that were fitted. Dotted: 1 / sqrt(n).
    """
    figure, axes = _square_panels(len(needed))
    colour = model_colours([model])[0]
    for ax, about in zip(axes, needed.to_dict(orient="records"), strict=True):
        mine = cast(pd.DataFrame, sizes[sizes["parameter"] == about["parameter"]])
        _curves(ax, mine, colour)
        _lines(ax, about, colour)
        slope = f"slope {about['slope']:.2f}"
        if about["slope_fitted"]:
            slope += f" ({about['slope_low']:.2f} to {about['slope_high']:.2f})"
        else:
            slope += " by theory"
        ax.set_title(f"{symbol(about['parameter'])}\n{with_minus(slope)}")
        ax.set_xlabel("pictures that the observer saw")
        of = {"log": f"log {symbol(about['parameter'])}", "log-odds": f"log-odds of {symbol(about['parameter'])}"}
        ax.set_ylabel(f"posterior sd of {of.get(about['scale'], symbol(about['parameter']))}")
    bad = not sizes["converged"].to_numpy(dtype=bool).all()
    return _finish(figure, axes, model, "posterior sd by number of pictures", bad)


def _curves(ax: Axes, mine: pd.DataFrame, colour: str) -> None:
    for _, own in mine.groupby("observer", sort=False):
        numbers, place = np.unique(own["pictures"].to_numpy(), return_inverse=True)
        means = np.bincount(place, np.log(own["sd"].to_numpy())) / np.bincount(place)
        ax.plot(numbers, np.exp(means), color=FAINT, alpha=0.6, linewidth=0.4, zorder=1)
    good = mine["converged"].to_numpy(dtype=bool)
    for kept, shade, label in ((good, colour, "fit"), (~good, WARNING, NOT_CONVERGED)):
        if kept.any():
            x, y = (mine[name].to_numpy(dtype=np.float64)[kept] for name in ("pictures", "sd"))
            ax.plot(x, y, ".", color=shade, alpha=0.6, markersize=4, markeredgewidth=0, label=label, zorder=2)


def _lines(ax: Axes, about: dict, colour: str) -> None:
    few, most, wanted = about["fewest_pictures_fitted"], about["most_pictures_fitted"], about["precision"]
    goal = about["pictures_median_observer"]
    last = min(max(goal, most), FURTHEST * most)
    slope, start = about["slope"], about["log_sd_of_one_picture"]

    def height(number: np.ndarray) -> np.ndarray:
        return np.exp(start + slope * np.log(number))

    inside, beyond, every = (np.array(ends, dtype=np.float64) for ends in ((few, most), (most, last), (few, last)))
    middle = np.sqrt(few * most)
    ax.plot(inside, height(inside), color=colour, linewidth=1.6, label="median observer", zorder=3)
    ax.plot(beyond, height(beyond), color=colour, linewidth=1.6, linestyle="--", label="extrapolated", zorder=3)
    theory = height(np.array([middle])) * np.sqrt(middle / every)
    ax.plot(every, theory, color=INK, linewidth=0.9, linestyle=":", label="1/√n", zorder=4)
    ax.axhline(wanted, color=FAINT, linewidth=0.8, label=f"sd of {wanted:g}")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_box_aspect(1)
    _plain_ticks(ax, True)


def _plain_ticks(ax: Axes, log: bool) -> None:
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        wide = limits[1] > 10 * limits[0] if log else True
        if log:
            axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if wide else (1.0, 2.0, 3.0, 5.0, 7.0), numticks=8))
            axis.set_minor_locator(NullLocator())
        else:
            axis.set_major_locator(MaxNLocator(4))
        write_short(axis)


def _square_panels(count: int) -> tuple[Figure, list[Axes]]:
    """A figure of two columns' width with a square panel for each of `count` numbers."""
    columns = min(count, MOST_COLUMNS if count != 4 else 2)
    rows = -(-count // columns)
    figure = new_figure(TWO_COLUMNS_MM * columns / MOST_COLUMNS, rows * SQUARE_MM + HEADING_MM)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count]


def _finish(figure: Figure, axes: list[Axes], model: str, words: str, bad: bool) -> Figure:
    """A heading, in the colour of warnings where some fits deserve one, and a legend with what is in any panel."""
    entries = {}
    for ax in axes:
        entries |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    beside = 2 * min(len(axes), MOST_COLUMNS)
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=min(len(entries), beside))
    heading = f"{TITLES.get(model, model)}: {words}"
    if bad:
        heading += f"; some fits {NOT_CONVERGED.upper()}"
    figure.suptitle(heading, x=0.01, ha="left", fontsize=7.5, color=WARNING if bad else INK)
    return figure
