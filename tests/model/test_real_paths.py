"""Likelihoods of real scan paths: those of the oracle, step by step, by every way to compute them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.table import Row, rows_of
from foveate.data.dataset import Dataset
from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS
from foveate.model import catalogue
from foveate.model.densities import step_densities
from foveate.model.history import History, Picture
from foveate.model.likelihood import (
    log_likelihood,
    log_likelihoods,
    log_probability,
    plain_log_normaliser,
    step_log_likelihoods,
    target_log_weights,
    value_and_gradient,
)
from foveate.model.model import Model, mix
from foveate.model.steps import Steps
from oracles import paper

every_model = pytest.mark.parametrize("row", rows_of(Model))

# Variances in deg^2: those of the paper's recovery experiment, and a pair with epsilon above xi on the rows only.
ORDINARY = {"epsilon": (4.03, 8.81), "xi": (37.1, 70.5)}
CROSSED = {"epsilon": (60.0, 1.5), "xi": (12.0, 90.0)}


@pytest.fixture(scope="module")
def data(potsdam35) -> Dataset:
    return potsdam35.select(observers=[1, 7, 23], pictures=POTSDAM35_FOLDS[0])


@pytest.fixture(scope="module")
def steps(data) -> Steps:
    return Steps.of(data, memory=25)  # as far back as any model looks


@pytest.fixture(scope="module")
def tabulated(steps) -> Steps:
    return steps.tabulated()


def oracle_steps(row: Row, data: Dataset, parameters: dict) -> np.ndarray:
    extent = data.maps.grid.extent
    return np.concatenate(
        [
            paper.path_log_probabilities(
                row.oracle,
                paper.Scene(data.maps[path.picture], extent.height_deg, extent.width_deg),
                path.y_deg,
                path.x_deg,
                **parameters,
                **row.form,
            )
            for path in data.paths
        ]
    )


@pytest.mark.parametrize("variances", [ORDINARY, CROSSED], ids=["ordinary", "crossed"])
@every_model
def test_every_step_has_the_probability_of_the_oracle(row: Row, variances, data, steps):
    parameters = {name: np.resize(variances[name], np.shape(value)) if name in variances else value
                  for name, value in row.parameters.items()}  # fmt: skip
    expected = oracle_steps(row, data, parameters)
    found = np.asarray(step_log_likelihoods(row.make().with_parameters(parameters), steps))
    assert len(expected) == steps.count > 400
    np.testing.assert_allclose(found[steps.real], expected, rtol=1e-10)
    assert (found[~steps.real] == 0).all()


@eqx.filter_jit
def plain_log_likelihood(model: Model, steps: Steps):
    """The sum over steps with plain normalisers."""
    normalisers = [plain_log_normaliser(policy, steps) for policy in model.policies]
    densities = target_log_weights(model.policies, steps) - jnp.stack(normalisers, axis=-1)
    choice = jax.vmap(
        lambda history, index: jax.vmap(lambda h: model.choice.log_probabilities(h, steps.picture_of(index)))(history)
    )(steps.history, steps.picture)
    return jax.numpy.where(steps.real, mix(choice, densities, axis=-1), 0.0).sum()


@pytest.mark.parametrize("repulsion", ["released", pytest.param("none", marks=pytest.mark.slow)])
def test_likelihood_is_the_plain_one_over_draws_from_every_prior(repulsion, steps, tabulated):
    """Also for the rivals' IG(0.2, 25), which gives variances over many orders of magnitude."""
    model = catalogue.named_model("full", repulsion=repulsion)
    priors = [
        catalogue.named_model(name, priors=priors, repulsion=repulsion)
        for name, priors in (("full", "published"), ("full", "weak"), ("local_choice", "published"))
    ]
    keys = jax.random.split(jax.random.key(5), 20)
    draws = [model.with_parameters(prior.draw_from_prior(key).parameters) for prior in priors for key in keys]
    with jax.enable_x64(True):
        plain = [float(plain_log_likelihood(draw, steps)) for draw in draws]
    batch = {name: np.stack([draw.parameters[name] for draw in draws]) for name in model.parameters}
    assert len(set(plain)) == len(draws)
    assert batch["xi"].max() > 1e4
    np.testing.assert_allclose(log_likelihoods(model, steps, batch), plain, rtol=1e-10)
    np.testing.assert_allclose(log_likelihoods(model, tabulated, batch), plain, rtol=1e-10)


@pytest.mark.slow
def test_gradients_of_a_batch_are_those_of_a_loop(steps):
    """Under vmap, with sets from several cases of the fast normaliser at once."""
    model = catalogue.named_model("full")
    sets = [ORDINARY, CROSSED, model.draw_from_prior(jax.random.key(2)).parameters]
    models = [model.with_parameters(values) for values in sets]
    batch = {name: np.stack([one.parameters[name] for one in models]) for name in model.parameters}
    with jax.enable_x64(True):
        values, gradients = jax.vmap(lambda values: value_and_gradient(model.with_parameters(values), steps))(batch)
    for index, one in enumerate(models):
        value, gradient = value_and_gradient(one, steps)
        assert float(values[index]) == pytest.approx(float(value), rel=1e-12)
        for name, part in gradient.items():
            np.testing.assert_allclose(np.asarray(gradients[name])[index], part, rtol=1e-9)


def test_total_is_the_sum_over_steps(steps):
    model = catalogue.named_model("full")
    found = np.asarray(step_log_likelihoods(model, steps))
    assert float(log_likelihood(model, steps)) == pytest.approx(found.sum(), rel=1e-14)
    assert float(value_and_gradient(model, steps)[0]) == pytest.approx(found.sum(), rel=1e-14)
    with jax.enable_x64(True):
        everywhere = np.asarray(eqx.filter_jit(log_probability)(model, steps))
    assert np.isfinite(everywhere).all()  # in the padding too, where a NaN would spoil the gradient


@pytest.mark.parametrize("name", ["full", "local_saliency"])
def test_map_before_every_step_is_that_of_the_history(name, data, tabulated):
    model = catalogue.named_model(name)
    for path, maps in zip(data.paths, step_densities(model, tabulated), strict=True):
        scored = len(path) - 2
        np.testing.assert_allclose(maps[:scored].sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-12)
        picture = Picture.whole(data.maps.grid, data.maps[path.picture])
        history = History.of(picture, path.y_deg[:-1], path.x_deg[:-1])
        density = np.exp(model.log_density(history, picture))
        np.testing.assert_allclose(maps[scored - 1], density, rtol=1e-10, atol=1e-200)


def test_static_map_gains_what_is_known_over_uniform(potsdam35):
    steps = Steps.of(potsdam35)
    assert steps.count == 28_264 - 2 * 1_050
    nats = float(log_likelihood(catalogue.named_model("saliency_baseline"), steps)) / steps.count
    assert nats / np.log(2) + np.log2(64 * 64) == pytest.approx(0.905, abs=0.001)


def test_observer_1_makes_620_steps_on_the_training_pictures_of_fold_1(potsdam35):
    training, test = potsdam35.select(observers=[1]).split(POTSDAM35_FOLDS[0])
    assert Steps.of(training).count == 620
    assert len(training.paths) == 24
    assert len(test.paths) == 6
