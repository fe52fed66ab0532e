"""Tasks give the same bits wherever they are computed, and survive the death of what computes them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_tasks import draws_of, same, small_tasks

from foveate.errors import InputError
from foveate.execution.graph import completed
from foveate.execution.places import Cluster, Here, Place, Processes, place_for


def run(place: Place) -> dict:
    with place:
        return draws_of(list(completed(small_tasks(), place)))


@pytest.fixture(scope="module")
def here() -> dict:
    return run(Here(1))


def test_every_task_is_done_once(here):
    assert sorted(here) == ["ann", "ben", "cleo"]


@pytest.mark.slow
def test_worker_processes_give_the_same_bits_also_if_they_are_killed(here):
    found, place = [], Processes(2)
    with place:
        for number, item in enumerate(completed(small_tasks(), place)):
            found.append(item)
            if number == 0:
                for worker in list(place.executor._processes):
                    os.kill(worker, signal.SIGKILL)
    assert same(here, draws_of(found))


def die(*_) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_named(monkeypatch):
    monkeypatch.setattr("foveate.execution.graph.perform", die)
    with Processes(1) as place, pytest.raises(InputError, match="a worker process died 4 times while observer"):
        list(completed(small_tasks()[:1], place))


def test_workers_do_not_outlive_their_parent():
    code = (
        "from foveate.execution.places import Processes; import os, time\n"
        "if __name__ == '__main__':\n"
        "    with Processes(1) as place:\n"
        "        print(place.submit(os.getpid).result(), flush=True)\n"
        "        place.submit(time.sleep, 60)\n"
        "        time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    deadline = time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not Path(f"/proc/{worker}").exists()


def test_one_worker_is_this_process_and_a_scheduler_excludes_workers():
    assert isinstance(place_for(1, None), Here)
    assert not isinstance(place_for(1, None), Processes)
    assert isinstance(place_for(2, None), Processes)
    assert isinstance(place_for(None, "tcp://localhost:1"), Cluster)
    with pytest.raises(InputError, match="give one of the two"):
        place_for(2, "tcp://localhost:1")


# --- a real Dask scheduler and workers -----------------------------------------------------------------------------


class Dask:
    """A scheduler and workers, each a process of its own on this machine."""

    def __init__(self, folder: Path):
        self.folder, self.processes = folder, []
        self.scheduler = self.start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0",
                                    "--scheduler-file", str(folder / "scheduler.json"))  # fmt: skip
        deadline = time.monotonic() + 60
        while not (folder / "scheduler.json").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.address = json.loads((folder / "scheduler.json").read_text())["address"]

    def start(self, *words: str) -> subprocess.Popen:
        program = [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
        with (self.folder / f"{words[0]}-{len(self.processes)}.log").open("w") as log:
            process = subprocess.Popen(program, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)
        return process

    def worker(self) -> subprocess.Popen:
        return self.start("worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny")

    def close(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path):
    found = Dask(tmp_path)
    yield found
    found.close()


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, timeout=30) as client:
        client.wait_for_workers(count, timeout=60)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Dask's own
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(dask, here):
    first = dask.worker()
    wait_for_workers(dask.address, 1)
    found, place = [], Cluster(dask.address)
    with place:
        for number, item in enumerate(completed(small_tasks(), place)):
            found.append(item)
            if number == 0:
                dask.worker()
                first.kill()
    assert same(here, draws_of(found))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_not_there_or_has_no_workers_is_said(dask, monkeypatch):
    with pytest.raises(InputError, match="has no workers: start some"), Cluster(dask.address):
        pass
    dask.scheduler.kill()
    monkeypatch.setattr("foveate.execution.places.CONNECT_S", 2)
    with pytest.raises(InputError, match="no Dask scheduler answers at"), Cluster(dask.address):
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_dies_ends_the_run_with_a_sentence(dask):
    dask.worker()
    wait_for_workers(dask.address, 1)
    found: list = []

    def interrupted() -> None:
        with Cluster(dask.address) as place:
            for item in completed(small_tasks(), place):
                found.append(item)
                dask.scheduler.kill()

    with pytest.raises(InputError, match="nobody is left to do the fits"):
        interrupted()
    assert found
