"""Published numbers are px^2 and probabilities per cell of 64 x 64; ours are deg^2 and relative to uniform."""

import jax
import numpy as np
import pytest
from samples import GRID
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS
from foveate.errors import InputError
from foveate.model import catalogue
from foveate.model.history import History, Picture
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.policies import Global
from foveate.model.priors import Beta, LogNormal, Normal
from foveate.model.steps import Steps

# Degrees per px of the released coordinates, (row, column), from the range of the data.
PX_DEG = np.array([25.6893, 32.1116]) / 64

# The paper's recovery experiment: variances (row, column) in px^2, Local Choice's b and s0 per cell of 64 x 64.
TRUTH = {
    "full": {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 0.2, "s0": 3.0},
    "local_choice": {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 3500.0, "s0": 0.001},
    "fixed_choice": {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "rho": 0.5},
    "local_saliency": {"xi": (230.0, 280.0)},
    "saliency_baseline": {},
}

# The released configurations: inverse Gammas (shape, scale in px^2), and means and variances of b and s0.
PRIORS = {
    "full": {"epsilon": (3, 80), "xi": (3, 600), "b": (3.5, 1), "s0": (1.2, 1)},
    "local_choice": {"epsilon": (0.2, 25), "xi": (0.5, 200), "b": (3000, 5e5), "s0": (9e-4, 1e-7)},
    "fixed_choice": {"epsilon": (0.2, 25), "xi": (0.5, 200), "rho": (4, 4)},
    "local_saliency": {"xi": (0.5, 200)},
    "saliency_baseline": {},
}

every_model = pytest.mark.parametrize("name", TRUTH)


@every_model
def test_published_values_survive_the_way_in_and_out(name):
    back = catalogue.to_published(catalogue.from_published(name, **TRUTH[name]))
    assert set(back) == set(TRUTH[name])
    for parameter, value in TRUTH[name].items():
        assert back[parameter] == pytest.approx(value, rel=1e-14)


def test_published_values_may_come_with_other_priors_and_another_repulsion():
    model = catalogue.from_published("full", priors="weak", repulsion="none", **TRUTH["full"])
    assert model.priors == catalogue.named_model("full", priors="weak").priors
    assert isinstance(model.policies[1], Global)
    assert catalogue.from_published("full").priors == catalogue.named_model("full", priors="published").priors


@every_model
def test_variances_are_scaled_by_the_pixel_of_the_released_coordinates(name):
    model = catalogue.from_published(name, **TRUTH[name])
    for parameter in ("epsilon", "xi"):
        if parameter in TRUTH[name]:
            np.testing.assert_allclose(model.parameters[parameter], TRUTH[name][parameter] * PX_DEG**2, rtol=1e-5)


def published_log_prior(name: str, values: dict) -> float:
    """Log prior density of values in the published units."""
    total = 0.0
    for parameter, (first, second) in PRIORS[name].items():
        distribution = {
            "epsilon": stats.invgamma(first, scale=second),
            "xi": stats.invgamma(first, scale=second),
            "rho": stats.beta(first, second),
        }.get(parameter, stats.norm(first, np.sqrt(second)))
        total += np.sum(distribution.logpdf(values[parameter]))
    return total


def log_volume(name: str) -> float:
    """Log of how much a volume of parameters grows on the way from the published units to ours."""
    pairs = sum(parameter in TRUTH[name] for parameter in ("epsilon", "xi"))
    # Local Choice's b shrinks by as much as its s0 grows
    return pairs * float(np.sum(2 * np.log(np.array([25.6892708037514, 32.1115885046892]) / 64)))


@every_model
def test_published_priors_are_the_same_distributions_in_our_units(name):
    for factor in (0.3, 1.0, 4.0):
        values = {
            key: np.multiply(value, factor if key in ("epsilon", "xi") else 1) for key, value in TRUTH[name].items()
        }
        found = float(catalogue.from_published(name, **values).log_prior())
        assert found == pytest.approx(published_log_prior(name, values) - log_volume(name), rel=1e-12, abs=1e-12)


def test_local_choice_priors_are_relative_to_uniform():
    # 3000 / 4096, 5e5 / 4096^2, 9e-4 x 4096, 1e-7 x 4096^2
    priors = catalogue.named_model("local_choice", priors="published").priors
    assert (float(priors["b"].mean), float(priors["b"].variance)) == pytest.approx((0.732, 0.0298), rel=1e-3)
    assert (float(priors["s0"].mean), float(priors["s0"].variance)) == pytest.approx((3.69, 1.68), rel=2e-3)


def test_local_choice_has_the_published_probability_on_64_by_64_cells(potsdam35):
    """rho = sigmoid(b (s - s0)) with the paper's numbers and s a probability per cell (Eq. 9)."""
    choice = catalogue.from_published("local_choice", **TRUTH["local_choice"]).choice
    picture = Picture.whole(potsdam35.maps.grid, potsdam35.maps[9])
    with jax.enable_x64(True):
        for y, x in ((3.0, 5.0), (12.0, 20.0), (24.0, 1.0)):
            history = History.of(picture, np.array([1.0, y]), np.array([1.0, x]))
            saliency = picture.saliency[int(y // 0.38845), int(x // 0.48556)]
            expected = 1 / (1 + np.exp(-3500 * (saliency - 0.001)))
            found = np.exp(np.asarray(choice.log_probabilities(history, picture)))
            assert found[0] == pytest.approx(expected, rel=1e-10)


def test_parameters_mean_the_same_on_a_finer_grid(potsdam35, potsdam35_fine):
    """A step's density per deg^2 hardly depends on the grid: with all parameters as they are, also Local Choice's."""
    gains = []
    for data in (potsdam35, potsdam35_fine):
        some = data.select(observers=[5], pictures=POTSDAM35_FOLDS[1])
        likelihood = np.asarray(step_log_likelihoods(catalogue.named_model("local_choice", b=-0.4), Steps.of(some)))
        steps = Steps.of(some)
        gains.append(likelihood[steps.real].mean() + np.log(some.maps.grid.cells))
    assert gains[0] == pytest.approx(gains[1], abs=0.03)


def test_flat_map_is_of_level_one_on_any_grid():
    """The feature of Local Choice is relative to uniform: with s0 = 1 a flat map leaves the choice open."""
    choice = catalogue.named_model("local_choice", b=2.0, s0=1.0).choice
    for rows in (14, 28):
        grid = Grid(rows, 11, GRID.extent)
        picture = Picture.whole(grid, np.full(grid.shape, 1 / grid.cells))
        history = History.of(picture, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        with jax.enable_x64(True):
            np.testing.assert_allclose(choice.log_probabilities(history, picture), np.log(0.5), rtol=1e-12)


def test_names_that_are_not_in_the_catalogue_are_refused():
    with pytest.raises(InputError, match=r"no model 'fulll'; do you mean 'full'\?"):
        catalogue.named_model("fulll")
    with pytest.raises(InputError, match=r"no model 'zoe'; there are full, local_choice, fixed_choice"):
        catalogue.named_model("zoe")
    with pytest.raises(InputError, match=r"no model 'fulll'"):
        catalogue.from_published("fulll")


def test_unknown_settings_are_refused(unchecked_types):
    with pytest.raises(InputError, match=r"repulsion = 'strong': there are released, printed, none"):
        catalogue.named_model("full", repulsion="strong")
    with pytest.raises(InputError, match=r"priors = 'flat': there are 'weak' and 'published'"):
        catalogue.named_model("full", priors="flat")
    with pytest.raises(InputError, match=r"model 'full' has no setting sigma; it has epsilon, xi, b, s0"):
        catalogue.named_model("full", sigma=3.0)
    with pytest.raises(InputError, match=r"model 'local_saliency' has no setting epsilon"):
        catalogue.from_published("local_saliency", epsilon=(25.0, 35.0), xi=(230.0, 280.0))


def test_published_variances_must_be_pairs(unchecked_types):
    for wrong in (25.0, (25.0, 35.0, 45.0)):
        with pytest.raises(InputError, match=r"epsilon.*two variances, \(row, column\)"):
            catalogue.from_published("full", epsilon=wrong)


def test_a_data_set_on_another_grid_takes_the_same_model(potsdam35):
    coarse = Dataset(potsdam35.paths, potsdam35.maps.resample(Grid(32, 32, potsdam35.paths.extent)))
    assert Steps.of(coarse.select(observers=[2], pictures=[3])).grid.shape == (32, 32)


def test_weak_priors_are_those_that_the_documents_give():
    """Pinned: a fit's default priors are part of its result."""
    deg2 = {"epsilon": LogNormal(2.0, 1.0), "xi": LogNormal(30.0, 1.0)}
    expected = {
        "full": deg2 | {"b": Normal(0.0, 0.25), "s0": Normal(1.0, 16.0)},
        "local_choice": deg2 | {"b": Normal(0.0, 0.25), "s0": Normal(3.0, 16.0)},
        "fixed_choice": deg2 | {"rho": Beta(1.0, 1.0)},
        "local_saliency": {"xi": deg2["xi"]},
        "saliency_baseline": {},
    }
    assert {name: catalogue.named_model(name).priors for name in catalogue.PUBLISHED} == expected
