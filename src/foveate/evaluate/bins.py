"""Densities of amplitudes and angles: values counted in equal bins, then smoothed."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from foveate.data.grid import Extent
from foveate.errors import InputError

AMPLITUDE_BIN_DEG = 0.25
ANGLE_BIN_DEG = 5.0


@dataclass(frozen=True, eq=False)
class Bins:
    """Equal bins on a line that begins at 0, or round the circle with one bin centred on 0."""

    centres_deg: Float[np.ndarray, " bin"]
    width_deg: float
    circular: bool

    @classmethod
    def of_amplitudes(cls, extent: Extent, width_deg: float = AMPLITUDE_BIN_DEG) -> "Bins":
        """Bins for all amplitudes that a picture has room for."""
        count = int(np.hypot(extent.height_deg, extent.width_deg) / width_deg) + 1
        return cls((np.arange(count) + 0.5) * width_deg, width_deg, False)

    @classmethod
    def of_angles(cls, width_deg: float = ANGLE_BIN_DEG) -> "Bins":
        """Bins from -180 to 180 degrees; the first one is centred on -180, which is 180."""
        count = round(360.0 / width_deg)
        if count < 1 or abs(count * width_deg - 360.0) > 1e-9:
            raise InputError(f"bins of {width_deg} deg do not fit round the circle; give a divisor of 360.")
        return cls(np.arange(count) * width_deg - 180.0, width_deg, True)

    def counts(self, values_deg: Float[np.ndarray, " value"]) -> Float[np.ndarray, " bin"]:
        """How many of the values fall into each bin."""
        first = self.centres_deg[0] - self.width_deg / 2
        index = np.floor((values_deg - first) / self.width_deg).astype(np.int64)
        if self.circular:
            index %= len(self.centres_deg)
        elif len(index) and not 0 <= index.min() <= index.max() < len(self.centres_deg):
            raise InputError(
                f"amplitudes of {values_deg.min():g} to {values_deg.max():g} deg do not fit the bins, which end at "
                f"{len(self.centres_deg) * self.width_deg:g} deg; take those of the paths' own extent."
            )
        return np.bincount(index, minlength=len(self.centres_deg)).astype(np.float64)

    def density(self, counts: Float[np.ndarray, " bin"], bandwidth_deg: float) -> Float[np.ndarray, " bin"]:
        """Density per degree at the centres, smoothed by a Gaussian (0: not at all); its sum times the width is 1.

        The Gaussian goes round the circle, or is reflected at 0, as no amplitude lies below.
        """
        total = counts.sum()
        if total == 0:
            return np.full(len(counts), np.nan)
        if not (np.isfinite(bandwidth_deg) and bandwidth_deg >= 0):
            raise InputError(f"bandwidth = {bandwidth_deg} deg: it must be zero or a positive number of degrees.")
        smooth = counts if bandwidth_deg == 0 else self._kernel(bandwidth_deg) @ counts
        return smooth / (total * self.width_deg)

    def _kernel(self, bandwidth_deg: float) -> Float[np.ndarray, "bin bin"]:
        at, source = self.centres_deg[:, None], self.centres_deg[None, :]
        images = (source - 360.0, source, source + 360.0) if self.circular else (source, -source)
        kernel = np.sum([np.exp(-0.5 * ((at - image) / bandwidth_deg) ** 2) for image in images], axis=0)
        return kernel / kernel.sum(axis=0)
