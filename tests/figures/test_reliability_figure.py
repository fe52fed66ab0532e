"""Figures of reliability show the halves and the precision that they were given, and mark fits not to be trusted."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from matplotlib.text import Text

from foveate.figures import style
from foveate.figures.panels import WARNING
from foveate.figures.reliability import half_against_half, sd_by_pictures

LABELS = {"xi_row": "log", "rho": "log-odds", "b": "as it is"}
WORSE = 2  # the observer whose fits have not converged


def tables(splits: int = 1, converged: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(1)
    halves = pd.DataFrame(
        {"parameter": label, "observer": observer, "split": split, "mean_1": rng.normal(), "mean_2": rng.normal(),
         "sd_1": 0.2, "sd_2": 0.3, "converged_1": converged or observer != WORSE, "converged_2": True}
        for label in LABELS for split in range(1, splits + 1) for observer in range(5)
    )  # fmt: skip
    about = {"correlation": 0.81, "reliability": 0.895, "reliability_low": 0.62, "reliability_high": 0.97}
    return halves, pd.DataFrame([{"parameter": label, "scale": scale} | about for label, scale in LABELS.items()])


def sizes(converged: bool = True) -> tuple[pd.DataFrame, pd.DataFrame]:
    fits = pd.DataFrame(
        {"parameter": label, "observer": observer, "pictures": number, "sd": (1 + observer) / np.sqrt(number),
         "converged": converged or observer != WORSE}
        for label in LABELS for observer in range(5) for number in (5, 10, 10, 20)
    )  # fmt: skip
    line = {"slope": -0.4, "slope_low": -0.5, "slope_high": -0.3, "slope_fitted": True, "log_sd_of_one_picture": 1.0}
    line |= {"fewest_pictures_fitted": 5, "most_pictures_fitted": 20, "precision": 0.5, "pictures_median_observer": 60}
    return fits, pd.DataFrame([{"parameter": label, "scale": scale} | line for label, scale in LABELS.items()])


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def line_of(ax, name: str):
    return next(line for line in ax.lines if line.get_label() == name)


def test_points_are_the_halves_with_a_standard_deviation_to_each_side():
    halves, parameters = tables(splits=2)
    figure = half_against_half(halves, parameters, "full")
    for ax, (label, scale) in zip(figure.axes, LABELS.items(), strict=True):
        mine = halves[(halves["parameter"] == label) & (halves["split"] == 1)]
        back = np.exp if scale == "log" else np.asarray
        points, _, bars = ax.containers[0]
        assert points.get_xdata() == pytest.approx(back(mine["mean_1"].to_numpy()))
        assert points.get_ydata() == pytest.approx(back(mine["mean_2"].to_numpy()))
        across = np.array([it[:, 0] for it in bars[0].get_segments()])
        expected = np.stack([mine["mean_1"] - 0.2, mine["mean_1"] + 0.2], axis=1)
        assert across == pytest.approx(back(expected))
        assert ax.get_xlim() == ax.get_ylim()
        assert ax.get_xscale() == ax.get_yscale() == ("log" if scale == "log" else "linear")
        assert line_of(ax, "equal halves").get_xdata() == pytest.approx(line_of(ax, "equal halves").get_ydata())
    said = texts(figure)
    assert "ξ row: r = 0.81 between halves\nreliability 0.90 (0.62 to 0.97)" in said
    assert "ξ row (deg²), first half" in said
    assert "ρ (log-odds), second half" in said
    assert any("the first of 2 splits" in text for text in said)


def test_precision_is_drawn_for_every_fit_with_the_line_and_theory():
    fits, needed = sizes()
    figure = sd_by_pictures(fits, needed, "full")
    ax = figure.axes[0]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    mine = fits[fits["parameter"] == "xi_row"]
    assert line_of(ax, "fit").get_ydata() == pytest.approx(mine["sd"].to_numpy())
    x, y = line_of(ax, "median observer").get_data()
    assert list(x) == [5, 20]
    assert y == pytest.approx(np.exp(1 - 0.4 * np.log([5, 20])))
    assert list(line_of(ax, "extrapolated").get_xdata()) == [20, 60]
    x, y = line_of(ax, "1/√n").get_data()
    assert y[0] / y[1] == pytest.approx(np.sqrt(x[1] / x[0]))
    assert list(line_of(ax, "sd of 0.5").get_ydata()) == [0.5, 0.5]
    said = texts(figure)
    assert "ξ row\nslope −0.40 (−0.50 to −0.30)" in said
    assert "posterior sd of log-odds of ρ" in said


def test_a_slope_that_was_not_fitted_is_said_to_be_theory():
    fits, needed = sizes()
    assert "ξ row\nslope −0.40 by theory" in texts(sd_by_pictures(fits, needed.assign(slope_fitted=False), "full"))


@pytest.mark.parametrize(("draw", "numbers"), [(half_against_half, tables), (sd_by_pictures, sizes)])
def test_fits_that_have_not_converged_stand_out(draw, numbers):
    good, bad = draw(*numbers(), "full"), draw(*numbers(converged=False), "full")
    assert not any("converged" in text.lower() for text in texts(good))
    assert any("NOT CONVERGED" in text for text in texts(bad))
    assert "not converged" in texts(bad)
    for ax in bad.axes:
        own = [line for line in ax.lines if same_color(line.get_color(), WARNING) and line.get_linestyle() == "None"]
        assert sum(len(line.get_xdata()) for line in own) == (1 if draw is half_against_half else 4)


@pytest.mark.parametrize(("draw", "numbers"), [(half_against_half, tables), (sd_by_pictures, sizes)])
def test_figures_can_be_saved(draw, numbers, tmp_path):
    with style.journal_style():
        files = style.save(draw(*numbers(), "full"), tmp_path, "figure")
    assert all(file.stat().st_size > 1000 for file in files)
