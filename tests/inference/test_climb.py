"""Climbs side by side are the same climbs, and none of them waits for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from foveate.example import example_data
from foveate.inference.climb import _Meeting, climb, climbs
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target
from foveate.model.catalogue import named_model

LIMIT_S = 60  # compiling takes a few seconds, an answer far less


class Impatient(threading.Condition):
    """Nobody has to wait longer than the limit: a meeting that forgets somebody fails a test instead of hanging it."""

    limit_s = LIMIT_S

    def wait_for(self, predicate, timeout=None):
        while not predicate():
            assert self.wait(self.limit_s), "nobody has woken this thread"
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    own = SimpleNamespace(Condition=Impatient, get_ident=threading.get_ident)
    monkeypatch.setattr(import_module("foveate.inference.climb"), "threading", own)


def test_climbs_side_by_side_end_where_each_ends_alone():
    target = Target.of(named_model("local_saliency"), example_data().data.select(observers=["ann"]))
    starts = dispersed_starts(target, jax.random.key(4), 5)
    alone = [climb(target, start, 12) for start in starts]
    together = climbs(Target(target.model, target.steps.in_batches()), starts, 12)
    for (one, height, evaluations), (other, same, as_many) in zip(alone, together, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5)
        assert same == pytest.approx(height, abs=1e-6)
        assert as_many == evaluations
    assert len({evaluations for *_, evaluations in alone}) > 1  # some left before others


def test_an_error_reaches_every_thread_that_asked(monkeypatch):
    def broken(questions):
        raise ValueError("no answer")

    monkeypatch.setattr(Impatient, "limit_s", 20)
    meeting = _Meeting(3, 4, broken)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(meeting.ask, np.zeros(2)) for _ in range(3)]
    for each in asked:
        with pytest.raises(ValueError, match="no answer"):
            each.result()


def test_an_error_in_one_climb_ends_it_and_the_others_go_on(monkeypatch):
    """One of three fails before it has asked a second time: the two others are answered without it."""
    monkeypatch.setattr(Impatient, "limit_s", 20)
    meeting = _Meeting(3, 4, lambda questions: [(float(it[0]), it) for it in questions])

    def climb_of(number: float) -> list[float]:
        try:
            first, _ = meeting.ask(np.full(2, number))
            if number == 1:
                raise ValueError("this climb is broken")
            return [first, meeting.ask(np.full(2, 10 * number))[0]]
        finally:
            meeting.leave()

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(climb_of, float(number)) for number in range(3)]
    assert asked[0].result() == [0.0, 0.0]
    assert asked[2].result() == [2.0, 20.0]
    with pytest.raises(ValueError, match="this climb is broken"):
        asked[1].result()
