"""The paper's equations in plain NumPy, one step after another: slow and obvious on purpose.

Written from the paper and from the notes on what its released code does; nothing here comes from the package under
test. A policy is a log-weight per cell, so that nothing underflows; a model is a probability per cell.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

# The released code repels with a quarter of epsilon, and floors the difference so that a map that is repelled
# altogether becomes s.
COVARIANCE_RATIO = 4
FLOOR = 1e-200


@dataclass(frozen=True)
class Scene:
    """A map of probabilities per cell over a rectangle of this size."""

    saliency: np.ndarray
    height_deg: float
    width_deg: float

    @property
    def cell_deg(self) -> tuple[float, float]:
        rows, columns = self.saliency.shape
        return self.height_deg / rows, self.width_deg / columns

    @property
    def log_saliency(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.saliency)

    def cell(self, y_deg: float, x_deg: float) -> tuple[int, int]:
        """The cell by floor; the far edge belongs to the last cell."""
        rows, columns = self.saliency.shape
        row, column = int(np.floor(y_deg / self.cell_deg[0])), int(np.floor(x_deg / self.cell_deg[1]))
        return min(row, rows - 1), min(column, columns - 1)

    def at(self, fixation: tuple[float, float]) -> float:
        """Saliency of the cell of a fixation (y, x)."""
        return self.saliency[self.cell(*fixation)]


def log_n(scene: Scene, mean, variances) -> np.ndarray:
    """Log n(z; mean, variances) at the centre of every cell, times the cell's area."""
    height, width = scene.cell_deg
    rows, columns = scene.saliency.shape
    y, x = (np.arange(rows) + 0.5) * height, (np.arange(columns) + 0.5) * width
    by_row = np.log(height / np.sqrt(2 * np.pi * variances[0])) - (y - mean[0]) ** 2 / (2 * variances[0])
    by_column = np.log(width / np.sqrt(2 * np.pi * variances[1])) - (x - mean[1]) ** 2 / (2 * variances[1])
    return by_row[:, None] + by_column[None, :]


# --- policies: log-weights -------------------------------------------------------------------------------------------


def static(scene: Scene, gaze) -> np.ndarray:
    """s(z)."""
    return scene.log_saliency


def local(scene: Scene, gaze, epsilon) -> np.ndarray:
    """Eq. 2: n(z; z_{t-1}, epsilon)."""
    return log_n(scene, gaze, epsilon)


def unrepelled(scene: Scene, gaze, xi) -> np.ndarray:
    """Eq. 3: s(z) n(z; z_{t-1}, xi)."""
    return scene.log_saliency + log_n(scene, gaze, xi)


def released(scene: Scene, gaze, xi, epsilon) -> np.ndarray:
    """Eq. 4 as in the released code: s max(n_xi - n_{epsilon/4}, 0)."""
    n_xi = np.exp(log_n(scene, gaze, xi))
    n_epsilon = np.exp(log_n(scene, gaze, np.asarray(epsilon) / COVARIANCE_RATIO))
    return scene.log_saliency + np.log(np.maximum(n_xi - n_epsilon, FLOOR))


def printed(scene: Scene, gaze, xi, epsilon) -> np.ndarray:
    """Eq. 4 as printed: max(s n_xi - n_epsilon, 0), with s relative to uniform (its mean is one)."""
    relative = scene.saliency * scene.saliency.size
    n_xi, n_epsilon = np.exp(log_n(scene, gaze, xi)), np.exp(log_n(scene, gaze, epsilon))
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(relative * n_xi - n_epsilon, relative * FLOOR))


def normalised(log_weight: np.ndarray) -> np.ndarray:
    """Probability per cell."""
    return np.exp(log_weight - logsumexp(log_weight))


# --- choices: probability of the local policy ------------------------------------------------------------------------


def ratio_choice(scene: Scene, fixations, b, s0) -> float:
    """Eqs. 6 and 7: sigmoid(b (s_{t-1} / s_{t-2} - s0))."""
    return expit(b * (scene.at(fixations[-1]) / scene.at(fixations[-2]) - s0))


def level_choice(scene: Scene, fixations, b, s0) -> float:
    """Eq. 9, s relative to uniform: sigmoid(b (H W s_{t-1} - s0))."""
    return expit(b * (scene.saliency.size * scene.at(fixations[-1]) - s0))


def fixed_choice_rho(scene: Scene, fixations, rho) -> float:
    """A constant."""
    return rho


# --- models: probability of every cell, given the fixations so far, (y, x), oldest first -----------------------------


def _two_policies(scene: Scene, fixations, rho, epsilon, xi, repulsion) -> np.ndarray:
    """Eq. 5."""
    gaze = fixations[-1]
    global_weight = {
        "released": lambda: released(scene, gaze, xi, epsilon),
        "printed": lambda: printed(scene, gaze, xi, epsilon),
        "none": lambda: unrepelled(scene, gaze, xi),
    }[repulsion]()
    return rho * normalised(local(scene, gaze, epsilon)) + (1 - rho) * normalised(global_weight)


def full(scene: Scene, fixations, *, epsilon, xi, b, s0, repulsion="released") -> np.ndarray:
    """The Local and Global Attention model."""
    rho = ratio_choice(scene, fixations, b, s0)
    return _two_policies(scene, fixations, rho, epsilon, xi, repulsion)


def local_choice(scene: Scene, fixations, *, epsilon, xi, b, s0, repulsion="released") -> np.ndarray:
    """The choice looks at the present fixation alone."""
    rho = level_choice(scene, fixations, b, s0)
    return _two_policies(scene, fixations, rho, epsilon, xi, repulsion)


def fixed_choice(scene: Scene, fixations, *, epsilon, xi, rho, repulsion="released") -> np.ndarray:
    """The choice looks at nothing."""
    return _two_policies(scene, fixations, rho, epsilon, xi, repulsion)


def local_saliency(scene: Scene, fixations, *, xi) -> np.ndarray:
    """Eq. 10."""
    return normalised(unrepelled(scene, fixations[-1], xi))


def saliency_baseline(scene: Scene, fixations) -> np.ndarray:
    """Every fixation drawn from s."""
    return scene.saliency


def path_log_probabilities(model, scene: Scene, y_deg, x_deg, **parameters) -> np.ndarray:
    """Log-probability of the third fixation and of every later one (Eq. 8)."""
    fixations = list(zip(y_deg, x_deg, strict=True))
    return np.array(
        [np.log(model(scene, fixations[:t], **parameters)[scene.cell(*fixations[t])]) for t in range(2, len(fixations))]
    )
