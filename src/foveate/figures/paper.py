"""Whole figures of the paper: data (Fig. 1), policies (2), scan paths (3), autocorrelation (7) and observers (8).

The others are beside this file: parameters recovered (4) in `recovery`, maps recovered (5) in `contours`, amplitudes
(6) and directions (9) in `saccades`, ROC curves (10) in `curves`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPath, ScanPaths
from foveate.errors import InputError
from foveate.figures.maps import LEAST_RELATIVE, MOST_RELATIVE, RELATIVE, policy_densities, saliency_map
from foveate.figures.saccades import Curves, autocorrelation, observers
from foveate.figures.scanpath import WIDE_MM, scan_path
from foveate.figures.style import INK, ONE_COLUMN_MM, TWO_COLUMNS_MM, new_figure, with_minus
from foveate.model.catalogue import TITLES
from foveate.model.history import History, Picture
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.precision import double_precision

# Around and between panels whose places are fixed, in millimetres.
LEFT_MM, RIGHT_MM, TOP_MM, BOTTOM_MM, GAP_MM = 14.0, 2.0, 10.0, 18.0, 4.0

# Of longer paths only the beginning is drawn: numbered discs of more would crowd each other from their places.
SHOWN_FIXATIONS = 20

# White discs mean two things in one figure: what nobody knows of the data, and what no policy chose in a simulation.
OBSERVED, FROM_MAP = "fixation", "drawn from the map"
WHITE_DISC = "observed, or drawn from the map"


def data_and_density(path: ScanPath, everyone: ScanPaths, maps: SaliencyMaps, density: SaliencyMaps) -> Figure:
    """One observer's path over the picture's map, and beside it the density of all fixations on the picture (Fig. 1).

    `everyone` holds the fixations that `density` was made from; those on this picture are drawn as dots.
    """
    here = everyone.select(pictures=[path.picture])
    extent = maps.grid.extent
    figure = new_figure(TWO_COLUMNS_MM, 18.0 + 0.42 * TWO_COLUMNS_MM * extent.height_deg / extent.width_deg)
    left, right = figure.subplots(1, 2)
    image = saliency_map(density[path.picture], density.grid, right)
    dots = {"linestyle": "", "marker": "o", "markersize": 1.3, "markeredgewidth": 0}
    right.plot(here.x_deg[here.real], here.y_deg[here.real], color="white", label="fixations", **dots)
    right.set_title(f"{here.fixations:,} fixations of {len(here.observers)} observers, and their density")
    _plain_labels(right)
    bar = figure.colorbar(image, ax=right, label=RELATIVE, shrink=0.85, aspect=30, pad=0.015)
    bar.outline.set_linewidth(0.5)  # type: ignore[operator]
    # Last, as it settles the layout: discs are kept apart at the figure's final size.
    left.set_title(f"observer {path.observer}, picture {path.picture}", pad=16)
    scan_path(replace(path, columns={}), maps[path.picture], maps.grid, [], left)
    return figure


def attention_maps(model: Model, maps: SaliencyMaps, path: ScanPath, fixations: int) -> Figure:
    """The picture's map, what each policy expects after the path's first fixations, and their mixture (Fig. 2).

    Present and previous gaze are marked, and the next fixation where the path has one.
    """
    if not DRAWN_FROM_MAP <= fixations <= len(path):
        raise InputError(
            f"fixations = {fixations}: give a number from {DRAWN_FROM_MAP}, before which no policy is asked, to "
            f"{len(path)}, the length of the path."
        )
    picture = Picture.whole(maps.grid, maps[path.picture])
    history = History.of(picture, path.y_deg[:fixations], path.x_deg[:fixations], max(model.memory, 2))
    recent_deg = np.asarray(history.position_deg)
    next_deg = (float(path.y_deg[fixations]), float(path.x_deg[fixations])) if fixations < len(path) else None
    names = model.policy_names

    columns = 2 if len(names) == 2 else 3
    rows = -(-(len(names) + 2) // columns)
    extent = maps.grid.extent
    panel_mm = (TWO_COLUMNS_MM - 30.0) / columns * extent.height_deg / extent.width_deg
    figure = new_figure(TWO_COLUMNS_MM, rows * (panel_mm + 9.0) + 16.0)
    axes = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for ax in axes[len(names) + 2 :]:
        ax.set_visible(False)
    axes = axes[: len(names) + 2]
    saliency_map(maps[path.picture], maps.grid, axes[0], norm=LogNorm(LEAST_RELATIVE, MOST_RELATIVE, clip=True))
    axes[0].set_title(f"the picture's map\npicture {path.picture}, observer {path.observer}")
    policy_densities(
        np.exp(np.asarray(model.policy_log_densities(history, picture))),
        np.exp(np.asarray(model.log_density(history, picture))),
        np.exp(np.asarray(double_precision(model.choice.log_probabilities)(history, picture))),
        names,
        recent_deg,
        next_deg,
        maps.grid,
        axes[1:],
    )
    legend = axes[1].get_legend()
    assert legend is not None
    legend.remove()
    _path_so_far(axes[0], path, fixations)
    for index, ax in enumerate(axes):
        _mark_previous(ax, recent_deg[1])
        ax.set_ylabel("" if index % columns else "y (deg)")
        ax.tick_params(labelleft=index % columns == 0)
        ax.set_xlabel("x (deg)" if index + columns >= len(axes) else "")
    handles, labels = axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def _path_so_far(ax: Axes, path: ScanPath, fixations: int) -> None:
    """A line through the fixations that were made, ending at the gaze."""
    x, y = path.x_deg[:fixations], path.y_deg[:fixations]
    ax.plot(x, y, color="white", linewidth=0.6, marker="o", markersize=1.5)
    ax.plot(x[-1], y[-1], "o", color=INK, markersize=3.5, markeredgecolor="white", markeredgewidth=0.6)


def _mark_previous(ax: Axes, gaze_deg: np.ndarray) -> None:
    """The fixation before the present one, as a white square."""
    square = {"linestyle": "", "marker": "s", "markersize": 3.5, "markerfacecolor": "white", "markeredgecolor": INK}
    ax.plot(gaze_deg[1], gaze_deg[0], **square, markeredgewidth=0.6, zorder=1.9, label="gaze before the last saccade")


def _plain_labels(ax: Axes) -> None:
    """Without the labels that the panel to the left has already."""
    ax.set_ylabel("")
    ax.tick_params(labelleft=False)


def scan_paths(
    observed: Sequence[ScanPath],
    simulated: Sequence[ScanPath],
    maps: SaliencyMaps,
    model: Model,
    *,
    fixations: int = SHOWN_FIXATIONS,
) -> Figure:
    """Observed paths above simulated ones on the same pictures, a column each (Fig. 3); two to four fit on a page.

    The first `fixations` of each are drawn. Simulated ones have the colour of the policy that chose them. What chose an
    observed one is not known, and it is white, whatever its columns say.
    """
    pairs = [(real.picture, made.picture) for real, made in zip(observed, simulated, strict=False)]
    if fixations < 1:
        raise InputError(f"fixations = {fixations}: give 1 or more.")
    if not observed or len(observed) != len(simulated) or any(real != made for real, made in pairs):
        raise InputError(
            f"{len(observed)} observed and {len(simulated)} simulated paths: give pairs, each of one picture."
        )
    count, extent = len(observed), maps.grid.extent
    wide_mm = (TWO_COLUMNS_MM - LEFT_MM - RIGHT_MM - (count - 1) * GAP_MM) / count
    wide_mm = min(wide_mm, ONE_COLUMN_MM)
    high_mm = wide_mm * extent.height_deg / extent.width_deg
    width_mm = LEFT_MM + RIGHT_MM + count * wide_mm + (count - 1) * GAP_MM
    height_mm = TOP_MM + BOTTOM_MM + 2 * high_mm + GAP_MM
    figure = new_figure(width_mm, height_mm)
    # Places are fixed: discs are kept apart at the size that panels have while they are drawn.
    figure.set_layout_engine("none")
    places = {
        "left": LEFT_MM / width_mm,
        "right": 1 - RIGHT_MM / width_mm,
        "top": 1 - TOP_MM / height_mm,
        "bottom": BOTTOM_MM / height_mm,
        "wspace": GAP_MM / wide_mm,
        "hspace": GAP_MM / high_mm,
    }
    axes = figure.subplots(2, count, squeeze=False, gridspec_kw=places)
    handles: dict[str, Artist] = {}
    for row, paths in enumerate(([replace(path, columns={}) for path in observed], simulated)):
        for column, (path, ax) in enumerate(zip(paths, axes[row], strict=True)):
            scan_path(_beginning(path, fixations), maps[path.picture], maps.grid, model, ax)
            handles |= _taken_legend(ax)
            if column:
                _plain_labels(ax)
            else:
                ax.set_ylabel(f"{('data', 'simulated')[row]}\ny (deg)")
            if row == 0:
                cut = f"\nfirst {fixations} of {len(path)} fixations" if len(path) > fixations else ""
                ax.set_title(f"picture {path.picture}, observer {path.observer}{cut}")
                ax.set_xlabel("")
                ax.tick_params(labelbottom=False)
    white = handles.pop(OBSERVED, None)
    if white is not None:
        last = handles.pop("first and last")
        handles = {name: handle for name, handle in handles.items() if name != FROM_MAP}
        handles |= {WHITE_DISC: white, "first and last": last}
    ncols = len(handles) if width_mm > WIDE_MM else 2
    figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=ncols, handletextpad=0.1)
    return figure


def _beginning(path: ScanPath, fixations: int) -> ScanPath:
    """The path's first fixations."""
    duration_s = None if path.duration_s is None else path.duration_s[:fixations]
    columns = {name: values[:fixations] for name, values in path.columns.items()}
    arrays = {name: getattr(path, name)[:fixations] for name in ("fixation", "x_deg", "y_deg")}
    return replace(path, duration_s=duration_s, columns=columns, **arrays)


def _taken_legend(ax: Axes) -> dict[str, Artist]:
    """The entries of the axes' legend, which is removed."""
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    entries = dict(zip(names, legend.legend_handles, strict=True))
    legend.remove()
    return {name: handle for name, handle in entries.items() if handle is not None}


# --- observers and lags ----------------------------------------------------------------------------------------------


def autocorrelations(models: Mapping[str, Curves], bands: Collection[str] = ("full",)) -> Figure:
    """Autocorrelation of saccade amplitudes of the data and of every model, by lag (Fig. 7)."""
    figure = new_figure(1.3 * ONE_COLUMN_MM, 75.0)
    autocorrelation(models, figure.subplots(), bands=bands)
    return figure


@runtime_checkable
class ObserverCurves(Protocol):
    """Mean and standard deviation of every observer's amplitudes, and how well a model tells them."""

    @property
    def observer_mean(self) -> Curves:
        """Means of the observers, in degrees."""
        ...

    @property
    def observer_sd(self) -> Curves:
        """Standard deviations of the observers, in degrees."""
        ...

    def agreement(self) -> pd.DataFrame:
        """Rows `mean` and `sd`, columns `r2_identity` and `r2_correlation`."""
        ...


def observer_amplitudes(models: Mapping[str, ObserverCurves]) -> Figure:
    """Mean and standard deviation of every observer's amplitudes, simulated against observed, by model (Fig. 8).

    A column for each model, all panels of a row on the same scale, so that a model far off makes the others' points
    crowd; a single model has its two panels side by side.
    """
    if not models:
        raise InputError("no model given: there is nothing to draw against the data.")
    alone = len(models) == 1
    panel_mm = min((TWO_COLUMNS_MM - 16.0) / (2 if alone else len(models)), 80.0 if alone else 55.0)
    width_mm = panel_mm * (2 if alone else len(models)) + 16.0
    figure = new_figure(width_mm, panel_mm + 8.0 if alone else 2 * panel_mm + 26.0)
    grid = figure.subplots(1, 2, squeeze=False) if alone else figure.subplots(2, len(models)).T
    for (name, curves), axes in zip(models.items(), grid, strict=True):
        agreement = curves.agreement()
        for kind, words, ax in zip(("mean", "sd"), ("mean", "standard deviation of"), axes, strict=True):
            r2 = [float(agreement.loc[kind, f"r2_{which}"]) for which in ("identity", "correlation")]
            numbers = curves.observer_mean if kind == "mean" else curves.observer_sd
            observers(numbers, name, f"{words} saccade amplitude (deg)", r2[0], r2[1], ax)
            if not alone:
                _small_panel(ax, TITLES.get(name, name) if kind == "mean" else "", *r2)
    if not alone:
        for axes, words in zip(grid.T, ("mean amplitude", "standard deviation"), strict=True):
            _same_scale(list(axes))
            axes[0].set_ylabel(f"{words},\nsimulated (deg)")
            axes[0].tick_params(labelleft=True)
    return figure


def _small_panel(ax: Axes, title: str, r2_identity: float, r2_correlation: float) -> None:
    """One of many panels: its heading is the model's name and both R^2, since points leave no room for them."""
    for text in list(ax.texts):
        text.remove()
    r2 = with_minus(f"R² {r2_identity:.2f} (identity)\nR² {r2_correlation:.2f} (correlation)")
    ax.set_title(f"{title}\n{r2}" if title else r2, fontsize=6.5)
    _plain_labels(ax)
    ax.set_xlabel("data (deg)")


def _same_scale(axes: Sequence[Axes]) -> None:
    """Common limits for panels of observers, with the identity line from corner to corner."""
    low, high = min(ax.get_xlim()[0] for ax in axes), max(ax.get_xlim()[1] for ax in axes)
    for ax in axes:
        ax.lines[0].set_data([low, high], [low, high])
        ax.set_xlim(low, high)
        ax.set_ylim(low, high)
