"""Laplace's approximation, weighted and moved: against a posterior that is known, an integral, importance sampling.

Keys are fixed; each comparison with the brute-force answer would raise a false alarm for one key in ten thousand.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from small_problems import FALSE_ALARM, one_mode, one_mode_answer, six_numbers, surprise

from foveate.errors import InputError
from foveate.inference import laplace as module
from foveate.inference.ascent import ascend
from foveate.inference.curvature import LEVEL_NATS, Top, as_covariance, find_tops, hessian
from foveate.inference.diagnosis import chain_diagnostics, diagnose
from foveate.inference.importance import importance
from foveate.inference.laplace import _explored, _resampled, laplace, smoothed_weights
from foveate.inference.mixture import Mixture
from foveate.inference.moves import move
from foveate.inference.plans import alone
from foveate.inference.samples import Weighted, silent
from foveate.inference.target import Target
from foveate.model.catalogue import full

FURTHEST = stats.norm.isf(FALSE_ALARM / 2)  # standard errors

# Twelve numbers that hang together, with scales from 0.05 to 2; far enough off centre for a sign to show.
SIZE = 12
MIDDLE = np.linspace(-1.0, 2.0, SIZE)
_RANDOM = np.random.default_rng(5).standard_normal((SIZE, SIZE))
_TOGETHER = _RANDOM @ _RANDOM.T + 4 * np.eye(SIZE)
_SCALES = np.geomspace(0.05, 2.0, SIZE)
COVARIANCE = np.outer(_SCALES, _SCALES) * _TOGETHER / np.sqrt(np.outer(np.diag(_TOGETHER), np.diag(_TOGETHER)))
LOG_EVIDENCE = 3.25


class Known(Target):
    """A posterior that is a multivariate Student-t (or, with infinite freedom, a Gaussian) with a known integral."""

    freedom: float = eqx.field(static=True, default=np.inf)
    noise: float = eqx.field(static=True, default=0.0)

    @property
    def size(self) -> int:
        return SIZE

    def coarsened(self):
        return self

    def log_density(self, vector):
        away = vector - MIDDLE
        squared = away @ np.linalg.inv(COVARIANCE) @ away
        wrong = self.noise * jnp.sum(jnp.sin(1e7 * vector)) if self.noise else 0.0  # of a gradient in few digits
        if np.isinf(self.freedom):
            constant = -0.5 * np.linalg.slogdet(2 * np.pi * COVARIANCE)[1]
            return LOG_EVIDENCE + constant - 0.5 * squared + wrong
        law = stats.multivariate_t(np.zeros(SIZE), COVARIANCE, df=self.freedom)
        return LOG_EVIDENCE + law.logpdf(np.zeros(SIZE)) - (self.freedom + SIZE) / 2 * jnp.log1p(squared / self.freedom)


@pytest.fixture
def known(monkeypatch):
    """Makes such targets; the prior of the model they carry is not theirs, so its spread is given."""
    monkeypatch.setattr(module, "prior_spread", lambda target, key: np.full(SIZE, 1.0))
    monkeypatch.setattr("foveate.inference.target.Target.log_density", Known.log_density)
    steps = one_mode().steps
    return lambda **settings: Known(one_mode().model, steps, **settings)


def start() -> np.ndarray:
    return np.stack([MIDDLE + 0.4, MIDDLE - 0.3])


def test_a_gaussian_posterior_is_found_with_its_evidence(known):
    found = laplace(known(), jax.random.key(1), starts=start())
    value, error = found.log_evidence_nats
    assert error < 0.05
    assert abs(value - LOG_EVIDENCE) < FURTHEST * error
    assert found.facts["tops"] == 1
    assert found.facts["pareto_k"] < 0.7
    assert found.facts["efficiency"] > 0.3
    weight = np.exp(found.weighted.log_weight - found.weighted.log_weight.max())
    weight /= weight.sum()
    mean = np.einsum("rd,rdn->n", weight, found.weighted.real)
    away = found.weighted.real - MIDDLE
    error = np.sqrt(np.einsum("rd,rdn->n", weight**2, (found.weighted.real - mean) ** 2))
    assert (abs(mean - MIDDLE) < FURTHEST * error).all()
    covariance = np.einsum("rd,rdn,rdm->nm", weight, away, away)
    np.testing.assert_allclose((covariance - COVARIANCE) / np.outer(_SCALES, _SCALES), 0.0, atol=0.2)
    assert diagnose([str(it) for it in range(SIZE)], found).converged


def test_a_hessian_stands_the_noise_of_single_precision(known):
    spread = np.full(SIZE, 1.0)
    precise, _ = alone(hessian(MIDDLE, spread), known())
    np.testing.assert_allclose(precise @ COVARIANCE, np.eye(SIZE), atol=1e-6)
    rough, spent = alone(hessian(MIDDLE, spread), known(noise=1e-10))  # its gradient is off by up to a thousandth
    np.testing.assert_allclose(rough @ COVARIANCE, np.eye(SIZE), atol=0.05)
    assert spent <= 6 * SIZE


def test_a_climb_and_a_hessian_begin_with_the_curvature_that_another_climb_has_found(known):
    unit = np.full(SIZE, 1.0)
    first = alone(ascend(MIDDLE + 0.4, unit, 300), known())
    alike = alone(ascend(MIDDLE - 0.3, unit, 300), known())
    helped = alone(ascend(MIDDLE - 0.3, unit, 300, covariance=first.covariance), known())
    away = helped.vector - MIDDLE
    assert 0.5 * away @ np.linalg.solve(COVARIANCE, away) < 0.05  # nats below the top
    assert 2 * helped.evaluations < alike.evaluations
    found, spent = alone(hessian(MIDDLE, unit, covariance=first.covariance), known())
    np.testing.assert_allclose(found @ COVARIANCE, np.eye(SIZE), atol=1e-6)
    assert spent == 2 * SIZE  # no column is worked out again


def test_directions_without_curvature_are_as_wide_as_the_prior_allows():
    spread = np.array([0.5, 1.0])
    covariance, widened = as_covariance(np.diag([-3.0, 4.0]), spread)
    np.testing.assert_allclose(covariance, np.diag([4 * 0.25, 0.25]))
    assert widened == 1


def test_a_heavy_tailed_posterior_is_moved_and_its_chains_have_its_spread(known):
    """A Student-t with three degrees of freedom: the weights of lighter tails are not to be trusted."""
    target = known(freedom=3.0)
    found = laplace(target, jax.random.key(3), starts=start(), moves=400)
    assert found.facts["moved"]
    assert found.weighted is None
    assert found.log_evidence_nats is None
    assert found.real.shape == (4, 400, SIZE)
    for i in range(0, SIZE, 3):
        inside = (abs(found.real[..., i] - MIDDLE[i]) < 0.7649 * np.sqrt(COVARIANCE[i, i])).astype(float)
        assert surprise(inside, 0.5) > FALSE_ALARM  # the quartiles of a Student-t with three degrees of freedom


@pytest.mark.parametrize("warmup", [30, 180])
def test_chains_keep_a_gaussian(known, warmup):
    """Also in a metric, and with jumps, that were learnt on the way."""
    rng = np.random.default_rng(1)
    places = rng.multivariate_normal(MIDDLE, COVARIANCE, 4)
    # A wrong metric, and jumps from elsewhere: what is left invariant does not depend on them.
    metric = np.stack([np.diag(np.diag(COVARIANCE)), 2 * COVARIANCE])
    mixture = Mixture.of(np.array([0.7, 0.3]), np.stack([MIDDLE, MIDDLE + 0.5 * _SCALES]), metric, 20.0)
    found = alone(move(places, mixture, rng, warmup=warmup, draws=1500, report=silent), known())
    assert found.jumped > 0.02
    for i in (0, 5, 11):
        assert surprise(found.real[..., i], MIDDLE[i]) > FALSE_ALARM
        assert surprise((found.real[..., i] - MIDDLE[i]) ** 2, COVARIANCE[i, i]) > FALSE_ALARM
    assert 0.6 < found.acceptance.mean() < 0.95


def test_chains_learn_a_metric_that_was_wrong(known):
    """One direction is fifty times as wide as the metric says, as where curvature at a top misleads."""
    narrow = np.where(np.arange(SIZE) == 3, 0.02, 1.0)
    mixture = Mixture.of(np.ones(1), MIDDLE[None], (COVARIANCE * np.outer(narrow, narrow))[None], 20.0)

    def effective(warmup: int) -> float:
        rng = np.random.default_rng(4)
        places = rng.multivariate_normal(MIDDLE, COVARIANCE, 4)
        found = alone(move(places, mixture, rng, warmup=warmup, draws=300, report=silent), known())
        assert warmup < 100 or surprise(found.real[..., 0], MIDDLE[0]) > FALSE_ALARM
        return float(np.min(chain_diagnostics(found.real)[1]))

    assert effective(180) > 5 * effective(12)


class Nearly(Known):
    """A target whose cheaper stand-in has its top elsewhere, and is narrower, by a third if it is led by 1."""

    away: float = eqx.field(static=True, default=0.0)
    led_by: float = eqx.field(static=True, default=1.0)

    def coarsened(self):
        return Nearly(self.model, self.steps, away=self.led_by)

    def log_density(self, vector):
        width = 1 + self.away / 2
        return Known.log_density(self, MIDDLE + width * (vector - MIDDLE - self.away * _SCALES))


def test_the_last_steps_of_a_climb_lead_to_the_top_of_the_target_itself():
    target = Nearly(one_mode().model, one_mode().steps)
    tops, ends, _ = alone(find_tops(start(), np.full(SIZE, 1.0), 200), target)
    assert len(tops) == 1  # both climbs end at the stand-in's, which is not where the target's is
    with jax.enable_x64(True):
        assert max(ends) < float(target.log_density(MIDDLE)) - 0.3  # where climbs ended, by the target itself
    distance = (tops[0].vector - MIDDLE) @ np.linalg.solve(COVARIANCE, tops[0].vector - MIDDLE)
    assert 0.5 * distance < 0.02  # nats below the top; the stand-in's is thirty times as far
    assert tops[0].log_density == pytest.approx(float(target.log_density(MIDDLE)), abs=0.02)
    assert _SCALES @ np.linalg.solve(COVARIANCE, _SCALES) / 2 > 0.6


def test_chains_that_a_cheaper_density_leads_keep_the_target_itself(monkeypatch):
    """The stand-in has its top elsewhere and is narrower: it may say where to look, not what is found."""
    monkeypatch.setattr("foveate.inference.target.Target.log_density", Nearly.log_density)
    target, rng = Nearly(one_mode().model, one_mode().steps, led_by=0.2), np.random.default_rng(7)
    places = rng.multivariate_normal(MIDDLE, COVARIANCE, 4)
    mixture = Mixture.of(np.ones(1), (MIDDLE + 0.5 * _SCALES)[None], 2 * COVARIANCE[None], 20.0)
    found = alone(move(places, mixture, rng, warmup=30, draws=1500, report=silent), target)
    assert found.jumped > 0.02
    for i in (0, 5, 11):
        assert surprise(found.real[..., i], MIDDLE[i]) > FALSE_ALARM
        assert surprise((found.real[..., i] - MIDDLE[i]) ** 2, COVARIANCE[i, i]) > FALSE_ALARM


class TwoModes(Known):
    """Two Gaussians far apart, with four fifths and one fifth of the mass."""

    def log_density(self, vector):
        away = jnp.stack([vector - MIDDLE, vector - MIDDLE - SHIFT])
        terms = -0.5 * jnp.einsum("ki,ij,kj->k", away, np.linalg.inv(COVARIANCE), away)
        return jax.nn.logsumexp(terms + jnp.log(jnp.array([0.8, 0.2])))


SHIFT = np.where(np.arange(SIZE) == 0, 30 * _SCALES[0], 0.0)


@pytest.mark.parametrize("warmup", [10, 180])
def test_chains_change_modes_by_jumps(warmup, monkeypatch):
    """By trajectories alone no chain would leave its own mode; nor by jumps to the middle between both."""
    monkeypatch.setattr("foveate.inference.target.Target.log_density", TwoModes.log_density)
    target, rng, tops = TwoModes(one_mode().model, one_mode().steps), np.random.default_rng(2), [MIDDLE, MIDDLE + SHIFT]
    mixture = Mixture.of(np.array([0.5, 0.5]), np.stack(tops), np.stack([COVARIANCE] * 2), 20.0)
    places = np.stack(tops)[[0, 1, 0, 1]]
    moved = alone(move(places, mixture, rng, warmup=warmup, draws=600, report=silent), target)
    second = (moved.real[..., 0] > MIDDLE[0] + SHIFT[0] / 2).astype(float)
    assert moved.jumped > 0.2
    assert (second.mean(axis=1) > 0).all()
    assert surprise(second, 0.2) > FALSE_ALARM


def test_chains_find_a_top_that_climbs_had_missed(monkeypatch):
    """All climbs ended at the first mode, some chains walked into the second: the jumps know both afterwards."""
    monkeypatch.setattr("foveate.inference.target.Target.log_density", TwoModes.log_density)
    target, rng = TwoModes(one_mode().model, one_mode().steps), np.random.default_rng(5)
    first = Top(MIDDLE, float(np.log(0.8)), COVARIANCE, 0)
    mixture = Mixture.of(np.ones(1), MIDDLE[None], COVARIANCE[None], 20.0)
    places = MIDDLE + np.array([0, 1, 0, 0])[:, None] * SHIFT
    tops, ended, spent = alone(_explored([first], mixture, places, np.full(SIZE, 1.0), rng, silent), target)
    assert len(tops) == 2
    np.testing.assert_allclose(tops[1].vector, MIDDLE + SHIFT, atol=0.1 * _SCALES.min())
    assert tops[0].log_mass - tops[1].log_mass == pytest.approx(np.log(4), abs=0.05)
    assert ended.shape == places.shape
    assert spent > 0


def test_each_component_learns_from_the_draws_in_its_own_place():
    """Chains in two places: what lies between them tells neither how wide its place is."""
    rng = np.random.default_rng(3)
    draws = rng.multivariate_normal(MIDDLE, COVARIANCE, 160) + (np.arange(160) % 2)[:, None] * SHIFT
    centres = np.stack([MIDDLE, MIDDLE + SHIFT])
    mixture = Mixture.of(np.array([0.5, 0.5]), centres + 0.3 * _SCALES, np.stack([3 * COVARIANCE] * 2), 20.0)
    learnt = mixture.leaning_to(draws, np.ones(len(draws)))
    for scale, centre, middle in zip(learnt.scale, learnt.centre, centres, strict=True):
        np.testing.assert_allclose(np.diag(scale) / np.diag(COVARIANCE), 1.25, atol=0.6)  # an eighth is from before
        np.testing.assert_allclose((centre - middle) / _SCALES, 0.0, atol=0.5)


def test_chains_run_until_they_agree(known):
    found = laplace(known(freedom=3.0), jax.random.key(3), starts=start())
    assert found.facts["moved"]
    assert diagnose([str(it) for it in range(SIZE)], found).converged


def test_the_evidence_of_a_small_model_is_that_of_the_integral():
    found, answer = laplace(one_mode(), jax.random.key(2)), one_mode_answer()
    value, error = found.log_evidence_nats
    assert abs(value - answer.log_evidence) < FURTHEST * error < 0.3
    spread = np.sqrt(answer.mean((answer.points - answer.mean(answer.points)) ** 2))
    assert (abs(found.real.mean(axis=(0, 1)) - answer.mean(answer.points)) < 0.15 * spread).all()


def test_a_published_model_has_the_posterior_that_importance_sampling_finds():
    """Fixed Choice without a repulsion has one mode."""
    target = Target(full(repulsion="none", epsilon=(1.0, 2.0), xi=(12.0, 25.0), b=0.5, s0=2.0), six_numbers().steps)
    ours, theirs = laplace(target, jax.random.key(4)), importance(target, jax.random.key(5))
    mean, spread = theirs.real.mean(axis=(0, 1)), theirs.real.std(axis=(0, 1))
    assert (abs(ours.real.mean(axis=(0, 1)) - mean) < 0.35 * spread).all()
    assert (abs(np.log(ours.real.std(axis=(0, 1)) / spread)) < 0.35).all()


def test_weights_that_cannot_be_trusted_are_said_so(known):
    found = laplace(known(freedom=1.5), jax.random.key(3), starts=start(), moves=0)
    assert found.facts["pareto_k"] > 0.7
    said = diagnose([str(it) for it in range(SIZE)], found)
    assert not said.converged
    assert any("Pareto k-hat" in it for it in said.problems)


def test_the_same_key_gives_the_same_bits_on_any_number_of_threads():
    asked = ((4, 1), (4, 2), (5, 1))
    one, two, other = (laplace(six_numbers(), jax.random.key(it), threads=n, moves=6) for it, n in asked)
    assert np.array_equal(one.real, two.real)
    assert one.facts == two.facts
    assert not np.array_equal(one.real, other.real)


def test_ends_of_climbs_on_one_parabola_are_one_top(known):
    starts = np.concatenate([start(), start() + 0.2])
    tops, ends, _ = alone(find_tops(starts, np.full(SIZE, 3.0), 200), known())
    assert len(tops) == 1
    assert len(ends) == 4
    assert tops[0].log_mass == pytest.approx(LOG_EVIDENCE, abs=LEVEL_NATS)


def test_replicates_share_their_draws_where_weights_are_not_to_be_trusted():
    """One draw of the first replicate has most of the weight of all: the others draw it as well."""
    rng = np.random.default_rng(2)
    real, log_weight = rng.standard_normal((3, 64, 2)), rng.standard_normal((3, 64))
    found = {}
    for name, most in (("trusted", 0.0), ("not", 12.0)):
        log_weight[0, 0] = most
        found[name] = _resampled(Weighted(real, log_weight), 400, rng)[0]
        assert found[name].shape == (3, 400, 2)
    of_others = {name: np.isin(it[1, :, 0], real[[0, 2], :, 0]).mean() for name, it in found.items()}
    assert of_others["trusted"] == 0
    assert of_others["not"] > 0.5


def test_smoothed_weights_change_the_tail_alone():
    log_weight = np.log(np.random.default_rng(1).pareto(1.0, (2, 500)) + 1)
    smoothed = smoothed_weights(log_weight)
    order = np.argsort(log_weight, axis=None)
    below, above = (it.ravel()[order] - it.ravel()[order][0] for it in (log_weight, smoothed))
    np.testing.assert_allclose(below[:800], above[:800], atol=1e-9)
    assert (below[-20:] != above[-20:]).any()


def test_settings_that_make_no_sense_are_refused():
    for settings, words in (
        ({"climbs": 0}, "climbs = 0"),
        ({"replicates": 1}, "replicates = 1"),
        ({"moves": 2}, "moves = 2"),
        ({"starts": np.zeros((2, 3))}, r"starts has shape \(2, 3\)"),
    ):
        with pytest.raises(InputError, match=words):
            laplace(one_mode(), jax.random.key(1), **settings)
