"""The tables of a study's folder as a page shows them: who predicts best, by how much, whose saccades look right."""

from pathlib import Path
from typing import Any

import pandas as pd

from foveate.report.payload import Table, number, table, title_of

STATISTICS = {
    "mean_deg": "mean amplitude (deg)",
    "median_deg": "median amplitude (deg)",
    "sd_deg": "standard deviation of amplitude (deg)",
    "lag_1": "correlation of successive amplitudes",
    "share_right": "share to the right",
    "share_left": "share to the left",
    "share_up": "share upward",
    "share_down": "share downward",
    "share_onward": "share that goes on in the same direction",
    "share_back": "share that turns back",
}
OVER = ", over fixations"


def study_sections(folder: Path) -> list[dict[str, Any]]:
    """{"heading", "words", "table"} of everything that the folder has a table for, in a reader's order."""
    makers = (_ranking, _scores, _pairs, _ceiling, _shares, _claims, _saccades, _agreement, _distances)
    return [found for found in (make(folder) for make in makers) if found is not None]


def _read(folder: Path, name: str, columns: set[str]) -> pd.DataFrame | None:
    """A table of the folder; None where it is not there, is empty or has other columns."""
    try:
        found = pd.read_csv(folder / f"{name}.csv", keep_default_na=True)
    except (OSError, ValueError):
        return None
    return found if columns <= set(found.columns) and len(found) else None


def _section(heading: str, words: str, shown: Table) -> dict[str, Any]:
    return {"heading": heading, "words": words, "table": shown}


def _rows(found: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in found.to_dict(orient="records")]


def _interval(row: dict[str, Any], middle: str) -> list[float]:
    return [float(row[middle]), float(row["low"]), float(row["high"])]


def _ranking(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "ranking", {"model", "mean", "low", "high"})
    if found is None:
        return None
    ordered = found.sort_values("mean", ascending=False)
    rows = [[number(rank, 0), title_of(str(row["model"])), _interval(row, "mean")]
            for rank, row in enumerate(_rows(ordered), 1)]  # fmt: skip
    words = (
        "Gain over a uniform density on pictures that the fits have not seen; intervals are for new observers and new "
        "pictures."
    )
    return _section(
        "Ranking", words, table([("rank", "number"), ("model", "text"), ("bits per fixation", "interval")], rows)
    )


def _scores(folder: Path) -> dict[str, Any] | None:
    columns = {
        "bits over uniform": f"predictive_gain_over_uniform_bits{OVER}",
        "bits over the map": f"predictive_gain_over_static_map_bits{OVER}",
        "bits over centre bias": f"predictive_gain_over_centre_bias_bits{OVER}",
        "NSS": f"predictive_nss{OVER}",
        "AUC": f"predictive_auc{OVER}",
        "AUC, shuffled": "predictive_auc_shuffled",
    }
    found = _read(folder, "scores", {"model", *columns.values()})
    if found is None:
        return None
    ordered = found.sort_values(columns["bits over uniform"], ascending=False)
    rows = [[title_of(str(row["model"])), *(number(row[it]) for it in columns.values())] for row in _rows(ordered)]
    heads = [("model", "text"), *((name, "number") for name in columns)]
    return _section(
        "Scores", "Of the posterior predictive density, averaged over held-out fixations.", table(heads, rows)
    )


def _pairs(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "pairs", {"first", "second", "difference", "low", "high", "observers_ahead", "observers"})
    if found is None:
        return None
    rows = [
        [
            f"{title_of(str(row['first']))} − {title_of(str(row['second']))}",
            _interval(row, "difference"),
            [int(row["observers_ahead"]), f"{int(row['observers_ahead'])} of {int(row['observers'])}"],
        ]
        for row in _rows(found)
    ]
    heads = [("models", "text"), ("difference, bits per fixation", "interval"), ("observers ahead", "number")]
    return _section("Differences between models", "Paired by observer and picture.", table(heads, rows))


def _ceiling(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "ceiling", {"model", "bits", "gold_bits", "share", "low", "high"})
    if found is None:
        return None
    rows = [[title_of(str(row["model"])), number(row["bits"]), number(row["gold_bits"]), _interval(row, "share")]
            for row in _rows(found)]  # fmt: skip
    heads = [("model", "text"), ("bits", "number"), ("bits of the gold standard", "number"), ("share", "interval")]
    words = "The gold standard predicts an observer by where everybody else looked."
    return _section("How near the ceiling", words, table(heads, rows))


def _shares(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "best_shares", {"model", "observers", "share", "low", "high"})
    if found is None:
        return None
    rows = [[title_of(str(row["model"])), number(row["observers"], 0), _interval(row, "share")] for row in _rows(found)]
    heads = [("model", "text"), ("observers", "number"), ("share", "interval")]
    return _section("Best model of an observer", "How many observers each model predicts best.", table(heads, rows))


def _claims(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "claims", {"claim", "verdict", "evidence"})
    if found is None:
        return None
    rows = [[str(row[it]) for it in ("claim", "verdict", "evidence")] for row in _rows(found)]
    heads = [("claim", "text"), ("here", "text"), ("evidence", "text")]
    return _section("What the paper says of its models", "Judged by the tables of this folder.", table(heads, rows))


def _saccades(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "saccades", {"model", "statistic", "observed", "simulated", "low", "high", "inside"})
    if found is None:
        return None
    ordered = _rows(found.sort_values("statistic", kind="stable", key=lambda it: it.map(_place)))
    rows = [
        [
            STATISTICS.get(str(row["statistic"]), str(row["statistic"])),
            title_of(str(row["model"])),
            number(row["observed"]),
            [*_interval(row, "simulated"), float(row["observed"])],
            "inside" if row["inside"] else "outside",
        ]
        for row in ordered
    ]
    heads = [("statistic", "text"), ("model", "text"), ("observed", "number"), ("simulated", "interval")]
    words = (
        "Posterior predictive checks: of all saccades, observed and simulated. The interval holds 95 % of the "
        "simulated data sets, one per posterior draw; the upright line is what was observed, on the scale of its "
        "statistic."
    )
    scales = [str(row["statistic"]) for row in ordered]
    return _section("Saccades", words, table([*heads, ("observed value is", "text")], rows, scales=scales))


def _place(statistic: str) -> int:
    names = list(STATISTICS)
    return names.index(statistic) if statistic in names else len(names)


def _agreement(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "agreement", {"model", "of amplitude", "r2_identity", "r2_correlation"})
    if found is None:
        return None
    kinds = {"mean": "mean", "sd": "standard deviation"}
    rows = [
        [title_of(str(row["model"])), kinds.get(str(row["of amplitude"]), str(row["of amplitude"]))]
        + [number(row[it], 2) for it in ("r2_identity", "r2_correlation")]
        for row in _rows(found)
    ]
    heads = [("model", "text"), ("of amplitude", "text"), ("R², identity", "number"), ("r², correlation", "number")]
    words = "Observed against simulated, observer by observer: against the identity line, and as squared correlation."
    return _section("Amplitudes of single observers", words, table(heads, rows))


def _distances(folder: Path) -> dict[str, Any] | None:
    found = _read(folder, "distances", {"model", "quantity", "js_bits", "js_bits_floor"})
    if found is None:
        return None
    rows = [
        [title_of(str(row["model"])), str(row["quantity"])]
        + [number(1000 * row[it], 1) for it in ("js_bits", "js_bits_floor")]
        for row in _rows(found)
    ]
    heads = [("model", "text"), ("density of", "text"), ("millibits", "number"), ("by chance alone", "number")]
    words = "Jensen-Shannon distance between observed and simulated densities, and what chance alone leaves of it."
    return _section("Distances between densities", words, table(heads, rows))
