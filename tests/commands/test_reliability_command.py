"""`foveate reliability`: halves are fitted once, tables follow from the fits, and mistakes are one line."""

import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

import jaxtyping
import numpy as np
import pandas as pd
import pytest

from foveate import cli
from foveate.commands import reliability as command
from foveate.commands.reading import read
from foveate.experiments.picture_subsets import PictureSubsets
from foveate.experiments.reliability import reliability
from foveate.inference.posterior import Posterior
from foveate.model.catalogue import named_model

OBSERVERS = ["ann", "ben", "cleo"]
COMMON = ["reliability", "--data", "example", "--cells", "16", "--model", "local_saliency"]
ARGUMENTS = [*COMMON, "--observers", ",".join(OBSERVERS), "--pictures", "3", "--precision", "0.15", "--seed", "2"]
TABLES = ("reliability.csv", "halves.csv", "precision.csv", "needed.csv", "fits.csv")


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> tuple[Path, str, str]:
    """The folder, and what was said on standard output and standard error."""
    out, said, told = tmp_path_factory.mktemp("reliability") / "halves", StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(told):
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as a user runs it
        patch.setenv("FOVEATE_CACHE", "")
        patch.setattr(sys, "argv", ["foveate", *ARGUMENTS, "--workers", "1", "--out", str(out)])
        with pytest.raises(SystemExit) as left:
            cli.main()
    assert left.value.code == 0, told.getvalue()
    return out, said.getvalue(), told.getvalue()


@cache
def log_draws(out: Path, fold: int, observer: str) -> np.ndarray:
    """Of xi, from the file itself: (draw, axis)."""
    draws = Posterior.load(out / f"fits/local_saliency/fold-{fold}/observer-{observer}.nc").draws["xi"]
    return np.log(draws).reshape(-1, 2)


def test_it_ends_in_tables_figures_and_a_page(done):
    out, said, told = done
    summary = json.loads((out / "reliability.json").read_text())
    assert summary["finished"]
    assert (summary["fits"], summary["fits_not_converged"], summary["splits"]) == (9, 0, 1)
    assert summary["fits_with_b_on_both_sides"] is None
    assert tuple(summary["tables"]) == TABLES
    figures = [*summary["figures"], *(it.replace(".svg", ".png") for it in summary["figures"])]
    for name in (*TABLES, *figures, summary["page"]):
        assert (out / name).stat().st_size > 0, name
    page = (out / "results.md").read_text()
    assert "All 9 fits have converged." in page
    row = pd.read_csv(out / "reliability.csv").iloc[0]
    assert f"| xi_row | log | {row['correlation']:.2f} | {row['reliability']:.2f} |" in page
    assert "9 of 9 fits; observer cleo, subset of 3" in told
    assert f"xi_row           {row['reliability']:11.2f}  -1.00 to 1.00" in said


def test_tables_follow_from_the_fits(done):
    out, *_ = done
    rows, halves = (pd.read_csv(out / f"{name}.csv") for name in ("reliability", "halves"))
    for axis, label in enumerate(("xi_row", "xi_column")):
        first, second = (
            np.array([log_draws(out, fold, observer)[:, axis].mean() for observer in OBSERVERS]) for fold in (1, 2)
        )
        r = np.corrcoef(first, second)[0, 1]
        assert rows.loc[rows["parameter"] == label, "correlation"].item() == pytest.approx(r)
        assert rows.loc[rows["parameter"] == label, "reliability"].item() == pytest.approx(2 * r / (1 + r))
        mine = halves[halves["parameter"] == label].set_index("observer").loc[OBSERVERS]
        variance = [sum(log_draws(out, fold, it)[:, axis].var(ddof=1) for fold in (1, 2)) for it in OBSERVERS]
        assert mine["z"].to_numpy() == pytest.approx((first - second) / np.sqrt(variance))
    assert (halves["pictures_1"] + halves["pictures_2"] == 12).all()
    precision = pd.read_csv(out / "precision.csv")
    assert sorted(precision["pictures"].unique()) == [3, 6]
    needed = pd.read_csv(out / "needed.csv")
    assert (needed["slope"] < 0).all()
    assert needed["90_percent_extrapolated"].tolist() == (needed["pictures_90_percent"] > 6).tolist()


def test_halves_of_one_observer_agree_and_tell_observers_apart(done):
    """ann, ben and cleo were simulated with very different spreads of global steps: 30, 40 and 15 deg² along rows."""
    out, *_ = done
    assert (pd.read_csv(out / "reliability.csv")["correlation"] > 0.8).all()
    assert (pd.read_csv(out / "halves.csv")["z"].abs() < 4).all()


def test_a_second_run_fits_nothing(done, foveate_command, unchecked_types):
    out, *_ = done
    fits = {file: file.stat().st_mtime_ns for file in out.glob("fits/*/*/*.nc")}
    tables = {name: (out / name).read_bytes() for name in (*TABLES, "results.md")}
    code, said, told = foveate_command(*ARGUMENTS, "--workers", "1", "--out", out, "--json")
    assert code == 0
    assert json.loads(said)["fits"] == len(fits) == 9
    assert "fits;" not in told
    assert {file: file.stat().st_mtime_ns for file in out.glob("fits/*/*/*.nc")} == fits
    assert {name: (out / name).read_bytes() for name in tables} == tables


def test_fits_that_have_not_converged_are_marked_everywhere(done, monkeypatch, tmp_path):
    out, *_ = done
    data = read("example", 16).data.select(observers=OBSERVERS)
    subsets = PictureSubsets.of(out, named_model("local_saliency"), data, numbers=[3], seed=2)
    monkeypatch.setattr(Posterior, "converged", property(lambda self: self.observer != "ben"))
    (tmp_path / "figures").mkdir()
    about = command._write(reliability(subsets, precision=0.15), tmp_path)
    assert about["fits_not_converged"] == 3
    assert [row["fits_not_converged"] for row in about["reliability"]] == [2, 2]
    assert [row["fits_not_converged"] for row in about["needed"]] == [3, 3]
    page = (tmp_path / "results.md").read_text()
    assert "**3 of 9 fits have NOT CONVERGED" in page
    assert "observer ben, half 1 of split 1; observer ben, half 2 of split 1; observer ben, subset of 3." in page
    for name in ("precision", "fits"):
        table = pd.read_csv(tmp_path / f"{name}.csv")
        assert set(table.loc[~table["converged"], "observer"]) == {"ben"}
    halves = pd.read_csv(tmp_path / "halves.csv")
    assert set(halves.loc[~halves["converged_1"], "observer"]) == {"ben"}
    for figure in ("halves", "precision"):
        drawn = (tmp_path / "figures" / f"{figure}.svg").read_text()
        assert "NOT CONVERGED" in drawn
        assert "not converged" in drawn


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--observers", "ann"], "1 observer (ann)"),
        (["--observers", "zoe"], "observer zoe not in the data"),
        (["--pictures", "20"], "20 pictures: give 1 to 12"),
        (["--pictures", "few"], "--pictures few"),
        (["--pictures", "3,0"], "--pictures 0"),
        (["--model", "all"], "give one model"),
        (["--model", "saliency_baseline"], "no model saliency_baseline"),
        (["--priors", "strong"], "priors = 'strong'"),
        (["--splits", "0"], "--splits"),
        (["--precision", "-1"], "--precision"),
        (["--workers", "2", "--scheduler", "tcp://a:1"], "give one of the two"),
    ],
)
def test_a_mistake_is_one_line(foveate_command, unchecked_types, tmp_path, arguments, words):
    code, _, told = foveate_command(*COMMON, *arguments, "--out", tmp_path / "halves")
    assert code == 2
    assert words in told
    assert len(told.splitlines()) == 1
    assert not (tmp_path / "halves").exists()


def test_results_of_other_settings_are_not_touched(done, foveate_command, unchecked_types):
    out, *_ = done
    before = {file: file.read_bytes() for file in out.glob("*.*")}
    for arguments, words in (
        (["--model", "fixed_choice"], "holds the reliability of local_saliency: nothing was overwritten"),
        (["--seed", "3"], "nothing was overwritten"),
        (["--observers", "ann,ben,dan"], "nothing was overwritten"),
    ):
        code, _, told = foveate_command(*ARGUMENTS, *arguments, "--out", out)
        assert code == 2
        assert words in told
    assert {file: file.read_bytes() for file in out.glob("*.*")} == before


def test_folders_of_others_stay_as_they_are(foveate_command, unchecked_types, tmp_path):
    (tmp_path / "results.md").write_text("mine")
    code, _, told = foveate_command(*ARGUMENTS, "--out", tmp_path)
    assert code == 2
    assert "holds results.md, which 'foveate reliability' did not make" in told
    assert [file.name for file in tmp_path.iterdir()] == ["results.md"]
