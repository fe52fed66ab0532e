"""Figures of saccades show the curves they were given, with units, fixed colours and both R^2."""

from dataclasses import dataclass, replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from foveate.errors import InputError
from foveate.evaluate.statistics import Band
from foveate.figures import saccades, style
from foveate.figures.style import INK, MODEL_COLOURS

NAMES = list(MODEL_COLOURS)
AMPLITUDES = (np.arange(160) + 0.5) * 0.25
ANGLES = np.arange(-180.0, 180.0, 5.0)


def band_at(at: np.ndarray, seed: int, scale: float = 1.0) -> Band:
    """Curves that can be told apart; the observed one is the same for every seed."""
    density = at**2 * np.exp(-at / 2) if at[0] >= 0 else 2 + np.cos(np.radians(2 * at))
    density = density / density.sum() / (at[1] - at[0])
    draws = density * scale * np.random.default_rng(seed).uniform(0.7, 1.1, (50, 1))
    return Band.over(at, density, draws)


def bands_at(at: np.ndarray) -> dict[str, Band]:
    return {name: band_at(at, seed) for seed, name in enumerate(NAMES)}


def curves_in(ax) -> dict[str, np.ndarray]:
    return {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines if not line.get_label().startswith("_")}


def axes(projection=None):
    return style.new_figure().add_subplot(1, 1, 1, projection=projection)


def test_every_curve_is_drawn_in_its_models_colour_and_the_data_in_black():
    models = bands_at(AMPLITUDES)
    with style.journal_style():
        ax = saccades.amplitude_density(models, axes())
    drawn = curves_in(ax)
    np.testing.assert_array_equal(drawn["Data"], models["full"].observed)
    np.testing.assert_array_equal(drawn["Local Saliency"], models["local_saliency"].mean)
    colours = {line.get_label(): to_hex(line.get_color()) for line in ax.lines}
    assert colours["Data"] == INK
    assert colours["Full"] == MODEL_COLOURS["full"].lower()
    looks = {(colour, str(line.get_linestyle())) for colour, line in zip(colours.values(), ax.lines, strict=True)}
    assert len(looks) == len(NAMES) + 1
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("saccade amplitude (deg)", "density (1/deg)")
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][:2] == ["Data", "Full"]


def test_only_named_models_have_a_band_and_it_is_theirs():
    models = bands_at(AMPLITUDES)
    ax = saccades.amplitude_density(models, axes(), bands=("full", "local_saliency"))
    assert len(ax.collections) == 2
    corners = np.asarray(ax.collections[0].get_paths()[0].vertices)
    for edge in (models["full"].low, models["full"].high):
        assert np.isin(edge.round(12), corners[:, 1].round(12)).all()


def test_the_axis_of_amplitudes_ends_where_nearly_all_saccades_do():
    ax = saccades.amplitude_density(bands_at(AMPLITUDES), axes())
    density = band_at(AMPLITUDES, 0).observed
    beyond = density[ax.get_xlim()[1] < AMPLITUDES].sum() / density.sum()
    assert 0 < beyond <= 0.001
    assert ax.get_xlim()[1] < AMPLITUDES[-1]


def test_autocorrelation_begins_at_lag_one():
    lags = np.arange(21.0)
    models = {
        "full": Band.over(lags, np.append(1, np.full(20, -0.1)), np.random.default_rng(1).normal(0, 0.1, (9, 21)))
    }
    ax = saccades.autocorrelation(models, axes(), bands=["full"])
    drawn = curves_in(ax)
    np.testing.assert_array_equal(drawn["Data"], np.full(20, -0.1))
    np.testing.assert_array_equal(drawn["Full"], models["full"].mean[1:])
    assert ax.get_xticks().tolist() == [1, 5, 10, 15, 20]
    assert ax.get_xlabel() == "lag (saccades)"


def test_observers_stand_at_their_numbers_beside_the_identity_line():
    observed = np.array([4.0, 5.0, 7.0])
    band = Band(np.arange(3.0), observed, observed - 0.5, observed - 1.0, observed + 0.2)
    ax = saccades.observers(band, "full", "mean saccade amplitude (deg)", 0.814, 1.0, axes())
    line, points = ax.lines[0], ax.lines[1]
    np.testing.assert_array_equal(line.get_xdata(), line.get_ydata())
    np.testing.assert_array_equal(points.get_xdata(), observed)
    np.testing.assert_array_equal(points.get_ydata(), observed - 0.5)
    bars = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(bars, np.stack([observed - 1, observed + 0.2], axis=1))
    assert "R² (identity line) = 0.81\nR² (correlation) = 1.00" in [text.get_text() for text in ax.texts]
    assert ax.get_xlim() == ax.get_ylim()
    assert ax.get_title() == "mean saccade amplitude (deg)"
    assert ax.get_ylabel() == "Full model"


def test_directions_close_the_circle_with_up_at_the_top():
    models = bands_at(ANGLES)
    ax = saccades.direction_density(models, axes("polar"), bands=("full",))
    data = next(line for line in ax.lines if line.get_label() == "Data")
    angle, radius = np.asarray(data.get_xdata()), np.asarray(data.get_ydata())
    assert np.exp(1j * angle[0]) == pytest.approx(np.exp(1j * angle[-1]))
    assert radius[0] == radius[-1]
    np.testing.assert_array_equal(radius[:-1], models["full"].observed)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["right", "up", "left", "down"]
    up, right = (ax.transData.transform((np.radians(at), radius.max())) for at in (90, 0))
    assert up[1] > right[1]
    assert right[0] > up[0]


@pytest.mark.parametrize("scale", [0.5, 0.95, 1.0, 1.6])
def test_the_number_of_the_circle_stands_outside_it(scale):
    curve = scale * band_at(ANGLES, 0).observed
    with style.journal_style():
        ax = saccades.direction_density({"full": Band(ANGLES, curve, curve, curve, curve)}, axes("polar"))
        root = style.root_figure(ax)
        root.canvas.draw()
        assert float(ax.texts[0].get_text()) == pytest.approx(ax.get_ylim()[1])
        assert curve.max() <= ax.get_ylim()[1] <= 2 * max(curve.max(), saccades.UNIFORM)
        box, circle = ax.texts[0].get_window_extent(), ax.get_window_extent()
    centre = (circle.x0 + circle.width / 2, circle.y0 + circle.height / 2)
    assert min(np.hypot(x - centre[0], y - centre[1]) for x, y in box.corners()) > circle.width / 2


def test_plain_axes_of_angles_run_once_round():
    models = bands_at(ANGLES)
    for draw in (saccades.direction_density, saccades.turn_density):
        ax = draw(models, axes())
        assert ax.get_xlim() == (-180, 180)
        data = next(line for line in ax.lines if line.get_label() == "Data")
        assert np.asarray(data.get_xdata())[[0, -1]].tolist() == [-180, 180]
        assert ax.get_ylabel() == "density (1/deg)"


def test_models_compared_with_other_data_are_refused():
    models = bands_at(AMPLITUDES)
    models["local_choice"] = replace(models["local_choice"], observed=2 * models["full"].observed)
    with pytest.raises(InputError, match="'local_choice' was compared with other data than 'full'"):
        saccades.amplitude_density(models, axes())
    with pytest.raises(InputError, match="no model"):
        saccades.turn_density({}, axes())


def test_anything_with_the_same_curves_can_be_drawn():
    @dataclass
    class Mine:
        at: np.ndarray
        observed: np.ndarray
        mean: np.ndarray
        low: np.ndarray
        high: np.ndarray

    curve = np.full(len(ANGLES), 1 / 360)
    ax = saccades.turn_density({"momentum": Mine(ANGLES, curve, curve, curve, curve)}, axes(), bands=["momentum"])
    assert set(curves_in(ax)) == {"Data", "momentum", "uniform"}


def test_whole_figures_can_be_written_and_leave_no_trace(tmp_path):
    settings = dict(mpl.rcParams)
    with style.journal_style():
        figures = {
            "amplitudes": saccades.amplitudes(bands_at(AMPLITUDES)),
            "alone": saccades.amplitudes({"full": band_at(AMPLITUDES, 1)}, bands=()),
            "directions": saccades.directions(bands_at(ANGLES), bands_at(ANGLES), bands=("full",)),
        }
        for name, figure in figures.items():
            assert all(file.stat().st_size > 5000 for file in style.save(figure, tmp_path, name))
    assert [len(figure.axes) for figure in figures.values()] == [2, 1, 2]
    left, right = figures["amplitudes"].axes
    assert left.get_xlim() == right.get_xlim()
    assert set(curves_in(right)) == {"Data", "Full", "Local Saliency"}
    named = [text.get_text() for text in figures["directions"].legends[0].get_texts()]
    assert (named[0], named[-1]) == ("Data", "uniform")
    assert dict(mpl.rcParams) == settings
