"""The diagnosis: what is wrong is named, what is right passes, and weights are never taken for draws."""

from dataclasses import replace

import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from foveate.inference.diagnosis import Diagnosis, diagnose, weighted_diagnostics
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples, Weighted
from foveate.model.catalogue import named_model

LABELS = ["b", "s0"]


def samples(real: np.ndarray, **more) -> Samples:
    return Samples(real=real, sampler="nuts", settings={}, statistics=more.pop("statistics", {}), evaluations=1, **more)


def good() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(4, 1000, 2))


def test_independent_draws_converge():
    found = diagnose(LABELS, samples(good()))
    assert found.converged
    assert found.verdict.startswith("converged")
    assert found.min_ess > 3000


def test_chains_that_disagree_are_named():
    real = good()
    real[0, :, 1] += 3
    found = diagnose(LABELS, samples(real))
    assert not found.converged
    assert "R-hat of s0" in found.verdict
    assert "of b" not in found.verdict


def test_slow_chains_are_named():
    real = np.cumsum(np.random.default_rng(2).normal(size=(4, 1000, 2)) * 0.1, axis=1)
    assert "bulk ESS" in diagnose(LABELS, samples(real)).verdict


def test_a_chain_that_never_moved_is_no_converged_chain():
    assert not diagnose(LABELS, samples(np.zeros((4, 100, 2)))).converged


def test_divergences_and_energy_count():
    diverging = np.zeros((4, 1000))
    diverging[:, :50] = 1
    energy = np.cumsum(np.random.default_rng(3).normal(size=(4, 1000)) * 0.02, axis=1)
    found = diagnose(LABELS, samples(good(), statistics={"diverging": diverging, "energy": energy}))
    assert "200 divergences" in found.verdict
    assert "E-BFMI" in found.verdict


def weighted(log_weight: np.ndarray, real: np.ndarray | None = None) -> Weighted:
    return Weighted(good() if real is None else real, log_weight)


def test_equal_weights_are_worth_as_many_draws():
    rhat, bulk, tail = weighted_diagnostics(weighted(np.zeros((4, 1000))))
    np.testing.assert_allclose(bulk, 4000)
    np.testing.assert_allclose(tail, 4000)
    # Independent draws: R-hat as ArviZ has it for chains.
    np.testing.assert_allclose(rhat, array_stats.rhat(good(), chain_axis=0, draw_axis=1), atol=2e-3)


def test_effective_draws_are_what_the_spread_of_replicates_says():
    # 400 replicates of weighted draws: the variance of their means against what the weights say; 400 give 7 %.
    rng = np.random.default_rng(4)
    real = rng.normal(size=(400, 300, 1), scale=1.5)
    log_weight = -0.5 * real[..., 0] ** 2 * (1 - 1 / 1.5**2)
    weight = np.exp(log_weight)
    means = (weight * real[..., 0]).sum(axis=1) / weight.sum(axis=1)
    by_replicates = 1.0 / means.var()
    _, bulk, _ = weighted_diagnostics(Weighted(real, log_weight))
    assert bulk[0] / 400 == pytest.approx(by_replicates, rel=0.25)


def test_replicates_in_different_modes_do_not_agree():
    real = good()
    real[2] += 5
    assert weighted_diagnostics(weighted(np.zeros((4, 1000)), real))[0].max() > 1.5


def test_resampled_copies_do_not_count_as_draws():
    # One draw with all the weight, resampled a thousand times: the draws look many, the weights know better.
    log_weight = np.full((4, 1000), -30.0)
    log_weight[:, 0] = 0.0
    copied = np.broadcast_to(good()[:, :1], (4, 1000, 2)).copy()
    found = diagnose(LABELS, replace(samples(copied), weighted=weighted(log_weight), facts={"pareto_k": 2.0}))
    assert not found.converged
    assert found.min_ess < 10
    assert "Pareto" in found.verdict


# --- notes ---------------------------------------------------------------------------------------------------------


def explored(*evidences: float, final: float | None = -100.0) -> Diagnosis:
    found = samples(good(), facts={"exploration_log_evidence_nats": list(evidences)})
    return diagnose(LABELS, replace(found, log_evidence_nats=None if final is None else (final, 0.01)))


def test_explorations_that_are_merely_rough_are_not_mentioned():
    assert explored(-100.4, -102.9).notes == ()
    assert explored(-100.4, -100.9, final=None).notes == ()
    assert diagnose(LABELS, samples(good())).notes == ()


@pytest.mark.parametrize(
    ("evidences", "final"),
    [((-100.4, -106.0), -100.0), ((-106.0, -105.5), -100.0), ((-95.0, -94.0), -100.0), ((-94.0, -100.0), None)],
    ids=["one missed a mode", "both missed it", "the end missed it", "nothing but explorations"],
)
def test_explorations_that_disagree_are_a_note_and_no_failure(evidences, final):
    found = explored(*evidences, final=final)
    assert found.converged
    assert found.verdict.startswith("converged")
    assert "up to 6.0 nats apart" in found.verdict
    assert found.to_dict()["notes"] == found.notes


def test_a_fit_that_fails_has_its_notes_too():
    bad = samples(np.zeros((4, 100, 2)), facts={"exploration_log_evidence_nats": [-9.0, -1.0]})
    verdict = diagnose(LABELS, bad).verdict
    assert verdict.startswith("NOT CONVERGED")
    assert verdict.index("R-hat") < verdict.index("Note: evidences")


def test_notes_survive_a_file(tmp_path):
    model = named_model("local_saliency")
    found = samples(good(), facts={"exploration_log_evidence_nats": [-9.0, -1.0]})
    posterior = Posterior(model, "ann", found, diagnose(model.labels, found), {})
    assert Posterior.load(posterior.save(tmp_path / "ann.nc")).diagnosis.notes == posterior.diagnosis.notes != ()
