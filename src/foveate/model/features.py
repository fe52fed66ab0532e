"""Features of the history that a choice may depend on: one number each, roughly standardised.

Centres and scales are round numbers near those of observers of natural scenes, fixed once, so that a coefficient means
the same in every data set: the change of a log-odds by a change of about one standard deviation.
"""

from collections.abc import Callable, Collection

import jax.numpy as jnp
from jaxtyping import Float

from foveate.model.history import Array, History, Picture

# Saliency relative to uniform below which a place counts as this salient, so that logarithms stay finite.
LEAST_RELATIVE_SALIENCY = 1e-6

# Added to amplitudes before the logarithm, in degrees: a step that stays in its cell has an amplitude of zero.
SMALL_AMPLITUDE_DEG = 0.3

DURATIONS_S = (0.05, 2.0)  # outside, a duration counts as the nearer of the two


def _log_saliency(history: History, picture: Picture, back: int) -> Float[Array, ""]:
    return jnp.log(jnp.maximum(picture.grid.cells * jnp.asarray(history.saliency)[back], LEAST_RELATIVE_SALIENCY))


def amplitude_feature(amplitude_deg: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Log of an amplitude, standardised."""
    return (jnp.log(amplitude_deg + SMALL_AMPLITUDE_DEG) - 1.4) / 0.8


def last_amplitude(history: History, picture: Picture) -> Float[Array, ""]:
    """Log of the last saccade's amplitude; the average, 0, where there was none yet."""
    return _amplitude(history, 1)


def earlier_amplitude(history: History, picture: Picture) -> Float[Array, ""]:
    """The same of the saccade before the last."""
    return _amplitude(history, 2)


def _amplitude(history: History, back: int) -> Float[Array, ""]:
    places = jnp.asarray(history.position_deg)
    squared = jnp.sum(jnp.square(places[back - 1] - places[back]))
    moved = squared > 0
    amplitude = jnp.where(moved, jnp.sqrt(jnp.where(moved, squared, 1.0)), 0.0)
    return jnp.where(history.count > back, amplitude_feature(amplitude), 0.0)


def last_duration(history: History, picture: Picture) -> Float[Array, ""]:
    """Log of the present fixation's duration; the average, 0, where it is not known or zero."""
    seconds = jnp.asarray(history.duration_s)[0]
    return jnp.where(seconds > 0, (jnp.log(jnp.clip(seconds, *DURATIONS_S)) + 1.4) / 0.4, 0.0)


def saliency_here(history: History, picture: Picture) -> Float[Array, ""]:
    """Log saliency at the gaze relative to uniform."""
    return (_log_saliency(history, picture, 0) - 1.2) / 1.2


def saliency_ratio(history: History, picture: Picture) -> Float[Array, ""]:
    """Log ratio of the saliency at the gaze to that of the fixation before."""
    return (_log_saliency(history, picture, 0) - _log_saliency(history, picture, 1)) / 1.5


def fixation_number(history: History, picture: Picture) -> Float[Array, ""]:
    """Log of how many fixations were made."""
    return jnp.log(jnp.maximum(history.count, 1) / 10) / 0.8


FEATURES: dict[str, Callable[[History, Picture], Float[Array, ""]]] = {
    "amplitude": last_amplitude,
    "duration": last_duration,
    "saliency": saliency_here,
    "ratio": saliency_ratio,
    "number": fixation_number,
    "earlier": earlier_amplitude,
}


def memory_of(features: Collection[str]) -> int:
    """How many fixations back features look."""
    return 3 if "earlier" in features else 2
