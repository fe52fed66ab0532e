"""What the paper claims of its models, judged by the tables of a study of the same models.

Every claim is worded as in Malem-Shinitski et al. (2020), and judged by numbers with intervals: over observers and
pictures for predictions, over posterior draws for simulated saccades. Where an interval leaves it open, so does the
verdict. A claim about models that a study does not have is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from foveate.model.catalogue import TITLES

Verdict = Literal["stands", "stands in part", "does not stand", "cannot be told"]
Tables = Mapping[str, pd.DataFrame]

FULL, RIVALS, SINGLE = "full", ("local_choice", "fixed_choice"), "local_saliency"
FITTED = (FULL, *RIVALS, SINGLE)

DISTANT = 10  # saccades apart, and on: their amplitudes have nothing to do with each other any more
UNIFORM_SHARE = 30 / 360  # of directions that lie within 15 deg of one, without a preference


@dataclass(frozen=True)
class Claim:
    """A claim, what became of it, and why."""

    claim: str
    verdict: Verdict
    evidence: str


def judged(tables: Tables) -> list[Claim]:
    """All claims that these tables can judge, in the paper's order."""
    models = set(tables["scores"]["model"])
    return [judge(tables) for needed, judge in CLAIMS if needed <= models and "pairs" in tables]


def claims_table(tables: Tables) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame([vars(it) for it in judged(tables)], columns=["claim", "verdict", "evidence"])


# --- reading the tables --------------------------------------------------------------------------------------------


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _lead(tables: Tables, first: str, second: str) -> tuple[float, float, float]:
    """By how many bits per held-out fixation the first predicts better, with its interval."""
    known = {(row["first"], row["second"]): row for row in tables["pairs"].to_dict(orient="records")}
    for pair, sign in (((first, second), 1.0), ((second, first), -1.0)):
        if pair in known:
            low, high = sorted(sign * known[pair][end] for end in ("low", "high"))
            return sign * known[pair]["difference"], low, high
    raise KeyError(f"{first}, {second}: no such pair of models")


def _leads(tables: Tables, pairs: list[tuple[str, str]]) -> tuple[Verdict, str]:
    """Whether the first of every pair predicts better, and the numbers."""
    found = [(first, second, _lead(tables, first, second)) for first, second in pairs]
    words = "; ".join(
        f"{_title(first)} - {_title(second)} {lead:+.3f} ({low:+.3f} to {high:+.3f})"
        for first, second, (lead, low, high) in found
    )
    verdict: Verdict = "cannot be told"
    if all(low > 0 for _, _, (_, low, _) in found):
        verdict = "stands"
    elif any(high < 0 for _, _, (_, _, high) in found):
        verdict = "does not stand"
    return verdict, f"Bits per held-out fixation, with 95 % intervals: {words}."


def _scores(tables: Tables, models: tuple[str, ...]) -> str:
    table = _by_model(tables["table2"])
    return "; ".join(f"{_title(it)} NSS {table[it]['nss']:.2f}, AUC {table[it]['auc_borji']:.3f}" for it in models)


def _by_model(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    return table.set_index("model").select_dtypes("number").to_dict(orient="index")  # type: ignore[return-value]


def _statistic(tables: Tables, name: str) -> dict[str, dict[str, float]]:
    """A number of all saccades for each model: observed, simulated, and the band."""
    return _by_model(tables["saccades"].query("statistic == @name"))


def _band(row: Mapping[str, float]) -> str:
    return f"{row['simulated']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


# --- the claims ----------------------------------------------------------------------------------------------------


def _full_predicts_best(tables: Tables) -> Claim:
    verdict, evidence = _leads(tables, [(FULL, rival) for rival in RIVALS])
    return Claim(
        "The full model performs slightly better than the Local and Fixed Choice models (Table 2).",
        verdict,
        f"{evidence} {_scores(tables, (FULL, *RIVALS))}.",
    )


def _single_policy_predicts_worst(tables: Tables) -> Claim:
    verdict, evidence = _leads(tables, [(name, SINGLE) for name in (FULL, *RIVALS)])
    return Claim(
        "The Local Saliency Model performs significantly worse than the other variants (Table 2).",
        verdict,
        f"{evidence} {_scores(tables, (SINGLE,))}.",
    )


def _amplitudes_of_all(tables: Tables) -> Claim:
    rows = _by_model(tables["distances"].query("quantity == 'amplitude'"))
    distances = {it: rows[it]["js_bits"] for it in FITTED}
    nearest = min(distances, key=lambda it: distances[it])
    inside = {it: float(np.mean(tables["curve_amplitude"].query("model == @it")["inside"])) for it in FITTED}
    words = "; ".join(f"{_title(it)} {1000 * distances[it]:.1f} ({inside[it]:.0%})" for it in FITTED)
    return Claim(
        "The full model captures the different kinds of saccade amplitudes, the simpler models fail to (Figure 6).",
        "stands" if nearest == FULL and inside[FULL] > 0.9 else "stands in part" if nearest == FULL
        else "does not stand",
        f"Distance of the densities in millibits (share of the curve inside the band of simulations): {words}.",
    )  # fmt: skip


def _amplitudes_of_observers(tables: Tables) -> Claim:
    table = _by_model(tables["table1"])
    means = {it: table[it]["mean_r2_identity"] for it in FITTED}
    spreads = {it: table[it]["sd_r2_identity"] for it in FITTED}
    mixtures = min(means[it] for it in (FULL, *RIVALS)), min(spreads[it] for it in (FULL, *RIVALS))
    better = max(means[SINGLE], 0.5) < mixtures[0], max(spreads[SINGLE], 0.5) < mixtures[1]
    words = "; ".join(f"{_title(it)} {means[it]:.2f} and {spreads[it]:.2f}" for it in FITTED)
    return Claim(
        "All but Local Saliency capture the observers' means and standard deviations of amplitude (Table 1).",
        "stands" if all(better) else "stands in part" if any(better) else "does not stand",
        f"R² against the identity line, of means and of standard deviations: {words}.",
    )


def _anticorrelation(tables: Tables) -> Claim:
    """A path's own mean makes all its correlations a little negative: those of distant saccades show how much."""
    found, curve = _statistic(tables, "lag_1"), tables["curve_autocorrelation"].query("at >= @DISTANT")
    rows = {it: found[it] for it in FITTED}
    kinds = ("observed", "simulated")
    apart = {it: {kind: float(np.mean(curve[kind][curve["model"] == it])) for kind in kinds} for it in rows}
    captured = {it: row["high"] < apart[it]["simulated"] for it, row in rows.items()}
    alone = captured[FULL] and not any(captured[it] for it in (*RIVALS, SINGLE))
    verdict: Verdict = "stands" if alone else "stands in part" if captured[FULL] else "does not stand"
    words = "; ".join(f"{_title(it)} {_band(row)} against {apart[it]['simulated']:.3f}" for it, row in rows.items())
    return Claim(
        "The full model shows the anti-correlation of successive amplitudes, weaker than in the data; the simpler "
        "models fail to (Figure 7).",
        verdict,
        f"At lag 1 {rows[FULL]['observed']:.3f} in the data, against {apart[FULL]['observed']:.3f} at lags from "
        f"{DISTANT} on, which is what a path's own mean leaves; simulated, with 95 % bands: {words}.",
    )


def _directions(tables: Tables) -> Claim:
    row = {it: _statistic(tables, f"share_{it}")[FULL] for it in ("right", "left", "up", "down")}
    across = [row[it]["low"] > UNIFORM_SHARE and row[it]["high"] < row[it]["observed"] for it in ("right", "left")]
    missed = row["up"]["high"] < row["up"]["observed"] and row["down"]["observed"] < row["up"]["observed"]
    words = "; ".join(f"{it} {own['observed']:.3f}, simulated {_band(own)}" for it, own in row.items())
    return Claim(
        "The models capture the preference for horizontal saccades, though not its strength, and not the one for "
        "upward saccades over downward ones (Figure 9).",
        "stands" if all(across) and missed else "stands in part" if any(across) else "does not stand",
        f"Share of saccades within 15 deg of a direction ({UNIFORM_SHARE:.3f} without a preference), full model: "
        f"{words}.",
    )


def _turns(tables: Tables) -> Claim:
    found = _statistic(tables, "share_onward")
    rows = {it: found[it] for it in FITTED}
    missed = [row["high"] < row["observed"] for row in rows.values()]
    words = "; ".join(f"{_title(it)} {_band(row)}" for it, row in rows.items())
    return Claim(
        "No model captures that saccades go on in the direction of the last one (Figure 9).",
        "stands" if all(missed) else "stands in part" if any(missed) else "does not stand",
        f"Share of saccades within 15 deg of the last one's direction {rows[FULL]['observed']:.3f}; simulated, with "
        f"95 % bands: {words}.",
    )


_ALL = frozenset(FITTED)
CLAIMS: tuple[tuple[frozenset[str], Callable[[Tables], Claim]], ...] = (
    (_ALL, _amplitudes_of_all),
    (_ALL, _anticorrelation),
    (_ALL, _amplitudes_of_observers),
    (frozenset({FULL}), _directions),
    (_ALL, _turns),
    (frozenset({FULL, *RIVALS}), _full_predicts_best),
    (_ALL, _single_policy_predicts_worst),
)
