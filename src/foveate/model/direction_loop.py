"""Directions from the gaze to all cells, in loops that Numba compiles, for `modulated_loop.py`.

A function of the direction is a sum of eight harmonics: with z = cosine + i sine, the real part of sum_m (a_m - i b_m)
z^m. Slopes are sums over cells of the real and imaginary parts of each power.
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportPrivateImportUsage=false

import numpy as np
from numba import njit

from foveate.model.axis_loops import FAST, helper

NEAR_DEG = 0.25  # as in `directions.py`: a test holds them together


@helper
def add_directions(up, right, harmonics, found):
    """Adds the harmonics of the direction: a polynomial in z^2 whose coefficients are pairs in z, a fifth fewer
    operations than powers one by one."""
    rows, columns = found.shape
    one, near = found.dtype.type(1), found.dtype.type(NEAR_DEG * NEAR_DEG)
    a1, a2, a3, a4 = harmonics[0], harmonics[1], harmonics[2], harmonics[3]
    a5, a6, a7, a8 = harmonics[4], harmonics[5], harmonics[6], harmonics[7]
    b1, b2, b3, b4 = harmonics[8], harmonics[9], harmonics[10], harmonics[11]
    b5, b6, b7, b8 = harmonics[12], harmonics[13], harmonics[14], harmonics[15]
    for r in range(rows):
        once_up, squared = up[r], up[r] * up[r] + near
        for c in range(columns):
            inverse = one / np.sqrt(right[c] * right[c] + squared)
            x, y = right[c] * inverse, once_up * inverse
            square, twice = x * x - y * y, (x + x) * y  # z^2
            p, q = a8 * x + b8 * y + a7, a8 * y - b8 * x - b7
            p, q = (p * square - q * twice + (a6 * x + b6 * y + a5), p * twice + q * square + (a6 * y - b6 * x - b5))
            p, q = (p * square - q * twice + (a4 * x + b4 * y + a3), p * twice + q * square + (a4 * y - b4 * x - b3))
            p, q = (p * square - q * twice + (a2 * x + b2 * y + a1), p * twice + q * square + (a2 * y - b2 * x - b1))
            found[r, c] += p * x - q * y


@njit(fastmath=FAST, inline="always")
def _with_powers(sums, part, x1, y1):
    """The sums with `part` times the real and imaginary parts of the first eight powers of x1 + i y1 added."""
    x2, y2 = x1 * x1 - y1 * y1, (x1 + x1) * y1
    x3, y3 = x2 * x1 - y2 * y1, x2 * y1 + y2 * x1
    x4, y4 = x2 * x2 - y2 * y2, (x2 + x2) * y2
    x5, y5 = x4 * x1 - y4 * y1, x4 * y1 + y4 * x1
    x6, y6 = x3 * x3 - y3 * y3, (x3 + x3) * y3
    x7, y7 = x4 * x3 - y4 * y3, x4 * y3 + y4 * x3
    x8, y8 = x4 * x4 - y4 * y4, (x4 + x4) * y4
    return (
        sums[0] + part * x1, sums[1] + part * x2, sums[2] + part * x3, sums[3] + part * x4,
        sums[4] + part * x5, sums[5] + part * x6, sums[6] + part * x7, sums[7] + part * x8,
        sums[8] + part * y1, sums[9] + part * y2, sums[10] + part * y3, sums[11] + part * y4,
        sums[12] + part * y5, sums[13] + part * y6, sums[14] + part * y7, sums[15] + part * y8,
    )  # fmt: skip


@helper
def of_directions(up, right, held, t, change):
    """Sums of `held` times each harmonic of the direction.

    Four rows at a time: the end of sixteen sums over vectors takes longer than a short row of them does.
    """
    _, rows, columns = held.shape
    one, none, near = held.dtype.type(1), held.dtype.type(0), held.dtype.type(NEAR_DEG * NEAR_DEG)
    nothing = (none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none)
    for m in range(16):
        change[t, m] = 0.0
    for r in range(0, rows - 3, 4):
        up_0, up_1, up_2, up_3 = up[r], up[r + 1], up[r + 2], up[r + 3]
        near_0, near_1, near_2, near_3 = (
            up_0 * up_0 + near, up_1 * up_1 + near, up_2 * up_2 + near, up_3 * up_3 + near)  # fmt: skip
        sums = nothing
        for c in range(columns):
            aside, squared = right[c], right[c] * right[c]
            inverse = one / np.sqrt(squared + near_0)
            sums = _with_powers(sums, held[0, r, c], aside * inverse, up_0 * inverse)
            inverse = one / np.sqrt(squared + near_1)
            sums = _with_powers(sums, held[0, r + 1, c], aside * inverse, up_1 * inverse)
            inverse = one / np.sqrt(squared + near_2)
            sums = _with_powers(sums, held[0, r + 2, c], aside * inverse, up_2 * inverse)
            inverse = one / np.sqrt(squared + near_3)
            sums = _with_powers(sums, held[0, r + 3, c], aside * inverse, up_3 * inverse)
        for m in range(16):
            change[t, m] += sums[m]
    for r in range(rows - rows % 4, rows):
        sums, squared_up = nothing, up[r] * up[r] + near
        for c in range(columns):
            inverse = one / np.sqrt(right[c] * right[c] + squared_up)
            sums = _with_powers(sums, held[0, r, c], right[c] * inverse, up[r] * inverse)
        for m in range(16):
            change[t, m] += sums[m]
