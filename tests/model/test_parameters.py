"""Parameters of a model: one value to a name, changed together, checked, and taken to the real line and back."""

import jax
import numpy as np
import pytest

from contracts.table import Row, rows_of
from foveate.errors import InputError
from foveate.model import catalogue
from foveate.model.choices import FixedChoice, OnlyPolicy, SaliencyLevelChoice, SaliencyRatioChoice
from foveate.model.model import Model
from foveate.model.policies import Global, Local, RepelledGlobal
from foveate.model.priors import Beta, InverseGamma, LogNormal, Normal

every_model = pytest.mark.parametrize("row", rows_of(Model))
PRIORS = {"epsilon": LogNormal(1.0, 1.0), "xi": LogNormal(30.0, 1.0), "rho": Beta(1.0, 1.0)}


@every_model
def test_parameters_are_those_that_were_given(row: Row):
    model = row.make()
    assert set(model.parameters) == set(row.parameters) == set(model.priors)
    for name, value in row.parameters.items():
        np.testing.assert_array_equal(model.parameters[name], value)
        assert model.parameters[name].dtype == np.float64


def test_labels_name_every_number_in_order():
    assert catalogue.named_model("full").labels == ["epsilon_row", "epsilon_column", "xi_row", "xi_column", "b", "s0"]
    assert catalogue.named_model("fixed_choice", repulsion="none").labels[-1] == "rho"
    assert catalogue.named_model("local_saliency").labels == ["xi_row", "xi_column"]
    assert catalogue.named_model("saliency_baseline").labels == []


def test_epsilon_of_both_policies_is_one_parameter():
    model = catalogue.named_model("full")
    changed = model.with_parameters({"epsilon": (1.0, 2.0)})
    assert isinstance(changed.policies[0], Local)
    assert isinstance(changed.policies[1], RepelledGlobal)
    for policy in changed.policies:
        np.testing.assert_array_equal(policy.epsilon, [1.0, 2.0])
    np.testing.assert_array_equal(changed.parameters["xi"], model.parameters["xi"])
    assert len(changed.to_real()) == 6


def test_a_model_is_not_changed_by_its_changed_copy():
    model = catalogue.named_model("full", b=0.5)
    changed = model.with_parameters({"b": -2.0})
    assert (float(model.parameters["b"]), float(changed.parameters["b"])) == (0.5, -2.0)
    assert changed.name == "full"
    other = model.with_priors({"b": Normal(3.0, 1.0)})
    assert float(other.priors["b"].mean) == 3.0
    assert float(model.priors["b"].mean) == 0.0


@every_model
def test_parameters_survive_the_way_to_the_real_line_and_back(row: Row):
    model = row.make()
    vector = model.to_real()
    assert vector.shape == (len(model.labels),)
    assert vector.dtype == np.float64
    changed = model.from_real(vector + 0.3)
    np.testing.assert_allclose(changed.to_real(), vector + 0.3, rtol=1e-12)
    for name, value in model.from_real(vector).parameters.items():
        np.testing.assert_allclose(value, model.parameters[name], rtol=1e-13)


def test_the_real_line_is_in_the_order_of_the_labels():
    model = catalogue.named_model("fixed_choice", epsilon=(2.0, 3.0), xi=(5.0, 7.0), rho=0.2)
    np.testing.assert_allclose(model.to_real(), [*np.log([2.0, 3.0, 5.0, 7.0]), np.log(0.2 / 0.8)], rtol=1e-13)
    assert float(model.log_jacobian(model.to_real())) == pytest.approx(np.log(2 * 3 * 5 * 7 * 0.2 * 0.8), rel=1e-13)


@every_model
def test_log_prior_is_the_sum_over_parameters(row: Row):
    model = row.make()
    with jax.enable_x64(True):
        parts = [float(model.priors[name].log_density(value)) for name, value in model.parameters.items()]
    assert float(model.log_prior()) == pytest.approx(sum(parts), rel=1e-14)


def test_draws_from_the_prior_are_new_models_with_other_values():
    model = catalogue.named_model("full")
    first, again, second = (model.draw_from_prior(jax.random.key(seed)) for seed in (1, 1, 2))
    for name in model.parameters:
        np.testing.assert_array_equal(first.parameters[name], again.parameters[name])
        assert not np.array_equal(first.parameters[name], second.parameters[name])
    assert len({float(value) for value in first.parameters["xi"]}) == 2
    assert catalogue.named_model("saliency_baseline").draw_from_prior(jax.random.key(1)).parameters == {}


def test_memory_is_the_longest_of_the_parts():
    assert catalogue.named_model("full").memory == 2
    assert catalogue.named_model("saliency_baseline").memory == 2


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def as_a_user_runs_it(unchecked_types):
    """Without the type checker, which would speak first."""


@pytest.mark.parametrize("value", [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (np.inf, 1.0)])
def test_variances_that_are_not_positive_are_refused(value):
    for make in (lambda: Local(value), lambda: catalogue.named_model("full", epsilon=value)):
        with pytest.raises(InputError, match=r"epsilon = .*: variances must be positive numbers of deg\^2"):
            make()
    with pytest.raises(InputError, match=r"xi = .*variances must be positive"):
        catalogue.named_model("full").with_parameters({"xi": value})


@pytest.mark.parametrize("value", [(1.0,), (1.0, 2.0, 3.0), ((1.0, 2.0), (1.0, 2.0))])
def test_variances_that_are_no_pair_are_refused(value):
    with pytest.raises(
        InputError, match=r"xi has shape .*: give two variances, \(row, column\), or one for both, in deg"
    ):
        Global(value)
    with pytest.raises(InputError, match=r"xi has shape .*: give two variances, \(row, column\), in deg\^2"):
        RepelledGlobal(value, (1.0, 2.0))


def test_a_repulsion_needs_a_variance_for_each_axis():
    with pytest.raises(InputError, match=r"xi has shape \(\): give two variances, \(row, column\), in deg\^2"):
        RepelledGlobal(3.0, (1.0, 2.0))


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.1, 1.1, np.nan])
def test_rho_outside_zero_to_one_is_refused(rho):
    with pytest.raises(InputError, match=r"rho = .*: a probability between 0 and 1 is needed"):
        catalogue.named_model("fixed_choice", rho=rho)


@pytest.mark.parametrize("name", ["b", "s0"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_choice_parameters_that_are_not_finite_are_refused(name, value):
    with pytest.raises(InputError, match=rf"{name} = .*: a finite number is needed"):
        catalogue.named_model("full", **{name: value})


@pytest.mark.parametrize(
    "make",
    [
        lambda: SaliencyRatioChoice((0.1, 0.2), 1.0),
        lambda: SaliencyLevelChoice(0.1, (1.0, 2.0)),
        lambda: FixedChoice((0.1, 0.2)),
    ],
)
def test_choice_parameters_that_are_not_one_number_are_refused(make):
    with pytest.raises(InputError, match=r"(b|s0|rho) has shape \(2,\): give one number"):
        make()


def test_unknown_parameters_are_refused():
    with pytest.raises(InputError, match=r"model 'full' has no parameter sigma; it has epsilon, xi, b, s0"):
        catalogue.named_model("full").with_parameters({"sigma": 1.0})


def test_one_name_with_two_values_is_refused():
    policies = (Local((1.0, 2.0)), RepelledGlobal((30.0, 30.0), (1.0, 2.5)))
    with pytest.raises(InputError, match=r"epsilon is \[1\. 2\.\] in one part and \[1\.\s+2\.5\] in another.*equal"):
        Model(policies, FixedChoice(0.5), PRIORS, "mine")


def test_a_choice_among_another_number_of_policies_is_refused():
    with pytest.raises(InputError, match=r"model 'mine': FixedChoice chooses among 2 policies, but there are 1"):
        Model((Local((1.0, 2.0)),), FixedChoice(0.5), PRIORS, "mine")


def test_priors_that_do_not_match_the_parameters_are_refused():
    local = (Local((1.0, 2.0)),)
    with pytest.raises(InputError, match=r"model 'mine': priors and parameters do not match in epsilon"):
        Model(local, OnlyPolicy(), {}, "mine")
    with pytest.raises(InputError, match=r"do not match in rho, xi"):
        Model(local, OnlyPolicy(), PRIORS, "mine")
    with pytest.raises(InputError, match=r"do not match in sigma"):
        catalogue.named_model("full").with_priors({"sigma": Normal(0.0, 1.0)})


def test_a_prior_of_another_shape_than_its_parameter_is_refused():
    with pytest.raises(InputError, match=r"prior of b has shape \(2,\), the parameter \(\)"):
        catalogue.named_model("full").with_priors({"b": Normal((0.0, 1.0), 1.0)})
    with pytest.raises(InputError, match=r"prior of epsilon has shape \(3,\), the parameter \(2,\)"):
        catalogue.named_model("full").with_priors({"epsilon": LogNormal((1.0, 2.0, 3.0), 1.0)})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Normal(0.0, 0.0), r"Normal prior: variance = 0.*positive and finite"),
        (lambda: Normal(np.nan, 1.0), r"Normal prior: mean = nan.*finite"),
        (lambda: InverseGamma(-1.0, 2.0), r"InverseGamma prior: shape = -1.*positive and finite"),
        (lambda: InverseGamma(1.0, (2.0, 0.0)), r"InverseGamma prior: scale = .*positive and finite"),
        (lambda: LogNormal(0.0, 1.0), r"LogNormal prior: median = 0.*positive and finite"),
        (lambda: LogNormal(1.0, np.inf), r"LogNormal prior: spread = inf.*positive and finite"),
        (lambda: Beta(0.0, 1.0), r"Beta prior: first = 0.*positive and finite"),
    ],
)
def test_priors_that_are_no_distribution_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
