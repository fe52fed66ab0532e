"""A study written down: tidy tables, one JSON file, figures, and a page that reads like a results section."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foveate.evaluate.bayes_factors import bayes_factors
from foveate.experiments.claims import claims_table
from foveate.experiments.published import table1, table2
from foveate.experiments.recovery import Recovery
from foveate.experiments.study import Study
from foveate.experiments.study_figures import by_number, draw_all
from foveate.experiments.study_page import FIGURES, page
from foveate.figures.recovery import recovery as draw_recovery
from foveate.figures.style import journal_style, save
from foveate.inference.files import write_whole

PAGE = "results.md"
FIGURE_4 = "fig4-recovery"


def write_study(study: Study, folder: Path, recovery: Recovery | None = None) -> dict[str, Any]:
    """Write everything into the folder; what the JSON file says, too.

    With a `recovery` it is the paper that is done again: its Figure 4 is drawn, and its tables stand beside ours.
    """
    tables, figures = _tables(study), draw_all(study, folder / FIGURES)
    if recovery is not None:
        found = recovery.table().rename_axis("number").reset_index()
        tables |= {"table1": table1(study), "table2": table2(study), "recovery": found}
        tables["claims"] = claims_table(tables)
        with journal_style():
            save(draw_recovery(recovery.posterior, recovery.truths), folder / FIGURES, FIGURE_4)
        figures.insert(sum(name < FIGURE_4 for name in figures if name.startswith("fig")), FIGURE_4)
    for name, table in tables.items():
        _csv(folder / f"{name}.csv", table)
    _text(folder / PAGE, page(study, tables, figures, recovery))
    return _summary(study, tables, figures)


def _csv(file: Path, table: pd.DataFrame) -> None:
    write_whole(file, lambda temporary: table.to_csv(temporary, index=False, float_format="%.9g"))


def _text(file: Path, text: str) -> None:
    write_whole(file, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def _tables(study: Study) -> dict[str, pd.DataFrame]:
    """Every table, by the name of its file."""
    found = {
        "scores": study.scores().reset_index(),
        "observers": study.observer_scores(),
        "steps": study.by_fixation(),
        "fits": study.fits,
        "saccades": study.saccade_table(),
        "amplitudes_of_observers": _by_model(study, "observer_table"),
        "agreement": study.agreement_table(),
        "distances": pd.concat(
            {name: it.distances for name, it in study.saccades.items()}, names=["model", "quantity"]
        ).reset_index(),
        "maps": pd.concat(study.maps, names=["model"]).reset_index(),
    }
    for kind in ("amplitude", "direction", "turn", "autocorrelation"):
        curves = {name: getattr(it, kind).table() for name, it in study.saccades.items()}
        found[f"curve_{kind}"] = pd.concat(curves, names=["model"]).reset_index()
    roc = {name: pd.DataFrame({"false_alarms": it.roc.false_alarms, "hits": it.roc.hits})
           for name, it in study.held_out.items()}  # fmt: skip
    found["curve_roc"] = pd.concat(roc, names=["model"]).reset_index(level=0)
    ceiling = study.ceiling()
    if ceiling is not None:
        found["ceiling"] = ceiling
    if study.comparison is not None:
        found |= {"ranking": study.comparison.models, "pairs": study.comparison.pairs, "by_fixation": by_number(study)}
    if study.shares is not None:
        found |= {"best_shares": study.shares.shares, "best_of_observers": study.shares.by_observer}
    if study.weights is not None:
        found["stacking"] = study.weights.weights
    factors = _bayes_factors(study)
    if factors is not None:
        found["bayes_factors"] = factors
    return found


def _by_model(study: Study, method: str) -> pd.DataFrame:
    return pd.concat(
        {name: getattr(it, method)() for name, it in study.saccades.items()}, names=["model"]
    ).reset_index()


def _bayes_factors(study: Study) -> pd.DataFrame | None:
    """From the evidence of the training pictures of every fold: folds overlap, so each stands by itself."""
    if not len(study.fits) or len(set(study.fits["model"])) < 2:
        return None
    if not np.isfinite(study.fits["log_evidence_nats"].to_numpy()).all():
        return None
    parts = []
    for fold, some in study.fits.groupby("fold"):
        parts.append(bayes_factors(some.reset_index(drop=True)).together.assign(fold=fold))
    return pd.concat(parts, ignore_index=True)


def _summary(study: Study, tables: dict[str, pd.DataFrame], figures: list[str]) -> dict[str, Any]:
    validation = study.validation
    return {
        "models": list(validation.models),
        "observers": len(validation.data),
        "folds": list(validation.chosen_folds),
        "test_pictures": [list(it) for it in validation.folds.test_pictures],
        "draws": study.draws,
        "seed": validation.seed,
        "fits": len(study.fits),
        "fits_not_converged": study.unconverged,
        "steps": len(next(iter(study.held_out.values())).scores),
        "scores": study.scores().to_dict(orient="index"),
        "best": study.comparison.best if study.comparison is not None else None,
        "tables": [f"{name}.csv" for name in tables],
        "figures": [f"{FIGURES}/{name}.svg" for name in figures],
        "page": PAGE,
    }
