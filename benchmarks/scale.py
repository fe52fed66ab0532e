"""How time and memory grow: with the grid, with fixations, with observers, with chains.

    python benchmarks/scale.py                       # all points that the page shows: most of an hour on one core
    python benchmarks/scale.py --quick               # the small end of each curve

Data are simulated from the full model on the example's pictures (repeated under other names where there are more), 25
fixations a path. Every point is a process of its own, bound to a core except where several workers are the point; it
says how much processor time each part took and the most memory that it had. A first call compiles and is not counted,
but told (`compiling_s`). Prints a line a point and, as its last line, one JSON object.
"""

import argparse
import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from machine import about, one_core, own_process, peak_memory_mb

LENGTH = 25  # fixations of a path
GRIDS, CORPORA = (64, 128, 256, 512), (1, 10, 100)
POINTS = (
    *({"along": "grid", "cells": cells, "model": "full"} for cells in GRIDS),
    *({"along": "fixations", "times": times, "model": "full"} for times in CORPORA),
    *({"along": "chains", "chains": count} for count in (1, 2, 4, 8)),
    *({"along": "observers", "observers": count, "workers": workers} for workers in (1, 2) for count in (2, 4, 8)),
    *({"along": "grid", "cells": cells, "model": "wayfarer"} for cells in GRIDS),
    *({"along": "fixations", "times": times, "model": "wayfarer"} for times in CORPORA),
)
QUICK = (
    *({"along": "grid", "cells": cells, "model": "full"} for cells in (64, 128)),
    *({"along": "fixations", "times": times, "model": "full"} for times in (1, 10)),
    *({"along": "observers", "observers": count, "workers": 1} for count in (1, 2)),
    *({"along": "chains", "chains": count} for count in (1, 2)),
)
LARGEST_FIT = 128  # cells along a side, and
MOST_TIMES = 10  # times the pictures, up to which whole fits are timed; beyond, single evaluations


def made_up(cells: int = 64, times: int = 1, observers: int = 1):
    """Paths of so many observers on `times` as many pictures as the example has."""
    import jax
    import numpy as np

    import foveate

    maps = foveate.example_data(seed=1).data.maps
    if cells != maps.grid.rows:
        maps = maps.resample(foveate.Grid(cells, cells, maps.grid.extent))
    names = tuple(f"{name}-{number}" for number in range(times) for name in maps.pictures)
    maps = foveate.SaliencyMaps(maps.grid, names, np.tile(maps.values, (times, 1, 1)))
    models = {number: foveate.named_model("full") for number in range(1, observers + 1)}
    return foveate.Dataset(foveate.simulate(models, maps, LENGTH, jax.random.key(1)), maps)


def timed(function) -> tuple[float, float]:
    """(Seconds of the first call beyond those of the second, processor seconds of the second)."""
    took = []
    for _ in range(2):
        start = time.process_time()
        function()
        took.append(time.process_time() - start)
    return round(max(took[0] - took[1], 0.0), 2), took[1]


def one_fit(point: dict) -> dict:
    """Preparing, one evaluation with its gradient, simulation, and a whole fit where that is not too long."""
    import jax
    import jax.numpy as jnp

    import foveate
    from foveate.inference.target import Target

    cells, times = point.get("cells", 64), point.get("times", 1)
    settings = {"durations": False} if point["model"] == "wayfarer" else {}  # simulated paths have none
    data, model = made_up(cells, times), foveate.named_model(point["model"], **settings)
    _, preparing = timed(lambda: Target.of(model, data))
    target = Target.of(model, data)
    with jax.enable_x64(True):
        vector = jnp.asarray(model.to_real())
        compiled = jax.jit(jax.value_and_grad(lambda vector, target: target.log_density(vector)))
        compiling, _ = timed(lambda: jax.block_until_ready(compiled(vector, target)))
        calls, start = 0, time.process_time()
        while calls < 3 or time.process_time() - start < 1.0:
            jax.block_until_ready(compiled(vector, target))
            calls += 1
        evaluation_ms = 1e3 * (time.process_time() - start) / calls
    found = {
        "fixations": data.paths.fixations, "pictures": len(data.maps), "steps": int(target.steps.count),
        "maps_mb": round(data.maps.values.nbytes / 2**20, 1), "preparing_s": round(preparing, 3),
        "evaluation_ms": round(evaluation_ms, 3), "evaluation_compiling_s": compiling,
        "memory_of_evaluations_mb": round(peak_memory_mb()),
    }  # fmt: skip
    if cells <= LARGEST_FIT and times <= MOST_TIMES:
        fits = []
        fit = lambda: fits.append(foveate.fit(model, data, jax.random.key(2), threads=1))  # noqa: E731
        compiling, seconds = timed(fit)
        samples = fits[-1].samples
        found |= {"fit_s": round(seconds, 2), "compiling_s": compiling, "evaluations": samples.evaluations,
                  "sampler": samples.sampler, "converged": bool(fits[-1].converged)}  # fmt: skip
    many = dict.fromkeys(range(10), foveate.named_model("full"))
    some = foveate.SaliencyMaps(data.maps.grid, data.maps.pictures[:12], data.maps.values[:12])
    _, seconds = timed(lambda: foveate.simulate(many, some, LENGTH, jax.random.key(3)))
    return found | {"simulated_fixations_per_s": round(10 * LENGTH * len(some) / seconds)}


def many_fits(point: dict) -> dict:
    """Fits of a cross-validation's fold: here (one worker) or in worker processes; wall time, since workers compute."""
    import foveate
    from foveate.execution.cache import keep_compiled
    from foveate.execution.places import place_for
    from foveate.execution.run import Run

    keep_compiled()
    data = made_up(observers=point["observers"])
    took = []
    for _ in range(2):  # the first one compiles
        with TemporaryDirectory() as folder:
            run = Run.of(foveate.named_model("local_saliency"), data, seed=1)
            store = foveate.FitStore.resume(Path(folder) / "fits", run)
            start = time.perf_counter()
            list(store.fit_each(data, place=place_for(point["workers"], None)))
            took.append(time.perf_counter() - start)
    return {"wall_s": round(took[1], 2), "compiling_s": round(max(took[0] - took[1], 0.0), 2)}


def some_chains(point: dict) -> dict:
    """NUTS with so many chains, in one thread."""
    import jax

    import foveate

    data, model, fits = made_up(), foveate.named_model("local_saliency"), []
    settings = {"chains": point["chains"], "warmup": 200, "draws": 200}
    run = lambda: fits.append(foveate.fit(model, data, jax.random.key(2), sampler="nuts", threads=1, **settings))  # noqa: E731
    compiling, seconds = timed(run)
    return {"fit_s": round(seconds, 2), "compiling_s": compiling, "evaluations": fits[-1].samples.evaluations,
            "min_ess": round(fits[-1].diagnosis.min_ess)}  # fmt: skip


KINDS = {"grid": one_fit, "fixations": one_fit, "observers": many_fits, "chains": some_chains}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the small end of each curve")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    parser.add_argument(
        "--known", type=Path, help="file of points that were measured before, one a line: goes on there"
    )
    chosen = parser.parse_args()
    if chosen.point:
        point = json.loads(chosen.point)
        if point.get("workers", 1) == 1:
            one_core()
        print(json.dumps(KINDS[point["along"]](point) | {"peak_memory_mb": round(peak_memory_mb())}))
        return
    lines = chosen.known.read_text().splitlines() if chosen.known and chosen.known.exists() else []
    rows = [json.loads(line) for line in lines]
    for point in QUICK if chosen.quick else POINTS:
        if any(point.items() <= row.items() for row in rows):
            continue
        rows.append(point | own_process(__file__, "--point", json.dumps(point)))
        print(json.dumps(rows[-1]), flush=True)
        if chosen.known:
            with chosen.known.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
    print(json.dumps(about() | {"points": rows}))


if __name__ == "__main__":
    main()
