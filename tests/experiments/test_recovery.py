"""The recovery experiment has the paper's truth, priors and lengths, and finds the truth."""

import json

import jax
import numpy as np
import pytest

from foveate.errors import InputError
from foveate.example import example_data
from foveate.experiments.recovery import TRUTHS, Recovery, far_apart, recover, recovery_data, recovery_model
from foveate.inference.target import Target
from foveate.model.catalogue import to_published


@pytest.fixture(scope="module")
def maps():
    return example_data().data.maps


@pytest.fixture(scope="module")
def found(maps) -> Recovery:
    return recover("local_saliency", maps, jax.random.key(1), chains=3, sampler="importance", draws=200)


@pytest.mark.parametrize("name", TRUTHS)
def test_truths_are_the_published_ones(name):
    values = to_published(recovery_model(name))
    expected = {"epsilon": (25, 35), "xi": (230, 280), "rho": 0.5, "b": 0.2, "s0": 3}
    if name == "local_choice":
        expected |= {"b": 3500, "s0": 0.001}
    for parameter, value in values.items():
        np.testing.assert_allclose(value, expected[parameter])


def test_priors_are_those_of_the_experiment():
    """In px^2 of the released coordinates: epsilon IG(3, 80), xi IG(3, 600) for every model."""
    px_deg = np.array([25.6892708037514 / 64, 32.1115885046892 / 64])
    for name in TRUTHS:
        priors = recovery_model(name).priors
        for parameter, scale in {"epsilon": 80, "xi": 600}.items():
            if parameter in priors:
                assert float(priors[parameter].shape) == 3  # type: ignore[attr-defined]
                np.testing.assert_allclose(priors[parameter].scale, scale * px_deg**2)  # type: ignore[attr-defined]
    full, level = recovery_model("full").priors, recovery_model("local_choice").priors
    assert [(float(full[p].mean), float(full[p].variance)) for p in ("b", "s0")] == [(1.5, 1), (2.5, 1)]  # type: ignore[attr-defined]
    assert float(level["b"].mean) == pytest.approx(3000 / 4096)  # type: ignore[attr-defined]


def test_one_observer_looks_at_every_picture_for_30_to_36_fixations(maps):
    data = recovery_data(recovery_model("full"), maps, jax.random.key(1))
    assert data.paths.observers == [1]
    assert sorted(data.paths.pictures) == sorted(maps.pictures)
    assert data.paths.length.min() >= 30
    assert data.paths.length.max() <= 36
    assert len(set(data.paths.length.tolist())) > 2


def test_local_saliency_recovers_its_truth(found):
    """Each truth is outside its 99.9 % interval once in 1,000 such experiments; the key is fixed."""
    assert (found.quantiles > 0.0005).all()
    assert (found.quantiles < 0.9995).all()
    assert found.posterior.samples.real.shape == (3, 200, 2)
    assert found.posterior.diagnosis.max_rhat < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("name", TRUTHS)
def test_chains_from_far_apart_find_the_truth(name, maps):
    found = recover(name, maps, jax.random.key(1), chains=4, sampler="nuts")
    assert found.posterior.diagnosis.max_rhat < 1.02
    assert (found.quantiles > 0.0005).all()
    assert (found.quantiles < 0.9995).all()


def test_the_table_says_where_the_truth_lies(found):
    table = found.table()
    numbers = found.posterior.numbers.reshape(-1, 2)
    np.testing.assert_allclose(table["quantile"], (numbers < table["truth"].to_numpy()).mean(axis=0))
    assert table["inside"].tolist() == [
        low <= truth <= high for low, truth, high in zip(table["2.5%"], table["truth"], table["97.5%"], strict=True)
    ]
    said = json.loads(json.dumps(found.to_dict()))
    assert said["numbers"]["xi_row"]["truth"] == pytest.approx(table.loc["xi_row", "truth"])
    assert "true values lie in their 95% interval" in said["verdict"]


def test_chains_start_far_apart(maps):
    truth = recovery_model("local_saliency")
    target = Target.of(truth, recovery_data(truth, maps, jax.random.key(1)))
    starts = far_apart(target, jax.random.key(2), 10)
    assert starts.shape == (10, 2)
    # the posterior's own spread on the log scale is about 0.15
    assert (starts.std(axis=0) > 0.5).all()


def test_impossible_settings_are_refused(maps, unchecked_types):
    with pytest.raises(InputError, match="no recovery experiment for model 'saliency_baseline'"):
        recover("saliency_baseline", maps, jax.random.key(1))
    with pytest.raises(InputError, match="sampler = 'guess'"):
        recover("full", maps, jax.random.key(1), sampler="guess")  # type: ignore[arg-type]
