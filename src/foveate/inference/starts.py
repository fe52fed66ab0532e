"""Dispersed starts: draws from the prior, cut to what the grid can tell apart."""

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.inference.draws import generator, prior_draws
from foveate.inference.target import Target
from foveate.model.priors import PositivePrior
from foveate.precision import double_precision


@double_precision
def dispersed_starts(target: Target, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "start number"]:
    """Vectors to start from, drawn from the prior, but every other one with its variances anywhere.

    Positive parameters are variances in deg^2. Anywhere is between the square of a cell and that of twice the picture:
    published priors lie far from what the data say, and what they deem unlikely may hold all the mass. Such starts are
    spread evenly over that range in every variance (a Latin hypercube). Beyond it the likelihood is flat; draws of
    heavy-tailed priors out there are moved to its nearest end.
    """
    draws = np.array(prior_draws(target, key, count))
    grid, rng = target.steps.grid, generator(key)
    least, most = np.square(min(grid.cell_deg)), np.square(2 * max(grid.extent.height_deg, grid.extent.width_deg))
    first = 0
    for name, value in target.model.parameters.items():
        numbers = slice(first, first := first + int(np.size(value)))
        if isinstance(target.model.priors[name], PositivePrior):
            draws[:, numbers] = np.clip(draws[:, numbers], np.log(least), np.log(most))
            anywhere = draws[1::2, numbers]
            for column in anywhere.T:
                place = (rng.permutation(len(column)) + rng.random(len(column))) / len(column)
                column[:] = np.log(least) + place * np.log(most / least)
    return draws
