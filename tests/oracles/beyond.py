"""The mechanisms beyond the paper in plain NumPy, cell by cell where that is the obvious way.

Nothing here comes from the package under test. Fixations are (y, x) in degrees, oldest first; y grows upwards.
"""

from itertools import pairwise

import numpy as np
from scipy import stats
from scipy.special import iv, softmax

from oracles.paper import Scene, log_n, normalised

NEAR_DEG = 0.25


def _power(scene: Scene, exponent) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(scene.saliency > 0, exponent * np.log(np.where(scene.saliency > 0, scene.saliency, 1)), -np.inf)


def _centres(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    rows, columns = scene.saliency.shape
    height, width = scene.cell_deg
    y, x = np.meshgrid((np.arange(rows) + 0.5) * height, (np.arange(columns) + 0.5) * width, indexing="ij")
    return y, x


# --- policies: log-weights -----------------------------------------------------------------------------------------


def salient_local(scene: Scene, fixations, epsilon, alpha) -> np.ndarray:
    return _power(scene, alpha) + log_n(scene, fixations[-1], epsilon)


def salient_global(scene: Scene, fixations, xi, alpha) -> np.ndarray:
    return _power(scene, alpha) + log_n(scene, fixations[-1], xi)


def heavy_tailed_global(scene: Scene, fixations, xi, nu, alpha) -> np.ndarray:
    y, x = _centres(scene)
    away = (y - fixations[-1][0]) ** 2 / xi[0] + (x - fixations[-1][1]) ** 2 / xi[1]
    return _power(scene, alpha) - (nu + 2) / 2 * np.log1p(away / nu)


def momentum(scene: Scene, fixations, zeta, kappa, alpha) -> np.ndarray:
    before, gaze = (np.array(it) for it in fixations[-2:])
    return _power(scene, alpha) + log_n(scene, gaze + kappa * (gaze - before), zeta)


def return_(scene: Scene, fixations, eta, alpha) -> np.ndarray:
    return _power(scene, alpha) + log_n(scene, fixations[-2], eta)


def centre_bias(scene: Scene, fixations, tau) -> np.ndarray:
    return log_n(scene, (scene.height_deg / 2, scene.width_deg / 2), tau)


def uniform(scene: Scene, fixations) -> np.ndarray:
    return np.zeros(scene.saliency.shape)


# --- factors: log-factors --------------------------------------------------------------------------------------------


def cardinal(scene: Scene, fixations, rightward, upward, horizontal, diagonal, cardinal) -> np.ndarray:
    y, x = _centres(scene)
    up, right = y - fixations[-1][0], x - fixations[-1][1]
    length = np.hypot(up, right)
    angle, short = np.arctan2(up, right), length / np.sqrt(length**2 + NEAR_DEG**2)
    ones = rightward * np.cos(angle) + upward * np.sin(angle)
    twos = horizontal * np.cos(2 * angle) + diagonal * np.sin(2 * angle)
    return short * ones + short**2 * twos + short**4 * cardinal * np.cos(4 * angle)


def turning(scene: Scene, fixations, onward, axial) -> np.ndarray:
    y, x = _centres(scene)
    (y_before, x_before), (y_now, x_now) = fixations[-2:]
    up, right = y - y_now, x - x_now
    last_up, last_right = y_now - y_before, x_now - x_before
    turn = np.arctan2(up, right) - np.arctan2(last_up, last_right)
    length, last = np.hypot(up, right), np.hypot(last_up, last_right)
    short = length / np.sqrt(length**2 + NEAR_DEG**2) * last / np.sqrt(last**2 + NEAR_DEG**2)
    return onward * short * np.cos(turn) + axial * short**2 * np.cos(2 * turn)


def _peak(turn, short) -> np.ndarray:
    """A von Mises density around zero without its mean, one at the top, of eight harmonics, each of which fades."""
    weights = np.array([iv(m, 12.0) for m in range(1, 9)])
    return sum(weight * short**m * np.cos(m * turn) for m, weight in enumerate(weights, 1)) / weights.sum()


def cardinal_peaks(scene: Scene, fixations, sideways, above) -> np.ndarray:
    y, x = _centres(scene)
    up, right = y - fixations[-1][0], x - fixations[-1][1]
    length = np.hypot(up, right)
    angle, short = np.arctan2(up, right), length / np.sqrt(length**2 + NEAR_DEG**2)
    level = _peak(angle, short) + _peak(angle - np.pi, short)
    return sideways * level + above * _peak(angle - np.pi / 2, short)


def turning_peak(scene: Scene, fixations, ahead, behind) -> np.ndarray:
    y, x = _centres(scene)
    (y_before, x_before), (y_now, x_now) = fixations[-2:]
    up, right = y - y_now, x - x_now
    last_up, last_right = y_now - y_before, x_now - x_before
    turn = np.arctan2(up, right) - np.arctan2(last_up, last_right)
    length, last = np.hypot(up, right), np.hypot(last_up, last_right)
    short = length / np.sqrt(length**2 + NEAR_DEG**2) * last / np.sqrt(last**2 + NEAR_DEG**2)
    return ahead * _peak(turn, short) + behind * _peak(turn - np.pi, short)


def here(scene: Scene, fixations, phi, psi) -> np.ndarray:
    y, x = _centres(scene)
    return phi * np.exp(-((y - fixations[-1][0]) ** 2 + (x - fixations[-1][1]) ** 2) / (2 * psi))


def visited_before(scene: Scene, fixations, mu, omega, lambda_, span=6) -> np.ndarray:
    y, x = _centres(scene)
    total = np.zeros(scene.saliency.shape)
    for back, (y_then, x_then) in enumerate(fixations[-2::-1][:span]):
        total += lambda_**back * np.exp(-((y - y_then) ** 2 + (x - x_then) ** 2) / (2 * omega))
    return mu * total


def saliency_drift(scene: Scene, fixations, delta) -> np.ndarray:
    relative = np.maximum(scene.saliency * scene.saliency.size, 1e-6)
    return delta * np.log(len(fixations) / 10) / 0.8 * np.log(relative)


# --- choices ---------------------------------------------------------------------------------------------------------


def _features(scene: Scene, fixations) -> list[float]:
    """Amplitude, saliency, ratio, number and the amplitude before the last."""
    amplitudes = [
        (np.log(np.hypot(now[0] - before[0], now[1] - before[1]) + 0.3) - 1.4) / 0.8
        for before, now in pairwise(fixations)
    ]
    relative = [max(scene.saliency.size * scene.at(it), 1e-6) for it in fixations[-2:]]
    return [
        amplitudes[-1],
        (np.log(relative[1]) - 1.2) / 1.2,
        np.log(relative[1] / relative[0]) / 1.5,
        np.log(len(fixations) / 10) / 0.8,
        amplitudes[-2] if len(amplitudes) > 1 else 0.0,
    ]


def softmax_choice(scene: Scene, fixations, base, slopes, durations) -> np.ndarray:
    """Probability of every policy, with all six features."""
    amplitude, *others = _features(scene, fixations)
    seconds = durations[len(fixations) - 1]
    duration = (np.log(np.clip(seconds, 0.05, 2.0)) + 1.4) / 0.4 if seconds > 0 else 0.0
    features = [amplitude, duration, *others]
    return softmax(np.concatenate([[0.0], np.asarray(base) + np.asarray(slopes) @ features]))


# --- durations -------------------------------------------------------------------------------------------------------


def log_normal_durations(scene: Scene, fixations, next_deg, level, effects, sigma):
    """Of the present fixation, with all six features."""
    features = [*_features(scene, fixations), (np.log(next_deg + 0.3) - 1.4) / 0.8]
    return stats.lognorm(sigma, scale=np.exp(level + np.dot(effects, features)))


# --- models ----------------------------------------------------------------------------------------------------------


def mixture(choice: np.ndarray, log_weights: list[np.ndarray], log_factor: np.ndarray) -> np.ndarray:
    """Each policy's weights times the factors, normalised, in the shares of the choice."""
    parts = [share * normalised(weight + log_factor) for share, weight in zip(choice, log_weights, strict=True)]
    return np.sum(parts, axis=0)


def wayfarer(scene: Scene, fixations, *, durations=False, **values) -> np.ndarray:
    """The recommended model without durations: four policies, seven factors, a choice by four features."""
    assert not durations
    values |= {name: (values[name], values[name]) for name in ("epsilon", "xi", "zeta", "eta")}

    def take(*names):
        return {name: values[name] for name in names}

    weights = [
        salient_local(scene, fixations, **take("epsilon", "alpha")),
        salient_global(scene, fixations, **take("xi", "alpha")),
        momentum(scene, fixations, **take("zeta", "kappa", "alpha")),
        return_(scene, fixations, **take("eta", "alpha")),
    ]
    factors = [
        cardinal(scene, fixations, **take("rightward", "upward", "horizontal", "diagonal", "cardinal")),
        turning(scene, fixations, **take("onward", "axial")),
        cardinal_peaks(scene, fixations, **take("sideways", "above")),
        turning_peak(scene, fixations, **take("ahead", "behind")),
        here(scene, fixations, **take("phi", "psi")),
        visited_before(scene, fixations, **take("mu", "omega", "lambda_"), span=24),
        saliency_drift(scene, fixations, **take("delta")),
    ]
    amplitude, saliency, _, number, earlier = _features(scene, fixations)
    odds = np.asarray(values["base"]) + np.asarray(values["slopes"]) @ [amplitude, saliency, number, earlier]
    return mixture(softmax(np.concatenate([[0.0], odds])), weights, np.sum(factors, axis=0))
