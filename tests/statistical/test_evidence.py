"""Evidence and masses of modes of real observers: importance sampling against SMC that starts from the prior.

The two have nothing in common but the density. Keys are fixed; the false-alarm rate is 1e-3 a comparison: SMC's error
is from the spread of eight replicates, so the comparison is with Student's t.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from foveate.data.readers.potsdam35 import read_potsdam35
from foveate.inference.importance import importance
from foveate.inference.smc import tempered
from foveate.inference.target import Target
from foveate.model.catalogue import named_model

pytestmark = pytest.mark.slow

REPLICATES = 8
FURTHEST = stats.t.isf(1e-3 / 2, REPLICATES - 1)


@pytest.mark.parametrize("observer", [1, 2, 20])
def test_two_methods_agree_on_evidence_and_modes(observer, potsdam35_folder):
    target = Target.of(named_model("full"), read_potsdam35(potsdam35_folder).select(observers=[observer]))
    by_weights = importance(target, jax.random.key(11))
    by_particles = tempered(target, jax.random.key(12), particles=1000, replicates=REPLICATES, moves=12)
    (one, error), (other, spread) = by_weights.log_evidence_nats, by_particles.log_evidence_nats
    weight = np.exp(by_weights.weighted.log_weight - by_weights.weighted.log_weight.max())
    print(f"observer {observer}: {one:.3f} ± {error:.3f} against {other:.3f} ± {spread:.3f} nats")
    assert spread < 0.3
    assert abs(one - other) < FURTHEST * np.hypot(error, spread)
    # Which mode: the sign of b, and whether epsilon is above its median on either axis.
    middle = np.median(by_weights.real[..., :2], axis=(0, 1))
    for name, of in {
        "b > 0": lambda real: real[..., 4] > 0,
        "epsilon row": lambda real: real[..., 0] > middle[0],
        "epsilon column": lambda real: real[..., 1] > middle[1],
    }.items():
        inside = of(by_weights.weighted.real)
        share = (weight * inside).sum() / weight.sum()
        share_error = np.sqrt(np.square(weight * (inside - share)).sum()) / weight.sum()
        # A replicate counts by the evidence that it found.
        own = np.exp(np.array(by_particles.facts["log_evidence_nats"]) - other)
        by_replicate = of(by_particles.real).mean(axis=1)
        mean = (own * by_replicate).sum() / own.sum()
        mean_error = np.sqrt(np.square(own * (by_replicate - mean)).sum()) / own.sum()
        print(f"  P({name}): {share:.3f} ± {share_error:.3f} against {mean:.3f} ± {mean_error:.3f}")
        assert abs(share - mean) < FURTHEST * np.hypot(share_error, mean_error) + 0.005
