"""Every policy (alone) and every model: a proper density everywhere, one definition of it, a finite derivative."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.situations import GRID, MEMORY, dataset_on, histories, one_set, parameter_sets, scene_of, situations
from contracts.table import Row, rows_of
from foveate.model.densities import step_densities
from foveate.model.factors import Factor
from foveate.model.history import History, Picture
from foveate.model.likelihood import step_log_likelihoods, value_and_gradient
from foveate.model.model import Model
from foveate.model.policies import Policy
from foveate.model.steps import Steps

every_density = pytest.mark.parametrize("row", rows_of(Policy, Factor, Model))
every_parameter = pytest.mark.parametrize(
    "row", [row for row in rows_of(Policy, Factor, Model) if row.values[0].parameters]
)


@eqx.filter_jit
def _log_densities(model, values, batch, maps):
    def of_set(values):
        changed = model.with_parameters(values)
        return jax.vmap(lambda history, map_: changed.log_density(history, Picture.whole(GRID, map_)))(batch, maps)

    return jax.vmap(of_set)(values) if values else of_set({})[None]


def log_densities(row: Row, batch: History, maps: np.ndarray) -> np.ndarray:
    """Log-probability of every cell: (parameter set, situation, row, column); the first set is the row's own."""
    model = row.model()
    with jax.enable_x64(True):
        return np.asarray(_log_densities(model, parameter_sets(model), batch, maps))


@cache
def steps_in_every_situation() -> Steps:
    return Steps.of(dataset_on(GRID), memory=MEMORY)


@every_density
def test_density_sums_to_one_at_every_edge_map_and_variance(row: Row):
    probability = np.exp(log_densities(row, *histories()))
    assert probability.dtype == np.float64
    assert np.isfinite(probability).all()
    np.testing.assert_allclose(probability.sum(axis=(-2, -1)), 1.0, rtol=0, atol=1e-12)


@every_density
def test_density_is_that_of_the_oracle_at_every_edge_map_and_variance(row: Row):
    values = parameter_sets(row.model())
    probability = np.exp(log_densities(row, *histories()))
    for case, (fixations, name) in enumerate(zip(*situations(), strict=True)):
        scene = scene_of(name)
        if scene.at(fixations[-2]) == 0:
            continue  # the paper does not say what the ratio of saliencies is there
        for index in range(len(probability)):
            expected = row.density(scene, fixations, **one_set(values, index))
            # the smallest variance makes exponents of 1e8, whose last digit is 1e-8
            rtol = 1e-10 if index == 0 else 1e-6
            np.testing.assert_allclose(probability[index, case], expected, rtol=rtol, atol=1e-14)


@every_density
def test_likelihood_of_a_step_is_the_map_read_at_its_cell(row: Row):
    model, steps = row.model(), steps_in_every_situation()
    # as many as there are situations, so that nothing is compiled twice; beyond the last step they start again
    path, step = (np.resize(index, len(situations()[1])) for index in np.nonzero(steps.real))
    batch = jax.tree.map(lambda array: np.asarray(array)[path, step], steps.history)
    maps = np.asarray(steps.saliency)[np.asarray(steps.picture)[path]]
    found = log_densities(row, batch, maps)
    read = found[:, np.arange(len(path)), np.asarray(steps.row)[path, step], np.asarray(steps.column)[path, step]]
    assert 40 < steps.count <= len(path)
    values = parameter_sets(model)
    for index, expected in enumerate(read):
        changed = model.with_parameters(one_set(values, index))
        likelihood = np.asarray(step_log_likelihoods(changed, steps))
        # the smallest variance makes exponents of 1e8, which leave their rounding behind where they cancel
        atol = 1e-10 if index == 0 else 1e-8
        np.testing.assert_allclose(likelihood[path, step], expected, rtol=1e-10, atol=atol)


@every_density
def test_maps_of_all_steps_are_those_of_the_density(row: Row):
    model, steps = row.model(), steps_in_every_situation()
    path, step = (np.resize(index, len(situations()[1])) for index in np.nonzero(steps.real))
    batch = jax.tree.map(lambda array: np.asarray(array)[path, step], steps.history)
    expected = np.exp(log_densities(row, batch, np.asarray(steps.saliency)[np.asarray(steps.picture)[path]]))
    values = parameter_sets(model)
    for index in range(len(expected)):
        changed = one_set(values, index)
        found = np.stack(list(step_densities(model.with_parameters(changed), steps)))[path, step]
        # the smallest variance makes exponents of 1e8, whose last digit is 1e-8
        tiny = min((np.min(value) for value in changed.values() if np.shape(value) == (2,)), default=1.0) < 1e-3
        totals, message = found.sum(axis=(1, 2)), str(changed)
        np.testing.assert_allclose(totals, 1.0, rtol=0, atol=1e-12, err_msg=message)
        np.testing.assert_allclose(found, expected[index], rtol=1e-6 if tiny else 1e-10, atol=1e-14, err_msg=message)


@every_parameter
def test_gradient_is_finite_at_every_edge_map_and_variance(row: Row):
    model, steps = row.model(), steps_in_every_situation()
    values = parameter_sets(model)
    for index in range(len(next(iter(values.values())))):
        changed = model.with_parameters(one_set(values, index))
        value, gradient = value_and_gradient(changed, steps)
        assert np.isfinite(value), changed.parameters
        assert all(np.isfinite(part).all() for part in gradient.values()), (changed.parameters, gradient)


@eqx.filter_jit
def gradients_of_the_map(model, values, batch, maps):
    """Derivative of the log-probabilities of all cells that have any, summed: name to (set, situation, ...)."""

    def summed(values, history, saliency):
        density = model.with_parameters(values).log_density(history, Picture.whole(GRID, saliency))
        return jnp.sum(jnp.where(jnp.isfinite(density), density, 0.0))

    derivative = jax.vmap(jax.grad(summed), (None, 0, 0))
    return jax.vmap(lambda values: derivative(values, batch, maps))(values)


@pytest.mark.slow
@every_parameter
def test_gradient_of_the_map_is_finite_also_with_gaze_on_an_empty_cell(row: Row):
    """No fixation of a data set lies there, but a simulation gets there by a local step."""
    model = row.model()
    with jax.enable_x64(True):
        found = gradients_of_the_map(model, parameter_sets(model), *histories())
    for name, part in found.items():
        assert np.isfinite(part).all(), name


@every_parameter
def test_gradient_agrees_with_finite_differences(row: Row):
    model, steps = row.model(), steps_in_every_situation()
    _, gradient = value_and_gradient(model, steps)
    assert set(gradient) == set(model.parameters)
    for name, parameter in model.parameters.items():
        for place in np.ndindex(np.shape(parameter)):
            step = np.zeros(np.shape(parameter))
            step[place] = 1e-4 * abs(np.asarray(parameter)[place])

            def at(amount, name=name, parameter=parameter, step=step):
                changed = model.with_parameters({name: parameter + amount * step})
                return np.asarray(step_log_likelihoods(changed, steps)).sum()

            # the central difference of fourth order
            difference = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step[place])
            assert np.asarray(gradient[name])[place] == pytest.approx(difference, rel=1e-8, abs=1e-8), name


@every_density
def test_first_two_fixations_come_from_the_map(row: Row):
    scene = scene_of("lumpy")
    picture = Picture.whole(GRID, scene.saliency)
    for made in (np.zeros((0, 2)), np.array([[3.0, 4.0]])):
        density = row.model().log_density(History.of(picture, *made.T, memory=MEMORY), picture)
        np.testing.assert_allclose(density, scene.log_saliency, rtol=1e-15)
