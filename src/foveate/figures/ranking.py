"""Models ranked by how well they predict: their mean over observers, how sure it is, and every observer."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from foveate.figures.style import FAINT, model_colours, with_minus


def ranking(
    bits: Mapping[str, Float[np.ndarray, " observer"]],
    means: Mapping[str, float],
    standard_errors: Mapping[str, float],
    titles: Mapping[str, str],
    ax: Axes,
) -> Axes:
    """Bits per fixation over uniform by model, the best at the top.

    A thin line joins the scores of each observer (`bits`, the same observers in the same order for every model); a
    disc and a bar show each model's mean with one standard error to either side; the numbers stand at the right.
    """
    order = sorted(bits, key=lambda name: means[name])
    scores = np.stack([np.asarray(bits[name]) for name in order])
    heights = np.arange(len(order))
    ax.plot(scores, heights, color=FAINT, linewidth=0.5, marker=".", markersize=4, markeredgewidth=0, zorder=1)
    beside = ax.get_yaxis_transform()
    for height, name, colour in zip(heights, order, model_colours(order), strict=True):
        ax.errorbar(
            means[name],
            height,
            xerr=standard_errors[name],
            color=colour,
            marker="o",
            markersize=6,
            markeredgecolor="white",
            markeredgewidth=0.6,
            elinewidth=2,
            zorder=3,
        )
        words = with_minus(f"{means[name]:.2f} ± {standard_errors[name]:.2f}")
        ax.text(1.02, float(height), words, va="center", transform=beside)
    ax.set_yticks(heights, labels=[titles.get(name, name) for name in order])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.5, len(order) - 0.5)
    ax.set_xlim(left=min(0.0, float(scores.min())))
    ax.grid(axis="x", color="#E4E4E4", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.set_xlabel(
        f"bits per fixation over uniform\nmean ± standard error of {scores.shape[1]} observers; thin: each observer"
    )
    return ax
