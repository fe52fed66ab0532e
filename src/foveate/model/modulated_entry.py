"""The loop of `modulated_loop.py` as functions that XLA calls: arrays are found in its frame, in the order of
`modulated_blocks.py`.

What is compiled is kept on disk, this function alone, with all that it calls.
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportPrivateImportUsage=false

import hashlib
from functools import cache
from pathlib import Path

import numpy as np
from numba import carray, cfunc, njit

from foveate.model import axis_loops, direction_loop, loops, modulated_loop, repelled_loop, trail_loop
from foveate.model.loops import SIGNATURE, argument, asks_for_version, result
from foveate.model.modulated_loop import visit


@njit
def _enter(frame, log_map, relative, with_slopes):
    groups = carray(argument(frame, 0)[0], argument(frame, 0)[1][0], np.int32)
    _, size = argument(frame, 5)
    steps, places = size[0], size[1]
    policies = len(groups)
    picture = carray(argument(frame, 3)[0], steps, np.int32)
    gaze = carray(argument(frame, 4)[0], (steps, 2), np.float64)
    place = carray(argument(frame, 5)[0], (steps, places, 2), np.float64)
    bound = carray(argument(frame, 6)[0], steps, np.float64)
    trails, span = argument(frame, 7)[1][1], argument(frame, 7)[1][2]
    trail_places = carray(argument(frame, 7)[0], (steps, trails, span, 2), np.float64)
    trail_there = carray(argument(frame, 8)[0], (steps, trails, span), np.bool_)
    scored = carray(argument(frame, 9)[0], steps, np.bool_)
    rows = carray(argument(frame, 10)[0], argument(frame, 10)[1][0], np.float64)
    columns = carray(argument(frame, 11)[0], argument(frame, 11)[1][0], np.float64)
    sides = carray(argument(frame, 12)[0], 2, np.float64)
    how = carray(argument(frame, 13)[0], 2, np.int32)
    spans = carray(argument(frame, 14)[0], trails, np.int32)
    given = carray(argument(frame, 15)[0], (steps, policies), np.float64)
    variances = carray(argument(frame, 16)[0], (policies, 2), np.float64)
    several = argument(frame, 17)[1][0]
    exponents = carray(argument(frame, 17)[0], several, np.float64)
    place_variance = carray(argument(frame, 18)[0], places, np.float64)
    repelled = argument(frame, 19)[1][0]
    narrow = carray(argument(frame, 19)[0], (repelled, 2), np.float64)
    trail = carray(argument(frame, 20)[0], (trails, 3), np.float64)
    centres = carray(argument(frame, 21)[0], (steps, policies, 2), np.float64)
    harmonic = argument(frame, 22)[1][1]
    harmonics = carray(argument(frame, 22)[0], (steps, harmonic), np.float64)
    strength = carray(argument(frame, 23)[0], (steps, places), np.float64)
    drifts = argument(frame, 24)[1][1]
    drift = carray(argument(frame, 24)[0], (steps, drifts), np.float64)
    ratio = carray(argument(frame, 25)[0], (steps, repelled), np.float64)
    sums = carray(result(frame, 0)[0], (steps, policies), np.float64)
    if with_slopes:
        share = carray(result(frame, 1)[0], (steps, policies), np.float64)
        to_variances = carray(result(frame, 2)[0], (steps, policies, 2), np.float64)
        to_exponents = carray(result(frame, 3)[0], (steps, several), np.float64)
        to_place_variance = carray(result(frame, 4)[0], (steps, places), np.float64)
        to_narrow = carray(result(frame, 5)[0], (steps, repelled, 2), np.float64)
        to_trail = carray(result(frame, 6)[0], (steps, trails, 3), np.float64)
        to_centres = carray(result(frame, 7)[0], (steps, policies, 2), np.float64)
        to_harmonics = carray(result(frame, 8)[0], (steps, harmonic), np.float64)
        to_strength = carray(result(frame, 9)[0], (steps, places), np.float64)
        to_drift = carray(result(frame, 10)[0], (steps, drifts), np.float64)
        to_ratio = carray(result(frame, 11)[0], (steps, repelled), np.float64)
    else:  # not written to
        share, to_exponents, to_place_variance, to_narrow = given, given, given, centres
        to_variances, to_centres, to_harmonics, to_strength, to_drift = centres, centres, given, given, given
        to_ratio, to_trail = given, centres
    visit(
        groups, log_map, relative, picture, gaze, place, bound, trail_places, trail_there, scored, rows, columns, sides,
        np.float64(how[0]), spans, given, how[1] == 1, with_slopes,
        variances, exponents, place_variance, narrow, trail, centres, harmonics, strength, drift, ratio,
        sums, share, to_variances, to_exponents, to_place_variance, to_narrow, to_trail, to_centres, to_harmonics,
        to_strength, to_drift, to_ratio,
    )  # fmt: skip


def _entry(digits, with_slopes, sources):
    """The function for maps of these digits. Numba's key holds what it closes over: so `sources` is read in it."""

    @cfunc(SIGNATURE, cache=True)
    def entry(frame):
        if sources and not asks_for_version(frame):
            pointer, size = argument(frame, 1)
            log_map = carray(pointer, (size[0], size[1], size[2]), digits)
            pointer, size = argument(frame, 2)
            relative = carray(pointer, (size[0], size[1], size[2]), digits)
            _enter(frame, log_map, relative, with_slopes)
        return 0

    return entry


@cache
def entry(what, digits):
    """The function that XLA calls for `values` or `slopes`, with maps in these digits."""
    return _entry({"float32": np.float32, "float64": np.float64}[digits], what == "slopes", _sources())


@cache
def _sources():
    """A number that changes with any of the files that the function is compiled from.

    Numba keeps what it has compiled on disk, and of a function's file it notices changes, but not of those that it
    calls: a new version of foveate would go on with an old loop.
    """
    files = (axis_loops, direction_loop, loops, modulated_loop, repelled_loop, trail_loop)
    contents = b"".join(Path(str(it.__file__)).read_bytes() for it in files)
    return int.from_bytes(hashlib.sha256(contents).digest()[:7], "big") | 1
