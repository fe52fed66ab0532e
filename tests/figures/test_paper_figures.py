"""The paper's figures, drawn from the built-in example: what stands in them are the numbers they were given."""

from dataclasses import dataclass, replace

import jax
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.contour import ContourSet

import foveate
from foveate.errors import InputError
from foveate.evaluate.compare import compare
from foveate.evaluate.distances import map_agreement
from foveate.evaluate.roc import Roc
from foveate.evaluate.statistics import Band, compare_saccades
from foveate.figures import contours, curves, paper, style
from foveate.figures.style import INK, MODEL_COLOURS, POLICY_COLOURS
from foveate.model.history import History, Picture
from foveate.simulation.simulate import simulate

PICTURES = ["beach", "castle", "tower"]


@pytest.fixture(scope="module")
def example():
    return foveate.example_data()


@pytest.fixture(scope="module")
def data(example):
    return example.data.select(pictures=PICTURES)


@pytest.fixture(scope="module")
def simulated(example, data):
    """Two data sets from the models that made the example."""
    return [simulate(example.models, data.maps, data.paths, jax.random.key(seed)) for seed in (11, 12)]


@pytest.fixture
def journal():
    with style.journal_style():
        yield


def path_of(paths, picture, observer="ann"):
    return next(iter(paths.select(observers=[observer], pictures=[picture])))


def title_of(ax) -> str:
    return ax.get_title(loc="left") or ax.get_title()


def discs(ax) -> list:
    """The fixations' markers in the order of the path."""
    return [line for line in ax.lines if line.get_markersize() == pytest.approx(8.5)]


def legend_of(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines_of(ax) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Labelled lines by their label."""
    named = {str(line.get_label()): line.get_data() for line in ax.lines}
    return {label: (np.asarray(x), np.asarray(y)) for label, (x, y) in named.items() if not label.startswith("_")}


def texts_of(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def nothing_overlaps(figure) -> None:
    """No title, axis label or legend covers another one."""
    figure.canvas.draw()
    words = [text for ax in figure.axes for text in (ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label)]
    shown = [text for text, ax in zip(words, np.repeat(figure.axes, 4), strict=True) if ax.get_visible()]
    boxes = [text.get_window_extent() for text in shown if text.get_text()]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height


# --- Fig. 1 to 3 -----------------------------------------------------------------------------------------------------


def test_data_stand_beside_the_density_of_everyones_fixations(data, journal):
    density = foveate.density_maps(data.paths, data.maps.grid, 1.0)
    path = path_of(data.paths, "castle")
    figure = paper.data_and_density(path, data.paths, data.maps, density)
    left, right, bar = figure.axes
    np.testing.assert_allclose(left.images[0].get_array(), data.maps["castle"] * data.maps.grid.cells)
    np.testing.assert_allclose(right.images[0].get_array(), density["castle"] * data.maps.grid.cells)
    assert len(discs(left)) == len(path)
    here = data.paths.select(pictures=["castle"])
    x, y = lines_of(right)["fixations"]
    np.testing.assert_array_equal(x, here.x_deg[here.real])
    np.testing.assert_array_equal(y, here.y_deg[here.real])
    assert title_of(right) == f"{here.fixations} fixations of 6 observers, and their density"
    assert (left.get_xlabel(), left.get_ylabel()) == ("x (deg)", "y (deg)")
    assert bar.get_ylabel() == "density relative to uniform"
    nothing_overlaps(figure)


def test_policies_are_those_of_the_model_after_this_history(example, data, journal):
    path, model = path_of(data.paths, "beach"), example.models["ann"]
    figure = paper.attention_maps(model, data.maps, path, 8)
    of_map, local, elsewhere, mixture = figure.axes[:4]
    picture = Picture.whole(data.maps.grid, data.maps["beach"])
    history = History.of(picture, path.y_deg[:8], path.x_deg[:8])
    cells = data.maps.grid.cells
    policies = np.exp(model.policy_log_densities(history, picture))
    drawn = [np.asarray(ax.images[0].get_array()) for ax in (of_map, local, elsewhere, mixture)]
    expected = [data.maps["beach"], *policies, np.exp(model.log_density(history, picture))]
    for shown, values in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(shown, values * cells, rtol=1e-9)
    share = float(title_of(local).split()[-1])
    np.testing.assert_allclose(drawn[3], share * drawn[1] + (1 - share) * drawn[2], atol=0.006 * drawn[1].max())
    assert title_of(elsewhere).startswith("global policy")
    nothing_overlaps(figure)


def test_present_previous_and_next_gaze_are_marked(example, data, journal):
    path = path_of(data.paths, "beach")
    figure = paper.attention_maps(example.models["ann"], data.maps, path, 8)
    for ax in figure.axes[1:4]:
        places = {label: (x.item(), y.item()) for label, (x, y) in lines_of(ax).items()}
        assert places == {
            "gaze, after the last saccade": (path.x_deg[7], path.y_deg[7]),
            "gaze before the last saccade": (path.x_deg[6], path.y_deg[6]),
            "next fixation": (path.x_deg[8], path.y_deg[8]),
        }
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), path.x_deg[:8])
    whole = paper.attention_maps(example.models["ann"], data.maps, path, len(path))
    assert "next fixation" not in legend_of(whole)
    assert len(legend_of(figure)) == 3


def test_a_model_of_one_policy_has_its_maps_too(data, journal):
    figure = paper.attention_maps(foveate.named_model("local_saliency"), data.maps, path_of(data.paths, "beach"), 5)
    _, policy, mixture = (np.asarray(ax.images[0].get_array()) for ax in figure.axes[:3])
    np.testing.assert_allclose(policy, mixture)


def test_a_history_that_no_policy_sees_is_refused(example, data):
    path = path_of(data.paths, "beach")
    for fixations in (1, len(path) + 1):
        with pytest.raises(InputError, match=f"fixations = {fixations}"):
            paper.attention_maps(example.models["ann"], data.maps, path, fixations)


def test_simulated_paths_stand_below_observed_ones_on_the_same_map(example, data, simulated, journal):
    observed = [path_of(data.paths, picture) for picture in PICTURES]
    made = [path_of(simulated[0], picture) for picture in PICTURES]
    figure = paper.scan_paths(observed, made, data.maps, example.models["ann"], fixations=10)
    above, below = figure.axes[:3], figure.axes[3:]
    colours = [POLICY_COLOURS[type(policy).__name__].lower() for policy in example.models["ann"].policies]
    for picture, path, top, bottom in zip(PICTURES, made, above, below, strict=True):
        np.testing.assert_array_equal(top.images[0].get_array(), bottom.images[0].get_array())
        assert {to_hex(disc.get_markerfacecolor()) for disc in discs(top)} == {"#ffffff"}
        chosen = path.columns["policy"][:10]
        expected = ["#ffffff" if policy < 0 else colours[policy] for policy in chosen]
        assert [to_hex(disc.get_markerfacecolor()) for disc in discs(bottom)] == expected
        assert title_of(top).startswith(f"picture {picture}, observer ann\nfirst 10 of ")
        assert bottom.get_xlabel() == "x (deg)"
    assert [ax.get_ylabel() for ax in (above[0], below[0])] == ["data\ny (deg)", "simulated\ny (deg)"]
    names = ["local policy", "global policy", "observed, or drawn from the map", "first and last"]
    assert sorted(legend_of(figure)) == sorted(names)
    nothing_overlaps(figure)


def test_discs_of_paths_side_by_side_do_not_cover_one_another(example, data, simulated, journal):
    observed = [path_of(data.paths, picture) for picture in PICTURES]
    made = [path_of(simulated[0], picture) for picture in PICTURES]
    figure = paper.scan_paths(observed, made, data.maps, example.models["ann"])
    figure.canvas.draw()
    for ax in figure.axes:
        places = np.array([[float(disc.get_xdata()[0]), float(disc.get_ydata()[0])] for disc in discs(ax)])
        centres = ax.transData.transform(places)
        distance_pt = np.hypot(*(centres[:, None] - centres[None, :]).transpose(2, 0, 1)) * 72 / figure.dpi
        assert len(centres) <= paper.SHOWN_FIXATIONS
        assert distance_pt[np.triu_indices(len(centres), 1)].min() > 8.2


def test_a_single_pair_of_paths_has_room_for_its_legend(example, data, simulated, journal):
    pair = [path_of(paths, "beach") for paths in (data.paths, simulated[0])]
    figure = paper.scan_paths(pair[:1], pair[1:], data.maps, example.models["ann"])
    assert len(figure.axes) == 2
    nothing_overlaps(figure)


def test_paths_of_different_pictures_are_no_pair(example, data, simulated):
    real, made = path_of(data.paths, "beach"), path_of(simulated[0], "castle")
    with pytest.raises(InputError, match="pairs, each of one picture"):
        paper.scan_paths([real], [made], data.maps, example.models["ann"])
    with pytest.raises(InputError, match="1 observed and 0 simulated"):
        paper.scan_paths([real], [], data.maps, example.models["ann"])


# --- Fig. 5 ----------------------------------------------------------------------------------------------------------


def test_levels_enclose_their_share_of_the_mass():
    density = np.array([[0.4, 0.3], [0.2, 0.1]])
    np.testing.assert_array_equal(contours.enclosing_levels(density, (0.25, 0.7, 0.75, 1.0)), [0.4, 0.3, 0.2, 0.1])
    values = foveate.example_data().data.maps["beach"]
    for share, level in zip(contours.SHARES, contours.enclosing_levels(values), strict=True):
        assert values[values >= level].sum() == pytest.approx(share, abs=2e-3)


def recovered(data, simulated, pictures):
    sets = {"data": [data.paths], "full": simulated[:1], "mine": simulated[1:]}
    densities = {name: foveate.density_maps(paths[0], data.maps.grid, 1.0) for name, paths in sets.items()}
    agreement = {name: map_agreement(paths, data.maps) for name, paths in sets.items()}
    return densities, agreement, contours.recovered_maps(data.maps, densities, agreement, pictures)


def test_recovered_maps_have_lines_around_the_density_of_each_model(data, simulated, journal):
    densities, agreement, figure = recovered(data, simulated, PICTURES[:2])
    assert len(figure.axes) == 6
    panels = [(picture, name) for picture in PICTURES[:2] for name in densities]
    colours = {"data": INK, "full": MODEL_COLOURS["full"].lower(), "mine": style.model_colours(["full", "mine"])[1]}
    for (picture, name), ax in zip(panels, figure.axes, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), data.maps[picture] * data.maps.grid.cells)
        (lines,) = (it for it in ax.collections if isinstance(it, ContourSet))
        np.testing.assert_allclose(lines.levels, np.sort(contours.enclosing_levels(densities[name][picture])))
        assert {to_hex(colour) for colour in lines.get_edgecolor()} == {colours[name].lower()}  # type: ignore[union-attr]
        bits, fixations = agreement[name].loc[picture, ["kl_bits", "fixations"]]
        assert title_of(ax).split("\n")[-1] == f"{bits:.2f} bits ({fixations:.0f})"
    assert [title_of(ax).split("\n")[0] for ax in figure.axes[:3]] == ["Data", "Full", "mine"]
    assert figure.axes[3].get_ylabel() == f"picture {PICTURES[1]}\ny (deg)"
    assert legend_of(figure) == ["the picture's map", *(f"{share} % of fixations" for share in (25, 50, 75))]
    nothing_overlaps(figure)


def test_the_lines_lie_where_the_density_is(data, simulated, journal):
    """At the densest cell one is inside the innermost line."""
    densities, _, figure = recovered(data, simulated, PICTURES[:1])
    row, column = np.unravel_index(densities["data"]["beach"].argmax(), data.maps.grid.shape)
    y, x = data.maps.grid.centre_of(row, column)
    (lines,) = (it for it in figure.axes[0].collections if isinstance(it, ContourSet))
    assert lines.get_paths()[-1].contains_point((float(x), float(y)))
    assert not lines.get_paths()[-1].contains_point((0.2, 23.8))


def test_a_flat_density_has_no_lines(data):
    ax = style.new_figure().subplots()
    contours.density_contours(np.full(data.maps.grid.shape, 1 / data.maps.grid.cells), data.maps.grid, INK, ax)
    assert not ax.collections


def test_a_density_without_a_distance_is_refused(data, simulated):
    densities = {"full": foveate.density_maps(simulated[0], data.maps.grid, 1.0)}
    with pytest.raises(InputError, match="no distances for full"):
        contours.recovered_maps(data.maps, densities, {}, PICTURES)


# --- Fig. 7 and 8 ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def comparisons(data, simulated):
    """The true model, and one whose observers all make saccades that are 3 degrees too long."""
    full = compare_saccades(data.paths, simulated)
    mean = full.observer_mean
    longer = replace(mean, mean=mean.mean + 3, low=mean.low + 3, high=mean.high + 3)
    return {"full": full, "mine": replace(full, observer_mean=longer)}


def test_autocorrelations_of_several_models_in_one_call(comparisons, journal):
    figure = paper.autocorrelations({name: it.autocorrelation for name, it in comparisons.items()})
    (ax,) = figure.axes
    drawn = lines_of(ax)
    assert set(drawn) == {"Data", "Full", "mine"}
    at, values = drawn["Data"]
    np.testing.assert_array_equal(at, np.arange(1, 21))
    np.testing.assert_array_equal(values, comparisons["full"].autocorrelation.observed[1:])
    assert len(ax.collections) == 1


def test_observers_of_several_models_stand_on_one_scale(comparisons, journal):
    figure = paper.observer_amplitudes(comparisons)
    means, deviations = figure.axes[:2], figure.axes[2:]
    for kind, row in (("observer_mean", means), ("observer_sd", deviations)):
        assert len({ax.get_xlim() for ax in row} | {ax.get_ylim() for ax in row}) == 1
        for ax, comparison in zip(row, comparisons.values(), strict=True):
            band = getattr(comparison, kind)
            identity, points = ax.lines[:2]
            np.testing.assert_array_equal(identity.get_xdata(), ax.get_xlim())
            np.testing.assert_array_equal(points.get_xdata(), band.observed)
            np.testing.assert_array_equal(points.get_ydata(), band.mean)
    r2 = comparisons["full"].agreement().loc["sd"]
    expected = f"R² {r2['r2_identity']:.2f} (identity)\nR² {r2['r2_correlation']:.2f} (correlation)"
    assert title_of(deviations[0]) == expected.replace("-", "−")
    assert title_of(means[0]).startswith("Full\n")
    assert means[0].get_ylabel().endswith("(deg)")
    assert {ax.get_xlabel() for ax in figure.axes} == {"data (deg)"}
    nothing_overlaps(figure)


def test_one_models_observers_have_two_panels_side_by_side(comparisons, journal):
    figure = paper.observer_amplitudes({"full": comparisons["full"]})
    titles = [title_of(ax) for ax in figure.axes]
    assert titles == ["mean saccade amplitude (deg)", "standard deviation of saccade amplitude (deg)"]
    with pytest.raises(InputError, match="no model"):
        paper.observer_amplitudes({})


# --- Fig. 10, scores and differences ---------------------------------------------------------------------------------


def roc_of(power: float) -> Roc:
    at = np.linspace(0, 1, 101)
    return Roc(at, at**power, 1 / (1 + power), np.array([1 / (1 + power)]))


def test_roc_curves_are_named_with_their_areas_best_first(journal):
    models = {"saliency_baseline": roc_of(0.5), "full": roc_of(0.1)}
    ax = curves.roc_curves(models, style.new_figure().subplots())
    drawn = lines_of(ax)
    assert list(drawn) == ["Full: 0.909", "Saliency Baseline: 0.667"]
    np.testing.assert_array_equal(drawn["Full: 0.909"], (models["full"].false_alarms, models["full"].hits))
    colours = {str(line.get_label()).split(":")[0]: to_hex(line.get_color()) for line in ax.lines}
    assert colours["Full"] == MODEL_COLOURS["full"].lower()
    legend = ax.get_legend()
    assert legend is not None
    assert "AUC-Borji" in legend.get_title().get_text()
    assert "share" in ax.get_xlabel()
    assert "share" in ax.get_ylabel()
    with pytest.raises(InputError, match="no model"):
        curves.roc_curves({}, ax)


@pytest.fixture(scope="module")
def steps() -> pd.DataFrame:
    """Scores in which the full model leads by 0.5 bits, and both fall by 0.1 bits with every fixation."""
    rng = np.random.default_rng(3)
    common = [(who, what, t) for who in range(6) for what in range(5) for t in range(3, 9)]
    noise = rng.normal(0, 0.3, len(common))
    rows = []
    for model, lead in (("local_saliency", 0.0), ("full", 0.5), ("mine", 0.2)):
        own = rng.normal(0, 0.1, len(common))
        rows += [
            (model, *labels, 2 + lead - 0.1 * labels[2] + e + o)
            for labels, e, o in zip(common, noise, own, strict=True)
        ]
    return pd.DataFrame(rows, columns=["model", "observer", "picture", "fixation", "value"])


def test_scores_by_fixation_are_lines_with_bands(steps, journal):
    parts = [compare(part).models.assign(fixation=number) for number, part in steps.groupby("fixation")]
    table = pd.concat(parts)
    ax = curves.scores_by_fixation(table.sample(frac=1, random_state=1), style.new_figure().subplots())
    drawn = lines_of(ax)
    assert list(drawn) == ["Full", "Local Saliency", "mine"]
    full = table[table["model"] == "full"]
    np.testing.assert_array_equal(drawn["Full"], (full["fixation"], full["mean"]))
    assert len(ax.collections) == 3
    corners = np.asarray(ax.collections[0].get_paths()[0].vertices)[:, 1]
    assert np.isin(full[["low", "high"]].to_numpy().round(12), corners.round(12)).all()
    assert ax.get_xlabel() == "number of the fixation in its path"
    assert ax.get_ylabel() == "bits per fixation over uniform"
    some = curves.scores_by_fixation(table, style.new_figure().subplots(), bands=["full"], score="NSS")
    assert len(some.collections) == 1
    assert some.get_ylabel() == "NSS"
    with pytest.raises(InputError, match="no column fixation"):
        curves.scores_by_fixation(table.drop(columns="fixation"), ax)


def test_differences_to_the_best_have_their_intervals_and_numbers(steps, journal):
    comparison = compare(steps)
    figure = style.new_figure(183, 55)
    ax = curves.differences(comparison, figure.subplots())
    assert [label.get_text() for label in ax.get_yticklabels()] == ["Full", "mine", "Local Saliency"]
    pair = comparison.against_best().set_index("second").loc["local_saliency"]
    x, y = lines_of(ax)["local_saliency"]
    assert (x.item(), y.item()) == (-pair["difference"], 0)
    bars = {line.get_linewidth(): np.sort(line.get_xdata()) for line in ax.lines if np.all(line.get_ydata() == y)}
    np.testing.assert_allclose(bars[2.4], [-pair["high"], -pair["low"]])
    np.testing.assert_allclose(bars[0.8], [-pair["high_all"], -pair["low_all"]])
    words = f"−{pair['difference']:.3f} [−{pair['high']:.3f}, −{pair['low']:.3f}]"
    assert words in texts_of(ax)
    assert "6 of 6" in texts_of(ax)
    assert "reference" in texts_of(ax)
    assert ax.get_xlabel().startswith("difference to Full (bits per fixation)")
    figure.canvas.draw()
    assert all(text.get_window_extent().x1 <= figure.bbox.width for text in ax.texts)


def test_two_models_have_one_difference_and_no_thin_line(steps, journal):
    def words(few: pd.DataFrame) -> str:
        return curves.differences(compare(few), style.new_figure(183, 55).subplots()).get_xlabel().split("\n")[1]

    assert words(steps) == "thick: 95 % interval; thin: all differences together"
    assert words(steps[steps["model"] != "mine"]) == "95 % interval"


def test_differences_to_another_reference_turn_their_sign(steps, journal):
    comparison = compare(steps)
    ax = curves.differences(comparison, style.new_figure(183, 55).subplots(), reference="mine")
    places = {name: x.item() for name, (x, _) in lines_of(ax).items()}
    assert places["full"] > places["mine"] == 0 > places["local_saliency"]
    means = comparison.models.set_index("model")["mean"]
    assert places["full"] == pytest.approx(means["full"] - means["mine"])
    with pytest.raises(InputError, match="'other' was not compared"):
        curves.differences(comparison, ax, reference="other")


def test_figures_take_anything_of_the_right_shape():
    @dataclass
    class Mine:
        observer_mean: Band
        observer_sd: Band

        def agreement(self) -> pd.DataFrame:
            return pd.DataFrame({"r2_identity": [0.5, 0.4], "r2_correlation": [0.6, 0.7]}, index=["mean", "sd"])

    observed = np.array([4.0, 5.0, 7.0])
    band = Band(np.arange(3.0), observed, observed - 0.5, observed - 1.0, observed + 0.2)
    figure = paper.observer_amplitudes({"a": Mine(band, band), "b": Mine(band, replace(band, mean=observed))})
    assert title_of(figure.axes[3]) == "R² 0.40 (identity)\nR² 0.70 (correlation)"
