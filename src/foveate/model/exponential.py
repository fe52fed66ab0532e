"""exp(x) for loops that Numba compiles, in operations that processors do on whole vectors.

Numba keeps what it has compiled on disk and compiles anew when the file of the function that was asked for changes, not
when another one does that it uses: after a change here, `modulated_loop.py` must be touched.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


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
