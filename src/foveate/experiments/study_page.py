"""A study as a page in Markdown that reads like a results section."""

import numpy as np
import pandas as pd

from foveate.experiments.recovery import Recovery
from foveate.experiments.study import GAIN, Study
from foveate.model.catalogue import TITLES

FIGURES = "figures"  # the folder of the page's figures

# Columns of the page's table of scores: what they are called there, and where they come from.
SHOWN = {
    "bits over uniform": f"{GAIN}, over fixations",
    "bits over the map": "predictive_gain_over_static_map_bits, over fixations",
    "bits over centre bias": "predictive_gain_over_centre_bias_bits, over fixations",
    "NSS": "predictive_nss, over fixations",
    "AUC": "predictive_auc, over fixations",
    "AUC, shuffled": "predictive_auc_shuffled",
    "NSS, mean over draws": "nss, over pictures",
    "AUC, Borji, mean over draws": "auc_pooled",
}


def page(study: Study, tables: dict[str, pd.DataFrame], figures: list[str], recovery: Recovery | None = None) -> str:
    """The page: what was done, scores, differences, the ceiling, the paper, saccades, convergence, figures."""
    parts = [
        "# Results",
        _what(study),
        "## Prediction of held-out fixations",
        _scores_words(study),
        _score_table(study),
    ]
    if study.comparison is not None:
        parts += [_differences(study), _shares(study)]
    parts += ["## How near the ceiling", _ceiling(study, tables)]
    if recovery is not None:
        parts += ["## Beside the paper", _beside_paper(tables), _recovered(recovery)]
        if len(tables["claims"]):
            parts += ["## What the paper says of its models", claims_on_a_page(tables["claims"])]
    parts += ["## Saccades", _saccade_words(study), _agreement(study), "## Convergence", _convergence(study)]
    parts += ["## Figures", *(f"![{name}]({FIGURES}/{name}.svg)" for name in figures)]
    parts += ["## Tables", ", ".join(f"[{name}.csv]({name}.csv)" for name in tables) + "."]
    return "\n\n".join(parts) + "\n"


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _what(study: Study) -> str:
    validation = study.validation
    steps = len(next(iter(study.held_out.values())).scores)
    count = len(validation.chosen_folds)
    ordered = any(model.ordered for model in validation.models.values())
    order = " The priors of models with two policies are restricted to epsilon below xi on both axes." * ordered
    return (
        f"{len(validation.data)} observers, {steps:,} held-out fixations (the third of a path and on) in {count} of "
        f"{len(validation.folds)} folds over pictures. Every model was fitted to each observer without the fold's "
        f"pictures, and predicts with {study.draws} draws of its posterior.{order} Seed {validation.seed}."
    )


def _scores_words(study: Study) -> str:
    words = (
        "Scores are those of the posterior predictive density, the mean of the draws' densities, averaged over "
        "fixations; the two last columns are as in the paper: means over draws, NSS over pictures first, AUC pooled "
        "over all fixations with negatives drawn at random. Bits are gains per fixation."
    )
    if study.unconverged:
        words += f" **{study.unconverged} of {len(study.fits)} fits have not converged; they are in all numbers here.**"
    return words


def _score_table(study: Study) -> str:
    scores = study.scores()
    order = list(scores.sort_values(SHOWN["bits over uniform"], ascending=False).index)
    rows = [[_title(name), *(_plain(scores.loc[name, column]) for column in SHOWN.values())] for name in order]
    return markdown(["model", *SHOWN], rows)


def _plain(value: float) -> str:
    """With three digits, and no sign before a zero."""
    return f"{round(float(value), 3) + 0.0:.3f}"


def _differences(study: Study) -> str:
    comparison = study.comparison
    assert comparison is not None
    rows = [
        [
            f"{_title(row['first'])} - {_title(row['second'])}",
            f"{row['difference']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['observers_ahead']} of {row['observers']}",
        ]
        for row in comparison.pairs.to_dict(orient="records")
    ]
    words = (
        f"Best is {_title(comparison.best)}. Differences in bits per fixation, paired by observer and picture, with "
        f"intervals of {comparison.level:.0%} for new observers and new pictures:"
    )
    return f"{words}\n\n" + markdown(["models", "difference", "interval", "observers ahead"], rows)


def _shares(study: Study) -> str:
    lines = []
    if study.shares is not None:
        each = [
            f"{_title(row['model'])} {row['share']:.0%} ({row['low']:.0%} to {row['high']:.0%})"
            for row in study.shares.shares.to_dict(orient="records")
        ]
        lines.append(f"Best model of an observer, share of observers: {', '.join(each)}.")
    if study.weights is not None:
        each = [
            f"{_title(row['model'])} {row['weight']:.2f}" for row in study.weights.weights.to_dict(orient="records")
        ]
        gain = study.weights.gain.mean
        lines.append(f"Stacking weights: {', '.join(each)}; the mixture gains {gain:.4f} nats a step over the best.")
    return "\n\n".join(lines)


def _ceiling(study: Study, tables: dict[str, pd.DataFrame]) -> str:
    if study.gold is None:
        return "Some pictures were seen by a single observer, so there is no gold standard to compare with."
    words = (
        "The gold standard predicts every observer by where all others looked in the same picture (a density with a "
        f"bandwidth of {study.gold.bandwidth_deg:g} deg, the best of those tried). It is a ceiling for maps, which do "
        "not know where gaze is; models of scan paths may go beyond it, and so may maps that were made with the "
        "observer's own fixations."
    )
    rows = [
        [_title(row["model"]), f"{row['bits']:.3f}", f"{row['share']:.0%}", f"{row['low']:.0%} to {row['high']:.0%}"]
        for row in tables["ceiling"].sort_values("bits", ascending=False).to_dict(orient="records")
    ]
    rows.append(["gold standard", f"{tables['ceiling']['gold_bits'].iloc[0]:.3f}", "100%", ""])
    return f"{words}\n\n" + markdown(["model", "bits over uniform", "share of the gold standard", "interval"], rows)


def _beside_paper(tables: dict[str, pd.DataFrame]) -> str:
    def number(value: float) -> str:
        return f"{value:.3f}" if np.isfinite(value) else "-"

    rows = []
    for first, second in zip(*(tables[it].to_dict(orient="records") for it in ("table1", "table2")), strict=True):
        names = ("nss", "nss_published", "auc_borji", "auc_published")
        kinds = ("r2_identity", "r2_correlation", "published")
        r2 = [number(first[f"{kind}_{which}"]) for kind in ("mean", "sd") for which in kinds]
        rows.append([_title(second["model"]), *(number(second[name]) for name in names), *r2])
    words = (
        "The paper's Table 2 (NSS, AUC) and Table 1 (R² of the observers' mean and standard deviation of amplitude, "
        "against the identity line and as squared correlation, averaged over folds), ours and as published. Ours are "
        "on corrected data and by the definitions of docs/scores.md, so they should differ; `--as-released` shows "
        "where the published numbers come from."
    )
    columns = ["model", "NSS", "paper", "AUC", "paper", "mean, R²", "mean, r²", "paper", "sd, R²", "sd, r²", "paper"]
    return f"{words}\n\n" + markdown(columns, rows)


def claims_on_a_page(claims: pd.DataFrame) -> str:
    """Every claim with its verdict and the evidence, as a table in Markdown."""
    return markdown(["claim", "here", "evidence"], claims.to_numpy().tolist())


def _recovered(recovery: Recovery) -> str:
    return (
        "Recovery of known parameters (the paper's Figure 4; one simulated observer, "
        f"{recovery.posterior.samples.sampler}): {recovery.verdict}"
    )


def _saccade_words(study: Study) -> str:
    first = next(iter(study.saccades.values()))
    return (
        f"{first.saccades:,} observed saccades against {first.draws} simulated data sets of each model, one per "
        "posterior draw: distance between the densities of amplitudes (Jensen-Shannon, in millibits; in brackets what "
        "chance alone leaves), and R² of the observers' mean and standard deviation of amplitude, against the identity "
        "line and as squared correlation."
    )


def _agreement(study: Study) -> str:
    rows = []
    for name, found in study.saccades.items():
        near, floor = found.distances.loc["amplitude", ["js_bits", "js_bits_floor"]]
        agreement = found.agreement()
        r2 = [
            f"{agreement.loc[kind, which]:.2f}"
            for kind in ("mean", "sd")
            for which in ("r2_identity", "r2_correlation")
        ]
        rows.append([_title(name), f"{1000 * near:.1f} ({1000 * floor:.1f})", *r2])
    names = ["model", "amplitudes", "mean, R²", "mean, r²", "sd, R²", "sd, r²"]
    return markdown(names, rows)


def _convergence(study: Study) -> str:
    if not len(study.fits):
        return "There was nothing to fit."
    rows = []
    for name, some in study.fits.groupby("model", sort=False):
        good = f"{np.sum(some['converged'].to_numpy(dtype=bool))} of {len(some)}"
        rows.append([_title(str(name)), good, f"{some['max_rhat'].max():.4f}", f"{some['min_ess'].min():.0f}"])
    return markdown(["model", "fits converged", "largest R-hat", "least ESS"], rows)


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)
