"""Columns of a table as labels and numbers: what cannot be one is refused, with the row it stands in.

`row_name` turns the position of a row (from 0) into the words by which its user finds it, such as 'line 14'.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from foveate.errors import InputError, some_of

RowName = Callable[[int], str]

# What programs write where there is no number; '.' is what SR Research's Data Viewer puts.
EMPTY_TEXTS = frozenset({"", ".", "na", "n/a", "nan", "null", "none", "<na>"})

# Beyond this a float64 no longer holds every whole number.
LARGEST_WHOLE_NUMBER = 2**53


def row_of_table(row: int) -> str:
    """Name of a row in a table without line numbers: the first is row 1."""
    return f"row {row + 1}"


def check_names(present: Sequence[Hashable], wanted: Iterable[Hashable], table: str = "the table") -> None:
    """Refuse column names that stand twice, and a table that lacks a wanted one."""
    twice = [name for name, count in Counter(map(str, present)).items() if count > 1]
    if twice:
        raise InputError(f"{table}: column {some_of(twice)} stands more than once; rename or remove the others.")
    missing = [name for name in wanted if name not in present]
    if missing:
        raise InputError(
            f"{table}: column {some_of(missing)} missing; it has {some_of(list(present), 12)}: name the right one."
        )


def labels(table: pd.DataFrame, name: str, row_name: RowName = row_of_table) -> np.ndarray:
    """Names of observers, pictures or trials: int64 where all are whole numbers, else text; none may be empty."""
    column = _column(table, name)
    values = column.to_numpy(dtype=object)
    for row in np.flatnonzero(column.isna().to_numpy() | np.array([_is_blank(value) for value in values], dtype=bool)):
        raise InputError(f"{row_name(int(row))}: {name} is empty; every fixation needs one.")
    if all(_is_whole(value) for value in values):
        return values.astype(np.int64)
    texts = [str(value) for value in values]
    if len(set(texts)) < len(set(values)):
        kinds: dict[str, object] = {}
        same = next(t for t, v in zip(texts, values, strict=True) if kinds.setdefault(t, v) != v)
        raise InputError(f"column {name} holds {same} both as a number and as text; write all of its names in one way.")
    return np.array(texts, dtype=str)


def numbers(table: pd.DataFrame, name: str, row_name: RowName = row_of_table) -> Float[np.ndarray, " row"]:
    """The column as float64, NaN where it is empty; text that is no number is an error."""
    column = _column(table, name)
    if column.dtype.kind in "mMc":
        raise InputError(f"column {name} holds {column.dtype}, not plain numbers; convert it first.")
    if column.dtype.kind in "iufb":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    result = np.empty(len(column))
    for row, value in enumerate(column.to_numpy(dtype=object)):
        number = as_number(value)
        if number is None:
            raise InputError(
                f"{row_name(row)}: {name} is {value!r}, which is not a number; mend the row or name another column."
            )
        result[row] = number
    return result


def whole_numbers(table: pd.DataFrame, name: str, row_name: RowName = row_of_table) -> Int[np.ndarray, " row"]:
    """The column as int64; an empty cell or a fraction is an error."""
    values = numbers(table, name, row_name)
    for row in np.flatnonzero(np.isnan(values)):
        raise InputError(f"{row_name(int(row))}: {name} is empty; every fixation needs one.")
    for row in np.flatnonzero((values != np.round(values)) | (np.abs(values) > LARGEST_WHOLE_NUMBER)):
        raise InputError(f"{row_name(int(row))}: {name} = {values[row]:g} must be a whole number.")
    return values.astype(np.int64)


def as_number(value: Any) -> float | None:
    """`value` as a float, NaN if it stands for nothing, None if it is no number."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in EMPTY_TEXTS:
            return np.nan
        if "_" in text:  # Python reads '1_000' as a number; a table does not mean it so
            return None
    elif pd.isna(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return cast(pd.Series, table[name])


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    return isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and float(value).is_integer())
