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

from foveate.data.columns import check_names, flags, labels, numbers, plain, shown, whole_numbers
from foveate.data.grid import Extent
from foveate.errors import InputError, counted, some_of

REQUIRED = ("observer", "picture", "fixation", "x_deg", "y_deg")
OPTIONAL = ("trial", "duration_s", "forced")


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
    was recorded per fixation, `forced` among them where it is known. `duration_s` is None where durations were not
    recorded.
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
        self._check_shapes()
        self._check_positions()
        self._check_numbers()
        if self.duration_s is not None:
            bad = self.real & ~(np.isfinite(self.duration_s) & (self.duration_s >= 0))
            self._refuse(
                bad,
                self.duration_s,
                "duration = {:g} s: it must be positive, or zero where it is not known.",
            )

    def _refuse(self, bad: Bool[np.ndarray, "path fixation"], values: np.ndarray, text: str) -> None:
        if bad.any():
            path, index = np.argwhere(bad)[0]
            first = f" (the first of {bad.sum():,} such fixations)" if bad.sum() > 1 else ""
            raise InputError(f"{self.name_of(path, index)}{first}: {text.format(values[path, index])}")

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
                'rectangle, or read the table with read_table(..., outside="drop").',
            )

    def _check_numbers(self) -> None:
        step = np.ones(self.fixation.shape, dtype=np.int64)
        step[:, 1:] = np.diff(self.fixation, axis=1)
        remedy = "sort and mend the table, or give a trial column if the observer saw the picture more than once."
        self._refuse(
            self.real & (step == 0),
            self.fixation,
            f"the number {{}} stands twice in the path, but fixation numbers must grow; {remedy}",
        )
        before = np.roll(self.fixation, 1, axis=1)
        self._refuse(
            self.real & (step < 0),
            before,
            f"it comes after fixation {{}}, but fixation numbers must grow along a path; {remedy}",
        )

    def _check_shapes(self) -> None:
        shape = self.x_deg.shape
        arrays = {"y_deg": self.y_deg, "fixation": self.fixation, "duration_s": self.duration_s, **self.columns}
        for name, values in arrays.items():
            if values is not None and values.shape != shape:
                raise InputError(f"{name} has the shape {values.shape}, x_deg has {shape}; they must be the same.")
        if "forced" in self.columns and self.columns["forced"].dtype != bool:
            raise InputError(
                f"column forced holds {self.columns['forced'].dtype}, but it flags forced fixations: give True and "
                "False, or another name to a column that means something else."
            )
        for name in ("observer", "picture", "trial", "length"):
            if len(getattr(self, name)) != shape[0]:
                raise InputError(
                    f"{len(getattr(self, name))} entries of {name} for {shape[0]} paths; give one for each."
                )
        if len(self) and (self.length.min() < 1 or self.length.max() > shape[1]):
            raise InputError(f"path lengths must lie between 1 and {shape[1]} fixations, the width of the arrays.")

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
            f"ScanPaths({counted(self.fixations, 'fixation')}, {counted(len(self), 'path')}, "
            f"{counted(len(self.observers), 'observer')}, {counted(len(self.pictures), 'picture')}, "
            f"{self.extent.width_deg:.4g} x {self.extent.height_deg:.4g} deg)"
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

    @property
    def forced(self) -> Bool[np.ndarray, "path fixation"]:
        """True at a fixation that its observer did not choose to make, such as on the cross before a picture."""
        return self.columns.get("forced", np.zeros_like(self.real)) & self.real

    def scored(self, given: int) -> Bool[np.ndarray, "path fixation"]:
        """True at the fixations that a model has to predict: all but the first `given` of a path and forced ones.

        A forced fixation tells where gaze was, so that it is a part of histories; it says nothing of where gaze goes.
        """
        return self.real & ~self.forced & (np.arange(self.x_deg.shape[1]) >= given)

    def name_of(self, path: int | np.integer, index: int | np.integer | None = None) -> str:
        """A path or one of its fixations in words, as used in messages."""
        words = f"observer {plain(self.observer[path])}, picture {shown(self.picture[path].item())}"
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
        for kind, wanted, held in (
            ("observer", observers, self.observer),
            ("picture", pictures, self.picture),
        ):
            if wanted is None:
                continue
            if isinstance(wanted, str):
                raise InputError(f"{kind}s = {wanted!r}: give a list, [{wanted!r}].")
            names = list(wanted)
            known = set(held.tolist())
            unknown = [name for name in names if name not in known]
            if unknown:
                raise InputError(f"{kind} {some_of(unknown)} not in the data; there are {some_of(sorted(known), 10)}.")
            keep &= np.isin(held, np.asarray(names, dtype=held.dtype))
        return self._take(np.flatnonzero(keep))

    def split(self, pictures: Iterable) -> tuple["ScanPaths", "ScanPaths"]:
        """(paths on all other pictures, paths on these pictures): training and test data of a fold."""
        if isinstance(pictures, str):
            raise InputError(f"pictures = {pictures!r}: give a list, [{pictures!r}].")
        held_out = list(pictures)
        others = [name for name in self.pictures if name not in set(held_out)]
        return self.select(pictures=others), self.select(pictures=held_out)

    def at_least(self, fixations: int) -> "ScanPaths":
        """The paths with at least this many fixations; the others are left out."""
        return self._take(np.flatnonzero(self.length >= fixations))

    def require(self, fixations: int) -> "ScanPaths":
        """These paths, each of which has at least this many fixations: a shorter one is an error."""
        short = np.flatnonzero(self.length < fixations)
        if len(short):
            first = f" (the first of {len(short):,} such paths)" if len(short) > 1 else ""
            raise InputError(
                f"{self.name_of(short[0])}{first}: the path has {self.length[short[0]]} fixations, but {fixations} are "
                f"needed; leave short paths out with paths.at_least({fixations})."
            )
        return self

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

        `trial`, `duration_s` and `forced` (0 and 1, or false and true: fixations that nobody chose to make) are used
        where present, every other column is kept. Rows of a path must be in order.
        Tables in pixels, milliseconds or other column names: `foveate.read_table`.
        """
        check_names(list(table.columns), REQUIRED)
        if len(table) == 0:
            raise InputError("the table has no rows: there is nothing to read.")
        names = {name: labels(table, name) for name in ("observer", "picture")}
        names["trial"] = labels(table, "trial") if "trial" in table.columns else np.ones(len(table), np.int64)
        keys = pd.DataFrame(names).groupby(["observer", "picture", "trial"], sort=True).ngroup().to_numpy()
        order = np.argsort(keys, kind="stable")
        path = keys[order]
        length = np.bincount(path)
        start = np.cumsum(length) - length
        index = np.arange(len(path)) - np.repeat(start, length)
        firsts = order[start]

        def padded(column: np.ndarray) -> np.ndarray:
            kind = column.dtype.kind
            if kind not in "iubf":
                column = column.astype(object)
            fill = {"f": np.nan, "i": 0, "u": 0, "b": False}.get(kind)
            array = np.full((len(length), int(length.max())), fill, dtype=column.dtype)
            array[path, index] = column[order]
            return array

        others = [name for name in table.columns if name == "forced" or name not in (*REQUIRED, *OPTIONAL)]
        columns = {str(name): flags(table, name) if name == "forced" else table[name].to_numpy() for name in others}
        return cls(
            extent=extent,
            observer=names["observer"][firsts],
            picture=names["picture"][firsts],
            trial=names["trial"][firsts],
            length=length,
            fixation=padded(whole_numbers(table, "fixation")),
            x_deg=padded(numbers(table, "x_deg")),
            y_deg=padded(numbers(table, "y_deg")),
            duration_s=padded(numbers(table, "duration_s")) if "duration_s" in table.columns else None,
            columns={name: padded(values) for name, values in columns.items()},
        )
