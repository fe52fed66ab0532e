"""Degrees, cells and pixels: each becomes the others and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.data.grid import PUBLISHED_PX_DEG, Extent, Grid, PixelFrame, deg2_from_px2, px2_from_deg2
from foveate.errors import InputError

shares = st.floats(0, 1)
sizes = st.floats(0.1, 100)
scales = st.floats(1, 200)


@given(st.integers(1, 200), st.integers(1, 200), sizes, sizes, st.data())
def test_the_centre_of_a_cell_lies_in_that_cell(rows, columns, height, width, data):
    grid = Grid(rows, columns, Extent(height, width))
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    found = grid.cell_of(*grid.centre_of(row, column))
    assert (int(found[0]), int(found[1])) == (row, column)


@given(st.integers(1, 200), st.integers(1, 200), sizes, sizes, shares, shares)
def test_a_position_is_within_half_a_cell_of_its_cell_centre(rows, columns, height, width, up, right):
    grid = Grid(rows, columns, Extent(height, width))
    y, x = up * height, right * width
    y_centre, x_centre = grid.centre_of(*grid.cell_of(y, x))
    assert abs(float(y_centre) - y) <= grid.cell_deg[0] * (0.5 + 1e-9)
    assert abs(float(x_centre) - x) <= grid.cell_deg[1] * (0.5 + 1e-9)


@given(st.floats(-5000, 5000), st.floats(-5000, 5000), scales, scales, st.floats(-500, 500), st.floats(-500, 500))
def test_pixels_survive_the_way_to_degrees_and_back(y, x, per_row, per_column, left, near):
    frame = PixelFrame(800.0, 600.0, (per_row, per_column), left_px=left, near_px=near)
    y_px, x_px = frame.to_pixels(*frame.to_degrees(y, x))
    np.testing.assert_allclose((y_px, x_px), (y, x), rtol=1e-12, atol=1e-9)


@given(st.floats(0.01, 1e4), st.floats(0.01, 1e4))
def test_variances_survive_the_way_to_degrees_and_back(row, column):
    np.testing.assert_allclose(px2_from_deg2(deg2_from_px2((row, column))), (row, column), rtol=1e-12)


def test_the_published_pixel_is_the_one_of_the_released_coordinates():
    # design.md, section 2: a px is 0.5017 deg (column) and 0.4014 deg (row)
    np.testing.assert_allclose(PUBLISHED_PX_DEG, (0.4014, 0.5017), atol=5e-5)
    assert deg2_from_px2((25, 35)) == pytest.approx((25 * 0.4014**2, 35 * 0.5017**2), rel=1e-3)


def test_rows_are_counted_along_y_and_columns_along_x():
    grid = Grid(2, 4, Extent(10.0, 40.0))
    row, column = grid.cell_of([0.0, 4.9, 5.0], [0.0, 9.9, 30.0])
    assert row.tolist() == [0, 0, 1]
    assert column.tolist() == [0, 0, 3]
    assert grid.shape == (2, 4)
    assert grid.cells == 8
    assert grid.cell_deg == (5.0, 10.0)
    assert grid.cell_area_deg2 == 50.0
    assert grid.row_centres_deg.tolist() == [2.5, 7.5]
    assert grid.column_centres_deg.tolist() == [5.0, 15.0, 25.0, 35.0]


def test_the_far_edge_belongs_to_the_last_cell():
    grid = Grid(3, 7, Extent(1.0, 2.0))
    row, column = grid.cell_of(1.0, 2.0)
    assert (int(row), int(column)) == (2, 6)


def test_a_position_outside_is_refused_with_its_value():
    grid = Grid(3, 7, Extent(1.0, 2.0))
    with pytest.raises(InputError, match=r"y = 0.5, x = 2.5 deg lies outside"):
        grid.cell_of(0.5, [1.0, 2.5])
    with pytest.raises(InputError, match="outside"):
        grid.cell_of(np.nan, 1.0)


def test_a_pixel_frame_measures_from_the_corner_of_the_picture():
    frame = PixelFrame(800.0, 600.0, (20.0, 40.0), left_px=100.0, near_px=50.0)
    assert (frame.extent.height_deg, frame.extent.width_deg, frame.extent.origin) == (30.0, 20.0, "top")
    y_deg, x_deg = frame.to_degrees(70.0, 180.0)
    assert (float(y_deg), float(x_deg)) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Extent(0.0, 1.0), "height_deg = 0.0.*positive"),
        (lambda: Extent(1.0, float("inf")), "width_deg = inf.*positive"),
        (lambda: Extent(1.0, 1.0, "left"), "'left'.*'bottom' or 'top'"),
        (lambda: Grid(0, 3, Extent(1.0, 1.0)), "rows = 0.*at least one"),
        (lambda: Grid(3, 2.5, Extent(1.0, 1.0)), r"columns = 2\.5.*whole number"),
        (lambda: PixelFrame(0.0, 1.0, 10.0), "width_px = 0.0.*positive"),
        (lambda: PixelFrame(1.0, 1.0, (10.0, -1.0)), r"px_per_degree = \(10.0, -1.0\).*positive"),
        (lambda: PixelFrame(1.0, 1.0, 10.0, left_px=float("nan")), "left_px = nan"),
        (lambda: PixelFrame(1.0, 1.0, 10.0, origin="left"), "'left'.*'bottom' or 'top'"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_impossible_geometry_is_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
