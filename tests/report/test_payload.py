"""The numbers of a report are those of the folder and of the package's own functions; the embedded ones come back."""

import base64
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_folders import fit_folder

from foveate import InputError, Model, Posterior, ScanPaths, named_model
from foveate.data.dataset import Dataset, each_observer
from foveate.data.grid import Grid
from foveate.data.saliency import SaliencyMaps
from foveate.evaluate.saccades import Saccades
from foveate.inference.pointwise import pointwise_log_likelihood, policy_probabilities
from foveate.report.command_line import command_line
from foveate.report.compact import embedded_maps, map_error, quantised, restored
from foveate.report.folders import MOST_DRAWS, observers_data, read_results
from foveate.report.page import embedded
from foveate.report.payload import convergence, data_facts, in_order, opening, parameters
from foveate.report.study_tables import study_sections
from foveate.report.viewer import Shown, model_payload, viewer, viewer_payload

KINDS = {"u1": np.uint8, "u2": np.uint16, "f4": np.float32}


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(KINDS[kind]).newbyteorder("<"))


@pytest.fixture(scope="session")
def fit_viewer(fits, data):
    results = read_results(fits)
    return viewer(results, observers_data(results, each_observer(data)))


@pytest.fixture(scope="session")
def study_viewer(study, data):
    results = read_results(study)
    return viewer(results, observers_data(results, each_observer(data)))


# --- folders and tables ----------------------------------------------------------------------------------------------


def test_fits_with_problems_come_first(fits):
    found = convergence(read_results(fits))
    assert (found["fits"], found["converged"]) == (2, 1)
    assert [row[0] for row in found["table"]["rows"]] == ["ben", "ann"]
    assert found["table"]["marked"] == [True, False]
    assert found["worst_rhat"] == max(
        Posterior.load(fits / f"observer-{who}.nc").diagnosis.max_rhat for who in ("ann", "ben")
    )
    assert "R-hat" in found["table"]["rows"][0][-1]


def test_parameters_are_those_of_the_posteriors(fits):
    (model,) = parameters(read_results(fits))
    names = [column["name"] for column in model["table"]["columns"]]
    assert names == ["observer", "ε row (deg²)", "ε column (deg²)", "ξ row (deg²)", "ξ column (deg²)", "b", "s₀"]
    marked = dict(zip((row[0] for row in model["table"]["rows"]), model["table"]["marked"], strict=True))
    assert marked == {"ann": False, "ben": True}  # whose fit has not converged
    expected = Posterior.load(fits / "observer-ann.nc").numbers.reshape(-1, 6)
    row = next(row for row in model["table"]["rows"] if row[0] == "ann")
    for place, cell in enumerate(row[1:]):
        np.testing.assert_allclose(cell, [expected[:, place].mean(), *np.quantile(expected[:, place], [0.025, 0.975])])


def test_the_opening_says_what_was_done(fits, study):
    about = opening(read_results(fits))
    assert about["title"] == "Full, fitted to 2 observers"
    assert ["sampler", "nuts"] in about["settings"]
    assert about["versions"]["jax"] == "1.2.3"
    fit_words = "foveate fit --data study.toml --model full --sampler nuts --cells 16 --seed 1 --out fits"
    assert opening(read_results(fits), "/home/ann/patients/study.toml")["command"] == fit_words  # it may be sent on
    command = opening(read_results(study))["command"]
    for word in ("foveate compare", "--models saliency_baseline,fixed_choice", "--cells 16", "--draws 5", "--seed 1"):
        assert word in command


def test_the_command_of_a_fit_is_found_by_its_model(data, tmp_path):
    model = named_model("local_choice", priors="published", repulsion="none", ordered=True)
    folder = fit_folder(tmp_path / "fits", model, data.select(observers=["ann"]))
    words = "--model local_choice --priors published --repulsion none --ordered --sampler nuts --cells 16 --seed 1"
    assert command_line(read_results(folder)) == f"foveate fit {words} --out fits"
    own = Model(model.policies, model.choice, model.priors, "mine")
    mine = fit_folder(tmp_path / "mine", own, data.select(observers=["ann"]))
    assert command_line(read_results(mine)) is None


def test_numbers_come_before_text_and_by_their_size():
    assert in_order(["10", "9", "a"]) == ["10", "9", "a"]
    assert in_order({10, 9, 1}) == [1, 9, 10]


def test_data_facts_count_fixations_and_steps(fits, data):
    facts = dict(data_facts(read_results(fits), each_observer(data))["facts"])
    assert facts["fixations"] == f"{data.paths.fixations:,}"
    assert facts["scored steps"].startswith(f"{(data.paths.length - 2).sum():,} ")
    assert facts["maps"] == "16 × 16 cells, the same for all"
    median = np.median(Saccades.of(data.paths).amplitudes_deg)
    assert facts["saccade amplitude"].startswith(f"median {median:.1f} deg")
    forced = replace(data.paths, columns={"forced": np.indices(data.paths.real.shape)[1] % 2 == 1})
    counted = dict(data_facts(read_results(fits), each_observer(Dataset(forced, data.maps)))["facts"])
    assert counted["scored steps"].startswith(f"{forced.scored(2).sum():,} ")
    median = np.median(Saccades.of(forced).amplitudes_deg)
    assert counted["saccade amplitude"].startswith(f"median {median:.1f} deg")
    assert ["cells of a map", "16 × 16"] in data_facts(read_results(fits), None)["facts"]


def test_a_studys_tables_are_those_of_its_files(study):
    found = {it["heading"]: it["table"] for it in study_sections(study)}
    assert list(found) == ["Ranking", "Differences between models", "Saccades"]
    assert found["Ranking"]["rows"][0] == [[1.0, "1"], "Fixed Choice", [1.25, 0.75, 1.75]]
    assert found["Saccades"]["rows"][0][3] == [5.5, 4.5, 6.5, 5.0]  # with what was observed
    assert found["Saccades"]["scales"] == ["mean_deg"]
    assert found["Differences between models"]["rows"] == [
        ["Fixed Choice − Saliency Baseline", [0.75, -0.5, 2.0], [2, "2 of 2"]]
    ]


def test_data_that_were_not_fitted_are_refused(fits, data):
    moved = Dataset(data.paths, data.maps.with_uniform_share(0.5))
    with pytest.raises(InputError, match="other data or maps"):
        observers_data(read_results(fits), each_observer(moved))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"made_by": "somebody"}, "was made by 'somebody'"),
        ({"made_by": "foveate compare", "finished": False}, "has not finished"),
        ({"made_by": "foveate compare", "finished": True}, "was changed"),
        (
            {"made_by": "foveate compare", "finished": True, "models": ["../x"], "folds": [1], "test_pictures": [[]]},
            "missing",
        ),
    ],
)
def test_a_study_that_cannot_be_shown_is_refused(tmp_path, said, words):
    (tmp_path / "study.json").write_text(json.dumps(said))
    with pytest.raises(InputError, match=words):
        read_results(tmp_path)


# --- what the viewer is given ----------------------------------------------------------------------------------------


def test_probability_and_surprise_are_those_of_pointwise(fit_viewer, fits, data):
    payload, _ = fit_viewer
    own = data.select(observers=["ben"])
    whole = Posterior.load(fits / "observer-ben.nc")
    nats = pointwise_log_likelihood(whole, own).reshape(-1, int((own.paths.length - 2).sum()))
    picked = nats[np.linspace(0, len(nats) - 1, MOST_DRAWS).astype(int)]
    bits = -np.log2(np.exp(picked).mean(axis=0))
    local = policy_probabilities(whole, own, draws=MOST_DRAWS)["local"].to_numpy()
    model = payload["models"][0]
    surprise = unpacked(model["surprise_bits"], "f4")
    probability = unpacked(model["probability"], "u2").reshape(-1, 2) / 65535
    first = data.select(observers=["ann"]).paths.fixations
    assert len(surprise) == data.paths.fixations
    scored = np.isfinite(surprise)[first:]
    assert np.isnan(surprise).sum() == 2 * len(data.paths)
    np.testing.assert_allclose(surprise[first:][scored], bits, rtol=1e-6)
    np.testing.assert_allclose(probability[first:, 0][scored], local, atol=1e-5)


def test_positions_estimates_and_paths_come_back(fit_viewer, fits, data):
    payload, _ = fit_viewer
    places = unpacked(payload["positions"], "u2").reshape(-1, 2) * payload["step_deg"]
    real = data.paths.real
    assert payload["step_deg"] == 0.01
    np.testing.assert_allclose(places[:, 0], data.paths.y_deg[real], atol=0.0051)
    np.testing.assert_allclose(places[:, 1], data.paths.x_deg[real], atol=0.0051)
    assert [payload["observers"][it["observer"]] for it in payload["paths"]] == data.paths.observer.tolist()
    assert [payload["pictures"][it["picture"]] for it in payload["paths"]] == data.paths.picture.tolist()
    mean = Posterior.load(fits / "observer-ann.nc").mean_model()
    for name, value in payload["models"][0]["estimates"][0]["0"].items():
        np.testing.assert_allclose(value, mean.parameters[name], rtol=1e-12)
    simulated = unpacked(payload["models"][0]["simulated"], "u2").reshape(-1, 2) * payload["step_deg"]
    chosen = unpacked(payload["models"][0]["chosen"], "u1")
    starts = np.cumsum(data.paths.length) - data.paths.length
    assert set(chosen[np.concatenate([starts, starts + 1])]) == {255}
    assert set(np.delete(chosen, np.concatenate([starts, starts + 1]))) == {0, 1}
    assert (simulated[:, 0] <= 24).all()
    np.testing.assert_allclose(unpacked(payload["duration_ms"], "u2"), 1000 * data.paths.duration_s[real], atol=0.51)
    assert len(np.unique(simulated[:, 0])) <= 16  # centres of rows


def test_a_study_shows_each_picture_with_fits_that_have_not_seen_it(study_viewer, study):
    payload, notes = study_viewer
    assert "have not seen it" in notes[0]
    folds = {payload["pictures"][it["picture"]]: it["fold"] for it in payload["paths"]}
    assert folds == {"beach": 1, "bridge": 1, "castle": 2, "forest": 2}
    baseline, fixed = payload["models"]
    assert baseline["estimates"] == [{"1": {}, "2": {}}] * 2
    mean = Posterior.load(study / "fits" / "fixed_choice" / "fold-2" / "observer-ann.nc").mean_model()
    assert fixed["estimates"][0]["2"]["rho"] == pytest.approx(float(mean.parameters["rho"]))
    assert baseline["probability"] is None


def test_the_baselines_surprise_is_that_of_the_map(study_viewer, data):
    payload, _ = study_viewer
    at = data.maps.at(data.paths)
    expected = -np.log2(at[data.paths.real])
    order = [(payload["observers"][it["observer"]], payload["pictures"][it["picture"]]) for it in payload["paths"]]
    held = list(zip(data.paths.observer.tolist(), data.paths.picture.tolist(), strict=True))
    assert order == held  # folds are in the order of the pictures here
    surprise = unpacked(payload["models"][0]["surprise_bits"], "f4")
    scored = np.isfinite(surprise)
    np.testing.assert_allclose(surprise[scored], expected[scored], rtol=1e-5)


# --- maps ------------------------------------------------------------------------------------------------------------


def test_embedded_maps_come_back_within_the_stated_error(data):
    found = embedded_maps(each_observer(data))
    assert len(found.values) == 4  # shared by both observers
    assert f"{100 * found.error:.2g} %" in found.words
    for encoded, values in zip(found.encoded(), found.values, strict=True):
        back = restored(unpacked(encoded["root"], "u2"), encoded["peak"]).reshape(values.shape)
        well = values > 0.01 / values.size
        assert np.max(np.abs(back - values)[well] / values[well]) <= found.error
        assert np.abs(back - values).max() < 1e-4 * values.max()
    assert 0 < found.error < 0.01


def test_a_cell_with_some_mass_never_becomes_empty():
    values = np.array([[1 - 1e-14, 1e-14], [0.0, 0.0]])
    root, peak = quantised(values)
    assert (restored(root, peak) > 0).tolist() == [[True, True], [False, False]]
    assert map_error([np.full((3, 3), 1 / 9)]) < 1e-12


def test_maps_of_ones_own_are_made_coarse_or_shared_and_it_is_said(data):
    extent = data.maps.grid.extent
    fine = data.maps.resample(Grid(64, 64, extent))
    each = {who: Dataset(own.paths, fine.with_uniform_share(0.01 * (1 + place)).select(own.paths.pictures))
            for place, (who, own) in enumerate(each_observer(data).items())}  # fmt: skip
    assert len(embedded_maps(each).values) == 8
    coarse = embedded_maps(each, most_bytes=8 * 32 * 32 * 3)
    assert coarse.grid.shape == (32, 32)
    assert len(coarse.values) == 8
    assert "32 × 32 cells instead of 64 × 64" in coarse.words
    shared = embedded_maps(each, most_bytes=1000)
    assert shared.grid.shape == (64, 64)
    assert "mean of all observers' maps" in shared.words
    mean = (each["ann"].maps["beach"] + each["ben"].maps["beach"]) / 2
    np.testing.assert_allclose(shared.values[shared.index["ben", "beach"]], mean)
    assert isinstance(each["ann"].maps, SaliencyMaps)


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("own_maps", "most_bytes"), [(False, 5_000_000), (True, 8_000_000)])
def test_thirty_five_observers_and_five_models_stay_small(data, own_maps, most_bytes):
    """35 observers, 30 pictures, 25 fixations a path, maps of 64 x 64 cells: there is room left for pictures."""
    observers, pictures, length = range(1, 36), [f"picture {it}" for it in range(30)], 25
    rng = np.random.default_rng(1)
    extent, count = data.paths.extent, 35 * 30 * length
    table = pd.DataFrame({
        "observer": np.repeat(observers, 30 * length), "picture": np.tile(np.repeat(pictures, length), 35),
        "fixation": np.tile(np.arange(1, length + 1), 35 * 30),
        "x_deg": rng.uniform(0, extent.width_deg, count), "y_deg": rng.uniform(0, extent.height_deg, count),
    })  # fmt: skip
    paths = ScanPaths.from_table(table, extent)
    grid = Grid(64, 64, extent)

    def drawn() -> SaliencyMaps:
        return SaliencyMaps.from_arrays(
            {it: rng.gamma(0.5, size=(64, 64)) + 1e-9 for it in pictures}, extent, normalise=True
        )

    everybody = drawn()
    each = {it: Dataset(paths.select(observers=[it]), drawn() if own_maps else everybody) for it in observers}
    maps = embedded_maps(each)
    assert maps.grid == (Grid(32, 32, extent) if own_maps else grid)
    models = []
    for name in ("full", "local_choice", "fixed_choice", "local_saliency", "saliency_baseline"):
        model = named_model(name)
        values = {label: np.asarray(it).tolist() for label, it in model.parameters.items()}
        size = 30 * length
        found = [
            Shown(
                rng.random((size, len(model.policies))),
                rng.random(size),
                rng.random((size, 2)),
                rng.integers(0, 2, size),
                values,
            )
            for _ in observers
        ]
        models.append(model_payload(name, model, found, [(it, 0) for it in observers], paths))
    text = embedded(viewer_payload(paths, [0] * len(paths), maps, models))
    assert 1_000_000 < len(text) < most_bytes
