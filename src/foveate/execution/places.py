"""Where tasks are computed: in this process, in worker processes of this machine, or on a Dask cluster.

A place gives futures as `concurrent.futures` does. What differs is what can go wrong: a worker process may be killed, a
cluster's scheduler may go away. A task that was lost with its worker is done again; the rest waits for nothing.
"""

import multiprocessing
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, cast

from foveate.errors import InputError
from foveate.threads import cores

INSTALL_DASK = "a cluster needs the package 'distributed': install it with pip install 'foveate[cluster]'."
CONNECT_S = 20  # how long a scheduler may take to answer
ORPHAN_LOOK_S = 1.0


class Place(ABC):
    """Somewhere to compute; to be used in a `with` block."""

    # What a future raises if its worker died, so that the work can be done again, and if nobody is left to do it.
    lost: tuple[type[BaseException], ...] = ()
    gone: tuple[type[BaseException], ...] = (CancelledError,)
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

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(ORPHAN_LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Cluster(Place):
    """The workers of a Dask scheduler, by its address; they need this version of foveate installed."""

    def __init__(self, address: str):
        """Of the scheduler, such as tcp://node17:8786."""
        self.address, self.client = address, None

    def open(self) -> Executor:
        """Connect to the scheduler."""
        try:
            from distributed import Client
            from distributed.comm.core import CommClosedError
            from distributed.scheduler import KilledWorker
        except ImportError as error:
            raise InputError(INSTALL_DASK) from error
        self.gone = (CancelledError, KilledWorker, CommClosedError)
        try:
            self.client = Client(self.address, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {self.address} ({error}): start one with `dask scheduler`, or give the "
                "address that it prints."
            ) from error
        if not self._cores():
            raise InputError(
                f"the scheduler at {self.address} has no workers: start some with `dask worker {self.address}`."
            )
        return self.client.get_executor(pure=False, retries=3)

    @property
    def size(self) -> int:
        """The cores of the cluster as it is now."""
        return max(1, sum(self._cores().values()))

    def _cores(self) -> dict[str, int]:
        """Of every worker."""
        assert self.client is not None
        return cast(dict[str, int], self.client.ncores())

    def _close(self) -> None:
        if self.client is not None:
            self.client.close()
        self.client = self.executor = None


def place_for(workers: int | None, scheduler: str | None) -> Place:
    """A cluster where a scheduler is named, else worker processes; a single worker is this process itself."""
    if scheduler is not None:
        if workers is not None:
            raise InputError("--workers and --scheduler: a cluster has its own workers; give one of the two.")
        return Cluster(scheduler)
    count = workers or cores()
    return Here(1) if count == 1 else Processes(count)
