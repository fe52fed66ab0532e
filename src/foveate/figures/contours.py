"""Recovered maps, as in the paper's Figure 5: does the density of simulated fixations look like the picture's map?"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.figures.maps import saliency_map
from foveate.figures.saccades import DATA_TITLE
from foveate.figures.style import BACKGROUND_MAP, INK, TWO_COLUMNS_MM, model_colours, new_figure
from foveate.model.catalogue import TITLES

DATA = "data"  # the name under which the density of observed fixations is given

# Each line encloses the smallest region that holds this share of the fixations; the inner lines are bolder.
SHARES = (0.25, 0.5, 0.75)
WIDTHS_PT = (1.4, 0.9, 0.5)

# The share of the background's colours that a map takes, the lighter ones: lines in any colour must show on it.
LIGHTEST_SHARE = 0.4

MOST_COLUMNS = 3  # of panels, where there is one picture


def enclosing_levels(
    density: Float[np.ndarray, "row column"], shares: Sequence[float] = SHARES
) -> Float[np.ndarray, " share"]:
    """For each share the density down to which cells must be taken, densest first, to hold that share of the mass."""
    falling = np.sort(density, axis=None)[::-1]
    held = np.cumsum(falling) / falling.sum()
    return falling[np.minimum(np.searchsorted(held, shares), len(falling) - 1)]


def density_contours(density: Float[np.ndarray, "row column"], grid: Grid, colour: str, ax: Axes) -> Axes:
    """Lines around the smallest regions that hold 25, 50 and 75 % of a density; a flat one has none."""
    levels = enclosing_levels(density)
    drawn = {level: width for level, width in zip(levels, WIDTHS_PT, strict=True) if density.min() < level}
    if drawn:
        order = sorted(drawn)
        widths = [drawn[level] for level in order]
        x, y = grid.column_centres_deg, grid.row_centres_deg
        ax.contour(x, y, density, levels=order, colors=[colour], linewidths=widths)
    return ax


def recovered_maps(
    maps: SaliencyMaps,
    densities: Mapping[str, SaliencyMaps],
    agreement: Mapping[str, pd.DataFrame],
    pictures: Sequence[Any],
) -> Figure:
    """The density of fixations as lines over the picture's map, a panel for the data and for every model (Fig. 5).

    `densities` holds that of the observed fixations under 'data' and of simulated ones by model. `agreement` has for
    each of them a row per picture with `kl_bits`, the divergence of that density from the map, as
    `evaluate.distances.map_agreement` works it out, and the number of `fixations`. Few fixations lie further from any
    map than many of the same model do: compare densities of about as many. Several pictures: a row of panels for each.
    """
    if not densities or not len(pictures):
        raise InputError("no densities or no pictures given: there is nothing to draw.")
    missing = [name for name in densities if name not in agreement]
    if missing:
        raise InputError(f"no distances for {some_of(missing)}; give them for every density that is drawn.")
    columns = len(densities) if len(pictures) > 1 else min(len(densities), MOST_COLUMNS)
    rows = -(-len(densities) // columns) * len(pictures)
    extent = maps.grid.extent
    panel_mm = ((TWO_COLUMNS_MM - 14.0) / columns - 2.0) * extent.height_deg / extent.width_deg
    figure = new_figure(TWO_COLUMNS_MM, rows * (panel_mm + (6.0 if len(pictures) > 1 else 9.0)) + 22.0)
    figure.set_layout_engine("compressed")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    panels = [(picture, name) for picture in pictures for name in densities]
    models = [name for name in densities if name != DATA]
    colours = dict(zip(models, model_colours(models), strict=True)) | {DATA: INK}
    titles = {name: TITLES.get(name, name) for name in densities} | {DATA: DATA_TITLE}
    for index, ((picture, name), ax) in enumerate(zip(panels, axes, strict=False)):
        darkest = float(maps[picture].max() * maps.grid.cells / LIGHTEST_SHARE**2)
        saliency_map(maps[picture], maps.grid, ax, colours=BACKGROUND_MAP, norm=PowerNorm(0.5, 0, darkest))
        density_contours(densities[name][picture], densities[name].grid, colours[name], ax)
        bits, fixations = agreement[name].loc[picture, ["kl_bits", "fixations"]]
        title = "" if len(pictures) > 1 and index >= columns else f"{titles[name]}\n"
        ax.set_title(f"{title}{bits:.2f} bits ({int(fixations):,})")
        if index % columns:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
        else:
            ax.set_ylabel(f"picture {picture}\ny (deg)" if len(pictures) > 1 else "y (deg)")
        if index + columns < len(panels):
            ax.set_xlabel("")
            ax.tick_params(labelbottom=False)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    if len(pictures) == 1:
        figure.suptitle(f"picture {pictures[0]}", x=0.01, ha="left", fontsize=7.5)
    _legend(figure)
    return figure


def _legend(figure: Figure) -> None:
    """What lines and grey stand for."""
    lines = [
        Line2D([], [], color=INK, linewidth=width, label=f"{share:.0%} of fixations".replace("%", " %"))
        for share, width in zip(SHARES, WIDTHS_PT, strict=True)
    ]
    grey = Patch(facecolor="#B8B8B8", label="the picture's map")
    figure.legend(
        handles=[grey, *lines],
        loc="outside lower center",
        ncols=4,
        title="lines: smallest region that holds the share; bits: divergence (KL) of the density from the map "
        "(number of fixations)",
        title_fontsize=6.5,
    )
