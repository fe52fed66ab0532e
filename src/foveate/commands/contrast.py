"""`foveate contrast`: do groups of observers differ in their parameters?"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import AsJson, Results, Seed
from foveate.commands.outputs import claim, finite, progress, resumable, versions, write_json
from foveate.commands.studies import PAGE, write_page, write_tables
from foveate.errors import InputError, some_of

if TYPE_CHECKING:
    from foveate.evaluate.contrasts import Contrasts
    from foveate.execution.store import FitStore

SUMMARY, FIGURE, MADE_BY = "contrasts.json", "contrasts", "foveate contrast"
TABLE, OBSERVERS = "contrasts.csv", "observers.csv"
HELP = (
    "Compare groups of observers, or conditions of an experiment: for every parameter of a model the difference of the "
    "groups' means, with the uncertainty of each observer's fit and that of observers being a sample. FILE is a table "
    "(.csv or .tsv) with the columns observer and group, a row for each observer to use; with --paired also person, "
    "for people who are there once in every group, under different observer names. Positive parameters are compared "
    "by their ratio."
)
SHORT_HELP = "Compare the parameters of groups of observers."
EXAMPLE = "Example: foveate contrast fits --groups groups.csv --out contrast"


def contrast(
    fits: Annotated[Path, typer.Argument(help="A folder that `foveate fit` made.", show_default=False)],
    groups: Annotated[Path, typer.Option(help="Whose group is which.", metavar="FILE", show_default=False)],
    out: Results,
    paired: Annotated[
        bool, typer.Option("--paired", help="Differences within persons, who are in all groups.")
    ] = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Read, contrast, write, print."""
    asked = {"fits": str(fits), "groups": str(groups), "paired": paired, "seed": seed}
    found, summary = resumable(out, lambda: _work(fits, groups, out, paired, asked))
    if as_json:
        print(json.dumps(finite(summary)))
    else:
        _print(found, out)


def _work(
    fits: Path, file: Path, out: Path, paired: bool, asked: Mapping[str, Any]
) -> tuple["Contrasts", dict[str, Any]]:
    import jax

    from foveate.evaluate.contrasts import contrast_conditions, contrast_groups
    from foveate.evaluate.groups import check_conditions, check_groups
    from foveate.execution.store import FitStore

    store = FitStore.read(fits)
    groups, persons = _read(file, paired, store)
    if persons is None:
        check_groups(groups)
    else:
        check_conditions(groups, persons)
    claim(out, [SUMMARY, PAGE, TABLE, OBSERVERS], SUMMARY, MADE_BY, asked)
    key = jax.random.key(asked["seed"])
    with progress(f"{MADE_BY}, seed {asked['seed']}; the results will be in {out}") as tell:
        posteriors = {}
        for number, observer in enumerate(groups):
            tell(f"reading the fit of observer {observer}", number, len(groups) + 1)
            posteriors[observer] = store.load(observer)
        tell("tables and figures", len(groups), len(groups) + 1)
        found = (
            contrast_groups(posteriors, groups, key)
            if persons is None
            else contrast_conditions(posteriors, groups, persons, key)
        )
        left_out = [observer for observer in store.finished() if observer not in groups]
        summary = _write(found, out, asked, store, left_out)
    return found, summary


def _read(file: Path, paired: bool, store: "FitStore") -> tuple[dict[Any, Any], dict[Any, Any] | None]:
    """Group, and person if asked for, of every observer in the table; each must have a fit."""
    from foveate.data.columns import check_names
    from foveate.data.readers.sources import load

    names = ["observer", "group", *(["person"] if paired else [])]
    source = load(file, names)
    check_names(list(source.table.columns), names, source.name)
    known = {str(observer): observer for observer in store.run.observers}
    finished = set(store.finished())
    columns: dict[str, dict[Any, Any]] = {name: {} for name in names[1:]}
    for index, values in enumerate(zip(*(source.table[name].tolist() for name in names), strict=True)):
        row = {name: str(value).strip() for name, value in zip(names, values, strict=True)}
        where = source.row_name(index)
        empty = [name for name in names if not row[name]]
        if empty:
            raise InputError(f"{where}: {some_of(empty)} is empty; every row needs {some_of(names)}.")
        if row["observer"] not in known:
            raise InputError(
                f"{where}: observer {row['observer']} has no fit in {store.folder}, which is of "
                f"{some_of(list(known), 10)}."
            )
        observer = known[row["observer"]]
        if observer not in finished:
            raise InputError(
                f"{where}: the fit of observer {observer} in {store.folder} is not finished; go on with `foveate fit`, "
                "or remove the row."
            )
        if observer in columns["group"]:
            raise InputError(f"{where}: observer {observer} stands there twice; give each a single row.")
        for name in names[1:]:
            columns[name][observer] = row[name]
    return columns["group"], columns.get("person")


# --- what is written -------------------------------------------------------------------------------------------------


def _write(
    found: "Contrasts", out: Path, asked: Mapping[str, Any], store: "FitStore", left_out: list
) -> dict[str, Any]:
    from foveate.figures.contrasts import contrasts as draw
    from foveate.figures.style import journal_style, save

    tables = write_tables(out, {"contrasts": found.table, "observers": found.observers})
    with journal_style():
        save(draw(found.table, level=found.level, unconverged=len(found.unconverged)), out, FIGURE)
    write_page(out, _page(found, store, left_out))
    summary = {"made_by": MADE_BY, "asked": dict(asked), "finished": True, "versions": versions()}
    summary |= {"model": store.run.model.name, "groups": _sizes(found), "paired": found.paired, "level": found.level}
    summary |= {"not_converged": list(found.unconverged), "left_out": left_out, "note": found.together}
    summary |= {"contrasts": found.table.to_dict("records"), "tables": tables}
    summary |= {"figures": [f"{FIGURE}.svg"], "page": PAGE}
    write_json(out / SUMMARY, summary)
    return summary


def _sizes(found: "Contrasts") -> dict[str, int]:
    return {str(group): int((found.observers["group"] == group).sum()) for group in found.groups}


def _page(found: "Contrasts", store: "FitStore", left_out: list) -> str:
    from foveate.experiments.study_page import markdown
    from foveate.model.catalogue import TITLES

    name = store.run.model.name
    sizes = ", ".join(f"{group} ({size})" for group, size in _sizes(found).items())
    kind = "Differences are within persons, who are in every group." if found.paired else "Groups are different people."
    words = [
        f"# Contrasts of {TITLES.get(name, name)}",
        f"Groups: {sizes} observers of {store.folder}. {kind} {_marks(found, left_out)}".strip(),
        "Differences are of group means on the real line of each parameter, first - second: of logarithms for positive "
        "parameters, shown as ratios of geometric means, and of log-odds for probabilities, shown as odds ratios. "
        f"Intervals of {found.level:.0%} are for new {'persons' if found.paired else 'observers'}: each observer's "
        "posterior is in them, and that observers are a sample. The effect is the difference in standard deviations "
        f"between {'persons (of their differences)' if found.paired else 'observers (within groups)'}. "
        f"The last column is the p-value of {_test(found)} on posterior means. {found.together}".strip(),
        markdown(["contrast", "number", "as", "value", f"{found.level:.0%} interval", "all together",
                  "P(first higher)", "effect", "p"],
                 [[cell.replace("|", "\\|") for cell in _cells(row)] for row in found.table.to_dict("records")]),
        f"![differences]({FIGURE}.svg)",
        f"Tables: [{TABLE}]({TABLE}), [{OBSERVERS}]({OBSERVERS}).",
    ]  # fmt: skip
    return "\n\n".join(words) + "\n"


def _test(found: "Contrasts") -> str:
    return f"{found.table['test'].iloc[0]}-test"


def _marks(found: "Contrasts", left_out: list) -> str:
    words = []
    if found.unconverged:
        words.append(
            f"**NOT CONVERGED: the fits of observer {some_of(list(found.unconverged), 10)}; they are in all numbers.**"
        )
    if left_out:
        words.append(f"Not in the table of groups, and left out: observer {some_of(left_out, 10)}.")
    return " ".join(words)


def _cells(row: Mapping[Any, Any]) -> list[str]:
    """A row as people read it: ratios where the difference is a logarithm."""
    import numpy as np

    kinds = {"log ratio": "ratio", "log odds ratio": "odds ratio"}
    shown = np.exp if row["scale"] in kinds else np.asarray
    value, low, high, low_all, high_all = shown(
        [row[name] for name in ("difference", "low", "high", "low_all", "high_all")]
    )
    return [
        f"{row['first']} against {row['second']}",
        str(row["parameter"]),
        kinds.get(row["scale"], "difference"),
        f"{value:.3g}",
        f"{low:.3g} to {high:.3g}",
        f"{low_all:.3g} to {high_all:.3g}",
        f"{row['probability_above_zero']:.3f}",
        f"{row['standardised']:+.2f}",
        f"{row['t_p_value']:.3g}",
    ]


def _print(found: "Contrasts", out: Path) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from foveate.commands.verdicts import result_console

    table = Table("contrast", "number", "as", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("value", f"{found.level:.0%} interval", "P(first higher)", "effect"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.table.to_dict("records"):
        cells = [escape(cell) for cell in _cells(row)]
        table.add_row(*cells[:5], *cells[6:8])
    console = result_console()
    console.print(table)
    marks = _marks(found, []).replace("**", "")
    for line in (found.together, marks, f"The page is {out / PAGE}."):
        if line:
            console.print(line, markup=False)
