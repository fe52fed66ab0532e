"""Chains of a sampler, number by number: their traces, and how their ranks are spread."""

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm, rankdata

from foveate.figures.labels import symbol, with_unit
from foveate.figures.panels import finish, fit_axis, panels_for, row_word, shades
from foveate.figures.style import FAINT
from foveate.inference.marginals import effective_in_a_chain
from foveate.inference.posterior import Posterior

BAND = "#DDE3E8"
BINS = 20
BAR_BAND = 0.99

# A trace has room for about so many points.
MOST_POINTS = 1000


def trace(posterior: Posterior) -> Figure:
    """The draws of every number in the order in which they were made, each chain in a shade of its own.

    Lines leave the panel at draws that are far from nearly all others.
    """
    figure, axes = panels_for(len(posterior.labels))
    for index, (label, ax) in enumerate(zip(posterior.labels, axes, strict=True)):
        trace_of(posterior.numbers[:, :, index], label, shades(posterior.model.name, len(posterior.numbers)), ax)
    if posterior.samples.weighted is not None:
        figure.supxlabel("the draws were resampled: their order means nothing", fontsize=7.0)
    return finish(figure, axes, posterior)


def trace_of(draws: Float[np.ndarray, "chain draw"], label: str, colours: list[str], ax: Axes) -> Axes:
    """The draws of one number, chain by chain."""
    every = -(-draws.shape[1] // MOST_POINTS)
    for chain, colour in zip(draws, colours, strict=True):
        ax.plot(np.arange(0, len(chain), every), chain[::every], color=colour, linewidth=0.35, alpha=0.9)
    fit_axis(ax, "y", draws, label)
    ax.set_xlim(0, draws.shape[1])
    ax.set_xlabel("draw")
    ax.set_ylabel(with_unit(label))
    return ax


def ranks(posterior: Posterior) -> Figure:
    """For every number, how the ranks of each chain's draws among all draws are spread: evenly, if chains agree.

    The band holds 99 % of the bars of chains that agree, each bar for itself, given the effective number of draws.
    """
    figure, axes = panels_for(len(posterior.labels))
    colours, effective = shades(posterior.model.name, len(posterior.numbers)), effective_in_a_chain(posterior)
    for index, (label, ax) in enumerate(zip(posterior.labels, axes, strict=True)):
        draws = posterior.numbers[:, :, index]
        ranks_of(draws, label, float(effective[index]), colours, ax, each=row_word(posterior))
    return finish(figure, axes, posterior)


def ranks_of(
    draws: Float[np.ndarray, "chain draw"],
    label: str,
    effective: float,
    colours: list[str],
    ax: Axes,
    *,
    each: str = "chain",
) -> Axes:
    """Histograms of the ranks of one number's draws, a line for each chain; `effective` is the ESS of one.

    `each` says what a row of draws is: a chain, a replicate.
    """
    chains, count = draws.shape
    share = (rankdata(draws, axis=None) - 0.5).reshape(draws.shape) / draws.size
    deviation = np.sqrt((1 / BINS) * (1 - 1 / BINS) * (1 - 1 / chains) / effective)
    half = norm.ppf(0.5 + BAR_BAND / 2) * deviation * BINS
    ax.axhspan(max(1 - half, 0), 1 + half, color=BAND, linewidth=0, zorder=0)
    ax.axhline(1, color=FAINT, linewidth=0.6, zorder=1)
    edges = np.linspace(0, 1, BINS + 1)
    top = 1 + half
    for chain, colour in zip(share, colours, strict=True):
        height = np.histogram(chain, edges)[0] * BINS / count
        ax.stairs(height, edges, baseline=None, color=colour, linewidth=0.9, zorder=2)
        top = max(top, float(height.max()))
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.1 * top)
    ax.set_xticks([0, 0.5, 1])
    ax.set_title(symbol(label))
    ax.set_xlabel("rank among all draws")
    ax.set_ylabel(f"draws of a {each},\nrelative to even")
    return ax
