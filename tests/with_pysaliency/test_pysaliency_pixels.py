"""Cells spread over pixels: mass, place and orientation, also where pixels cut cells.

Draws have a fixed seed; the test of their frequencies would raise a false alarm for one seed in ten thousand.
"""

import numpy as np
import pytest
from scipy import stats

from foveate.data.grid import Extent, Grid
from foveate.errors import InputError
from foveate.pysaliency.pixels import Raster, raster

FALSE_ALARM = 1e-4

# (rows, columns), (height, width): aligned; cut on both axes; pixels larger than cells; both, one on each axis.
SIZES = [((4, 6), (12, 30)), ((5, 7), (23, 31)), ((9, 11), (4, 5)), ((7, 3), (5, 8)), ((3, 4), (3, 4))]


def cells(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(1).dirichlet(np.full(rows * columns, 0.5)).reshape(rows, columns)


def spread_by_brute_force(values: np.ndarray, height_px: int, width_px: int, origin: str) -> np.ndarray:
    """Every cell cut into height x width small pieces, which are then counted together pixel by pixel."""
    values = values[::-1] if origin == "bottom" else values
    rows, columns = values.shape
    pieces = np.kron(values, np.ones((height_px, width_px))) / (height_px * width_px)
    return pieces.reshape(height_px, rows, width_px, columns).sum(axis=(1, 3))


@pytest.mark.parametrize("origin", ["bottom", "top"])
@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_each_pixel_has_its_share_of_every_cell_that_it_overlaps(shape, size, origin):
    values = cells(*shape)
    spread = np.exp(Raster(Grid(*shape, Extent(3.0, 5.0, origin)), *size).spread(np.log(values)))
    assert spread.shape == size
    np.testing.assert_allclose(spread, spread_by_brute_force(values, *size, origin), rtol=1e-12)
    assert abs(spread.sum() - 1) < 1e-13


@pytest.mark.parametrize(("shape", "size"), SIZES)
def test_a_single_pixel_is_read_as_it_is_spread(shape, size):
    maps = np.log(np.stack([cells(*shape), cells(*shape)[::-1, ::-1]]))
    where = Raster(Grid(*shape, Extent(3.0, 5.0)), *size)
    y, x = np.mgrid[: size[0], : size[1]].reshape(2, -1)
    for index in (0, 1):
        read = where.read(np.repeat(maps[index : index + 1], len(y), axis=0), y, x)
        np.testing.assert_allclose(read, where.spread(maps[index])[y, x], rtol=1e-13)


def test_what_is_unlikely_does_not_become_impossible_and_what_is_impossible_stays_so():
    log_cells = np.full((2, 2), -2000.0)
    log_cells[0, 0], log_cells[1, 1] = 0.0, -np.inf
    where = Raster(Grid(2, 2, Extent(1.0, 1.0, "top")), 3, 3)
    spread = where.spread(log_cells)
    # A pixel is two thirds of a cell long; that in the middle is cut, and the likely cell's share outweighs the other.
    np.testing.assert_allclose(spread[2, 0], -2000 + np.log(2 / 3 * 2 / 3))
    np.testing.assert_allclose(spread[1, 0], np.log(1 / 3 * 2 / 3))
    assert spread[2, 2] == -np.inf
    assert where.read(log_cells[None], np.array([2]), np.array([2])) == -np.inf


@pytest.mark.parametrize("origin", ["bottom", "top"])
def test_a_position_in_pixels_lies_in_the_cell_whose_mass_is_drawn_there(origin):
    grid = Grid(4, 6, Extent(3.0, 5.0, origin))
    where = Raster(grid, 12, 30)
    for y_px, x_px in [(0.5, 0.5), (11.5, 29.5), (4.2, 17.9)]:
        (row,), (column,) = grid.cell_of(*where.to_degrees(np.array([y_px]), np.array([x_px]), 2))
        only = np.full(grid.shape, -np.inf)
        only[row, column] = 0.0
        assert np.isfinite(where.spread(only)[int(y_px), int(x_px)])


@pytest.mark.parametrize("origin", ["bottom", "top"])
def test_the_far_edges_belong_to_the_picture_whatever_rounding_does(origin):
    """55 px are 24.86 deg: 55 / (55 / 24.86) is more than 24.86."""
    extent = Extent(24.86, 24.86, origin)
    for size in range(50, 150):
        corners = np.array([0.0, size])
        assert extent.contains(*Raster(Grid(3, 3, extent), size, size).to_degrees(corners, corners, 2)).all()


@pytest.mark.parametrize("position", [(-0.1, 5.0), (12.5, 5.0), (5.0, 31.0), (np.nan, 5.0), (5.0, np.inf)])
def test_histories_that_end_outside_the_stimulus_are_refused_and_older_ones_do_not_matter(position):
    where = Raster(Grid(4, 6, Extent(3.0, 5.0)), 12, 30)
    outside_first = np.array([position, (1.0, 1.0), (2.0, 2.0)]).T
    where.to_degrees(*outside_first, 2)
    with pytest.raises(InputError, match="outside the stimulus"):
        where.to_degrees(*outside_first[:, ::-1], 2)


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
@pytest.mark.parametrize("origin", ["bottom", "top"])
def test_pixels_are_drawn_as_often_as_their_probability_says(source, origin):
    shape, size, count = (3, 4), (5, 7), 20_000
    where, values, rng = Raster(Grid(*shape, Extent(3.0, 5.0, origin)), *size), cells(*shape), source(11)
    drawn = np.array([where.draw(values, rng) for _ in range(count)])
    assert (drawn % 1 == 0.5).all()
    pixels = drawn.astype(int)
    seen = np.zeros(size)
    np.add.at(seen, (pixels[:, 0], pixels[:, 1]), 1)
    expected = count * spread_by_brute_force(values, *size, origin)
    rare = expected < 5
    seen, expected = (np.append(it[~rare], it[rare].sum()) for it in (seen, expected))
    assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM


def test_a_cell_without_mass_is_never_drawn():
    values = np.array([[0.0, 0.0], [0.0, 1.0]])

    class Zeros(np.random.RandomState):
        def random(self, size=None):
            return np.zeros(size)

    assert Raster(Grid(2, 2, Extent(1.0, 1.0, "top")), 4, 4).draw(values, Zeros()) == (2.5, 2.5)


def test_a_stimulus_must_be_as_large_as_the_maps():
    grid = Grid(64, 64, Extent(24.0, 32.0))
    assert raster(grid, 480, 640, 20.0) == Raster(grid, 480, 640)
    assert raster(grid, 480, 640, 20.01) == Raster(grid, 480, 640)  # off by a third of a pixel
    assert raster(grid, 480, 320, (20.0, 10.0)) == Raster(grid, 480, 320)
    for size, scale in [((480, 640), 20.05), ((480, 640), 40.0), ((640, 480), 20.0), ((480, 640), (20.0, 10.0))]:
        with pytest.raises(InputError, match=r"but the maps are 24 x 32 deg; give pixels_per_degree="):
            raster(grid, *size, scale)
