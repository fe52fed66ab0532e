"""How fast the samplers are: effective draws per second of every sampler on every model, for one observer.

    python benchmarks/sampling.py --data DIR --observer 1

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35); without it, the built-in example's first observer. All pictures,
corrected coordinates, 64 x 64 cells, a process bound to one core. A first fit compiles and is not counted; then one is
timed for each key, everything but compilation included. How long importance sampling takes depends on its luck in
learning a proposal, so that it is timed with several keys (`--keys`) and averaged; R-hat and k-hat are the worst of
them. Prints a table and, as its last line, one JSON object.
"""

import argparse
import json
import os
import sys
import time
from statistics import mean
from typing import Any

from machine import about, one_core, peak_memory_mb

MODELS = ("full", "local_choice", "fixed_choice", "local_saliency")
SETTINGS = {
    "importance": {},
    "nuts": {"chains": 4, "warmup": 300, "draws": 500},
    "gibbs": {"chains": 2, "warmup": 500, "draws": 1500},
}


def measure(data, model_name: str, priors: str, sampler: Any, seed: int, keys: int) -> dict:
    """Fits after another that compiled: means of seconds, the worst ESS and evaluations; the worst diagnosis."""
    import jax

    import foveate

    model, took, fits = foveate.named_model(model_name, priors=priors), [], []
    for number in (seed, *range(seed, seed + keys)):
        start = time.perf_counter()
        fits.append(foveate.fit(model, data, jax.random.key(number), sampler=sampler, threads=1, **SETTINGS[sampler]))
        took.append(time.perf_counter() - start)
    compiling, seconds, fits = took[0], took[1:], fits[1:]
    ess = [it.diagnosis.min_ess for it in fits]
    evaluations = [it.samples.evaluations for it in fits]
    k = [it.diagnosis.pareto_k for it in fits if it.diagnosis.pareto_k is not None]
    return {
        "model": model_name,
        "sampler": sampler,
        "keys": keys,
        "seconds": round(mean(seconds), 2),
        "each_seconds": [round(it, 2) for it in seconds],
        "compile_s": round(max(compiling - seconds[0], 0.0), 2),
        "min_ess": round(mean(ess), 1),
        "min_ess_per_s": round(sum(ess) / sum(seconds), 3),
        "evaluations": round(mean(evaluations)),
        "evaluations_per_effective_draw": round(sum(evaluations) / max(sum(ess), 1e-9), 2),
        "max_rhat": round(max(it.diagnosis.max_rhat for it in fits), 4),
        "pareto_k": round(max(k), 3) if k else None,
        "converged": all(it.diagnosis.converged for it in fits),
    }


def table(rows: list[dict]) -> str:
    columns = ("model", "sampler", "seconds", "compile_s", "min_ess", "min_ess_per_s", "evaluations", "max_rhat",
               "pareto_k", "converged")  # fmt: skip
    cells = [columns, *([str(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    parser.add_argument("--observer", type=int, default=1)
    parser.add_argument("--priors", default="weak", choices=("weak", "published"))
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--samplers", default=",".join(SETTINGS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, default=5, help="of importance sampling; chains are timed with one")
    chosen = parser.parse_args()
    one_core()

    import foveate

    whole = foveate.read_potsdam35(chosen.data) if chosen.data else foveate.example_data(seed=1).data
    observer = chosen.observer if chosen.data else whole.paths.observers[chosen.observer - 1]
    data = whole.select(observers=[observer])
    rows = []
    for sampler in chosen.samplers.split(","):
        for model in chosen.models.split(","):
            if sampler == "gibbs" and model == "local_saliency":
                continue  # one policy: there is no gamma to draw
            print(f"{model} by {sampler} ...", file=sys.stderr, flush=True)
            keys = chosen.keys if sampler == "importance" else 1
            rows.append(measure(data, model, chosen.priors, sampler, chosen.seed, keys))
    print(table(rows))
    by = {(row["sampler"], row["model"]): row for row in rows}
    default = by.get(("importance", "full"), {})
    names = ("min_ess_per_s", "evaluations_per_effective_draw", "compile_s", "max_rhat", "pareto_k", "seconds")
    quick = [row["seconds"] for row in rows if row["sampler"] == "importance"]
    result = {name: default.get(name) for name in names} | {
        "mean_seconds_over_models": round(sum(quick) / len(quick), 2) if quick else None,
        "nuts_min_ess_per_s": by.get(("nuts", "full"), {}).get("min_ess_per_s"),
        "gibbs_min_ess_per_s": by.get(("gibbs", "full"), {}).get("min_ess_per_s"),
        "data": "potsdam35" if chosen.data else "example",
        "observer": observer,
        "priors": chosen.priors,
        "seed": chosen.seed,
        "rows": rows,
        "peak_memory_mb": round(peak_memory_mb()),
    }
    print(json.dumps(about() | result))


if __name__ == "__main__":
    main()
