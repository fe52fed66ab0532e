"""Mirror images of a logistic choice: where they are, and that exploring keeps both sides."""

import jax
import numpy as np
import pytest
from small_problems import one_mode, six_numbers, two_modes

from foveate.inference.conditionals import features
from foveate.inference.mirror import SHARE, mirror_of
from foveate.inference.mixture import Mixture
from foveate.inference.proposal import learn_proposal
from foveate.inference.samples import silent
from foveate.inference.target import Target
from foveate.model.priors import Beta


def test_a_vector_and_its_image_choose_alike_at_the_usual_value():
    target = six_numbers()
    mirror = mirror_of(target)
    assert mirror is not None
    vector = np.array([[0.1, 0.2, 3.0, 3.1, 0.7, -4.0]])
    image = mirror.image(vector)
    np.testing.assert_array_equal(image[:, :4], vector[:, :4])
    assert image[0, 4] == -0.7
    with jax.enable_x64(True):
        usual = np.median(np.asarray(features(target.model.choice, target.steps))[np.asarray(target.steps.real)])
    assert 0.7 * (usual + 4.0) == pytest.approx(image[0, 4] * (usual - image[0, 5]))
    np.testing.assert_allclose(mirror.image(image), vector)


def test_the_image_of_a_mixture_has_the_images_of_its_draws():
    mirror = mirror_of(six_numbers())
    assert mirror is not None
    rng = np.random.default_rng(3)
    half = rng.standard_normal((2, 6, 6))
    mixture = Mixture.of(np.array([1.0, 2.0]), rng.standard_normal((2, 6)), half @ half.swapaxes(1, 2), 5.0)
    both = mirror.both_sides(mixture)
    vectors = rng.standard_normal((30, 6))
    expected = np.logaddexp(
        np.log(1 - SHARE) + mixture.log_density(vectors), np.log(SHARE) + mixture.log_density(mirror.image(vectors))
    )
    np.testing.assert_allclose(both.log_density(vectors), expected)
    assert float(np.sum(both.share)) == pytest.approx(1)


def test_only_a_logistic_choice_with_gaussian_priors_has_a_mirror():
    assert mirror_of(one_mode()) is None
    two = two_modes()
    assert mirror_of(two) is not None
    assert mirror_of(Target(two.model.with_priors({"b": Beta(1.0, 1.0)}), two.steps)) is None


def test_what_is_learnt_has_both_signs():
    found = learn_proposal(two_modes(), jax.random.key(8), silent)
    weights, _ = found.record.tempered(400.0)
    assert 0.02 < weights[found.record.vectors[:, 0] > 0].sum() < 0.98
