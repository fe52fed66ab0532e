"""The small models hold every part beyond the paper, can be simulated and fitted, and a wrong simulation shows."""

from itertools import pairwise

import jax
import numpy as np
import pytest

from foveate.commands.outputs import PARTS
from foveate.errors import InputError
from foveate.evaluate import calibration
from foveate.evaluate.calibration import calibrate, smooth_maps
from foveate.experiments.part_models import PART_MODELS, PART_TITLES, part_model
from foveate.experiments.recovery import recovery_model
from foveate.model import catalogue, choices, directions, durations, factors, mechanisms, places, policies
from foveate.model.catalogue import PUBLISHED, named_model
from foveate.model.choices import Choice, SoftmaxChoice
from foveate.model.durations import KNOWN, Durations, LogNormalDurations
from foveate.model.factors import Factor
from foveate.model.features import FEATURES
from foveate.model.policies import Policy
from foveate.simulation.simulate import simulate

MODELS = [part_model(name) for name in PART_MODELS]


def parts_of(models) -> set[type]:
    return {type(part) for model in models for part in model.parts}


def every_part() -> set[type]:
    """All policies, factors, choices and distributions of durations of the package that can be made."""
    return {
        part
        for module in (policies, mechanisms, factors, directions, places, choices, durations)
        for part in vars(module).values()
        if isinstance(part, type)
        and issubclass(part, (Policy, Factor, Choice, Durations))
        and not part.__abstractmethods__
    }


def test_every_part_beyond_the_paper_is_in_a_small_model():
    forms = [catalogue.full(repulsion=repulsion) for repulsion in ("released", "printed", "none")]
    published = parts_of([*(named_model(name) for name in PUBLISHED), *forms])
    beyond = every_part() - published
    assert len(beyond) >= 16
    assert beyond <= parts_of(MODELS)


def test_every_feature_of_choices_and_durations_is_in_a_small_model():
    read = {
        kind: {it for model in MODELS for part in model.parts if isinstance(part, kind) for it in part.features}
        for kind in (SoftmaxChoice, LogNormalDurations)
    }
    assert read[SoftmaxChoice] == set(FEATURES)
    assert read[LogNormalDurations] == set(KNOWN)


def test_small_models_have_four_to_ten_numbers_and_a_title_and_commands_know_them():
    assert all(4 <= len(model.labels) <= 10 for model in MODELS)
    assert set(PART_TITLES) == set(PART_MODELS)
    assert tuple(PART_MODELS) == PARTS
    assert [model.name for model in MODELS] == list(PART_MODELS)
    assert not set(PART_MODELS) & set(catalogue.CATALOGUE)
    with pytest.raises(InputError, match="no model of parts 'momentun'; do you mean 'momentum'"):
        part_model("momentun")


@pytest.mark.parametrize("name", PART_MODELS)
def test_paths_drawn_from_the_priors_look_like_scan_paths(name):
    """Not stuck in one cell, nor without durations where there are some: the weak priors are narrow enough."""
    maps, model = smooth_maps(12, 4, jax.random.key(1)), part_model(name)
    keys = jax.random.split(jax.random.key(2), 12)
    steps = []
    for one, other in pairwise(keys):
        paths = simulate(model.draw_from_prior(one), maps, 8, other)
        steps.append(np.hypot(np.diff(paths.x_deg[:, 1:]), np.diff(paths.y_deg[:, 1:])))
        assert (paths.duration_s is not None) == (model.durations is not None)
    assert 1.0 < np.median(steps) < 15.0
    assert np.mean(np.array(steps) > 0) > 0.5


def test_the_recovery_experiment_knows_them():
    for name in PART_MODELS:
        assert recovery_model(name).parameters.keys() == part_model(name).parameters.keys()


def flipped(parameter: str):
    """A simulator with the sign of one parameter wrong."""

    def wrong(model, *arguments):
        return simulate(model.with_parameters({parameter: -model.parameters[parameter]}), *arguments)

    return wrong


@pytest.mark.parametrize(
    ("name", "parameter", "sizes"),
    [
        ("durations_ahead", "effects", {"data_sets": 12, "paths": 4, "fixations": 12}),
        pytest.param("directions", "rightward", {"data_sets": 30, "paths": 8, "fixations": 24}, marks=pytest.mark.slow),
    ],
)
def test_a_wrong_sign_in_the_simulation_is_caught_with_few_data_sets(name, parameter, sizes, monkeypatch):
    """What is right fails for one key in a hundred, and did not for this one."""
    settings = {"sampler": "laplace", "cells": 12, "settings": {"draws": 100}} | sizes
    right = calibrate(part_model(name), jax.random.key(1), **settings)
    assert right.passed, right.verdict
    monkeypatch.setattr(calibration, "simulate", flipped(parameter))
    wrong = calibrate(part_model(name), jax.random.key(1), **settings)
    assert not wrong.passed
    guilty = wrong.labels[int(np.argmin(wrong.p_values))]
    assert guilty in part_model(name).labels_of[parameter] or guilty == calibration.LOG_LIKELIHOOD
