"""Where tasks are computed: in this process, in worker processes of this machine, or on a Dask cluster.

A place gives futures as `concurrent.futures` does. What differs is what can go wrong: a worker process may be killed, a
cluster's scheduler may go away (`execution/cluster.py`). A task that was lost is done again; the rest waits for
nothing.
"""

import multiprocessing
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

from foveate.errors import InputError
from foveate.threads import cores

ORPHAN_LOOK_S = 1.0


class Place(ABC):
    """Somewhere to compute; to be used in a `with` block."""

    # What a future or `submit` raises if all that was handed out is lost, so that the work can be done again, and what
    # a future raises if its task was tried again elsewhere and has taken every worker with it.
    lost: tuple[type[BaseException], ...] = ()
    deadly: tuple[type[BaseException], ...] = ()
    on_this_machine = True
    lost_in_words = "a worker process died"
    advice = "perhaps for want of memory: use fewer workers"
    executor: Executor | None = None

    @abstractmethod
    def open(self) -> Executor:
        """Begin, or begin anew after workers were lost."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many tasks run at the same time."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """A future of `function(*arguments)`, which must be one that other processes can import."""
        assert self.executor is not None
        return self.executor.submit(function, *arguments)

    def check(self) -> None:  # noqa: B027  (most places need no looking after)
        """An error where there is nobody left to wait for; called now and then while tasks are under way."""

    def renew(self) -> None:
        """Get new workers for those that were lost."""
        self._close()
        self.executor = self.open()

    def __enter__(self) -> "Place":
        """Start the workers, or connect to them."""
        self.executor = self.open()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Let the workers go; what they are at is not waited for."""
        self._close()

    def _close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=False, cancel_futures=True)
        self.executor = None


class Here(Place):
    """Threads of this process."""

    def __init__(self, workers: int | None = None):
        """So many at the same time; None: one per core."""
        self.workers = workers or cores()

    def open(self) -> Executor:
        """A pool of threads."""
        return ThreadPoolExecutor(self.workers)

    @property
    def size(self) -> int:
        """The number of threads."""
        return self.workers


class Processes(Here):
    """Worker processes of this machine: one that is killed takes nothing with it but the fit that it was at."""

    lost = (BrokenProcessPool,)

    def open(self) -> Executor:
        """A pool of fresh processes: a fork would share threads and locks of JAX with them."""
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, context, initializer=_begin, initargs=(os.getpid(),))


def _begin(parent: int) -> None:
    """In a worker process: Ctrl-C is the parent's to hear, and without a parent there is nobody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Several processes share a GPU, of which JAX takes three quarters for the first one unless it is told not to.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    # XLA cuts what it computes into a piece for each core, and its threads wait for each other; with a worker on each
    # core that takes up to half of the time. The numbers are the same to the last bit.
    os.environ.setdefault("NPROC", "1")

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def place_for(workers: int | None, scheduler: str | None) -> Place:
    """A cluster where a scheduler is named, else worker processes; a single worker is this process itself."""
    if scheduler is not None:
        if workers is not None:
            raise InputError("--workers and --scheduler: a cluster has its own workers; give one of the two.")
        from foveate.execution.cluster import Cluster

        return Cluster(scheduler)
    count = workers or cores()
    return Here(1) if count == 1 else Processes(count)
