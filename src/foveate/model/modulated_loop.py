"""The loop over cells behind sums of modulated salient Gaussians (`modulated_sums.py`), compiled by Numba.

For each scored step, with w_g = s^alpha_g F worked out once a cell and kept in the processor's nearest cache,

    Z_k = sum_z w_g(z) R_k(row) C_k(column)

Where slopes are asked for, with a_k = dL / dZ_k: sums of w_g over one axis, weighted by the factor on the other, are
how the result changes with the Gaussians; each cell's part of the change, sum_k a_k w_g R_k C_k, is summed against
what F is made of.

Helpers take whole arrays and indices: a slice would be counted in and out, which costs more than the work on it.
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportPrivateImportUsage=false

import numpy as np
from numba import njit

from foveate.model.axis_loops import along, bell, exponential, gaussian, helper, nearest, spread
from foveate.model.direction_loop import add_directions, of_directions
from foveate.model.repelled_loop import repelled_parts, repelled_total
from foveate.model.trail_loop import add_trail, move_on, of_trail

EMPTY = -1e30  # as in `log_maps.py`: a test holds them together


@helper
def _add_one(j, on_rows, on_columns, found):
    """Adds an outer product."""
    rows, columns = found.shape
    for r in range(rows):
        by = on_rows[j, r]
        for c in range(columns):
            found[r, c] += by * on_columns[j, c]


@helper
def _add_three(j, on_rows, on_columns, found):
    """Adds three outer products: as much to read and write as for one."""
    rows, columns = found.shape
    for r in range(rows):
        first, second, third = on_rows[j, r], on_rows[j + 1, r], on_rows[j + 2, r]
        for c in range(columns):
            found[r, c] += first * on_columns[j, c] + second * on_columns[j + 1, c] + third * on_columns[j + 2, c]


@helper
def _fill_log_factor(up, right, bound, harmonics, drift, places, place_rows, place_columns, relative, picture, found):
    """The log-factor less its bound."""
    rows, columns = found.shape
    found[:] = -bound
    if len(harmonics):
        add_directions(up, right, harmonics, found)
    for j in range(0, places - 2, 3):
        _add_three(j, place_rows, place_columns, found)
    for j in range(places - places % 3, places):
        _add_one(j, place_rows, place_columns, found)
    if len(drift):
        how_much = drift[0]
        for r in range(rows):
            for c in range(columns):
                found[r, c] += how_much * relative[picture, r, c]


@helper
def _fill_weights(exponent, log_map, picture, log_factor, g, weights):
    """The power of the map times the factor; exactly nothing on cells of the map that are empty."""
    rows, columns = log_factor.shape
    empty, nothing = weights.dtype.type(EMPTY), weights.dtype.type(0)
    for r in range(rows):
        for c in range(columns):
            weight = exponential(exponent * log_map[picture, r, c] + log_factor[r, c])
            weights[g, r, c] = weight if log_map[picture, r, c] > empty else nothing


@helper
def _fill_bare_weights(log_factor, g, weights):
    """The factor alone."""
    rows, columns = log_factor.shape
    for r in range(rows):
        for c in range(columns):
            weights[g, r, c] = exponential(log_factor[r, c])


@helper
def _over_columns(weights, g, k, of_columns, by_row):
    _, rows, columns = weights.shape
    for r in range(rows):
        total = by_row.dtype.type(0)
        for c in range(columns):
            total += weights[g, r, c] * of_columns[k, c]
        by_row[k, r] = total


@helper
def _over_rows(weights, g, k, of_rows, by_column):
    _, rows, columns = weights.shape
    for c in range(columns):
        by_column[k, c] = 0
    for r in range(0, rows - 3, 4):  # four rows: as much to write as for one
        first, second, third, fourth = of_rows[k, r], of_rows[k, r + 1], of_rows[k, r + 2], of_rows[k, r + 3]
        for c in range(columns):
            by_column[k, c] += (first * weights[g, r, c] + second * weights[g, r + 1, c]
                                + third * weights[g, r + 2, c] + fourth * weights[g, r + 3, c])  # fmt: skip
    for r in range(rows - rows % 4, rows):
        by = of_rows[k, r]
        for c in range(columns):
            by_column[k, c] += by * weights[g, r, c]


@helper
def _total(k, one, other):
    total = 0.0
    for i in range(one.shape[1]):
        total += one[k, i] * np.float64(other[k, i])
    return total


@helper
def _scale(k, by, found):
    for i in range(found.shape[1]):
        found[k, i] *= by


@helper
def _add_held(g, who, count, change, of_rows, of_columns, weights, log_map, picture, held):
    """Adds each cell's part of the change, of up to four policies of a group, to `held`; its sum with the log of the
    map."""
    _, rows, columns = weights.shape
    digits = held.dtype.type
    a, b, d, e = who[0], who[min(1, count - 1)], who[min(2, count - 1)], who[min(3, count - 1)]
    by_a, by_b = digits(change[a]), digits(change[b] if count > 1 else 0.0)
    by_d, by_e = digits(change[d] if count > 2 else 0.0), digits(change[e] if count > 3 else 0.0)
    found = 0.0
    for r in range(rows):
        at_a, at_b, at_d, at_e = by_a * of_rows[a, r], by_b * of_rows[b, r], by_d * of_rows[d, r], by_e * of_rows[e, r]
        total = digits(0)
        for c in range(columns):
            mine = weights[g, r, c] * (
                at_a * of_columns[a, c] + at_b * of_columns[b, c] + at_d * of_columns[d, c] + at_e * of_columns[e, c]
            )
            held[0, r, c] += mine
            total += mine * log_map[picture, r, c]
        found += total
    return found


@helper
def _of_map(held, some, picture):
    """The sum of `held` times a map."""
    _, rows, columns = held.shape
    found = 0.0
    for r in range(rows):
        total = held.dtype.type(0)
        for c in range(columns):
            total += held[0, r, c] * some[picture, r, c]
        found += total
    return found


@helper
def _mixed(t, given, sums, change, share):
    """The share of each policy in the mixture, and how its logarithm changes with the sums."""
    largest = -np.inf
    for k in range(len(change)):
        change[k] = given[t, k] - np.log(sums[t, k])
        largest = max(largest, change[k])
    if not np.isfinite(largest):
        largest = 0.0
    total = 0.0
    for k in range(len(change)):
        change[k] = np.exp(change[k] - largest)
        total += change[k]
    for k in range(len(change)):
        share[t, k] = change[k] / total if total > 0 else 0.0
        change[k] = -share[t, k] / sums[t, k]


@njit(error_model="numpy", nogil=True)
def visit(
    groups, log_map, relative, picture, gaze, places, bound, trail_places, trail_there, scored,
    row_centres, column_centres, sides, sign, spans, given, with_mixture, with_slopes,
    variances, exponents, place_variance, narrow, trail, centres, harmonics, strength, drift, ratio,
    sums, share, to_variances, to_exponents, to_place_variance, to_narrow, to_trail, to_centres, to_harmonics,
    to_strength, to_drift, to_ratio,
):  # fmt: skip
    """Sums of all scored steps; with slopes, how a function of them changes with all that they depend on.

    `given` is how it changes with the sums, or, `with_mixture`, the logarithm of what each policy's term has beside its
    sum: the function is then the log of the mixture, and `share` of each policy in it is found too.
    """
    steps, policies = sums.shape
    rows, columns = len(row_centres), len(column_centres)
    some, several, dtype = len(place_variance), len(exponents), log_map.dtype
    digits = dtype.type
    of_rows, of_columns = np.empty((policies, rows), dtype), np.empty((policies, columns), dtype)
    by_row, by_column = np.empty((policies, rows), dtype), np.empty((policies, columns), dtype)
    bell_rows, place_rows = np.empty((some, rows), dtype), np.empty((some, rows), dtype)
    place_columns = np.empty((some, columns), dtype)
    to_rows, to_columns = np.empty((some, rows), dtype), np.empty((some, columns), dtype)
    weights = np.empty((several + 1, rows, columns), dtype)
    log_factor, held = np.empty((rows, columns), dtype), np.empty((1, rows, columns), dtype)
    parts = np.empty((1 if len(narrow) else 0, rows, columns), dtype)
    up, right = np.empty(rows, dtype), np.empty(columns, dtype)
    its_harmonics, its_drift = np.empty(harmonics.shape[1], dtype), np.empty(drift.shape[1], dtype)
    place_of, who, change = np.empty(policies, np.int64), np.empty(4, np.int64), np.empty(policies)
    near, of_narrow = np.empty((2, policies)), np.empty(2)
    repels = len(narrow) > 0  # some of the policies: those with a ratio
    narrow_rows, narrow_columns = np.empty((len(narrow), rows), dtype), np.empty((len(narrow), columns), dtype)
    narrow_by_row, narrow_by_column = np.empty_like(narrow_rows), np.empty_like(narrow_columns)
    trails, before = len(trail), -1
    fields = np.empty((trails, 3, rows, columns), dtype)
    trail_rows, wider_rows = np.empty((trails, rows), dtype), np.empty((trails, rows), dtype)
    trail_columns, wider_columns = np.empty((trails, columns), dtype), np.empty((trails, columns), dtype)
    bare = False
    for k in range(policies):
        place_of[k] = groups[k] if groups[k] >= 0 else several
        bare = bare or groups[k] < 0
    for t in range(steps):
        if not scored[t]:
            for k in range(policies):
                sums[t, k] = 1.0
            continue
        for k in range(policies):
            near[0, k] = nearest(row_centres, sides[0], centres[t, k, 0])
            near[1, k] = nearest(column_centres, sides[1], centres[t, k, 1])
            gaussian(row_centres, near[0, k], centres[t, k, 0], variances[k, 0], k, of_rows)
            gaussian(column_centres, near[1, k], centres[t, k, 1], variances[k, 1], k, of_columns)
            if repels and ratio[t, k] > 0:
                gaussian(row_centres, near[0, k], centres[t, k, 0], narrow[k, 0], k, narrow_rows)
                gaussian(column_centres, near[1, k], centres[t, k, 1], narrow[k, 1], k, narrow_columns)
        for j in range(some):
            bell(row_centres, places[t, j, 0], place_variance[j], j, bell_rows)
            bell(column_centres, places[t, j, 1], place_variance[j], j, place_columns)
            for r in range(rows):
                place_rows[j, r] = digits(strength[t, j]) * bell_rows[j, r]
        for r in range(rows):
            up[r] = sign * (row_centres[r] - gaze[t, 0])
        for c in range(columns):
            right[c] = column_centres[c] - gaze[t, 1]
        for i in range(len(its_harmonics)):
            its_harmonics[i] = harmonics[t, i]
        for i in range(len(its_drift)):
            its_drift[i] = drift[t, i]
        _fill_log_factor(up, right, digits(bound[t]), its_harmonics, its_drift, some, place_rows, place_columns,
                         relative, picture[t], log_factor)  # fmt: skip
        for i in range(trails):
            move_on(i, t, before, trail_places, trail_there, spans[i], trail, row_centres, column_centres, with_slopes,
                    trail_rows, trail_columns, wider_rows, wider_columns, fields)  # fmt: skip
            add_trail(i, trail, fields, log_factor)
        before = t
        for g in range(several):
            _fill_weights(digits(exponents[g]), log_map, picture[t], log_factor, g, weights)
        if bare:
            _fill_bare_weights(log_factor, several, weights)
        for k in range(policies):
            if repels and ratio[t, k] > 0:
                sums[t, k] = repelled_total(weights, place_of[k], k, of_rows, of_columns, narrow_rows, narrow_columns,
                                            digits(ratio[t, k]))  # fmt: skip
                continue
            _over_columns(weights, place_of[k], k, of_columns, by_row)
            sums[t, k] = _total(k, by_row, of_rows)
        if not with_slopes:
            continue

        if with_mixture:
            _mixed(t, given, sums, change, share)
        else:
            for k in range(policies):
                change[k] = given[t, k]
        held[:] = 0
        for g in range(several):
            to_exponents[t, g] = 0.0
        for k in range(policies):
            if repels and ratio[t, k] > 0:
                parts[:] = 0
                to_ratio[t, k] = repelled_parts(
                    weights, place_of[k], k, digits(change[k]), of_rows, of_columns, narrow_rows, narrow_columns,
                    digits(ratio[t, k]), by_row, by_column, narrow_by_row, narrow_by_column, parts)  # fmt: skip
                if place_of[k] < several:
                    to_exponents[t, place_of[k]] += _of_map(parts, log_map, picture[t])
                held += parts
                to_narrow[t, k, 0], of_narrow[0] = along(
                    row_centres, near[0, k], centres[t, k, 0], narrow[k, 0], k, narrow_rows, narrow_by_row
                )
                to_narrow[t, k, 1], of_narrow[1] = along(
                    column_centres, near[1, k], centres[t, k, 1], narrow[k, 1], k, narrow_columns, narrow_by_column
                )
            else:
                of_narrow[:] = 0
                _over_rows(weights, place_of[k], k, of_rows, by_column)
                _scale(k, digits(change[k]), by_row)
                _scale(k, digits(change[k]), by_column)
                if repels:
                    to_ratio[t, k], to_narrow[t, k, 0], to_narrow[t, k, 1] = 0.0, 0.0, 0.0
            to_variances[t, k, 0], to_centres[t, k, 0] = along(
                row_centres, near[0, k], centres[t, k, 0], variances[k, 0], k, of_rows, by_row)  # fmt: skip
            to_variances[t, k, 1], to_centres[t, k, 1] = along(
                column_centres, near[1, k], centres[t, k, 1], variances[k, 1], k, of_columns, by_column)  # fmt: skip
            to_centres[t, k, 0] += of_narrow[0]
            to_centres[t, k, 1] += of_narrow[1]
        for g in range(several + 1):
            count, of_exponent = 0, 0.0
            for k in range(policies):
                if place_of[k] == g and not (repels and ratio[t, k] > 0):
                    who[count] = k
                    count += 1
                if count == 4 or (k == policies - 1 and count):
                    of_exponent += _add_held(g, who, count, change, of_rows, of_columns, weights, log_map, picture[t],
                                             held)  # fmt: skip
                    count = 0
            if g < several:
                to_exponents[t, g] += of_exponent
        if len(its_harmonics):
            of_directions(up, right, held, t, to_harmonics)
        for j in range(some):
            _over_columns(held, 0, j, place_columns, to_rows)
            _over_rows(held, 0, j, place_rows, to_columns)
            to_strength[t, j], wide = spread(row_centres, places[t, j, 0], j, bell_rows, to_rows)
            wide = strength[t, j] * wide + spread(column_centres, places[t, j, 1], j, place_columns, to_columns)[1]
            to_place_variance[t, j] = 0.5 * wide / place_variance[j] / place_variance[j]
        for i in range(trails):
            of_trail(i, t, trail, fields, held, to_trail)
        if len(its_drift):
            to_drift[t, 0] = _of_map(held, relative, picture[t])
