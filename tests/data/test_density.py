"""Kernel densities against a slow, obvious version; leave-one-out maps; the choice of a bandwidth."""

import numpy as np
import pandas as pd
import pytest

from foveate.data.density import choose_bandwidth, density_maps, leave_one_out_maps
from foveate.data.grid import Extent, Grid
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

EXTENT = Extent(4.0, 9.0)
GRID = Grid(8, 10, EXTENT)  # cells of 0.5 x 0.9 deg


def make_paths(seed: int = 1, observers: int = 3, spread_deg: float = 1.0) -> ScanPaths:
    """Each observer looks at two pictures, in clusters of their own; ten fixations each."""
    random = np.random.default_rng(seed)
    tables = [
        pd.DataFrame(
            {
                "observer": f"o{observer}",
                "picture": picture,
                "fixation": np.arange(1, 11),
                "x_deg": np.clip(centre[1] + spread_deg * random.normal(size=10), 0, 9),
                "y_deg": np.clip(centre[0] + spread_deg * random.normal(size=10), 0, 4),
            }
        )
        for picture, centre in ((3, (1.0, 2.0)), (7, (2.5, 7.0)))
        for observer in range(observers)
    ]
    return ScanPaths.from_table(pd.concat(tables), EXTENT)


def slow_map(paths: ScanPaths, picture: int, bandwidth_deg: float) -> np.ndarray:
    """The recipe, cell by cell and fixation by fixation."""
    rows, columns = np.meshgrid(GRID.row_centres_deg, GRID.column_centres_deg, indexing="ij")
    smooth, ones = np.zeros(GRID.shape), np.zeros(GRID.shape)

    def bump(row: int, column: int) -> np.ndarray:
        y, x = rows[row, column], columns[row, column]
        return np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * bandwidth_deg**2))

    for path in paths.select(pictures=[picture]):
        for y, x in zip(path.y_deg, path.x_deg, strict=True):
            smooth += bump(min(int(y / 0.5), 7), min(int(x / 0.9), 9))
    for row in range(8):
        for column in range(10):
            ones += bump(row, column)
    return smooth / ones / (smooth / ones).sum()


@pytest.mark.parametrize("bandwidth_deg", [0.2, 0.8, 30.0])
def test_maps_agree_with_the_recipe_written_out(bandwidth_deg):
    paths = make_paths()
    maps = density_maps(paths, GRID, bandwidth_deg)
    assert maps.pictures == (3, 7)
    for picture in (3, 7):
        np.testing.assert_allclose(maps[picture], slow_map(paths, picture, bandwidth_deg), rtol=1e-12, atol=1e-300)


def test_a_tiny_bandwidth_counts_and_a_huge_one_is_flat():
    paths = make_paths()
    row, column = GRID.cell_of(*(values[paths.picture == 3].ravel() for values in (paths.y_deg, paths.x_deg)))
    counts = np.zeros(GRID.shape)
    np.add.at(counts, (row, column), 1 / 30)
    np.testing.assert_allclose(density_maps(paths, GRID, 1e-3)[3], counts, rtol=1e-12)
    np.testing.assert_allclose(density_maps(paths, GRID, 1e6)[3], 1 / 80, rtol=1e-9)


def test_the_uniform_share_is_mixed_in():
    plain, mixed = (density_maps(make_paths(), GRID, 0.3, uniform_share=share) for share in (0.0, 0.1))
    np.testing.assert_allclose(mixed.values, 0.9 * plain.values + 0.1 / 80, rtol=1e-14)


def test_a_left_out_observer_is_as_if_never_there():
    paths = make_paths()
    others = paths.select(observers=["o0", "o2"])
    np.testing.assert_allclose(
        density_maps(paths, GRID, 0.7, leave_out="o1").values, density_maps(others, GRID, 0.7).values, rtol=1e-13
    )
    with pytest.raises(InputError, match="observer o9 not in the data"):
        density_maps(paths, GRID, 0.7, leave_out="o9")


def test_leave_one_out_maps_leave_each_observer_out_in_turn():
    paths = make_paths()
    maps = leave_one_out_maps(paths, GRID, 0.7, uniform_share=0.05)
    assert list(maps) == ["o0", "o1", "o2"]
    for observer, held in maps.items():
        expected = density_maps(paths, GRID, 0.7, uniform_share=0.05, leave_out=observer)
        np.testing.assert_allclose(held.values, expected.values, rtol=1e-14)


def test_leave_one_out_maps_are_handed_out_on_a_coarser_grid():
    paths, coarse = make_paths(), Grid(4, 5, EXTENT)
    maps = leave_one_out_maps(paths, GRID, 0.7, uniform_share=0.05, resample_to=coarse)
    for observer, held in maps.items():
        expected = density_maps(paths, GRID, 0.7, uniform_share=0.05, leave_out=observer).resample(coarse)
        assert held.grid == coarse
        np.testing.assert_allclose(held.values, expected.values, rtol=1e-13)


def test_an_observer_who_saw_one_picture_leaves_the_other_as_it_is():
    paths = make_paths()
    rows = paths.to_table()
    paths = ScanPaths.from_table(rows[(rows["observer"] != "o1") | (rows["picture"] == 7)], EXTENT)
    maps = leave_one_out_maps(paths, GRID, 0.7)["o1"]
    whole = density_maps(paths, GRID, 0.7)
    np.testing.assert_allclose(maps[3], whole[3], rtol=1e-14)
    assert np.abs(maps[7] - whole[7]).max() > 1e-4


def test_the_score_of_a_bandwidth_is_read_off_the_leave_one_out_maps():
    paths = make_paths()
    choice = choose_bandwidth(paths, GRID, [0.3, 0.9, 2.0], uniform_share=0.02)
    for index, bandwidth_deg in enumerate((0.3, 0.9, 2.0)):
        maps = leave_one_out_maps(paths, GRID, bandwidth_deg, uniform_share=0.02)
        nats = [np.log(held.at(paths.select(observers=[observer]))) for observer, held in maps.items()]
        assert choice.held_out_nats[index] == pytest.approx(np.nanmean(nats), rel=1e-12)
    np.testing.assert_allclose(choice.held_out_bits, choice.held_out_nats / np.log(2) + np.log2(80), rtol=1e-14)


def test_narrow_clusters_get_a_narrower_bandwidth_than_wide_ones():
    candidates = [0.25, 0.5, 1.0, 2.0, 4.0]
    narrow, wide = (
        choose_bandwidth(make_paths(observers=8, spread_deg=spread_deg), GRID, candidates, uniform_share=0.01).best_deg
        for spread_deg in (0.2, 2.0)
    )
    assert candidates[0] <= narrow < wide <= candidates[-1]


def test_a_bandwidth_that_rules_out_a_held_out_fixation_scores_minus_infinity():
    choice = choose_bandwidth(make_paths(), GRID, [1e-3, 0.8])
    assert choice.held_out_nats[0] == -np.inf
    assert choice.held_out_bits[0] == -np.inf
    assert choice.best_deg == 0.8
    with pytest.raises(InputError, match=r"every candidate bandwidth \(0.001, 0.002 deg\).*uniform_share"):
        choose_bandwidth(make_paths(), GRID, [1e-3, 2e-3])


def test_an_isolated_fixation_keeps_its_tiny_density():
    """The own fixations are taken out before smoothing: afterwards rounding would swallow what the others leave."""
    rows = {"observer": [1, 2], "picture": [1, 1], "fixation": [1, 1], "x_deg": [0.1, 8.9], "y_deg": [0.1, 3.9]}
    paths = ScanPaths.from_table(pd.DataFrame(rows), EXTENT)
    choice = choose_bandwidth(paths, GRID, [0.5])
    distance = (7 * 0.5) ** 2 + (9 * 0.9) ** 2
    assert choice.held_out_nats[0] == pytest.approx(-distance / (2 * 0.5**2), abs=3)
    assert choice.held_out_nats[0] < -150


@pytest.mark.parametrize("bandwidth_deg", [0.0, -1.0, np.nan, np.inf])
def test_a_bandwidth_must_be_positive(bandwidth_deg):
    for build in (density_maps, leave_one_out_maps):
        with pytest.raises(InputError, match=rf"bandwidth = {bandwidth_deg} deg: it must be a positive"):
            build(make_paths(), GRID, bandwidth_deg)
    with pytest.raises(InputError, match="positive"):
        choose_bandwidth(make_paths(), GRID, [1.0, bandwidth_deg])


def test_a_picture_that_only_one_observer_saw_cannot_leave_that_observer_out():
    rows = make_paths().to_table()
    paths = ScanPaths.from_table(rows[(rows["observer"] == "o1") | (rows["picture"] == 7)], EXTENT)
    words = "picture 3: no fixations are left without observer o1"
    for build in (
        lambda: density_maps(paths, GRID, 1.0, leave_out="o1"),
        lambda: leave_one_out_maps(paths, GRID, 1.0),
        lambda: choose_bandwidth(paths, GRID, [1.0]),
    ):
        with pytest.raises(InputError, match=words):
            build()


def test_what_cannot_be_counted_is_refused():
    paths = make_paths()
    with pytest.raises(InputError, match="must be the same"):
        density_maps(paths, Grid(8, 10, Extent(4.0, 8.0)), 1.0)
    with pytest.raises(InputError, match="no scan paths given"):
        density_maps(paths.select(observers=[]), GRID, 1.0)
    with pytest.raises(InputError, match="no candidate bandwidth"):
        choose_bandwidth(paths, GRID, [])
    with pytest.raises(InputError, match="uniform share = 2"):
        choose_bandwidth(paths, GRID, [1.0], uniform_share=2.0)
