"""Posterior predictive checks written down: tables, figures, a page, and what the JSON file says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foveate.evaluate.predictive_checks import TITLES, PredictiveChecks
from foveate.experiments.predictive import CURVES, Checked, tables
from foveate.experiments.study_page import markdown
from foveate.figures.predictive import predictive_curves, predictive_statistics
from foveate.figures.style import journal_style, save
from foveate.inference.files import write_whole
from foveate.model import catalogue

PAGE, FIGURES = "results.md", "figures"
QUANTITIES = {"amplitude": "amplitude", "direction": "direction", "turn": "change of direction"}


def write_checks(found: Mapping[str, Checked], folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Write everything into the folder; what the JSON file says of it."""
    made = tables(found)
    for name, table in made.items():
        write_whole(folder / f"{name}.csv", lambda file, it=table: it.to_csv(file, index=False, float_format="%.9g"))
    checks = {name: it.checks for name, it in found.items()}
    figures = _draw(checks, folder / FIGURES)
    text = page(found, asked, figures)
    write_whole(folder / PAGE, lambda file: file.write_text(text, encoding="utf-8"))
    return {
        "command": command(asked),
        "seed": asked["seed"],
        "copies": asked["draws"],
        "saccades": next(iter(checks.values())).curves.saccades,
        "models": {name: _said(it) for name, it in found.items()},
        "tables": [f"{name}.csv" for name in made],
        "figures": figures,
        "page": PAGE,
    }


def command(asked: Mapping[str, Any]) -> str:
    """The command that makes it, whatever folders the data and the fits are in."""
    said = [f"--{name} {value}" for name, value in asked.items() if name not in ("data", "fits")]
    fits = ["--fits FITS"] if asked["fits"] is not None else []
    return " ".join(["foveate predictive", "--data DATA", *said, *fits, "--out OUT"])


def _said(it: Checked) -> dict[str, Any]:
    statistics = it.checks.table()
    return {
        "statistics": statistics.astype({"inside": bool}).to_dict(orient="index"),
        "inside": inside(statistics),
        "distances": it.checks.distances.to_dict(orient="index"),
        "fits": len(it.fits),
        "different_draws": it.different_draws,
        "median_max_rhat": float(np.median(it.fits["max_rhat"].to_numpy())) if len(it.fits) else None,
    }


def _draw(checks: Mapping[str, PredictiveChecks], folder: Path) -> list[str]:
    curves = {kind: {name: getattr(it.curves, kind) for name, it in checks.items()} for kind in CURVES}
    with journal_style():
        drawn = {
            "curves": predictive_curves(
                curves["amplitude"], curves["turn"], curves["direction"], curves["autocorrelation"]
            ),
            "statistics": predictive_statistics({name: it.table() for name, it in checks.items()}, TITLES),
        }
        for name, figure in drawn.items():
            save(figure, folder, name)
    return [f"{FIGURES}/{name}.svg" for name in drawn]


# --- the page --------------------------------------------------------------------------------------------------------


def page(found: Mapping[str, Checked], asked: Mapping[str, Any], figures: list[str]) -> str:
    """All of it in Markdown."""
    checks = {name: it.checks for name, it in found.items()}
    first = next(iter(checks.values())).curves
    parts = [
        "# Posterior predictive checks of saccades",
        f"Made by `{command(asked)}`. The data: {first.saccades:,} saccades of {len(first.observers)} observers. Each "
        f"of {asked['draws']} copies by a model has the same observers, pictures, lengths and first two fixations, "
        "and one posterior draw of each observer from the fit that did not see the picture. Where a choice depends on "
        "how long fixations last, they last as long as the data's.",
        "## Statistics",
        "In brackets: the band that holds 95 % of the copies. Bold: the data are outside. Of statistics that a model "
        "has right, one in 20 lies outside by chance. p is two-sided, and with so many copies never below "
        f"{2 / (asked['draws'] + 1):.2g}; the last columns say how many observers have their own value in their own "
        "band, about 95 % if the model is right. A return is a fixation near the one before the last.",
        statistics_table(checks),
        "## Distances",
        "Between the data and all copies together; in brackets the mean and the 97.5 % quantile of the same between "
        "one copy and the others, which is what chance alone gives. Jensen-Shannon divergences are of bins of 0.25 deg "
        "(amplitudes) and 5 deg (angles).",
        distances_table(checks),
        *(f"![{Path(name).stem}]({name})" for name in figures),
        "## Fits",
        *(_of_fits(name, it, asked["draws"]) for name, it in found.items()),
        "Tables: " + ", ".join(f"[{name}.csv]({name}.csv)" for name in tables(found)) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def title(name: str) -> str:
    """A model's name in a table."""
    return catalogue.TITLES.get(name, name)


def statistics_table(checks: Mapping[str, PredictiveChecks]) -> str:
    """A row for each statistic, with every model's mean, band, p and share of observers inside."""
    each = {name: it.table() for name, it in checks.items()}
    names = [it for it in TITLES if any(it in table.index for table in each.values())]
    head = ["statistic", "data", *(title(name) for name in each), *(f"p, {title(name)}" for name in each)]
    head += [f"observers inside, {title(name)}" for name in each]
    rows = []
    for statistic in names:
        own = {
            name: table.loc[statistic].to_dict() if statistic in table.index else None for name, table in each.items()
        }
        data = next(float(it["observed"]) for it in own.values() if it is not None)
        row = [TITLES[statistic], f"{data:.3f}"]
        row += ["" if it is None else _banded(it) for it in own.values()]
        row += ["" if it is None else f"{it['p']:.2f}" for it in own.values()]
        row += ["" if it is None else f"{it['observers_inside']:.0%}" for it in own.values()]
        rows.append(row)
    counts = [f"{inside(table)} of {len(table)}" for table in each.values()]
    rows.append(["inside their bands", "", *counts, *[""] * (2 * len(each))])
    return markdown(head, rows)


def inside(table: pd.DataFrame) -> int:
    """How many statistics of the data lie in the band."""
    return int(np.sum(table["inside"].to_numpy(dtype=bool)))


def _banded(row: Mapping[Any, Any]) -> str:
    words = f"{row['simulated']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    return words if row["inside"] else f"**{words}**"


def distances_table(checks: Mapping[str, PredictiveChecks]) -> str:
    """A row for each quantity, with both distances of every model and what chance gives."""
    head = ["quantity", *(f"Jensen-Shannon (bits), {title(name)}" for name in checks)]
    head += [f"Wasserstein (deg), {title(name)}" for name in checks]
    rows = []
    for quantity, words in QUANTITIES.items():
        row = [words]
        for kind, form in (("js_bits", ".4f"), ("wasserstein_deg", ".2f")):
            for it in checks.values():
                own, chance, high = (
                    it.distances.loc[quantity, f"{kind}{end}"] for end in ("", "_chance", "_chance_high")
                )
                row.append(f"{own:{form}} [{chance:{form}}, {high:{form}}]")
        rows.append(row)
    return markdown(head, rows)


def _of_fits(name: str, it: Checked, draws: int) -> str:
    if not len(it.fits):
        return f"{title(name)}: nothing to fit."
    rhat = float(np.median(it.fits["max_rhat"].to_numpy()))
    unconverged = int(np.sum(~it.fits["converged"].to_numpy(dtype=bool)))
    words = (
        f"{title(name)}: {len(it.fits)} fits, {unconverged} of them marked as not converged, R-hat {rhat:.2f} in the "
    )
    words += "median fit."
    if it.different_draws < draws:
        words += f" Copies share draws: there are {it.different_draws} different ones."
    return words
