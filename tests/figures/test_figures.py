"""Figures show the numbers they were given, the right way up, in fixed colours, and leave no trace."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_hex

from foveate.data.grid import Extent, Grid
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPath
from foveate.figures import style
from foveate.figures.maps import map_grid, policy_densities, saliency_map
from foveate.figures.ranking import ranking
from foveate.figures.scanpath import scan_path
from foveate.model.catalogue import CATALOGUE

POLICIES = ["Local", "RepelledGlobal"]


def grid_of(origin) -> Grid:
    return Grid(6, 8, Extent(12.0, 20.0, origin))


def one_cell_map(grid: Grid, row: int, column: int) -> np.ndarray:
    values = np.full(grid.shape, 0.01)
    values[row, column] = 1.0
    return values / values.sum()


def path_of(y_deg, x_deg, policy=None) -> ScanPath:
    columns = {} if policy is None else {"policy": np.array(policy)}
    y, x = np.array(y_deg, dtype=float), np.array(x_deg, dtype=float)
    return ScanPath("ann", "beach", 1, np.arange(1, len(x) + 1), x, y, None, columns)


def discs(ax) -> list:
    """The fixations' markers in the order of the path."""
    return [line for line in ax.lines if line.get_markersize() == pytest.approx(8.5)]


@pytest.mark.parametrize("origin", ["bottom", "top"])
def test_a_map_stands_where_its_positions_are(origin):
    """The brightest pixel of the drawn image is where a fixation in that cell would be plotted."""
    grid, row, column = grid_of(origin), 1, 6
    with style.journal_style():
        figure = style.new_figure(80, 60)
        ax = figure.subplots()
        image = saliency_map(one_cell_map(grid, row, column), grid, ax, colours="gray")
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[..., 0]  # type: ignore[attr-defined]
    y, x = grid.centre_of(row, column)
    px_x, px_y = ax.transData.transform((float(x), float(y))).astype(int)
    elsewhere = ax.transData.transform((float(x), grid.extent.height_deg - float(y))).astype(int)
    assert pixels[pixels.shape[0] - px_y, px_x] == 255
    assert pixels[pixels.shape[0] - elsewhere[1], elsewhere[0]] < 20
    assert image.norm.vmax == pytest.approx(grid.cells * one_cell_map(grid, row, column).max())
    assert (ax.get_ylim()[0] < ax.get_ylim()[1]) == (origin == "bottom")
    assert ax.get_aspect() == 1


def test_axes_are_in_degrees():
    with style.journal_style():
        ax = style.new_figure().subplots()
        saliency_map(one_cell_map(grid_of("bottom"), 0, 0), grid_of("bottom"), ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x (deg)", "y (deg)")
    assert ax.get_xlim() == (0, 20)


def test_maps_share_one_colour_scale():
    grid = grid_of("bottom")
    flat = np.full(grid.shape, 1 / grid.cells)
    maps = SaliencyMaps(grid, ("a", "b"), np.stack([one_cell_map(grid, 0, 0), flat]))
    axes = list(style.new_figure().subplots(1, 3))
    map_grid(maps, axes)
    assert len({ax.images[0].norm.vmax for ax in axes[:2]}) == 1
    assert [ax.get_title(loc="left") or ax.get_title() for ax in axes[:2]] == ["a", "b"]
    assert not axes[2].get_visible()


def test_each_fixation_has_the_colour_of_its_policy():
    path = path_of([2, 10, 3, 9, 6], [2, 18, 15, 4, 10], policy=[-1, -1, 0, 1, 0])
    with style.journal_style():
        ax = style.new_figure(140, 100).subplots()
        scan_path(path, one_cell_map(grid_of("top"), 2, 2), grid_of("top"), POLICIES, ax)
    local, elsewhere = (style.POLICY_COLOURS[name].lower() for name in POLICIES)
    neutral = style.NEUTRAL.lower()
    found = [to_hex(disc.get_markerfacecolor()) for disc in discs(ax)]
    assert found == [neutral, neutral, local, elsewhere, local]
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["1", "2", "3", "4", "5"]
    legend = ax.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["local policy", "global policy", "drawn from the map", "first and last"]
    assert [disc.get_markeredgewidth() for disc in discs(ax)] == [1.4, 0.5, 0.5, 0.5, 1.4]


def test_fixations_that_lie_apart_are_drawn_where_they_are():
    path = path_of([2, 10, 3], [2, 18, 15])
    ax = style.new_figure(140, 100).subplots()
    scan_path(path, one_cell_map(grid_of("bottom"), 2, 2), grid_of("bottom"), POLICIES, ax)
    drawn = np.array([[disc.get_ydata()[0], disc.get_xdata()[0]] for disc in discs(ax)])
    np.testing.assert_allclose(drawn, [[2, 2], [10, 18], [3, 15]])


def test_discs_do_not_cover_one_another():
    path = path_of([6, 6, 6, 6.2, 10], [10, 10, 10, 10.1, 18])
    figure = style.new_figure(140, 100)
    ax = figure.subplots()
    scan_path(path, one_cell_map(grid_of("bottom"), 2, 2), grid_of("bottom"), POLICIES, ax)
    centres = ax.transData.transform([[disc.get_xdata()[0], disc.get_ydata()[0]] for disc in discs(ax)])
    distance_pt = np.hypot(*(centres[:, None] - centres[None, :]).transpose(2, 0, 1)) * 72 / figure.dpi
    assert distance_pt[np.triu_indices(5, 1)].min() > 8.4
    assert distance_pt[:4, :4].max() < 4 * 8.5  # no further than needed


def test_policies_at_a_step_are_named_with_their_probability():
    grid = grid_of("bottom")
    densities = np.stack([one_cell_map(grid, 1, 1), one_cell_map(grid, 4, 4)])
    axes = list(style.new_figure(183, 56).subplots(1, 3))
    recent = np.array([[2.0, 3.0], [5.0, 6.0]])
    mixture = densities.mean(axis=0)
    policy_densities(densities, mixture, np.array([0.25, 0.75]), POLICIES, recent, (8.0, 9.0), grid, axes)
    assert "local policy" in axes[0].get_title()
    assert "0.75" in axes[1].get_title()
    np.testing.assert_allclose(np.asarray(axes[2].images[0].get_array()), mixture * grid.cells)


def test_ranking_puts_the_best_on_top_with_its_interval():
    bits = {"saliency_baseline": np.array([0.9, 1.1]), "full": np.array([1.8, 2.2])}
    ax = style.new_figure().subplots()
    ranking(bits, {"saliency_baseline": 1.0, "full": 2.0}, {"saliency_baseline": 0.1, "full": 0.2}, {"full": "F"}, ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["saliency_baseline", "F"]
    bar = ax.containers[1].lines[2][0].get_segments()[0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(bar[:, 0], [1.8, 2.2])
    assert "2.00 ± 0.20" in [text.get_text() for text in ax.texts]
    assert "bits per fixation" in ax.get_xlabel()


def test_every_published_model_has_a_colour_of_its_own():
    assert set(CATALOGUE) <= set(style.MODEL_COLOURS)
    assert len(set(style.MODEL_COLOURS.values())) == len(style.MODEL_COLOURS)


def test_an_unknown_policy_gets_a_colour_and_a_name():
    colours = style.policy_colours(["Local", "Momentum", "ReturnHome"])
    assert len(set(colours)) == 3
    assert style.policy_title("ReturnHome") == "return home policy"
    assert style.policy_titles(["Local", "RepelledGlobal", "ReturnHome"]) == ["local", "global", "return home"]
    assert style.policy_titles(["Global", "RepelledGlobal"]) == ["global", "repelled global"]


def test_style_leaves_matplotlib_as_it_was(tmp_path):
    with mpl.rc_context({"font.size": 11.0}):  # the host program's own choice
        before = dict(mpl.rcParams)
        with style.journal_style():
            figure = style.new_figure()
            figure.subplots().plot([1, 2])
            assert mpl.rcParams["font.size"] == 7.0
            files = style.save(figure, tmp_path, "line")
        assert dict(mpl.rcParams) == before
    assert [file.name for file in files] == ["line.svg", "line.png"]
    assert all(file.stat().st_size > 0 for file in files)


def test_the_same_figure_gives_the_same_file(tmp_path):
    contents = []
    for name in ("first", "second"):
        with style.journal_style():
            figure = style.new_figure()
            figure.subplots().plot([1, 2])
            contents.append([file.read_bytes() for file in style.save(figure, tmp_path, name)])
    assert contents[0] == contents[1]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_figure_is_written_whole_or_not_at_all(kind, tmp_path, monkeypatch):
    with style.journal_style():
        figure = style.new_figure()
        axes = figure.subplots()
        axes.plot([1, 2])
        style.save(figure, tmp_path, "line")
        before = (tmp_path / f"line.{kind}").read_bytes()
        axes.plot([2, 1])
        write = figure.savefig

        def disk_is_full(file, **settings):
            write(file, **settings)
            if settings["format"] == kind:
                raise OSError(28, "No space left on device")

        monkeypatch.setattr(figure, "savefig", disk_is_full)
        with pytest.raises(OSError, match="No space left"):
            style.save(figure, tmp_path, "line")
    unchanged = (tmp_path / f"line.{kind}").read_bytes() == before  # not in the assertion: pytest would compare pixels
    assert unchanged
    assert sorted(file.name for file in tmp_path.iterdir()) == ["line.png", "line.svg"]
