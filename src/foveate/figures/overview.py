"""What a table of fixations holds, in one figure: where people looked, how far and how long, and on some pictures.

A wrong unit, a wrong origin or a wrong rectangle shows here before anything is fitted.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from foveate.data.grid import Extent
from foveate.data.scanpaths import ScanPaths
from foveate.errors import counted
from foveate.figures.maps import draw_extent
from foveate.figures.style import FAINT, INK, TWO_COLUMNS_MM, new_figure

SHOWN_PICTURES = 3  # those with the most fixations
DOT, DOT_ON_PICTURE = "#0072B2", "#D55E00"
BINS = 40


def overview(paths: ScanPaths, amplitude_deg: np.ndarray, pictures: Mapping[Any, Path] | None = None) -> Figure:
    """All positions, amplitudes, durations and path lengths above; below fixations on some pictures.

    `amplitude_deg` are those of the paths' saccades (not a number where there is none); `pictures` has the files of
    pictures that can be drawn behind their fixations.
    """
    extent = paths.extent
    figure = new_figure(TWO_COLUMNS_MM, 62.0 + 0.31 * TWO_COLUMNS_MM * extent.height_deg / extent.width_deg)
    above, below = figure.subfigures(2, 1, height_ratios=(1.0, 1.05)).flat  # type: ignore[union-attr]
    everywhere, amplitude, duration, length = above.subplots(1, 4)
    everywhere.set_title("all pictures together")
    _dots(everywhere, paths, DOT)
    draw_extent(everywhere, extent)
    _histogram(amplitude, amplitude_deg, "saccade amplitude (deg)", "saccades")
    if paths.duration_s is None:
        duration.set_axis_off()
        duration.text(0.5, 0.5, "no durations", ha="center", va="center", color=FAINT, transform=duration.transAxes)
    else:
        _histogram(duration, 1000 * paths.duration_s[paths.real], "fixation duration (ms)", "fixations")
    _histogram(length, paths.length, "fixations in a path", "paths")
    most = sorted(paths.pictures, key=lambda name: -int(paths.length[paths.picture == name].sum()))[:SHOWN_PICTURES]
    axes = below.subplots(1, SHOWN_PICTURES, squeeze=False)[0]
    for ax, picture in zip(axes, most, strict=False):
        _picture(ax, paths.select(pictures=[picture]), picture, (pictures or {}).get(picture))
    for ax in axes[len(most) :]:
        ax.set_visible(False)
    for ax in axes[1:]:
        ax.set_ylabel("")
    return figure


def _dots(ax: Axes, paths: ScanPaths, colour: str) -> None:
    size = float(np.clip(4000 / max(paths.fixations, 1), 0.4, 5.0))
    marks: dict[str, Any] = {"s": size, "color": colour, "alpha": 0.5 if paths.fixations > 500 else 0.8}
    # A pale rim tells dots of any colour from a picture of the same.
    marks |= {"linewidths": 0.3, "edgecolors": "white"} if colour == DOT_ON_PICTURE else {"linewidths": 0}
    ax.scatter(paths.x_deg[paths.real], paths.y_deg[paths.real], rasterized=True, **marks)


def _histogram(ax: Axes, values: np.ndarray, label: str, counted_things: str) -> None:
    """Counts with the median marked; the top half percent is beyond the axis."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    ax.set_xlabel(label)
    ax.set_ylabel(counted_things)
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))  # they are counted
    if not len(finite):
        return
    top = float(np.quantile(finite, 0.995)) if len(finite) > BINS else float(finite.max())
    whole = np.issubdtype(np.asarray(values).dtype, np.integer) and top - finite.min() < BINS
    bins = np.arange(finite.min() - 0.5, top + 1.0) if whole else np.linspace(0.0, top or 1.0, BINS + 1)
    ax.hist(finite, bins=bins.tolist(), color=DOT)
    middle = float(np.median(finite))
    ax.axvline(middle, color=INK, linewidth=0.8)
    unit = label.partition("(")[2].rstrip(")")
    ax.set_title(f"median {middle:.3g} {unit}".rstrip())


def _picture(ax: Axes, paths: ScanPaths, picture: Any, file: Path | None) -> None:
    draw_extent(ax, paths.extent)
    if file is not None:
        _background(ax, file, paths.extent)
    _dots(ax, paths, DOT_ON_PICTURE)
    ax.set_title(f"picture {str(picture)[:24]}: {counted(paths.fixations, 'fixation')}")


def _background(ax: Axes, file: Path, extent: Extent) -> None:
    """The picture itself over its whole rectangle, first row at the top."""
    from PIL import Image

    with Image.open(file) as image:
        shown = np.asarray(image.convert("RGB"))
    sides = (
        0.0,
        extent.width_deg,
        *((0.0, extent.height_deg) if extent.origin == "bottom" else (extent.height_deg, 0.0)),
    )
    ax.imshow(shown, origin="upper", extent=sides, alpha=0.75)
    draw_extent(ax, extent)
