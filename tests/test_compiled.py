"""A process that compiles more and more does not run out of memory maps."""

import jax
import numpy as np
import pytest

from foveate import compiled
from foveate.compiled import make_room
from foveate.example import example_data
from foveate.inference.fit import fit
from foveate.model.catalogue import named_model


@pytest.fixture
def doubled():
    function = jax.jit(lambda x: 2 * x)
    assert function(2) == 4
    return function


def test_with_room_left_nothing_is_forgotten(doubled):
    assert not make_room()
    assert doubled._cache_size() == 1


def test_without_room_everything_is_forgotten_and_compiled_again(doubled, monkeypatch):
    monkeypatch.setattr(compiled, "FULLEST", 0.0)
    assert make_room()
    assert doubled._cache_size() == 0
    assert doubled(3) == 6


def test_without_such_a_limit_nothing_is_forgotten(doubled, monkeypatch, tmp_path):
    monkeypatch.setattr(compiled, "FULLEST", 0.0)
    for name in ("LIMIT", "MAPS"):
        with monkeypatch.context() as changed:
            changed.setattr(compiled, name, tmp_path / "missing")
            assert not make_room()
    assert doubled._cache_size() == 1


def test_a_fit_makes_room_and_gives_the_same_bits(doubled, monkeypatch):
    own = example_data().data.select(observers=["ann"], pictures=["beach", "tower"])
    first = fit(named_model("local_saliency"), own, jax.random.key(1))
    assert doubled._cache_size() == 1
    monkeypatch.setattr(compiled, "FULLEST", 0.0)
    again = fit(named_model("local_saliency"), own, jax.random.key(1))
    assert doubled._cache_size() == 0
    np.testing.assert_array_equal(again.samples.real, first.samples.real)
