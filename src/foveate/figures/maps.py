"""Maps on axes in degrees: fixation densities, and what each policy of a model expects next.

Densities are drawn relative to the uniform one, so that the numbers on the colour bar mean the same on any grid.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.image import AxesImage
from matplotlib.patheffects import withStroke

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.figures.style import DENSITY_MAP, INK, policy_title

RELATIVE = "density relative to uniform"

# Range of the colours of a step's densities: from what is next to forbidden to what is next to certain.
LEAST_RELATIVE, MOST_RELATIVE = 1 / 32, 128.0

DENSITY_TICKS = {1 / 32: "1/32", 1 / 8: "1/8", 1 / 2: "1/2", 2: "2", 8: "8", 32: "32", 128: "128"}


def draw_extent(ax: Axes, extent: Extent) -> Axes:
    """Limits, labels and equal scales for a picture, y pointing as its origin says."""
    ax.set_xlim(0, extent.width_deg)
    ax.set_ylim(*((0, extent.height_deg) if extent.origin == "bottom" else (extent.height_deg, 0)))
    ax.set_aspect("equal")
    ax.set_xlabel("x (deg)")
    ax.set_ylabel("y (deg)")
    ax.spines[["top", "right"]].set_visible(True)
    return ax


def saliency_map(
    values: Float[np.ndarray, "row column"],
    grid: Grid,
    ax: Axes,
    *,
    colours: str = DENSITY_MAP,
    norm: Normalize | None = None,
) -> AxesImage:
    """The map of one picture, a probability per cell, as density relative to uniform; returns the image."""
    relative = np.asarray(values) * grid.cells
    top = grid.extent.origin == "top"
    y_range = (grid.extent.height_deg, 0.0) if top else (0.0, grid.extent.height_deg)
    image = ax.imshow(
        relative,
        origin="upper" if top else "lower",
        extent=(0.0, grid.extent.width_deg, *y_range),
        cmap=colours,
        norm=norm or Normalize(0, float(relative.max())),
    )
    draw_extent(ax, grid.extent)
    return image


def map_grid(maps: SaliencyMaps, axes: Sequence[Axes]) -> Sequence[Axes]:
    """Every picture's map on its own axes, on one colour scale; axes that are left over are hidden."""
    norm = Normalize(0, float(maps.values.max() * maps.grid.cells))
    places = [ax.get_subplotspec() for ax in axes]
    image = None
    for ax, place, picture in zip(axes, places, maps.pictures, strict=False):
        image = saliency_map(maps[picture], maps.grid, ax, norm=norm)
        ax.set_title(str(picture))
        if place is not None and not place.is_first_col():
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        if place is not None and not place.is_last_row():
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
    for ax in axes[len(maps) :]:
        ax.set_visible(False)
    if image is not None:
        _colour_bar(image, axes, RELATIVE)
    return axes


def policy_densities(
    densities: Float[np.ndarray, "policy row column"],
    mixture: Float[np.ndarray, "row column"],
    probabilities: Float[np.ndarray, " policy"],
    policies: Sequence[str],
    recent_deg: Float[np.ndarray, "fixation 2"],
    next_deg: tuple[float, float] | None,
    grid: Grid,
    axes: Sequence[Axes],
) -> Sequence[Axes]:
    """What each policy alone expects at one step, and their mixture, on K + 1 axes.

    `probabilities` are those with which the policies are chosen, `policies` the names of their classes. `recent_deg`
    holds the last fixations (y, x), the present one first; `next_deg` is where gaze went, if it is to be marked.
    """
    titles = [
        f"{policy_title(name)}\nchosen with probability {probability:.2f}"
        for name, probability in zip(policies, probabilities, strict=True)
    ]
    norm = LogNorm(LEAST_RELATIVE, MOST_RELATIVE, clip=True)
    image = None
    for index, (ax, values) in enumerate(zip(axes, [*densities, mixture], strict=True)):
        image = saliency_map(values, grid, ax, norm=norm)
        ax.set_title([*titles, "their mixture\nthe model's density"][index])
        _mark_history(ax, recent_deg, next_deg)
        if index:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
    axes[0].legend(loc=_far_corner(axes[0], recent_deg[0]), labelcolor="white", borderaxespad=0.3, handletextpad=0.3)
    if image is not None:
        bar = _colour_bar(image, axes, f"{RELATIVE} (log scale)", extend="both")
        bar.set_ticks(list(DENSITY_TICKS), labels=list(DENSITY_TICKS.values()))
        bar.minorticks_off()
    return axes


def _mark_history(ax: Axes, recent_deg: np.ndarray, next_deg: tuple[float, float] | None) -> None:
    """The last saccade as a line to the gaze, and the next fixation as a ring."""
    y, x = recent_deg[:2].T
    ax.plot(x, y, color=INK, linewidth=0.8, path_effects=[withStroke(linewidth=1.8, foreground="white")])
    ax.plot(x[0], y[0], "o", color=INK, markersize=3.5, mec="white", mew=0.6, label="gaze, after the last saccade")
    if next_deg is not None:
        halo = [withStroke(linewidth=2.2, foreground="white")]
        ring = {"linestyle": "", "marker": "o", "markersize": 6, "markerfacecolor": "none", "markeredgecolor": INK}
        ax.plot(next_deg[1], next_deg[0], **ring, mew=0.8, path_effects=halo, label="next fixation")


def _far_corner(ax: Axes, gaze_deg: Float[np.ndarray, "2"]) -> Any:
    """The corner of the axes that lies furthest from the gaze."""
    across, up = ax.transAxes.inverted().transform(ax.transData.transform(gaze_deg[::-1]))
    return f"{'upper' if up < 0.5 else 'lower'} {'right' if across < 0.5 else 'left'}"


def _colour_bar(image: AxesImage, axes: Sequence[Axes], label: str, extend: str = "neither") -> Any:
    figure = axes[0].get_figure()
    assert figure is not None
    bar = figure.colorbar(image, ax=list(axes), label=label, shrink=0.8, aspect=30, pad=0.015, extend=extend)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    return bar
