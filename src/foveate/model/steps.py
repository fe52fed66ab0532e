"""Steps: the scored transitions of a data set, each a history and the cell that was fixated next.

Padded to (path, step), so that all steps of a path share its picture: sums over the cells then become matrix
products.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.errors import InputError
from foveate.model import tables
from foveate.model.history import Array, History, Picture
from foveate.model.log_maps import LogMaps
from foveate.model.model import DRAWN_FROM_MAP
from foveate.model.scene import Scene
from foveate.model.surroundings import kept_blocks
from foveate.model.tables import Table
from foveate.precision import double_precision

# Rows and columns of the cells that a larger one is made of; the largest ones, which are the cheapest, first.
BLOCKS = (4, 4), (4, 2), (2, 4), (2, 2), (4, 1), (1, 4), (2, 1), (1, 2)
MOST_LARGER_CELLS = 10_000_000  # that are kept, times steps; on 64 x 64 cells all of them are, for 1,000 steps


class Steps(eqx.Module):
    """Histories and targets of all scored steps; in the padding (`real` False) a real step is repeated.

    Repeated, since sums over cells take their slow road for all steps if a single one needs it: the padding never does
    where the data do not.
    """

    saliency: Float[Array, "picture row column"]
    picture: Int[Array, " path"]  # index of each path's map
    history: History  # (path, step)
    target: Picture  # the cell fixated next: (path, step) single cells
    row: Int[Array, "path step"]  # and its place on the grid
    column: Int[Array, "path step"]
    real: Bool[Array, "path step"]
    table: Table | None
    grid: Grid = eqx.field(static=True)
    coarser: Sequence[Float[Array, "_ _ path step"]] | None = None  # maps with larger cells: see `coarsened`
    log_maps: LogMaps | None = None  # in single precision, for sums of modulated policies
    batched: bool = eqx.field(static=True, default=False)  # many parameter sets side by side: see `in_batches`
    single: bool = eqx.field(static=True, default=False)  # fewer digits in some sums: see `in_single_precision`
    larger: bool = eqx.field(static=True, default=False)  # larger cells in some sums: see `coarsened`

    @classmethod
    def of(
        cls,
        data: Dataset,
        *,
        memory: int = DRAWN_FROM_MAP,
        paths: int | None = None,
        steps: int | None = None,
        short: Literal["error", "skip"] = "error",
    ) -> "Steps":
        """All steps from the third fixation on; `paths` and `steps` set the padded size (None: just enough).

        A path without a third fixation has nothing to score: an error, unless `short` is "skip". A step after a gap in
        the fixation numbers counts like any other. A forced fixation is in the histories of later ones, but no step.
        """
        if not isinstance(data, Dataset):
            raise InputError(f"data is a {type(data).__name__}: give a Dataset, Dataset(paths, maps).")
        scan, maps = data.paths, data.maps
        if short == "error":
            scan.require(DRAWN_FROM_MAP + 1)
        scored = scan.scored(DRAWN_FROM_MAP)
        counts = scored.sum(axis=1)
        longest = int(counts.max(initial=0))
        if longest < 1:
            raise InputError(
                f"no scan path has {DRAWN_FROM_MAP + 1} fixations: the first {DRAWN_FROM_MAP} of each path are given, "
                "so there is nothing to predict."
                if (scan.length <= DRAWN_FROM_MAP).all()
                else f"all fixations from number {DRAWN_FROM_MAP + 1} of their path on are forced: there is nothing to "
                "predict."
            )
        size = (paths or len(scan), steps or longest)
        if size[0] < len(scan) or size[1] < longest:
            raise InputError(f"{len(scan)} paths of up to {longest} steps do not fit into {size[0]} x {size[1]}.")
        real = np.zeros(size, dtype=bool)
        real[: len(scan)] = np.arange(size[1]) < counts[:, None]
        path, target = np.nonzero(scored)
        # The last step at or before each place of a path; a path without any step repeats the first step of all.
        last = np.cumsum(real, axis=1) - 1
        place = np.where(last < 0, 0, last + (np.cumsum(real.sum(axis=1)) - real.sum(axis=1))[:, None])
        picture = maps.index_of(scan.picture.tolist())[path[place[:, 0]]]

        recent = np.maximum(target[:, None] - 1 - np.arange(memory), 0)
        position = np.stack([scan.y_deg[path[:, None], recent], scan.x_deg[path[:, None], recent]], axis=-1)
        row, column = maps.grid.cell_of(scan.y_deg[path, target], scan.x_deg[path, target])
        y_deg, x_deg = maps.grid.centre_of(row, column)
        saliency = maps.at(scan)
        # Unknown durations and those of the padding count as zero, which says nothing.
        lasted = np.zeros(scan.x_deg.shape) if scan.duration_s is None else np.nan_to_num(scan.duration_s)
        return cls(
            saliency=maps.values,
            picture=picture,
            history=History(
                position[place],
                saliency[path[:, None], recent][place],
                target[place],
                lasted[path[:, None], recent][place],
            ),
            target=Picture(saliency[path, target][place], y_deg[place], x_deg[place], maps.grid),
            row=row[place],
            column=column[place],
            real=real,
            table=None,
            grid=maps.grid,
        )

    @property
    def memory(self) -> int:
        """How many past fixations each step's history holds."""
        return self.history.saliency.shape[-1]

    @property
    def count(self) -> int:
        """How many steps are scored."""
        return int(np.sum(self.real))

    def picture_of(self, index: Int[Array, ""]) -> Picture:
        """The whole picture with this index among the maps."""
        return Picture.whole(self.grid, jnp.asarray(self.saliency)[index])

    @double_precision
    def paths(self, some: slice) -> "Steps":
        """The steps of some of the paths."""
        table = None if self.table is None else self.table.paths(some)
        return Steps(
            saliency=self.saliency,
            picture=self.picture[some],
            history=jax.tree.map(lambda leaf: leaf[some], self.history),
            target=jax.tree.map(lambda leaf: leaf[some], self.target),
            row=self.row[some],
            column=self.column[some],
            real=self.real[some],
            table=table,
            grid=self.grid,
            coarser=None if self.coarser is None else [it[:, :, some] for it in self.coarser],
            log_maps=self.log_maps,
            batched=self.batched,
            single=self.single,
            larger=self.larger,
        )

    def scene(self) -> Scene:
        """The part that the sums over cells read."""
        gaze = jnp.asarray(self.history.position_deg)[:, :, 0, :]
        return Scene(
            jnp.asarray(self.saliency),
            jnp.asarray(self.picture),
            gaze,
            self.table,
            self.grid,
            self.coarser,
            self.batched,
            self.single,
        )

    def tabulated(self) -> "Steps":
        """The same steps with a table of the sums over cells: worth its second where many evaluations are to come.

        For the steps of one observer, say; a table holds about 80 kB a step.
        """
        saliency = np.asarray(self.saliency)[np.asarray(self.picture)]
        table = tables.build(self.grid, saliency, np.asarray(self.history.position_deg)[:, :, 0])
        with jax.enable_x64(True):  # as JAX's arrays, so that no call has to copy them
            table = jax.tree.map(jnp.asarray, table)
        return replace(self, table=table)

    def in_batches(self) -> "Steps":
        """The same steps for a machine that works on thousands of numbers at once, such as a GPU: sums visit every
        cell, for many parameter sets side by side, instead of looking for the shortest way for each set.

        Steps with maps that have empty cells stay as they are: their sums may need the slow road.
        """
        empty = not np.all(np.asarray(self.saliency) > 0)
        return self if empty else replace(self, table=None, coarser=None, batched=True, larger=False)

    @double_precision
    def in_single_precision(self) -> "Steps":
        """The same steps with sums of modulated policies (`modulated_sums.py`), and values of repelled ones over the
        whole grid (`repulsion.py`), in single precision: up to twice as fast, and good to about 1e-6 for each step,
        1e-4 nats for an observer. All that is scored stays in double precision."""
        return replace(self, single=True, log_maps=LogMaps.of(self.saliency, self.grid, self.grid, "float32"))

    @double_precision
    def coarsened(self) -> "Steps":
        """The same steps for sums that need not be exact: over larger cells where the Gaussians are wide enough, and
        with a table in single precision. Sums of modulated policies (`modulated_sums.py`) go over cells of 2 x 2.

        Two to four times as fast. On potsdam35 (64 x 64 cells) the log-likelihood of an observer is off by up to two
        nats, and by some tenths within a mode: good enough to find out where a posterior lies. Sums of modulated
        policies are off by some nats wherever the parameters are, and by one or two more from place to place.
        """
        if self.coarser is not None or self.larger:
            return self
        grid, steps = self.grid, self.real.shape[1]
        saliency = np.asarray(self.saliency)[np.asarray(self.picture)]
        each = [(grid.cells // (rows * columns), (rows, columns)) for rows, columns in BLOCKS
                if grid.rows % rows == 0 == grid.columns % columns]  # fmt: skip
        kept = np.cumsum([cells * self.real.size for cells, _ in each]) <= MOST_LARGER_CELLS
        fitting = [block for (_, block), keep in zip(each, kept, strict=True) if keep]
        coarser = [jnp.asarray(kept_blocks(saliency, *block, steps)) for block in fitting] or None
        table = jax.tree.map(lambda it: jnp.asarray(it, jnp.float32), self.table)
        larger = larger_cells(grid)
        log_maps = LogMaps.of(self.saliency, grid, larger, "float32")
        return replace(self, coarser=coarser, table=table, log_maps=log_maps, larger=larger != grid)


def larger_cells(grid: Grid) -> Grid:
    """The grid with cells of 2 x 2, or itself where that does not fit."""
    fits = grid.rows % 2 == 0 == grid.columns % 2
    return Grid(grid.rows // 2, grid.columns // 2, grid.extent) if fits else grid
