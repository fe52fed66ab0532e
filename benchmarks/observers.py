"""Posteriors of all 35 observers of potsdam35: every model under weak and published priors, judged, as a page.

    python benchmarks/observers.py --data DIR --fits FOLDER

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35). Fits all 30 pictures (corrected coordinates, 64 x 64 cells) with
`foveate fit`, eight runs in eight folders of FOLDER: interrupt it as you like, the same command goes on. Writes
docs/results/observers.md and observers.csv, and prints one JSON object last.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import foveate
from foveate.inference.modes import VALLEY_NATS
from foveate.model.catalogue import TITLES

MODELS = ("full", "local_choice", "fixed_choice", "local_saliency")
PRIORS = ("weak", "published")
PAGE = Path(__file__).parents[1] / "docs" / "results" / "observers.md"
SMALLEST_MODE = 0.005  # modes with less mass are left out of the page


def row_of(posterior: foveate.Posterior, model: str, priors: str) -> dict:
    """What the page says of one fit."""
    found, samples = posterior.diagnosis, posterior.samples
    modes = posterior.modes()
    modes = modes[modes["mass"] >= SMALLEST_MODE]
    assert samples.log_evidence_nats is not None
    return {
        "model": model,
        "priors": priors,
        "observer": posterior.observer,
        "converged": found.converged,
        "sampler": samples.sampler,
        "max_rhat": found.max_rhat,
        "min_ess_bulk": float(np.min(found.ess_bulk)),
        "min_ess_tail": float(np.min(found.ess_tail)),
        "pareto_k": np.nan if found.pareto_k is None else found.pareto_k,
        "log_evidence_nats": samples.log_evidence_nats[0],
        "log_evidence_error": samples.log_evidence_nats[1],
        "modes": len(modes),
        "masses": "; ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(modes["mass"], modes["mass_error"], strict=True)),
        "b_positive": float((posterior.draws["b"] > 0).mean()) if "b" in posterior.draws else None,
        "epsilon_not_below_xi": posterior.disordered_share(),
        "evaluations": samples.evaluations,
        "seconds": posterior.provenance["seconds"],
    }


def summary(rows: list[dict]) -> list[str]:
    """A line for each model and kind of priors."""
    lines = [
        "| model | priors | converged | largest R-hat | least ESS, bulk and tail | largest k-hat | observers with 1, "
        "2, 3, 4 or more modes | epsilon not below xi, mean share | evaluations, median | seconds, median |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (model, priors), some in by_run(rows):
        column = {name: np.array([row[name] for row in some]) for name in some[0]}
        modes = ", ".join(str(int((column["modes"].clip(max=4) == count).sum())) for count in (1, 2, 3, 4))
        cells = [
            TITLES[model],
            priors,
            f"{column['converged'].sum()} of {len(some)}",
            f"{column['max_rhat'].max():.4f}",
            f"{column['min_ess_bulk'].min():.0f}, {column['min_ess_tail'].min():.0f}",
            f"{np.nanmax(column['pareto_k']):.2f}",
            modes,
            f"{column['epsilon_not_below_xi'].mean():.3f}",
            f"{np.median(column['evaluations']):.0f}",
            f"{np.median(column['seconds']):.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def by_run(rows: list[dict]) -> list[tuple[tuple[str, str], list[dict]]]:
    """The rows of each model and kind of priors."""
    runs = dict.fromkeys((row["model"], row["priors"]) for row in rows)
    return [(run, [row for row in rows if (row["model"], row["priors"]) == run]) for run in runs]


def details(some: list[dict]) -> list[str]:
    """A line for each observer."""
    lines = [
        "| observer | R-hat | ESS, bulk | tail | k-hat | log evidence (nats) | modes | mass of each |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in some:
        name = str(row["observer"]) if row["converged"] else f"{row['observer']}, NOT CONVERGED"
        cells = [
            name if row["sampler"] == "importance" else f"{name} ({row['sampler']})",
            f"{row['max_rhat']:.4f}",
            f"{row['min_ess_bulk']:.0f}",
            f"{row['min_ess_tail']:.0f}",
            f"{row['pareto_k']:.2f}",
            f"{row['log_evidence_nats']:.2f} ± {row['log_evidence_error']:.2f}",
            str(row["modes"]),
            row["masses"],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def page(rows: list[dict], seed: int) -> str:
    """The page, whole."""
    lines = [
        "# Posteriors of all 35 observers",
        "",
        "potsdam35, corrected coordinates, all 30 pictures, published maps on 64 x 64 cells; importance sampling, four "
        f"replicates, seed {seed}. Made by `python benchmarks/observers.py --data DIR --fits FOLDER --seed {seed}` on "
        f"{os.cpu_count()} cores of a shared {platform.machine()} machine, two fits at a time; the same numbers are in "
        "`observers.csv`. No observer is left out.",
        "",
        "R-hat is over the replicates; ESS and the errors of masses and evidence come from the weights, or, where "
        "tempered SMC took over (marked smc), ESS from its draws and the errors from the spread of its replicates "
        f"(how: [inference](../inference.md)). Modes with less than {SMALLEST_MODE} of the mass are not listed. "
        f"What is one mode and what are two depends on a valley of {VALLEY_NATS:g} nats on the way between their tops, "
        "so that a shallow one may count here and not there; the masses of what is far apart do not depend on it.",
        "",
        *summary(rows),
    ]
    for (model, priors), some in by_run(rows):
        lines += ["", f"## {TITLES[model]}, {priors} priors", "", *details(some)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    parser.add_argument("--fits", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    rows = []
    for priors in PRIORS:
        for model in MODELS:
            out = chosen.fits / f"{model}-{priors}"
            command = ["fit", "--data", chosen.data, "--model", model, "--priors", priors, "--out", str(out)]
            program = Path(sys.executable).with_name("foveate")
            subprocess.run([program, *command, "--seed", str(chosen.seed)], check=True)
            store = foveate.FitStore.read(out)
            rows += [row_of(store.load(observer), model, priors) for observer in store.run.observers]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(rows, chosen.seed))
    pd.DataFrame(rows).to_csv(PAGE.with_suffix(".csv"), index=False, float_format="%.6g")
    print(
        json.dumps(
            {
                "fits": len(rows),
                "converged": sum(row["converged"] for row in rows),
                "max_rhat": round(max(row["max_rhat"] for row in rows), 4),
                "min_ess": round(min(min(row["min_ess_bulk"], row["min_ess_tail"]) for row in rows)),
                "foveate": foveate.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
