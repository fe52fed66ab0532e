"""Each conditional against the joint density of the paper's supplement, normalised by brute force on a small problem.

Where draws are compared, keys are fixed and a test would raise a false alarm for one key in ten thousand.
"""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.inference import conditionals
from foveate.model import catalogue
from foveate.model.likelihood import policy_log_probability
from foveate.model.priors import Beta, Normal
from foveate.model.steps import Steps
from oracles import paper
from oracles.augmented import Problem, polya_gamma_log_density

FALSE_ALARM = 1e-4

found_log_policies = eqx.filter_jit(policy_log_probability)

EXTENT = Extent(5.0, 8.0)
EPSILON, XI = (0.9, 1.7), (6.0, 11.0)
B, S0 = 0.8, 1.4
PRIORS = {"b": Normal(0.5, 0.6), "s0": Normal(1.1, 2.0)}

STEPS = 6
PADDED = (3, 9)  # (path, step): most of it padding


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(8)
    saliency = rng.uniform(0.4, 2, size=(6, 7))
    scene = paper.Scene(saliency / saliency.sum(), EXTENT.height_deg, EXTENT.width_deg)
    y_deg, x_deg = rng.uniform(size=(2, STEPS + 2)) * [[EXTENT.height_deg], [EXTENT.width_deg]]
    b, s0 = PRIORS["b"], PRIORS["s0"]
    return Problem(scene, y_deg, x_deg, (float(b.mean), float(b.variance)), (float(s0.mean), float(s0.variance)))


@pytest.fixture(scope="module")
def log_policies(problem) -> tuple[np.ndarray, np.ndarray]:
    return problem.log_policies(EPSILON, XI)


@pytest.fixture(scope="module")
def steps(problem) -> Steps:
    count = STEPS + 2
    paths = ScanPaths(
        extent=EXTENT,
        observer=np.ones(1, dtype=np.int64),
        picture=np.array(["beach"]),
        trial=np.ones(1, dtype=np.int64),
        length=np.array([count]),
        fixation=np.arange(1, count + 1)[None],
        x_deg=problem.x_deg[None],
        y_deg=problem.y_deg[None],
    )
    maps = SaliencyMaps.from_arrays({"beach": problem.scene.saliency}, EXTENT)
    return Steps.of(Dataset(paths, maps), paths=PADDED[0], steps=PADDED[1])


@pytest.fixture(scope="module")
def unknowns() -> tuple[np.ndarray, np.ndarray]:
    """Some gamma, not balanced, and omega."""
    rng = np.random.default_rng(9)
    return np.array([True, False, True, True, True, False]), rng.gamma(2.0, 0.1, size=STEPS)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def padded(values: np.ndarray, filling) -> np.ndarray:
    """Values of the steps in their places, with something absurd in the padding."""
    whole = np.full(PADDED, filling, dtype=np.asarray(values).dtype)
    whole[0, :STEPS] = values
    return whole


def full() -> catalogue.Model:
    return catalogue.full(epsilon=EPSILON, xi=XI, b=B, s0=S0).with_priors(PRIORS)


def test_the_joint_of_the_test_sums_to_the_model_of_the_paper(problem, log_policies):
    """The oracle itself: with omega integrated and gamma summed out, the mixture of Eq. 5 remains."""
    local, other = log_policies
    for t, x in enumerate(problem.ratios):
        f, total = B * (x - S0), 0.0
        for gamma, log_policy in ((1, local[t]), (0, other[t])):
            over_omega = integrate.quad(
                lambda w, f=f, g=gamma: np.exp(-(f**2) * w / 2 + (g - 0.5) * f + polya_gamma_log_density(w)), 2e-3, 12
            )[0]
            total += np.exp(log_policy) * over_omega / 2
        rho = expit(f)
        assert total == pytest.approx(rho * np.exp(local[t]) + (1 - rho) * np.exp(other[t]), rel=1e-7)


def test_features_are_those_of_the_paper(problem, steps):
    found = conditionals.features(full().choice, steps)
    np.testing.assert_allclose(np.asarray(found)[0, :STEPS], problem.ratios, rtol=1e-12)


def test_gamma_against_all_of_its_values(problem, steps, log_policies):
    omega = np.full(STEPS, 0.2)
    values = np.array(list(itertools.product([0, 1], repeat=STEPS)))
    # gamma given the others, omega among them: it cancels, as exp(-f^2 omega / 2) does not depend on gamma.
    log_joint = np.array([problem.log_joint(gamma, omega, B, S0, log_policies) for gamma in values])
    probability = np.exp(log_joint - log_joint.max())
    probability /= probability.sum()

    x = conditionals.features(full().choice, steps)
    log_policy = found_log_policies(full(), steps)
    odds = np.asarray(conditionals.local_log_odds(B * (x - S0), log_policy[..., 0], log_policy[..., 1]))[0, :STEPS]
    found = np.prod(np.where(values, expit(odds), expit(-odds)), axis=1)
    np.testing.assert_allclose(found, probability, rtol=1e-9, atol=1e-15)


def test_gamma_is_drawn_with_its_odds():
    log_odds = np.tile([-2.0, -0.3, 0.8, 460.0, -460.0], (20_000, 1))
    share = np.asarray(conditionals.draw_gamma(jax.random.key(1), log_odds)).mean(axis=0)
    expected = expit(log_odds[0])
    error = np.sqrt(expected * (1 - expected) / len(log_odds))
    assert (abs(share - expected) <= stats.norm.isf(FALSE_ALARM / 10) * error).all()


@pytest.mark.parametrize("b", [0.8, -3.0])
def test_omega_against_the_joint(problem, unknowns, log_policies, b):
    """The joint as a function of one omega, normalised on a fine grid, against draws of it."""
    gamma, omega = unknowns
    f = b * (problem.ratios - S0)
    draws = np.asarray(conditionals.draw_omega(jax.random.key(2), np.tile(f, (20_000, 1))))
    grid = np.linspace(2e-3, 4, 3000)
    for t in (0, 3):
        joint = [problem.log_joint(gamma, np.where(np.arange(STEPS) == t, w, omega), b, S0, log_policies) for w in grid]
        mass = np.exp(np.array(joint) - max(joint))
        below = integrate.cumulative_trapezoid(mass, grid, initial=0)
        p_value = stats.kstest(draws[:, t], lambda w, b=below: np.interp(w, grid, b / b[-1])).pvalue
        assert p_value > FALSE_ALARM / 4


def normalised_on_grid(log_density, grid: np.ndarray) -> np.ndarray:
    values = np.array([log_density(value) for value in grid])
    density = np.exp(values - values.max())
    return density / integrate.simpson(density, x=grid)


@pytest.mark.parametrize("s0", [S0, -2.0])
def test_b_against_the_joint(problem, steps, unknowns, log_policies, s0):
    gamma, omega = unknowns
    x = conditionals.features(full().choice, steps)
    given = conditionals.b_given(
        padded(gamma, True), padded(omega, 1e3), x, jnp.asarray(s0), PRIORS["b"], np.asarray(steps.real)
    )
    grid = np.linspace(-6, 6, 1201)
    expected = normalised_on_grid(lambda b: problem.log_joint(gamma, omega, b, s0, log_policies), grid)
    found = stats.norm.pdf(grid, float(given.mean), np.sqrt(float(given.variance)))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("b", [B, -1.7, 0.0])
def test_s0_against_the_joint(problem, steps, unknowns, log_policies, b):
    gamma, omega = unknowns
    x = conditionals.features(full().choice, steps)
    given = conditionals.s0_given(
        padded(gamma, True), padded(omega, 1e3), x, jnp.asarray(b), PRIORS["s0"], np.asarray(steps.real)
    )
    grid = np.linspace(-12, 14, 1201)
    expected = normalised_on_grid(lambda s0: problem.log_joint(gamma, omega, b, s0, log_policies), grid)
    found = stats.norm.pdf(grid, float(given.mean), np.sqrt(float(given.variance)))
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("filling", [True, False])
def test_rho_against_the_joint(steps, unknowns, filling):
    """With a prior that is not symmetric; whatever gamma is in the padding."""
    gamma = unknowns[0]
    given = conditionals.rho_given(padded(gamma, filling), Beta(2.5, 0.7), np.asarray(steps.real))
    grid = np.linspace(0.0005, 0.9995, 4000)

    def log_joint(rho: float) -> float:
        return np.sum(np.where(gamma, np.log(rho), np.log(1 - rho))) + stats.beta.logpdf(rho, 2.5, 0.7)

    expected = normalised_on_grid(log_joint, grid)
    found = stats.beta.pdf(grid, float(given.first), float(given.second))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert float(given.first) == pytest.approx(2.5 + 4)


def test_given_gamma_reads_the_policy_that_made_each_step(problem, steps, unknowns):
    gamma, omega = unknowns
    log_policy = found_log_policies(full(), steps)
    found = conditionals.given_gamma(log_policy, padded(gamma, True), np.asarray(steps.real))
    other = found_log_policies(full().with_parameters({"epsilon": (0.5, 2.0), "xi": (9.0, 4.0)}), steps)
    change = conditionals.given_gamma(other, padded(gamma, True), np.asarray(steps.real)) - found
    before = problem.log_joint(gamma, omega, B, S0, problem.log_policies(EPSILON, XI))
    after = problem.log_joint(gamma, omega, B, S0, problem.log_policies((0.5, 2.0), (9.0, 4.0)))
    assert float(change) == pytest.approx(after - before, rel=1e-9)


def test_gaussians_and_log_odds_are_drawn_as_their_distributions_say():
    keys = jax.random.split(jax.random.key(3), 5000)
    normal = jax.vmap(conditionals.Gaussian(jnp.asarray(1.5), jnp.asarray(4.0)).draw)(keys)
    assert stats.kstest(np.asarray(normal), stats.norm(1.5, 2.0).cdf).pvalue > FALSE_ALARM / 2
    odds = jax.vmap(lambda key: conditionals.draw_log_odds(key, Beta(0.6, 3.0)))(keys)
    assert stats.kstest(expit(np.asarray(odds)), stats.beta(0.6, 3.0).cdf).pvalue > FALSE_ALARM / 2
