"""Numbers that no eye makes: what a wrong unit, a wrong geometry or maps of other pictures look like, in sentences."""

from typing import Any

USUAL_AMPLITUDE_DEG = (3.0, 6.0)  # medians where people view pictures
POSSIBLE_AMPLITUDE_DEG = (0.3, 30.0)  # medians beyond these are units, not eyes
POSSIBLE_DURATION_S = (0.02, 5.0)  # likewise
WIDEST_DEG = 180.0  # nobody sees more at once


def usual_or_not(median_amplitude_deg: float) -> str:
    """Whether saccades are as long as usual, in words that end a sentence."""
    low, high = USUAL_AMPLITUDE_DEG
    usual = f"({low:g} to {high:g} deg where people view pictures)"
    if low <= median_amplitude_deg <= high:
        return f"which is usual {usual}."
    amount = "less" if median_amplitude_deg < low else "more"
    return f"which is {amount} than usual {usual}: see that the units are right."


def warnings(found: dict[str, Any], position_unit: str, duration_unit: str | None) -> list[str]:
    """A sentence for everything in the numbers of `foveate check` that can hardly be meant."""
    said = []
    amplitude, duration = found["median_amplitude_deg"], found["median_duration_s"]
    unit = "is px_per_degree in [picture] right" if position_unit == "px" else "are positions really in deg"
    if max(found["width_deg"], found["height_deg"]) > WIDEST_DEG:
        said.append(
            f"the picture is {found['width_deg']:.4g} x {found['height_deg']:.4g} deg, but nobody sees more than "
            f"{WIDEST_DEG:g} deg at once: {unit}?"
        )
    low, high = POSSIBLE_AMPLITUDE_DEG
    if amplitude is not None and (amplitude < low or amplitude > high):
        far = "below" if amplitude < low else "above"
        said.append(
            f"half of all saccades are shorter than {amplitude:.3g} deg, far {far} the few degrees that eyes move in "
            f"pictures: {unit}?"
        )
    low, high = POSSIBLE_DURATION_S
    if duration is not None and (duration < low or duration > high):
        really = "are their units right" if duration_unit is None else f"are durations really in {duration_unit}"
        said.append(
            f"half of all fixations last less than {duration:.3g} s, but they usually last about 0.25 s: {really}?"
        )
    if found["steps"] == 0:
        said.append(
            "no fixation can be predicted: models need paths of three fixations or more, not all of them forced."
        )
    if found["gain_bits"] is not None and found["gain_bits"] < 0:
        said.append(
            f"the maps predict fixations worse than none at all ({found['gain_bits']:.2f} bits per fixation over "
            "uniform): are they maps of these pictures, is origin in [picture] right, and are there observers enough "
            "to make maps of?"
        )
    return said
