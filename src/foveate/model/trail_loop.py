"""The fading trail of earlier fixations on all cells, in loops that Numba compiles, for `modulated_loop.py`.

The field of a trail is M = sum_j decay^j g(z; z_j), j = 0 for the latest of them. When gaze moves on
all of it fades at once, so that the next step's field is one product and one new bell away: decay M + g(z; new). The
same holds for its derivatives, D in the decay and W in the variance. So a trail of any length costs what one place
does; summed place by place, 24 fixations took twice as long as all the rest.
"""
# Numba compiles these functions; what it adds to arguments Python's types do not know.
# pyright: reportCallIssue=false

import numpy as np

from foveate.model.axis_loops import bell, helper

FIELD, OF_DECAY, OF_VARIANCE = 0, 1, 2  # M, D and W in the array of fields
STRENGTH, VARIANCE, DECAY = 0, 1, 2  # in a trail's parameters, and in how a result changes with them


@helper
def _goes_on(i, now, before, place, there):
    """Whether the trail of a step is that of an earlier one, and one place more."""
    if before < 0 or not there[now, i, 0]:
        return False
    for j in range(place.shape[2] - 1):
        if there[now, i, j + 1] != there[before, i, j]:
            return False
        if there[before, i, j]:
            for axis in range(2):
                if place[now, i, j + 1, axis] != place[before, i, j, axis]:
                    return False
    return True


@helper
def _widen(cells, centre, variance, i, bells, wider):
    """How a bell grows with its variance."""
    for n in range(len(cells)):
        wider[i, n] = 0.5 * (cells[n] - centre) ** 2 / variance / variance * bells[i, n]


@helper
def _fade_and_add(i, fading, rows, columns, fields):
    """Next field, whose derivatives nobody asks for."""
    for r in range(rows.shape[1]):
        by = rows[i, r]
        for c in range(columns.shape[1]):
            fields[i, 0, r, c] = fading * fields[i, 0, r, c] + by * columns[i, c]


@helper
def _fade_and_add_all(i, fading, rows, columns, wider_rows, wider_columns, fields):
    """Next field and derivatives: D grows by the field that fades."""
    for r in range(rows.shape[1]):
        by, wider = rows[i, r], wider_rows[i, r]
        for c in range(columns.shape[1]):
            was = fields[i, 0, r, c]
            fields[i, 0, r, c] = fading * was + by * columns[i, c]
            fields[i, 1, r, c] = fading * fields[i, 1, r, c] + was
            fields[i, 2, r, c] = fading * fields[i, 2, r, c] + wider * columns[i, c] + by * wider_columns[i, c]


@helper
def _forget(i, left, slope, rows, columns, wider_rows, wider_columns, with_slopes, fields):
    """Takes away what is left of the fixation that the trail does not reach any more."""
    for r in range(rows.shape[1]):
        by, steeper, wider = left * rows[i, r], slope * rows[i, r], left * wider_rows[i, r]
        for c in range(columns.shape[1]):
            fields[i, 0, r, c] -= by * columns[i, c]
            if with_slopes:
                fields[i, 1, r, c] -= steeper * columns[i, c]
                fields[i, 2, r, c] -= wider * columns[i, c] + by * wider_columns[i, c]


@helper
def _at(i, t, j, place, trail, row_centres, column_centres, rows, columns, wider_rows, wider_columns):
    """Bells of one place on rows and columns."""
    y, x, variance = place[t, i, j, 0], place[t, i, j, 1], trail[i, VARIANCE]
    bell(row_centres, y, variance, i, rows)
    bell(column_centres, x, variance, i, columns)
    _widen(row_centres, y, variance, i, rows, wider_rows)
    _widen(column_centres, x, variance, i, columns, wider_columns)


@helper
def move_on(
    i, now, before, place, there, span, trail, row_centres, column_centres, with_slopes,
    rows, columns, wider_rows, wider_columns, fields,
):  # fmt: skip
    """The field of trail `i` at a step: from that at the step `before` where it goes on from there, else anew."""
    digits = fields.dtype.type
    fading = digits(trail[i, DECAY])
    goes_on = _goes_on(i, now, before, place, there)
    first = 0 if goes_on else span - 1
    if not goes_on:
        fields[i] = 0
    for j in range(first, -1, -1):
        if there[now, i, j]:
            _at(i, now, j, place, trail, row_centres, column_centres, rows, columns, wider_rows, wider_columns)
            if with_slopes:
                _fade_and_add_all(i, fading, rows, columns, wider_rows, wider_columns, fields)
            else:
                _fade_and_add(i, fading, rows, columns, fields)
    if goes_on and there[before, i, span - 1]:
        _at(i, before, span - 1, place, trail, row_centres, column_centres, rows, columns, wider_rows, wider_columns)
        slope = span * np.exp((span - 1) * np.log(trail[i, DECAY]))  # a power, which is not to be a C function's
        left = slope * trail[i, DECAY] / span
        _forget(i, digits(left), digits(slope), rows, columns, wider_rows, wider_columns, with_slopes, fields)


@helper
def add_trail(i, trail, fields, found):
    """Adds strength times field."""
    rows, columns = found.shape
    strength = found.dtype.type(trail[i, STRENGTH])
    for r in range(rows):
        for c in range(columns):
            found[r, c] += strength * fields[i, FIELD, r, c]


@helper
def of_trail(i, t, trail, fields, held, change):
    """How the result changes with strength, variance and decay, given each cell's part of the change."""
    _, rows, columns = held.shape
    whole, of_decay, of_variance = 0.0, 0.0, 0.0
    for r in range(rows):
        a, b, d = held.dtype.type(0), held.dtype.type(0), held.dtype.type(0)
        for c in range(columns):
            part = held[0, r, c]
            a += part * fields[i, 0, r, c]
            b += part * fields[i, 1, r, c]
            d += part * fields[i, 2, r, c]
        whole += np.float64(a)
        of_decay += np.float64(b)
        of_variance += np.float64(d)
    change[t, i, STRENGTH] = whole
    change[t, i, VARIANCE] = trail[i, STRENGTH] * of_variance
    change[t, i, DECAY] = trail[i, STRENGTH] * of_decay
