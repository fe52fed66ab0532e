"""The real data: what is known about them from outside must come out. Read in place, never copied."""

import numpy as np
import pandas as pd
import pytest

from foveate.data.density import choose_bandwidth, density_maps
from foveate.data.grid import Extent
from foveate.data.readers.potsdam35 import (
    POTSDAM35_FOLDS,
    potsdam35_leave_one_out,
    read_potsdam35,
    released_px,
)
from foveate.data.readers.table import read_table
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError


def bits_over_uniform(maps: SaliencyMaps, paths: ScanPaths) -> np.ndarray:
    return np.log2(maps.at(paths) * maps.grid.cells)


def test_all_paths_are_read(potsdam35):
    # counts from the data's README
    paths = potsdam35.paths
    assert paths.fixations == 28_264
    assert len(paths) == 1_050
    assert paths.observers == list(range(1, 36))
    assert paths.pictures == list(range(1, 31))
    assert (paths.length.min(), paths.length.max()) == (3, 47)
    assert paths.after_gap.sum() == 39
    assert paths.after_gap.any(axis=1).sum() == 32
    durations = paths.duration_s[paths.real]
    assert ((durations == 0).sum(), (durations < 0.05).sum()) == (47, 357)


def test_the_extent_is_the_rectangle_of_the_maps(potsdam35):
    extent = potsdam35.paths.extent
    assert (extent.width_deg, extent.height_deg) == pytest.approx((32.1116 - 1.0359, 25.6893 - 0.8287), abs=1e-4)
    assert extent.origin == "bottom"
    assert potsdam35.maps.grid.shape == (64, 64)
    assert potsdam35.maps.grid.cell_deg == pytest.approx((0.3884, 0.4856), abs=5e-5)


def test_the_published_maps_gain_what_is_known_over_uniform(potsdam35, potsdam35_fine):
    assert potsdam35_fine.maps.grid.shape == (128, 128)
    all_fixations = bits_over_uniform(potsdam35_fine.maps, potsdam35_fine.paths)
    assert np.nanmean(all_fixations) == pytest.approx(0.918, abs=0.001)
    from_the_third = bits_over_uniform(potsdam35.maps, potsdam35.paths)[:, 2:]
    assert np.nanmean(from_the_third) == pytest.approx(0.905, abs=0.001)


def test_the_coarse_maps_are_sums_of_two_by_two_cells(potsdam35, potsdam35_fine):
    sums = potsdam35_fine.maps.values.reshape(30, 64, 2, 64, 2).sum(axis=(2, 4))
    np.testing.assert_allclose(potsdam35.maps.values, sums, rtol=1e-14)


def test_maps_without_the_observer_gain_what_is_known_over_uniform(potsdam35):
    maps = potsdam35_leave_one_out(potsdam35.paths)
    assert list(maps) == potsdam35.paths.observers
    bits = [bits_over_uniform(held, potsdam35.paths.select(observers=[who]))[:, 2:] for who, held in maps.items()]
    assert np.nanmean(np.concatenate([values.ravel() for values in bits])) == pytest.approx(0.747, abs=0.001)


def test_our_recipe_rebuilds_all_published_maps(potsdam35_fine, potsdam35_folder):
    published = potsdam35_fine.maps
    built = density_maps(potsdam35_fine.paths, published.grid, 1.05)
    assert built.pictures == published.pictures == tuple(range(1, 31))
    peaks = published.values.max(axis=(1, 2), keepdims=True)
    assert np.max(np.abs(built.values - published.values) / peaks) < 1e-12
    rebuilt = read_potsdam35(potsdam35_folder, cells=128, maps="rebuilt").maps
    np.testing.assert_array_equal(rebuilt.values, built.values)


def test_another_bandwidth_does_not_rebuild_them(potsdam35_fine):
    built = density_maps(potsdam35_fine.paths, potsdam35_fine.maps.grid, 1.0)
    assert np.max(np.abs(built.values - potsdam35_fine.maps.values)) > 1e-5


def test_the_released_coordinates_fit_the_maps_less_well(potsdam35_fine):
    maps, paths = potsdam35_fine.maps, potsdam35_fine.paths
    position = released_px(paths, cells=128)
    # the released code reads a map at the rounded position, clamped to the grid
    row, column = (np.clip(np.round(values[paths.real]), 0, 127).astype(int) for values in position)
    picture = np.repeat(maps.index_of(paths.picture.tolist()), paths.length)
    assert np.log2(maps.values[picture, row, column] * 128**2).mean() == pytest.approx(0.873, abs=0.001)


def test_the_released_coordinates_are_those_of_the_files(potsdam35, potsdam35_folder):
    row, column = released_px(potsdam35.paths)
    raw = pd.read_csv(potsdam35_folder / "fixations" / "fixloc_9.dat", sep="\t").query("subj == 4")
    (path,) = np.flatnonzero((potsdam35.paths.observer == 4) & (potsdam35.paths.picture == 9))
    real = potsdam35.paths.real[path]
    np.testing.assert_allclose(row[path, real], raw["ypos"] * 64 / 25.6892708037514, rtol=1e-12)
    np.testing.assert_allclose(column[path, real], raw["xpos"] * 64 / 32.1115885046892, rtol=1e-12)


def test_maps_turned_upside_down_say_next_to_nothing(potsdam35_fine):
    maps = potsdam35_fine.maps
    flipped = SaliencyMaps(maps.grid, maps.pictures, maps.values[:, ::-1])
    assert np.nanmean(bits_over_uniform(flipped, potsdam35_fine.paths)) == pytest.approx(0.03, abs=0.01)


def test_every_picture_is_paired_with_its_own_map(potsdam35):
    """Each picture's fixations score better under their own map than under any of the other 29."""
    maps, paths = potsdam35.maps, potsdam35.paths
    row, column = maps.grid.cell_of(paths.y_deg[paths.real], paths.x_deg[paths.real])
    bits = np.log2(maps.values[:, row, column] * maps.grid.cells)
    picture = np.repeat(paths.picture, paths.length)
    score = np.array([[values[picture == seen].mean() for values in bits] for seen in maps.pictures])
    own = np.diag(score)
    others = score[~np.eye(30, dtype=bool)].reshape(30, 29)
    assert (own > others.max(axis=1) + 0.2).all()


def test_the_folds_hold_every_picture_once(potsdam35_folder):
    assert sorted(sum(POTSDAM35_FOLDS, ())) == list(range(1, 31))
    assert [len(fold) for fold in POTSDAM35_FOLDS] == [6] * 5
    # pictures that the released lists of training pictures leave out
    training = pd.read_pickle(potsdam35_folder / "processed_data" / "indices_for_cross_validation.p")
    for fold, pictures in zip(POTSDAM35_FOLDS, training, strict=True):
        assert set(fold) == set(range(1, 31)) - {int(picture) for picture in pictures}


def test_held_out_likelihood_prefers_a_bandwidth_near_the_published_one(potsdam35_fine):
    choice = choose_bandwidth(potsdam35_fine.paths, potsdam35_fine.maps.grid, [0.4, 1.05, 3.0])
    assert choice.best_deg == 1.05


def test_the_table_reader_reads_the_same_paths(potsdam35, potsdam35_folder):
    files = {k: potsdam35_folder / "fixations" / f"fixloc_{k}.dat" for k in range(1, 31)}
    frame = pd.concat([pd.read_csv(file, sep="\t").assign(scene=k) for k, file in files.items()])
    paths, report = read_table(
        frame,
        frame=Extent(25.6892708037514 - 0.828686154959722, 32.1115885046892 - 1.03585769369965),
        x0_deg=1.03585769369965,
        y0_deg=0.828686154959722,
        position_unit="deg",
        duration_unit="ms",
        observer="subj",
        picture="scene",
        x="xpos",
        y="ypos",
        duration="fdur",
        trial="trial",
    )
    pd.testing.assert_frame_equal(paths.to_table(), potsdam35.paths.to_table())
    assert (report.rows, report.fixations, report.paths, len(report.gaps)) == (28_264, 28_264, 1_050, 39)


def test_the_folder_may_come_from_the_environment(potsdam35_folder, monkeypatch):
    monkeypatch.setenv("FOVEATE_POTSDAM35", str(potsdam35_folder))
    assert read_potsdam35(cells=32).maps.grid.shape == (32, 32)


def test_without_a_folder_the_message_says_what_to_set(monkeypatch):
    monkeypatch.delenv("FOVEATE_POTSDAM35", raising=False)
    with pytest.raises(InputError, match=r"no folder given.*FOVEATE_POTSDAM35"):
        read_potsdam35()


def test_the_name_of_the_data_is_as_good_as_the_variable_that_says_where_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read_potsdam35("potsdam35", cells=16).fingerprint() == read_potsdam35(cells=16).fingerprint()
    (tmp_path / "potsdam35").mkdir()  # a folder of that name is meant where there is one
    with pytest.raises(InputError, match="not the potsdam35 folder"):
        read_potsdam35("potsdam35")
    (tmp_path / "potsdam35").rmdir()
    monkeypatch.delenv("FOVEATE_POTSDAM35")
    with pytest.raises(InputError, match="set the environment variable FOVEATE_POTSDAM35"):
        read_potsdam35("potsdam35")


def test_a_wrong_folder_is_refused_with_what_is_missing(tmp_path):
    with pytest.raises(InputError, match=r"nowhere is not a folder"):
        read_potsdam35(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"not the potsdam35 folder.*range.dat, .*fixloc_1.dat.* missing"):
        read_potsdam35(tmp_path)
    with pytest.raises(InputError, match=r"maps = 'mine': say 'published' or 'rebuilt'"):
        read_potsdam35(tmp_path, maps="mine")


@pytest.fixture
def made_up_folder(tmp_path):
    """A folder of the right form: one observer looks three times at the middle of every picture."""
    for name in ("fixations", "saliencies"):
        (tmp_path / name).mkdir()
    (tmp_path / "fixations" / "range.dat").write_text('"xrange" "yrange"\n1 2\n11 7\n')
    for k in range(1, 31):
        rows = "".join(f"{6 + n}\t4.5\t{100 * n}\t1\t{k}\t{n}\n" for n in (1, 2, 3))
        (tmp_path / "fixations" / f"fixloc_{k}.dat").write_text("xpos\typos\tfdur\tsubj\ttrial\tfixation\n" + rows)
        flat = np.full((128, 128), 1 / 128**2)
        np.savetxt(tmp_path / "saliencies" / f"fx_{k}.dat", flat, delimiter=",")
    return tmp_path


def test_positions_are_measured_from_the_corner_of_the_maps(made_up_folder):
    data = read_potsdam35(made_up_folder)
    assert data.paths.extent == Extent(5.0, 10.0, "bottom")
    np.testing.assert_allclose(data.paths.x_deg[0], [6.0, 7.0, 8.0])
    np.testing.assert_allclose(data.paths.y_deg[0], [2.5, 2.5, 2.5])
    np.testing.assert_allclose(data.paths.duration_s[0], [0.1, 0.2, 0.3])
    assert data.paths.trial[4] == 5


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("saliencies/fx_7.dat", None, "saliencies/fx_7.dat missing"),
        ("saliencies/fx_7.dat", "0.5,nonsense\n", r"fx_7.dat cannot be read as a map"),
        ("saliencies/fx_7.dat", "0.5,0.5\n", "map of picture 7 is 1 x 2, that of 1 is 128 x 128"),
        ("fixations/range.dat", "xrange\n1\n", r"range.dat must hold two rows"),
        ("fixations/fixloc_3.dat", "", r"fixloc_3.dat cannot be read as a table"),
        ("fixations/fixloc_3.dat", "xpos\typos\n1\t2\n", r"fixloc_3.dat: column subj, trial, fixation, fdur missing"),
        (
            "fixations/fixloc_3.dat",
            "xpos\typos\tfdur\tsubj\ttrial\tfixation\nx\t4\t1\t1\t3\t1\n",
            "line 2: xpos is 'x', which is not",
        ),
        (
            "fixations/fixloc_3.dat",
            "xpos\typos\tfdur\tsubj\ttrial\tfixation\n12\t4\t1\t1\t3\t1\n",
            "picture 3.*outside",
        ),
    ],
)
def test_a_damaged_folder_is_refused_by_file(made_up_folder, file, text, words):
    damaged = made_up_folder / file
    damaged.unlink() if text is None else damaged.write_text(text)
    with pytest.raises(InputError, match=words):
        read_potsdam35(made_up_folder)
