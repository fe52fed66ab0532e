"""What each mechanism adds or takes: differences of held-out bits from a base, with intervals, a row each."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from foveate.figures.style import FAINT, INK, TWO_COLUMNS_MM, new_figure, with_minus

# By the folds that a difference is from, as the table names them: colour, size of the disc, and height within a row.
MARKS: Mapping[str, tuple[str, float, float]] = {
    "all": ("#0072B2", 4.5, 0.0),
    "1 to 3": ("#E69F00", 2.6, 0.26),
    "4 and 5": ("#009E73", 2.6, -0.26),
}
ROW_MM, HEAD_MM = 5.2, 22.0


def differences(table: pd.DataFrame, ax: Axes) -> Axes:
    """Differences of the rows of one group from their bases, in the order of the table, the first at the top.

    `table` has a line for every row and set of folds: row, title, folds, difference and its interval.
    """
    table = table.loc[table["difference"].notna().to_numpy()]
    rows = list(dict.fromkeys(table["row"]))
    titles = dict(zip(table["row"], table["title"], strict=True))
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=1)
    several = set(table["folds"]) != {"all"}
    for line in table.to_dict("records"):
        colour, size, lift = MARKS[line["folds"]]
        height = len(rows) - 1 - rows.index(line["row"]) + (lift if several else 0.0)
        ax.plot([line["difference_low"], line["difference_high"]], [height] * 2, color=colour,
                linewidth=1.8 if line["folds"] == "all" else 0.8, zorder=2)  # fmt: skip
        ax.plot(line["difference"], height, "o", color=colour, markersize=size, markeredgecolor="white",
                markeredgewidth=0.4, zorder=3)  # fmt: skip
        if line["folds"] == "all":
            ax.annotate(with_minus(f"{line['difference']:+.3f}"), (1, height), xycoords=ax.get_yaxis_transform(),
                        xytext=(4, 0), textcoords="offset points", va="center", color=INK, fontsize=6.0,
                        annotation_clip=False)  # fmt: skip
    ax.set_yticks(range(len(rows))[::-1], labels=[with_minus(titles[row]) for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.grid(axis="x", color="#E4E4E4", linewidth=0.5)
    ax.set_axisbelow(True)
    return ax


def ablation(
    tables: Mapping[str, pd.DataFrame], groups: Mapping[str, str], bases: Mapping[tuple[str, str], float]
) -> Figure:
    """A column for each kind of maps, a panel for each group of rows; `groups` are their names and titles.

    `bases` has the bits of every group's own base by (maps, group): they stand in the panels' titles.
    """
    shown = {group: [name for name, it in tables.items() if _any(it, group)] for group in groups}
    kept = [group for group, names in shown.items() if names]
    heights = [max(_count(it, group) for it in tables.values()) for group in kept]
    figure = new_figure(TWO_COLUMNS_MM, ROW_MM * sum(heights) + HEAD_MM * max(len(kept), 1))
    axes = figure.subplots(max(len(kept), 1), len(tables), squeeze=False, sharex="row", sharey="row",
                           height_ratios=heights or [1])  # fmt: skip
    for row, group in zip(axes, kept, strict=False):
        for ax, (name, table) in zip(row, tables.items(), strict=True):
            differences(table.loc[(table["group"] == group).to_numpy()], ax)
            ax.yaxis.set_tick_params(labelleft=ax is row[0])
            ax.set_title(f"{groups[group]}\n{name} maps; base {bases[name, group]:.3f} bits")
    for ax in axes[-1]:
        ax.set_xlabel("difference (bits per fixation), 95 % interval")
    _legend(figure, sorted({folds for it in tables.values() for folds in it["folds"]}, key=list(MARKS).index))
    return figure


def _legend(figure: Figure, folds: Sequence[str]) -> None:
    if len(folds) < 2:
        return
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], color=MARKS[it][0], marker="o", markersize=MARKS[it][1], label=f"folds {it}" if it != "all"
                    else "all folds") for it in folds]  # fmt: skip
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks))


def _any(table: pd.DataFrame, group: str) -> bool:
    return bool(_count(table, group))


def _count(table: pd.DataFrame, group: str) -> int:
    mine = (table["group"] == group).to_numpy() & table["difference"].notna().to_numpy()
    return len(set(table["row"].to_numpy()[mine]))
