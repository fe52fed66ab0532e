"""Confusion matrices of models: who wins on data that each of them made."""

from collections.abc import Mapping

import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from foveate.errors import InputError, some_of
from foveate.figures.style import INK, TWO_COLUMNS_MM, new_figure
from foveate.model.catalogue import TITLES

COLUMNS = ("truth", "winner", "wins", "data_sets", "share", "low", "high")

SHARES_MAP = "Blues"  # light to dark: read in grey as well
DARK = 0.55  # above this share of the colours the numbers are white
BESIDE_MM, AROUND_MM = 18.0, 20.0  # names left of a matrix; names, labels and title above and below


def confusions(matrices: Mapping[str, pd.DataFrame]) -> Figure:
    """A matrix for each criterion, side by side; the keys are their titles."""
    if not matrices:
        raise InputError("no confusion matrix given: there is nothing to draw.")
    width = TWO_COLUMNS_MM / max(len(matrices), 1.5)
    figure = new_figure(width * len(matrices), width - BESIDE_MM + AROUND_MM)
    for ax, (title, matrix) in zip(figure.subplots(1, len(matrices), squeeze=False)[0], matrices.items(), strict=True):
        confusion(matrix, ax)
        ax.set_title(f"winner by {title}")
    return figure


def confusion(matrix: pd.DataFrame, ax: Axes) -> Axes:
    """Rows are the models that made the data, columns those that won; a cell has its share, interval and count.

    `matrix` has the columns truth, winner, wins, data_sets, share, low and high, as `confusion_matrix` makes them.
    Cells of the true model are framed.
    """
    missing = [name for name in COLUMNS if name not in matrix.columns]
    if missing:
        raise InputError(
            f"the confusion matrix has no column {some_of(missing)}; it needs {some_of(list(COLUMNS), 9)}."
        )
    names: list[str] = [str(name) for name in dict.fromkeys(matrix["truth"])]
    shares = matrix.pivot(index="truth", columns="winner", values="share").loc[names, names].to_numpy(dtype=float)
    ax.imshow(shares, cmap=colormaps[SHARES_MAP], vmin=0, vmax=1, aspect="equal")
    for row in matrix.to_dict("records"):
        y, x = names.index(row["truth"]), names.index(row["winner"])
        colour = "white" if row["share"] > DARK else INK
        words = f"{row['low']:.0%} to {row['high']:.0%}\n{row['wins']} of {row['data_sets']}"
        ax.text(x, y - 0.06, f"{row['share']:.0%}", ha="center", va="bottom", fontsize=8.0, color=colour)
        ax.text(x, y + 0.02, words, ha="center", va="top", fontsize=5.5, color=colour)
        if x == y:
            ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=INK, linewidth=1.2, clip_on=False))
    titles = [TITLES.get(name, name).replace(" ", "\n", 1) for name in names]
    ax.set_xticks(range(len(names)), labels=titles)
    ax.set_yticks(range(len(names)), labels=titles)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.set_xlabel("model that wins (small: interval of 95 %, Wilson)")
    ax.set_ylabel("model that made the data")
    return ax
