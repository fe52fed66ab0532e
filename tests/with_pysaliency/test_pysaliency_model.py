"""A fitted model as a model of pysaliency: its own likelihoods and scores of it agree with foveate's."""

from typing import final

import numpy as np
import pysaliency
import pytest
from example_stimuli import HEIGHT_PX, PIXELS_PER_CELL, PX_PER_DEGREE, WIDTH_PX, model_of, noise, on_pixels
from jaxtyping import Float

from foveate.data.dataset import Dataset
from foveate.data.saliency import SaliencyMaps
from foveate.evaluate.scores import bits_per_fixation, score_posterior, score_steps
from foveate.inference.point import PointEstimate
from foveate.model.catalogue import CATALOGUE, local_saliency, named_model
from foveate.model.choices import OnlyPolicy
from foveate.model.history import Array, History, Picture
from foveate.model.likelihood import log_likelihood
from foveate.model.model import Model
from foveate.model.policies import Policy
from foveate.model.steps import Steps
from foveate.pysaliency import ScanpathModel, ScanpathSaliencyMapModel, pictures_in_order

# Of pysaliency's own: what ours must agree with.
by_definition = pysaliency.ScanpathModel.log_likelihoods


def picture_and_history(data: Dataset, name: str, x_px: list[float], y_px: list[float]) -> tuple[Picture, History]:
    picture = Picture.whole(data.maps.grid, data.maps[name])
    y_deg, x_deg = data.maps.grid.extent.height_deg - np.array(y_px) / 16, np.array(x_px) / 20
    return picture, History.of(picture, y_deg, x_deg)


# --- the density ---------------------------------------------------------------------------------------------------


def test_it_is_a_real_scanpath_model(model):
    assert isinstance(model, pysaliency.models.ScanpathModel)
    assert isinstance(ScanpathSaliencyMapModel(model), pysaliency.ScanpathSaliencyMapModel)


@pytest.mark.parametrize("length", [0, 1])
def test_the_first_two_fixations_come_from_the_map(example, model, length):
    before = [300.0] * length, [100.0] * length
    density = model.conditional_log_density(example.stimuli[1], *before, before[0], attributes={"subjects": "dan"})
    np.testing.assert_allclose(np.exp(density), on_pixels(example.data.maps["castle"]), rtol=1e-12)


def test_later_ones_come_from_the_models_own_density(example, model):
    x_px, y_px = [101.0, 300.5, 44.25], [20.5, 210.0, 130.75]
    picture, history = picture_and_history(example.data, "tower", x_px, y_px)
    density = model.conditional_log_density(example.stimuli[2], x_px, y_px, [0, 1, 2], attributes={"subject": "dan"})
    expected = on_pixels(np.exp(example.models["dan"].log_density(history, picture)))
    np.testing.assert_allclose(np.exp(density), expected, rtol=1e-12)


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("size", [(HEIGHT_PX, WIDTH_PX), (97, 131)])
def test_densities_sum_to_one_whatever_the_pixels(example, name, size):
    height_px, width_px = size
    scale = (height_px / 24, width_px / 32)
    stimulus = noise(1, *size)[0]
    maps = SaliencyMaps(example.data.maps.grid, (stimulus.stimulus_id,), example.data.maps.values[:1])
    model = ScanpathModel(named_model(name), maps, pixels_per_degree=scale)
    for x_share, y_share in [([], []), ([0.3], [0.4]), ([0.3, 0.999], [0.4, 0.001]), ([0.1] * 9, [0.7] * 9)]:
        x_px, y_px = width_px * np.array(x_share), height_px * np.array(y_share)
        density = model.conditional_log_density(stimulus, x_px, y_px, x_px)
        assert density.shape == size
        assert abs(np.exp(density).sum() - 1) < 1e-9


def test_padding_behind_a_history_is_not_a_fixation(example, model):
    known = [101.0, 300.5], [20.5, 210.0]
    padded = [[*values, np.nan, np.nan] for values in known]
    attributes = {"subjects": "ann"}
    plain, with_padding = (
        model.conditional_log_density(example.stimuli[0], *it, it[0], attributes=attributes) for it in (known, padded)
    )
    np.testing.assert_array_equal(plain, with_padding)


@final
class Hardening(Policy):
    """The map, the more pronounced the longer a path is: s(z)^t, t the fixations so far."""

    def log_weight(self, history: History, picture: Picture) -> Float[Array, "*cells"]:
        return picture.log_saliency * history.count


def test_policies_of_ones_own_hear_of_all_fixations_so_far(example):
    """Five, though the history holds the last two; without parameters, and fast as well as slow."""
    model = model_of(example, Model((Hardening(),), OnlyPolicy(), {}, "hardening"))
    fifth = np.flatnonzero(example.fixations.lengths == 5)
    expected = example.data.maps["beach"] ** 5
    slow = model.conditional_log_density_for_fixation(example.stimuli, example.fixations, fifth[0])
    np.testing.assert_allclose(np.exp(slow), on_pixels(expected / expected.sum()), rtol=1e-11)
    fast = model.conditional_log_densities(example.stimuli, example.fixations[fifth])
    np.testing.assert_allclose(fast[0], slow, rtol=1e-11)


def test_maps_of_every_observers_own_are_used(example):
    maps, models = example.data.maps, example.models
    other = SaliencyMaps(maps.grid, maps.pictures, maps.values[::-1])
    pictures = pictures_in_order(example.stimuli, maps.pictures)
    model = ScanpathModel(models, {"ann": maps, "dan": other}, pixels_per_degree=PX_PER_DEGREE, pictures=pictures)
    for name, own in (("ann", maps), ("dan", other)):
        density = model.conditional_log_density(example.stimuli[0], [], [], [], attributes={"subject": name})
        np.testing.assert_allclose(np.exp(density), on_pixels(own["beach"]), rtol=1e-12)


# --- draws ---------------------------------------------------------------------------------------------------------


def test_the_predictive_density_is_the_mean_of_the_draws_densities(example, posteriors):
    """Draws 7, 22, 37 and 52 of 60 are the four that lie evenly."""
    posterior = posteriors["ann"]
    x_px, y_px = [101.0, 300.5], [20.5, 210.0]
    picture, history = picture_and_history(example.data, "beach", x_px, y_px)
    flat = posterior.samples.real.reshape(60, -1)
    each = [np.exp(posterior.model.from_real(flat[row]).log_density(history, picture)) for row in (7, 22, 37, 52)]
    density = model_of(example, posterior, draws=4).conditional_log_density(example.stimuli[0], x_px, y_px, x_px)
    np.testing.assert_allclose(np.exp(density), on_pixels(np.mean(each, axis=0)), rtol=1e-12)


def test_predictive_log_likelihoods_are_those_of_foveates_own_scores(example, posteriors):
    ours = [
        score_posterior(posterior, example.data.select(observers=[name]), draws=20).predictive["log_probability_nats"]
        for name, posterior in posteriors.items()
    ]
    theirs = model_of(example, posteriors, draws=20).log_likelihoods(example.stimuli, example.fixations)
    theirs = theirs[example.from_third] + np.log(PIXELS_PER_CELL)
    np.testing.assert_allclose(theirs, np.concatenate(ours), rtol=1e-10)


def test_a_point_estimate_is_its_model(example):
    only = example.models["ann"]
    one, other = (
        model_of(example, it).log_likelihoods(example.stimuli, example.fixations[:40])
        for it in (only, PointEstimate(only, 0.0, 1, 1))
    )
    np.testing.assert_array_equal(one, other)


# --- pysaliency's scores against foveate's -------------------------------------------------------------------------


def test_log_likelihood_is_that_of_foveate_but_for_the_size_of_a_pixel(example, model):
    scored = example.fixations[example.from_third]
    ours = sum(
        log_likelihood(it, Steps.of(example.data.select(observers=[name]))) for name, it in example.models.items()
    )
    theirs = model.log_likelihood(example.stimuli, scored) * len(scored)
    assert len(scored) == Steps.of(example.data).count
    np.testing.assert_allclose(theirs + len(scored) * np.log(PIXELS_PER_CELL), ours, rtol=1e-12)


def test_information_gain_over_uniform_is_bits_per_fixation(example, model):
    for subject, name in enumerate(example.models):
        scored = example.fixations[example.from_third & (example.fixations.subjects == subject)]
        ours = bits_per_fixation(example.models[name], Steps.of(example.data.select(observers=[name])))
        np.testing.assert_allclose(model.information_gain(example.stimuli, scored), ours, rtol=1e-11)


def test_auc_and_nss_of_pysaliency_are_foveates(example, model):
    maps = ScanpathSaliencyMapModel(model)
    data = example.data.select(observers=["dan"])
    real = np.asarray(example.models["dan"].to_real())[None]
    ours = score_steps(example.models["dan"], data, real).predictive
    chosen = np.flatnonzero(example.from_third & (example.fixations.subjects == 1))[::2]
    scored = example.fixations[chosen]
    np.testing.assert_allclose(maps.AUCs(example.stimuli, scored), ours["auc"][::2], atol=1e-12)
    np.testing.assert_allclose(maps.NSSs(example.stimuli, scored), ours["nss"][::2], rtol=1e-9)


def test_the_series_of_saliency_maps_is_the_densities(example, model):
    maps = ScanpathSaliencyMapModel(model)
    few = example.fixations[:4]
    series = list(maps.conditional_saliency_maps(example.stimuli, few))
    for index, values in enumerate(series):
        expected = maps.conditional_saliency_map_for_fixation(example.stimuli, few, index)
        np.testing.assert_allclose(values, expected, rtol=1e-12)


# --- fast and slow -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 97 / HEIGHT_PX])
def test_fast_log_likelihoods_are_the_slow_ones(example, posteriors, scale):
    """Every fixation, first and second ones too, of both observers; also where pixels cut cells."""
    height_px, width_px = round(HEIGHT_PX * scale), round(WIDTH_PX * scale)
    stimuli = noise(3, height_px, width_px)
    model = ScanpathModel(
        posteriors,
        example.data.maps,
        pixels_per_degree=(height_px / 24, width_px / 32),
        pictures=pictures_in_order(stimuli, example.data.maps.pictures),
        draws=3,
    )
    fixations = example.fixations.copy()
    for name in ("x", "x_hist"):
        setattr(fixations, name, getattr(fixations, name) * width_px / WIDTH_PX)
    for name in ("y", "y_hist"):
        setattr(fixations, name, getattr(fixations, name) * height_px / HEIGHT_PX)
    fast = model.log_likelihoods(stimuli, fixations)
    np.testing.assert_allclose(fast, by_definition(model, stimuli, fixations), rtol=1e-12)


def test_what_is_too_unlikely_for_a_number_still_has_a_logarithm(example):
    """Variances so small that most cells have less than 1e-308; fast and slow agree to the last of them."""
    model = model_of(example, local_saliency(xi=(0.01, 0.02)))
    few = example.fixations[example.from_third][:20]
    fast = model.log_likelihoods(example.stimuli, few)
    assert fast.min() < np.log(1e-308)
    assert np.isfinite(fast).all()
    np.testing.assert_allclose(fast, by_definition(model, example.stimuli, few), rtol=1e-12)


def test_fast_densities_are_the_slow_ones_in_any_order(example, model, monkeypatch):
    monkeypatch.setattr("foveate.pysaliency.model.CHUNK", 7)
    few = example.fixations[np.r_[0:9, 100:109]]
    densities = model.conditional_log_densities(example.stimuli, few)
    assert len(densities) == len(few) == len(list(densities))
    for index in (17, 0, 8, -1, 3):
        slow = model.conditional_log_density_for_fixation(example.stimuli, few, index)
        np.testing.assert_allclose(densities[index], slow, rtol=1e-12)
    np.testing.assert_array_equal(densities[6:9][1], densities[7])
    with pytest.raises(IndexError):
        densities[18]


def test_colours_of_a_stimulus_do_not_matter(example, model):
    grey, colour = np.zeros((HEIGHT_PX, WIDTH_PX)), np.ones((HEIGHT_PX, WIDTH_PX, 3))
    stimuli = pysaliency.Stimuli([grey, grey + 1, colour])
    pictures = pictures_in_order(stimuli, example.data.maps.pictures)
    mixed = ScanpathModel(example.models, example.data.maps, pixels_per_degree=PX_PER_DEGREE, pictures=pictures)
    np.testing.assert_array_equal(
        mixed.log_likelihoods(stimuli, example.fixations), model.log_likelihoods(example.stimuli, example.fixations)
    )
