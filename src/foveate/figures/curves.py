"""How well models predict: ROC curves (the paper's Fig. 10), scores along a path, and differences between models."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from foveate.errors import InputError, some_of
from foveate.figures.saccades import DASHES
from foveate.figures.style import FAINT, INK, model_colours, with_minus
from foveate.model.catalogue import TITLES

GAIN, DIFFERENCE = "bits per fixation over uniform", "bits per fixation"

# The paper's AUC, in words.
BORJI = "AUC-Borji: against uniform\ncells, all steps pooled"

# Bands of several models lie on one another: paler than where there are one or two.
BAND_ALPHA = 0.13

SCORE_COLUMNS = ("model", "fixation", "mean", "low", "high")

# Where the columns of numbers beside the differences begin, in points from the axes' right edge.
NUMBERS_PT = (10.0, 46.0, 154.0)
GRID_LINE = {"color": "#E4E4E4", "linewidth": 0.5}


@runtime_checkable
class RocCurve(Protocol):
    """A ROC curve and its area, as `evaluate.roc` makes them."""

    @property
    def false_alarms(self) -> np.ndarray:
        """Share of other cells that reach a threshold."""
        ...

    @property
    def hits(self) -> np.ndarray:
        """Share of fixated cells that reach it."""
        ...

    @property
    def auc(self) -> float:
        """Area under the curve."""
        ...


def roc_curves(models: Mapping[str, RocCurve], ax: Axes, *, kind: str = BORJI) -> Axes:
    """The ROC curve of every model, with the area under it in the legend, best first (Fig. 10).

    `kind` says which of the areas it is that go by the name of AUC.
    """
    if not models:
        raise InputError("no model given: there is no ROC curve to draw.")
    colours = dict(zip(models, model_colours(list(models)), strict=True))
    ax.plot([0, 1], [0, 1], color=FAINT, linewidth=0.6, linestyle=":", zorder=0)
    for name, roc in sorted(models.items(), key=lambda item: -item[1].auc):
        line = {"color": colours[name], "linestyle": DASHES.get(name, "-"), "linewidth": 1.1}
        ax.plot(roc.false_alarms, roc.hits, label=f"{TITLES.get(name, name)}: {roc.auc:.3f}", **line)
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    ax.set_aspect("equal")
    ax.set_xlabel("false alarms (share of random cells)")
    ax.set_ylabel("hits (share of fixated cells)")
    ax.legend(loc="lower right", title=f"area under the curve\n({kind})", title_fontsize=6.5, alignment="left",
              handlelength=2.6)  # fmt: skip
    return ax


def scores_by_fixation(
    scores: pd.DataFrame, ax: Axes, *, bands: Collection[str] | None = None, score: str = GAIN
) -> Axes:
    """A score by the fixation's number in the path, a line for every model.

    Those in `bands` (None: all) have the band of their intervals. `scores` has a row for each model and fixation:
    `model`, `fixation`, `mean`, `low` and `high`, as in `evaluate.compare.Comparison.models` of the steps with that
    number.
    """
    missing = [name for name in SCORE_COLUMNS if name not in scores.columns]
    if missing:
        raise InputError(
            f"the table of scores has no column {some_of(missing)}; it needs {some_of(list(SCORE_COLUMNS))}."
        )
    given = list(dict.fromkeys(scores["model"].tolist()))
    names = [name for name in TITLES if name in given] + [name for name in given if name not in TITLES]
    for name, colour in zip(names, model_colours(names), strict=True):
        mine: Any = scores[scores["model"] == name]
        mine = mine.sort_values("fixation")
        at, mean, low, high = (mine[column].to_numpy() for column in SCORE_COLUMNS[1:])
        if bands is None or name in bands:
            ax.fill_between(at, low, high, color=colour, alpha=BAND_ALPHA, linewidth=0)
        ax.plot(at, mean, color=colour, linestyle=DASHES.get(name, "-"), linewidth=1.1, label=TITLES.get(name, name))
    ax.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    ax.set_xlabel("number of the fixation in its path")
    ax.set_ylabel(score)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, handlelength=2.6)
    return ax


@runtime_checkable
class Compared(Protocol):
    """Models and their paired differences, as `evaluate.compare` makes them."""

    @property
    def models(self) -> pd.DataFrame:
        """A row for each model, the best first: `model`, `mean`."""
        ...

    @property
    def pairs(self) -> pd.DataFrame:
        """A row for each two: `first`, `second`, `difference`, `low`, `high`, `low_all`, `high_all`, ..."""
        ...

    @property
    def level(self) -> float:
        """Probability of the intervals."""
        ...


def differences(comparison: Compared, ax: Axes, *, reference: str | None = None, score: str = DIFFERENCE) -> Axes:
    """Every model less the reference (the best, if none is named), paired by observer and picture; the best on top.

    A thick bar is the interval of one difference, a thin one that in which all differences lie together. Beside them
    stand each model's mean, the difference with its interval, and for how many observers the better of the two leads.
    """
    names: list[str] = comparison.models["model"].tolist()
    reference = names[0] if reference is None else reference
    if reference not in names:
        raise InputError(f"reference {reference!r} was not compared; there are {some_of(names)}.")
    means = dict(zip(names, comparison.models["mean"].tolist(), strict=True))
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    for height, name, colour in zip(range(len(names))[::-1], names, model_colours(names), strict=True):
        disc = {"color": colour, "markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 4}
        words = [f"{means[name]:.3f}", "reference", ""]
        at = 0.0
        if name != reference:
            pair, sign = _pair(comparison.pairs, name, reference)
            at = sign * pair["difference"]
            low, high = sorted((sign * pair["low"], sign * pair["high"]))
            low_all, high_all = sorted((sign * pair["low_all"], sign * pair["high_all"]))
            ax.plot([low_all, high_all], [height, height], color=colour, linewidth=0.8, zorder=2)
            ax.plot([low, high], [height, height], color=colour, linewidth=2.4, zorder=3)
            words[1] = f"{at:+.3f} [{low:+.3f}, {high:+.3f}]"
            words[2] = f"{pair['observers_ahead']} of {pair['observers']}"
        ax.plot(at, height, "o", label=name, **disc)
        _numbers(ax, float(height), words)
    heads = ["mean", f"difference [{100 * comparison.level:g} %]", "observers for whom\nthe better one leads"]
    _numbers(ax, len(names) - 0.45, heads, above=True)
    ax.set_yticks(range(len(names))[::-1], labels=[TITLES.get(name, name) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.5, len(names) - 0.5)
    ax.grid(axis="x", **GRID_LINE)
    ax.set_axisbelow(True)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    bars = f"{100 * comparison.level:g} % interval"
    if len(names) > 2:  # a single difference has no other interval
        bars = f"thick: {bars}; thin: all differences together"
    ax.set_xlabel(f"difference to {TITLES.get(reference, reference)} ({score})\n{bars}")
    return ax


def _pair(pairs: pd.DataFrame, name: str, reference: str) -> tuple[dict[Any, Any], int]:
    """The row of these two models, and the sign that makes its difference that of `name` less `reference`."""
    signs = {(name, reference): 1, (reference, name): -1}
    for pair in pairs.to_dict("records"):
        if (pair["first"], pair["second"]) in signs:
            return pair, signs[pair["first"], pair["second"]]
    raise InputError(f"models {name!r} and {reference!r} were not compared with each other.")


def _numbers(ax: Axes, height: float, words: list[str], above: bool = False) -> None:
    """Columns of words to the right of the axes."""
    for text, place in zip(words, NUMBERS_PT, strict=True):
        ax.annotate(
            with_minus(text),
            (1, height),
            xycoords=ax.get_yaxis_transform(),
            xytext=(place, 0),
            textcoords="offset points",
            va="bottom" if above else "center",
            annotation_clip=False,
            color=INK,
            fontsize=6.5,
        )
