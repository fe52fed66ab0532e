"""Saliency maps, and data sets that pair them with scan paths."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

EXTENT = Extent(4.0, 6.0)


def random_maps(rows: int, columns: int, pictures: tuple = ("beach", "wood"), seed: int = 1) -> SaliencyMaps:
    weights = np.random.default_rng(seed).gamma(0.3, size=(len(pictures), rows, columns))
    return SaliencyMaps.from_arrays(dict(zip(pictures, weights, strict=True)), EXTENT, normalise=True)


def some_paths() -> ScanPaths:
    """Fixations in the cells (0, 0), (1, 2) of 'beach' and (1, 0) of 'wood', if there are 2 x 3 cells."""
    rows = {
        "observer": [1, 1, 2],
        "picture": ["beach", "beach", "wood"],
        "fixation": [1, 2, 1],
        "x_deg": [0.5, 5.5, 1.9],
        "y_deg": [0.5, 2.1, 4.0],
    }
    return ScanPaths.from_table(pd.DataFrame(rows), EXTENT)


def test_summing_two_by_two_cells_is_resampling_to_half_the_grid():
    fine = random_maps(8, 12)
    coarse = fine.resample(Grid(4, 6, EXTENT))
    sums = fine.values.reshape(2, 4, 2, 6, 2).sum(axis=(2, 4))
    np.testing.assert_allclose(coarse.values, sums, rtol=1e-15)
    assert coarse.pictures == fine.pictures


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_resampling_conserves_mass_and_centre_of_mass(rows, columns, new_rows, new_columns):
    before = random_maps(rows, columns)
    after = before.resample(Grid(new_rows, new_columns, EXTENT))
    np.testing.assert_allclose(after.values.sum(axis=(1, 2)), 1, rtol=1e-12)
    if new_rows % rows == 0 and new_columns % columns == 0:  # finer: the density itself is unchanged
        back = after.resample(before.grid)
        np.testing.assert_allclose(back.values, before.values, rtol=1e-12, atol=1e-15)
        centre = [(maps.values * maps.grid.row_centres_deg[:, None]).sum(axis=(1, 2)) for maps in (before, after)]
        np.testing.assert_allclose(*centre, rtol=1e-12)


def test_a_flat_map_stays_flat_on_any_grid():
    flat = SaliencyMaps.from_arrays({1: np.full((5, 7), 1 / 35)}, EXTENT)
    np.testing.assert_allclose(flat.resample(Grid(3, 4, EXTENT)).values, 1 / 12, rtol=1e-14)


def test_resampling_to_another_extent_is_refused():
    with pytest.raises(InputError, match="extents must be the same"):
        random_maps(4, 4).resample(Grid(2, 2, Extent(4.0, 5.0)))


def test_a_uniform_share_lifts_every_cell_and_keeps_the_sum():
    maps = SaliencyMaps.from_arrays({1: np.array([[1.0, 0.0], [0.0, 0.0]])}, EXTENT).with_uniform_share(0.2)
    np.testing.assert_allclose(maps[1], [[0.85, 0.05], [0.05, 0.05]], rtol=1e-15)
    for share in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match=r"uniform share = .*between 0 and 1"):
            maps.with_uniform_share(share)


def test_saliency_is_read_at_the_cell_of_each_fixation():
    values = {"beach": np.array([[1, 2, 3], [4, 5, 6]]) / 21, "wood": np.array([[7, 8, 9], [10, 11, 12]]) / 57}
    maps = SaliencyMaps.from_arrays(dict(reversed(values.items())), EXTENT)
    read = maps.at(some_paths())
    np.testing.assert_allclose(read, [[1 / 21, 6 / 21], [10 / 57, np.nan]], rtol=1e-15)


def test_zero_saliency_at_a_fixation_is_refused_with_the_remedy():
    wood = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]) / 5
    maps = SaliencyMaps.from_arrays({"beach": np.full((2, 3), 1 / 6), "wood": wood}, EXTENT)
    with pytest.raises(
        InputError, match=r"observer 2, picture 'wood', fixation 1: the map is zero.*with_uniform_share"
    ):
        maps.at(some_paths())
    with pytest.raises(InputError, match="map is zero"):
        Dataset(some_paths(), maps)
    assert np.isfinite(maps.with_uniform_share(0.01).at(some_paths())[1, 0])


def test_maps_over_another_extent_are_refused():
    maps = SaliencyMaps.from_arrays({"beach": np.full((2, 3), 1 / 6)}, Extent(4.0, 7.0))
    with pytest.raises(InputError, match="must be the same"):
        maps.at(some_paths())


def test_select_keeps_the_order_asked_for():
    maps = random_maps(2, 3, ("a", "b", "c"))
    some = maps.select(["c", "a"])
    assert some.pictures == ("c", "a")
    np.testing.assert_array_equal(some["a"], maps["a"])
    assert maps.index_of(["b", "b", "a"]).tolist() == [1, 1, 0]
    assert len(some) == 2
    with pytest.raises(InputError, match="no map for picture d; there are maps for a, b, c"):
        maps.select(["d"])


@pytest.mark.parametrize("mode", ["L", "I;16", "F"])
def test_image_files_become_maps_with_their_first_row_at_the_top(tmp_path, mode):
    weights = np.array([[0, 10, 20], [30, 40, 100]])
    kind = {"L": np.uint8, "I;16": np.uint16, "F": np.float32}[mode]
    file = tmp_path / "map.tiff"
    Image.fromarray(weights.astype(kind)).save(file)
    top = SaliencyMaps.from_images({"beach": file}, Extent(4.0, 6.0, "top"))
    np.testing.assert_allclose(top["beach"], weights / 200, rtol=1e-14)
    bottom = SaliencyMaps.from_images({"beach": file}, Extent(4.0, 6.0, "bottom"))
    np.testing.assert_array_equal(bottom["beach"], top["beach"][::-1])


def test_images_that_are_no_maps_are_refused(tmp_path):
    Image.new("RGB", (3, 2)).save(tmp_path / "colour.png")
    Image.new("L", (3, 2)).save(tmp_path / "black.png")
    (tmp_path / "text.png").write_text("no image")
    for name, words in (("colour", "colour image"), ("black", "zero everywhere"), ("text", "no image could be read")):
        with pytest.raises(InputError, match=words):
            SaliencyMaps.from_images({"beach": tmp_path / f"{name}.png"}, EXTENT)
    with pytest.raises(InputError, match=r"gone.png: no image could be read"):
        SaliencyMaps.from_images({"beach": tmp_path / "gone.png"}, EXTENT)


FLAT = np.full((2, 2), 0.25)


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        ({}, "no maps given"),
        ({"a": FLAT * 2}, r"picture 'a' sums to 2, not 1; .*normalise=True"),
        ({"a": FLAT, "b": np.array([[0.5, 0.7], [-0.2, 0.0]])}, r"picture 'b' holds negative values \(down to -0.2\)"),
        ({"a": np.array([[0.5, np.nan], [0.5, 0.0]])}, "picture 'a' holds NaN or infinite"),
        ({"a": np.zeros((2, 2))}, "picture 'a' is zero everywhere"),
        ({"a": FLAT, "b": np.full((2, 3), 1 / 6)}, "picture 'b' is 2 x 3, that of 'a' is 2 x 2"),
        ({"a": np.full(4, 0.25)}, "picture 'a' has 1 axes"),
    ],
)
def test_what_is_no_probability_per_cell_is_refused_by_picture(maps, words):
    with pytest.raises(InputError, match=words):
        SaliencyMaps.from_arrays(maps, EXTENT)


def test_shapes_and_names_must_fit():
    with pytest.raises(InputError, match="more than one map"):
        SaliencyMaps(Grid(2, 2, EXTENT), ("a", "a"), np.stack([FLAT, FLAT]))
    with pytest.raises(InputError, match=r"shape \(1, 2, 2\) do not fit 1 pictures on a grid of 2 x 3"):
        SaliencyMaps(Grid(2, 3, EXTENT), ("a",), FLAT[None])


def test_a_data_set_refuses_pictures_without_maps_and_maps_without_pictures():
    maps = random_maps(2, 3, ("beach", "wood", "lake")).with_uniform_share(0.01)
    with pytest.raises(InputError, match="map of picture lake without any scan path"):
        Dataset(some_paths(), maps)
    with pytest.raises(InputError, match="no map for picture wood"):
        Dataset(some_paths(), maps.select(["beach"]))


def test_a_data_set_takes_the_maps_along_with_the_paths():
    data = Dataset(some_paths(), random_maps(2, 3).with_uniform_share(0.01))
    one = data.select(observers=[2])
    assert one.paths.observers == [2]
    assert one.maps.pictures == ("wood",)
    training, test = data.split(["beach"])
    assert (training.paths.pictures, training.maps.pictures) == (["wood"], ("wood",))
    assert (test.paths.pictures, test.maps.pictures) == (["beach"], ("beach",))
    np.testing.assert_array_equal(test.maps["beach"], data.maps["beach"])
