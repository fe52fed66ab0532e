"""Gaussians on the rows or the columns of a grid, in loops that Numba compiles, for `modulated_loop.py`.

Loops take whole arrays and a place in them: a slice would be counted in and out, which costs more than the work on it.
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportCallIssue=false

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# Reassociation is what lets sums be vectorised; infinities and numbers that are none stay what they are.
FAST = {"reassoc", "contract", "arcp", "afn", "nsz"}

TIE = 1e-12  # as in `policies.py`: a test holds the two together
LEAST_RATE = -3e38  # of exp(rate d^2), in single precision never infinite, since zero times that is no number


helper = njit(fastmath=FAST, error_model="numpy")


@intrinsic
def _power_of_two(_, whole):
    """2 to the power of a whole number of ordinary size, given as a float: its bits."""
    bits, bias, places = (32, 127, 23) if whole == types.float32 else (64, 1023, 52)

    def codegen(context, builder, signature, arguments):
        integer = ir.IntType(bits)
        shifted = builder.add(builder.fptosi(arguments[0], integer), ir.Constant(integer, bias))
        raised = builder.shl(shifted, ir.Constant(integer, places))
        return builder.bitcast(raised, context.get_value_type(signature.return_type))

    return whole(whole), codegen


def exponential(x):
    """exp(x) in operations that processors do on vectors, good to two units in the last place; what is too small is
    the smallest normal number, about."""


@overload(exponential, inline="always")
def _by_type(x):
    if x == types.float32:  # Cephes' expf

        def single(x):
            x = min(max(x, np.float32(-87.0)), np.float32(88.0))
            n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
            f = (x - n * np.float32(0.693359375)) + n * np.float32(2.12194440e-4)
            p = np.float32(1.9875691500e-4) * f + np.float32(1.3981999507e-3)
            p = p * f + np.float32(8.3334519073e-3)
            p = p * f + np.float32(4.1665795894e-2)
            p = p * f + np.float32(1.6666665459e-1)
            p = p * f + np.float32(5.0000001201e-1)
            return (p * (f * f) + f + np.float32(1.0)) * _power_of_two(n)

        return single

    def double(x):  # Taylor's series, whose next term is below 5e-18 here
        x = min(max(x, -700.0), 700.0)
        n = np.floor(x * 1.4426950408889634 + 0.5)
        f = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
        p = f * (1.0 / 6227020800.0) + 1.0 / 479001600.0
        p = p * f + 1.0 / 39916800.0
        p = p * f + 1.0 / 3628800.0
        p = p * f + 1.0 / 362880.0
        p = p * f + 1.0 / 40320.0
        p = p * f + 1.0 / 5040.0
        p = p * f + 1.0 / 720.0
        p = p * f + 1.0 / 120.0
        p = p * f + 1.0 / 24.0
        p = p * f + 1.0 / 6.0
        p = p * f + 0.5
        return (p * (f * f) + f + 1.0) * _power_of_two(n)

    return double


@njit(error_model="numpy")
def nearest(cells, side, centre):
    """The cell centre nearest to a place; between two that of the definition: division is division."""
    index = int(np.floor(centre / side + TIE))
    return cells[min(max(index, 0), len(cells) - 1)]


@helper
def gaussian(cells, near, centre, variance, k, found):
    """exp(-d^2 / 2 v), relative to its value at the cell nearest to the centre."""
    rate = max(-0.5 / variance, LEAST_RATE)
    for i in range(len(cells)):
        found[k, i] = rate * max((cells[i] - near) * (cells[i] + near - 2.0 * centre), 0.0)
    for i in range(len(cells)):
        found[k, i] = exponential(found[k, i])


@helper
def along(cells, near, centre, variance, k, gaussian, change):
    """How the result changes with the variance and the centre, given how it does with the Gaussian's values."""
    first, second = 0.0, 0.0
    for i in range(len(cells)):
        beyond = cells[i] - near
        once = change[k, i] * gaussian[k, i] * beyond
        first += once
        second += once * beyond
    return 0.5 * (second + 2.0 * (near - centre) * first) / variance / variance, first / variance


@helper
def bell(cells, centre, variance, j, found):
    """exp(-d^2 / 2 v)."""
    rate = max(-0.5 / variance, LEAST_RATE)
    for i in range(len(cells)):
        found[j, i] = rate * (cells[i] - centre) ** 2
    for i in range(len(cells)):
        found[j, i] = exponential(found[j, i])


@helper
def spread(cells, centre, j, bell, change):
    """Sums of change times bell, and of that times the squared distance."""
    total, spread = 0.0, 0.0
    for i in range(len(cells)):
        by = change[j, i] * bell[j, i]
        total += by
        spread += by * (cells[i] - centre) ** 2
    return total, spread
