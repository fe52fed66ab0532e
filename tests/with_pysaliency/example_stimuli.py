"""What the tests with pysaliency share: the example data as it has them, stimuli of noise, made-up posteriors."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset
from foveate.inference.diagnosis import diagnose
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples
from foveate.model.model import Model

with warnings.catch_warnings():  # of what its release does with setuptools
    warnings.simplefilter("ignore")
    import pysaliency

    from foveate.pysaliency import ScanpathModel, pictures_in_order

# Cells of 64 x 64 are 6 pixels high and 10 wide: borders of pixels are borders of cells.
HEIGHT_PX, WIDTH_PX, PX_PER_DEGREE = 384, 640, (16.0, 20.0)
PIXELS_PER_CELL = HEIGHT_PX * WIDTH_PX / 64**2


@dataclass(frozen=True)
class Example:
    """foveate's data, the models that made them, and pysaliency's stimuli and fixations."""

    data: Dataset
    models: dict[str, Model]
    stimuli: Any
    fixations: Any

    @property
    def from_third(self) -> np.ndarray:
        """Which fixations foveate scores."""
        return self.fixations.lengths >= 2


def noise(count: int, height_px: int = HEIGHT_PX, width_px: int = WIDTH_PX):
    """Stimuli that no two are the same."""
    rng = np.random.default_rng(3)
    return pysaliency.Stimuli([rng.integers(0, 255, (height_px, width_px), dtype=np.uint8) for _ in range(count)])


def posterior_around(model: Model, observer: str, seed: int = 0) -> Posterior:
    """Made-up draws around a model's parameters, 2 chains of 30, wide enough that their densities differ."""
    rng = np.random.default_rng(seed)
    centre = np.asarray(model.to_real())
    samples = Samples(centre + 0.4 * rng.standard_normal((2, 30, len(centre))), "made up", {}, {}, 0)
    return Posterior(model, observer, samples, diagnose(model.labels, samples), {})


def model_of(example: Example, posterior, **options) -> ScanpathModel:
    pictures = pictures_in_order(example.stimuli, example.data.maps.pictures)
    return ScanpathModel(posterior, example.data.maps, pixels_per_degree=PX_PER_DEGREE, pictures=pictures, **options)


def on_pixels(cells: np.ndarray) -> np.ndarray:
    """Cells with row 0 at the bottom as pixels, 6 x 10 for each."""
    return np.kron(cells[::-1], np.ones((6, 10))) / PIXELS_PER_CELL
