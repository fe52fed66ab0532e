"""A table from a CSV, TSV or Parquet file or from pandas, in which every row knows where it stands.

Text files are read here and not by pandas, which renames duplicated columns, fills short rows, skips blank lines and
turns observer '007' into 7, all without a word.
"""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Int

from foveate.data.columns import as_number, row_of_table
from foveate.errors import InputError, some_of

DELIMITERS = {".csv": ",", ".tsv": "\t"}

# A whole number as anybody writes it; '007' and '1.0' are names or measurements.
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})")
_LEADING_ZERO = re.compile(r"[+-]?0\d")


@dataclass(frozen=True, eq=False)
class Source:
    """A table, its name for messages, and the line of each row where it came from a text file (header: line 1)."""

    name: str
    table: pd.DataFrame
    lines: Int[np.ndarray, " row"] | None = None

    def row_name(self, row: int) -> str:
        """Where a row stands, in words."""
        where = row_of_table(row) if self.lines is None else f"line {self.lines[row]}"
        return f"{self.name}, {where}"


def load(source: "str | Path | pd.DataFrame | Source", labels: Collection[str]) -> Source:
    """The table in a file, by its ending, or in a data frame; `labels` are columns whose text stays as written.

    A reader of another format makes its own `Source`, in which rows already know where they stand.
    """
    if isinstance(source, Source):
        return _not_empty(source)
    if isinstance(source, pd.DataFrame):
        return _not_empty(Source("the table", _with_index(source)))
    file = Path(source)
    ending = file.suffix.lower()
    if ending not in (*DELIMITERS, ".parquet"):
        raise InputError(
            f"{file.name}: the name must end in .csv, .tsv or .parquet; load any other file with pandas and pass the "
            "data frame."
        )
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; check the name and the folder.")
    return _not_empty(_load_parquet(file) if ending == ".parquet" else _load_text(file, DELIMITERS[ending], labels))


def _not_empty(source: Source) -> Source:
    if len(source.table) == 0:
        raise InputError(f"{source.name} has columns but no rows; give a table with one row per fixation.")
    return source


def _with_index(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the named levels of its index as columns."""
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    return table.reset_index(level=named) if named else table


def _load_parquet(file: Path) -> Source:
    try:
        return Source(file.name, _with_index(pd.read_parquet(file)))
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{file.name} cannot be read as Parquet ({reason}); write it anew.") from error


def _load_text(file: Path, delimiter: str, labels: Collection[str]) -> Source:
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            header, rows, lines = _records(text, delimiter)
    except UnicodeDecodeError as error:
        raise InputError(f"{file.name} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except (OSError, csv.Error) as error:
        raise InputError(f"{file.name} cannot be read as text ({error}); write it anew.") from error
    if not header:
        raise InputError(f"{file.name} is empty; give a table with a header and one row per fixation.")
    _check_header(file, header, delimiter)
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(header):
            raise InputError(
                f"{file.name}, line {line} has {len(row)} values, the header has {len(header)}; mend the line."
            )
    columns = {name: _typed([row[index] for row in rows], name in labels) for index, name in enumerate(header) if rows}
    return Source(file.name, pd.DataFrame(columns), np.array(lines, dtype=np.int64))


def _records(text: object, delimiter: str) -> tuple[list[str], list[list[str]], list[int]]:
    """Header, rows and the line in which each row starts; blank lines are no rows."""
    reader = csv.reader(text, delimiter=delimiter, strict=True)  # type: ignore[arg-type]
    header: list[str] = []
    rows, lines, start = [], [], 1
    for row in reader:
        if row and not header:
            header = [name.strip() or f"column {index + 1}" for index, name in enumerate(row)]
        elif row:
            rows.append(row)
            lines.append(start)
        start = reader.line_num + 1
    return header, rows, lines


def _check_header(file: Path, header: Sequence[str], delimiter: str) -> None:
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise InputError(
            f"{file.name}, line 1: column {some_of(twice)} stands more than once; rename or remove the others."
        )
    for other, word in ((",", "commas"), (";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and other != delimiter and other in header[0]:
            raise InputError(
                f"{file.name} seems to be separated by {word}, but .csv means commas and .tsv means tabs; rename it, "
                "or load it with pandas and pass the data frame."
            )


def _typed(values: list[str], is_label: bool) -> np.ndarray:
    """Whole numbers or numbers if all values are, else the text as it stands."""
    if all(_WHOLE.fullmatch(value) for value in values):
        return np.array(values, dtype=np.int64)
    if not is_label and not any(_LEADING_ZERO.match(value) for value in values):
        numbers = [as_number(value) for value in values]
        if None not in numbers:
            return np.array(numbers, dtype=np.float64)
    return np.array(values, dtype=object)
