"""What figures of a posterior share: a panel for every number, its heading, and the mark of a fit not to be trusted."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from foveate.figures.labels import VARIANCE_UNIT, unit
from foveate.figures.style import TWO_COLUMNS_MM, model_colours, new_figure, write_short
from foveate.inference.marginals import shown_range
from foveate.inference.posterior import Posterior
from foveate.model.catalogue import TITLES

WARNING = "#D55E00"
NOT_CONVERGED = "not converged"

SAMPLER_TITLES = {
    "importance": "importance sampling", "nuts": "NUTS", "gibbs": "Gibbs sampling", "smc": "tempered SMC",
    "laplace": "Laplace's approximation",
}  # fmt: skip

MOST_COLUMNS = 3
PANEL_HEIGHT_MM, HEADING_MM = 38.0, 10.0

# A variance whose draws span more than this factor is shown on a logarithmic axis.
WIDE = 12.0

# Mixed into a model's colour for its chains: from this much white to this much black.
LIGHTEST, DARKEST = 0.55, 0.45


def panels_for(count: int) -> tuple[Figure, list[Axes]]:
    """A figure of two columns' width with a panel for each of `count` numbers."""
    columns = min(count, MOST_COLUMNS if count != 4 else 2)
    rows = -(-count // columns)
    figure = new_figure(TWO_COLUMNS_MM, rows * PANEL_HEIGHT_MM + HEADING_MM)
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, axes[:count]


def finish(figure: Figure, axes: list[Axes], posterior: Posterior) -> Figure:
    """The figure with a heading, and with the mark on it and on these axes if the posterior has not converged."""
    chains, draws = posterior.samples.real.shape[:2]
    name, sampler = posterior.model.name, posterior.samples.sampler
    heading = f"{TITLES.get(name, name)}, observer {posterior.observer}: {chains} × {draws} draws by "
    heading += SAMPLER_TITLES.get(sampler, sampler)
    if posterior.converged:
        figure.suptitle(heading, x=0.01, ha="left", fontsize=7.5)
        return figure
    figure.suptitle(f"{heading}; {NOT_CONVERGED.upper()}", x=0.01, ha="left", fontsize=7.5, color=WARNING)
    for ax in axes:
        mark(ax)
    return figure


def mark(ax: Axes) -> Axes:
    """The words "not converged" across the axes, so that the panel carries them wherever it is put."""
    place = {"transform": ax.transAxes, "ha": "center", "va": "center", "rotation": 20}
    ax.text(0.5, 0.5, NOT_CONVERGED, color=WARNING, alpha=0.55, fontsize=9, fontweight="bold", zorder=10, **place)
    return ax


def shades(name: str, count: int) -> list[str]:
    """Light to dark shades of a model's colour, one for each chain."""
    colour = np.array(to_rgb(model_colours([name])[0]))
    amounts = np.linspace(LIGHTEST, -DARKEST, count) if count > 1 else np.zeros(1)
    return [to_hex(tuple(colour + a * (1 - colour) if a > 0 else colour * (1 + a))) for a in amounts]


def row_word(posterior: Posterior) -> str:
    """What the draws come in: chains, or replicates where they were weighted."""
    return "chain" if posterior.samples.weighted is None else "replicate"


def fit_axis(
    ax: Axes, which: Literal["x", "y"], values: Float[np.ndarray, "..."], label: str, others: Sequence[float] = ()
) -> None:
    """Few ticks, a logarithmic scale where variances span orders of magnitude, and limits that hold nearly all values.

    A few draws far out would squeeze all others; they are beyond the limits. The `others` are always within.
    """
    low, high = np.quantile(values, [0.002, 0.998])
    wide = bool(unit(label) == VARIANCE_UNIT and values.min() > 0 and high > WIDE * low)
    if wide:
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=6) if wide else MaxNLocator(4))
    axis.set_minor_locator(NullLocator())
    write_short(axis)
    (ax.set_xlim if which == "x" else ax.set_ylim)(*shown_range(values.ravel(), *others))
