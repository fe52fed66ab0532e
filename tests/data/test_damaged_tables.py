"""The table reader and whatever is handed to it: paths come out, or one sentence, and never anything else."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from damage import FIELDS, byte_damage, sentence, several, text_damage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths

TABLE = pd.DataFrame(
    {
        "observer": ["ann"] * 5 + ["ben"] * 4,
        "picture": ["beach", "beach", "beach", "wood", "wood", "beach", "beach", "wood", "wood"],
        "trial": [1, 1, 1, 2, 2, 1, 1, 2, 2],
        "fixation": [1, 2, 3, 1, 2, 1, 2, 1, 2],
        "x": [10.5, 12.25, 0.0, 799.9, 400.0, 1.0, 2.0, 3.0, 400.125],
        "y": [20.0, 600.0, 0.5, 300.0, 299.5, 1.0, 2.0, 3.0, 4.0],
        "ms": [220, 310, 180, 250, 260, 200, 190, 0, 400],
        "forced": [1, 0, 0, 1, 0, 1, 1, 1, 0],
        "note": ["", "a, b", 'say "x"', "two\nlines", "ü", "0012", "-", "NA", "1e3"],
    }
)
SEPARATORS = {"csv": b",", "tsv": b"\t"}


def whole_files() -> dict[str, bytes]:
    text = {ending: TABLE.to_csv(index=False, sep=it.decode()).encode() for ending, it in SEPARATORS.items()}
    binary = {}
    for ending in ("parquet", "feather"):
        stream = pa.BufferOutputStream()
        getattr(TABLE, f"to_{ending}")(stream)
        binary[ending] = stream.getvalue().to_pybytes()
    return text | binary


WHOLE = whole_files()
WORDS = ("TRUE", '"', '"1,5"', "ann", "beach", "1.5", "observer", "x", "\n", "\t", ";")
FILES = st.one_of(
    *(
        st.tuples(
            st.just(ending),
            several(
                text_damage(
                    separator,
                    WORDS,
                    [
                        lambda data: data.replace(b",", b"\t"),
                        lambda data: data.replace(b",", b";").replace(b".", b","),
                        lambda data: data.replace(b"\t", b" "),
                        lambda data: data.replace(b"y", b"x", 1),
                        lambda data: b"\n".join(data.split(b"\n")[1:]),
                        lambda data: WHOLE["parquet"],
                        lambda data: WHOLE["feather"],
                    ],
                    reach=400,
                ),
                3,
            ),
        )
        for ending, separator in SEPARATORS.items()
    ),
    *(
        st.tuples(
            st.just(ending),
            several(byte_damage(), 3)
            | st.sampled_from([lambda data: WHOLE["csv"], lambda data: WHOLE["feather"][::-1]]),
        )
        for ending in ("parquet", "feather")
    ),
)

# What a column of a data frame may hold in a cell, and as a whole.
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(max_size=4),
    st.sampled_from(FIELDS),
    st.binary(max_size=4),
    st.dates(),
    st.decimals(),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.text(max_size=2)),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
    st.sampled_from([pd.NA, pd.NaT, np.float32(3), np.datetime64(0, "s"), np.zeros(2), object, 10**400, "\ud800"]),
)
DTYPES = (
    "float32",
    "Int64",
    "boolean",
    "string",
    "category",
    "datetime64[ns]",
    "timedelta64[ns]",
    "complex128",
    "object",
)
ROLES = [name for name in TABLE.columns if name != "note"]


class Frame:
    """A data frame that can always be shown: pandas itself fails on some of them."""

    def __init__(self, table: pd.DataFrame):
        self.table = table

    def __repr__(self) -> str:
        columns = {str(name): list(self.table.iloc[:, place]) for place, name in enumerate(self.table.columns)}
        return f"{columns}, index {list(self.table.index)}"


@st.composite
def frames(draw) -> Frame:
    """The table with cells of every kind, columns of other types, and columns that are not there or there twice."""
    table = TABLE.copy()
    for _ in range(draw(st.integers(1, 3))):
        name, row = draw(st.sampled_from(ROLES)), draw(st.integers(0, len(TABLE) - 1))
        how = draw(st.sampled_from(["cell", "cells", "type", "drop", "twice", "rename", "index", "short"]))
        if len(table) == 0 or name not in table.columns or table.columns.duplicated().any():
            break
        if how in ("cell", "cells"):
            rows = [row] if how == "cell" else range(len(table))
            cells = table[name].astype(object).tolist()
            for place in rows:
                cells[place % len(cells)] = draw(CELLS)
            column = pd.Series(index=table.index, dtype=object)
            for place, cell in enumerate(cells):
                column.iat[place] = cell
            table[name] = column
        elif how == "type":
            with suppress(TypeError, ValueError, ArithmeticError, Warning):  # not every type can be every other
                table[name] = table[name].astype(draw(st.sampled_from(DTYPES)))
        elif how == "drop":
            table = table.drop(columns=name)
        elif how == "twice":
            table = pd.concat([table, table[[name]]], axis=1)
        elif how == "rename":
            table = table.rename(columns={name: draw(st.sampled_from(["", 3, None, ("a", "b"), "x\ny", "z" * 9_000]))})
        elif how == "index":
            table = table.set_index(name)
        else:
            table = table.iloc[: draw(st.integers(0, 2))]
    return Frame(table)


CHOICES = st.fixed_dictionaries(
    {"frame": st.sampled_from([PixelFrame(800.0, 600.0, 40.0), PixelFrame(5.0, 5.0, 1.0, left_px=-2.0)])},
    optional={
        "trial": st.just("trial"),
        "forced": st.just("forced"),
        "duration": st.just("ms"),
        "outside": st.just("drop"),
        "missing": st.just("drop"),
        "shortest": st.integers(1, 3),
    },
)


def check(source: object, choices: dict) -> str:
    unit = {"position_unit": "px", "duration_unit": "ms" if "duration" in choices else None}

    def read() -> None:
        paths, report = read_table(source, **unit, **choices)
        assert isinstance(paths, ScanPaths)
        assert report.fixations == paths.fixations == report.rows - len(report.left_out)
        assert str(report).replace("\n", "").isprintable()

    return sentence(read)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def damaged(folder: Path, ending: str, change) -> Path:
    file = folder / f"fixations.{ending}"
    file.write_bytes(change(WHOLE[ending]))
    return file


def test_the_whole_tables_are_read(folder):
    for ending in WHOLE:
        choices = {"frame": PixelFrame(800.0, 600.0, 40.0), "trial": "trial", "forced": "forced", "duration": "ms"}
        assert check(damaged(folder, ending, bytes), choices) == ""
    assert check(TABLE, choices) == ""


@settings(max_examples=150)
@given(drawn=FILES, choices=CHOICES)
def test_a_damaged_file_is_read_or_refused_in_a_sentence(folder, drawn, choices):
    check(damaged(folder, *drawn), choices)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(frame=frames(), choices=CHOICES)
def test_an_odd_frame_is_read_or_refused_in_a_sentence(frame, choices):
    check(frame.table, choices)


@pytest.mark.slow
def test_ten_thousand_bad_tables_are_refused_in_a_sentence(folder):
    refused = {"file": 0, "frame": 0}

    @settings(max_examples=12_000)
    @given(drawn=FILES, choices=CHOICES)
    def files(drawn, choices):
        refused["file"] += check(damaged(folder, *drawn), choices) != ""

    @settings(max_examples=5_000, suppress_health_check=[HealthCheck.too_slow])
    @given(frame=frames(), choices=CHOICES)
    def odd_frames(frame, choices):
        refused["frame"] += check(frame.table, choices) != ""

    files()
    odd_frames()
    assert sum(refused.values()) >= 10_000, refused


def test_degrees_are_as_safe(folder):
    """The other unit goes through the same checks."""
    file = damaged(folder, "csv", lambda data: data.replace(b"799.9", b"1e999"))
    words = sentence(lambda: read_table(file, frame=Extent(600.0, 800.0), position_unit="deg"))
    assert "x is infinite" in words
