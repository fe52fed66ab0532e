"""How fast held-out steps are scored: all scores together, as a study takes them, and those of every map alone.

    python benchmarks/scoring.py
    python benchmarks/scoring.py --data potsdam35-folder

All scores: log-probability, NSS and AUC over all cells of every (draw, step) and of their mean density, and the pooled
ROC curves with uniform (Borji) and with shuffled negatives. Without --data, the built-in example. One observer, one
core: the process binds itself to one. Times are those of the processor, so that other programs on the machine count
little. Plain NumPy scores the same maps of the full model in the same run; the ratio is what carries over to other
machines. Prints a table and, as its last line, one JSON object.
"""

import argparse
import json
import time
from dataclasses import replace

from machine import about, one_core, one_observer, peak_memory_mb

DRAWS = 50
PLAIN_DRAWS = 2
GRID = 64


def seconds(function, runs: int) -> float:
    """Median processor time of a call, after a first one that compiles."""
    function()
    times = []
    for _ in range(runs):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return sorted(times)[len(times) // 2]


def plain_scores(steps, epsilon, xi, b, s0):
    """The full model's three scores of every step in plain NumPy, path by path, over all cells."""
    import numpy as np

    grid, found = steps.grid, []
    for path in range(len(steps.picture)):
        real = steps.real[path]
        gaze, saliency = steps.history.position_deg[path, real, 0], steps.saliency[steps.picture[path]]
        rows = (grid.row_centres_deg - gaze[:, :1])[:, :, None] ** 2
        columns = (grid.column_centres_deg - gaze[:, 1:])[:, None, :] ** 2

        def gaussian(v, rows=rows, columns=columns):
            density = np.exp(-rows / (2 * v[0]) - columns / (2 * v[1])) / (2 * np.pi * np.sqrt(v[0] * v[1]))
            return grid.cell_area_deg2 * density

        local = gaussian(epsilon)
        distant = saliency * np.maximum(gaussian(xi) - gaussian(epsilon / 4), 1e-200)
        feature = steps.history.saliency[path, real, 0] / steps.history.saliency[path, real, 1]
        rho = (1 / (1 + np.exp(-b * (feature - s0))))[:, None, None]
        maps = rho * local / local.sum(axis=(1, 2), keepdims=True)
        maps += (1 - rho) * distant / distant.sum(axis=(1, 2), keepdims=True)
        fixated = maps[np.arange(len(gaze)), steps.row[path, real], steps.column[path, real]]
        nss = (fixated - maps.mean(axis=(1, 2))) / maps.std(axis=(1, 2))
        against = fixated[:, None, None]
        auc = ((maps < against).mean(axis=(1, 2)) + (maps <= against).mean(axis=(1, 2))) / 2
        found.append(np.stack([np.log(fixated), nss, auc]))
    return np.concatenate(found, axis=1)


def vectors_around(model, count: int):
    """Parameter sets as a posterior's draws lie: some tenths of the logarithm apart."""
    import numpy as np

    here = np.asarray(model.to_real())
    return here + 0.1 * np.random.default_rng(0).standard_normal((count, len(here)))


def all_scores(model, data, vectors):
    """What `foveate compare` works out for one observer: scores of every step, and four pooled ROC curves."""
    import jax
    import numpy as np

    import foveate
    from foveate.evaluate import heldout, roc
    from foveate.evaluate.predictions import DrawScores, score_draws
    from foveate.evaluate.scores import StepScores

    steps, repeats = foveate.Steps.of(data, short="skip"), heldout.REPEATS
    uniform = roc.uniform_cells(steps.count, steps.grid, jax.random.key(0), repeats=repeats)
    shuffled = roc.shuffled_cells(data, jax.random.key(1), repeats=repeats)
    found = score_draws(model, steps, vectors, np.concatenate([uniform, shuffled], axis=1))
    curves = []
    for part in (slice(0, repeats), slice(repeats, None)):
        cut = [replace(it, density_at=it.density_at[..., part]) for it in (found.each, found.predictive)]
        curves += [roc.pooled_roc(DrawScores(*cut)), roc.pooled_predictive_roc(DrawScores(*cut))]
    return StepScores.of(found, data).mean_over_fixations(), curves


def measure(folder: str | None, draws: int) -> dict:
    """Rates, the ratio to plain NumPy, and the largest difference from it."""
    import numpy as np

    import foveate
    from foveate.evaluate.predictions import score_draws

    _, data = one_observer(folder, GRID)
    results: dict = {"draws": draws}
    models = {
        name: foveate.named_model(name) for name in ("full", "fixed_choice", "local_saliency", "saliency_baseline")
    }
    models["printed"] = foveate.named_model("full", repulsion="printed")  # no faster way than its definition
    for name, model in models.items():
        steps, vectors = foveate.Steps.of(data, short="skip"), vectors_around(model, draws)
        results["steps"] = steps.count
        if name == "full":
            everything = seconds(lambda: all_scores(model, data, vectors), 5)  # noqa: B023
            results["all_scores_steps_per_s_per_core"] = draws * steps.count / everything
        rate = draws * steps.count / seconds(lambda: score_draws(model, steps, vectors), 5)  # noqa: B023
        results["steps_per_s_per_core" if name == "full" else f"steps_per_s_per_core_{name}"] = rate
        if name != "full":
            continue
        few = [model.from_real(vector).parameters for vector in vectors[:PLAIN_DRAWS]]
        few = [{label: np.asarray(value) for label, value in it.items()} for it in few]
        plain = seconds(lambda: [plain_scores(steps, **it) for it in few], 3)  # noqa: B023
        results["plain_steps_per_s_per_core"] = PLAIN_DRAWS * steps.count / plain
        results["ratio_to_plain"] = rate / results["plain_steps_per_s_per_core"]
        found = score_draws(model, steps, vectors[:PLAIN_DRAWS]).each
        fast = np.stack([found.log_probability_nats, found.nss, found.auc], axis=1)
        slow = np.stack([plain_scores(steps, **it) for it in few])
        results["largest_difference"] = float(np.abs(fast - slow).max())
    return results


def main() -> None:
    """Measure, then print the table and the JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="the potsdam35 folder (default: the built-in example)")
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"draws of the parameters (default: {DRAWS})")
    arguments = parser.parse_args()
    one_core()
    results = measure(arguments.data, arguments.draws)
    results["peak_memory_mb"] = peak_memory_mb()
    for name, value in results.items():
        print(f"{name:42s} {value:14.5g}")
    facts = {"data": "potsdam35" if arguments.data else "example", "cells": f"{GRID} x {GRID}"}
    print(json.dumps(about() | results | facts))


if __name__ == "__main__":
    main()
