"""Dispersed starts: draws from the prior, cut to what the grid can tell apart."""

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.inference.draws import generator, prior_draws
from foveate.inference.target import Target
from foveate.model.priors import PositivePrior
from foveate.precision import double_precision


@double_precision
def dispersed_starts(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "start number"]:
    """Vectors to start from, drawn from the prior, but two of three with their variances anywhere.

    Positive parameters are variances in deg^2. Published priors lie far from what the data say, and what they deem
    unlikely may hold all the mass, so such starts are spread evenly (a Latin hypercube) between the square of a cell
    and that of twice the picture; half of them up to the square of that, since a Gaussian that is narrow on one axis
    and boundless on the other draws a stripe, and the wider it is, the less it repels. Draws of heavy-tailed priors
    beyond are moved to the nearest end.
    """
    draws = np.array(prior_draws(target, key, count))
    grid, rng = target.steps.grid, generator(key)
    least = 2 * np.log(min(grid.cell_deg))
    most = 2 * np.log(2 * max(grid.extent.height_deg, grid.extent.width_deg))
    first = 0
    for name, value in target.model.parameters.items():
        numbers = slice(first, first := first + int(np.size(value)))
        if isinstance(target.model.priors[name], PositivePrior):
            draws[:, numbers] = np.clip(draws[:, numbers], least, most)
            for start, end in ((1, most), (2, 2 * most)):
                for column in draws[start::3, numbers].T:
                    place = (rng.permutation(len(column)) + rng.random(len(column))) / len(column)
                    column[:] = least + place * (end - least)
    return draws
