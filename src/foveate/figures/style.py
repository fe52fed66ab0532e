"""What all figures share: one colour per model and per policy, a plain style, and files in two formats.

Colours are those of Okabe and Ito, which people with any common form of colour blindness can tell apart. Figures are
made from Matplotlib's objects on the Agg canvas: no window, no pyplot, no settings that outlive a call.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from foveate.inference.files import write_whole

MODEL_COLOURS = {
    "full": "#0072B2",
    "local_choice": "#009E73",
    "fixed_choice": "#E69F00",
    "local_saliency": "#CC79A7",
    "saliency_baseline": "#6E6E6E",
    "wayfarer": "#D55E00",
}

# By the policy's class. The forms of the repelled global policy share its colour: a model has one of them.
POLICY_COLOURS = {
    "Local": "#D55E00",
    "Global": "#56B4E9",
    "RepelledGlobal": "#56B4E9",
    "PrintedRepelledGlobal": "#56B4E9",
    "StaticSaliency": "#6E6E6E",
}

POLICY_TITLES = {
    "Local": "local policy",
    "Global": "global policy",
    "RepelledGlobal": "global policy",
    "PrintedRepelledGlobal": "global policy",
    "StaticSaliency": "saliency alone",
}

# For models and policies that are not in the tables above, in this order.
RESERVE = ("#009E73", "#F0E442", "#CC79A7", "#0072B2", "#E69F00")

NEUTRAL = "#FFFFFF"  # fixations that no policy chose
INK = "#222222"
FAINT = "#9A9A9A"

# Light paper to dark ink, so that colours stand out on it; and one whose steps are even, also in grey.
BACKGROUND_MAP = "Greys"
DENSITY_MAP = "viridis"

# Millimetres to inches, and the widths of one and two columns of a journal's page.
INCH_MM = 25.4
ONE_COLUMN_MM, TWO_COLUMNS_MM = 89.0, 183.0

PNG_DPI = 200

_SETTINGS = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib: the same figure on every machine
    "font.size": 7.0,
    "axes.titlesize": 7.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "image.interpolation": "nearest",
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "foveate",  # the same figure gives the same file
}


@contextmanager
def journal_style() -> Iterator[None]:
    """Matplotlib's settings for a figure, in force inside the block alone."""
    with style.context(["default", _SETTINGS]):
        yield


def new_figure(width_mm: float = ONE_COLUMN_MM, height_mm: float = 70.0) -> Figure:
    """An empty figure of this size that needs no display."""
    figure = Figure(figsize=(width_mm / INCH_MM, height_mm / INCH_MM), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def root_figure(ax: Axes) -> Figure:
    """The whole figure that the axes are part of, also if they sit in a figure within it."""
    nearest = ax.get_figure()
    assert nearest is not None, "the axes were removed from their figure"
    return nearest.figure  # type: ignore[return-value]


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """The figure as `name`.svg and `name`.png in the folder, each whole or not at all."""
    kinds = {"svg": {"Date": None}, "png": {"Software": None}}  # with what would differ from day to day left out
    with journal_style():
        figure.draw_without_rendering()  # the layout settles with the second drawing, and all files are to be alike
        return [
            write_whole(
                Path(folder) / f"{name}.{kind}",
                lambda temporary, kind=kind: figure.savefig(temporary, format=kind, dpi=PNG_DPI, metadata=kinds[kind]),
            )
            for kind in kinds
        ]


def with_minus(numbers: str) -> str:
    """Numbers in words, with true minus signs for hyphens."""
    return numbers.replace("-", "−")


def write_short(axis: Axis) -> None:
    """Ticks without zeros that say nothing."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(f"{value:g}")))


def model_colours(names: Sequence[str]) -> list[str]:
    """The colour of each model, by name; unknown ones get the reserve's in turn."""
    return _colours(names, MODEL_COLOURS)


def policy_colours(policies: Sequence[str]) -> list[str]:
    """The colour of each policy of a model, by the name of its class."""
    return _colours(policies, POLICY_COLOURS)


def policy_title(policy: str) -> str:
    """A policy's name in words: 'Momentum' is 'momentum policy'."""
    return POLICY_TITLES.get(policy, f"{_words(policy)} policy")


def policy_titles(policies: Sequence[str]) -> list[str]:
    """Short names of the policies of a model, by their classes: 'local', 'global'; as viewers and tables show them."""
    titles = [policy_title(it).removesuffix(" policy") for it in policies]
    if len(set(titles)) == len(titles):
        return titles
    return [_words(it) for it in policies]  # two forms of one policy: told apart by their classes


def _words(name: str) -> str:
    """The name of a class in words: 'ReturnHome' is 'return home'."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _colours(names: Sequence[str], known: dict[str, str]) -> list[str]:
    reserve = [colour for colour in RESERVE if colour not in {known.get(name) for name in names}]
    unknown = [name for name in names if name not in known]
    spare = {name: reserve[index % len(reserve)] for index, name in enumerate(dict.fromkeys(unknown))}
    return [known.get(name) or spare[name] for name in names]
