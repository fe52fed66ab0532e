"""Where the time of a fit goes: compiling, preparing, and the functions in which a sampler waits for its numbers.

    python benchmarks/where_time_goes.py --data DIR --models full,wayfarer

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35); without it, the built-in example. One observer, all pictures,
one core. A first fit compiles everything (no cache is read) and says how long JAX traced, lowered and compiled; a
second one runs under Python's profiler. Compiled code counts for the function that calls it. Prints a table and, as its
last line, one JSON object.
"""

import argparse
import cProfile
import json
import os
import pstats
import time
from collections import Counter, defaultdict
from pathlib import Path

from machine import about, one_core, one_observer, peak_memory_mb

SHOWN = 14  # functions of foveate, by the time in them and what they call
EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing_s",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering_s",
    "/jax/core/compile/backend_compile_duration": "compiling_s",
}


def own_functions(profile: cProfile.Profile) -> list[dict]:
    """Functions of foveate with their share of the whole, those in which most time was spent first."""
    stats = pstats.Stats(profile)
    whole = max(row[3] for row in stats.stats.values())  # type: ignore[attr-defined]
    rows = [
        {"function": f"{Path(file).parent.name}/{Path(file).name}: {name}", "calls": row[1],
         "own_s": round(row[2], 3), "with_callees_s": round(row[3], 3), "share": round(row[3] / whole, 3)}
        for (file, _, name), row in stats.stats.items() if "/foveate/" in file  # type: ignore[attr-defined]
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row["with_callees_s"])[:SHOWN]


def measure(data, name: str) -> dict:
    """Two fits of a model."""
    import jax

    import foveate

    model = foveate.named_model(name)
    durations: dict[str, float] = defaultdict(float)
    counts = Counter[str]()

    def heard(event: str, duration_secs: float, **_: str | int) -> None:
        if event in EVENTS:
            durations[EVENTS[event]] += duration_secs
            counts[EVENTS[event]] += 1

    jax.monitoring.register_event_duration_secs_listener(heard)
    start = time.process_time()
    foveate.fit(model, data, jax.random.key(1), threads=1)
    first, compiling, compilations = time.process_time() - start, dict(durations), counts["compiling_s"]
    profile, start = cProfile.Profile(), time.process_time()
    profile.enable()
    posterior = foveate.fit(model, data, jax.random.key(1), threads=1)
    profile.disable()
    return {
        "model": name,
        "numbers": len(model.labels),
        "sampler": posterior.samples.sampler,
        "steps": posterior.provenance["steps"],
        "evaluations": posterior.samples.evaluations,
        "first_fit_s": round(first, 2),
        "second_fit_s": round(time.process_time() - start, 2),
        "compilations": compilations,
        **{label: round(seconds, 2) for label, seconds in compiling.items()},
        "peak_memory_mb": round(peak_memory_mb()),
        "functions": own_functions(profile),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    parser.add_argument("--models", default="full,wayfarer")
    parser.add_argument("--cells", type=int, default=64)
    chosen = parser.parse_args()
    one_core()
    name, data = one_observer(chosen.data, chosen.cells)
    rows = []
    for model in chosen.models.split(","):
        rows.append(measure(data, model))
        print({key: value for key, value in rows[-1].items() if key != "functions"})
        for row in rows[-1]["functions"]:
            print(f"{row['share']:6.1%}  {row['with_callees_s']:8.2f} s  {row['calls']:7d}  {row['function']}")
    print(json.dumps(about() | {"data": name, "cells": chosen.cells, "models": rows}))


if __name__ == "__main__":
    main()
