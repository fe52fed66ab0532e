"""What all benchmarks share: data, the machine in words, and parts that run in processes of their own.

Times are noisy where others use the machine. Where a ratio or processor time says the same, that is what is measured.
"""

import json
import os
import platform
import resource
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("foveate", "jax", "numpy", "blackjax")
GIB = 2**30


def about() -> dict[str, Any]:
    """When, on what and with which versions: the same words in every result."""
    versions = {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}
    return {"date": date.today().isoformat(), "machine": machine(), "versions": versions}


def machine() -> str:
    """Processor, cores and memory, as far as the system says."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0] if models else name
    words = [name, f"{os.cpu_count()} cores"]
    if hasattr(os, "sysconf"):
        words.append(f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / GIB:.0f} GiB")
    return ", ".join(words)


def peak_memory_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_core() -> None:
    """Bind this process to a core; before anything starts threads."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def own_process(script: str, *words: str, timeout_s: float | None = None) -> dict[str, Any]:
    """The JSON object that a script prints last, when it is run with these words in a process of its own."""
    done = subprocess.run(
        [sys.executable, script, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=timeout_s
    )
    return json.loads(done.stdout.splitlines()[-1])


def one_observer(folder: str | None, cells: int = 64):
    """(Name of the data, data of their first observer): potsdam35, or without its folder the built-in example."""
    import foveate

    if folder:
        return "potsdam35", foveate.read_potsdam35(folder, cells=cells).select(observers=[1])
    data = foveate.example_data(seed=1).data.select(observers=["ann"])
    if cells != data.maps.grid.rows:
        data = foveate.Dataset(data.paths, data.maps.resample(foveate.Grid(cells, cells, data.maps.grid.extent)))
    return "example", data
