"""What a posterior says about single steps, against the definitions; LOO and WAIC against hand-made ones."""

import jax
import numpy as np
import pytest
from arviz_stats.base.array import array_stats

from foveate.example import example_data
from foveate.inference.diagnosis import diagnose
from foveate.inference.fit import fit
from foveate.inference.pointwise import loo, pointwise_log_likelihood, policy_probabilities, step_table, waic
from foveate.inference.posterior import Posterior, parameters_of
from foveate.inference.samples import Samples
from foveate.model.catalogue import full
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.steps import Steps


@pytest.fixture(scope="module")
def ann():
    return example_data().data.select(observers=["ann"], pictures=["beach", "tower"])


@pytest.fixture(scope="module")
def posterior(ann):
    """Draws near the truth, made by hand: 2 chains of 40."""
    model = full()
    real = np.asarray(model.to_real()) + 0.1 * np.random.default_rng(1).normal(size=(2, 40, 6))
    samples = Samples(real=real, sampler="nuts", settings={}, statistics={}, evaluations=1)
    return Posterior(model, "ann", samples, diagnose(model.labels, samples), {})


def test_every_step_of_every_draw_is_the_log_likelihood_of_that_draw(ann, posterior):
    values = pointwise_log_likelihood(posterior, ann)
    steps = Steps.of(ann)
    assert values.shape == (2, 40, steps.count)
    for chain, draw in ((0, 0), (1, 7)):
        drawn = {name: it[0] for name, it in parameters_of(full(), posterior.samples.real[chain, draw][None]).items()}
        expected = step_log_likelihoods(full().with_parameters(drawn), steps)
        np.testing.assert_allclose(values[chain, draw], np.asarray(expected)[steps.real], atol=1e-9)


def test_the_table_of_steps_is_in_the_same_order(ann):
    table = step_table(ann)
    assert len(table) == Steps.of(ann).count
    assert table.groupby("picture").size().to_dict() == {
        picture: int(length) - 2 for picture, length in zip(ann.paths.picture, ann.paths.length, strict=True)
    }
    assert table["fixation"].min() == 3


def test_policies_of_a_step_sum_to_one_and_short_steps_are_local(ann, posterior):
    table = policy_probabilities(posterior, ann, draws=20)
    np.testing.assert_allclose(table["local"] + table["repelled_global"], 1)
    paths = ann.paths
    length = np.hypot(np.diff(paths.x_deg, axis=1), np.diff(paths.y_deg, axis=1))[:, 1:][paths.real[:, 2:]]
    # A saccade far longer than the local policy reaches is never local, whatever the parameters.
    assert table["local"].to_numpy()[length > 8].max() < 0.05
    assert table["local"].to_numpy()[length < 1].mean() > 0.8


def test_waic_is_its_definition(ann, posterior):
    flat = pointwise_log_likelihood(posterior, ann).reshape(80, -1)
    expected = np.log(np.exp(flat).mean(axis=0)).sum() - flat.var(axis=0, ddof=1).sum()
    assert waic(posterior, ann).elpd_nats == pytest.approx(expected)


def test_loo_is_the_pareto_smoothed_sum(ann, posterior):
    flat = pointwise_log_likelihood(posterior, ann).reshape(80, -1)
    found = loo(posterior, ann)
    worth = min(1.0, posterior.diagnosis.min_ess / 80)
    log_weight = np.stack([array_stats.psislw(step, r_eff=worth)[0] for step in flat.T])
    expected = np.logaddexp.reduce(log_weight + flat.T, axis=1).sum()
    assert found.elpd_nats == pytest.approx(expected, rel=1e-6)
    assert found.steps == flat.shape[1]
    assert found.elpd_nats == pytest.approx(waic(posterior, ann).elpd_nats, abs=0.5)


def test_a_fit_that_has_not_converged_marks_what_is_made_from_it(ann, posterior):
    apart = posterior.samples.real + np.array([0.0, 0.5])[:, None, None]
    stuck = Samples(real=apart, sampler="nuts", settings={}, statistics={}, evaluations=1)
    marked = Posterior(full(), "ann", stuck, diagnose(full().labels, stuck), {})
    assert not loo(marked, ann).converged
    assert not policy_probabilities(marked, ann, draws=5)["converged"].any()
    assert "NOT CONVERGED" in repr(marked)


@pytest.mark.slow
def test_fits_do_not_depend_on_who_else_is_in_the_data(ann):
    from foveate.inference.fit import fit_each, observer_key
    from foveate.model.catalogue import local_saliency

    both = example_data().data.select(observers=["ann", "ben"], pictures=["beach", "tower"])
    key = jax.random.key(3)
    alone = fit(local_saliency(), ann, observer_key(key, "ann"))
    for workers in (1, 2):
        together = {it.observer: it for it in fit_each(local_saliency(), both, key, workers=workers)}
        assert set(together) == {"ann", "ben"}
        assert np.array_equal(together["ann"].samples.real, alone.samples.real)
    assert alone.converged
    keys = [jax.random.key_data(observer_key(key, observer)).tolist() for observer in ("ann", "ben", 1, 2)]
    assert len({tuple(it) for it in keys}) == 4
