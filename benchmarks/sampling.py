"""How fast the samplers are: effective draws per second of every sampler on every model, for one observer.

    python benchmarks/sampling.py --data DIR --observer 1

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35). All 30 pictures, corrected coordinates, 64 x 64 cells. Each fit
is done twice with different keys in a process bound to one core: the first compiles, the second is timed, everything
but compilation included. Prints a table and, as its last line, one JSON object.
"""

import argparse
import json
import os
import platform
import sys
import time
from typing import Any

MODELS = ("full", "local_choice", "fixed_choice", "local_saliency")
SETTINGS = {
    "importance": {},
    "nuts": {"chains": 4, "warmup": 300, "draws": 500},
    "gibbs": {"chains": 2, "warmup": 500, "draws": 1500},
}


def measure(data, model_name: str, priors: str, sampler: Any, seed: int) -> dict:
    """One fit after another that compiled: seconds, the worst ESS, evaluations, diagnosis."""
    import jax

    import foveate

    model, took = foveate.named_model(model_name, priors=priors), []
    for key in (jax.random.key(seed + 1), jax.random.key(seed)):
        start = time.perf_counter()
        posterior = foveate.fit(model, data, key, sampler=sampler, threads=1, **SETTINGS[sampler])
        took.append(time.perf_counter() - start)
    found, evaluations = posterior.diagnosis, posterior.samples.evaluations
    return {
        "model": model_name,
        "sampler": posterior.samples.sampler,
        "seconds": round(took[1], 2),
        "compile_s": round(max(took[0] - took[1], 0.0), 2),
        "min_ess": round(found.min_ess, 1),
        "min_ess_per_s": round(found.min_ess / took[1], 3),
        "evaluations": evaluations,
        "evaluations_per_effective_draw": round(evaluations / max(found.min_ess, 1e-9), 2),
        "max_rhat": round(found.max_rhat, 4),
        "pareto_k": None if found.pareto_k is None else round(found.pareto_k, 3),
        "converged": found.converged,
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
    chosen = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # one core, before anything starts threads
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    import jax

    import foveate

    data = foveate.read_potsdam35(chosen.data).select(observers=[chosen.observer])
    rows = []
    for sampler in chosen.samplers.split(","):
        for model in chosen.models.split(","):
            if sampler == "gibbs" and model == "local_saliency":
                continue  # one policy: there is no gamma to draw
            print(f"{model} by {sampler} ...", file=sys.stderr, flush=True)
            rows.append(measure(data, model, chosen.priors, sampler, chosen.seed))
    print(table(rows))
    by = {(row["sampler"], row["model"]): row for row in rows}
    default = by.get(("importance", "full"), {})
    names = ("min_ess_per_s", "evaluations_per_effective_draw", "compile_s", "max_rhat", "pareto_k", "seconds")
    quick = [row["seconds"] for row in rows if row["sampler"] == "importance"]
    result = {name: default.get(name) for name in names} | {
        "mean_seconds_over_models": round(sum(quick) / len(quick), 2) if quick else None,
        "nuts_min_ess_per_s": by.get(("nuts", "full"), {}).get("min_ess_per_s"),
        "gibbs_min_ess_per_s": by.get(("gibbs", "full"), {}).get("min_ess_per_s"),
        "observer": chosen.observer,
        "priors": chosen.priors,
        "seed": chosen.seed,
        "rows": rows,
        "machine": f"{platform.machine()}, one of {os.cpu_count()} cores",
        "versions": {"foveate": foveate.__version__, "jax": jax.__version__, "python": platform.python_version()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
