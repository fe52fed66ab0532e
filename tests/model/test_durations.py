"""How long fixations last: density against SciPy, the joint target, draws, the exact posterior of a regression."""

from dataclasses import replace

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.errors import InputError
from foveate.example import example_data
from foveate.inference.fit import fit
from foveate.inference.gibbs import check_composition
from foveate.inference.point import maximum_a_posteriori
from foveate.inference.target import Target
from foveate.model.catalogue import named_model
from foveate.model.choices import OnlyPolicy, SoftmaxChoice
from foveate.model.description import describe, restore, same_structure
from foveate.model.durations import KNOWN, LogNormalDurations
from foveate.model.likelihood import duration_log_density, joint_log_density, log_probability
from foveate.model.model import Model
from foveate.model.policies import Global, Local
from foveate.model.priors import LogNormal, Normal, Prior
from foveate.model.steps import Steps
from foveate.pysaliency.densities import Predictive
from foveate.simulation.predictive import prior_predictive
from foveate.simulation.simulate import simulate

EFFECTS = {"saliency": 0.12, "amplitude": -0.2, "ratio": 0.05, "number": 0.15, "earlier": 0.1, "next_amplitude": -0.3}
LEVEL, SIGMA = -1.3, 0.4
OF_DURATIONS: dict[str, Prior] = {
    "level": Normal(-1.0, 1.0),
    "effects": Normal(0.0, 0.25),
    "sigma": LogNormal(0.5, 0.5),
}
KEY = jax.random.key(1)


def durations(*features: str) -> LogNormalDurations:
    return LogNormalDurations(features, LEVEL, [EFFECTS[name] for name in features], SIGMA)


def model(part: LogNormalDurations | None) -> Model:
    priors = {"xi": LogNormal(30.0, 1.0)} | (OF_DURATIONS if part else {})
    return Model((Global((20.0, 35.0)),), OnlyPolicy(), priors, "timed", durations=part)


def data_on(cells: int = 12) -> Dataset:
    data = example_data().data.select(observers=["ann"])
    return Dataset(data.paths, data.maps.resample(Grid(cells, cells, data.maps.grid.extent)))


def simulated(part: LogNormalDurations, length: int = 40) -> Dataset:
    data = data_on()
    return Dataset(simulate(model(part), data.maps, length, jax.random.key(3)), data.maps)


def off_centre(data: Dataset) -> Dataset:
    """The data with fixations anywhere in their cells, as real ones are."""
    rng, (height, width) = np.random.default_rng(8), data.maps.grid.cell_deg
    away = rng.uniform(-0.49, 0.49, (2, *data.paths.x_deg.shape))
    moved = replace(data.paths, y_deg=data.paths.y_deg + away[0] * height, x_deg=data.paths.x_deg + away[1] * width)
    return Dataset(moved, data.maps)


def design(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Features of every fixation but the first and the last of a path, in plain NumPy, and log durations."""
    rows, logs = [], []
    grid = data.maps.grid
    for path in data.paths:
        values = data.maps.select([path.picture]).values[0]
        row, column = grid.cell_of(path.y_deg, path.x_deg)
        relative = np.log(np.maximum(grid.cells * values[row, column], 1e-6))
        y_cell, x_cell = grid.centre_of(row, column)
        for t in range(1, len(path.x_deg) - 1):
            last = np.hypot(path.y_deg[t] - path.y_deg[t - 1], path.x_deg[t] - path.x_deg[t - 1])
            before = np.hypot(path.y_deg[t - 1] - path.y_deg[t - 2], path.x_deg[t - 1] - path.x_deg[t - 2])
            ahead = np.hypot(y_cell[t + 1] - path.y_deg[t], x_cell[t + 1] - path.x_deg[t])
            rows.append(
                [
                    (np.log(last + 0.3) - 1.4) / 0.8,
                    (relative[t] - 1.2) / 1.2,
                    (relative[t] - relative[t - 1]) / 1.5,
                    np.log((t + 1) / 10) / 0.8,
                    (np.log(before + 0.3) - 1.4) / 0.8 if t > 1 else 0.0,
                    (np.log(ahead + 0.3) - 1.4) / 0.8,
                ]
            )
            logs.append(np.log(path.duration_s[t]))
    return np.array(rows), np.array(logs)


def test_density_is_that_of_scipy_for_every_feature():
    assert KNOWN == ("amplitude", "saliency", "ratio", "number", "earlier", "next_amplitude")
    part, data = durations(*KNOWN), off_centre(simulated(durations(*KNOWN), 12))
    steps = Steps.of(data, memory=part.memory)
    with jax.enable_x64(True):
        found = np.asarray(eqx.filter_jit(duration_log_density)(part, steps))[steps.real]
    features, logs = design(data)
    mean = LEVEL + features @ [EFFECTS[name] for name in KNOWN]
    expected = stats.lognorm(SIGMA, scale=np.exp(mean)).logpdf(np.exp(logs))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_durations_of_zero_and_unknown_ones_are_not_scored():
    part, data = durations("number"), simulated(durations("number"), 12)
    seconds = np.array(data.paths.duration_s)
    seconds[:, 4] = 0.0
    censored = Dataset(replace(data.paths, duration_s=seconds), data.maps)
    unknown = Dataset(replace(data.paths, duration_s=None), data.maps)
    with jax.enable_x64(True):
        of = eqx.filter_jit(lambda steps: duration_log_density(part, steps))
        whole, some, none = (np.asarray(of(Steps.of(it))) for it in (data, censored, unknown))
    assert (some[:, 3] == 0).all()  # the step to the sixth fixation, before which the fifth lasted
    np.testing.assert_array_equal(np.delete(some, 3, axis=1), np.delete(whole, 3, axis=1))
    assert (none == 0).all()


def test_the_target_has_both_parts_and_scores_have_one():
    timed, data = model(durations("saliency", "next_amplitude")), simulated(durations("saliency"), 12)
    steps = Steps.of(data)
    with jax.enable_x64(True):
        joint, where = (np.asarray(eqx.filter_jit(it)(timed, steps)) for it in (joint_log_density, log_probability))
        when = np.asarray(eqx.filter_jit(duration_log_density)(timed.durations, steps))
        target = Target.of(timed, data)
        whole = float(eqx.filter_jit(Target.log_likelihood)(target, timed.to_real()))
    np.testing.assert_allclose(joint, where + when, rtol=1e-12)
    assert whole == pytest.approx(joint[steps.real].sum(), rel=1e-9)
    assert timed.labels == ["xi_row", "xi_column", "level", "effect_saliency", "effect_next_amplitude", "sigma"]
    again = restore(describe(timed))
    assert describe(again) == describe(timed)
    assert not same_structure(model(durations("saliency")), describe(timed))
    assert "durations" not in describe(model(None))


@pytest.mark.parametrize("features", [("saliency", "amplitude", "number"), ("number", "next_amplitude")])
def test_simulated_durations_follow_the_density(features):
    """Residuals of 4,500 or more simulated durations are standard normal: Kolmogorov-Smirnov, false alarms 1 in 1,000
    for each; and where paths go does not depend on whether durations are drawn."""
    part = durations(*features)
    data = simulated(part, 400)
    values, logs = design(data)
    chosen = [KNOWN.index(name) for name in features]
    residuals = (logs - LEVEL - values[:, chosen] @ [EFFECTS[name] for name in features]) / SIGMA
    assert len(residuals) > 4500
    assert stats.kstest(residuals, "norm").pvalue > 1e-3
    plain = simulate(model(None), data.maps, 400, jax.random.key(3))
    np.testing.assert_array_equal(plain.x_deg, data.paths.x_deg)
    assert plain.duration_s is None
    # also of the first and of the last fixation of every path
    assert (data.paths.duration_s > 0).all()


def test_a_choice_may_look_at_the_duration():
    choice = SoftmaxChoice(("local", "global"), ("duration",), (0.0,), ((2.0,),))
    priors = {name: LogNormal(5.0, 1.0) for name in ("epsilon", "xi", "sigma")} | {
        name: Normal(0.0, 1.0) for name in ("base", "slopes", "level", "effects")
    }
    policies, data = (Local((0.5, 0.5)), Global((60.0, 60.0))), data_on()
    timed = Model(policies, choice, priors, "timed", durations=durations("number"))
    paths = simulate(timed, data.maps, 200, jax.random.key(5))
    log_seconds = np.log(paths.duration_s[:, 1:-1])
    by_global = paths.columns["policy"][:, 2:] == 1
    # long fixations end in global saccades, which are one standard deviation of log durations and more apart
    assert log_seconds[by_global].mean() - log_seconds[~by_global].mean() > 0.3
    own = {name: prior for name, prior in priors.items() if name not in ("level", "effects", "sigma")}
    untimed = Model(policies, choice, own, "untimed")
    with pytest.raises(InputError, match="SoftmaxChoice depends on how long fixations last, and the model does not"):
        simulate(untimed, data.maps, 10, jax.random.key(5))
    with pytest.raises(InputError, match="SoftmaxChoice depends on how long fixations last"):
        prior_predictive(untimed, data.maps, 10, 2, jax.random.key(5))
    with pytest.raises(InputError, match="durations depend on the next saccade, and the next saccade on the duration"):
        Model(policies, choice, priors, "circular", durations=durations("next_amplitude"))


def by_duration(slope: float) -> Model:
    """Long fixations end in global saccades, short ones in local ones; nothing says how long they last."""
    choice = SoftmaxChoice(("local", "global"), ("duration",), (0.0,), ((slope,),))
    priors = {name: LogNormal(5.0, 1.0) for name in ("epsilon", "xi")}
    priors |= {name: Normal(0.0, 1.0) for name in ("base", "slopes")}
    return Model((Local((0.5, 0.5)), Global((60.0, 60.0))), choice, priors, "by duration")


@pytest.mark.parametrize("observed_start", [False, True])
def test_fixations_last_as_long_as_those_that_are_imitated(observed_start):
    data, rng = data_on(), np.random.default_rng(3)
    average_s = np.exp(-1.4)
    seconds = np.where(rng.random(data.paths.real.shape) < 0.5, average_s / 1.5, average_s * 1.5)
    recorded = replace(data.paths, duration_s=np.where(data.paths.real, seconds, np.nan))
    # with such a slope the duration of the fixation before decides, so that one that is out of step shows at once
    model = by_duration(1e3)
    paths = simulate(model, data.maps, recorded, jax.random.key(4), observed_start=observed_start,
                     observed_durations=True)  # fmt: skip
    np.testing.assert_array_equal(paths.duration_s, recorded.duration_s)
    chosen = paths.columns["policy"][:, 2:]
    long = (seconds > average_s)[:, 1:-1][:, : chosen.shape[1]]
    there = paths.real[:, 2:]
    np.testing.assert_array_equal(chosen[there], long[there].astype(int))
    # unknown durations count as the average, as they do in fits: either policy has its share
    unknown = replace(recorded, duration_s=np.where(recorded.real, 0.0, np.nan))
    labels = simulate(model, data.maps, unknown, jax.random.key(4), observed_durations=True).columns["policy"]
    assert 0.2 < (labels[:, 2:][there] == 1).mean() < 0.8


def test_durations_that_cannot_be_imitated_are_refused():
    data, key = data_on(), jax.random.key(5)
    with pytest.raises(InputError, match="nothing was observed; give scan paths"):
        simulate(by_duration(1.0), data.maps, 10, key, observed_durations=True)
    silent = replace(data.paths, duration_s=None)
    with pytest.raises(InputError, match="do not say how long fixations lasted"):
        simulate(by_duration(1.0), data.maps, silent, key, observed_durations=True)
    with pytest.raises(InputError, match="the model itself says how long"):
        simulate(model(durations("number")), data.maps, data.paths, key, observed_durations=True)


def test_what_cannot_know_durations_refuses_them():
    data = data_on()
    unknown = Dataset(replace(data.paths, duration_s=None), data.maps)
    timed = model(durations("number"))
    for data_less in (lambda: Target.of(timed, unknown), lambda: maximum_a_posteriori(timed, Steps.of(unknown), KEY)):
        with pytest.raises(InputError, match="needs to know how long fixations lasted, and the data do not say it"):
            data_less()
    full = named_model("full", priors="published")
    with pytest.raises(InputError, match="alone, without durations"):
        check_composition(replace(full, durations=timed.durations, priors=full.priors | OF_DURATIONS))


def test_others_tools_refuse_a_choice_by_durations_that_they_cannot_pass():
    choice = SoftmaxChoice(("local", "global"), ("duration",), (0.0,), ((1.0,),))
    priors = {name: LogNormal(5.0, 1.0) for name in ("epsilon", "xi")} | {
        name: Normal(0.0, 1.0) for name in ("base", "slopes")
    }
    reading = Model((Local((1.0, 1.0)), Global((30.0, 30.0))), choice, priors, "reading")
    with pytest.raises(InputError, match="depends on how long fixations last, which pysaliency does not pass on"):
        Predictive.of(reading, data_on().maps, 10)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LogNormalDurations(("mood",), 0.0, [0.0], 1.0), "no feature mood for durations"),
        (lambda: LogNormalDurations(("number",), 0.0, [0.0, 1.0], 1.0), r"effects has shape \(2,\)"),
        (lambda: LogNormalDurations((), 0.0, [], -1.0), "a standard deviation must be a positive number"),
    ],
)
def test_durations_that_cannot_be_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_the_posterior_is_that_of_a_linear_regression():
    """With the flat-ish prior of the exact solution: means within five standard errors of Monte Carlo."""
    part, data = durations("saliency", "number"), simulated(durations("saliency", "number"), 60)
    posterior = fit(model(part), data, jax.random.key(7))
    values, logs = design(data)
    matrix = np.column_stack([np.ones(len(logs)), values[:, [KNOWN.index(name) for name in ("saliency", "number")]]])
    draws = {name: np.asarray(value) for name, value in posterior.draws.items()}
    sigma = draws["sigma"].mean()
    # the exact posterior of level and effects, given sigma, under their Gaussian priors
    precision = matrix.T @ matrix / sigma**2 + np.diag([1.0, 4.0, 4.0])
    mean = np.linalg.solve(precision, matrix.T @ logs / sigma**2 + np.array([-1.0, 0.0, 0.0]))
    spread = np.sqrt(np.diag(np.linalg.inv(precision)))
    found = np.concatenate([draws["level"].reshape(-1, 1), draws["effects"].reshape(-1, 2)], axis=1)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=5 * spread.max() / np.sqrt(400))
    np.testing.assert_allclose(found.std(axis=0), spread, rtol=0.15)
    assert sigma == pytest.approx((logs - matrix @ mean).std(), rel=0.03)
