"""Learning curves: held-out bits by how many pictures a fit has seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

KIND_COLOURS = {"hierarchical": "#0072B2", "separate": "#D55E00", "pooled": "#6E6E6E"}


def learning_curves(results: Mapping[str, Any], ax: Axes) -> Axes:
    """Mean bits per fixation of every kind of fit, from what `LearningCurves.results` gives.

    Bars are intervals of 95 % for the mean over new observers and pictures. Most of their width is common to all kinds:
    differences are known much better (see `learning_gains`).
    """
    curves: Sequence[Any] = results["curves"]
    pictures = np.array([it["pictures"] for it in curves], dtype=float)
    for place, (kind, colour) in enumerate(KIND_COLOURS.items()):
        rows = [next(row for row in it["models"] if row["model"] == kind) for it in curves]
        means = np.array([row["mean"] for row in rows])
        widths = [means - [row["low"] for row in rows], [row["high"] for row in rows] - means]
        shifted = pictures * 1.02 ** (place - 1)  # side by side
        ax.errorbar(shifted, means, yerr=widths, color=colour, marker="o", markersize=4, capsize=2, label=kind)
    return _finished(ax, pictures, "held-out bits per fixation\nover uniform")


def learning_gains(results: Mapping[str, Any], ax: Axes) -> Axes:
    """What the hierarchical fit gains over the others, in bits per fixation, with intervals of 95 %."""
    curves: Sequence[Any] = results["curves"]
    pictures = np.array([it["pictures"] for it in curves], dtype=float)
    for place, kind in enumerate(("separate", "pooled")):
        found = np.array([gain(it, kind) for it in curves])
        widths = [found[:, 0] - found[:, 1], found[:, 2] - found[:, 0]]
        shifted = pictures * 1.02 ** (2 * place - 1)
        ax.errorbar(shifted, found[:, 0], yerr=widths, color=KIND_COLOURS[kind], marker="o", markersize=4, capsize=2,
                    label=f"over {kind} fits")  # fmt: skip
    ax.axhline(0, color="#9A9A9A", linewidth=0.7, zorder=0)
    return _finished(ax, pictures, "gain of the hierarchical fit\n(bits per fixation)")


def gain(curve: Mapping[str, Any], kind: str) -> tuple[float, float, float]:
    """Hierarchical less another kind at one number of pictures: difference, low, high."""
    row = next(it for it in curve["pairs"] if {it["first"], it["second"]} == {"hierarchical", kind})
    if row["first"] == "hierarchical":
        return row["difference"], row["low"], row["high"]
    return -row["difference"], -row["high"], -row["low"]


def _finished(ax: Axes, pictures: np.ndarray, label: str) -> Axes:
    ax.set_xscale("log")
    ax.set_xticks(pictures, labels=[f"{it:.0f}" for it in pictures])
    ax.minorticks_off()
    ax.set_xlabel("training pictures")
    ax.set_ylabel(label)
    ax.legend(frameon=False)
    return ax
