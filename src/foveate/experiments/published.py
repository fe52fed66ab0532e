"""The paper's two tables with ours beside them, for a study of the paper's models on its data."""

import numpy as np
import pandas as pd

from foveate.evaluate.as_released import PUBLISHED_TABLE_2
from foveate.experiments.study import Study

# Table 1 of Malem-Shinitski et al. (2020): coefficients of determination of the subjects' mean and standard deviation
# of saccade amplitude, averaged over folds. Which of the two usual definitions is meant is not said, nor is there code.
PUBLISHED_TABLE_1: dict[str, dict[str, float]] = {
    "full": {"mean": 0.93, "sd": 0.85},
    "local_choice": {"mean": 0.93, "sd": 0.847},
    "fixed_choice": {"mean": 0.93, "sd": 0.85},
    "local_saliency": {"mean": 0.47, "sd": 0.3},
}


def table1(study: Study) -> pd.DataFrame:
    """For each model R^2 of the observers' mean and standard deviation of amplitude, averaged over folds."""
    rows = {}
    for name, found in study.agreement_by_fold.items():
        row: dict[str, float] = {}
        for kind in ("mean", "sd"):
            for which in ("identity", "correlation"):
                row[f"{kind}_r2_{which}"] = float(np.mean(found[f"{kind}_r2_{which}"].to_numpy()))
            row[f"{kind}_published"] = PUBLISHED_TABLE_1.get(name, {}).get(kind, np.nan)
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model").reset_index()


def table2(study: Study) -> pd.DataFrame:
    """For each model NSS (mean over fixations, then pictures, observers) and AUC-Borji of the draws."""
    scores = study.scores()
    rows = {}
    for name, row in scores.iterrows():
        published = PUBLISHED_TABLE_2.get(str(name), {})
        rows[name] = {
            "nss": row["nss, over pictures"],
            "nss_published": published.get("nss", np.nan),
            "auc_borji": row["auc_pooled"],
            "auc_published": published.get("auc", np.nan),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model").reset_index()
