"""How cross-validation grows with workers: wall time of the same fits with one and with two worker processes.

    python benchmarks/crossval.py --data DIR

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35); without it, the built-in example. Fits of a fold go into a
temporary folder; scores and figures are not part of it. What is compiled is kept from a first run that is not timed.
Prints a line for each and, as its last one, a JSON object.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

from machine import about, peak_memory_mb

WORKERS = (1, 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    parser.add_argument("--observers", type=int, default=4)
    parser.add_argument("--models", default="fixed_choice,local_saliency")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    import numpy as np

    import foveate
    from foveate.execution.cache import keep_compiled
    from foveate.execution.places import Processes

    keep_compiled()
    whole = foveate.read_potsdam35(chosen.data) if chosen.data else foveate.example_data(seed=1).data
    data = whole.select(observers=whole.paths.observers[: chosen.observers])
    models = {name: foveate.named_model(name, priors="published") for name in chosen.models.split(",")}
    folds = foveate.potsdam35_folds() if chosen.data else foveate.random_folds(whole.paths.pictures, 2, chosen.seed)
    seconds, bits = {}, {}
    for workers in (0, *WORKERS):  # the first one compiles
        with tempfile.TemporaryDirectory() as folder:
            some = data if workers else data.select(observers=data.paths.observers[:1])
            study = foveate.CrossValidation.of(Path(folder), models, some, folds, chosen_folds=(1,), seed=chosen.seed)
            start = time.perf_counter()
            study.fits.fit(Processes(workers or 1), lambda *_: None)
            if workers:
                seconds[workers] = round(time.perf_counter() - start, 2)
                draws = [
                    study.fits.posterior(name, 1, observer).samples.real for name in models for observer in study.data
                ]
                bits[workers] = np.concatenate([it.ravel() for it in draws]).tobytes()
                print(f"{workers} worker processes: {seconds[workers]:.1f} s for {len(draws)} fits", flush=True)
    result = {
        "seconds": {str(workers): took for workers, took in seconds.items()},
        "speedup": round(seconds[1] / seconds[2], 2),
        "same_bits": bits[1] == bits[2],
        "fits": len(models) * len(data.paths.observers),
        "models": list(models),
        "seed": chosen.seed,
        "data": "potsdam35" if chosen.data else "example",
        "peak_memory_mb": round(peak_memory_mb()),  # of the program; its workers' is that of a fit
    }
    print(json.dumps(about() | result))


if __name__ == "__main__":
    main()
