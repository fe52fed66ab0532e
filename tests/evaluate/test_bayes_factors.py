"""Bayes factors: sums of logarithms in words that know their error, and sensitivities with known answers."""

from dataclasses import replace

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from foveate.errors import InputError
from foveate.evaluate.bayes_factors import (
    bayes_factors,
    evidence_sensitivity,
    evidence_table,
    in_words,
    log_prior_of,
    log_prior_of_prior,
    prior_sensitivity,
)
from foveate.inference.diagnosis import diagnose
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples
from foveate.model.catalogue import fixed_choice, full
from foveate.model.durations import LogNormalDurations
from foveate.model.priors import LogNormal, Normal, Prior


@pytest.fixture
def evidences() -> pd.DataFrame:
    """log10 of the factors plain : full is 1, 2.5 and -0.5 for three observers, each evidence known to 0.02 nats."""
    log10 = np.array([1.0, 2.5, -0.5])
    return pd.DataFrame(
        {
            "model": ["full"] * 3 + ["plain"] * 3,
            "observer": [1, 2, 3] * 2,
            "log_evidence_nats": np.concatenate([[-100.0, -120, -90], [-100, -120, -90] + log10 * np.log(10)]),
            "standard_error_nats": 0.02,
        }
    )


def test_factors_of_observers_and_their_sum(evidences):
    found = bayes_factors(evidences)
    assert found.by_observer["log10"].tolist() == pytest.approx([1.0, 2.5, -0.5])
    error = np.sqrt(2) * 0.02 / np.log(10)
    assert found.by_observer["standard_error"].tolist() == pytest.approx([error] * 3)
    total = found.together.iloc[0]
    assert (total["first"], total["second"]) == ("plain", "full")
    assert total["log10"] == pytest.approx(3.0)
    assert total["standard_error"] == pytest.approx(np.sqrt(3) * error)
    assert (total["low"], total["high"]) == pytest.approx(stats.norm.interval(0.95, 3.0, np.sqrt(3) * error))
    assert (total["observers_for_first"], total["observers"]) == (2, 3)
    assert total["largest_share"] == pytest.approx(2.5 / 4)
    assert found.by_observer["words"].tolist() == [
        "substantial to strong evidence for plain",
        "decisive evidence for plain",
        "hardly any to substantial evidence for full",
    ]
    assert total["words"] == "decisive evidence for plain"


@pytest.mark.parametrize(
    ("log10", "error", "words"),
    [
        (0.3, 0.05, "hardly any evidence for a"),
        (-0.7, 0.05, "substantial evidence for b"),
        (1.2, 0.05, "strong evidence for a"),
        (-1.7, 0.05, "very strong evidence for b"),
        (3.0, 0.05, "decisive evidence for a"),
        (-1.9, 0.3, "strong to decisive evidence for b"),
        (0.3, 0.3, "undecided: the evidences are not known well enough"),
        (0.0, 0.0, "none either way"),
    ],
)
def test_words(log10, error, words):
    assert in_words(log10, log10 - 1.96 * error, log10 + 1.96 * error, "a", "b") == words


def test_all_pairs_agree_with_each_other(evidences):
    third = evidences[evidences["model"] == "full"].assign(model="third", log_evidence_nats=[-99.0, -119.0, -93.0])
    together = bayes_factors(pd.concat([evidences, third])).together.set_index(["first", "second"])["log10"]
    assert len(together) == 3
    first, middle, last = "plain", "full", "third"
    assert together[first, last] == pytest.approx(together[first, middle] + together[middle, last])
    assert (together >= 0).all()


def test_a_fit_that_has_not_converged_marks_its_factors(evidences):
    found = bayes_factors(evidences.assign(converged=[True, False, True, True, True, True]))
    assert found.by_observer["converged"].tolist() == [True, False, True]
    assert "NOT CONVERGED" in found.by_observer["words"][1]
    assert "NOT CONVERGED" in found.together["words"][0]


def test_mistakes_are_named(evidences):
    for table, message in (
        (evidences.drop(columns="standard_error_nats"), "column standard_error_nats missing"),
        (evidences.iloc[:3], "at least two models"),
        (evidences.iloc[:5], "model plain, observer 3: 0 evidences"),
        (pd.concat([evidences, evidences.iloc[:1]]), "model full, observer 1: 2 evidences"),
        (evidences.assign(log_evidence_nats=-np.inf), "log_evidence_nats is -inf"),
        (evidences.assign(standard_error_nats=-1.0), "standard_error_nats is -1.0"),
    ):
        with pytest.raises(InputError, match=message):
            bayes_factors(table)


def posterior_of(model, evidence, observer: int = 1) -> Posterior:
    real = np.random.default_rng(1).normal(size=(2, 200, len(model.labels)))
    samples = Samples(
        real=real, sampler="importance", settings={}, statistics={}, evaluations=1, log_evidence_nats=evidence
    )
    return Posterior(model, observer, samples, diagnose(model.labels, samples), {})


def test_evidences_are_read_from_posteriors():
    table = evidence_table([posterior_of(full(), (-10.0, 0.1)), posterior_of(fixed_choice(), (-12.0, 0.2))])
    assert table["model"].tolist() == ["full", "fixed_choice"]
    assert table["log_evidence_nats"].tolist() == [-10, -12]
    assert bayes_factors(table).together["log10"][0] == pytest.approx(2 / np.log(10))
    with pytest.raises(InputError, match="give no evidence"):
        evidence_table([posterior_of(full(), None)])
    with pytest.raises(InputError, match="no posteriors given"):
        evidence_table([])


def test_evidences_with_and_without_durations_are_of_different_data():
    of_durations: dict[str, Prior] = {
        "level": Normal(-1.0, 1.0),
        "effects": Normal(0.0, 1.0),
        "sigma": LogNormal(0.5, 1.0),
    }
    plain = full()
    timed = replace(plain, durations=LogNormalDurations((), -1.3, (), 0.4), priors=plain.priors | of_durations)
    with pytest.raises(InputError, match="their evidences are of different data"):
        evidence_table([posterior_of(plain, (-10.0, 0.1)), posterior_of(timed, (-12.0, 0.2))])


# --- sensitivity, where the answer is known: y ~ N(theta, 1), theta ~ N(0, v) ----------------------------------------


def gaussian_problem(y: float, variance: float, seed: int, draws: int = 8000):
    """Draws from the posterior and the prior, with log prior densities and log-likelihoods."""
    rng = np.random.default_rng(seed)
    spread = variance / (1 + variance)
    theta = rng.normal(y * spread, np.sqrt(spread), size=(4, draws // 4))
    prior = stats.norm(0, np.sqrt(variance))
    return theta, prior.logpdf(theta), stats.norm(y, 1).logpdf(theta), prior.logpdf(prior.rvs(draws, random_state=rng))


def test_the_evidence_changes_as_it_does_for_a_prior_of_another_width():
    """N(0, v) to the power alpha is N(0, v / alpha), so the evidence is that of y ~ N(0, 1 + v / alpha)."""
    y, variance = 1.5, 2.0
    _, posterior, _, prior = gaussian_problem(y, variance, seed=1)
    found = evidence_sensitivity(posterior, prior, (0.8, 1.0, 1.25, 2.0)).set_index("power")
    for power in (0.8, 1.25, 2.0):
        expected = stats.norm.logpdf(y, 0, np.sqrt(1 + variance / power)) - stats.norm.logpdf(
            y, 0, np.sqrt(1 + variance)
        )
        # four standard errors: one false alarm in 16,000 each
        assert abs(found.loc[power, "change_nats"] - expected) < 4 * found.loc[power, "standard_error_nats"]
        assert abs(found.loc[power, "change_nats"]) > 2 * found.loc[power, "standard_error_nats"]
        assert found.loc[power, "standard_error_nats"] < 0.03
        assert found.loc[power, "reliable"]
    assert found.loc[1.0, "change_nats"] == pytest.approx(0, abs=1e-12)


def test_weights_that_cannot_be_trusted_are_marked():
    _, posterior, _, prior = gaussian_problem(9.0, 1.0, seed=2)
    assert not evidence_sensitivity(posterior, prior, (0.05,))["reliable"][0]
    with pytest.raises(InputError, match="power = 0"):
        evidence_sensitivity(posterior, prior, (0,))
    with pytest.raises(InputError, match="all of them finite"):
        evidence_sensitivity(np.full((2, 100), -np.inf), prior)


@pytest.mark.parametrize(
    ("y", "variance", "verdict"),
    [
        (0.5, 100.0, "hardly matters"),
        (6.0, 1.0, "in conflict"),
        (0.0, 0.001, "strong prior"),
    ],
)
def test_priors_that_matter_are_found(y, variance, verdict):
    theta, log_prior, log_likelihood, _ = gaussian_problem(y, variance, seed=3)
    found = prior_sensitivity({"theta": theta}, log_prior, log_likelihood)
    assert found["parameter"].tolist() == ["theta"]
    assert verdict in found["verdict"][0], found


def test_log_priors_are_those_of_the_real_line():
    model = full()
    posterior = posterior_of(model, None)
    found = log_prior_of(posterior)
    assert found.shape == (2, 200)
    # by hand: LogNormal priors are Gaussian on the logarithm, the choice's priors are as they are
    expected = np.zeros((2, 200))
    for index, label in enumerate(model.labels):
        prior = model.priors[label.split("_")[0]]
        mean, spread = (
            (prior.mean, np.sqrt(prior.variance)) if isinstance(prior, Normal) else (np.log(prior.median), prior.spread)
        )
        expected += stats.norm(mean, spread).logpdf(posterior.samples.real[:, :, index])
    np.testing.assert_allclose(found, expected)
    own = log_prior_of_prior(model, jax.random.key(2), 2000)
    # six Gaussians: the mean of their log-density is minus the entropy, 2000 draws of standard deviation sqrt(3)
    entropy = sum(
        stats.norm(0, np.sqrt(p.variance) if isinstance(p, Normal) else p.spread).entropy()
        for p in (model.priors[label.split("_")[0]] for label in model.labels)
    )
    assert own.mean() == pytest.approx(-entropy, abs=4 * np.sqrt(len(model.labels) / 2 / 2000))
