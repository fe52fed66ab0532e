"""The evidence behind the page of findings: numbers known from outside, an oracle, and made-up released files."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from foveate.data.dataset import Dataset
from foveate.data.grid import Extent
from foveate.data.readers.potsdam35 import released_px
from foveate.data.readers.released import read_released
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.experiments import findings
from foveate.experiments.findings import CODE_ONLY, FINDINGS, Finding, Material, repelled_shares
from foveate.model.catalogue import from_published

TRUTH = {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 0.2, "s0": 3.0}
PX_DEG = np.array([25.6892708037514, 32.1115885046892]) / 64


@pytest.fixture(scope="module")
def material(potsdam35_folder, potsdam35, potsdam35_fine) -> Material:
    return Material(potsdam35, potsdam35_fine, read_released(potsdam35_folder))


# --- the real data ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(material) -> dict[int, Finding]:
    return {finding.number: finding for finding in (it(material) for it in FINDINGS)}


def test_all_eighteen_rows_are_there_in_order_with_words(found):
    assert list(found) == list(range(1, 19))
    for finding in found.values():
        texts = (finding.paper, finding.released, finding.here, finding.evidence)
        assert all(texts)
        assert not any("authors" in it or "nan" in it.split() for it in texts)
        assert all(np.isfinite(value) for value in finding.values.values())


def test_rows_that_only_the_code_shows_say_so(found):
    alone = {number for number, finding in found.items() if finding.evidence.startswith(CODE_ONLY)}
    assert {3, 4, 5, 6, 10} <= alone
    assert not alone & {2, 7, 8, 9, 11, 12, 13, 15}


@pytest.mark.parametrize(
    ("number", "name", "expected", "digit"),
    [
        # fixations and gains as the design and the data's description give them
        (7, "recorded", 28_264, 0),
        (7, "kept", 28_264 - 2 * 1_050, 0),
        (7, "same", 1_050, 0),
        (8, "round", 0.873, 5e-4),
        (8, "true", 0.918, 5e-4),
        (8, "most_px", 2, 0.1),
        (8, "most_deg", 1, 0.05),
        (9, "test_found", 30, 0),
        (9, "train_found", 5 * 24, 0),
        (12, "all", 0.905, 5e-4),
        (12, "without", 0.747, 5e-4),
        (13, "share_up", 0.082, 5e-4),
        (13, "share_down", 0.056, 5e-4),
        # the path on picture 13 of observer 19 has one fixation left, and nothing to score
        (15, "full", 28_264 - 4 * 1_050 + 1, 0),
        (15, "others", 28_264 - 3 * 1_050, 0),
        (15, "here", 28_264 - 2 * 1_050, 0),
        # prior masses from tables of the normal distribution
        (3, "b", 0.000233, 5e-7),
        (3, "s0", 0.1151, 5e-5),
    ],
)
def test_numbers_known_from_outside_come_out(found, number, name, expected, digit):
    assert found[number].values[name] == pytest.approx(expected, abs=digit)


def test_rounding_and_mapping_share_the_loss_between_them(found):
    values = found[8].values
    assert values["round"] < values["floor"] < values["true"]


def test_maps_copied_from_the_picture_before_say_next_to_nothing(found):
    values = found[9].values
    assert values["best"] > 0.999 > values["own"]
    assert values["given"] < 0.2
    assert values["right"] > 0.8


def test_amplitudes_are_those_of_the_notebooks_formula(found, potsdam35_folder):
    """From the recorded table itself, path by path: rows times 31.08 / 64, columns times 24.86 / 64."""
    true, wrong = [], []
    for picture in range(1, 31):
        table = pd.read_csv(potsdam35_folder / "fixations" / f"fixloc_{picture}.dat", sep="\t")
        for _, path in table.groupby("subj"):
            step = np.diff(path[["ypos", "xpos", "fixation"]].to_numpy(), axis=0)
            step = step[step[:, 2] == 1, :2]
            true.append(np.hypot(*step.T))
            rows, columns = (step / PX_DEG).T
            wrong.append(np.hypot(rows * (32.1116 - 1.0359) / 64, columns * (25.6893 - 0.8287) / 64))
    true_deg, wrong_deg = np.concatenate(true), np.concatenate(wrong)
    values = found[11].values
    assert values["true_deg"] == pytest.approx(true_deg.mean(), rel=1e-9)
    assert values["found_deg"] == pytest.approx(wrong_deg.mean(), rel=1e-5)
    assert values["error_deg"] == pytest.approx(np.abs(wrong_deg - true_deg).mean(), rel=1e-4)


def test_swapped_axes_turn_horizontal_saccades_into_vertical_ones(found):
    values = found[13].values
    assert min(values["share_right"], values["share_left"]) > 1.5 * max(values["share_up"], values["share_down"])
    assert min(values["at_90"], values["at_270"]) > 1.3 * max(values["at_0"], values["at_180"])
    assert 1 < values["off_deg"] < 6.4  # atan(1.25) - 45 deg is the most that pixels of 1 : 1.25 do


def test_prior_mass_out_of_order_is_that_of_draws(found):
    rng = np.random.default_rng(1)

    def out_of_order(epsilon, xi) -> float:
        small, large = (stats.invgamma.rvs(a, scale=b, size=(100_000, 2), random_state=rng) for a, b in (epsilon, xi))
        return float((small >= large).any(axis=1).mean())

    # four standard errors: 0.002 and less
    assert found[18].values["full"] == pytest.approx(out_of_order((3, 80), (3, 600)), abs=0.0025)
    assert found[18].values["rivals"] == pytest.approx(out_of_order((0.2, 25), (0.5, 200)), abs=0.006)


def test_draws_from_the_maps_lie_as_far_apart_as_they_say(found, potsdam35):
    rng, maps = np.random.default_rng(2), potsdam35.maps
    distances = []
    for values in maps.values:
        cells = rng.choice(maps.grid.cells, size=(2, 2_000), p=values.ravel() / values.sum())
        y, x = maps.grid.centre_of(*np.divmod(cells, maps.grid.columns))
        distances.append(np.hypot(y[1] - y[0], x[1] - x[0]))
    # 60,000 distances with a standard deviation of some 6 deg
    assert found[14].values["drawn_deg"] == pytest.approx(np.mean(distances), abs=0.1)


# --- what the repulsion forbids, on one observer ---------------------------------------------------------------------


def gaussian(grid, gaze, variances_px2) -> np.ndarray:
    """Mass of a Gaussian around the gaze in every cell, in plain NumPy."""
    spread = np.sqrt(np.array(variances_px2)) * PX_DEG
    rows = stats.norm.pdf(grid.row_centres_deg, gaze[0], spread[0])
    columns = stats.norm.pdf(grid.column_centres_deg, gaze[1], spread[1])
    return np.outer(rows, columns) * grid.cell_area_deg2


@pytest.mark.parametrize("form", ["released", "printed", "summing to 1"])
def test_forbidden_shares_are_those_of_the_plain_equations(potsdam35, form):
    data = potsdam35.select(observers=[3], pictures=[4, 9])
    grid, shares = data.maps.grid, []
    for path in data.paths:
        saliency, y, x = data.maps[path.picture], path.y_deg, path.x_deg
        row, column = grid.cell_of(y, x)
        for step in range(2, len(path)):
            gaze = y[step - 1], x[step - 1]
            wide, narrow = gaussian(grid, gaze, TRUTH["xi"]), gaussian(grid, gaze, TRUTH["epsilon"])
            quarter = gaussian(grid, gaze, np.array(TRUTH["epsilon"]) / 4)
            forbidden = {
                "released": wide <= quarter,
                "printed": saliency * grid.cells * wide <= narrow,
                "summing to 1": saliency * wide <= narrow,
            }[form]
            shares.append([forbidden.mean(), saliency[forbidden].sum(), forbidden[row[step], column[step]]])
    repulsion = "released" if form == "released" else "printed"
    policy = from_published("full", **TRUTH, repulsion=repulsion).policies[1]
    scale = 1 / grid.cells if form == "summing to 1" else 1.0
    found = repelled_shares(policy, data, scale)
    np.testing.assert_allclose([found[it] for it in ("cells", "mass", "fixations")], np.mean(shares, axis=0), rtol=1e-9)


def test_with_s_summing_to_one_nearly_all_saccades_are_forbidden(found):
    values = found[2].values
    assert values["cells"] > 0.4
    assert values["fixations"] > 0.85
    assert values["relative_cells"] < 0.15
    assert found[1].values["cells"] < 0.06


# --- made-up released files ------------------------------------------------------------------------------------------

EXTENT = Extent(25.6892708037514 - 0.828686154959722, 32.1115885046892 - 1.03585769369965)
PICTURES, FOLDS = (1, 2, 3, 4), ((1, 2), (3, 4))


def made_up() -> Dataset:
    """Two observers, four pictures, paths of 4 to 8 fixations; maps of one blob each, all in different places."""
    rng, tables, maps = np.random.default_rng(0), [], {}
    rows, columns = np.meshgrid(np.arange(64), np.arange(64), indexing="ij")
    for picture, (y, x) in zip(PICTURES, ((15, 15), (15, 48), (48, 15), (48, 48)), strict=True):
        maps[picture] = 0.01 + np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / 100)
        for observer in (1, 2):
            count = int(rng.integers(4, 9))
            place = np.clip((rng.normal((y, x), 4, size=(count, 2)) + 0.5) / 64, 0, 1)
            position = {"y_deg": place[:, 0] * EXTENT.height_deg, "x_deg": place[:, 1] * EXTENT.width_deg}
            labels = {"observer": observer, "picture": picture, "fixation": np.arange(1, count + 1)}
            tables.append(pd.DataFrame(labels | position))
    paths = ScanPaths.from_table(pd.concat(tables), EXTENT)
    return Dataset(paths, SaliencyMaps.from_arrays(maps, EXTENT, normalise=True))


def released_folder(folder, data: Dataset, *, ends: int, shift: int) -> Material:
    """Files in the released form: paths without `ends` fixations at each end, test maps of `shift` pictures before."""
    px, paths = np.stack(released_px(data.paths)), {}
    for index, (picture, length) in enumerate(zip(data.paths.picture, data.paths.length, strict=True)):
        paths.setdefault(int(picture), []).append(np.ascontiguousarray(px[:, index, ends : length - ends]))
    train = [[it for it in PICTURES if it not in test] for test in FOLDS]
    before = [[PICTURES[PICTURES.index(it) - shift] for it in test] for test in FOLDS]
    parts = {
        "indices_for_cross_validation": np.array(train),
        "fixs_for_cross_validation": [[paths[it] for it in some] for some in train],
        "sals_for_cross_validation": [[data.maps[it] for it in some] for some in train],
        "test_fixs_for_cross_validation": [[paths[it] for it in some] for some in FOLDS],
        "test_sals_for_cross_validation": [[data.maps[it] for it in some] for some in before],
        "saliencies_red_res_shuff": [data.maps[it] for it in PICTURES],
    }
    (folder / "processed_data").mkdir()
    for name, part in parts.items():
        (folder / "processed_data" / f"{name}.p").write_bytes(pickle.dumps(part, protocol=3))
    return Material(data, data, read_released(folder))


def test_files_that_are_right_are_found_right(tmp_path):
    material = released_folder(tmp_path, made_up(), ends=0, shift=0)
    maps, paths = findings.maps_of_tests(material).values, findings.dropped_fixations(material).values
    assert (maps["test_found"], maps["train_found"]) == (0, 4)
    assert maps["own"] == pytest.approx(1)
    assert maps["given"] == pytest.approx(maps["right"])
    assert (paths["kept"], paths["same"]) == (material.data.paths.fixations, 0)


def test_shifted_maps_and_missing_ends_are_found(tmp_path):
    material = released_folder(tmp_path, made_up(), ends=1, shift=1)
    maps, paths = findings.maps_of_tests(material).values, findings.dropped_fixations(material).values
    assert (maps["test_found"], maps["train_found"]) == (4, 4)
    assert maps["given"] < 0 < maps["right"]
    assert (paths["kept"], paths["same"], paths["paths"]) == (material.data.paths.fixations - 2 * 8, 8, 8)


def test_other_fixations_are_not_taken_for_the_recorded_ones(tmp_path):
    material = released_folder(tmp_path, made_up(), ends=1, shift=1)
    moved = replace(material.data.paths, x_deg=material.data.paths.x_deg * 0.99)
    changed = replace(material, data=replace(material.data, paths=moved))
    assert findings.dropped_fixations(changed).values["same"] == 0
