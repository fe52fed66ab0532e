"""Climbs side by side are the same climbs."""

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from foveate.example import example_data
from foveate.inference.climb import _Meeting, climb, climbs
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target
from foveate.model.catalogue import named_model


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


def test_an_error_reaches_every_thread_that_asked():
    def broken(questions):
        raise ValueError("no answer")

    meeting = _Meeting(3, 4, broken)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(meeting.ask, np.zeros(2)) for _ in range(3)]
        for each in asked:
            with pytest.raises(ValueError, match="no answer"):
                each.result(timeout=60)
