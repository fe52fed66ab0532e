"""The scores by their definitions in plain NumPy, one map after another: slow and obvious on purpose."""

import numpy as np


def log_probability(density: np.ndarray, row: int, column: int) -> float:
    """Natural logarithm of the fixated cell's probability."""
    return float(np.log(density[row, column]))


def nss(density: np.ndarray, row: int, column: int) -> float:
    """The map with mean zero and (population) standard deviation one, read at the fixated cell."""
    mean = sum(density.ravel()) / density.size
    variance = sum((density.ravel() - mean) ** 2) / density.size
    return float((density[row, column] - mean) / np.sqrt(variance))


def auc(density: np.ndarray, row: int, column: int) -> float:
    """Share of all cells, itself among them, that the fixated cell exceeds; equal ones count a half."""
    fixated = density[row, column]
    wins = sum(1.0 if fixated > other else 0.5 if fixated == other else 0.0 for other in density.ravel())
    return wins / density.size


def pooled_auc(positive: np.ndarray, negative: np.ndarray) -> float:
    """Share of all pairs in which the positive is larger; equal ones count a half."""
    wins = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative]
    return sum(wins) / len(wins)


def centre_bias(fixations: list[tuple[str, int, int]], shape: tuple[int, int], cell_deg, bandwidth_deg, without: str):
    """Smoothed fixations (picture, row, column) on all pictures but one, each fixation weighing the same.

    Every picture's counts are smoothed, divided by the smoothing of ones and normalised, as the data's maps are made.
    """
    rows, columns = shape
    y, x = np.arange(rows) * cell_deg[0], np.arange(columns) * cell_deg[1]
    total = np.zeros(shape)
    for picture in {name for name, _, _ in fixations} - {without}:
        mine = [(row, column) for name, row, column in fixations if name == picture]
        smooth, ones = np.zeros(shape), np.zeros(shape)
        for row in range(rows):
            for column in range(columns):
                bump = np.exp(-((y[:, None] - y[row]) ** 2 + (x[None, :] - x[column]) ** 2) / (2 * bandwidth_deg**2))
                ones += bump
                smooth += mine.count((row, column)) * bump
        share = smooth / ones
        total += len(mine) * share / share.sum()
    return total / total.sum()
