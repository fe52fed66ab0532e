"""Importance sampling: moments, evidence and masses of modes against integration over a grid.

Keys are fixed; each comparison with the brute-force answer would raise a false alarm for one key in ten thousand.
"""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats
from small_problems import FALSE_ALARM, one_mode, one_mode_answer, six_numbers, two_modes, two_modes_answer

from foveate.errors import InputError
from foveate.inference import importance as module
from foveate.inference.importance import importance, log_evidence, pareto_k
from foveate.inference.mixture import Mixture
from foveate.inference.proposal import Record, learn_proposal
from foveate.inference.samples import silent
from foveate.inference.target import Target
from foveate.model.order import log_mass_in_order

PROBLEMS = {"one mode": (one_mode, one_mode_answer), "two modes": (two_modes, two_modes_answer)}
FURTHEST = stats.norm.isf(FALSE_ALARM / 2)  # standard errors


@pytest.fixture(scope="module", params=PROBLEMS)
def problem(request):
    target, answer = PROBLEMS[request.param]
    return importance(target(), jax.random.key(2)), answer(), request.param


def test_the_evidence_is_that_of_the_integral(problem):
    found, answer, _ = problem
    value, error = found.log_evidence_nats
    assert error < 0.05
    assert abs(value - answer.log_evidence) < FURTHEST * error


def test_weighted_moments_are_those_of_the_integral(problem):
    found, answer, _ = problem
    weight = np.exp(found.weighted.log_weight - found.weighted.log_weight.max())
    weight /= weight.sum()
    middle = answer.mean(answer.points)
    for power in (1, 2):
        values = (found.weighted.real - middle) ** power
        expected = answer.mean((answer.points - middle) ** power)
        mean = np.einsum("rd,rdn->n", weight, values)
        error = np.sqrt(np.einsum("rd,rdn->n", weight**2, (values - mean) ** 2))
        assert (abs(mean - expected) < FURTHEST * error).all()


def test_masses_of_modes_are_those_of_the_integral(problem):
    found, answer, name = problem
    if name == "one mode":
        assert len(found.modes.mass) == 1
        return
    assert len(found.modes.mass) == 2
    positive = float(answer.mean((answer.points[:, 0] > 0).astype(float)))
    mode = int(np.argmax(found.modes.top[:, 0]))
    assert abs(found.modes.mass[mode] - positive) < FURTHEST * max(found.modes.mass_error[mode], 0.002)


def test_resampled_draws_have_the_moments_of_the_weighted_ones(problem):
    found, answer, _ = problem
    spread = np.sqrt(answer.mean((answer.points - answer.mean(answer.points)) ** 2))
    assert (abs(found.real.mean(axis=(0, 1)) - answer.mean(answer.points)) < 0.12 * spread).all()


def test_the_same_key_gives_the_same_bits_on_any_number_of_threads():
    one, two = (importance(one_mode(), jax.random.key(4), threads=threads) for threads in (1, 2))
    assert np.array_equal(one.real, two.real)
    assert one.log_evidence_nats == two.log_evidence_nats


def test_where_weights_cannot_be_trusted_smc_takes_over(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_PARETO_K", -10.0)
    monkeypatch.setattr(module, "ATTEMPTS", 1)
    found = importance(one_mode(), jax.random.key(4), draws=8)  # fewer than SMC itself would work with
    answer = one_mode_answer()
    assert found.sampler == "smc"
    assert found.real.shape[:2] == (4, 8) == found.statistics["lp"].shape
    assert found.weighted is None
    assert found.settings["instead_of"] == "importance"
    value, error = found.log_evidence_nats
    assert abs(value - answer.log_evidence) < max(5 * error, 0.1)


def test_too_few_replicates_are_refused():
    with pytest.raises(InputError, match="at least 2 replicates"):
        importance(one_mode(), jax.random.key(1), replicates=1)


# --- parts ---------------------------------------------------------------------------------------------------------


def test_a_record_weights_every_draw_by_all_proposals():
    rng = np.random.default_rng(1)
    mixtures = [Mixture.of(np.ones(1), np.full((1, 2), at), np.eye(2)[None], 5.0) for at in (0.0, 1.0)]
    record, draws = Record.empty(2), []
    for mixture, count in zip(mixtures, (30, 50), strict=True):
        draws.append(mixture.sample(count, rng))
        record.add(mixture, draws[-1], np.zeros(count))
    everything = np.concatenate(draws)
    average = 30 / 80 * np.exp(mixtures[0].log_density(everything)) + 50 / 80 * np.exp(
        mixtures[1].log_density(everything)
    )
    np.testing.assert_allclose(record.log_weight, -np.log(average))
    halves = [Record.empty(2), Record.empty(2)]
    for half, mixture, mine in zip(halves, mixtures, draws, strict=True):
        half.add(mixture, mine, np.zeros(len(mine)))
    np.testing.assert_allclose(halves[0].merge(halves[1]).log_weight, record.log_weight)


def test_tempered_weights_keep_the_effective_draws_that_were_asked_for():
    rng = np.random.default_rng(2)
    mixture = Mixture.of(np.ones(1), np.zeros((1, 1)), np.eye(1)[None], 5.0)
    record, vectors = Record.empty(1), mixture.sample(1000, rng)
    record.add(mixture, vectors, -500 * vectors[:, 0] ** 2)
    weights, power = record.tempered(200.0)
    assert 0 < power < 1
    assert 1 / np.sum(weights**2) == pytest.approx(200, rel=0.01)
    assert record.tempered(1.0)[1] == 1.0


def test_a_proposal_finds_both_modes():
    proposal = learn_proposal(two_modes(), jax.random.key(3), silent)
    assert {-1.0, 1.0} <= set(np.sign(proposal.mixture.centre[:, 0]))


def test_evidence_of_equal_weights_has_no_error():
    assert log_evidence(np.full((4, 10), -3.0)) == (pytest.approx(-3.0), 0.0)


def test_pareto_k_tells_heavy_tails_from_light_ones():
    rng = np.random.default_rng(3)
    assert pareto_k(np.log(rng.pareto(1.2, 5000) + 1)) > 0.7
    assert pareto_k(np.log(rng.uniform(0.5, 1, 5000))) < 0.5


@pytest.mark.slow
def test_ordering_epsilon_below_xi_removes_the_rest_of_the_posterior():
    """The evidence of the ordered model is the plain one's times the share in order, posterior over prior."""
    plain = six_numbers()
    model = replace(plain.model, ordered=True)
    found, ordered = importance(plain, jax.random.key(6)), importance(Target(model, plain.steps), jax.random.key(7))
    assert (ordered.real[..., :2] < ordered.real[..., 2:4]).all()
    weight = np.exp(found.weighted.log_weight - found.weighted.log_weight.max())
    inside = (found.weighted.real[..., :2] < found.weighted.real[..., 2:4]).all(axis=-1)
    share = (weight * inside).sum() / weight.sum()
    assert 0.2 < share < 0.999
    error = np.sqrt(np.square(weight * (inside - share)).sum()) / weight.sum() / share
    expected = found.log_evidence_nats[0] + np.log(share) - float(log_mass_in_order(model.priors))
    errors = [found.log_evidence_nats[1], ordered.log_evidence_nats[1], error]
    assert abs(ordered.log_evidence_nats[0] - expected) < FURTHEST * np.linalg.norm(errors)
