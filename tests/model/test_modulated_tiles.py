"""The kernel for GPUs, run step by step on this processor: the sums and slopes of the loop for processors.

That it compiles for a GPU, and how fast it is there, only a machine with one can tell (`benchmarks/gpu.py`).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from contracts.situations import MEMORY, dataset_on
from foveate.data.grid import Extent, Grid
from foveate.model import modulated_sums
from foveate.model.catalogue import named_model
from foveate.model.likelihood import joint_log_density
from foveate.model.model import Model
from foveate.model.steps import Steps


def values_and_slopes(model: Model, steps: Steps) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of all steps, and how their sum changes with the model's numbers."""

    def total(vector):
        each = jnp.where(steps.real, joint_log_density(model.from_real(vector), steps), 0.0)
        return jnp.sum(each), each

    with jax.enable_x64(True):
        (_, each), slopes = jax.jit(jax.value_and_grad(total, has_aux=True))(jnp.asarray(model.to_real()))
    return np.asarray(each), np.asarray(slopes)


@pytest.mark.parametrize(("picture", "shape"), [("lumpy", (8, 16)), ("half", (9, 12))])
def test_the_kernel_has_the_values_and_slopes_of_the_loop(picture, shape, monkeypatch):
    """Also where sides are no powers of two, and where half of the map is empty."""
    data = dataset_on(Grid(*shape, Extent(18.0, 31.0))).select(pictures=[picture])
    steps = Steps.of(data, memory=MEMORY).in_single_precision()
    model = named_model("wayfarer").with_parameters({"upward": 0.3, "sideways": -0.4, "delta": 0.3, "kappa": 0.4})
    loop, loop_slopes = values_and_slopes(model, steps)
    monkeypatch.setattr(modulated_sums, "available", lambda: True)
    kernel, kernel_slopes = values_and_slopes(model, steps.in_batches())
    np.testing.assert_allclose(kernel, loop, atol=2e-5)
    assert np.abs(loop_slopes).max() > 1
    np.testing.assert_allclose(kernel_slopes, loop_slopes, rtol=2e-4, atol=2e-4)
