"""Scan paths: who looked at which picture, where, in what order; ragged paths held as padded arrays.

Every array over fixations has the shape (path, fixation) and is padded behind `length`: positions and durations
with NaN, numbers with 0. Positions are degrees inside the picture (see `grid.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from foveate.data.grid import Extent
from foveate.errors import InputError, some_of

REQUIRED = ("observer", "picture", "fixation", "x_deg", "y_deg")
OPTIONAL = ("trial", "duration_s")


@dataclass(frozen=True)
class ScanPath:
    """One observer's fixations on one picture, without padding."""

    observer: Any
    picture: Any
    trial: Any
    fixation: Int[np.ndarray, " fixation"]
    x_deg: Float[np.ndarray, " fixation"]
    y_deg: Float[np.ndarray, " fixation"]
    duration_s: Float[np.ndarray, " fixation"] | None
    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        """Number of fixations."""
        return len(self.x_deg)


@dataclass(frozen=True, eq=False)
class ScanPaths:
    """All scan paths of a data set. Build one with `from_table` or a reader; the parts are checked on creation.

    `fixation` holds the numbers as recorded (gaps are kept, see `after_gap`); `columns` holds anything else that
    was recorded per fixation. `duration_s` is None where durations were not recorded.
    """

    extent: Extent
    observer: np.ndarray
    picture: np.ndarray
    trial: np.ndarray
    length: Int[np.ndarray, " path"]
    fixation: Int[np.ndarray, "path fixation"]
    x_deg: Float[np.ndarray, "path fixation"]
    y_deg: Float[np.ndarray, "path fixation"]
    duration_s: Float[np.ndarray, "path fixation"] | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        """Check every number once, so that nothing behind this point has to."""
        self._check_positions()
        self._check_numbers()
        if self.duration_s is not None:
            bad = self.real & ~(np.isfinite(self.duration_s) & (self.duration_s >= 0))
            self._refuse(
                bad,
                self.duration_s,
                "duration = {:g} s: it must be zero or positive; leave it out if unknown.",
            )

    def _refuse(self, bad: Bool[np.ndarray, "path fixation"], values: np.ndarray, text: str) -> None:
        if bad.any():
            path, index = np.argwhere(bad)[0]
            more = f" ({bad.sum():,} such fixations in all)" if bad.sum() > 1 else ""
            raise InputError(f"{self.name_of(path, index)}: {text.format(values[path, index])}{more}")

    def _check_positions(self) -> None:
        for axis, values, size in (
            ("x", self.x_deg, self.extent.width_deg),
            ("y", self.y_deg, self.extent.height_deg),
        ):
            self._refuse(
                self.real & ~np.isfinite(values),
                values,
                f"{axis} is {{}}: positions must be finite numbers; remove the row or mend it.",
            )
            self._refuse(
                self.real & ((values < 0) | (values > size)),
                values,
                f"{axis} = {{:g}} deg lies outside the picture (0 to {size:g} deg); check unit, origin and "
                'rectangle, or drop such fixations with outside="drop".',
            )

    def _check_numbers(self) -> None:
        backward = np.zeros_like(self.real)
        backward[:, 1:] = self.real[:, 1:] & (np.diff(self.fixation, axis=1) <= 0)
        self._refuse(
            backward,
            self.fixation,
            "fixation numbers must grow along a path; sort the table, or give a trial column if the observer saw "
            "the picture more than once.",
        )

    def __len__(self) -> int:
        """Number of paths."""
        return len(self.length)

    def __iter__(self) -> Iterator[ScanPath]:
        """The paths one by one, without padding."""
        for path, n in enumerate(self.length):
            yield ScanPath(
                self.observer[path],
                self.picture[path],
                self.trial[path],
                self.fixation[path, :n],
                self.x_deg[path, :n],
                self.y_deg[path, :n],
                None if self.duration_s is None else self.duration_s[path, :n],
                {name: values[path, :n] for name, values in self.columns.items()},
            )

    def __repr__(self) -> str:
        """What is in here, in a line."""
        return (
            f"ScanPaths({self.fixations:,} fixations, {len(self):,} paths, {len(self.observers)} observers, "
            f"{len(self.pictures)} pictures, {self.extent.width_deg:.4g} x {self.extent.height_deg:.4g} deg)"
        )

    @property
    def real(self) -> Bool[np.ndarray, "path fixation"]:
        """True where there is a fixation, False in the padding."""
        return np.arange(self.x_deg.shape[1]) < self.length[:, None]

    @property
    def fixations(self) -> int:
        """Number of fixations in all."""
        return int(self.length.sum())

    @property
    def observers(self) -> list:
        """The observers, sorted."""
        return sorted(set(self.observer.tolist()))

    @property
    def pictures(self) -> list:
        """The pictures that somebody looked at, sorted."""
        return sorted(set(self.picture.tolist()))

    @property
    def after_gap(self) -> Bool[np.ndarray, "path fixation"]:
        """True at a fixation whose number does not follow the one before: something was not recorded between."""
        jump = np.zeros_like(self.real)
        jump[:, 1:] = self.real[:, 1:] & (np.diff(self.fixation, axis=1) > 1)
        return jump

    def name_of(self, path: int, index: int | None = None) -> str:
        """A path or one of its fixations in words, as used in messages."""
        words = f"observer {self.observer[path]}, picture {self.picture[path].item()!r}"
        return words if index is None else f"{words}, fixation {self.fixation[path, index]}"

    def _take(self, paths: np.ndarray) -> "ScanPaths":
        longest = int(self.length[paths].max(initial=1))

        def cut(values: np.ndarray) -> np.ndarray:
            return values[paths, :longest]

        return replace(
            self,
            observer=self.observer[paths],
            picture=self.picture[paths],
            trial=self.trial[paths],
            length=self.length[paths],
            fixation=cut(self.fixation),
            x_deg=cut(self.x_deg),
            y_deg=cut(self.y_deg),
            duration_s=None if self.duration_s is None else cut(self.duration_s),
            columns={name: cut(values) for name, values in self.columns.items()},
        )

    def select(self, observers: Iterable | None = None, pictures: Iterable | None = None) -> "ScanPaths":
        """The paths of these observers on these pictures (None: all); an unknown name is an error."""
        keep = np.ones(len(self), dtype=bool)
        for kind, wanted, labels in (
            ("observer", observers, self.observer),
            ("picture", pictures, self.picture),
        ):
            if wanted is None:
                continue
            names = list(wanted)
            known = set(labels.tolist())
            unknown = [name for name in names if name not in known]
            if unknown:
                raise InputError(f"{kind} {some_of(unknown)} not in the data; there are {some_of(sorted(known), 10)}.")
            keep &= np.isin(labels, np.asarray(names, dtype=labels.dtype))
        return self._take(np.flatnonzero(keep))

    def split(self, pictures: Iterable) -> tuple["ScanPaths", "ScanPaths"]:
        """(paths on all other pictures, paths on these pictures): training and test data of a fold."""
        held_out = list(pictures)
        others = [name for name in self.pictures if name not in set(held_out)]
        return self.select(pictures=others), self.select(pictures=held_out)

    def at_least(self, fixations: int) -> "ScanPaths":
        """The paths with at least this many fixations."""
        return self._take(np.flatnonzero(self.length >= fixations))

    def to_table(self) -> pd.DataFrame:
        """One row per fixation, in the column names that `from_table` reads."""
        real = self.real
        table = {name: np.repeat(getattr(self, name), self.length) for name in ("observer", "picture", "trial")}
        for name in ("fixation", "x_deg", "y_deg"):
            table[name] = getattr(self, name)[real]
        if self.duration_s is not None:
            table["duration_s"] = self.duration_s[real]
        return pd.DataFrame(table | {name: values[real] for name, values in self.columns.items()})

    @classmethod
    def from_table(cls, table: pd.DataFrame, extent: Extent) -> "ScanPaths":
        """Scan paths from a table with the columns observer, picture, fixation, x_deg and y_deg.

        `trial` and `duration_s` are used where present, every other column is kept. Rows of a path must be in order.
        Tables in pixels, milliseconds or other column names: `foveate.read_table`.
        """
        missing = [name for name in REQUIRED if name not in table.columns]
        if missing:
            raise InputError(f"column {some_of(missing)} missing; the table has {some_of(list(table.columns), 12)}.")
        if len(table) == 0:
            raise InputError("the table has no rows: there is nothing to read.")
        for name in ("observer", "picture", "fixation"):
            if table[name].isna().any():
                row = int(np.flatnonzero(table[name].isna())[0])
                raise InputError(f"row {row + 1}: {name} is empty; every fixation needs one.")
        table = table.reset_index(drop=True)
        if "trial" not in table.columns:
            table = table.assign(trial=1)
        keys = table.groupby(["observer", "picture", "trial"], sort=True, dropna=False).ngroup().to_numpy()
        order = np.argsort(keys, kind="stable")
        path = keys[order]
        length = np.bincount(path)
        index = np.arange(len(path)) - np.repeat(np.cumsum(length) - length, length)
        firsts = order[np.cumsum(length) - length]

        def padded(name: str, dtype: Any = None, fill: Any = np.nan) -> np.ndarray:
            column = table[name].to_numpy(dtype=dtype)
            if dtype is None and column.dtype.kind in "iub":
                fill = 0
            elif dtype is None and column.dtype.kind not in "f":
                column, fill = column.astype(object), None
            array = np.full((len(length), int(length.max())), fill, dtype=column.dtype)
            array[path, index] = column[order]
            return array

        return cls(
            extent=extent,
            observer=_labels(table["observer"], firsts),
            picture=_labels(table["picture"], firsts),
            trial=_labels(table["trial"], firsts),
            length=length,
            fixation=padded("fixation", np.int64, 0),
            x_deg=padded("x_deg", np.float64),
            y_deg=padded("y_deg", np.float64),
            duration_s=padded("duration_s", np.float64) if "duration_s" in table.columns else None,
            columns={str(name): padded(name) for name in table.columns if name not in (*REQUIRED, *OPTIONAL)},
        )


def _labels(column: pd.Series, firsts: np.ndarray) -> np.ndarray:
    values = column.to_numpy()[firsts]
    return values.astype(np.int64) if values.dtype.kind in "iu" else values.astype(str)
