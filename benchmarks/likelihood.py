"""How fast and how exact: likelihood, gradient, many parameter sets, maps and simulation of the full model.

    python benchmarks/likelihood.py --data DIR

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35): observer 1, the training pictures of fold 1. Without it, the
built-in example's first observer. Prints a table and, as its last line, one JSON object. Times on one core come from a
process of its own, bound to that core.
"""

import argparse
import json
import os
import sys
import time

from machine import about, one_observer, own_process, peak_memory_mb
from machine import one_core as bind_to_one_core

GRIDS = (64, 128, 256)
RANDOM_SETS = 200


def milliseconds(function, seconds: float = 1.5) -> float:
    """Median time of a call, after a first one that compiles."""
    function()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * sorted(times)[len(times) // 2]


def load(folder: str | None, cells: int):
    import foveate

    if not folder:
        _, data = one_observer(None, cells)
        return data, foveate.Steps.of(data)
    data = foveate.read_potsdam35(folder, cells=cells)
    train, _ = data.select(observers=[1]).split(foveate.POTSDAM35_FOLDS[0])
    return data, foveate.Steps.of(train)


def plain_log_likelihood(steps, epsilon, xi, b, s0) -> float:
    """The full model's log-likelihood over all cells in plain NumPy, picture by picture, as the released code does."""
    import numpy as np

    grid, result = steps.grid, 0.0
    for path in range(len(steps.picture)):
        real = steps.real[path]
        gaze, saliency = steps.history.position_deg[path, real, 0], steps.saliency[steps.picture[path]]
        rows = (grid.row_centres_deg - gaze[:, :1])[:, :, None] ** 2
        columns = (grid.column_centres_deg - gaze[:, 1:])[:, None, :] ** 2
        target = np.arange(len(gaze)), steps.row[path, real], steps.column[path, real]

        def gaussian(v, rows=rows, columns=columns):
            density = np.exp(-rows / (2 * v[0]) - columns / (2 * v[1])) / (2 * np.pi * np.sqrt(v[0] * v[1]))
            return grid.cell_area_deg2 * density

        exponent = -rows / (2 * epsilon[0]) - columns / (2 * epsilon[1])
        largest = exponent.max(axis=(1, 2))
        local = exponent[target] - largest - np.log(np.exp(exponent - largest[:, None, None]).sum(axis=(1, 2)))
        weights = saliency * np.maximum(gaussian(xi) - gaussian(epsilon / 4), 1e-200)
        distant = np.log(weights[target]) - np.log(weights.sum(axis=(1, 2)))
        f = b * (steps.history.saliency[path, real, 0] / steps.history.saliency[path, real, 1] - s0)
        result += np.logaddexp(local - np.logaddexp(0, -f), distant - np.logaddexp(0, f)).sum()
    return float(result)


def random_parameter_sets(count: int) -> list[dict]:
    """Half from the published priors, half from the weak ones, and the corners of a box far outside both."""
    import itertools

    import jax
    import numpy as np

    import foveate

    models = [foveate.named_model("full", priors=kind) for kind in ("published", "weak")]
    draws = [models[i % 2].draw_from_prior(jax.random.key(i)).parameters for i in range(count - 16)]
    for corner in itertools.product((1e-3, 1e4), repeat=4):
        values = np.array(corner)
        draws.append({"epsilon": values[:2], "xi": values[2:], "b": np.array(0.3), "s0": np.array(3.0)})
    return draws


def one_core(folder: str | None) -> dict:
    """Value and gradient on one core, with the plain version in the same process."""
    import jax
    import jax.numpy as jnp

    import foveate
    from foveate.model.likelihood import log_probability

    results: dict = {}
    for cells in GRIDS:
        _, steps = load(folder, cells)
        model = foveate.named_model("full")
        start = time.perf_counter()
        tabulated = steps.tabulated()
        table_s = time.perf_counter() - start
        with jax.enable_x64(True):
            tabulated = jax.tree.map(jnp.asarray, tabulated)
            values = {name: jnp.asarray(value) for name, value in model.parameters.items()}

            def negative(values, model=model, tabulated=tabulated):
                return jnp.sum(jnp.where(tabulated.real, log_probability(model.with_parameters(values), tabulated), 0))

            compiled = jax.jit(jax.value_and_grad(negative))
            gradient_ms = milliseconds(lambda: jax.block_until_ready(compiled(values)))  # noqa: B023
        plain_ms = milliseconds(lambda: plain_log_likelihood(steps, **model.parameters))  # noqa: B023
        suffix = "" if cells == GRIDS[0] else f"_{cells}"
        results |= {
            f"value_and_gradient_ms{suffix}": gradient_ms,
            f"plain_value_ms{suffix}": plain_ms,
            f"speedup{suffix}": plain_ms / gradient_ms,
            f"table_s{suffix}": table_s,
        }
        results["steps"] = steps.count
    return results


def fitted_targets(folder: str | None) -> dict:
    """Value and gradient as samplers take them, of the full and of the recommended model in the same process."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    import foveate
    from foveate.inference.target import Target

    train = one_observer(folder, GRIDS[0])[1]
    if folder:
        train, _ = train.split(foveate.POTSDAM35_FOLDS[0])
    timed = train.paths.duration_s is not None
    results: dict = {}
    value = eqx.filter_jit(lambda target, vector: target.log_density(vector))
    gradient = eqx.filter_jit(lambda target, vector: jax.value_and_grad(target.log_density)(vector))
    for name in ("full", "wayfarer"):
        model = foveate.named_model(name, **({} if timed or name == "full" else {"durations": False}))
        exact = Target.of(model, train)
        for way, target in (("", exact), ("_coarsened", exact.coarsened())):
            with jax.enable_x64(True):
                vector = jnp.asarray(model.to_real())
                for what, function in (("value", value), ("gradient", gradient)):
                    ms = milliseconds(lambda: jax.block_until_ready(function(target, vector)))  # noqa: B023
                    results[f"{name}_target_{what}_ms{way}"] = ms
    ratio = results["wayfarer_target_gradient_ms"] / results["full_target_gradient_ms"]
    return results | {"wayfarer_to_full_gradient": ratio}


def exactness(folder: str | None) -> dict:
    """Largest relative error of the log-likelihood against the plain version, with and without tables; and per step."""
    import numpy as np

    import foveate

    _, steps = load(folder, GRIDS[0])
    model, sets = foveate.named_model("full"), random_parameter_sets(RANDOM_SETS)
    plain = np.array([plain_log_likelihood(steps, **values) for values in sets])
    stacked = {name: np.stack([np.asarray(values[name]) for values in sets]) for name in sets[0]}
    errors = {}
    for name, these in (("max_relative_error", steps.tabulated()), ("max_relative_error_without_tables", steps)):
        errors[name] = float(np.max(np.abs(foveate.log_likelihoods(model, these, stacked) / plain - 1)))
    tabulated = steps.tabulated()
    apart = [
        np.abs(foveate.step_log_likelihoods(at, tabulated) - foveate.step_log_likelihoods(at, steps)).max()
        for at in (model.with_parameters(values) for values in sets)
    ]
    return errors | {"max_step_error_nats_of_tables": float(np.max(apart))}


def both_cores(folder: str | None) -> dict:
    """Many parameter sets, maps and simulated fixations per second, on all cores."""
    import jax
    import numpy as np

    import foveate
    from foveate.model.densities import step_densities

    results = {}
    for cells in GRIDS:
        data, steps = load(folder, cells)
        model, suffix = foveate.named_model("full"), "" if cells == GRIDS[0] else f"_{cells}"
        spread = np.random.default_rng(0)
        sets = {
            name: np.asarray(value) * np.exp(0.2 * spread.standard_normal((256, *np.shape(value))))
            for name, value in model.parameters.items()
        }
        tabulated = steps.tabulated()
        ms = milliseconds(lambda: foveate.log_likelihoods(model, tabulated, sets))  # noqa: B023
        results[f"values_per_s{suffix}"] = 256e3 / ms
        ms = milliseconds(lambda: sum(maps.shape[0] for maps in step_densities(model, steps)))  # noqa: B023
        results[f"density_maps_per_s{suffix}"] = 1e3 * steps.count / ms
        ms = milliseconds(lambda: foveate.simulate(model, data.maps, data.paths, jax.random.key(1)))  # noqa: B023
        results[f"simulate_fixations_per_s{suffix}"] = 1e3 * data.paths.fixations / ms
    return results


PARTS = {"one_core": one_core, "fitted_targets": fitted_targets, "exactness": exactness, "both_cores": both_cores}


def main() -> None:
    """Run each part in a process of its own, then print the table and the JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"), help="the potsdam35 folder")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        if arguments.part in ("one_core", "fitted_targets"):
            bind_to_one_core()
        print(json.dumps(PARTS[arguments.part](arguments.data) | {"peak_memory_mb": peak_memory_mb()}))
        return
    results: dict = {"peak_memory_mb": 0.0}
    for part in PARTS:
        print(f"{part} ...", file=sys.stderr, flush=True)
        found = own_process(__file__, "--part", part, *(["--data", arguments.data] if arguments.data else []))
        results["peak_memory_mb"] = max(results["peak_memory_mb"], found.pop("peak_memory_mb"))
        results |= found
    for name, value in results.items():
        print(f"{name:38s} {value:14.4g}")
    print(json.dumps(about() | {"data": "potsdam35" if arguments.data else "example"} | results))


if __name__ == "__main__":
    main()
