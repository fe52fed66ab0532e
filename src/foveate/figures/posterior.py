"""A posterior: its numbers in pairs, and each number's density against its prior."""

from typing import cast

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foveate.figures.labels import unit, with_unit
from foveate.figures.panels import finish, fit_axis, panels_for
from foveate.figures.style import INK, TWO_COLUMNS_MM, model_colours, new_figure
from foveate.inference.marginals import prior_density, shown_range, smooth_density
from foveate.inference.posterior import Posterior
from foveate.model.model import Model

MODE_COLOURS = ("#D55E00", "#009E73", "#E69F00", "#CC79A7")
SMALLEST_SHOWN_MASS = 0.01

MOST_POINTS = 2000  # in a panel of a pair plot: more only make it black
BINS, BARS = 30, "#DDE3E8"
CURVE_POINTS = 200


def pairs(posterior: Posterior) -> Figure:
    """Draws of all numbers, two by two, with histograms on the diagonal; a cross on top of each mode that is known.

    Panels of a column share their x axis, dots of a row their y axis. A few draws far out are beyond the limits.
    """
    labels = posterior.labels
    size_mm = TWO_COLUMNS_MM if len(labels) > 3 else 110.0
    figure = new_figure(size_mm, size_mm)
    axes = figure.subplots(len(labels), len(labels), squeeze=False, sharex="col")
    numbers = posterior.numbers.reshape(-1, len(labels))
    some = numbers[:: -(-len(numbers) // MOST_POINTS)]
    colour = model_colours([posterior.model.name])[0]
    modes = _shown_modes(posterior)
    for row, label in enumerate(labels):
        tops = modes[label].tolist() if len(modes) else []
        fit_axis(axes[row, row], "x", numbers[:, row], label, tops)
        for ax in axes[row, 1:row]:
            ax.sharey(axes[row, 0])
        if row:
            fit_axis(axes[row, 0], "y", numbers[:, row], label, tops)
        for column in range(len(labels)):
            ax = axes[row, column]
            if column > row:
                ax.set_visible(False)
            elif column == row:
                _histogram(numbers[:, row], colour, ax)
            else:
                dots = {"linestyle": "", "marker": ".", "markersize": 2.0, "markeredgewidth": 0}
                ax.plot(some[:, column], some[:, row], color=colour, alpha=0.25, **dots)
            _outer_labels(ax, row, column, labels)
    _draw_modes(modes, labels, axes, figure)
    finish(figure, [axes[i, i] for i in range(len(labels))], posterior)
    figure.align_labels(list(axes.flat))
    return figure


def _histogram(values: Float[np.ndarray, " draw"], colour: str, ax: Axes) -> None:
    """Bars over what the x axis shows."""
    space = np.geomspace if ax.get_xscale() == "log" else np.linspace
    edges = space(*ax.get_xlim(), BINS + 1)
    ax.hist(values, bins=edges.tolist(), color=colour, alpha=0.7)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def _outer_labels(ax: Axes, row: int, column: int, labels: list[str]) -> None:
    if row == len(labels) - 1:
        ax.set_xlabel(with_unit(labels[column]))
    else:
        ax.tick_params(labelbottom=False)
    if column == 0 and row > 0:
        ax.set_ylabel(with_unit(labels[row]))
    elif column != row:
        ax.tick_params(labelleft=False)


def _shown_modes(posterior: Posterior) -> pd.DataFrame:
    """The modes with some mass, as many as there are colours."""
    found = posterior.modes()
    found = cast(pd.DataFrame, found[found["mass"] >= SMALLEST_SHOWN_MASS]) if len(found) else found
    return found.head(len(MODE_COLOURS))


def _draw_modes(found: pd.DataFrame, labels: list[str], axes: np.ndarray, figure: Figure) -> None:
    """A cross on the best draw of each mode; a legend with their masses if there are several."""
    for (_, mode), colour in zip(found.iterrows(), MODE_COLOURS, strict=False):
        for row in range(len(axes)):
            for column in range(row):
                x, y = mode[labels[column]], mode[labels[row]]
                axes[row, column].plot(x, y, "+", color=colour, markersize=6, markeredgewidth=1.2, zorder=4)
            axes[row, row].axvline(mode[labels[row]], color=colour, linewidth=0.9)
    if len(found):
        handles = [
            axes[0, 0].plot([], [], "+", color=colour, markersize=6, markeredgewidth=1.2,
                            label=f"top of a mode with {mode['mass']:.3f} ± {mode['mass_error']:.3f} of the mass"
                            if len(found) > 1 else "top of the only mode")[0]
            for (_, mode), colour in zip(found.iterrows(), MODE_COLOURS, strict=False)
        ]  # fmt: skip
        figure.legend(handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.93))


# --- against the prior ---------------------------------------------------------------------------------------------


def against_prior(posterior: Posterior, truths: Float[np.ndarray, " number"] | None = None) -> Figure:
    """The density of every number with its prior, dashed; a line at the truth where it is known."""
    figure, axes = panels_for(len(posterior.labels))
    for index, (label, ax) in enumerate(zip(posterior.labels, axes, strict=True)):
        draws = posterior.numbers[:, :, index].reshape(1, -1)
        truth = None if truths is None else float(truths[index])
        density_of(posterior.model, draws, label, model_colours([posterior.model.name]), ax, truth=truth)
        edges = np.linspace(*ax.get_xlim(), BINS + 1)
        heights = np.histogram(draws, edges)[0] / (draws.size * np.diff(edges))
        ax.stairs(heights, edges, fill=True, color=BARS, zorder=0)
        ax.set_ylim(0, max(1.05 * float(heights.max()), ax.get_ylim()[1]))
    legend_above(figure, axes[0])
    return finish(figure, axes, posterior)


def legend_above(figure: Figure, ax: Axes) -> None:
    """One legend for all panels, above them: the entries of one."""
    handles, names = ax.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper right", ncols=len(names), handlelength=1.8, borderaxespad=0.2)


def density_of(
    model: Model,
    draws: Float[np.ndarray, "chain draw"],
    label: str,
    colours: list[str],
    ax: Axes,
    *,
    truth: float | None = None,
    each: str = "chain",
) -> Axes:
    """The density of one number: a curve for each row of draws, the prior dashed, the truth as a vertical line.

    `each` says what a row is: a chain, a replicate.
    """
    low, high = shown_range(draws.ravel(), *([] if truth is None else [truth]))
    points = np.linspace(low, high, CURVE_POINTS)
    for index, (chain, colour) in enumerate(zip(draws, colours, strict=True)):
        curve = smooth_density(model, label, chain, points)
        name = "posterior" if len(draws) == 1 else f"posterior, by {each}"
        ax.plot(points, curve, color=colour, linewidth=1.0, label=name if index == len(draws) // 2 else None, zorder=2)
    prior = "prior, before its order" if model.ordered else "prior"
    ax.plot(points, prior_density(model, label, points), color=INK, linewidth=0.9, linestyle="--", label=prior)
    if truth is not None:
        ax.axvline(truth, color=INK, linewidth=0.9, label="truth", zorder=3)
    ax.set_xlim(low, high)
    ax.locator_params(axis="x", nbins=5)
    ax.set_ylim(bottom=0)
    ax.set_xlabel(with_unit(label))
    ax.set_ylabel(f"density (1/{unit(label)})" if unit(label) else "density")
    return ax
