"""How functions are compiled, and room for them: Linux grants a process a number of memory maps, and every compiled
function takes some.

A fit of the full model takes some three thousand, and another number of steps takes as many again. Of the usual 65,530
none is left after some twenty such, and then XLA does not raise an error: the process is gone.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import equinox as eqx
import jax

F = TypeVar("F", bound=Callable[..., Any])

MAPS, LIMIT = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")

# What is compiled is forgotten once this share of the maps is taken: one fit takes a tenth of them at most.
FULLEST = 0.5


def compiled_for_speed(function: F) -> F:
    """`eqx.filter_jit` with all the vectors that a processor has.

    Of those of AVX-512 XLA uses half unless it is told otherwise; sums over cells take a third less time with all.
    Such a function cannot be part of another compiled one.
    """
    return _compiled(function, {"xla_cpu_prefer_vector_width": 512})


def compiled_quickly(function: F) -> F:
    """`eqx.filter_jit` for what takes longer to compile than it ever runs; no part of another compiled function."""
    return _compiled(function, {"xla_backend_optimization_level": 0})


def _compiled(function: F, options: dict[str, int]) -> F:
    return cast(Any, eqx.filter_jit)(function, compiler_options=options)


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
