"""A real Dask scheduler and workers, each a process of its own on this machine, and a wire that can be cut."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

START_S = 120  # a busy machine is slow to start processes


class Dask:
    """A scheduler that can be started again at its address, and workers; all end with the `with` block."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None):
        """Each process has a folder of its own in `folder`; `settings` are environment variables of all of them."""
        self.folder, self.processes = folder, []
        self.environment = os.environ | dict(settings or {})
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.start_scheduler()

    def __enter__(self) -> "Dask":
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def start_scheduler(self) -> None:
        words = ["--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"]
        self.scheduler = self._start("scheduler", words, {})
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.1)
        raise AssertionError("the scheduler does not start")

    def worker(self, through: str | None = None, settings: Mapping[str, str] | None = None,
               local: Path | None = None) -> subprocess.Popen:  # fmt: skip
        """A worker of one thread, known by its process id; `through` is an address that leads to the scheduler."""
        name = f"worker-{len(self.processes)}"
        words = [through or self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--name", name]
        words += ["--local-directory", str(local)] if local else []
        process = self._start("worker", words, settings or {})
        process.name = name  # type: ignore[attr-defined]
        return process

    def _start(self, kind: str, words: list[str], settings: Mapping[str, str]) -> subprocess.Popen:
        own = self.folder / f"{kind}-{len(self.processes)}"
        own.mkdir(parents=True)
        program = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words]
        with (own / "log").open("w") as log:
            process = subprocess.Popen(program, stdout=log, stderr=log, cwd=own, env=self.environment | dict(settings))
        self.processes.append(process)
        return process

    def wait_for_workers(self, count: int) -> None:
        """Until so many workers are there."""
        from distributed import Client

        with Client(self.address, timeout=START_S) as client:
            client.wait_for_workers(count, timeout=START_S)

    def wait_until_busy(self, worker: subprocess.Popen) -> None:
        """Until a worker is at a task."""
        from distributed import Client

        with Client(self.address, timeout=START_S) as client:
            deadline = time.monotonic() + START_S
            while time.monotonic() < deadline:
                known = client.scheduler_info(n_workers=-1)["workers"]
                at_work = client.processing()
                if any(it["name"] == worker.name and at_work.get(at) for at, it in known.items()):  # type: ignore[attr-defined]
                    return
                time.sleep(0.02)
        raise AssertionError("the worker gets nothing to do")


class Wire:
    """An address that leads to another one, until it is cut: connections end, and new ones are refused."""

    def __init__(self, port: int):
        """`port`: of this machine, where the wire leads to."""
        self.port, self.ends, self.is_cut = port, [], False
        self.entrance = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.entrance.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # the entrance was closed
            while True:
                near, _ = self.entrance.accept()
                far = socket.create_connection(("127.0.0.1", self.port))
                self.ends += [near, far]
                if self.is_cut:
                    self.cut()
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while some := source.recv(65536):
                target.sendall(some)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.is_cut = True
        self.entrance.close()
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
