"""Values to start from and weakly informative priors, by parameter: what models have unless others are given.

Values are near what observers of natural scenes show, so that a climb from them is short. Priors are wide enough for
any observer and narrow enough that paths drawn from them look like saccades (amplitudes of 0.5 to 40 degrees).
"""

import numpy as np
from numpy.typing import ArrayLike

from foveate.data.grid import deg2_from_px2
from foveate.model.priors import Beta, LogNormal, Normal, Prior

# In deg^2: the variances of the paper's recovery experiment.
EPSILON = deg2_from_px2((25, 35))
XI = deg2_from_px2((230, 280))

# Local steps of about 0.5 to 4 degrees, global ones of about 2 to 20. The choice may lean either way: b is centred on
# no effect, and s0 near where the feature usually is.
WEAK: dict[str, Prior] = {
    "epsilon": LogNormal(2.0, 1.0),
    "xi": LogNormal(30.0, 1.0),
    "rho": Beta(1.0, 1.0),
}
WEAK_RATIO: dict[str, Prior] = {"b": Normal(0.0, 0.25), "s0": Normal(1.0, 16.0)}
WEAK_LEVEL: dict[str, Prior] = {"b": Normal(0.0, 0.25), "s0": Normal(3.0, 16.0)}

# Coefficients of standardised features and of directions, on the log scale: N(0, 0.5^2). A change of a log-odds, or of
# the log-weight of a direction, by more than 1 for a standard deviation of the feature is rare; an observer has some
# hundred steps, and what they do not tell is shrunk to no effect.
COEFFICIENT = Normal(0.0, 0.25)

# Beyond the paper. Spreads are a factor of e to either side of what is usual. The exponent is around 1, the map as it
# is; momentum carries gaze on by half of the last saccade, more or less, or turns it back; policies may be chosen ten
# times as often as each other; places that were visited may attract or repel by e, fading within some fixations.
BEYOND: dict[str, Prior] = {
    "zeta": LogNormal(10.0, 1.0),
    "eta": LogNormal(2.0, 1.0),
    "tau": LogNormal(30.0, 1.0),
    "nu": LogNormal(5.0, 0.75),
    "kappa": Normal(0.5, 0.25),
    "mu": Normal(0.0, 1.0),
    "omega": LogNormal(8.0, 1.0),
    "lambda_": Beta(2.0, 2.0),
    "base": Normal(0.0, 1.5**2),
    "alpha": Normal(1.0, 0.25),
    **dict.fromkeys(("rightward", "upward", "horizontal", "diagonal", "cardinal"), COEFFICIENT),
    **dict.fromkeys(("onward", "axial", "delta", "slopes"), COEFFICIENT),
    **dict.fromkeys(("sideways", "above", "ahead", "behind"), COEFFICIENT),
    "phi": Normal(0.0, 1.0),
    "psi": LogNormal(0.7, 0.5),
}

# Where the exponent is left out, but policies have one, it is held: a hundredth changes no prediction.
HELD_EXPONENT = Normal(1.0, 0.01**2)

# Near the median of some observers' highest posterior densities in the data of the paper.
STARTS: dict[str, ArrayLike] = {
    "epsilon": (4.0, 6.0),
    "xi": (40.0, 50.0),
    "zeta": (8.0, 12.0),
    "eta": (4.0, 5.0),
    "tau": (30.0, 40.0),
    "nu": 5.0,
    "kappa": 0.55,
    "mu": -1.3,
    "omega": 20.0,
    "lambda_": 0.8,
    "b": 0.3,
    "s0": 3.0,
    "rho": 0.5,
    "alpha": 1.5,
    "rightward": 0.0,
    "upward": 0.0,
    "horizontal": 0.2,
    "diagonal": 0.0,
    "cardinal": 0.2,
    "onward": 0.25,
    "axial": 0.1,
    "delta": 0.0,
    "sideways": 0.25,
    "above": 0.25,
    "ahead": 0.2,
    "behind": 0.2,
    "phi": -1.0,
    "psi": 0.7,
}

# Log-odds of each policy against the local one.
BASE_STARTS = {"global": 0.7, "momentum": 0.4, "return": -1.7, "centre": -2.0, "floor": -3.0}


def weak_prior(parameter: str) -> Prior:
    """The weakly informative prior of a parameter of composed models."""
    return (WEAK | WEAK_RATIO | BEYOND)[parameter]


def start_of(parameter: str) -> np.ndarray:
    """The value that a parameter of composed models starts from."""
    return np.asarray(STARTS[parameter], dtype=np.float64)
