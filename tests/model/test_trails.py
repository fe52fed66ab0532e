"""Trails of fixations: the field that fades as gaze moves on is the sum over places, whatever came before."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.model import axis_loops, direction_loop, loops, modulated_entry, modulated_loop, repelled_loop, trail_loop
from foveate.model.factors import Modulated
from foveate.model.likelihood import log_normalisers, plain_log_normalisers
from foveate.model.mechanisms import SalientGlobal, SalientLocal
from foveate.model.places import Here, VisitedBefore
from foveate.model.steps import Steps

GRID = Grid(9, 12, Extent(16.0, 12.0))
LENGTHS = {"a": 11, "b": 4, "c": 9}  # fixations on each picture


def steps_of(forced: set[tuple[str, int]] = frozenset()) -> Steps:
    """Paths that are longer than some trails and shorter than others; on one gaze comes back to one place for ever."""
    rng, rows = np.random.default_rng(5), []
    for picture, length in LENGTHS.items():
        for number in range(1, length + 1):
            x, y = rng.uniform(0, 12), rng.uniform(0, 16)
            if picture == "c" and number % 2:
                x, y = 3.0, 4.0
            rows.append((1, picture, number, x, y, (picture, number) in forced))
    table = pd.DataFrame(rows, columns=["observer", "picture", "fixation", "x_deg", "y_deg", "forced"])
    maps = {it: rng.gamma(0.8, size=GRID.shape) for it in LENGTHS}
    maps = SaliencyMaps.from_arrays({name: it / it.sum() for name, it in maps.items()}, GRID.extent)
    return Steps.of(Dataset(ScanPaths.from_table(table, GRID.extent), maps), memory=21)


def with_trails(*trails: VisitedBefore) -> list[Modulated]:
    factors = (Here(-1.2, 0.8), *trails)
    return [Modulated(it, factors) for it in (SalientLocal((2.0, 3.0), 1.3), SalientGlobal((30.0, 20.0), 1.3))]


def sums_and_slopes(way, policies, steps) -> list[np.ndarray]:
    """The log-sums of all scored steps, and how a sum of them, each with a weight of its own, changes."""
    scored = jnp.asarray(steps.real)

    def total(some):
        found = jnp.stack([jnp.where(scored, it, 0.0) for it in way(some, steps)])
        weights = jnp.cos(jnp.arange(found.size, dtype=jnp.float64)).reshape(found.shape)
        return jnp.sum(weights * found), found

    with jax.enable_x64(True):
        (_, found), slopes = eqx.filter_jit(eqx.filter_value_and_grad(total, has_aux=True))(
            jax.tree.map(jnp.asarray, policies)
        )
    return [np.asarray(it) for it in (found, *jax.tree.leaves(slopes))]


@pytest.mark.parametrize("spans", [(1,), (3,), (20,), (4, 20)])
def test_sums_and_slopes_are_those_of_all_places(spans):
    """Also where paths go on beyond a trail, and where two trails have different lengths."""
    trails = [VisitedBefore(mu, 6.0 + span, 0.7, span) for mu, span in zip((-1.3, 0.6), spans, strict=False)]
    policies, steps = with_trails(*trails), steps_of()
    fast, plain = (sums_and_slopes(way, policies, steps) for way in (log_normalisers, plain_log_normalisers))
    assert np.abs(plain[0]).max() > 1
    for found, expected in zip(fast, plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_a_trail_goes_on_across_a_fixation_that_nobody_chose():
    """A forced fixation is no step, so that the next step's trail has two more places than the last one's."""
    policies = with_trails(VisitedBefore(-1.3, 9.0, 0.8, 5))
    steps = steps_of(forced={("a", 5), ("a", 6), ("c", 3)})
    fast, plain = (sums_and_slopes(way, policies, steps) for way in (log_normalisers, plain_log_normalisers))
    assert steps.real.sum() == sum(LENGTHS.values()) - 2 * len(LENGTHS) - 3
    for found, expected in zip(fast, plain, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)


def test_single_precision_holds_along_a_path():
    """Fields are carried from step to step: their errors must not pile up."""
    policies = with_trails(VisitedBefore(-1.3, 9.0, 0.95, 4))
    steps = steps_of()
    rough = sums_and_slopes(log_normalisers, policies, steps.in_single_precision())
    plain = sums_and_slopes(plain_log_normalisers, policies, steps)
    assert 0 < np.abs(rough[0] - plain[0]).max() < 5e-6
    for found, expected in zip(rough[1:], plain[1:], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_places_that_attract_without_measure_do_not_overflow():
    """Factors of e^100 and more on a cell: divided by a bound, or else by the definition."""
    policies, steps = with_trails(VisitedBefore(70.0, 9.0, 0.8, 20)), steps_of()
    rough = sums_and_slopes(log_normalisers, policies, steps.in_single_precision())[0]
    plain = sums_and_slopes(plain_log_normalisers, policies, steps)[0]
    assert plain.max() > 100  # e^88 is the largest number in single precision
    np.testing.assert_allclose(rough, plain, rtol=2e-6)


def test_what_is_kept_of_the_loops_is_kept_until_any_of_their_files_changes(tmp_path, monkeypatch):
    """Numba itself looks at the one file alone whose function is asked for."""
    before = modulated_entry._sources.__wrapped__()
    assert modulated_entry._sources.__wrapped__() == before
    for module in (axis_loops, direction_loop, loops, modulated_loop, repelled_loop, trail_loop):
        changed = tmp_path / "changed.py"
        changed.write_text(Path(str(module.__file__)).read_text() + "\n")
        with monkeypatch.context() as patch:
            patch.setattr(module, "__file__", str(changed))
            assert modulated_entry._sources.__wrapped__() != before, module.__name__
