"""Every distribution of durations: that of the oracle, a proper density, draws that follow it, labels for numbers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from contracts.situations import GRID, histories, scene_of, situations
from contracts.table import Row, rows_of
from foveate.model.durations import Durations
from foveate.model.history import Picture

every_durations = pytest.mark.parametrize("row", rows_of(Durations))
NEXT_DEG = 4.2


def over_situations(function):
    """`function(history, picture)` in every situation."""
    batch, maps = histories()
    with jax.enable_x64(True):
        each = jax.vmap(lambda history, map_: function(history, Picture.whole(GRID, map_)))
        return np.asarray(eqx.filter_jit(each)(batch, maps))


@every_durations
def test_density_is_that_of_the_oracle(row: Row):
    part, next_deg = row.make(), np.asarray(NEXT_DEG)
    for seconds in (0.03, 0.25, 1.7):
        found = over_situations(lambda *seen, at=seconds: part.log_density(jnp.asarray(at), *seen, next_deg))
        for (fixations, name), value in zip(zip(*situations(), strict=True), found, strict=True):
            expected = row.oracle(scene_of(name), fixations, NEXT_DEG, **row.parameters).logpdf(seconds)
            assert value == pytest.approx(expected, rel=1e-10)


@every_durations
def test_density_integrates_to_one(row: Row):
    part, next_deg = row.make(), np.asarray(NEXT_DEG)
    at = np.exp(np.linspace(-15, 12, 8001))  # on empty cells means lie far out
    found = over_situations(lambda *seen: jax.vmap(lambda it: part.log_density(it, *seen, next_deg))(at))
    np.testing.assert_allclose(integrate.simpson(np.exp(found) * at, x=np.log(at)), 1.0, atol=1e-8)


@every_durations
def test_draws_follow_the_density(row: Row):
    """Kolmogorov-Smirnov in one situation, false alarms 1 in 1,000."""
    part, next_deg = row.make(), np.asarray(NEXT_DEG)
    normal = np.random.default_rng(4).standard_normal(2000)
    drawn = over_situations(lambda *seen: jax.vmap(lambda it: part.draw(it, *seen, next_deg))(normal))
    place = next(i for i, name in enumerate(situations()[1]) if name == "lumpy")
    law = row.oracle(scene_of("lumpy"), situations()[0][place], NEXT_DEG, **row.parameters)
    assert stats.kstest(drawn[place], law.cdf).pvalue > 1e-3


@every_durations
def test_every_number_has_a_label_and_a_finite_derivative(row: Row):
    for name, value in row.parameters.items():
        assert len(row.make().labels(name)) == np.size(value)
    batch, maps = histories()

    def summed(values):
        part = eqx.tree_at(lambda it: [getattr(it, name) for name in values], row.make(), list(values.values()))
        of = jax.vmap(lambda h, m: part.log_density(jnp.asarray(0.3), h, Picture.whole(GRID, m), jnp.asarray(NEXT_DEG)))
        return jnp.sum(of(batch, maps))

    with jax.enable_x64(True):
        values = {name: jnp.asarray(value, jnp.float64) for name, value in row.parameters.items()}
        for name, part in jax.grad(summed)(values).items():
            assert np.isfinite(part).all(), name
