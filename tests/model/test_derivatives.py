"""Derivatives of the fast sums beyond the gradient, and variances far smaller than any eye's."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import GRID, small_data

from foveate.data.dataset import Dataset
from foveate.data.saliency import SaliencyMaps
from foveate.model import catalogue
from foveate.model.densities import step_densities
from foveate.model.likelihood import (
    log_likelihoods,
    log_normaliser,
    log_probability,
    plain_log_normaliser,
    step_log_likelihoods,
)
from foveate.model.policies import Global, Local, RepelledGlobal
from foveate.model.steps import Steps


def objective(model, steps):
    return lambda vector: jnp.sum(jnp.where(steps.real, log_probability(model.from_real(vector), steps), 0.0))


@pytest.mark.parametrize("name", [pytest.param("full", marks=pytest.mark.slow), "local_saliency"])
@pytest.mark.parametrize("tabulated", [False, True])
def test_second_derivatives_are_those_of_the_gradient(name, tabulated):
    steps = Steps.of(small_data())
    steps = steps.tabulated() if tabulated else steps
    model = catalogue.named_model(name, xi=(8.0, 11.0), **({"epsilon": (2.2, 3.1)} if name == "full" else {}))
    with jax.enable_x64(True):
        function, at, h = objective(model, steps), jnp.asarray(model.to_real()), 1e-6
        gradient = jax.jit(jax.grad(function))
        expected = np.stack([(gradient(at + h * e) - gradient(at - h * e)) / (2 * h) for e in np.eye(at.size)])
        found = np.asarray(jax.jit(jax.hessian(function))(at))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize(
    "policy", [Global((8.0, 11.0)), RepelledGlobal((8.0, 11.0), (2.2, 3.1))], ids=lambda p: type(p).__name__
)
@pytest.mark.parametrize("tabulated", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_derivatives_in_the_map_are_those_of_the_plain_sum(policy, tabulated):
    steps = Steps.of(small_data())
    steps = steps.tabulated() if tabulated else steps

    def total(way):
        def of(saliency):
            changed = eqx.tree_at(lambda it: it.saliency, steps, saliency)
            return jnp.sum(jnp.where(steps.real, way(changed), 0.0))

        return of

    with jax.enable_x64(True):
        saliency, policy = jnp.asarray(steps.saliency), jax.tree.map(jnp.asarray, policy)
        plain = jax.grad(total(lambda it: plain_log_normaliser(policy, it)))(saliency)
        fast = jax.grad(total(lambda it: log_normaliser(policy, it, it.scene())))(saliency)
    assert np.abs(plain).max() > 1
    np.testing.assert_allclose(np.asarray(fast), np.asarray(plain), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("variance", [1e-12, 1e-20, 1e-30, 1e-200])
@pytest.mark.parametrize("policy", [Local, Global])
def test_tiny_variances_put_all_mass_on_the_nearest_cell(policy, variance):
    data = small_data()
    steps = Steps.of(data)
    model = catalogue.named_model("fixed_choice", repulsion="none")
    tiny = {"epsilon": (variance, variance)} if policy is Local else {"xi": (variance, variance)}
    certain = tiny | {"rho": 1 - 1e-9 if policy is Local else 1e-9}
    for path, map_ in enumerate(step_densities(model.with_parameters(certain), steps)):
        for step in np.flatnonzero(steps.real[path]):
            here = GRID.cell_of(*steps.history.position_deg[path, step, 0])
            assert map_[step][here] == pytest.approx(1, abs=1e-8)
            assert map_[step].sum() == pytest.approx(1, abs=1e-12)
    found = step_log_likelihoods(model.with_parameters(tiny), steps)
    assert (found <= 0).all()
    assert np.isfinite(found).all()


def test_tables_keep_their_digits_on_a_map_of_one_cell():
    """The worst map, with a repelling Gaussian that is steep where the map is and a wide one that is flat."""
    paths = small_data().paths
    values = np.full((len(small_data().maps), *GRID.shape), 1e-9)
    values[:, 3, 5] = 1.0
    maps = SaliencyMaps(GRID, small_data().maps.pictures, values / values.sum(axis=(1, 2), keepdims=True))
    steps = Steps.of(Dataset(paths, maps))
    model = catalogue.full()
    draws = np.exp(np.random.default_rng(3).uniform(-1, 3, (60, 2)))
    sets = {"epsilon": draws, "xi": np.full((60, 2), 7e5), "b": np.full(60, 0.3), "s0": np.full(60, 3.0)}
    found, expected = log_likelihoods(model, steps.tabulated(), sets), log_likelihoods(model, steps, sets)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
