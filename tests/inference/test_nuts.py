"""NUTS: the right moments, modes in the right proportions, and what it tells of itself.

Keys are fixed; a comparison with integration over a grid would raise a false alarm for one key in ten thousand.
"""

import jax
import numpy as np
import pytest
from small_problems import (
    FALSE_ALARM,
    Near,
    both_modes,
    one_mode,
    one_mode_answer,
    surprise,
    two_modes,
    two_modes_answer,
)

from foveate.errors import InputError
from foveate.inference.draws import prior_draws, spread_over
from foveate.inference.mixture import Mixture
from foveate.inference.nuts import nuts
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target, log_densities
from foveate.inference.transitions import JUMPS
from foveate.model import catalogue
from foveate.model.priors import InverseGamma
from foveate.precision import double_precision


@pytest.fixture(scope="module")
def jumping():
    """Chains between two modes; the mixture gives the modes even shares, the posterior 0.17 and 0.83."""
    return nuts(two_modes(), jax.random.key(1), chains=4, warmup=250, draws=1000, mixture=both_modes(0.5))


@pytest.mark.slow
def test_moments_are_those_of_integration_over_a_grid():
    answer = one_mode_answer()
    found = nuts(one_mode(), jax.random.key(0), chains=4, warmup=250, draws=1000)
    check_moments(found.real, answer.points, answer.weight)
    assert found.statistics["diverging"].mean() < 0.01
    assert 0.7 < found.statistics["acceptance_rate"].mean() < 0.95


def check_moments(real, points, weight):
    for name, of in {
        "first": lambda at: at[..., 0],
        "second": lambda at: at[..., 1],
        "first squared": lambda at: at[..., 0] ** 2,
        "second squared": lambda at: at[..., 1] ** 2,
        "product": lambda at: at[..., 0] * at[..., 1],
    }.items():
        assert surprise(of(real), float(weight @ of(points) / weight.sum())) > FALSE_ALARM, name


@pytest.mark.slow
def test_without_the_move_each_chain_draws_from_the_mode_where_it_starts():
    answer = two_modes_answer()
    found = nuts(
        two_modes(), jax.random.key(2), chains=4, warmup=250, draws=1000, starts=both_modes(0.5).centre[[0, 1, 0, 1]]
    )
    positive = answer.points[:, 0] > 0
    for chains, mode in ((found.real[::2], positive), (found.real[1::2], ~positive)):
        assert ((chains[..., 0] > 0) == (mode is positive)).all()
        check_moments(chains, answer.points[mode], answer.weight[mode])
    assert "independence_acceptance" not in found.statistics
    assert found.statistics["diverging"].mean() < 0.01
    assert 0.7 < found.statistics["acceptance_rate"].mean() < 0.95


def test_with_the_move_modes_have_their_right_proportions(jumping):
    answer = two_modes_answer()
    assert surprise((jumping.real[..., 0] > 0).astype(float), answer.mean(answer.points[:, 0] > 0)) > FALSE_ALARM
    check_moments(jumping.real, answer.points, answer.weight)
    assert ((jumping.real[..., 0] > 0).mean(axis=1) > 0.05).all()  # every chain was in both


def test_it_says_how_often_the_move_was_accepted_and_led_to_another_mode(jumping):
    accepted = jumping.statistics["independence_accepted"]
    assert jumping.facts["independence_accepted"] == pytest.approx(accepted.mean())
    assert jumping.statistics["independence_acceptance"].mean() == pytest.approx(accepted.mean(), abs=0.03)
    switches = (np.diff(np.sign(jumping.real[..., 0])) != 0).mean()
    assert jumping.facts["independence_switched"] == pytest.approx(switches, abs=0.005)
    assert 0.05 < jumping.facts["independence_switched"] < jumping.facts["independence_accepted"] < 1


def test_same_key_same_bits_also_where_blocks_are_not_full():
    settings = {"chains": 2, "warmup": 40, "draws": 60, "mixture": both_modes(0.5)}
    first, again, other = (nuts(two_modes(), jax.random.key(seed), **settings) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.real, again.real)
    np.testing.assert_array_equal(first.statistics["energy"], again.statistics["energy"])
    assert not np.isin(first.real, other.real).any()
    assert not np.isin(first.real[0], first.real[1]).any()
    assert first.real.shape == (2, 60, 2)
    assert np.isfinite(first.real).all()
    assert (first.statistics["n_steps"] > 0).all()


def test_another_observer_and_another_mixture_need_no_compilation(jumping):
    before = len(Near.traced)
    centre, spread = two_modes_answer().within(two_modes_answer().points[:, 0] > 0)
    alone = Mixture.of(np.ones(1), centre[None], spread[None], 5.0)
    other = two_modes(6)
    made = len(Near.traced)  # making the target may trace something of its own
    nuts(other, jax.random.key(0), chains=1, warmup=20, draws=10, mixture=alone)
    assert before > 0
    assert len(Near.traced) == made


def test_statistics_carry_the_names_of_arviz_and_evaluations_are_counted(jumping):
    names = {"lp", "diverging", "acceptance_rate", "energy", "tree_depth", "n_steps", "step_size"}
    assert names <= set(jumping.statistics)
    for name, values in jumping.statistics.items():
        assert values.shape == (4, 1000), name
        assert values.dtype == np.float64, name
    drawing = jumping.statistics["n_steps"].sum() + JUMPS * 4 * 1000
    assert jumping.evaluations == jumping.facts["warmup_evaluations"] + drawing
    assert (jumping.statistics["n_steps"] < 2 ** (jumping.statistics["tree_depth"] + 1)).all()
    lp = log_densities(two_modes(), jumping.real[2, [0, 500, 999]])
    np.testing.assert_allclose(jumping.statistics["lp"][2, [0, 500, 999]], lp, rtol=1e-12)


def test_progress_comes_between_blocks_and_may_stop_the_run():
    told = []
    nuts(two_modes(), jax.random.key(0), chains=2, warmup=60, draws=70, report=told.append)
    assert [one.done for one in told] == [50, 60, 110, 130, 180, 190, 240, 260]
    assert {one.total for one in told} == {260}
    assert [one.stage for one in told[:4]] == ["warm-up", "warm-up", "drawing", "drawing"]
    assert told[-1].facts["divergences"] >= 0

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nuts(two_modes(), jax.random.key(0), chains=1, warmup=60, draws=70, report=stop)


@double_precision
def test_default_starts_are_dispersed_but_where_data_can_tell_of_them():
    model = one_mode().model.with_priors({"xi": InverseGamma(0.2, 25.0)})  # draws up to e^30
    target = Target(model, one_mode().steps)
    assert prior_draws(target, jax.random.key(0), 200).max() > 20
    starts = dispersed_starts(target, jax.random.key(0), 36)[::3]  # those from the prior, with which chains begin
    assert starts.max() < 2 * np.log(10 * 24.0)
    assert starts.min() > 2 * np.log(0.1 * 0.75)
    assert starts.std(axis=0).min() > 0.1


@double_precision
def test_with_a_mixture_chains_start_in_its_components_in_turn():
    starts = spread_over(both_modes(0.3), jax.random.key(3), 6)
    np.testing.assert_array_equal(np.sign(starts[:, 0]), [-1, 1, -1, 1, -1, 1])
    assert len(np.unique(starts)) == starts.size


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"chains": 0}, "chains = 0: give a whole number, 1 or more"),
        ({"draws": 3}, "draws = 3: give a whole number, 4 or more"),
        ({"draws": 4.5}, "draws = 4.5"),
        ({"warmup": 19}, "warmup = 19: give a whole number, 20 or more"),
        ({"starts": np.zeros((4, 3))}, "a row of 2 numbers for each of 4 chains"),
        ({"starts": np.full((4, 2), np.inf)}, "chain 0: the posterior density is not finite at its start"),
    ],
)
def test_mistakes_are_named(wrong, words, unchecked_types):
    with pytest.raises(InputError, match=words):
        nuts(two_modes(), jax.random.key(0), **wrong)


def test_a_bare_seed_and_a_model_without_parameters_are_refused(unchecked_types):
    with pytest.raises(InputError, match="randomness needs a JAX key"):
        nuts(one_mode(), 1)
    with pytest.raises(InputError, match="nothing to draw"):
        nuts(Target(catalogue.saliency_baseline(), one_mode().steps), jax.random.key(0))
