"""Columns of a table as labels, numbers and flags: what cannot be one is refused, with the row it stands in.

`row_name` turns the position of a row (from 0) into the words by which its user finds it, such as 'line 14'.
"""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from foveate.errors import InputError, some_of

RowName = Callable[[int], str]

# What programs write where there is no number; '.' is what SR Research's Data Viewer puts.
EMPTY_TEXTS = frozenset({"", ".", "na", "n/a", "nan", "null", "none", "<na>"})

# Flags as programs write them, R among these.
FLAGS = {"0": False, "0.0": False, "false": False, "f": False, "1": True, "1.0": True, "true": True, "t": True}

# The largest number that a name can be: an int64. Larger ones are text.
LARGEST_LABEL = 2**63 - 1

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")

# Characters of a cell that a message repeats.
LONGEST_SHOWN = 60

# Beyond this a float64 no longer holds every whole number.
LARGEST_WHOLE_NUMBER = 2**53


def row_of_table(row: int) -> str:
    """Name of a row in a table without line numbers: the first is row 1."""
    return f"row {row + 1}"


def check_names(present: Sequence[Hashable], wanted: Iterable[Hashable], table: str = "the table") -> None:
    """Refuse column names that stand twice, and a table that lacks a wanted one."""
    twice = [name for name, count in Counter(map(str, present)).items() if count > 1]
    if twice:
        raise InputError(
            f"{table}: column {some_of(_plain(twice))} stands more than once; rename or remove the others."
        )
    missing = [name for name in wanted if name not in present]
    if missing:
        raise InputError(
            f"{table}: column {some_of(_plain(missing))} missing; it has {some_of(_plain(present), 12)}: name the "
            "right one."
        )


def labels(table: pd.DataFrame, name: str, row_name: RowName = row_of_table) -> np.ndarray:
    """Names of observers, pictures or trials: int64 where all are whole numbers, else text; none may be empty."""
    column = _column(table, name)
    if column.dtype.kind == "i" and isinstance(column.dtype, np.dtype):  # the usual case, without a look at every cell
        return column.to_numpy(dtype=np.int64)
    values = column.to_numpy(dtype=object)
    blank = np.array([isinstance(value, str) and not value.strip() for value in values], dtype=bool)
    for row in np.flatnonzero(_missing(column) | blank):
        raise InputError(f"{row_name(int(row))}: {name} is empty; every fixation needs one.")
    all_text = all(type(value) is str for value in values)
    for row, value in enumerate(values):
        # NumPy would cut a NUL off the end of a text in silence.
        if "\x00" in value if all_text else not _is_name(value):
            raise InputError(
                f"{row_name(row)}: {name} is {shown(value)}, which is not a name; it must be text or a number."
            )
    if not all_text and all(_is_whole(value) for value in values):
        return values.astype(np.int64)
    texts = [str(value) for value in values]
    if len(set(texts)) < len(set(values)):
        kinds: dict[str, object] = {}
        same = next(t for t, v in zip(texts, values, strict=True) if kinds.setdefault(t, v) != v)
        raise InputError(
            f"column {name} holds {plain(same)} both as a number and as text; write all of its names in one way."
        )
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
            remedy = "write it with a decimal point" if _has_decimal_comma(value) else "mend the row"
            raise InputError(
                f"{row_name(row)}: {name} is {shown(value)}, which is not a number; {remedy} or name another column."
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


def flags(table: pd.DataFrame, name: str, row_name: RowName = row_of_table) -> Bool[np.ndarray, " row"]:
    """The column as True and False; an empty cell or anything but 0 and 1, true and false is an error."""
    texts = [str(value).strip().lower() for value in _column(table, name).tolist()]
    for row, text in enumerate(texts):
        if text not in FLAGS:
            said = "empty" if text in EMPTY_TEXTS else shown(text)
            raise InputError(
                f"{row_name(row)}: {name} is {said}, but a flag must be 0 or 1, or FALSE or TRUE; mend it."
            )
    return np.array([FLAGS[text] for text in texts], dtype=bool)


def shown(value: Any) -> str:
    """A cell's own words in one line, text in quotes, cut where they would drown the message."""
    words = " ".join(repr(value).split())
    words = words if words.isprintable() else ascii(words)
    return words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}... ({len(words):,} characters)"


def plain(value: Any) -> str:
    """A name in one line, without quotes unless it needs them."""
    words = str(value)
    return words if words.isprintable() and len(words) <= LONGEST_SHOWN else shown(value)


def as_number(value: Any) -> float | None:
    """`value` as a float, NaN if it stands for nothing, None if it is no number."""
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in EMPTY_TEXTS:
            return np.nan
        if "_" in text:  # Python reads '1_000' as a number; a table does not mean it so
            return None
    elif isinstance(value, bytes) or not pd.api.types.is_scalar(value):
        return None  # a list, say, of which the only item would pass for a number
    elif is_missing(value):
        return np.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def is_missing(value: Any) -> bool:
    """Whether a single value stands for nothing."""
    try:
        return bool(pd.isna(value))
    except ArithmeticError:  # a Decimal that signals NaN cannot even be asked
        return True


def _missing(column: pd.Series) -> Bool[np.ndarray, " row"]:
    try:
        return column.isna().to_numpy()
    except ArithmeticError:
        scalar = (pd.api.types.is_scalar(value) for value in column)
        return np.array([known and is_missing(value) for known, value in zip(scalar, column, strict=True)])


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    return cast(pd.Series, table[name])


def _plain(names: Iterable[Hashable]) -> list[str]:
    return [plain(name) for name in names]


def _is_name(value: Any) -> bool:
    """Whether `value` is one thing with a name of its own."""
    if isinstance(value, str | bytes):
        return isinstance(value, str) and "\x00" not in value
    return bool(pd.api.types.is_scalar(value))


def _is_whole(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    # As whole numbers of Python's: as a float the largest label is rounded up.
    return bool(np.isfinite(value)) and abs(int(value)) <= LARGEST_LABEL and bool(value == int(value))


def _has_decimal_comma(value: Any) -> bool:
    return isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()) is not None
