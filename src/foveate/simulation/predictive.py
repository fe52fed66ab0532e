"""Prior-predictive check: do scan paths drawn from a model's priors look like scan paths?"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.precision import check_key, double_precision
from foveate.simulation.plans import Plan
from foveate.simulation.simulate import Stacked, simulate_plan

# Amplitudes of saccades on a display: fixational eye movements are smaller, and no picture is wider.
SACCADE_DEG = (0.5, 40.0)


@dataclass(frozen=True, eq=False)
class PriorPredictive:
    """Scan paths simulated with parameters drawn from the priors; draw k is observer k of `paths`, from 1 on.

    `amplitude_deg` holds the lengths of all saccades that a policy made: those before it come from the map alone and
    say nothing about the priors.
    """

    paths: ScanPaths
    parameters: dict[str, np.ndarray]
    amplitude_deg: Float[np.ndarray, " saccade"]

    def amplitude_quantiles_deg(
        self, probabilities: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)
    ) -> dict[float, float]:
        """The amplitude below which each of these shares of the saccades lies."""
        values = np.quantile(self.amplitude_deg, probabilities)
        return dict(zip(probabilities, values.tolist(), strict=True))

    def share_between(self, low_deg: float = SACCADE_DEG[0], high_deg: float = SACCADE_DEG[1]) -> float:
        """Share of the saccades whose amplitude lies between these; by default, that of a real saccade."""
        return float(np.mean((self.amplitude_deg >= low_deg) & (self.amplitude_deg <= high_deg)))


@double_precision
def prior_predictive(model: Model, maps: SaliencyMaps, lengths: int, draws: int, key: PRNGKeyArray) -> PriorPredictive:
    """Scan paths of `lengths` fixations on every picture for `draws` sets of parameters from the model's priors."""
    check_key(key)
    if isinstance(draws, bool) or not isinstance(draws, int | np.integer) or draws < 1:
        raise InputError(f"draws = {draws!r}: give a number of parameter sets, 1 or more.")
    plan = Plan.everyone(list(range(1, draws + 1)), list(maps.pictures), lengths)
    if lengths <= DRAWN_FROM_MAP:
        raise InputError(
            f"lengths = {lengths}: the first {DRAWN_FROM_MAP} fixations are drawn from the map whatever the priors "
            f"are; give {DRAWN_FROM_MAP + 1} or more."
        )
    for_parameters, for_paths = jax.random.split(key)
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(for_parameters, jnp.arange(draws))
    drawn = jax.vmap(model.draw_from_prior)(keys)
    paths = simulate_plan(Stacked(drawn.policies, drawn.choice, model.memory, drawn.durations), maps, plan, for_paths)
    parameters = {name: np.asarray(value) for name, value in drawn.parameters.items()}
    return PriorPredictive(paths, parameters, _policy_amplitudes_deg(paths))


def _policy_amplitudes_deg(paths: ScanPaths) -> Float[np.ndarray, " saccade"]:
    """Length of every saccade that a policy made, in degrees."""
    made = paths.real[:, DRAWN_FROM_MAP:]
    y, x = (np.diff(values, axis=1)[:, DRAWN_FROM_MAP - 1 :][made] for values in (paths.y_deg, paths.x_deg))
    return np.hypot(y, x)
