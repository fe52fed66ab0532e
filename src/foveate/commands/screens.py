"""Pixels per degree of visual angle, worked out from a screen's width and its distance."""

import math
from dataclasses import dataclass
from typing import final

DIGITS = 6  # of the number in a settings file; nobody measures a screen to more


@final
@dataclass(frozen=True)
class Screen:
    """A screen's width in pixels and in centimetres, seen from a distance.

    The screen spans 2 atan(width_cm / (2 distance_cm)), and so many pixels share it.
    """

    width_px: float
    width_cm: float
    distance_cm: float

    @property
    def px_per_degree(self) -> float:
        """Pixels per degree, on average over the screen."""
        degrees = math.degrees(2 * math.atan(self.width_cm / (2 * self.distance_cm)))
        return float(f"{self.width_px / degrees:.{DIGITS}g}")

    def __str__(self) -> str:
        """The line of a settings file, with what it was worked out from."""
        px, cm, distance = (f"{it:.{DIGITS}g}" for it in (self.width_px, self.width_cm, self.distance_cm))
        return (
            f"px_per_degree = {self.px_per_degree:.{DIGITS}g}  # {px} px on {cm} cm, seen from {distance} cm: "
            f"{px} / (2 atan({cm} / (2 x {distance})))"
        )
