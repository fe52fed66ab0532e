"""Double precision inside, whatever the host program uses, and no trace of it outside."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from samples import GRID, small_data

from foveate.model import catalogue
from foveate.model.history import History, Picture
from foveate.model.likelihood import log_likelihoods, step_log_likelihoods, value_and_gradient
from foveate.model.steps import Steps
from oracles import paper

PARAMETERS = {"epsilon": (1.7, 4.1), "xi": (31.0, 19.0), "b": 0.7, "s0": 1.9}

HOST = """
import json
import jax, jax.numpy as jnp
before = jnp.ones(3).dtype.name
from test_precision import results
found = results()
print(json.dumps({
    "x64": bool(jax.config.jax_enable_x64),
    "ones": [before, jnp.ones(3).dtype.name],
    "types": {name: value.dtype.name for name, value in found.items()},
    "values": {name: value.ravel().tolist() for name, value in found.items()},
}))
"""


def results() -> dict:
    """What the public calls return for the small data set."""
    data = small_data()
    model, steps = catalogue.named_model("full", **PARAMETERS), Steps.of(data)
    picture = Picture.whole(GRID, data.maps["wood"])
    history = History.of(picture, np.array([3.0, 7.0]), np.array([5.0, 12.0]))
    value, gradient = value_and_gradient(model, steps)
    batch = {name: np.asarray(parameter)[None] for name, parameter in model.parameters.items()}
    return {
        "density": model.log_density(history, picture),
        "policies": model.policy_log_densities(history, picture),
        "steps": step_log_likelihoods(model, steps),
        "value": value,
        "batch": log_likelihoods(model, steps, batch),
        "prior": model.log_prior(),
        "real": model.to_real(),
        "back": model.from_real(model.to_real()).parameters["xi"],
        "draw": model.draw_from_prior(jax.random.key(3)).parameters["epsilon"],
        **{f"gradient of {name}": part for name, part in gradient.items()},
    }


@pytest.fixture(scope="module")
def host() -> dict:
    """The results in a program of its own that leaves JAX as it is."""
    folders = [Path(__file__).parent, Path(__file__).parent.parent]
    start = f"import sys; sys.path[:0] = {[str(folder) for folder in folders]!r}\n"
    run = subprocess.run([sys.executable, "-c", start + HOST], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_results_are_double_precision_in_a_single_precision_program(host):
    assert set(host["types"].values()) == {"float64"}


def test_the_program_stays_in_single_precision(host):
    assert host["x64"] is False
    assert host["ones"] == ["float32", "float32"]


def test_results_are_those_of_a_double_precision_program(host):
    with jax.enable_x64(True):
        expected = {name: np.asarray(value).ravel() for name, value in results().items()}
    assert set(host["values"]) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(host["values"][name], values, rtol=1e-12, err_msg=name)


def test_results_are_those_of_the_oracle(host):
    data = small_data()
    extent = GRID.extent
    scenes = {name: paper.Scene(data.maps[name], extent.height_deg, extent.width_deg) for name in data.maps.pictures}
    expected = [
        paper.path_log_probabilities(paper.full, scenes[path.picture], path.y_deg, path.x_deg, **PARAMETERS)
        for path in data.paths
    ]
    found = np.reshape(host["values"]["steps"], (len(expected), -1))
    for steps, likelihoods in zip(found, expected, strict=True):
        np.testing.assert_allclose(steps[: len(likelihoods)], likelihoods, rtol=1e-12)
    total = sum(likelihoods.sum() for likelihoods in expected)
    np.testing.assert_allclose(host["values"]["value"], total, rtol=1e-12)
    np.testing.assert_allclose(host["values"]["batch"], total, rtol=1e-12)
    density = np.log(paper.full(scenes["wood"], [(3.0, 5.0), (7.0, 12.0)], **PARAMETERS))
    np.testing.assert_allclose(host["values"]["density"], density.ravel(), rtol=1e-12)
