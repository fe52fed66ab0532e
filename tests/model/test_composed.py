"""Models from named mechanisms: the paper's own from its two; each changes what a model says."""

import jax
import numpy as np
import pytest

import foveate
from foveate.errors import InputError
from foveate.example import example_data
from foveate.model import catalogue
from foveate.model.choices import FixedChoice, SaliencyRatioChoice, SoftmaxChoice
from foveate.model.composed import FEATURES_READ, MECHANISMS, MEMORY_SPAN, PAPER, RECOMMENDED, composed
from foveate.model.factors import Modulated
from foveate.model.likelihood import log_likelihood, step_log_likelihoods
from foveate.model.steps import Steps

EVERY = {
    **{f"paper + {it}": (PAPER | {it}) - ({"repulsion"} if it == "heavy_tail" else set()) for it in MECHANISMS},
    **{f"recommended - {it}": RECOMMENDED - {it} for it in sorted(RECOMMENDED)},
    **{f"recommended + {it}": RECOMMENDED | {it} | ({"anisotropic"} if it == "repulsion" else set())
       for it in sorted(set(MECHANISMS) - RECOMMENDED)},
}  # fmt: skip


@pytest.fixture(scope="module")
def steps() -> Steps:
    data = example_data(seed=1).data.select(observers=["ann"])
    return Steps.of(data.select(pictures=data.paths.pictures[:2]), memory=MEMORY_SPAN + 1)


def test_the_paper_s_mechanisms_make_its_full_model(steps):
    ours, full = composed(PAPER, name="full"), catalogue.full()
    assert ours.priors == full.priors
    assert list(ours.parameters) == list(full.parameters)
    same = ours.with_parameters(full.parameters)
    np.testing.assert_array_equal(step_log_likelihoods(same, steps), step_log_likelihoods(full, steps))


def test_without_repulsion_and_ratio_it_is_fixed_choice_without_repulsion(steps):
    ours, known = composed({"anisotropic"}, name="bare"), catalogue.fixed_choice(repulsion="none")
    assert isinstance(ours.choice, FixedChoice)
    same = ours.with_parameters(known.parameters)
    np.testing.assert_array_equal(step_log_likelihoods(same, steps), step_log_likelihoods(known, steps))


def test_the_recommended_model_is_in_the_catalogue():
    model = catalogue.named_model("wayfarer")
    assert model.policy_names == ["SalientLocal", "SalientGlobal", "Momentum", "Return"]
    assert len(model.labels) == 41
    factors = [policy.factors for policy in model.policies if isinstance(policy, Modulated)]
    held = ["Cardinal", "Turning", "SaliencyDrift", "CardinalPeaks", "TurningPeak", "Here", "VisitedBefore"]
    assert [sorted(type(it).__name__ for it in each) for each in factors] == [sorted(held)] * 4
    assert isinstance(model.choice, SoftmaxChoice)
    assert model.choice.features == FEATURES_READ
    assert model.memory == MEMORY_SPAN + 1


def test_one_variance_serves_both_axes(steps):
    """Every policy with a Gaussian says the same with one variance as with two equal ones."""
    one = composed(RECOMMENDED | {"centre"}, name="one", durations=False)
    two = composed(RECOMMENDED | {"centre", "anisotropic"}, name="two", durations=False)
    spreads = ("epsilon", "xi", "zeta", "eta", "tau")
    assert all(np.shape(one.parameters[it]) == () and np.shape(two.parameters[it]) == (2,) for it in spreads)
    assert [it for it in one.labels if it in spreads] == ["epsilon", "xi", "zeta", "eta", "tau"]
    same = two.with_parameters({it: np.full(2, one.parameters[it]) for it in spreads})
    np.testing.assert_allclose(step_log_likelihoods(one, steps), step_log_likelihoods(same, steps), rtol=1e-12)


@pytest.mark.parametrize("mechanisms", [{"ratio"}, {"salient_local"}, {"floor", "exponent"}])
def test_one_variance_serves_policies_that_nothing_modulates(mechanisms, steps):
    """Their sums, draws and maps are worked out in other ways."""
    one = composed(mechanisms, name="one", durations=False)
    two = composed(mechanisms | {"anisotropic"}, name="two", durations=False)
    names = [it for it in ("epsilon", "xi") if it in one.parameters]
    same = two.with_parameters({it: np.full(2, one.parameters[it]) for it in names})
    for some in (steps, steps.tabulated(), steps.in_batches(), steps.in_single_precision()):
        found = [np.asarray(step_log_likelihoods(it, some)) for it in (one, same)]
        np.testing.assert_allclose(*found, rtol=1e-9)
    maps = foveate.example_data(seed=1).data.maps
    paths = [foveate.simulate(it, maps, 6, jax.random.key(2)) for it in (one, same)]
    np.testing.assert_array_equal(paths[0].x_deg, paths[1].x_deg)
    data = foveate.Dataset(paths[0], maps)
    tables = [foveate.score_steps(it, data, np.asarray(it.to_real())[None]).table() for it in (one, same)]
    np.testing.assert_allclose(*(it["nss"].to_numpy() for it in tables), rtol=1e-9)


def test_a_repulsion_without_a_variance_for_each_axis_is_refused():
    with pytest.raises(InputError, match="'repulsion' is there with 'anisotropic' alone"):
        composed({"repulsion"}, name="round")


def test_durations_can_be_left_out():
    without = catalogue.named_model("wayfarer", durations=False)
    assert catalogue.named_model("wayfarer").reads_durations
    assert not without.reads_durations
    assert without.choice.features == ("amplitude", "saliency", "number", "earlier")


@pytest.mark.parametrize("mechanisms", EVERY.values(), ids=EVERY)
def test_every_combination_has_a_finite_likelihood_and_draws_from_its_priors(mechanisms, steps):
    model = composed(mechanisms, name="any", durations=False)
    assert np.isfinite(float(log_likelihood(model, steps)))
    assert np.isfinite(float(model.log_prior()))
    assert np.isfinite(np.asarray(model.draw_from_prior(jax.random.key(1)).to_real())).all()


def test_each_mechanism_changes_what_a_model_says(steps):
    said = {name: float(log_likelihood(composed(it, name=name, durations=False), steps)) for name, it in EVERY.items()}
    said |= {"paper": said["paper + ratio"], "recommended": float(log_likelihood(
        composed(RECOMMENDED, name="recommended", durations=False), steps))}  # fmt: skip
    of_the_paper = {f"paper + {it}" for it in PAPER}
    changed = {name: value for name, value in said.items() if name not in of_the_paper}
    # Choices by features and a drift start from no effect: the parameters differ, not yet the map.
    for base, same in (("recommended", "recommended - features"), ("recommended", "recommended + ratio"),
                       ("paper", "paper + drift"), ("recommended", "recommended - drift")):  # fmt: skip
        assert changed.pop(same) == pytest.approx(said[base], rel=1e-12)
    assert len({round(value, 6) for value in changed.values()}) >= len(changed) - 1  # an exponent needs no repulsion


def test_the_exponent_is_held_at_one_where_it_is_left_out():
    model = composed(RECOMMENDED - {"exponent"}, name="held")
    assert float(model.parameters["alpha"]) == 1.0
    drawn = [float(model.draw_from_prior(jax.random.key(seed)).parameters["alpha"]) for seed in range(20)]
    assert 0.001 < np.std(drawn) < 0.02


def test_with_more_than_two_policies_a_softmax_by_the_ratio_stands_for_the_logistic_choice():
    assert isinstance(composed(PAPER, name="two").choice, SaliencyRatioChoice)
    choice = composed(PAPER | {"momentum"}, name="three").choice
    assert isinstance(choice, SoftmaxChoice)
    assert choice.features == ("ratio",)
    assert choice.among == ("local", "global", "momentum")


def test_what_is_no_mechanism_is_refused(unchecked_types):
    with pytest.raises(InputError, match=r"no mechanism 'momentun'; do you mean 'momentum'\?"):
        composed({"momentun"}, name="any")
    with pytest.raises(InputError, match="a repulsion or a heavy tail"):
        composed({"repulsion", "heavy_tail"}, name="any")
    with pytest.raises(InputError, match="give a collection of names"):
        composed("momentum", name="any")
    with pytest.raises(InputError, match="'wayfarer' is not in the paper"):
        catalogue.from_published("wayfarer")
    with pytest.raises(InputError, match="model 'wayfarer' has no parameter sigma"):
        catalogue.named_model("wayfarer", sigma=3.0)
