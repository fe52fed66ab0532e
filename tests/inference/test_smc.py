"""Tempered SMC: the right moments, evidence and proportions of modes, from the prior and from a mixture.

Keys are fixed; a comparison with integration over a grid would raise a false alarm for one key in ten thousand.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats
from small_problems import (
    FALSE_ALARM,
    Answer,
    Near,
    both_modes,
    one_mode,
    one_mode_answer,
    six_numbers,
    two_modes,
    two_modes_answer,
)

from foveate.errors import InputError
from foveate.inference import smc
from foveate.inference.mixture import Mixture
from foveate.inference.samples import Samples
from foveate.inference.smc import tempered
from foveate.inference.target import Target, log_densities
from foveate.model import catalogue
from foveate.model.priors import InverseGamma
from foveate.precision import double_precision

# Many and small: their means are what the tests compare, and few of them would tell little.
REPLICATES, PARTICLES = 20, 250


@pytest.fixture(scope="module")
def from_prior():
    return tempered(two_modes(), jax.random.key(1), particles=PARTICLES, replicates=REPLICATES)


def check_moments(found: Samples, answer: Answer) -> None:
    """Replicates are independent: their means are a sample whose expectation is known."""
    middle = answer.mean(answer.points)
    for name, of in {
        "first": lambda away: away[..., 0],
        "second": lambda away: away[..., 1],
        "first squared": lambda away: away[..., 0] ** 2,
        "second squared": lambda away: away[..., 1] ** 2,
        "product": lambda away: away[..., 0] * away[..., 1],
        "sign": lambda away: np.sign(away[..., 0] + middle[0]),
    }.items():
        means, expected = of(found.real - middle).mean(axis=1), float(answer.mean(of(answer.points - middle)))
        if means.std() > 0:
            assert stats.ttest_1samp(means, expected).pvalue > FALSE_ALARM, name
        # And the error is small, else this says nothing: a tenth of the posterior's own spread.
        spread = np.sqrt(answer.mean((of(answer.points - middle) - expected) ** 2))
        assert abs(means.mean() - expected) < 0.1 * spread, name


def check_evidence(found: Samples, answer: Answer, most_error: float) -> None:
    assert found.log_evidence_nats is not None
    estimate, error = found.log_evidence_nats
    assert error < most_error
    assert abs(estimate - answer.log_evidence) < stats.t.isf(FALSE_ALARM / 2, len(found.real) - 1) * error


def test_from_the_prior_moments_and_evidence_are_those_of_integration_over_a_grid():
    found = tempered(one_mode(), jax.random.key(0), particles=PARTICLES, replicates=REPLICATES)
    check_moments(found, one_mode_answer())
    check_evidence(found, one_mode_answer(), 0.1)


def test_modes_have_their_right_proportions_and_the_evidence_is_that_of_both(from_prior):
    check_moments(from_prior, two_modes_answer())
    check_evidence(from_prior, two_modes_answer(), 0.1)


@pytest.mark.slow
def test_from_a_mixture_with_wrong_shares_it_is_the_same_posterior_at_fewer_evaluations(from_prior):
    found = tempered(two_modes(), jax.random.key(2), particles=PARTICLES, replicates=REPLICATES, start=both_modes(0.6))
    check_moments(found, two_modes_answer())
    check_evidence(found, two_modes_answer(), 0.05)
    assert found.evaluations < 0.8 * from_prior.evaluations


def test_few_moves_are_made_up_for_by_resampling():
    found = tempered(two_modes(), jax.random.key(5), particles=2 * PARTICLES, replicates=REPLICATES, moves=1)
    check_moments(found, two_modes_answer())
    check_evidence(found, two_modes_answer(), 0.1)


@pytest.mark.slow
def test_with_six_numbers_the_way_from_the_prior_and_from_a_mixture_lead_to_the_same_evidence():
    """A mixture that moved the very particles it was fitted to would make the first one too small."""
    target = six_numbers()
    far = tempered(target, jax.random.key(8), particles=200, replicates=30)
    real = far.real.reshape(-1, 6)
    start = smc._fitted(real, np.full(len(real), 1 / len(real)), np.random.default_rng(0))
    near = tempered(target, jax.random.key(9), particles=1000, replicates=6, start=start)
    evidences = (np.array(found.facts["log_evidence_nats"]) for found in (far, near))
    assert stats.ttest_ind(*evidences, equal_var=False).pvalue > FALSE_ALARM
    assert near.log_evidence_nats[1] < 0.03


def test_a_start_without_one_of_the_modes_misses_it():
    """What the moments above would not survive: the start must cover all modes."""
    centre, spread = two_modes_answer().within(two_modes_answer().points[:, 0] > 0)
    alone = Mixture.of(np.ones(1), centre[None], 0.2 * spread[None], 50.0)
    found = tempered(two_modes(), jax.random.key(3), particles=200, replicates=2, start=alone)
    assert (found.real[..., 0] > 0).all()


@double_precision
def test_moves_leave_the_posterior_as_it_is_whatever_they_propose_from():
    """Independent draws of the posterior by brute force stay such draws, also with a proposal beside the mark."""
    target, answer = two_modes(), two_modes_answer()
    rng = np.random.default_rng(8)
    places = answer.points[rng.choice(len(answer.points), 2000, p=answer.weight)]
    places += rng.uniform(-0.5, 0.5, places.shape) * np.array([0.05, 0.4])  # anywhere in the grid's cell
    proposals = smc._proposals(places, np.full(2000, 1 / 2000), rng)
    first, second = (replace(one, centre=one.centre + np.array([0.3, 2.0])) for one in proposals)
    half = np.arange(2000) % 2
    nowhere = smc.Particles(places, np.full(2000, -np.inf), np.full(2000, -np.inf))
    held, _ = smc._moved(target, None, (first, second), half, nowhere, jax.random.key(6), 1.0, 0, lambda share: None)
    moved, accepted = smc._moved(
        target, None, (first, second), half, held, jax.random.key(7), 1.0, 15, lambda share: None
    )
    assert 0.1 < accepted.mean() < 0.9
    assert (moved.real != places).any(axis=1).mean() > 0.9
    middle = answer.mean(answer.points)
    for of in (lambda away: away, np.square, lambda away: np.sign(away[:, :1] + middle[0])):
        expected = answer.mean(of(answer.points - middle))
        assert stats.ttest_1samp(of(moved.real - middle), expected).pvalue.min() > FALSE_ALARM


def test_same_key_same_bits_and_replicates_are_independent():
    settings = {"particles": 60, "replicates": 2}
    first, again = (tempered(two_modes(), jax.random.key(4), **settings) for _ in range(2))
    np.testing.assert_array_equal(first.real, again.real)
    assert first.log_evidence_nats == again.log_evidence_nats
    assert not np.isin(first.real[0], first.real[1]).any()


def test_what_it_tells_of_itself(from_prior):
    assert from_prior.real.shape == (REPLICATES, PARTICLES, 2)
    expected = log_densities(two_modes(), from_prior.real[3, :40])
    np.testing.assert_allclose(from_prior.statistics["lp"][3, :40], expected, rtol=1e-12)
    for temperatures in from_prior.facts["temperatures"]:
        assert (np.diff(temperatures) > 0).all()
        assert temperatures[-1] == 1
    taken = sum(len(temperatures) for temperatures in from_prior.facts["temperatures"])
    assert from_prior.evaluations == PARTICLES * (REPLICATES + 6 * taken)
    evidences = np.array(from_prior.facts["log_evidence_nats"])
    assert from_prior.log_evidence_nats[0] == pytest.approx(np.log(np.exp(evidences).mean()))
    assert from_prior.log_evidence_nats[1] == pytest.approx(evidences.std(ddof=1) / np.sqrt(REPLICATES), rel=0.3)


def test_temperatures_and_other_observers_need_no_compilation(from_prior):
    other = two_modes(6)
    before = len(Near.traced)
    tempered(other, jax.random.key(0), particles=60, replicates=2, moves=2)
    assert len(Near.traced) == before > 0


def test_a_prior_with_draws_beyond_all_numbers_poisons_nothing():
    """Draws up to e^700 and beyond: most are cut or have no finite density, and the others go on."""
    model = one_mode().model.with_priors({"xi": InverseGamma(0.002, 10.0)})
    found = tempered(Target(model, one_mode().steps), jax.random.key(0), particles=100, replicates=2)
    assert np.isfinite(found.real).all()
    assert np.isfinite(found.statistics["lp"]).all()
    assert np.isfinite(found.log_evidence_nats).all()


@pytest.mark.parametrize("places", [1, 2, 3, 20])
def test_copies_of_a_few_particles_still_make_a_proposal(places):
    rng = np.random.default_rng(places)
    real = rng.standard_normal((places, 6))[rng.integers(places, size=100)] * [1, 1, 1, 1e-3, 1, 1e3]
    for one in smc._proposals(real, rng.dirichlet(np.ones(100)), rng):
        assert np.isfinite(one.component_log_densities(real)).all()
    smc._proposals(real, np.where(np.arange(100) < 3, 1 / 3, 0.0), rng)  # all the weight in a few, of one half


def test_progress_never_goes_back_and_may_stop_the_run():
    told = []
    tempered(two_modes(), jax.random.key(0), particles=60, replicates=2, report=told.append)
    done = [one.done for one in told]
    assert done == sorted(done)
    assert done[-1] == told[-1].total == 200
    assert told[-1].facts["temperature"] == 1

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tempered(two_modes(), jax.random.key(0), particles=60, replicates=2, report=stop)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"particles": 19}, "particles = 19: give a whole number, 20 or more"),
        ({"replicates": 1}, "replicates = 1: give a whole number, 2 or more"),
        ({"moves": 0}, "moves = 0: give a whole number, 1 or more"),
    ],
)
def test_mistakes_are_named(wrong, words, unchecked_types):
    with pytest.raises(InputError, match=words):
        tempered(one_mode(), jax.random.key(0), **wrong)


def test_a_bare_seed_and_a_model_without_parameters_are_refused(unchecked_types):
    with pytest.raises(InputError, match="randomness needs a JAX key"):
        tempered(one_mode(), 1)
    with pytest.raises(InputError, match="nothing to draw"):
        tempered(Target(catalogue.saliency_baseline(), one_mode().steps), jax.random.key(0))
