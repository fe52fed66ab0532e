"""How fast scan paths are simulated: fixations per second of every model, on one core, and of grids up to 256 x 256.

    python benchmarks/simulation.py
    python benchmarks/simulation.py --data potsdam35-folder

Plans are those of the data (who looks at what for how long), many times over. Times are those of the processor, so that
other programs on the machine count little. The baseline in the same run is plain NumPy: the same model's maps of every
step made whole, and a cell drawn from each. Prints a table and, as its last line, one JSON object.
"""

import argparse
import json
import os
import time

from machine import about, one_core, one_observer, peak_memory_mb

MODELS = ("full", "local_choice", "fixed_choice", "local_saliency", "wayfarer")
GRIDS = (64, 128, 256)
TIMES = 20  # how often every path is imitated


def processor_s(function, runs: int = 3) -> float:
    """Median processor time of a call, after a first one that compiles."""
    function()
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


def plain_fixations_per_s(data, model) -> float:
    """The global policy alone in plain NumPy: a map of every step, its sum, a cell."""
    import numpy as np

    grid, random, xi = data.maps.grid, np.random.default_rng(0), np.asarray(model.parameters["xi"])
    rows, columns = grid.row_centres_deg[:, None], grid.column_centres_deg[None, :]

    def walk(values, length=25):
        row, column = grid.rows // 2, grid.columns // 2
        for _ in range(length):
            away = (rows - rows[row]) ** 2 / (2 * xi[0]) + (columns - columns[0, column]) ** 2 / (2 * xi[1])
            weights = (values * np.exp(-away)).ravel()
            cell = np.searchsorted(np.cumsum(weights), random.uniform() * weights.sum())
            row, column = divmod(int(min(cell, grid.cells - 1)), grid.columns)

    seconds = processor_s(lambda: [walk(values) for values in data.maps.values])
    return 25 * len(data.maps) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    parser.add_argument("--models", default=",".join(MODELS))
    chosen = parser.parse_args()
    one_core()

    import jax

    import foveate

    results: dict = {}
    for cells in GRIDS:
        name, data = one_observer(chosen.data, cells)
        for model_name in chosen.models.split(",") if cells == GRIDS[0] else ("full",):
            settings = {"durations": False} if model_name == "wayfarer" else {}  # it does not simulate them
            model = foveate.named_model(model_name, **settings)
            many = dict.fromkeys(range(TIMES), model)
            length = int(data.paths.fixations / len(data.paths))
            seconds = processor_s(lambda: foveate.simulate(many, data.maps, length, jax.random.key(1)))  # noqa: B023
            suffix = "" if cells == GRIDS[0] else f"_{cells}"
            results[f"{model_name}_fixations_per_s{suffix}"] = round(TIMES * length * len(data.maps) / seconds)
        if cells == GRIDS[0]:
            model = foveate.named_model("local_saliency")
            results["plain_local_saliency_fixations_per_s"] = round(plain_fixations_per_s(data, model))
            ratio = results["local_saliency_fixations_per_s"] / results["plain_local_saliency_fixations_per_s"]
            results["ratio_to_plain"] = round(ratio, 1)
        results["data"] = name
    for label, value in results.items():
        print(f"{label:44s} {value}")
    print(json.dumps(about() | {"peak_memory_mb": round(peak_memory_mb())} | results))


if __name__ == "__main__":
    main()
