"""The workers of a Dask scheduler as a place to compute.

Dask itself gives the fits of a lost worker to another one. What is left to do here: a scheduler that goes away takes
all that was handed out with it, so it is waited for and handed out again; and where nobody comes back, a sentence says
so.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from importlib.metadata import version
from typing import Any, cast

from foveate.errors import InputError, some_of
from foveate.execution.places import Place

INSTALL_DASK = "a cluster needs the package 'distributed': install it with pip install 'foveate[cluster]'."
CONNECT_S = 20  # how long a scheduler may take to answer
RETURN_S = 120  # how long a scheduler that went away may take to come back with its workers
NO_WORKERS_S = 1800  # how long a scheduler may be without workers while there is work: queues of clusters are slow
RETRY_S = 0.5
NOISY = ("distributed", "distributed.client", "tornado.application")  # each has a level of its own
SAME_EVERYWHERE = ("foveate", "jax")  # packages whose other versions give other numbers
GO_ON = "what is finished is saved: see to it, and run the same command again."


class Cluster(Place):
    """The workers of a Dask scheduler, by its address; they need this version of foveate installed."""

    on_this_machine = False
    lost_in_words = "a worker or the scheduler was lost"
    advice = "perhaps for want of memory: see their logs"

    def __init__(self, address: str):
        """Of the scheduler, such as tcp://node17:8786."""
        self.address, self.client = address, None
        self.without_since: float | None = None  # the first look that found no workers

    def open(self) -> Executor:
        """Connect to the scheduler."""
        return self._connect(CONNECT_S)

    def _connect(self, within_s: float) -> Executor:
        try:
            from distributed import Client
            from distributed.comm.core import CommClosedError
            from distributed.scheduler import KilledWorker
        except ImportError as error:
            raise InputError(INSTALL_DASK) from error
        # Dask cancels futures when the scheduler goes; what is asked of it then fails in one of the other ways.
        self.lost, self.deadly = (CancelledError, CommClosedError, _NoSchedulerError), (KilledWorker,)
        # What goes wrong is said here, in a sentence: Dask's own words on it are many lines.
        for name in NOISY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            # Not the default of this process: xarray would ask the scheduler for a lock before it writes a file here.
            self.client = Client(self.address, timeout=within_s, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {self.address} ({error}): start one with `dask scheduler`, or give the "
                "address that it prints."
            ) from error
        try:
            if not self._cores():
                raise InputError(
                    f"the scheduler at {self.address} has no workers: start some with `dask worker {self.address}`."
                )
            self._check_versions()
        except (_NoSchedulerError, OSError) as error:
            self._close()
            raise InputError(f"the scheduler at {self.address} went away as soon as it had answered.") from error
        except BaseException:
            self._close()
            raise
        self.without_since = None
        return self.client.get_executor(pure=False, retries=3)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """A future of `function(*arguments)`, which must be one that other processes can import."""
        if self.client is None or self.client.status == "closed":
            raise _NoSchedulerError
        return super().submit(function, *arguments)

    @property
    def size(self) -> int:
        """The cores of the cluster as it is now."""
        return max(1, sum(self._cores().values()))

    def check(self) -> None:
        """An error where the scheduler has been without workers for long."""
        now = time.monotonic()
        if self._cores():
            return
        self.without_since = self.without_since or now
        if now - self.without_since > NO_WORKERS_S:
            raise InputError(
                f"the scheduler at {self.address} has had no workers for {NO_WORKERS_S / 60:.0f} minutes; {GO_ON}"
            )

    def renew(self) -> None:
        """Wait for the scheduler and its workers to come back; an error if they stay away."""
        self._close()
        deadline = time.monotonic() + RETURN_S
        while True:
            try:
                self.executor = self._connect(max(1.0, min(CONNECT_S, deadline - time.monotonic())))
                return
            except OtherVersionsError:
                raise
            except InputError as error:
                if time.monotonic() > deadline:
                    raise InputError(
                        f"the scheduler at {self.address} went away and was not back with workers after "
                        f"{RETURN_S:.0f} s (the last try: {error}); {GO_ON}"
                    ) from error
            time.sleep(RETRY_S)

    def _cores(self) -> dict[str, int]:
        """Of every worker; where there is one, the clock of `check` begins anew."""
        if self.client is None or self.client.status == "closed":
            raise _NoSchedulerError
        try:
            found = cast(dict[str, int], self.client.ncores())
        except OSError as error:
            raise _NoSchedulerError from error
        self.without_since = None if found else self.without_since
        return found

    def _check_versions(self) -> None:
        """Refuse workers that would compute something else."""
        assert self.client is not None
        said = cast(dict[str, Any], self.client.get_versions(packages=list(SAME_EVERYWHERE)))
        ours = {name: version(name) for name in SAME_EVERYWHERE}
        wrong = [
            f"{address} has {name} {its['packages'].get(name) or 'not installed'}, not {ours[name]}"
            for address, its in said["workers"].items()
            for name in SAME_EVERYWHERE
            if its["packages"].get(name) != ours[name]
        ]
        if wrong:
            raise OtherVersionsError(
                f"workers of {self.address}: {some_of(wrong, 3)}; install the same versions everywhere."
            )

    def _close(self) -> None:
        if self.client is not None:
            self.client.close()
        self.client = self.executor = None


class OtherVersionsError(InputError):
    """No use waiting: these workers would compute something else."""


class _NoSchedulerError(Exception):
    """Dask has given up the connection, and with it all that was handed out."""
