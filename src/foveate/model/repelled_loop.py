"""Sums over cells of the positive part of a difference of two Gaussians, in loops that Numba compiles, for
`modulated_loop.py`: the paper's repulsion (Eq. 4 as released) under factors.

    Z = sum_z w(z) max(R(row) C(column) - ratio r(row) c(column), 0)

Nothing is cut out and no two sums are subtracted: each cell's difference is taken by itself, so that none of it is lost
where little is left. On the edge of the forbidden region the difference is zero: slopes need not know that it moves.
"""

from foveate.model.axis_loops import helper


@helper
def repelled_total(weights, g, k, of_rows, of_columns, narrow_rows, narrow_columns, ratio):
    """Z."""
    _, rows, columns = weights.shape
    zero, total = weights.dtype.type(0), 0.0
    for r in range(rows):
        wide, narrow, part = of_rows[k, r], ratio * narrow_rows[k, r], zero
        for c in range(columns):
            left = wide * of_columns[k, c] - narrow * narrow_columns[k, c]
            part += weights[g, r, c] * max(left, zero)
        total += part
    return total


@helper
def repelled_parts(
    weights, g, k, by, of_rows, of_columns, narrow_rows, narrow_columns, ratio,
    by_row, by_column, narrow_by_row, narrow_by_column, held,
):  # fmt: skip
    """`by` times how Z changes with the values of the four Gaussians, which is added up over rows and columns; and each
    cell's part of Z times `by`, added to `held`. Returns how it changes with the ratio."""
    _, rows, columns = weights.shape
    zero, of_ratio = weights.dtype.type(0), 0.0
    for c in range(columns):
        by_column[k, c] = 0
        narrow_by_column[k, c] = 0
    for r in range(rows):
        wide, narrow = of_rows[k, r], ratio * narrow_rows[k, r]
        first, second = zero, zero
        for c in range(columns):
            left = wide * of_columns[k, c] - narrow * narrow_columns[k, c]
            weight = by * weights[g, r, c] if left > zero else zero
            first += weight * of_columns[k, c]
            second += weight * narrow_columns[k, c]
            by_column[k, c] += weight * wide
            narrow_by_column[k, c] -= weight * narrow
            held[0, r, c] += weight * left
        by_row[k, r], narrow_by_row[k, r] = first, -ratio * second
        of_ratio -= second * narrow_rows[k, r]
    return of_ratio
