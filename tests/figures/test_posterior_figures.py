"""Figures of a posterior show its draws, its prior and the truth, and say so where it has not converged."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.text import Text

from foveate.figures import chains, style
from foveate.figures.labels import symbol, with_unit
from foveate.figures.panels import NOT_CONVERGED, shades
from foveate.figures.posterior import against_prior, pairs
from foveate.figures.recovery import recovery
from foveate.inference.diagnosis import diagnose
from foveate.inference.marginals import prior_density, shown_range, smooth_density
from foveate.inference.modes import Modes
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples, Weighted
from foveate.model.catalogue import from_published, full, local_saliency

CHAINS, DRAWS = 4, 500
TRUTHS = np.array([4.0, 8.0, 40.0, 70.0, 0.2, 3.0])


def posterior_of(model=None, apart: float = 0.0, modes: Modes | None = None) -> Posterior:
    """Draws around the truths; with `apart`, each chain in another place."""
    model = full(priors="published") if model is None else model
    rng = np.random.default_rng(1)
    centre = np.log(TRUTHS[2:4]) if model.name == "local_saliency" else np.append(np.log(TRUTHS[:4]), TRUTHS[4:])
    spread = np.full(len(centre), 0.2)
    real = centre + spread * rng.standard_normal((CHAINS, DRAWS, len(centre)))
    real += apart * np.arange(CHAINS)[:, None, None]
    samples = Samples(real, "nuts", {}, {}, 1, modes=modes)
    return Posterior(model, "ann", samples, diagnose(model.labels, samples), {})


def changed(posterior: Posterior, **parts) -> Posterior:
    """The same with other samples."""
    samples = replace(posterior.samples, **parts)
    return Posterior(posterior.model, "ann", samples, diagnose(posterior.labels, samples), {})


def resampled() -> Posterior:
    """Draws that importance sampling might have made."""
    real = posterior_of().samples.real
    return changed(posterior_of(), sampler="importance", weighted=Weighted(real, np.zeros(real.shape[:2])))


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


FIGURES = {
    "trace": chains.trace,
    "ranks": chains.ranks,
    "pairs": pairs,
    "against_prior": against_prior,
    "recovery": lambda posterior: recovery(posterior, TRUTHS[: len(posterior.labels)]),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_a_posterior_that_has_not_converged_is_marked_in_every_figure(draw):
    good, bad = posterior_of(), posterior_of(apart=0.4)
    assert good.converged
    assert not bad.converged
    with style.journal_style():
        marks = [[text for text in texts(draw(it)) if NOT_CONVERGED in text.lower()] for it in (good, bad)]
    assert marks[0] == []
    assert len(marks[1]) == 1 + len(bad.labels)  # in the heading, and on every panel (the diagonal of pairs)


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
@pytest.mark.parametrize("model", [full(), local_saliency()])
def test_figures_have_units_and_can_be_saved(draw, model, tmp_path):
    with style.journal_style():
        figure = draw(posterior_of(model))
        files = style.save(figure, tmp_path, "figure")
    assert all(file.stat().st_size > 1000 for file in files)
    assert any("ξ column" in text for text in texts(figure))
    if draw is not FIGURES["ranks"]:  # whose axes are ranks
        assert any("deg²" in text for text in texts(figure))


def test_traces_are_the_draws_in_a_shade_for_each_chain():
    posterior = posterior_of()
    axes = chains.trace(posterior).axes[: len(posterior.labels)]
    for index, ax in enumerate(axes):
        drawn = np.stack([np.asarray(line.get_ydata()) for line in ax.lines])
        np.testing.assert_array_equal(drawn, posterior.numbers[:, :, index])
        assert len({line.get_color() for line in ax.lines}) == CHAINS
    assert len(set(shades("full", 10))) == 10


def test_a_trace_says_once_that_resampled_draws_have_no_order():
    for posterior, often in ((posterior_of(), 0), (resampled(), 1)):
        with style.journal_style():
            figure = chains.trace(posterior)
            figure.canvas.draw()
        notes = [text for text in figure.findobj(Text) if "order means nothing" in text.get_text()]
        assert len(notes) == often
        for note in notes:
            box = note.get_window_extent()
            assert box.x0 >= 0
            assert box.x1 <= figure.bbox.width


def test_ranks_say_what_the_draws_come_in():
    assert "draws of a chain,\nrelative to even" in texts(chains.ranks(posterior_of()))
    assert "draws of a replicate,\nrelative to even" in texts(chains.ranks(resampled()))


def test_rank_bars_of_chains_that_agree_stay_in_the_band_and_others_leave_it():
    def share_outside(posterior: Posterior) -> float:
        outside = []
        for ax in chains.ranks(posterior).axes[: len(posterior.labels)]:
            band = ax.patches[0].get_extents().transformed(ax.transData.inverted())
            for bars in ax.patches[1:]:
                heights = bars.get_data().values  # type: ignore[attr-defined]
                assert heights.mean() == pytest.approx(1.0)
                outside.append((heights < band.y0) | (heights > band.y1))
        return float(np.mean(outside))

    assert share_outside(posterior_of()) < 0.03
    assert share_outside(posterior_of(apart=0.4)) > 0.3


def test_pairs_show_every_pair_once_and_the_tops_of_modes():
    model = full(priors="published")
    centre = np.append(np.log(TRUTHS[:4]), TRUTHS[4:])
    tops = np.stack([centre, centre + 0.3])
    modes = Modes(tops, np.zeros(2), np.array([0.7, 0.3]), np.full(2, 0.01), np.zeros((CHAINS, DRAWS), int), 0)
    posterior = posterior_of(model, modes=modes)
    figure = pairs(posterior)
    panels = np.array(figure.axes).reshape(6, 6)
    assert [ax.get_visible() for ax in panels.ravel()] == np.tri(6, dtype=bool).ravel().tolist()
    dots, *crosses = panels[3, 1].lines
    assert len(dots.get_xdata()) == CHAINS * DRAWS
    np.testing.assert_allclose(dots.get_xdata(), posterior.numbers[:, :, 1].ravel())
    found = [(cross.get_xdata()[0], cross.get_ydata()[0]) for cross in crosses]
    np.testing.assert_allclose(found, np.exp(tops[:, [1, 3]]))
    assert "top of a mode with 0.700 ± 0.010 of the mass" in texts(figure)


def test_pairs_share_their_axes_by_column_and_row():
    panels = np.array(pairs(posterior_of()).axes).reshape(6, 6)
    for index in range(6):
        assert len({ax.get_xlim() for ax in panels[index:, index]}) == 1
        assert len({ax.get_ylim() for ax in panels[index, :index]}) <= 1


@pytest.mark.parametrize("model", [full(), local_saliency()])
def test_one_draw_far_out_does_not_squeeze_the_others(model):
    posterior = posterior_of(model)
    real = posterior.samples.real.copy()
    real[0, 0] += 5.0
    far = changed(posterior, real=real)
    number = len(posterior.labels)
    limits = []
    for it in (posterior, far):
        panels = np.array(pairs(it).axes).reshape(number, number)
        traces = chains.trace(it).axes[:number]
        limits.append([*(panels[i, i].get_xlim() for i in range(number)), *(ax.get_ylim() for ax in traces)])
    np.testing.assert_allclose(limits[1], limits[0], rtol=0.15)  # it is 5 away, or 148 times the others


def test_tops_of_modes_are_within_the_axes():
    tops = np.append(np.log(TRUTHS[:4]), TRUTHS[4:])[None] + 2.0  # beyond all draws
    modes = Modes(tops, np.zeros(1), np.ones(1), np.full(1, 0.01), np.zeros((CHAINS, DRAWS), int), 0)
    panels = np.array(pairs(posterior_of(modes=modes)).axes).reshape(6, 6)
    shown = posterior_of(modes=modes).modes()
    for index, label in enumerate(posterior_of().labels):
        low, high = panels[index, index].get_xlim()
        assert low < shown[label].item() < high


def test_ticks_have_true_minus_signs():
    figure = pairs(posterior_of())
    figure.canvas.draw()
    ticks = [text.get_text() for ax in figure.axes for text in ax.get_xticklabels() + ax.get_yticklabels()]
    assert not any("-" in tick for tick in ticks)
    below_zero = posterior_of(apart=-1.0)  # s0 and b fall below zero
    figure = chains.trace(below_zero)
    figure.canvas.draw()
    ticks = [text.get_text() for ax in figure.axes for text in ax.get_yticklabels()]
    assert any(tick.startswith("−") for tick in ticks)
    assert not any("-" in tick for tick in ticks)


def test_the_prior_is_dashed_and_the_truth_a_line():
    posterior = posterior_of()
    for index, ax in enumerate(recovery(posterior, TRUTHS).axes[:6]):
        curves, dashed, truth = ax.lines[:CHAINS], ax.lines[CHAINS], ax.lines[CHAINS + 1]
        assert dashed.get_linestyle() == "--"
        np.testing.assert_allclose(truth.get_xdata(), TRUTHS[index])
        points = np.asarray(dashed.get_xdata())
        expected = prior_density(posterior.model, posterior.labels[index], points)
        np.testing.assert_allclose(dashed.get_ydata(), expected)
        for curve in curves:  # nearly all of each chain's mass is in the panel
            assert np.trapezoid(np.asarray(curve.get_ydata()), points) == pytest.approx(1.0, abs=0.02)


def test_prior_density_is_that_of_the_axis_alone():
    """Published priors on variances differ between row and column; each integrates to one and SciPy agrees."""
    from scipy.stats import invgamma

    model = from_published("full")
    points = np.linspace(0.01, 400, 200_000)
    for axis, index in (("row", 0), ("column", 1)):
        prior = model.priors["xi"]
        expected = invgamma.pdf(points, 3, scale=np.asarray(prior.scale)[index])  # type: ignore[attr-defined]
        np.testing.assert_allclose(prior_density(model, f"xi_{axis}", points), expected, rtol=1e-9)


def test_smooth_density_stays_where_the_number_can_be():
    model, rng = local_saliency(), np.random.default_rng(1)
    draws = np.exp(rng.normal(-2.0, 1.5, 4000))
    points = np.geomspace(1e-4, 50, 4000)
    density = smooth_density(model, "xi_row", draws, points)
    assert np.trapezoid(density, points) == pytest.approx(1.0, abs=0.01)
    assert np.isnan(smooth_density(model, "xi_row", np.full(10, 3.0), points)).all()


def test_the_range_shown_holds_draws_and_truth():
    draws = np.random.default_rng(1).normal(5.0, 1.0, 1000)
    low, high = shown_range(draws, 12.0)
    assert low < np.quantile(draws, 0.01)
    assert high > 12.0
    assert shown_range(np.full(9, 2.0)) == (1.5, 2.5)


def test_numbers_are_named_as_in_the_paper():
    assert symbol("epsilon_row") == "ε row"
    assert with_unit("xi_column") == "ξ column (deg²)"
    assert with_unit("zeta_row") == "zeta row (deg²)"
    assert with_unit("s0") == "s₀"
    assert with_unit("log_likelihood") == "log-likelihood (nats)"


def test_a_chain_that_never_moved_does_not_stop_a_figure(tmp_path):
    posterior = posterior_of()
    real = posterior.samples.real.copy()
    real[0] = real[0, :1]
    samples = replace(posterior.samples, real=real)
    stuck = Posterior(posterior.model, "ann", samples, diagnose(posterior.labels, samples), {})
    for draw in FIGURES.values():
        style.save(draw(stuck), tmp_path, "stuck")
