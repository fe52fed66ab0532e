"""Populations by climbs and parabolas, against theory."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

import foveate
from foveate import InputError
from foveate.data.dataset import each_observer
from foveate.inference.likelihoods import TargetLikelihoods, targets_of
from foveate.inference.population import hyperprior_of, learn_population, learnt
from foveate.inference.quadratic import Quadratics, conditional, log_marginal
from foveate.inference.target import Target
from foveate.model.priors import Beta, InverseGamma
from foveate.model.steps import Steps
from inference.known_hierarchies import gaussian_observers


def test_the_marginal_of_a_gaussian_hierarchy_is_a_normal_density():
    """Observers' estimates y_i ~ N(m, P_i^-1 + T): differences between two populations, from SciPy."""
    likelihoods, hyper = gaussian_observers(5, 3, 1)
    flat = hyper._replace(width=np.full(3, 1e9), log_spread=np.zeros(3))
    quadratics = Quadratics(np.einsum("ojk,ok->oj", likelihoods.precision, likelihoods.y), likelihoods.precision)
    rng = np.random.default_rng(2)
    found, expected = [], []
    for mean, log_spread in rng.normal(size=(4, 2, 3)):
        with jax.enable_x64(True):
            value = float(log_marginal(quadratics, flat, jnp.concatenate([mean, log_spread])))
        found.append(value + 0.5 * np.sum(log_spread**2))  # without what the hyperprior says of the spread
        pairs = zip(likelihoods.y, likelihoods.precision, strict=True)
        covariance = [(y, np.linalg.inv(it) + np.diag(np.exp(2 * log_spread))) for y, it in pairs]
        expected.append(sum(stats.multivariate_normal(mean, it).logpdf(y) for y, it in covariance))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


def test_the_conditional_is_bayes_theorem_of_two_gaussians():
    likelihoods, _ = gaussian_observers(4, 3, 3)
    quadratics = Quadratics(np.einsum("ojk,ok->oj", likelihoods.precision, likelihoods.y), likelihoods.precision)
    mean, spread = np.array([0.3, -1.0, 2.0]), np.array([0.5, 1e-4, 30.0])
    with jax.enable_x64(True):
        centre, factor = (np.asarray(it) for it in conditional(quadratics, mean, np.log(spread)))
    for place, (y, precision) in enumerate(zip(likelihoods.y, likelihoods.precision, strict=True)):
        whole = precision + np.diag(spread**-2)
        np.testing.assert_allclose(centre[place], np.linalg.solve(whole, precision @ y + mean / spread**2), rtol=1e-6)
        lift = np.diag(spread) @ np.linalg.inv(factor[place]).T
        np.testing.assert_allclose(lift @ lift.T, np.linalg.inv(whole), rtol=1e-6, atol=1e-12)


def test_a_gaussian_population_is_found_where_its_marginal_has_no_slope():
    likelihoods, hyper = gaussian_observers(8, 3, 4)
    found = learnt(likelihoods, hyper, [np.zeros((1, 3))] * 8, rounds=4)
    np.testing.assert_allclose(found.hessians, likelihoods.precision, rtol=1e-6, atol=1e-8)

    def objective(mean: np.ndarray, log_spread: np.ndarray) -> float:
        total = stats.norm.logpdf(mean, hyper.centre, hyper.width).sum()
        total += stats.norm.logpdf(log_spread, hyper.log_spread, 1.0).sum()
        for y, precision in zip(likelihoods.y, likelihoods.precision, strict=True):
            covariance = np.linalg.inv(precision) + np.diag(np.exp(2 * log_spread))
            total += stats.multivariate_normal(mean, covariance).logpdf(y)
        return total

    best = objective(found.mean, np.log(found.spread))
    for step in 0.05 * np.concatenate([np.eye(6), -np.eye(6)]):
        assert objective(found.mean + step[:3], np.log(found.spread) + step[3:]) < best


@pytest.mark.parametrize("prior", [InverseGamma(0.2, 25.0), InverseGamma(3.0, (80.0, 8.0)), Beta(4.0, 1.5)])
def test_moments_of_priors_on_the_real_line_are_those_of_log_gamma_draws(prior):
    name, model = ("xi", foveate.named_model("local_saliency"))
    if isinstance(prior, Beta):
        name, model = "rho", foveate.named_model("fixed_choice")
        mean = [digamma(4.0) - digamma(1.5)]
        sd = [np.sqrt(polygamma(1, 4.0) + polygamma(1, 1.5))]
    else:
        shape, scale = float(prior.shape), np.broadcast_to(prior.scale, 2)
        mean, sd = np.log(scale) - digamma(shape), np.sqrt(np.full(2, polygamma(1, shape)))
    fitted = model.with_priors({name: prior})
    found, where = hyperprior_of(fitted), [label.startswith(name) for label in fitted.labels]
    np.testing.assert_allclose(found.centre[where], mean, rtol=1e-4)
    np.testing.assert_allclose(found.width[where], sd, rtol=1e-4)


def test_two_cores_do_not_wait_for_each_other_forever():
    """As many observers and numbers as a study of the recommended model has; side by side this never came back."""
    code = (
        "import jax, jax.numpy as jnp, numpy as np\n"
        "from foveate.inference.quadratic import Hyperprior, Quadratics, marginal_and_slope, marginal_hessian\n"
        "with jax.enable_x64(True):\n"
        "    rng, size = np.random.default_rng(1), 37\n"
        "    root = rng.normal(size=(35, size, size))\n"
        "    linear, curvature = rng.normal(size=(35, size)), root @ root.swapaxes(1, 2)\n"
        "    observers = Quadratics(jnp.asarray(linear), jnp.asarray(curvature))\n"
        "    hyper = Hyperprior(jnp.zeros(size), jnp.ones(size), -jnp.ones(size))\n"
        "    both = jnp.concatenate([jnp.zeros(size), -jnp.ones(size)])\n"
        "    for _ in range(3):\n"
        "        bent = np.asarray(marginal_hessian(observers, hyper, both))\n"
        "        slope = np.asarray(marginal_and_slope(observers, hyper, both)[1])\n"
        "print(bent.shape, slope.shape, bool(np.isfinite(bent).all()))\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=dict(os.environ) | {"NPROC": "2"}, capture_output=True, text=True,
        timeout=240, check=True,
    ).stdout  # fmt: skip
    assert said.split("\n")[0] == "(74, 74) (74,) True"


def test_an_ordered_model_is_refused():
    with pytest.raises(InputError, match="ordered"):
        hyperprior_of(foveate.named_model("full", ordered=True))


@pytest.fixture(scope="module")
def targets() -> dict:
    data = foveate.example_data(seed=1).data
    some = {observer: own.select(pictures=own.paths.pictures[: 2 + 2 * place])
            for place, (observer, own) in enumerate(list(each_observer(data).items())[:4])}  # fmt: skip
    return targets_of(foveate.named_model("local_saliency"), some)


def test_one_shape_for_all_observers_changes_no_likelihood(targets):
    """Of the plain sum over each observer's own steps."""
    data = each_observer(foveate.example_data(seed=1).data)
    likelihoods, vector = TargetLikelihoods(targets.values(), 1), np.array([2.5, 3.0])
    model = foveate.named_model("local_saliency")
    values, slopes = likelihoods(np.broadcast_to(vector, (2, 4, 2)))
    with jax.enable_x64(True):
        there = model.from_real(jnp.asarray(vector))
    for place, observer in enumerate(targets):
        own = data[observer].select(pictures=data[observer].paths.pictures[: 2 + 2 * place])
        expected = float(foveate.log_likelihood(there, Steps.of(own, short="skip")))
        assert values[0, place] == values[1, place] == pytest.approx(expected, rel=1e-9)
    steps = 1e-5 * np.eye(2)
    for place in range(4):
        pairs = [[likelihoods.one(place, vector + sign * step)[0] for sign in (1, -1)] for step in steps]
        np.testing.assert_allclose(slopes[0, place], [(up - down) / 2e-5 for up, down in pairs], rtol=1e-4)


def test_observers_side_by_side_have_the_likelihoods_that_they_have_alone(targets):
    """The way that a GPU takes."""
    batched = []
    for target in targets.values():
        with jax.enable_x64(True):
            steps = jax.tree.map(jnp.asarray, target.steps.in_batches())
        assert steps.batched
        batched.append(Target(target.model, steps))
    vectors = np.random.default_rng(1).normal(3.0, 0.5, (3, 4, 2))
    for found, expected in zip(TargetLikelihoods(batched)(vectors), TargetLikelihoods(targets.values())(vectors),
                               strict=True):  # fmt: skip
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


def test_the_order_of_observers_changes_nothing(targets):
    found = learn_population(targets, jax.random.key(1), starts=2)
    again = learn_population(dict(reversed(targets.items())), jax.random.key(1), starts=2)
    np.testing.assert_allclose(again.mean, found.mean, atol=1e-4)
    np.testing.assert_allclose(again.spread, found.spread, rtol=1e-3)
    np.testing.assert_allclose(again.modes[::-1], found.modes, atol=1e-3)
