"""`foveate reproduce` on the real data: a part of it, with the one model that is fitted in a moment."""

import json

import pandas as pd
import pytest

from foveate.commands.studies import named_models
from foveate.data.readers.potsdam35 import read_potsdam35
from foveate.errors import InputError
from foveate.evaluate.as_released import PUBLISHED_TABLE_2

pytestmark = pytest.mark.usefixtures("unchecked_types")

PART = ["--models", "saliency_baseline,local_saliency", "--observers", "2-3", "--folds", "1", "--draws", "4"]
GAIN = "predictive_gain_over_uniform_bits, over fixations"


@pytest.mark.slow
@pytest.mark.parametrize("maps", ["published", "leave-one-out"])
def test_the_corrected_evaluation(foveate_command, potsdam35_folder, tmp_path, maps):
    code, said, problems = foveate_command(
        "reproduce", "--data", potsdam35_folder, *PART, "--maps", maps, "--workers", 1, "--out", tmp_path / "out"
    )
    assert code == 0, problems
    summary = json.loads((tmp_path / "out" / "study.json").read_text())
    assert (summary["folds"], summary["observers"], summary["fits_not_converged"]) == ([1], 2, 0)
    held_out = read_potsdam35(potsdam35_folder).select(observers=[2, 3], pictures=summary["test_pictures"][0]).paths
    assert summary["steps"] == held_out.fixations - 2 * len(held_out)
    scores = pd.read_csv(tmp_path / "out" / "scores.csv", index_col="model")
    assert scores.loc["local_saliency", GAIN] > scores.loc["saliency_baseline", GAIN] + 0.4
    assert "Local Saliency" in said
    assert (tmp_path / "out" / "figures" / "fig9-directions.svg").exists()
    # The paper's tables: ours from this run's own files, theirs as printed there.
    first, second = (pd.read_csv(tmp_path / "out" / f"table{number}.csv", index_col="model") for number in (1, 2))
    assert second.loc["local_saliency", "auc_borji"] == pytest.approx(scores.loc["local_saliency", "auc_pooled"])
    assert second.loc["local_saliency", "nss"] == pytest.approx(scores.loc["local_saliency", "nss, over pictures"])
    assert second.loc["local_saliency", ["nss_published", "auc_published"]].tolist() == [1.05, 0.804]
    assert first.loc["local_saliency", ["mean_published", "sd_published"]].tolist() == [0.47, 0.3]
    assert second.loc["saliency_baseline", ["nss_published", "auc_published"]].isna().all()


@pytest.mark.slow
def test_as_released_table_2_has_the_published_values_beside_ours(foveate_command, potsdam35_folder, tmp_path):
    code, said, problems = foveate_command(
        "reproduce", "--data", potsdam35_folder, "--as-released", *PART, "--workers", 1, "--out", tmp_path / "out"
    )
    assert code == 0, problems
    table = pd.read_csv(tmp_path / "out" / "table2.csv", index_col="model")
    row = table.loc["local_saliency"]
    assert row["nss_published"] == PUBLISHED_TABLE_2["local_saliency"]["nss"]
    assert row["nss_difference"] == pytest.approx(row["nss"] - row["nss_published"], abs=1e-8)
    # The test maps are those of the picture before: as released a model that follows the map gains little.
    assert table.loc["saliency_baseline", "nss"] < 0.8 < row["nss"]
    assert "| Local Saliency |" in (tmp_path / "out" / "results.md").read_text()
    assert "results.md" in said


def test_parts_that_do_not_exist_are_named(foveate_command, potsdam35_folder, tmp_path):
    for more, words in (
        (["--folds", "6"], "--folds 6: say 'all', or numbers from 1 to 5"),
        (["--observers", "36"], "observer 36 not in the data"),
        (["--as-released", "--maps", "leave-one-out"], "leave --maps out"),
    ):
        code, _, said = foveate_command("reproduce", "--data", potsdam35_folder, *more, "--out", tmp_path / "out")
        assert code == 2
        assert words in said
        assert not (tmp_path / "out").exists()


def test_the_order_reaches_every_model_that_has_one(foveate_command, potsdam35_folder, tmp_path, monkeypatch):
    asked = []

    def seen(names, priors, ordered=False):
        asked.append(named_models(names, priors, ordered))
        raise InputError("that is all")

    monkeypatch.setattr("foveate.commands.reproduce.named_models", seen)
    for options in ([], ["--ordered"], ["--ordered", "--as-released"]):
        words = ["reproduce", "--data", potsdam35_folder, *options, "--out", tmp_path / "out"]
        assert foveate_command(*words)[0] == 2
    kinds = [{name for name, model in models.items() if model.ordered} for models in asked]
    two_policies = {"full", "local_choice", "fixed_choice"}
    assert kinds == [set(), two_policies, two_policies]
    assert set(asked[1]) == two_policies | {"local_saliency", "saliency_baseline"}
