"""Models whose prior allows epsilon below xi only: its mass, its draws, its files.

Monte Carlo comparisons have fixed keys and would raise a false alarm for one key in ten thousand.
"""

import jax
import numpy as np
import pytest
from scipy import stats

from foveate.errors import InputError
from foveate.model.catalogue import named_model
from foveate.model.description import describe, restore, same_structure
from foveate.model.model import Model
from foveate.model.order import log_mass_in_order
from foveate.model.priors import LogNormal

DRAWS = 20_000
FURTHEST = stats.norm.isf(1e-4 / 2)
SETTINGS = [
    ("full", "weak"),
    ("fixed_choice", "published"),
    pytest.param("full", "published", marks=pytest.mark.slow),
    pytest.param("local_choice", "weak", marks=pytest.mark.slow),
]


def ordered(model: Model) -> bool:
    values = model.parameters
    return bool((np.asarray(values["epsilon"]) < np.asarray(values["xi"])).all())


def draws(model: Model, count: int) -> tuple[np.ndarray, np.ndarray]:
    def draw(key):
        values = model.draw_from_prior(key).parameters
        return values["epsilon"], values["xi"]

    with jax.enable_x64(True):
        epsilon, xi = jax.vmap(draw)(jax.random.split(jax.random.key(4), count))
    return np.asarray(epsilon), np.asarray(xi)


@pytest.mark.parametrize(("name", "priors"), SETTINGS)
def test_the_mass_in_order_is_the_share_of_prior_draws(name, priors):
    model = named_model(name, priors=priors)
    epsilon, xi = draws(model, DRAWS)
    share = (epsilon < xi).all(axis=1).mean()
    mass = float(np.exp(log_mass_in_order(model.priors)))
    assert 0.1 < mass < 1
    assert abs(share - mass) < FURTHEST * np.sqrt(mass * (1 - mass) / DRAWS)


@pytest.mark.parametrize(("name", "priors"), SETTINGS)
def test_prior_draws_of_an_ordered_model_are_in_order_and_those_of_the_plain_one_that_are(name, priors):
    plain = draws(named_model(name, priors=priors), DRAWS)
    kept = (plain[0] < plain[1]).all(axis=1)
    restricted = draws(named_model(name, priors=priors, ordered=True), 4000)
    assert (restricted[0] < restricted[1]).all()
    for all_of_them, some in zip(plain, restricted, strict=True):
        for axis in (0, 1):
            assert stats.ks_2samp(all_of_them[kept, axis], some[:, axis]).pvalue > 1e-4


def test_the_prior_density_is_higher_by_the_mass_in_order_and_zero_outside():
    model = named_model("full")
    restricted = named_model("full", ordered=True)
    raised = float(restricted.log_prior() - model.log_prior())
    assert raised == pytest.approx(-float(log_mass_in_order(model.priors)), abs=1e-12)
    outside = restricted.with_parameters({"epsilon": np.array([1.0, 90.0]), "xi": np.array([20.0, 60.0])})
    assert outside.ordered
    assert float(outside.log_prior()) == -np.inf


def test_files_keep_the_order():
    model = named_model("local_choice", ordered=True)
    assert restore(describe(model)).ordered
    assert not same_structure(named_model("local_choice"), describe(model))
    before = {key: value for key, value in describe(named_model("full")).items() if key != "ordered"}
    assert not restore(before).ordered


def test_a_model_that_cannot_be_ordered_says_so():
    with pytest.raises(InputError, match="no setting ordered"):
        named_model("local_saliency", ordered=True)
    one = named_model("local_saliency")
    with pytest.raises(InputError, match="needs both epsilon and xi"):
        Model(one.policies, one.choice, one.priors, "one", ordered=True)
    with pytest.raises(InputError, match="LogNormal and InverseGamma"):
        named_model("full", priors="published", ordered=True).with_priors({"epsilon": LogNormal(2.0, 1.0)})
