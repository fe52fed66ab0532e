"""One scan path over its map: where gaze went, in which order, and which policy sent it there."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D

from foveate.data.grid import Grid
from foveate.data.scanpaths import ScanPath
from foveate.figures.maps import saliency_map
from foveate.figures.style import BACKGROUND_MAP, INCH_MM, INK, NEUTRAL, policy_colours, policy_title, root_figure
from foveate.model.model import Model

# Sizes in points. A disc must hold two digits.
DISC_PT, DIGITS_PT, SACCADE_PT = 8.5, 4.6, 0.5

# In a narrower figure the legend takes two rows.
WIDE_MM = 120.0

# Rounds of moving discs apart; a cluster of ten settles in fewer.
ROUNDS = 200

# A disc moved further than this, in points, gets a line to where its fixation is.
MOVED_PT = 1.0

# The map is drawn with this share of its colours, the lighter ones: discs and digits must stay readable on it. Grey
# goes with the square root of the density, so that faint places show beside strong ones.
LIGHTEST_SHARE = 0.5


def scan_path(
    path: ScanPath, saliency: Float[np.ndarray, "row column"], grid: Grid, policies: Sequence[str] | Model, ax: Axes
) -> Axes:
    """The path's fixations as numbered discs, each in the colour of the policy that chose it, joined by saccades.

    `policies` is the model, or the names of the classes of its policies; the path's column `policy` holds an index into
    them, -1 (or no such column) where no policy chose. Discs that would cover one another are moved apart; a line
    leads from such a disc to where its fixation is. The figure must have its final size.
    """
    if isinstance(policies, Model):
        policies = policies.policy_names
    darkest = float(saliency.max() * grid.cells / LIGHTEST_SHARE**2)
    saliency_map(saliency, grid, ax, colours=BACKGROUND_MAP, norm=PowerNorm(0.5, 0, darkest))
    chosen = np.asarray(path.columns.get("policy", np.full(len(path), -1)))
    _legend(ax, chosen, policies)
    true_deg = np.stack([path.x_deg, path.y_deg], axis=1)
    disc_deg = _apart(ax, true_deg)
    _saccades(ax, disc_deg)
    _fixations(ax, disc_deg, chosen, policy_colours(policies))
    _dots(ax, true_deg, disc_deg)
    return ax


def _apart(ax: Axes, true_deg: Float[np.ndarray, "fixation 2"]) -> Float[np.ndarray, "fixation 2"]:
    """Centres of the discs: the fixations, moved as little as keeps the discs from covering one another."""
    figure = root_figure(ax)
    figure.draw_without_rendering()  # settles the layout, and with it how many points make a degree
    px_per_pt = figure.dpi / 72
    centres = ax.transData.transform(true_deg) / px_per_pt
    first, second = np.triu_indices(len(centres), 1)
    # Two fixations in the same place part along a direction of their own.
    angle = 2.4 * np.arange(len(first))
    sides = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for _ in range(ROUNDS):
        gap = centres[second] - centres[first]
        distance = np.hypot(*gap.T)
        near = distance < DISC_PT
        if not near.any():
            break
        direction = np.where(distance[:, None] > 1e-6, gap / np.maximum(distance, 1e-6)[:, None], sides)
        push = 0.3 * np.where(near, DISC_PT * 1.02 - distance, 0.0)[:, None] * direction
        np.add.at(centres, second, push)
        np.add.at(centres, first, -push)
    return ax.transData.inverted().transform(centres * px_per_pt)


def _saccades(ax: Axes, disc_deg: Float[np.ndarray, "fixation 2"]) -> None:
    """A thin arrow from each fixation to the next."""
    for start, end in pairwise(disc_deg):
        arrow = {"arrowstyle": "-|>,head_width=0.12,head_length=0.25", "color": INK, "linewidth": SACCADE_PT}
        shrink = {"shrinkA": DISC_PT / 2, "shrinkB": DISC_PT / 2}
        ax.annotate("", xy=end, xytext=start, arrowprops=arrow | shrink, zorder=2.5)


def _fixations(
    ax: Axes, disc_deg: Float[np.ndarray, "fixation 2"], chosen: Int[np.ndarray, " fixation"], colours: list[str]
) -> None:
    """Numbered discs; the first and the last have a bold rim."""
    last = len(chosen) - 1
    for index, ((x, y), policy) in enumerate(zip(disc_deg, chosen, strict=True)):
        colour = NEUTRAL if policy < 0 else colours[policy]
        edge = 1.4 if index in (0, last) else 0.5
        ax.plot(x, y, "o", markersize=DISC_PT, color=colour, mec=INK, mew=edge, zorder=3, clip_on=False)
        ax.text(x, y, str(index + 1), fontsize=DIGITS_PT, ha="center", va="center_baseline", zorder=3.1)


def _dots(ax: Axes, true_deg: Float[np.ndarray, "fixation 2"], disc_deg: Float[np.ndarray, "fixation 2"]) -> None:
    """A line from a disc that was moved to its fixation; on the fixation itself the disc may still lie."""
    figure = root_figure(ax)
    moved_pt = np.hypot(*(ax.transData.transform(disc_deg) - ax.transData.transform(true_deg)).T) * 72 / figure.dpi
    for (x, y), (disc_x, disc_y) in zip(true_deg[moved_pt > MOVED_PT], disc_deg[moved_pt > MOVED_PT], strict=True):
        ax.plot([x, disc_x], [y, disc_y], color=INK, linewidth=0.5, zorder=2.6)
        ax.plot(x, y, "o", markersize=2.0, color=INK, mew=0, zorder=2.7)


def _legend(ax: Axes, chosen: Int[np.ndarray, " fixation"], policies: Sequence[str]) -> None:
    """The policies' names, above the picture."""

    def disc(label: str, colour: str, edge: float = 0.5) -> Line2D:
        return Line2D([], [], linestyle="", marker="o", markersize=6, color=colour, mec=INK, mew=edge, label=label)

    colours = policy_colours(policies)
    used = set(chosen[chosen >= 0].tolist())
    named = enumerate(zip(policies, colours, strict=True))
    entries = [disc(policy_title(name), colour) for index, (name, colour) in named if index in used]
    if (chosen < 0).any():
        entries.append(disc("drawn from the map" if (chosen >= 0).any() else "fixation", NEUTRAL))
    entries.append(disc("first and last", "none", 1.4))
    wide = root_figure(ax).get_figwidth() * INCH_MM > WIDE_MM
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": len(entries) if wide else 2}
    ax.legend(handles=entries, **place, handletextpad=0.1, columnspacing=1.2, borderaxespad=0.3)
