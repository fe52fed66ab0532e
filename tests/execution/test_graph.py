"""Tasks give the same bits wherever they are computed, and survive the death of what computes them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dask_processes import Dask
from small_tasks import draws_of, same, small_tasks

from foveate.errors import InputError
from foveate.execution.cluster import Cluster
from foveate.execution.graph import completed
from foveate.execution.places import Here, Place, Processes, place_for


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


@pytest.fixture
def dask(tmp_path):
    with Dask(tmp_path) as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of Dask's own
def test_a_cluster_gives_the_same_bits_and_survives_a_killed_worker(dask, here):
    first = dask.worker()
    dask.wait_for_workers(1)
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
    monkeypatch.setattr("foveate.execution.cluster.CONNECT_S", 2)
    with pytest.raises(InputError, match="no Dask scheduler answers at"), Cluster(dask.address):
        pass


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_dies_for_good_ends_the_run_with_a_sentence(dask, monkeypatch):
    monkeypatch.setattr("foveate.execution.cluster.RETURN_S", 2)
    dask.worker()
    dask.wait_for_workers(1)
    found: list = []

    def interrupted() -> None:
        with Cluster(dask.address) as place:
            for item in completed(small_tasks(), place):
                found.append(item)
                dask.scheduler.kill()

    with pytest.raises(
        InputError, match=r"was not back with workers after 2 s \(the last try: no Dask .*\); what is finished is saved"
    ):
        interrupted()
    assert found


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_workers_that_all_die_are_waited_for_and_then_told(dask, monkeypatch):
    monkeypatch.setattr("foveate.execution.cluster.NO_WORKERS_S", 2)
    monkeypatch.setattr("foveate.execution.graph.LOOK_S", 0.5)
    worker = dask.worker()
    dask.wait_for_workers(1)
    with Cluster(dask.address) as place:
        items = completed(small_tasks(), place)
        next(items)
        worker.kill()
        with pytest.raises(InputError, match="has had no workers for 0 minutes; what is finished is saved"):
            list(items)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_task_that_kills_workers_of_a_cluster_is_named(tmp_path, monkeypatch):
    def deadly(_):  # defined here, so that it is sent whole: workers cannot import this file
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr("foveate.execution.graph.perform", deadly)
    with Dask(tmp_path, {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as dask:
        dask.worker()
        dask.wait_for_workers(1)
        with Cluster(dask.address) as place, pytest.raises(InputError, match="lost every time while observer ann"):
            list(completed(small_tasks()[:1], place))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_workers_of_another_version_are_refused(dask, tmp_path):
    other = tmp_path / "other" / "foveate-0.0.1.dist-info"  # what an installed package says of itself
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: foveate\nVersion: 0.0.1\n")
    dask.worker(settings={"PYTHONPATH": str(other.parent)})
    dask.wait_for_workers(1)
    with (
        pytest.raises(InputError, match=r"has foveate 0\.0\.1, not .*; install the same versions"),
        Cluster(dask.address),
    ):
        pass


def test_the_clock_of_a_cluster_without_workers_starts_when_they_are_missed(monkeypatch):
    """However long ago it was last asked for them: while fits come nobody asks."""
    cluster, now, workers = Cluster("tcp://a:1"), [0.0], {"tcp://b:2": 1}

    class Client:
        status = "running"

        def ncores(self):
            return workers

    cluster.client = Client()
    monkeypatch.setattr("foveate.execution.cluster.time.monotonic", lambda: now[0])
    cluster.check()
    now[0] = 10_000.0
    workers.clear()
    cluster.check()
    now[0] += 1000
    cluster.check()
    workers["tcp://b:2"] = 1
    assert cluster.size == 1
    workers.clear()
    now[0] += 1000
    cluster.check()
    now[0] += 1801
    with pytest.raises(InputError, match="has had no workers for 30 minutes"):
        cluster.check()


def test_a_missing_dask_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # what an import finds where the package is not installed
    with pytest.raises(InputError, match=r"install it with pip install 'foveate\[cluster\]'"), Cluster("tcp://a:1"):
        pass
