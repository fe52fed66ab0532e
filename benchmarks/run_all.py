"""`make bench`: every benchmark of speed once, with settings that fit into a quarter of an hour on two cores.

    python benchmarks/run_all.py
    python benchmarks/run_all.py scoring simulation      # some of them

With FOVEATE_POTSDAM35 on the real data, else on the built-in example. Writes benchmarks/results/NAME.json (the last
line of each script, with the command, the date, the machine and versions), and prints how long each took.
"""

import json
import os
import sys
import time
from pathlib import Path

from machine import own_process

HERE = Path(__file__).parent
REAL = os.environ.get("FOVEATE_POTSDAM35")

# Longest first: what is broken shows early. `scale_quick` is the small end of the curves in docs/results/growth.md.
COMMANDS: dict[str, list[str]] = {
    "sampling": ["sampling.py", "--samplers", "importance,nuts", "--models", "full,local_saliency", "--keys", "2"],
    "likelihood": ["likelihood.py"],
    "crossval": ["crossval.py", "--models", "local_saliency", "--observers", "3"],
    "scale_quick": ["scale.py", "--quick"],
    "scoring": ["scoring.py", *(["--data", REAL] if REAL else [])],
    "simulation": ["simulation.py"],
}


def main() -> None:
    names, began = sys.argv[1:] or list(COMMANDS), time.perf_counter()
    unknown = [name for name in names if name not in COMMANDS]
    if unknown:
        raise SystemExit(f"no benchmark {unknown[0]}: there are {', '.join(COMMANDS)}.")
    (HERE / "results").mkdir(exist_ok=True)
    for name in names:
        script, *words = COMMANDS[name]
        start = time.perf_counter()
        found = own_process(str(HERE / script), *words)
        took = round(time.perf_counter() - start)
        said = ["DIR" if word == REAL else word for word in words]
        found = {"command": " ".join(["python", f"benchmarks/{script}", *said]), "took_s": took} | found
        (HERE / "results" / f"{name}.json").write_text(json.dumps(found, indent=2) + "\n")
        print(f"{name:12s} {took:5d} s   benchmarks/results/{name}.json", flush=True)
    print(f"{'in all':12s} {time.perf_counter() - began:5.0f} s")


if __name__ == "__main__":
    main()
