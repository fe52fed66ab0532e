"""Simulated fixations against the model's own density: how often each policy decides and each cell is fixated.

A small grid with oblong cells, a lopsided map and a gaze off the centre, so that no mistake in sign or axis hides.
Keys are fixed; each test would raise a false alarm for one key in ten thousand.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float, Int
from scipy import stats

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.model import catalogue
from foveate.model.history import History, Picture
from foveate.model.model import Model, mixture_log_density
from foveate.precision import double_precision
from foveate.simulation.simulate import simulate

FALSE_ALARM = 1e-4
FEWEST_EXPECTED = 5  # cells with a smaller expectation are counted together
PATHS = 20_000

GRID = Grid(12, 16, Extent(9.0, 20.0))
START_Y_DEG, START_X_DEG = np.array([6.4, 2.3]), np.array([15.2, 7.1])

EPSILON, XI = (1.5, 2.5), (6.0, 25.0)
MODELS = {
    "full, released": catalogue.full(epsilon=EPSILON, xi=XI, b=0.6, s0=2.0),
    "full, printed": catalogue.full(epsilon=EPSILON, xi=XI, b=0.6, s0=2.0, repulsion="printed"),
    "full, none": catalogue.full(epsilon=EPSILON, xi=XI, b=0.6, s0=2.0, repulsion="none"),
    "local_choice, released": catalogue.local_choice(epsilon=EPSILON, xi=XI, b=-0.5, s0=2.0),
    "fixed_choice, printed": catalogue.fixed_choice(epsilon=EPSILON, xi=XI, rho=0.3, repulsion="printed"),
    "local_saliency": catalogue.local_saliency(xi=XI),
    "saliency_baseline": catalogue.saliency_baseline(),
}


def saliency() -> Float[np.ndarray, "row column"]:
    """A ridge that rises to one side, a peak near a corner, and cells without mass."""
    row, column = np.mgrid[: GRID.rows, : GRID.columns]
    weight = 0.2 + 0.1 * column + 3 * np.exp(-((row - 9) ** 2) / 4 - (column - 3) ** 2 / 9)
    weight[:3, 13:] = 0
    return weight / weight.sum()


MAPS = SaliencyMaps(GRID, ("beach",), saliency()[None])
PICTURE = Picture.whole(GRID, saliency())


def started(fixations: int) -> ScanPaths:
    """Paths to imitate that all begin with the same two fixations."""
    shape = (PATHS, fixations)
    y_deg, x_deg = np.full(shape, 1.0), np.full(shape, 1.0)
    y_deg[:, :2], x_deg[:, :2] = START_Y_DEG, START_X_DEG
    return ScanPaths(
        extent=GRID.extent,
        observer=np.ones(PATHS, dtype=np.int64),
        picture=np.full(PATHS, "beach"),
        trial=np.arange(PATHS),
        length=np.full(PATHS, fixations),
        fixation=np.tile(np.arange(1, fixations + 1), (PATHS, 1)),
        x_deg=x_deg,
        y_deg=y_deg,
    )


def p_value(count: Int[np.ndarray, " item"], probability: Float[np.ndarray, " item"]) -> float:
    """Of the chi-square test that the counts come from the probabilities; zero if something impossible was seen."""
    assert abs(probability.sum() - 1) < 1e-9
    if count[probability <= 0].sum():
        return 0.0
    expected = count.sum() * probability
    common = expected >= FEWEST_EXPECTED
    observed = np.append(count[common], count[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] < FEWEST_EXPECTED:  # too little even together: merge with the smallest of the others
        observed, expected = observed[:-1], expected[:-1]
        observed[-1] += count[~common].sum()
        expected[-1] += count.sum() - expected.sum()
    if len(observed) == 1:
        return 1.0
    return float(stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue)


def cell_counts(y_deg: np.ndarray, x_deg: np.ndarray) -> Int[np.ndarray, " cell"]:
    return np.bincount(np.ravel_multi_index(GRID.cell_of(y_deg, x_deg), GRID.shape), minlength=GRID.cells)


@double_precision
def _chances(model: Model, history: History) -> Float[np.ndarray, " policy"]:
    of = eqx.filter_jit(lambda model, history: jnp.exp(model.choice.log_probabilities(history, PICTURE)))
    return np.asarray(of(model, history))


@pytest.mark.parametrize(
    "name",
    [pytest.param(it, marks=() if it in ("full, released", "local_saliency") else pytest.mark.slow) for it in MODELS],
)
def test_cells_and_policies_come_as_often_as_the_density_says(name):
    model = MODELS[name]
    paths = simulate(model, MAPS, started(3), jax.random.key(11), observed_start=True)
    y_deg, x_deg, label = paths.y_deg[:, 2], paths.x_deg[:, 2], paths.columns["policy"][:, 2]
    history = History.of(PICTURE, START_Y_DEG, START_X_DEG)
    assert p_value(cell_counts(y_deg, x_deg), np.exp(model.log_density(history, PICTURE)).ravel()) > FALSE_ALARM
    chances = _chances(model, history)
    assert p_value(np.bincount(label, minlength=len(chances)), chances) > FALSE_ALARM
    for policy, log_density in enumerate(model.policy_log_densities(history, PICTURE)):
        mine = label == policy
        assert p_value(cell_counts(y_deg[mine], x_deg[mine]), np.exp(log_density).ravel()) > FALSE_ALARM, policy


def test_the_first_two_fixations_are_drawn_from_the_map_independently():
    paths = simulate(dict.fromkeys(range(PATHS), MODELS["full, released"]), MAPS, 2, jax.random.key(12))
    for index in range(2):
        assert p_value(cell_counts(paths.y_deg[:, index], paths.x_deg[:, index]), saliency().ravel()) > FALSE_ALARM
    row, _ = GRID.cell_of(paths.y_deg, paths.x_deg)
    margin = saliency().sum(axis=1)
    pairs = np.bincount(np.ravel_multi_index(row.T, (GRID.rows, GRID.rows)), minlength=GRID.rows**2)
    assert p_value(pairs, np.outer(margin, margin).ravel()) > FALSE_ALARM


@double_precision
def _along_paths(model: Model, paths: ScanPaths) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every step from the third fixation on: the density of its cells, the chance of the first policy, its cell."""
    row, column = GRID.cell_of(paths.y_deg, paths.x_deg)
    position, seen = np.stack([paths.y_deg, paths.x_deg], axis=-1), saliency()[row, column]
    fixations = paths.x_deg.shape[1]
    recent = np.arange(2, fixations)[:, None] - 1 - np.arange(2)  # one and two fixations before
    history = History(
        position[:, recent].reshape(-1, 2, 2),
        seen[:, recent].reshape(-1, 2),
        np.tile(np.arange(2, fixations), len(paths)),
        np.zeros((len(paths) * (fixations - 2), 2)),
    )

    @eqx.filter_jit
    def of(model: Model, history: History):
        density = jax.vmap(lambda h: mixture_log_density(model, h, PICTURE))(history)
        return jnp.exp(density), jnp.exp(jax.vmap(lambda h: model.choice.log_probabilities(h, PICTURE))(history)[:, 0])

    density, chance = of(model, history)
    cell = (row * GRID.columns + column)[:, 2:].ravel()
    return np.asarray(density).reshape(len(cell), -1), np.asarray(chance), cell


@pytest.mark.parametrize("name", ["full, released", "local_choice, released"])
def test_whole_paths_follow_the_density_given_their_own_history(name):
    model = MODELS[name]
    paths = simulate(dict.fromkeys(range(600), model), MAPS, 16, jax.random.key(13))
    density, chance, cell = _along_paths(model, paths)
    each = np.arange(len(cell))
    # The mass of the cells before it, plus a random part of its own, is uniform if the density is right.
    below = np.cumsum(density, axis=1)[each, cell] - density[each, cell]
    place = below + np.random.default_rng(1).random(len(cell)) * density[each, cell]
    assert stats.kstest(place, "uniform").pvalue > FALSE_ALARM
    first = (paths.columns["policy"][:, 2:] == 0).ravel()
    excess = (first - chance).sum() / np.sqrt((chance * (1 - chance)).sum())
    assert 2 * stats.norm.sf(abs(excess)) > FALSE_ALARM
    # And where the chance is high the policy comes more often: the same test, weighted by the chance.
    weight = chance - chance.mean()
    excess = (weight * (first - chance)).sum() / np.sqrt((weight**2 * chance * (1 - chance)).sum())
    assert 2 * stats.norm.sf(abs(excess)) > FALSE_ALARM
    assert chance.std() > 0.02  # else this says nothing
