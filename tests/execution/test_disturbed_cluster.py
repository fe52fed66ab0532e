"""A cluster of real processes, disturbed in the middle of a run: the same bits, or a sentence and a resume."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dask_processes import START_S, Dask, Wire

from foveate.execution.store import FitStore

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]  # the warnings are Dask's own

COMMAND = str(Path(sys.executable).with_name("foveate"))
FITS = 6
ARGUMENTS = ["--data", "example", "--cells", "16", "--observers", "ann,ben,cleo", "--folds", "2", "--draws", "4",
             "--models", "saliency_baseline,local_saliency", "--seed", "2"]  # fmt: skip
SILENT_WORKER_S = 60  # a scheduler gives up workers that it has not heard of for so long; imports may take 15 s


class Comparison:
    """`foveate compare` on a cluster, and what it has done so far."""

    def __init__(self, out: Path, dask: Dask):
        self.out = out
        program = [COMMAND, "compare", *ARGUMENTS, "--out", str(out), "--scheduler", dask.address]
        self.process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=os.environ | {"COLUMNS": "500"})  # fmt: skip

    def finished(self) -> list[Path]:
        return sorted(self.out.glob("fits/*/*/*.nc"))

    def wait_for_the_middle(self) -> None:
        """Until some fits are done, and not all."""
        deadline = time.monotonic() + START_S
        while not self.finished() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert self.process.poll() is None, self.end()
        assert 0 < len(self.finished()) < FITS

    def end(self) -> tuple[int, list[str]]:
        """The exit code and the lines on standard error, once it has ended."""
        try:
            _, said = self.process.communicate(timeout=300)
        finally:
            self.process.kill()
        return self.process.returncode, said.splitlines()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("compare") / "study"
    subprocess.run([COMMAND, "compare", *ARGUMENTS, "--out", out, "--workers", "1"], capture_output=True, check=True)
    return out


@pytest.fixture
def dask(tmp_path):
    with Dask(tmp_path / "cluster") as found:
        yield found


@pytest.fixture
def impatient(tmp_path):
    """A scheduler that does not wait five minutes for a silent worker."""
    with Dask(tmp_path / "cluster", {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": f"{SILENT_WORKER_S}s"}) as found:
        yield found


def assert_same_bits(out: Path, undisturbed: Path) -> None:
    """Draws, weights and diagnoses of every fit, and every table of the study."""
    folders = sorted(folder.relative_to(out) for folder in out.glob("fits/*/*"))
    assert folders == sorted(folder.relative_to(undisturbed) for folder in undisturbed.glob("fits/*/*"))
    count = 0
    for folder in folders:
        for ours, theirs in zip(*(FitStore.read(it / folder).load_all() for it in (out, undisturbed)), strict=True):
            assert ours.observer == theirs.observer
            np.testing.assert_array_equal(ours.samples.real, theirs.samples.real)
            assert ours.samples.weighted is not None
            assert theirs.samples.weighted is not None
            np.testing.assert_array_equal(ours.samples.weighted.log_weight, theirs.samples.weighted.log_weight)
            assert ours.diagnosis == theirs.diagnosis
            count += 1
    assert count == FITS
    tables = sorted(file.name for file in out.glob("*.csv"))
    assert tables == sorted(file.name for file in undisturbed.glob("*.csv"))
    for name in tables:
        both = [pd.read_csv(it / name).drop(columns="seconds", errors="ignore") for it in (out, undisturbed)]
        pd.testing.assert_frame_equal(*both, check_exact=True)


def assert_nothing_but_progress(said: list[str]) -> None:
    """No traceback and no warning: a disturbance that is mended is nobody's business."""
    assert all(line.startswith("foveate compare, seed 2") or line.lstrip()[:4].strip(" 0123456789") == "%"
               for line in said), said  # fmt: skip


def test_a_worker_that_is_killed(undisturbed, dask, tmp_path):
    first, _ = dask.worker(), dask.worker()
    dask.wait_for_workers(2)
    run = Comparison(tmp_path / "study", dask)
    run.wait_for_the_middle()
    dask.wait_until_busy(first)
    first.kill()
    code, said = run.end()
    assert code == 0, said
    assert_nothing_but_progress(said)
    assert_same_bits(run.out, undisturbed)


def test_a_worker_whose_connection_is_cut(undisturbed, dask, tmp_path):
    wire = Wire(dask.port)
    first, _ = dask.worker(through=wire.address), dask.worker()
    dask.wait_for_workers(2)
    run = Comparison(tmp_path / "study", dask)
    run.wait_for_the_middle()
    dask.wait_until_busy(first)
    wire.cut()
    code, said = run.end()
    assert code == 0, said
    assert_nothing_but_progress(said)
    assert_same_bits(run.out, undisturbed)


def test_a_worker_that_falls_silent_and_comes_back(undisturbed, impatient, tmp_path):
    """As when a network swallows everything: nothing says that the worker is gone."""
    first, _ = impatient.worker(), impatient.worker()
    impatient.wait_for_workers(2)
    run = Comparison(tmp_path / "study", impatient)
    run.wait_for_the_middle()
    impatient.wait_until_busy(first)
    first.send_signal(signal.SIGSTOP)
    try:
        deadline = time.monotonic() + START_S
        while len(run.finished()) < FITS and run.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(run.finished()) == FITS
    finally:
        first.send_signal(signal.SIGCONT)
    code, said = run.end()
    assert code == 0, said
    assert_nothing_but_progress(said)
    assert_same_bits(run.out, undisturbed)


def test_a_scheduler_that_is_started_again(undisturbed, dask, tmp_path):
    dask.worker(), dask.worker()
    dask.wait_for_workers(2)
    run = Comparison(tmp_path / "study", dask)
    run.wait_for_the_middle()
    dask.scheduler.kill()
    dask.scheduler.wait()
    dask.start_scheduler()
    dask.worker()  # workers end with their scheduler
    code, said = run.end()
    assert code == 0, said
    assert_nothing_but_progress(said)
    assert_same_bits(run.out, undisturbed)


def test_a_disk_that_fills_stops_the_run_with_a_sentence_and_it_goes_on(undisturbed, dask, tmp_path):
    """The system refuses larger files from the middle on, as it does where a quota is used up."""
    dask.worker()
    dask.wait_for_workers(1)
    run = Comparison(tmp_path / "study", dask)
    run.wait_for_the_middle()
    resource.prlimit(run.process.pid, resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    code, said = run.end()
    _assert_stopped_for_want_of_room(run, code, said, "File too large")
    before = {file: file.stat().st_mtime_ns for file in run.finished()}
    again = Comparison(run.out, dask)
    code, said = again.end()
    assert code == 0, said
    assert all(file.stat().st_mtime_ns == at for file, at in before.items())
    assert_same_bits(run.out, undisturbed)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, with room for two fits and a half."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this user may not mount a file system; the test before this one fills a quota")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="no file systems of one's own here")
def test_a_full_disk_of_results_and_of_a_worker(undisturbed, small_disk, dask):
    """A worker whose own disk is full does its work; a run whose disk fills goes on once there is room."""
    local = small_disk / "worker"
    local.mkdir()
    full = small_disk / "cache"
    full.mkdir()
    dask.worker(local=local, settings={"JAX_COMPILATION_CACHE_DIR": str(full)})
    dask.wait_for_workers(1)
    run = Comparison(small_disk / "study", dask)
    code, said = run.end()
    _assert_stopped_for_want_of_room(run, code, said, "No space left on device")
    before = {file: file.stat().st_mtime_ns for file in run.finished()}
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    code, said = Comparison(run.out, dask).end()
    assert code == 0, said
    assert all(file.stat().st_mtime_ns == at for file, at in before.items())
    assert_same_bits(run.out, undisturbed)


def _assert_stopped_for_want_of_room(run: Comparison, code: int, said: list[str], why: str) -> None:
    assert code == 2, said
    assert_nothing_but_progress(said[:-1])
    assert said[-1].startswith("foveate: ")
    assert why in said[-1]
    assert ".nc cannot be written" in said[-1]
    assert "finished fits stay" in said[-1]
    assert len(run.finished()) < FITS
    assert not [name for name in os.listdir(run.out / "fits/local_saliency/fold-1") if name.endswith(".tmp")]
