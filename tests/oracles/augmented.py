"""The paper's augmented posterior, with gamma and omega written out, in plain NumPy: slow and obvious on purpose.

Supplement of the paper, "Likelihood augmentation":

    p(Theta, W, Gamma | Z)  ~  prod_t  p_exploit^gamma_t  p_explore^(1 - gamma_t)
                               exp(-f_t^2 w_t / 2 + (gamma_t - 1/2) f_t)  p(w_t; 1, 0)   p(Theta)
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from oracles import paper


def polya_gamma_log_density(omega) -> np.ndarray:
    """Log p(omega; 1, 0), by the two series of Devroye's book, each where it falls fast."""
    x = 4 * np.asarray(omega, dtype=float)[..., None]
    n = np.arange(30) + 0.5
    sign = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    small = np.sum(sign * np.pi * n * (2 / (np.pi * x)) ** 1.5 * np.exp(-2 * n**2 / x), axis=-1)
    large = np.sum(sign * np.pi * n * np.exp(-(np.pi**2) * n**2 * x / 2), axis=-1)
    return np.log(4 * np.where(x[..., 0] < 0.7, small, large))


@dataclass(frozen=True)
class Problem:
    """One scan path on one picture, with the priors of b and s0: (mean, variance)."""

    scene: paper.Scene
    y_deg: np.ndarray
    x_deg: np.ndarray
    b_prior: tuple[float, float]
    s0_prior: tuple[float, float]

    @property
    def fixations(self) -> list[tuple[float, float]]:
        return list(zip(self.y_deg, self.x_deg, strict=True))

    @property
    def ratios(self) -> np.ndarray:
        """s_{t-1} / s_{t-2} for t >= 3."""
        seen = np.array([self.scene.at(fixation) for fixation in self.fixations])
        return seen[1:-1] / seen[:-2]

    def log_policies(self, epsilon, xi) -> tuple[np.ndarray, np.ndarray]:
        """Log p_exploit and log p_explore (released form) of every step."""
        local, other = [], []
        for t in range(2, len(self.fixations)):
            gaze, cell = self.fixations[t - 1], self.scene.cell(*self.fixations[t])
            local.append(np.log(paper.normalised(paper.local(self.scene, gaze, epsilon))[cell]))
            other.append(np.log(paper.normalised(paper.released(self.scene, gaze, xi, epsilon))[cell]))
        return np.array(local), np.array(other)

    def log_joint(self, gamma, omega, b, s0, log_policies) -> float:
        """Log p(Theta, W, Gamma | Z) without the priors of epsilon and xi, which `log_policies` were worked out for."""
        local, other = log_policies
        f = b * (self.ratios - s0)
        steps = gamma * local + (1 - gamma) * other - f**2 * omega / 2 + (gamma - 0.5) * f
        prior = stats.norm.logpdf(b, self.b_prior[0], np.sqrt(self.b_prior[1]))
        prior += stats.norm.logpdf(s0, self.s0_prior[0], np.sqrt(self.s0_prior[1]))
        return float(np.sum(steps + polya_gamma_log_density(omega)) + prior)
