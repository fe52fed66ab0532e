"""Every choice rule: proper probabilities, those of the oracle, with a finite derivative, from the history alone."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.situations import GRID, histories, scene_of, situations
from contracts.table import Row, rows_of
from foveate.model.choices import Choice
from foveate.model.history import Picture

every_choice = pytest.mark.parametrize("row", rows_of(Choice))

# Scales of the logistic choices' parameters, also far outside the ordinary; a probability stays as it is.
SCALES = {"b": (1.0, -1.0, 1e-9, 1e3), "s0": (1.0, -1.0, 1e3)}


def parameter_sets(row: Row) -> list[dict[str, float]]:
    sets = [row.parameters]
    for name, scales in SCALES.items():
        sets += [row.parameters | {name: scale * row.parameters[name]} for scale in scales if name in row.parameters]
    return sets + [{"rho": rho} for rho in (1e-12, 1 - 1e-12) if "rho" in row.parameters]


@eqx.filter_jit
def log_probabilities(choice, batch, maps):
    return jax.vmap(lambda history, map_: choice.log_probabilities(history, Picture.whole(GRID, map_)))(batch, maps)


@every_choice
def test_policies_are_chosen_with_probabilities_that_sum_to_one(row: Row):
    for values in parameter_sets(row):
        choice = row.part(**values, **row.form)
        with jax.enable_x64(True):
            found = np.asarray(log_probabilities(choice, *histories()))
        assert found.shape == (len(situations()[1]), choice.policies)
        assert found.dtype == np.float64
        np.testing.assert_allclose(np.exp(found).sum(axis=1), 1.0, rtol=0, atol=1e-12)


@every_choice
def test_choice_is_that_of_the_oracle(row: Row):
    for values in parameter_sets(row):
        with jax.enable_x64(True):
            found = np.exp(log_probabilities(row.part(**values, **row.form), *histories()))
        for (fixations, name), probabilities in zip(zip(*situations(), strict=True), found, strict=True):
            scene = scene_of(name)
            if scene.at(fixations[-2]) > 0:  # the paper does not say what the ratio of saliencies is else
                expected = np.atleast_1d(row.oracle(scene, fixations, **values))
                assert probabilities[: len(expected)] == pytest.approx(expected, rel=1e-12, abs=1e-300)


@every_choice
def test_gradient_of_a_choice_is_finite_also_on_empty_cells(row: Row):
    batch, maps = histories()

    def summed(values):
        return jnp.sum(log_probabilities(row.part(**values, **row.form), batch, maps))

    for values in parameter_sets(row):
        with jax.enable_x64(True):
            gradient = jax.grad(summed)({name: jnp.asarray(value) for name, value in values.items()})
        for name, part in gradient.items():
            assert np.isfinite(part).all(), (name, values)
