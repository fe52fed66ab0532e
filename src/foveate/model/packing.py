"""Steps packed into rows of one width and a few sizes, so that one compilation serves many observers.

A compiled function is good for one shape of its arrays. Observers differ in how many fixations they made, so their
steps are cut into rows of a fixed width, all of one picture, and the number of rows and of maps is rounded up to one of
a few sizes. Unless a size is given, as for a population whose observers share one, it depends on the steps alone:
whoever else is fitted beside an observer, the numbers are the same to the last bit.
"""

import jax
import numpy as np
from jaxtyping import Bool, Int

from foveate.model.steps import Steps

WIDTH = 16


def size_above(count: int) -> int:
    """The smallest of 8, 12, 16, 24, 32, 48, 64, 96, ... that is not below `count`."""
    size = 8
    while size < count:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def packed_size(steps: Steps) -> tuple[int, int]:
    """How many rows and maps `packed` gives these steps."""
    rows = int(np.sum(-(-np.asarray(steps.real).sum(axis=1) // WIDTH)))
    return size_above(rows), size_above(len(steps.saliency))


def packed(steps: Steps, size: tuple[int, int] | None = None) -> Steps:
    """The same steps without their table, in rows of `WIDTH`; the padding repeats real steps, as in `Steps`.

    `size` sets the numbers of rows and maps, so that several observers' arrays have one shape (None: the next sizes).
    """
    lengths = np.asarray(steps.real).sum(axis=1)
    firsts = [(path, first) for path, length in enumerate(lengths) for first in range(0, int(length), WIDTH)]
    rows, pictures = size or packed_size(steps)
    if rows < len(firsts) or pictures < len(steps.saliency):
        raise ValueError(f"{len(firsts)} rows on {len(steps.saliency)} maps do not fit into {rows} and {pictures}")
    path, first = np.array(firsts + firsts[:1] * (rows - len(firsts))).T
    place = first[:, None] + np.arange(WIDTH)
    real = (place < lengths[path][:, None]) & (np.arange(rows) < len(firsts))[:, None]
    at = path[:, None], np.minimum(place, lengths[path][:, None] - 1)
    maps = np.asarray(steps.saliency)
    extra = maps[:1].repeat(pictures - len(maps), axis=0)
    return Steps(
        saliency=np.concatenate([maps, extra]),
        picture=np.asarray(steps.picture)[path],
        history=jax.tree.map(lambda leaf: np.asarray(leaf)[at], steps.history),
        target=jax.tree.map(lambda leaf: np.asarray(leaf)[at], steps.target),
        row=np.asarray(steps.row)[at],
        column=np.asarray(steps.column)[at],
        real=real,
        table=None,
        grid=steps.grid,
    )


def packed_with(
    steps: Steps, values: Int[np.ndarray, "step value"]
) -> tuple[Steps, Int[np.ndarray, "row place value"], list[int], Bool[np.ndarray, " slot"]]:
    """(rows, the steps' values in their places, the rows that hold a step, which places of those rows are steps)."""
    rows = packed(steps)
    real = np.asarray(rows.real)
    placed = np.zeros((*real.shape, values.shape[1]), dtype=np.int64)
    placed[real] = values
    filled = np.flatnonzero(real.any(axis=1)).tolist()
    return rows, placed, filled, real[filled].reshape(-1)
