"""Scores as released agree with a slow oracle, written for whole pixels from the definition of the released scores."""

import pickle
from dataclasses import replace

import jax
import numpy as np
import pytest

from foveate.data.readers.released import read_released
from foveate.errors import InputError
from foveate.evaluate.as_released import (
    PUBLISHED_TABLE_2,
    FoldAverages,
    ReleasedScores,
    first_scored,
    released_training,
    score_as_released,
    table2,
)
from foveate.inference.target import Target, log_densities
from foveate.model.catalogue import PUBLISHED, from_published, named_model

CELLS = 64
KEY = jax.random.key(5)
NONE = np.zeros((1, 0))

# In px^2 and as the paper gives them; two draws, one with narrow local steps, one where the choice leans the other way.
DRAWS = {
    "full": [
        {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 0.3, "s0": 3.0},
        {"epsilon": (6.0, 90.0), "xi": (400.0, 150.0), "b": -0.6, "s0": -1.5},
    ],
    "local_choice": [
        {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "b": 3500.0, "s0": 1e-3},
        {"epsilon": (6.0, 300.0), "xi": (400.0, 150.0), "b": -900.0, "s0": 5e-4},
    ],
    "fixed_choice": [
        {"epsilon": (25.0, 35.0), "xi": (230.0, 280.0), "rho": 0.4},
        {"epsilon": (6.0, 90.0), "xi": (400.0, 150.0), "rho": 0.8},
    ],
    "local_saliency": [{"xi": (230.0, 280.0)}, {"xi": (60.0, 150.0)}],
    "saliency_baseline": [{}],
}


# --- the oracle ------------------------------------------------------------------------------------------------------


def n(around, variances) -> np.ndarray:
    """A Gaussian density around a position, at cells that lie at whole pixels."""
    rows, columns = np.meshgrid(np.arange(CELLS), np.arange(CELLS), indexing="ij")
    exponent = -((rows - around[0]) ** 2) / (2 * variances[0]) - (columns - around[1]) ** 2 / (2 * variances[1])
    return np.exp(exponent) / (2 * np.pi * np.sqrt(variances[0] * variances[1]))


def saliency_at(saliency: np.ndarray, position) -> float:
    row, column = (min(max(round(float(it)), 0), CELLS - 1) for it in position)
    return saliency[row, column]


def released_map(name: str, saliency: np.ndarray, path: np.ndarray, t: int, draw: dict) -> np.ndarray:
    """The map before the fixation with index t, the choice at the candidate cell; s a probability per cell."""
    if name == "saliency_baseline":
        return saliency / saliency.sum()
    gaze = path[:, t - 1]
    if name == "local_saliency":
        far = saliency * n(gaze, draw["xi"])
        return far / far.sum()
    near = n(gaze, draw["epsilon"])
    far = saliency * np.maximum(n(gaze, draw["xi"]) - n(gaze, np.divide(draw["epsilon"], 4)), 1e-200)
    if name == "full":
        rho = 1 / (1 + np.exp(-draw["b"] * (saliency / saliency_at(saliency, path[:, t - 2]) - draw["s0"])))
    elif name == "local_choice":
        rho = 1 / (1 + np.exp(-draw["b"] * (saliency - draw["s0"])))
    else:
        rho = draw["rho"]
    return rho * near / near.sum() + (1 - rho) * far / far.sum()


def oracle(name: str, maps, paths, draw: dict) -> tuple[list[list[float]], list[list[float]]]:
    """NSS and AUC of every scored fixation, picture by picture; a picture without any is left out."""
    nss, auc = [], []
    for saliency, path in zip(maps, paths, strict=True):
        first = 2 if name == "full" else 1
        if path.shape[1] <= first:
            continue
        nss.append([])
        auc.append([])
        for t in range(first, path.shape[1]):
            values = released_map(name, saliency, path, t, draw)
            fixated = values[int(path[0, t]), int(path[1, t])]
            nss[-1].append((fixated - values.mean()) / values.std())
            auc[-1].append(np.mean(values < fixated) + np.mean(values == fixated) / 2)
    return nss, auc


def vectors(name: str) -> np.ndarray:
    return np.array([np.asarray(from_published(name, **draw).to_real(), dtype=float) for draw in DRAWS[name]])


def assert_as_the_oracle_says(name: str, test, maps, paths, observer: int) -> ReleasedScores:
    found = score_as_released(from_published(name, **DRAWS[name][0]), vectors(name), test, observer, KEY, repeats=2)
    scored = [oracle(name, maps, paths, values) for values in DRAWS[name]]
    for draw, (nss, auc) in enumerate(scored):
        np.testing.assert_allclose(found.nss[draw], np.concatenate(nss), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.auc[draw], np.concatenate(auc), rtol=0, atol=1e-10)
    nss, auc = ([np.mean([np.mean(picture) for picture in draw[index]]) for draw in scored] for index in (0, 1))
    assert found.mean("nss") == pytest.approx(np.mean(nss), abs=1e-9)
    assert found.mean("auc") == pytest.approx(np.mean(auc), abs=1e-9)
    return found


# --- a made-up folder ------------------------------------------------------------------------------------------------

FOLDS = ((1, 4), (2, 3))  # the test pictures of each


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A folder like the released one: 4 pictures, 2 folds, 3 observers, a path too short to score and an empty one."""
    rng = np.random.default_rng(3)
    axis = np.arange(CELLS)[:, None]
    maps = {}
    for picture in range(1, 5):
        bumps = [
            np.exp(-((axis - y) ** 2 + (axis.T - x) ** 2) / (2 * width**2))
            for y, x, width in rng.uniform((5, 5, 4), (59, 59, 12), size=(3, 3))
        ]
        values = np.sum(bumps, axis=0) + 0.02
        maps[picture] = values / values.sum()
    lengths = {1: (7, 3, 5), 2: (4, 0, 6), 3: (9, 1, 3), 4: (5, 8, 2)}
    fixations = {picture: [rng.uniform(0, 63.5, (2, it)) for it in lengths[picture]] for picture in lengths}
    for picture in fixations:
        fixations[picture][0][1, 2] = 63.9  # beyond the last half pixel, and where gaze is before the next fixation
    training = [[picture for picture in range(1, 5) if picture not in test] for test in FOLDS]
    files = {
        "indices_for_cross_validation": np.array(training),
        "fixs_for_cross_validation": [[fixations[picture] for picture in fold] for fold in training],
        "sals_for_cross_validation": [[maps[picture] for picture in fold] for fold in training],
        "test_fixs_for_cross_validation": [[fixations[picture] for picture in fold] for fold in FOLDS],
        "test_sals_for_cross_validation": [[maps[(picture - 2) % 4 + 1] for picture in fold] for fold in FOLDS],
        "saliencies_red_res_shuff": [maps[picture] for picture in (3, 1, 4, 2)],
    }
    folder = tmp_path_factory.mktemp("released")
    (folder / "processed_data").mkdir()
    for name, content in files.items():
        (folder / "processed_data" / f"{name}.p").write_bytes(pickle.dumps(content, protocol=3))
    return folder, files


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("observer", [1, 2, 3])
def test_scores_are_those_of_the_oracle(made_up, name, observer):
    folder, files = made_up
    for fold, side in enumerate(read_released(folder).folds):
        maps = files["test_sals_for_cross_validation"][fold]
        paths = [picture[observer - 1] for picture in files["test_fixs_for_cross_validation"][fold]]
        if fold == 1 and observer == 2:
            continue  # nothing to score
        found = assert_as_the_oracle_says(name, side.test, maps, paths, observer)
        first = 3 if name == "full" else 2
        kept = [(picture, path.shape[1]) for picture, path in zip(FOLDS[fold], paths, strict=True)]
        labels = [(picture, number + 1) for picture, length in kept for number in range(first, length + 1)]
        assert list(zip(found.picture.tolist(), found.fixation.tolist(), strict=True)) == labels


def test_a_flat_map_has_no_z_scores(made_up):
    test = read_released(made_up[0]).folds[0].test
    flat = replace(test, maps=np.full_like(test.maps, 1 / CELLS**2))
    found = score_as_released(named_model("saliency_baseline"), NONE, flat, 1, KEY)
    assert (found.nss == 0).all()
    assert found.auc == pytest.approx(0.5)


def test_what_is_not_there_is_named(made_up, unchecked_types):
    folder, _ = made_up
    test, baseline = read_released(folder).folds[1].test, named_model("saliency_baseline")
    with pytest.raises(InputError, match="observer = 4: there are observers 1 to 3"):
        score_as_released(baseline, NONE, test, 4, KEY)
    with pytest.raises(InputError, match="observer 2: no path of 2 fixations"):
        score_as_released(baseline, NONE, test, 2, KEY)
    with pytest.raises(InputError, match="model is a str"):
        score_as_released("full", NONE, test, 1, KEY)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="fold = 3: there are folds 1 to 2"):
        released_training(folder, 3)


def test_a_fixation_beyond_the_cells_is_refused(made_up):
    test = read_released(made_up[0]).folds[0].test
    fixations = [[np.array(path) for path in paths] for paths in test.fixations_px]
    fixations[0][0][0, 3] = 64.2
    beyond = replace(test, fixations_px=tuple(tuple(paths) for paths in fixations))
    with pytest.raises(InputError, match="beyond the 64 x 64 cells"):
        score_as_released(named_model("saliency_baseline"), NONE, beyond, 1, KEY)


# --- training --------------------------------------------------------------------------------------------------------


def test_training_data_are_as_paired_and_can_be_fitted(made_up):
    folder, files = made_up
    for fold in (1, 2):
        data = released_training(folder, fold)
        assert data.paths.observers == [1, 2, 3]
        for place, picture in enumerate(files["indices_for_cross_validation"][fold - 1].tolist()):
            np.testing.assert_array_equal(data.maps[picture], files["sals_for_cross_validation"][fold - 1][place])
            for path in data.paths.select(pictures=[picture]):
                expected = files["fixs_for_cross_validation"][fold - 1][place][path.observer - 1]
                np.testing.assert_array_equal([path.columns["row_px"], path.columns["column_px"]], expected)
    for name, steps in (("full", (4 - 2) + (9 - 2)), ("local_saliency", (4 - 1) + (9 - 1))):
        model = named_model(name, priors="published")
        train = released_training(folder, 1, scored_from=first_scored(model)).select(observers=[1])
        target = Target.of(model, train)  # what every fit begins with
        assert target.steps.count == steps
    assert np.isfinite(log_densities(target, np.asarray(model.to_real(), dtype=float)[None])).all()


def test_only_the_full_model_starts_at_the_third_fixation():
    assert [name for name in PUBLISHED if first_scored(named_model(name)) == 3] == ["full"]
    assert {first_scored(named_model(name)) for name in PUBLISHED} == {2, 3}


# --- averages --------------------------------------------------------------------------------------------------------


def scores(observer: int, nss, picture=(1, 1, 1, 2), seed: int = 0) -> ReleasedScores:
    nss, rng = np.asarray(nss, dtype=float), np.random.default_rng([observer, seed])
    density = rng.integers(0, 6, size=(*nss.shape, 4)) / 8.0  # with ties
    fixation = np.arange(nss.shape[1])
    return ReleasedScores(observer, np.array(picture), fixation, nss, nss / 10, density[..., 0], density[..., 1:])


def test_means_go_over_fixations_then_pictures_then_draws():
    found = scores(1, [[1, 2, 3, 8], [0, 0, 3, 1]])
    assert found.mean("nss") == pytest.approx(((2 + 8) / 2 + (1 + 1) / 2) / 2)
    assert found.mean("auc") == pytest.approx(0.3)


def test_the_pooled_auc_compares_all_steps_of_a_fold_with_all_negatives():
    parts = [scores(1, [[1, 2, 3, 8], [0, 0, 3, 1]]), scores(2, [[5], [6]], picture=(1,))]
    expected = []
    for draw in (0, 1):
        positive = np.concatenate([it.density[draw] for it in parts])
        for repeat in range(3):
            negative = np.concatenate([it.density_at[draw, :, repeat] for it in parts])
            pairs = [(p > q) + 0.5 * (p == q) for p in positive for q in negative]
            expected.append(np.mean(pairs))
    found = FoldAverages.of(parts)
    assert found.auc_borji == pytest.approx(np.mean(expected))
    np.testing.assert_allclose(found.nss, [3, 5.5])


def test_a_fold_refuses_draws_that_do_not_match_and_an_observer_twice():
    with pytest.raises(InputError, match="scores with 1, 2 draws"):
        FoldAverages.of([scores(1, [[1, 2, 3, 8], [0, 0, 3, 1]]), scores(2, [[1, 2, 3, 4]])])
    with pytest.raises(InputError, match="no draws"):
        FoldAverages.of([])
    with pytest.raises(InputError, match="each can be there once"):
        FoldAverages.of([scores(1, [[1, 2, 3, 8]]), scores(1, [[1, 2, 3, 4]])])


def test_the_table_has_ours_the_published_and_the_difference():
    folds = [FoldAverages(np.array([1.0, 2.0]), np.array([0.8, 0.9]), 0.83), FoldAverages(np.ones(4), np.ones(4), 0.87)]
    table = table2({"saliency_baseline": folds, "full": folds})
    assert table.index.tolist() == ["full", "saliency_baseline"]
    row = table.loc["full"]
    assert row["nss"] == pytest.approx(1.25)  # means of folds, whatever the number of observers
    assert row["auc"] == pytest.approx(0.925)
    assert row["auc_borji"] == pytest.approx(0.85)
    assert (row["nss_published"], row["auc_published"]) == (1.48, 0.843)
    assert row["nss_difference"] == pytest.approx(1.25 - 1.48)
    assert row["auc_borji_difference"] == pytest.approx(0.007)
    assert table.loc["saliency_baseline"].isna().sum() == 5
    assert set(PUBLISHED_TABLE_2) == set(PUBLISHED) - {"saliency_baseline"}
    with pytest.raises(InputError, match="no model fuller"):
        table2({"fuller": folds})
    with pytest.raises(InputError, match="no folds given"):
        table2({"full": []})


# --- the real files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLISHED)
def test_real_scores_are_those_of_the_oracle(potsdam35_folder, name):
    """Fold 3 and observer 19, who has the path with nothing to score."""
    test, observer = read_released(potsdam35_folder).folds[2].test, 19
    paths = [picture[observer - 1] for picture in test.fixations_px]
    found = assert_as_the_oracle_says(name, test, test.maps, paths, observer)
    assert sorted(set(found.picture.tolist())) == [2, 8, 19, 21, 30]  # not 13


def test_the_real_baseline_knows_little_since_maps_are_of_other_pictures(potsdam35_folder):
    test = read_released(potsdam35_folder).folds[0].test
    fold = FoldAverages.of([score_as_released(named_model("saliency_baseline"), NONE, test, it, KEY) for it in (1, 2)])
    assert fold.auc.mean() < 0.7  # 0.79 beside the pictures' own maps
    assert fold.auc_borji == pytest.approx(fold.auc.mean(), abs=0.05)
