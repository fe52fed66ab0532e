"""The Gibbs sampler leaves the joint distribution of parameters and data as it is (Gandy and Scott 2020, Geweke 2004).

Parameters are drawn from the prior and a small data set from the model, so that the parameters are a draw of their
posterior, with no convergence needed. Some sweeps of the sampler must lead to another draw of it. So over thousands of
such pairs, which are independent of each other, the parameters after the sweeps have the prior distribution, and no
function of parameters and data has changed its mean.

Keys are fixed; each test would raise a false alarm for one key in ten thousand, Bonferroni over its comparisons.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.inference import conditionals, hmc_within_gibbs
from foveate.inference.gibbs_sweep import begin, feature_or_none, sweep
from foveate.inference.hmc_within_gibbs import Stage
from foveate.inference.target import Target
from foveate.model import catalogue
from foveate.model.model import Model
from foveate.model.priors import Beta, LogNormal, Normal
from foveate.model.steps import Steps
from foveate.precision import double_precision
from foveate.simulation.plans import Plan
from foveate.simulation.simulate import Stacked, simulate_plan

FALSE_ALARM = 1e-4

GRID = Grid(12, 10, Extent(9.0, 15.0))
PAIRS, MANY_PAIRS = 2000, 8000
FIXATIONS, SWEEPS = 10, 12

PRIORS = {
    "epsilon": LogNormal(np.array([1.0, 2.0]), 0.6),
    "xi": LogNormal(np.array([10.0, 20.0]), 0.6),
    "b": Normal(0.6, 0.5),
    "s0": Normal(1.5, 1.5),
    "rho": Beta(2.0, 3.0),
}

# Of the adapted scheme, about what it would learn here.
STEP_SIZE, INVERSE_MASS = 0.8, 0.25


def maps() -> SaliencyMaps:
    rng = np.random.default_rng(30)
    return SaliencyMaps.from_arrays(
        {picture: rng.gamma(2.0, size=GRID.shape) + 0.2 for picture in ("beach", "wood")}, GRID.extent, normalise=True
    )


def small_model(name: str, repulsion: str = "released") -> Model:
    model = catalogue.named_model(name, repulsion=repulsion)
    return model.with_priors({name: PRIORS[name] for name in model.priors})


@double_precision
def draw_pairs(model: Model, key, count: int) -> tuple[np.ndarray, tuple]:
    """Parameters on the real line, and the parts of steps, whose arrays have a leading axis over the pairs."""
    for_prior, for_paths = jax.random.split(key)
    draw = jax.jit(jax.vmap(lambda own: model.draw_from_prior(own).to_real()))
    vectors = draw(jax.random.split(for_prior, count))
    models = jax.vmap(lambda vector: model.from_real(vector))(vectors)
    seen = maps()
    plan = Plan.everyone(list(range(count)), list(seen.pictures), FIXATIONS)
    paths = simulate_plan(Stacked(models.policies, models.choice, model.memory), seen, plan, for_paths)
    steps = Steps.of(Dataset(paths, seen))
    apart = jax.tree.map(lambda it: np.reshape(it, (count, len(seen), *np.shape(it)[1:])), parts_of(steps))
    return np.asarray(vectors), apart


def parts_of(steps: Steps) -> tuple:
    """What differs from pair to pair."""
    return steps.picture, steps.history, steps.target, steps.row, steps.column, steps.real


@double_precision
def after_sweeps(model: Model, vectors: np.ndarray, parts: tuple, key, scheme: str) -> tuple[np.ndarray, np.ndarray]:
    """The parameters of every pair after the sweeps, and the log posterior density before and after."""
    saliency = maps().values

    def one(item):
        vector, (picture, history, seen, row, column, real), own = item
        target = Target(model, Steps(saliency, picture, history, seen, row, column, real, None, GRID))
        x, state = feature_or_none(target), begin(target, vector)
        state = eqx.tree_at(
            lambda it: (it.tuning.averaging.log_step_size_avg, it.tuning.mass.inverse_mass_matrix),
            state,
            (jnp.log(STEP_SIZE), jnp.full(4, INVERSE_MASS)),
        )
        looks = jnp.arange(SWEEPS + 1) == 0
        stages = Stage(looks, *[jnp.zeros_like(looks)] * 3)
        step = lambda state, item: sweep(item[0], target, x, state, item[1], scheme)  # noqa: E731
        state, record = jax.lax.scan(step, state, (jax.random.split(own, SWEEPS + 1), stages))
        return state.vector, record.lp[jnp.array([0, -1])], record.acceptance_rate[1:].mean()

    run = eqx.filter_jit(lambda *items: jax.lax.map(one, items))
    after, lp, accepted = run(vectors, parts, jax.random.split(key, len(vectors)))
    assert 0.3 < accepted.mean() < 0.99  # else the moves say little
    return np.asarray(after), np.asarray(lp)


def places_in_prior(model: Model, vectors: np.ndarray) -> np.ndarray:
    """The share of the prior below each number: uniform for draws from it."""
    columns, start = [], 0
    for name, value in model.parameters.items():
        for index in range(np.size(value)):
            number, prior = vectors[:, start], model.priors[name]
            start += 1
            if isinstance(prior, LogNormal):
                columns.append(stats.norm.cdf(number, np.log(np.ravel(prior.median)[index]), float(prior.spread)))
            elif isinstance(prior, Normal):
                columns.append(stats.norm.cdf(number, float(prior.mean), np.sqrt(float(prior.variance))))
            else:
                assert isinstance(prior, Beta)
                columns.append(stats.beta.cdf(1 / (1 + np.exp(-number)), float(prior.first), float(prior.second)))
    return np.stack(columns, axis=1)


def corrected_p_value(model: Model, scheme: str, seed: int, count: int = PAIRS) -> float:
    """The smallest p-value of all comparisons times their number."""
    for_pairs, for_sweeps = jax.random.split(jax.random.key(seed))
    before, parts = draw_pairs(model, for_pairs, count)
    after, lp = after_sweeps(model, before, parts, for_sweeps, scheme)
    first, last = places_in_prior(model, before), places_in_prior(model, after)
    # Two summaries of the data: how far the steps go, and how salient the places are where they start.
    history, seen = parts[1], parts[2]
    far = np.hypot(seen.y_deg - history.position_deg[..., 0, 0], seen.x_deg - history.position_deg[..., 0, 1])
    data = np.stack([stats.zscore(far.mean(axis=(1, 2))), stats.zscore(history.saliency[..., 0].mean(axis=(1, 2)))])

    def functions(places: np.ndarray) -> list[np.ndarray]:
        centred = places - 0.5
        pairs = [centred[:, i] * centred[:, j] for i in range(places.shape[1]) for j in range(i + 1)]
        return [*centred.T, *pairs, *(centred[:, i] * d for i in range(places.shape[1]) for d in data)]

    p_values = [stats.kstest(column, "uniform").pvalue for column in last.T]
    p_values += [
        stats.ttest_1samp(new - old, 0).pvalue for new, old in zip(functions(last), functions(first), strict=True)
    ]
    p_values.append(stats.ttest_1samp(lp[:, 1] - lp[:, 0], 0).pvalue)
    return min(p_values) * len(p_values)


def test_sweeps_leave_the_joint_distribution_as_it_is():
    assert corrected_p_value(small_model("full"), "adapted", 40) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "repulsion"),
    [
        ("full", "released"),
        ("local_choice", "released"),
        ("fixed_choice", "released"),
        ("fixed_choice", "printed"),
        ("local_choice", "none"),
    ],
)
def test_sweeps_leave_the_joint_distribution_of_many_pairs_as_it_is(name, repulsion):
    assert corrected_p_value(small_model(name, repulsion), "adapted", 41, MANY_PAIRS) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full", "fixed_choice"])
def test_the_papers_moves_leave_the_joint_distribution_as_it_is(name, monkeypatch):
    # The paper's steps are so small that an error would take thousands of sweeps to show.
    monkeypatch.setattr(hmc_within_gibbs, "PAPER_STEP_SIZES", (0.6, 6.0))
    assert corrected_p_value(small_model(name), "paper", 42, MANY_PAIRS) > FALSE_ALARM


# --- and the check can fail -------------------------------------------------------------------------------------------


def b_as_printed(gamma, omega, x, s0, prior, real) -> conditionals.Gaussian:
    """The mean of b with the bracket where the paper has it: the variance multiplies the prior's part alone."""
    from_threshold = jnp.where(real, x - s0, 0.0)
    variance = prior.variance / (1 + prior.variance * jnp.sum(omega * from_threshold**2))
    mean = jnp.sum((gamma - 0.5) * from_threshold) + prior.mean / prior.variance * variance
    return conditionals.Gaussian(mean, variance)


@pytest.mark.slow
def test_the_check_fails_for_the_mean_of_b_as_printed(monkeypatch):
    monkeypatch.setattr(conditionals, "b_given", b_as_printed)
    assert corrected_p_value(small_model("full"), "adapted", 40) < FALSE_ALARM


@pytest.mark.slow
def test_the_check_fails_without_omega(monkeypatch):
    """omega at its mean for f = 0 instead of drawn."""
    monkeypatch.setattr(conditionals, "draw_omega", lambda key, f: jnp.full(f.shape, 0.25))
    assert corrected_p_value(small_model("full"), "adapted", 40) < FALSE_ALARM


@pytest.mark.slow
def test_the_check_fails_for_a_rho_that_counts_one_step_too_many(monkeypatch):
    right = conditionals.rho_given
    monkeypatch.setattr(
        conditionals, "rho_given", lambda gamma, prior, real: right(gamma, Beta(prior.first + 1, prior.second), real)
    )
    assert corrected_p_value(small_model("fixed_choice"), "adapted", 40) < FALSE_ALARM


@pytest.mark.slow
def test_the_check_fails_for_a_density_on_the_wrong_scale(monkeypatch):
    """Without the Jacobian, epsilon and xi move as if their logarithms had the density of the variances."""
    monkeypatch.setattr(Target, "log_prior", lambda target, vector: target.model.from_real(vector).log_prior())
    assert corrected_p_value(small_model("fixed_choice"), "adapted", 40) < FALSE_ALARM
