"""Modulated policies: parameters that are nested, factors that are shared, directions as a viewer sees them."""

from dataclasses import replace
from typing import final

import equinox as eqx
import jax
import numpy as np
import pytest
from jaxtyping import Float

from contracts.table import DIRECTIONS, TURNS, VISITED
from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.errors import InputError
from foveate.example import example_data
from foveate.inference.fit import fit
from foveate.inference.marginals import prior_of
from foveate.model.choices import Choice, OnlyPolicy, SoftmaxChoice
from foveate.model.description import describe, restore, same_structure
from foveate.model.directions import Cardinal, Turning
from foveate.model.factors import Modulated, SaliencyDrift, log_weights
from foveate.model.history import History, Picture
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.mechanisms import Momentum, Return, SalientGlobal, SalientLocal
from foveate.model.model import Model
from foveate.model.places import VisitedBefore
from foveate.model.policies import VARIANCES, Policy, StaticSaliency, as_float64
from foveate.model.priors import Beta, LogNormal, Normal, Prior
from foveate.model.steps import Steps
from foveate.simulation.simulate import simulate
from oracles import beyond, paper

PRIORS: dict[str, Prior] = {"lambda_": Beta(2.0, 2.0), "omega": LogNormal(8.0, 0.7)}


def whole_model() -> Model:
    """Four policies, all with the same factors, and a choice with features."""
    factors = (Cardinal(**DIRECTIONS), Turning(**TURNS), VisitedBefore(**VISITED), SaliencyDrift(-0.2))
    policies = (
        SalientLocal((3.0, 4.0), 1.4),
        SalientGlobal((30.0, 45.0), 1.4),
        Momentum((8.0, 10.0), 0.6, 1.4),
        Return((2.0, 3.0), 1.4),
    )
    choice = SoftmaxChoice(
        ("local", "global", "momentum", "return"),
        ("amplitude", "number"),
        (0.5, -0.2, -1.0),
        ((0.2, -0.1), (0.3, 0.4), (-0.5, 0.1)),
    )
    modulated = tuple(Modulated(policy, factors) for policy in policies)
    names = {name: value for part in (*policies, *factors, choice) for name, value in vars(part).items()}
    settings = ("among", "features", "span")
    priors = {
        name: PRIORS.get(name, LogNormal(5.0, 1.0) if np.shape(value) == (2,) else Normal(0.0, 1.0))
        for name, value in names.items()
        if name not in settings
    }
    return Model(modulated, choice, priors, "whole")


def data_on(cells: int) -> Dataset:
    data = example_data().data.select(observers=["ann"])
    return Dataset(data.paths, data.maps.resample(Grid(cells, cells, data.maps.grid.extent)))


def compiled(function, *seen):
    """The function of a history and a picture, as the package calls it."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, eqx.filter_jit(function)(*seen))


def test_nested_parameters_have_labels_and_can_be_changed():
    model = whole_model()
    assert model.policy_names == ["SalientLocal", "SalientGlobal", "Momentum", "Return"]
    assert model.memory == VisitedBefore(**VISITED).span + 1
    assert len(model.labels) == len(set(model.labels)) == len(np.asarray(model.to_real()))
    for label in ("xi_row", "upward", "lambda_", "base_return", "slope_momentum_number"):
        assert label in model.labels
    changed = model.with_parameters({"mu": -0.3})
    assert [float(policy.factors[2].mu) for policy in changed.policies if isinstance(policy, Modulated)] == [-0.3] * 4
    back = model.from_real(model.to_real())
    for name, value in model.parameters.items():
        np.testing.assert_allclose(back.parameters[name], value, rtol=1e-12)
    assert prior_of(model, "slope_momentum_number").log_density(np.zeros(())) == pytest.approx(-0.9189385332)


def test_a_description_gives_the_same_model_back():
    model = whole_model()
    again = restore(describe(model))
    assert describe(again) == describe(model)
    other = model.with_parameters({"onward": 0.1, "slopes": np.zeros((3, 2))})
    assert same_structure(other, describe(model))
    fewer = replace(model.policies[0], factors=model.policies[0].factors[:3])  # type: ignore[attr-defined]
    assert not same_structure(replace(model, policies=(fewer, *model.policies[1:])), describe(model))


def test_the_mixture_is_that_of_the_oracle():
    """Every step's density against policies, factors and choice in plain NumPy."""
    model, data = whole_model(), data_on(12)
    steps = Steps.of(data, memory=model.memory)
    found = np.asarray(step_log_likelihoods(model, steps))
    path = next(iter(data.paths))
    extent = data.maps.grid.extent
    scene = paper.Scene(np.asarray(data.maps.select([path.picture]).values[0]), extent.height_deg, extent.width_deg)
    assert extent.origin == "bottom"  # as the oracle has it
    for t in range(2, 12):
        fixations = list(zip(path.y_deg[:t], path.x_deg[:t], strict=True))
        weights = [
            beyond.salient_local(scene, fixations, (3.0, 4.0), 1.4),
            beyond.salient_global(scene, fixations, (30.0, 45.0), 1.4),
            beyond.momentum(scene, fixations, (8.0, 10.0), 0.6, 1.4),
            beyond.return_(scene, fixations, (2.0, 3.0), 1.4),
        ]
        factor = (
            beyond.cardinal(scene, fixations, **DIRECTIONS)
            + beyond.turning(scene, fixations, **TURNS)
            + beyond.visited_before(scene, fixations, **VISITED)
            + beyond.saliency_drift(scene, fixations, -0.2)
        )
        slopes = np.zeros((3, 6))
        slopes[:, [0, 4]] = ((0.2, -0.1), (0.3, 0.4), (-0.5, 0.1))
        chosen = beyond.softmax_choice(scene, fixations, (0.5, -0.2, -1.0), slopes, np.zeros(t))
        expected = beyond.mixture(chosen, weights, factor)[scene.cell(path.y_deg[t], path.x_deg[t])]
        assert found[0, t - 2] == pytest.approx(np.log(expected), rel=1e-10)


def test_shared_factors_are_worked_out_once_and_others_are_not_mixed_up():
    model, data = whole_model(), data_on(12)
    picture = Picture.whole(data.maps.grid, data.maps.values[0])
    path = next(iter(data.paths))
    history = History.of(picture, path.y_deg[:7], path.x_deg[:7], memory=model.memory)
    own = Modulated(SalientLocal((3.0, 4.0), 1.4), (Turning(-0.5, 0.0),))
    all_of_them = (*model.policies, own)
    together = compiled(lambda *seen: log_weights(all_of_them, *seen), history, picture)
    for policy, found in zip(all_of_them, together, strict=True):
        np.testing.assert_allclose(found, compiled(policy.log_weight, history, picture), rtol=1e-12)

    def length(function) -> int:
        with jax.enable_x64(True):
            return len(str(eqx.filter_make_jaxpr(function)(history, picture)[0]))

    sharing = length(lambda *seen: log_weights(model.policies, *seen))
    assert sharing < 0.6 * length(lambda *seen: [it.log_weight(*seen) for it in model.policies])


@pytest.mark.parametrize(("origin", "sign"), [("bottom", 1), ("top", -1)])
def test_upward_is_up_for_the_viewer(origin, sign):
    extent = Extent(20.0, 20.0, origin)
    grid = Grid(20, 20, extent)
    picture = Picture.whole(grid, np.full(grid.shape, 1 / 400))
    history = History.of(picture, np.array([5.0, 10.0]), np.array([10.0, 10.0]))
    factor = compiled(Cardinal(0.0, 1.0, 0.0, 0.0, 0.0).log_factor, history, picture)
    assert sign * factor[18, 10] > 0.9 > 0 > -0.9 > sign * factor[1, 10]
    rightward = compiled(Cardinal(1.0, 0.0, 0.0, 0.0, 0.0).log_factor, history, picture)
    assert rightward[10, 18] > 0.9
    # the last saccade went along y, so going on does too, whichever way that is seen
    onward = compiled(Turning(1.0, 0.0).log_factor, history, picture)
    assert onward[18, 10] > 0.9 > 0 > -0.9 > onward[1, 10]


def test_such_a_model_simulates():
    model, data = whole_model(), data_on(8)
    paths = simulate(model, data.maps, 12, jax.random.key(1))
    assert set(np.unique(paths.columns["policy"][paths.real])) == {-1, 0, 1, 2, 3}


@pytest.mark.slow
def test_such_a_model_fits():
    model, data = whole_model(), data_on(8)
    fitted = fit(model, data, jax.random.key(2), sampler="nuts", chains=2, warmup=20, draws=20)
    assert fitted.samples.real.shape[-1] == len(model.labels)
    tree = fitted.to_arviz()
    assert tree.posterior["slopes"].shape == (2, 20, 6)
    assert tree.posterior["slopes"].coords["slopes_number"].values.tolist()[0] == "slope_global_amplitude"


def test_ones_own_class_is_meant_where_a_name_is_the_same():
    @final
    class Return(Policy):
        """Somebody's own."""

        eta: Float[np.ndarray, "2"] = eqx.field(converter=as_float64, metadata=VARIANCES)

        def log_weight(self, history, picture):
            return picture.log_saliency

    theirs = Model((Return((1.0, 2.0)),), OnlyPolicy(), {"eta": LogNormal(1.0, 1.0)}, "own")
    assert type(restore(describe(theirs), (Return,)).policies[0]) is Return


def test_two_policies_of_a_class_have_names_of_their_own():
    wide, narrow = SalientGlobal((30.0, 45.0), 1.4), Modulated(SalientGlobal((30.0, 45.0), 1.4), [Turning(**TURNS)])
    priors: dict[str, Prior] = {name: Normal(0.0, 1.0) for name in ("alpha", "onward", "axial", "base", "slopes")}
    choice = SoftmaxChoice(("wide", "turning"), (), (0.0,), np.zeros((1, 0)))
    model = Model((wide, narrow), choice, priors | {"xi": LogNormal(9.0, 1.0)}, "twice")
    assert model.policy_names == ["SalientGlobal", "SalientGlobal2"]
    assert describe(restore(describe(model))) == describe(model)


def test_numbers_of_any_shape_have_labels():
    @final
    class Three(Choice):
        """Somebody's own, with three numbers."""

        weights: Float[np.ndarray, "3"] = eqx.field(converter=as_float64)

        @property
        def policies(self) -> int:
            return 1

        def log_probabilities(self, history, picture):
            return np.zeros(1)

    model = Model((StaticSaliency(),), Three((1.0, 2.0, 3.0)), {"weights": Normal(0.0, 1.0)}, "three")
    assert model.labels == ["weights_0", "weights_1", "weights_2"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: VisitedBefore(-1.0, -2.0, 0.5), "omega = -2.0: a variance must be a positive number"),
        (lambda: VisitedBefore(-1.0, 2.0, 1.5), "the decay must lie between 0 and 1"),
        (lambda: VisitedBefore(-1.0, 2.0, 0.5, 0), "give a number of fixations, 1 or more"),
        (lambda: SoftmaxChoice(("a", "b"), ("mood",), (0.0,), ((0.0,),)), "no feature mood of the history"),
        (lambda: SoftmaxChoice(("a", "b"), ("number",), (0.0, 1.0), ((0.0,),)), r"base has shape \(2,\)"),
        (lambda: SoftmaxChoice(("a", "a"), (), (0.0,), np.zeros((1, 0))), "name two policies or more, each once"),
    ],
)
def test_a_part_that_cannot_be_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
