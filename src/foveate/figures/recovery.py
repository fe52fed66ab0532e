"""Recovery of known parameters, as in the paper's Figure 4: do chains that start far apart find the truth?"""

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from foveate.figures.panels import finish, panels_for, row_word, shades
from foveate.figures.posterior import density_of, legend_above
from foveate.inference.posterior import Posterior


def recovery(posterior: Posterior, truths: Float[np.ndarray, " number"]) -> Figure:
    """For every number the posterior density of each chain, the prior dashed and the truth as a vertical line."""
    figure, axes = panels_for(len(posterior.labels))
    each = row_word(posterior)
    colours = shades(posterior.model.name, len(posterior.numbers))
    for index, (label, ax) in enumerate(zip(posterior.labels, axes, strict=True)):
        draws = posterior.numbers[:, :, index]
        density_of(posterior.model, draws, label, colours, ax, truth=float(truths[index]), each=each)
    legend_above(figure, axes[0])
    return finish(figure, axes, posterior)
