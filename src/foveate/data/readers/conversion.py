"""Data frames of other libraries as those of pandas: polars, Arrow and whatever speaks their language.

No such library is imported: a frame hands its columns over by the Arrow interface, or by its own `to_pandas` or
`to_dict`.
"""

from typing import Any

import pandas as pd
import pyarrow as pa

from foveate.data.texts import reason_of
from foveate.errors import InputError


def pandas_frame(table: Any) -> pd.DataFrame:
    """The data frame as one of pandas, with the same columns in the same order."""
    if isinstance(table, pd.DataFrame):
        return table
    if hasattr(table, "collect"):
        raise InputError(f"the {type(table).__name__} is not computed yet; pass what its collect() gives.")
    routes = {"__arrow_c_stream__": _by_arrow, "to_pandas": _by_pandas, "to_dict": _by_dictionary}
    reason = "it has neither the Arrow interface nor to_pandas nor to_dict"
    for method, convert in routes.items():
        if not callable(getattr(table, method, None)):
            continue
        try:
            return convert(table)
        # Code of another library runs here, and the next way may do where this one fails.
        except Exception as error:
            reason = reason_of(error)
    raise InputError(
        f"a {type(table).__name__} cannot be read as a data frame ({reason}); give one of pandas or polars, an Arrow "
        "table, or the name of a file."
    )


def _by_arrow(table: Any) -> pd.DataFrame:
    # Whole numbers stay whole beside empty cells, where pandas would make them floats.
    return pa.table(table).to_pandas(integer_object_nulls=True)


def _by_pandas(table: Any) -> pd.DataFrame:
    frame = table.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"its to_pandas gives a {type(frame).__name__}")
    return frame


def _by_dictionary(table: Any) -> pd.DataFrame:
    return pd.DataFrame({name: list(values) for name, values in table.to_dict().items()})
