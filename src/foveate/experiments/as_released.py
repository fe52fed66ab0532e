"""The paper's cross-validation as the released files have it: their pairs of fixations and maps, their scores.

It shows where the published Table 2 comes from. Posteriors are right (rows 3 to 6 of docs/results/findings.md are not
imitated), everything else is as in the released files.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from foveate.data.dataset import Dataset
from foveate.data.readers.released import Released
from foveate.errors import InputError, some_of
from foveate.evaluate.as_released import FoldAverages, first_scored, score_as_released, table2
from foveate.evaluate.fitted import FittedFolds
from foveate.execution.foldfits import FoldFits
from foveate.experiments.study_page import markdown
from foveate.model.catalogue import TITLES
from foveate.model.model import Model

PAGE = "results.md"
Tell = Callable[[str, float, float], None]


def released_fits(
    out: Path, released: Released, models: dict[str, Model], observers: list[int], folds: tuple[int, ...], seed: int
) -> FoldFits:
    """The fits of these models to these observers' training data, as paired in the released files."""
    known = min(len(paths) for paths in released.folds[0].train.fixations_px)
    unknown = [observer for observer in observers if observer not in range(1, known + 1)]
    if unknown:
        raise InputError(f"observer {some_of(unknown)} not in the data; there are 1 to {known}.")
    kept: dict[tuple[int, int], Dataset] = {}

    def training(model: str, fold: int, observer: Any) -> Dataset:
        scored_from = first_scored(models[model])
        if (fold, scored_from) not in kept:
            kept[fold, scored_from] = released.folds[fold - 1].train.dataset(scored_from=scored_from)
        return kept[fold, scored_from].select(observers=[observer])

    return FoldFits(out, models, tuple(observers), folds, seed, training)


def judge_as_released(fits: FoldFits, released: Released, draws: int, tell: Tell) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(Table 2 with the published values beside ours, a row for every model, fold and observer)."""
    key = jax.random.key(fits.seed)
    averages: dict[str, list[FoldAverages]] = {name: [] for name in fits.models}
    rows = []
    total, done = len(fits.models) * len(fits.folds) * len(fits.observers), 0
    for name, model in fits.models.items():
        fitted = FittedFolds.of(fits, name, draws)
        for fold in fits.folds:
            test, scores = released.folds[fold - 1].test, []
            for observer in fits.observers:
                tell(f"scores of {name}, fold {fold}, observer {observer}", done, total)
                done += 1
                part = fitted.parts[fold, observer]
                of_step = jax.random.fold_in(jax.random.fold_in(key, fold), observer)
                scores.append(score_as_released(model, part.vectors, test, observer, of_step))
                means = {score: scores[-1].mean(score) for score in ("nss", "auc")}
                rows.append({"model": name, "fold": fold, "observer": observer, "converged": part.converged} | means)
            averages[name].append(FoldAverages.of(scores))
    return table2(averages), pd.DataFrame(rows)


def page(fits: FoldFits, table: pd.DataFrame, rows: pd.DataFrame, draws: int) -> str:
    """A page with the table and how it came about."""
    lines = []
    for name, row in table.iterrows():
        numbers = [f"{row[column]:.3f}" for column in ("nss", "auc_borji", "auc")]
        known = np.isfinite(row["nss_published"])
        published = [f"{row['nss_published']:.2f}", f"{row['auc_published']:.3f}"] if known else ["-", "-"]
        off = [f"{row['nss_difference']:+.3f}", f"{row['auc_borji_difference']:+.3f}"] if known else ["-", "-"]
        lines.append([TITLES.get(str(name), str(name)), numbers[0], published[0], off[0], numbers[1], published[1],
                      off[1], numbers[2]])  # fmt: skip
    columns = ["model", "NSS", "paper", "difference", "AUC (Borji)", "paper", "difference", "AUC (all cells)"]
    ordered = any(model.ordered for model in fits.models.values())
    order = " restricted to epsilon below xi" if ordered else ""
    wrong = int(np.sum(~rows["converged"].to_numpy(dtype=bool)))
    words = [
        "# Table 2, as in the released files",
        f"{len(fits.observers)} observers, {len(fits.folds)} folds, {draws} posterior draws, published priors{order}, "
        f"seed {fits.seed}. Maps and fixations are paired as in the released files, and scores are worked out as in "
        "the released code: means over fixations, then pictures, draws, observers and folds. No code for the AUC was "
        "released; the pooled one (Borji) is the paper's definition. Posteriors are this package's.",
        markdown(columns, lines),
    ]
    if wrong:
        words.append(f"**{wrong} of {len(rows)} fits have not converged; they are in the table.**")
    return "\n\n".join(words) + "\n"
