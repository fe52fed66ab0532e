"""A table from a CSV, TSV, Parquet or Feather file or from a data frame, in which every row knows where it stands.

Text files are read here and not by pandas, which renames duplicated columns, fills short rows, skips blank lines and
turns observer '007' into 7, all without a word.
"""

import csv
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Int
from pyarrow import feather

from foveate.data.columns import as_number, plain
from foveate.data.readers.conversion import pandas_frame
from foveate.data.texts import read_text, reason_of
from foveate.errors import InputError, some_of

DELIMITERS = {".csv": ",", ".tsv": "\t"}

# Files that are not text, by their ending: what they are called, and what reads them. Each is one file: with
# `pq.read_table` a folder named "observer=3" above it would become a column.
BINARY: dict[str, tuple[str, Callable[[Path], pa.Table]]] = {
    ".parquet": ("Parquet", lambda file: pq.ParquetFile(file).read()),
    ".feather": ("Feather", lambda file: feather.read_table(file, memory_map=False)),
}
ENDINGS = (*DELIMITERS, *BINARY)

# A whole number as anybody writes it; '007' and '1.0' are names or measurements.
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)

# What is no measurement, though it looks like a number: as a float it would lose a zero in front or its last digits.
_CODE = re.compile(r"[+-]?(0\d.*|\d{17,})", re.ASCII | re.DOTALL)


@dataclass(frozen=True, eq=False)
class Source:
    """A table, its name for messages, and the line of each row where it came from a text file (header: line 1).

    Rows that were taken from another table without lines have their numbers there, from 1, as `lines` of kind "row".
    """

    name: str
    table: pd.DataFrame
    lines: Int[np.ndarray, " row"] | None = None
    kind: str = "line"

    def place(self, row: int) -> tuple[str, int]:
        """("line", its number) of a row, or ("row", which one it is, from 1)."""
        return ("row", row + 1) if self.lines is None else (self.kind, int(self.lines[row]))

    def row_name(self, row: int) -> str:
        """Where a row stands, in words."""
        return f"{self.name}, {' '.join(map(str, self.place(row)))}"

    def taken(self, rows: Int[np.ndarray, " taken"], table: pd.DataFrame) -> "Source":
        """Another table made of these rows, which know where they stood."""
        lines = rows + 1 if self.lines is None else self.lines[rows]
        return Source(self.name, table.reset_index(drop=True), lines, "row" if self.lines is None else self.kind)


def load(source: Any, labels: Collection[str]) -> Source:
    """The table in a file, by its ending, or in a data frame; `labels` are columns whose text stays as written.

    A frame is one of pandas or polars, an Arrow table or the like. A reader of another format makes its own `Source`,
    in which rows already know where they stand.
    """
    if isinstance(source, Source):
        return _not_empty(source)
    if not isinstance(source, str | os.PathLike):
        return _not_empty(Source("the table", _with_index(pandas_frame(source))))
    file = Path(source)
    ending = file.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(
            f"{plain(file.name)}: the name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; load any other file "
            "with pandas and pass the data frame."
        )
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; check the name and the folder.")
    return _not_empty(_load_binary(file, ending) if ending in BINARY else _load_text(file, DELIMITERS[ending], labels))


def _not_empty(source: Source) -> Source:
    if len(source.table) == 0:
        raise InputError(f"{source.name} has columns but no rows; give a table with one row per fixation.")
    return source


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the named levels of its index as columns."""
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    return table.reset_index(level=named) if named else table


def _load_binary(file: Path, ending: str) -> Source:
    kind, read = BINARY[ending]
    try:
        table = read(file)
        table.validate(full=True)  # text that is no text would come to light only when it is used
        return Source(file.name, _with_index(table.to_pandas()))
    # A damaged file can fail in every way there is.
    except Exception as error:
        raise InputError(f"{file.name} cannot be read as {kind} ({reason_of(error)}); write it anew.") from error


def _load_text(file: Path, delimiter: str, labels: Collection[str]) -> Source:
    header, rows, lines = _records(read_text(file, file.name), delimiter, file.name)
    if not header:
        raise InputError(f"{file.name} is empty; give a table with a header and one row per fixation.")
    _check_header(file, header, delimiter)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise InputError(
                f"{file.name}, line {line} has {len(row)} values, the header has {len(header)}; mend the line."
            )
    columns = {name: typed([row[index] for row in rows], name in labels) for index, name in enumerate(header) if rows}
    return Source(file.name, pd.DataFrame(columns), np.array(lines, dtype=np.int64))


def _records(text: str, delimiter: str, name: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and the line in which each row starts; blank lines are no rows."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    rows, lines, start = [], [], 1
    try:
        for row in reader:
            if row and not header:
                header = [field.strip() or f"column {index + 1}" for index, field in enumerate(row)]
            elif row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{name}, line {start} cannot be read as text ({plain(error)}); mend its quotes, or write the file anew."
        ) from error
    return header, rows, lines


def _check_header(file: Path, header: Sequence[str], delimiter: str) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        names = [plain(name) for name in twice]
        raise InputError(
            f"{file.name}, line 1: column {some_of(names)} stands more than once; rename or remove the others."
        )
    for other, word in ((",", "commas"), (";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and other != delimiter and other in header[0]:
            raise InputError(
                f"{file.name} seems to be separated by {word}, but .csv means commas and .tsv means tabs; rename it, "
                "or load it with pandas and pass the data frame."
            )


def typed(values: list[str], is_label: bool) -> np.ndarray:
    """Whole numbers or numbers if all values are and lose nothing by it, else the text as it stands."""
    if all(_WHOLE.fullmatch(value) for value in values):
        return np.array(values, dtype=np.int64)
    if not is_label and not any(_CODE.fullmatch(value) for value in values):
        numbers = [as_number(value) for value in values]
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
    return np.array(values, dtype=object)
