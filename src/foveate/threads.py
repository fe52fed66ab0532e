"""One compiled function on many inputs, on all cores of this machine: XLA uses a single one for small arrays."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from foveate.precision import double_precision

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread_each() -> Iterator[None]:
    """NumPy's linear algebra on one thread, if threadpoolctl is installed; the command line does it by itself.

    On small matrices NumPy's many threads wait for each other; on a busy machine they were seen to wait forever.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1, user_api="blas"):
        yield


def on_all_cores(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """The results in the order of the items, whatever the number of cores; each call in double precision."""
    call = double_precision(function)  # which is switched on for each thread by itself
    first = [call(item) for item in items[:1]]  # alone, so that it is compiled once and not in every thread
    with ThreadPoolExecutor(cores()) as pool:
        return first + list(pool.map(call, items[1:]))
