"""Simulated scan paths: shapes, labels, starts, independence of batches and threads, and what is refused."""

from dataclasses import replace
from importlib import import_module
from typing import ClassVar, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.model import catalogue
from foveate.model.choices import OnlyPolicy
from foveate.model.history import Array, History, Picture
from foveate.model.model import Model
from foveate.model.policies import (
    Global,
    Local,
    Policy,
    PrintedRepelledGlobal,
    RepelledGlobal,
    StaticSaliency,
    as_float64,
    log_gaussian,
)
from foveate.model.priors import LogNormal
from foveate.precision import double_precision
from foveate.simulation.draw import Views, draw_cell, fast_row_mass, plain_row_mass
from foveate.simulation.predictive import prior_predictive
from foveate.simulation.simulate import simulate

GRID = Grid(12, 16, Extent(9.0, 20.0))

# The package itself hands out the function of this name.
module = import_module("foveate.simulation.simulate")

MODELS = {
    "full, released": catalogue.full(),
    "full, printed": catalogue.full(repulsion="printed"),
    "full, none": catalogue.full(repulsion="none"),
    "local_choice": catalogue.local_choice(),
    "fixed_choice": catalogue.fixed_choice(),
    "local_saliency": catalogue.local_saliency(),
    "saliency_baseline": catalogue.saliency_baseline(),
}


def make_maps(pictures=("beach", "wood", "yard"), grid: Grid = GRID) -> SaliencyMaps:
    rng = np.random.default_rng(5)
    weights = {picture: rng.gamma(0.5, size=grid.shape) + 0.01 for picture in pictures}
    return SaliencyMaps.from_arrays(weights, grid.extent, normalise=True)


def observed(lengths=(5, 2, 9, 3)) -> ScanPaths:
    """Paths of two observers, at positions that are no cell's centre."""
    rng = np.random.default_rng(6)
    shape = (len(lengths), max(lengths))
    real = np.arange(shape[1]) < np.array(lengths)[:, None]
    return ScanPaths(
        extent=GRID.extent,
        observer=np.array(["ann", "ann", "ben", "ben"])[: len(lengths)],
        picture=np.array(["beach", "yard", "beach", "yard"])[: len(lengths)],
        trial=np.array([1, 1, 1, 7])[: len(lengths)],
        length=np.array(lengths),
        fixation=np.where(real, 2 * np.arange(shape[1]) + 1, 0),
        x_deg=np.where(real, rng.uniform(0, 20, shape), np.nan),
        y_deg=np.where(real, rng.uniform(0, 9, shape), np.nan),
        duration_s=np.where(real, 0.2, np.nan),
    )


def assert_same(one: ScanPaths, other: ScanPaths) -> None:
    for name in ("observer", "picture", "trial", "length", "fixation", "x_deg", "y_deg"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(one.columns["policy"], other.columns["policy"])


# --- what comes out ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_every_model_gives_paths_of_cell_centres_with_policy_labels(name):
    model, maps = MODELS[name], make_maps()
    paths = simulate(model, maps, 16, jax.random.key(1))
    assert paths.observers == [1]
    assert paths.picture.tolist() == list(maps.pictures)
    assert paths.length.tolist() == [16] * 3
    assert paths.fixation.tolist() == [list(range(1, 17))] * 3
    assert paths.extent == GRID.extent
    row, column = GRID.cell_of(paths.y_deg, paths.x_deg)
    np.testing.assert_allclose(np.stack(GRID.centre_of(row, column)), np.stack([paths.y_deg, paths.x_deg]), rtol=1e-14)
    assert len(np.unique(paths.x_deg)) > 5
    assert len(np.unique(paths.y_deg)) > 5
    policy = paths.columns["policy"]
    assert (policy[:, :2] == -1).all()
    assert np.unique(policy[:, 2:]).tolist() == list(range(len(model.policies)))


def test_a_single_model_serves_all_observers_of_imitated_paths():
    like = observed()
    paths = simulate(catalogue.full(), make_maps(), like, jax.random.key(1))
    for name in ("observer", "picture", "trial", "length"):
        np.testing.assert_array_equal(getattr(paths, name), getattr(like, name))
    assert paths.x_deg.shape == like.x_deg.shape
    assert np.isnan(paths.x_deg[~like.real]).all()
    assert (paths.columns["policy"][~like.real] == -1).all()
    assert paths.fixation[2].tolist() == list(range(1, 10))
    assert paths.duration_s is None


def test_each_observer_gets_their_own_parameters():
    tiny, wide = (catalogue.fixed_choice(epsilon=(v, v), rho=1 - 1e-12) for v in (1e-6, 1e6))
    paths = simulate({"still": tiny, "far": wide}, make_maps(("beach", "yard")), 16, jax.random.key(2))
    assert paths.observer.tolist() == ["still", "still", "far", "far"]
    amplitude = np.hypot(np.diff(paths.x_deg), np.diff(paths.y_deg))[:, 1:]
    assert (amplitude[:2] == 0).all()
    assert (amplitude[2:].mean(axis=1) > 3).all()


def test_imitated_observers_are_matched_to_their_models_by_name():
    tiny, wide = (catalogue.fixed_choice(epsilon=(v, v), rho=1 - 1e-12) for v in (1e-6, 1e6))
    like = observed((16, 16, 16, 16))
    paths = simulate({"ben": tiny, "carl": tiny, "ann": wide}, make_maps(), like, jax.random.key(2))
    amplitude = np.hypot(np.diff(paths.x_deg), np.diff(paths.y_deg))[:, 1:]
    assert (amplitude[:2].mean(axis=1) > 3).all()
    assert (amplitude[2:] == 0).all()


def test_paths_look_at_the_map_of_their_own_picture():
    one_cell = np.zeros((3, *GRID.shape))
    one_cell[0, 2, 3] = one_cell[1, 11, 0] = one_cell[2, 0, 15] = 1
    maps = SaliencyMaps(GRID, ("beach", "wood", "yard"), one_cell)
    like = observed()
    paths = simulate(catalogue.local_saliency(), maps, like, jax.random.key(2))
    for path, n in enumerate(paths.length):
        row, column = GRID.cell_of(paths.y_deg[path, :n], paths.x_deg[path, :n])
        place = {"beach": (2, 3), "yard": (0, 15)}[str(paths.picture[path])]
        assert {(int(r), int(c)) for r, c in zip(row, column, strict=True)} == {place}


def test_observed_start_keeps_the_first_two_fixations_as_they_are():
    like, maps = observed((5, 2, 9, 3)), make_maps()
    still = catalogue.fixed_choice(epsilon=(1e-9, 1e-9), rho=1 - 1e-12)
    paths = simulate(still, maps, like, jax.random.key(1), observed_start=True)
    np.testing.assert_array_equal(paths.x_deg[:, :2], like.x_deg[:, :2])
    np.testing.assert_array_equal(paths.y_deg[:, :2], like.y_deg[:, :2])
    cells = np.stack(GRID.cell_of(paths.y_deg[2, :9], paths.x_deg[2, :9]))
    assert (cells[:, 2:] == cells[:, 1:2]).all()


def test_imitated_paths_keep_their_forced_fixations():
    """Also where the arrays are wider than the longest path: flags belong to their fixations, not to the padding."""
    like, maps = observed((5, 2, 9, 3)), make_maps()
    forced = np.zeros(like.real.shape, dtype=bool)
    forced[0, [0, 3]], forced[2, [4, 5, 8]], forced[3, 1] = True, True, True
    made = simulate(catalogue.full(), maps, replace(like, columns={"forced": forced}), jax.random.key(1))
    np.testing.assert_array_equal(made.forced, forced)
    short = replace(like, columns={"forced": forced | ~like.real}).select(observers=["ann"])
    wide = {name: np.pad(getattr(short, name), ((0, 0), (0, 4))) for name in ("fixation", "x_deg", "y_deg")}
    flags = {"forced": np.pad(short.columns["forced"], ((0, 0), (0, 4)), constant_values=True)}
    wide = replace(short, duration_s=None, columns=flags, **wide)
    np.testing.assert_array_equal(
        simulate(catalogue.full(), maps, wide, jax.random.key(1)).columns["forced"], forced[:2, :5]
    )


def test_flags_change_no_draw_and_without_forced_fixations_there_is_no_column():
    like, maps = observed(), make_maps()
    plain = simulate(catalogue.full(), maps, like, jax.random.key(1))
    assert list(plain.columns) == ["policy"]
    for flags in (np.zeros(like.real.shape, dtype=bool), ~like.real):
        made = simulate(catalogue.full(), maps, replace(like, columns={"forced": flags}), jax.random.key(1))
        assert list(made.columns) == ["policy"]
        assert_same(made, plain)
    flags = like.real & (np.arange(9) == 2)
    assert_same(simulate(catalogue.full(), maps, replace(like, columns={"forced": flags}), jax.random.key(1)), plain)


def test_the_result_survives_a_table_and_pairs_with_its_maps():
    maps = make_maps()
    paths = simulate(catalogue.full(), maps, 6, jax.random.key(1))
    assert_same(ScanPaths.from_table(paths.to_table(), GRID.extent), paths)
    assert np.isfinite(maps.at(paths)).all()


# --- randomness ----------------------------------------------------------------------------------------------------


def test_the_same_key_gives_the_same_paths_and_another_key_others():
    one, again, other = (simulate(catalogue.full(), make_maps(), 16, jax.random.key(k)) for k in (1, 1, 2))
    assert_same(one, again)
    assert (one.x_deg != other.x_deg).mean() > 0.5


def test_a_path_does_not_depend_on_the_paths_and_fixations_after_it():
    models = {"ann": catalogue.full(), "ben": catalogue.full(b=-1.0)}
    few = simulate({"ann": models["ann"]}, make_maps(), 7, jax.random.key(3))
    many = simulate(models, make_maps(), 20, jax.random.key(3))
    np.testing.assert_array_equal(many.x_deg[:3, :7], few.x_deg)
    np.testing.assert_array_equal(many.columns["policy"][:3, :7], few.columns["policy"])


def test_paths_with_the_same_map_and_parameters_differ():
    paths = simulate({k: catalogue.full() for k in range(4)}, make_maps(("beach",)), 5, jax.random.key(3))
    assert len({tuple(x) for x in paths.x_deg}) == 4


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_and_threads_do_not_change_the_result(monkeypatch, threads):
    whole = simulate({k: catalogue.full() for k in range(5)}, make_maps(), 15, jax.random.key(4))
    like = replace(whole, length=np.random.default_rng(1).integers(1, 16, size=len(whole)))
    expected = simulate(catalogue.full(), make_maps(), like, jax.random.key(4))
    monkeypatch.setattr(module, "BATCH_BYTES", 1)
    monkeypatch.setattr("foveate.threads.cores", lambda: threads)
    assert len(module._batches(like.length, GRID.cells)) == 4
    assert_same(simulate(catalogue.full(), make_maps(), like, jax.random.key(4)), expected)


def test_batches_hold_every_path_and_stay_small_on_large_grids():
    length = np.random.default_rng(1).integers(1, 40, size=1001)
    for side in (12, 64, 256, 1024):
        batches = module._batches(length, side * side)
        assert {len(batch) for batch in batches} == {len(batches[0])}
        assert sorted(set(np.concatenate(batches).tolist())) == list(range(1001))
        assert len(batches[0]) * side * side * 8 <= 2**25
    assert [len(batch) for batch in module._batches(length[:5], 64)] == [8]


def test_a_float32_program_gets_double_precision_and_keeps_its_own():
    assert jnp.zeros(1).dtype == jnp.float32
    paths = simulate(catalogue.full(), make_maps(), 5, jax.random.key(1))
    assert paths.x_deg.dtype == np.float64
    assert jnp.zeros(1).dtype == jnp.float32


# --- fast and plain ------------------------------------------------------------------------------------------------

POLICIES = {
    "local": lambda v, w: Local(v),
    "global": lambda v, w: Global(w),
    "released": lambda v, w: RepelledGlobal(w, v),
    "printed": lambda v, w: PrintedRepelledGlobal(w, v),
    "static": lambda v, w: StaticSaliency(),
}


def _batch() -> tuple[History, np.ndarray, np.ndarray]:
    """400 histories and maps, half of them with many empty cells, and two uniform numbers each."""
    rng = np.random.default_rng(8)
    maps = rng.gamma(0.3, size=(400, *GRID.shape)) * (rng.random((400, *GRID.shape)) < 0.05)
    maps[::2] += rng.gamma(0.3, size=(200, *GRID.shape))
    maps[:, 0, 0] += 1e-3
    maps /= maps.sum(axis=(1, 2), keepdims=True)
    gaze = rng.uniform(0, 1, (400, 2, 2)) * (9, 20)
    return History(gaze, np.ones((400, 2)), np.full(400, 2), np.zeros((400, 2))), maps, rng.random((400, 2))


@double_precision
def _drawn(kind: str, epsilon, xi, row_mass):
    history, maps, uniform = _batch()
    policy = jax.vmap(lambda _: POLICIES[kind](jnp.asarray(epsilon), jnp.asarray(xi)))(jnp.arange(len(maps)))
    views = Views.of(GRID, maps)
    mass = row_mass(policy, history, views)
    cell = draw_cell((policy,), jnp.zeros(len(maps), int), history, views, jnp.asarray(uniform), row_mass)
    return np.asarray(mass / mass.sum(axis=1, keepdims=True)), np.stack([np.asarray(axis) for axis in cell])


@pytest.mark.parametrize(
    ("epsilon", "xi"),
    [((0.8, 3.0), (9.0, 30.0)), ((40.0, 2.0), (3.0, 20.0)), ((1e-4, 1e-3), (1e-3, 1e-4)), ((1e200, 1e5), (1e6, 1e250))],
)
@pytest.mark.parametrize("kind", POLICIES)
def test_the_fast_draw_gives_the_cells_of_the_plain_one(kind, epsilon, xi):
    fast, fast_cells = _drawn(kind, epsilon, xi, fast_row_mass)
    plain, plain_cells = _drawn(kind, epsilon, xi, plain_row_mass)
    np.testing.assert_allclose(fast, plain, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(fast_cells, plain_cells)


# --- a newcomer's policy -------------------------------------------------------------------------------------------


@final
class Back(Policy):
    """Gaze returns to where it was three fixations ago."""

    memory: ClassVar[int] = 3
    spread: Float[Array, ""] = eqx.field(converter=as_float64)

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        """A narrow Gaussian around z_{t-3}."""
        return log_gaussian(picture, history.position_deg[2], jnp.full(2, self.spread))


def test_a_policy_without_a_fast_path_simulates_and_sees_its_whole_memory():
    prior = LogNormal(1.0, 1.0)
    model = Model((Back(1e-9),), OnlyPolicy(), {"spread": prior}, "back")
    paths = simulate({"ann": model, "ben": model}, make_maps(("beach", "yard")), 12, jax.random.key(1))
    np.testing.assert_array_equal(paths.x_deg[:, 2], paths.x_deg[:, 0])  # the oldest fixation is repeated
    np.testing.assert_array_equal(paths.x_deg[:, 3:], paths.x_deg[:, :-3])
    np.testing.assert_array_equal(paths.y_deg[:, 3:], paths.y_deg[:, :-3])


# --- prior-predictive ----------------------------------------------------------------------------------------------


def test_the_prior_predictive_simulates_each_draw_as_an_observer():
    result = prior_predictive(catalogue.full(), make_maps(), 8, 5, jax.random.key(1))
    assert result.paths.observers == [1, 2, 3, 4, 5]
    assert len(result.paths) == 15
    assert {name: value.shape for name, value in result.parameters.items()} == {
        "epsilon": (5, 2), "xi": (5, 2), "b": (5,), "s0": (5,),
    }  # fmt: skip
    assert len(result.amplitude_deg) == 15 * 6
    first = np.hypot(*(np.diff(v[0])[1:] for v in (result.paths.x_deg, result.paths.y_deg)))
    np.testing.assert_allclose(result.amplitude_deg[:6], first)
    quantiles = result.amplitude_quantiles_deg((0.25, 0.5))
    assert list(quantiles) == [0.25, 0.5]
    assert quantiles[0.5] == np.median(result.amplitude_deg)
    assert result.share_between(0, 1e9) == 1
    assert result.share_between(3, 6) == np.mean((result.amplitude_deg >= 3) & (result.amplitude_deg <= 6))


def test_each_prior_draw_moves_with_its_own_parameters():
    result = prior_predictive(catalogue.fixed_choice(priors="published"), make_maps(), 16, 100, jax.random.key(1))
    spread = np.minimum(result.parameters["epsilon"][:, 1], 1e3)  # beyond that, steps are as good as uniform
    local = (result.paths.columns["policy"][:, 2:] == 0).reshape(100, -1)
    step = np.abs(np.diff(result.paths.x_deg))[:, 1:].reshape(100, -1)
    mean = (step * local).sum(axis=1) / local.sum(axis=1)
    assert np.corrcoef(np.log(spread), mean)[0, 1] > 0.6  # without a relation: 0.1 at most, as a standard error


@pytest.mark.parametrize("priors", ["weak", "published"])
@pytest.mark.parametrize("name", ["full", "local_choice", "fixed_choice", "local_saliency"])
def test_priors_of_every_model_give_finite_paths(name, priors):
    model = catalogue.named_model(name, priors=priors)
    result = prior_predictive(model, make_maps(), 16, 100, jax.random.key(7))
    assert all(np.isfinite(value).all() for value in result.parameters.values())
    assert np.isfinite(result.amplitude_deg).all()
    if priors == "weak":
        assert result.share_between() > 0.8


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked_types")
def test_wrong_arguments_are_refused_in_a_sentence():
    model, maps, key = catalogue.full(), make_maps(), jax.random.key(1)
    for lengths in (0, -3, 2.5, True):
        with pytest.raises(InputError, match=r"lengths = .*: give a number of fixations, 1 or more"):
            simulate(model, maps, lengths, key)
    with pytest.raises(InputError, match=r"key = 3: .* jax.random.key\(seed\)"):
        simulate(model, maps, 5, 3)
    with pytest.raises(InputError, match="no models given"):
        simulate({}, maps, 5, key)
    with pytest.raises(InputError, match="observer names 1, 'ann': they must be all whole numbers or all text"):
        simulate({1: model, "ann": model}, maps, 5, key)
    with pytest.raises(InputError, match="lengths = 2: the first 2 fixations are drawn from the map"):
        prior_predictive(model, maps, 2, 5, key)
    with pytest.raises(InputError, match="draws = 0: give a number of parameter sets"):
        prior_predictive(model, maps, 5, 0, key)


def test_paths_that_do_not_fit_the_maps_or_the_models_are_refused():
    model, key = catalogue.full(), jax.random.key(1)
    with pytest.raises(InputError, match="no map for picture yard; there are maps for beach, wood"):
        simulate(model, make_maps(("beach", "wood")), observed(), key)
    with pytest.raises(InputError, match="no model for observer ben; there are models for ann, carl: add theirs"):
        simulate({"ann": model, "carl": model}, make_maps(), observed(), key)
    elsewhere = make_maps(grid=Grid(12, 16, Extent(10.0, 20.0)))
    with pytest.raises(InputError, match=r"the scan paths lie in .*, the maps in .*; they must be the same"):
        simulate(model, elsewhere, observed(), key)


@pytest.mark.parametrize("other", [catalogue.fixed_choice(), catalogue.full(repulsion="none"), MODELS["local_choice"]])
def test_models_of_different_structure_are_refused(other):
    with pytest.raises(InputError, match=r"the model of observer ben \(.*\) is not built like that of observer ann"):
        simulate({"ann": catalogue.full(), "ben": other}, make_maps(), 5, jax.random.key(1))


def test_an_observed_start_needs_two_observed_fixations():
    model, maps, key = catalogue.full(), make_maps(), jax.random.key(1)
    with pytest.raises(InputError, match=r"observed_start=True with lengths = 5: .*give scan paths"):
        simulate(model, maps, 5, key, observed_start=True)
    with pytest.raises(InputError, match=r"observer ann, picture 'yard': the path has 1 fixations, but 2 are needed"):
        simulate(model, maps, observed((5, 1, 9, 3)), key, observed_start=True)
    assert simulate(model, maps, observed((5, 1, 9, 3)), key).length.tolist() == [5, 1, 9, 3]


@pytest.mark.parametrize("exponent", [708.0, 742.0])
def test_row_masses_keep_their_ratio_where_products_underflow(exponent):
    """Just above and far below the smallest normal number: there a product loses digits, or is flushed to zero."""
    grid = Grid(3, 4, Extent(3.0, 4.0))
    saliency = np.zeros((1, 3, 4))
    saliency[0, 0, 0], saliency[0, 2, 0] = 0.7, 0.3
    policy = Global(np.array([1.0, 1.0]))
    with jax.enable_x64(True):
        history = History(
            jnp.full((1, 2, 2), jnp.array([1.5, 0.5])), jnp.ones((1, 2)), jnp.full(1, 2), jnp.zeros((1, 2))
        )
        batch = eqx.tree_at(lambda it: it.xi, policy, jnp.array([[0.5 / exponent, 1.0]]))
        found = np.asarray(fast_row_mass(batch, history, Views.of(grid, jnp.asarray(saliency))))[0]
    np.testing.assert_allclose(found / found.sum(), [0.7, 0.0, 0.3], rtol=1e-12)
