"""Room for what is compiled: Linux grants a process a number of memory maps, and every compiled function takes some.

A fit of the full model takes some three thousand, and another number of steps takes as many again. Of the usual 65,530
none is left after some twenty such, and then XLA does not raise an error: the process is gone.
"""

from pathlib import Path

import jax

MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")

# What is compiled is forgotten once this share of the maps is taken: one fit takes a tenth of them at most.
FULLEST = 0.5


def make_room() -> bool:
    """Forget all compiled functions if little room is left; whether that was so. They are compiled again when needed,
    or read from JAX's cache on disk."""
    try:
        limit = int(LIMIT.read_text())
        with MAPS.open("rb") as file:
            taken = sum(1 for _ in file)
    except (OSError, ValueError):  # not Linux: no such limit
        return False
    if taken < FULLEST * limit:
        return False
    jax.clear_caches()
    return True
