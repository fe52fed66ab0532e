"""Pickles without their dangers: lists, arrays and numbers are read, and nothing in a file is ever run.

A pickle is a program, and the usual way to read one runs it. Here every name that an array's pickle needs gets a
stand-in that only remembers what it was told, any other name is refused before it is looked up, and the arrays are
built afterwards, from checked parts.
"""

import math
import pickle
import pickletools
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from foveate.data.texts import reason_of
from foveate.errors import InputError

# Codes of the number types that an array may hold: floats, whole numbers, truth values.
NUMBERS_OF_64_BITS = frozenset({"f8", "i8"})
NUMBERS = frozenset({"f2", "f4", "f8", "f16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})

# Lists within lists: folds, pictures, observers; or observers, trials, fixations.
DEEPEST = 3

# A list may stand in several places at the price of one; a file that unfolds to more than this many times its own size
# is made to fill the memory.
MOST_PER_BYTE = 100

# The steps of a pickle that put something into a numbered place in memory.
PLACES = ("PUT", "BINPUT", "LONG_BINPUT")


def read_arrays(file: str | Path, *, remedy: str) -> Any:
    """The array of 64-bit numbers, or the lists (of lists) of such arrays, in a pickle; anything else is refused.

    `remedy` ends the sentence about a file that is not there.
    """
    file = Path(file)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; {remedy}.")
    what = "lists of NumPy arrays of numbers"
    return _read(file.read_bytes, str(file), what, lambda size: _Builder(NUMBERS_OF_64_BITS, False, size))


def nested_numbers(data: bytes, name: str) -> Any:
    """The numbers, arrays of numbers and lists (of lists) of them in the bytes of a pickle; anything else is refused.

    Arrays of objects become lists; None stays. `name` is the file's, for messages.
    """
    what = "lists, NumPy arrays and numbers"
    return _read(lambda: data, name, what, lambda size: _Builder(NUMBERS, True, size))


def _read(read: Callable[[], bytes], name: str, what: str, builder: "Callable[[int], _Builder]") -> Any:
    refusal = f"{name} is refused, for only {what} are read from a pickle"
    try:
        data = read()
        _check_places(data)
        return builder(len(data)).build(_ArrayUnpickler(BytesIO(data)).load(), DEEPEST)
    except _Refused as error:
        raise InputError(
            f"{refusal}, and this holds {reason_of(error)}; fetch the file anew from its authors."
        ) from None
    # A broken or a hostile file can fail in every way there is.
    except Exception as error:
        raise InputError(
            f"{refusal}, and this is broken ({reason_of(error)}); fetch the file anew from its authors."
        ) from error


class _Refused(Exception):  # noqa: N818
    """Something in a pickle that is not an array or a list."""


class _Parts:
    """What a pickle says about an array: data, on which nothing has been done yet."""

    def __init__(self, *_: Any):
        self.state: Any = ()

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _NumberType(_Parts):
    """What a pickle says about the type of an array's numbers."""

    def __init__(self, code: str, *_: Any):
        super().__init__()
        self.code = code


class _Scalar(_Parts):
    """What a pickle says about one number of a NumPy type."""

    def __init__(self, number_type: Any, data: Any, *_: Any):
        super().__init__()
        self.number_type, self.data = number_type, data


class _ArrayUnpickler(pickle.Unpickler):
    """Knows the names that pickled arrays and their numbers hold, and gives none of them what it asks for."""

    _names: dict[tuple[str, str], type] = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _Parts,
        ("numpy._core.multiarray", "_reconstruct"): _Parts,
        ("numpy.core.multiarray", "scalar"): _Scalar,
        ("numpy._core.multiarray", "scalar"): _Scalar,
        ("numpy", "ndarray"): _Parts,
        ("numpy", "dtype"): _NumberType,
    }

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        """A stand-in for NumPy's own; no module is ever imported for a name in a file."""
        if (module_name, global_name) not in self._names:
            raise _Refused(f"{module_name}.{global_name}")
        return self._names[module_name, global_name]

    def persistent_load(self, pid: Any) -> Any:
        """Nothing outside the file belongs to it."""
        raise _Refused("a reference to something outside")


def _check_places(data: bytes) -> None:
    """Refuse numbered places in memory beyond what a file of this size can fill: the unpickler makes room for all."""
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in PLACES and isinstance(argument, int) and argument > len(data):
            raise _Refused("more places than it has room for")


class _Builder:
    """Builds the arrays that the parts describe, in the same lists."""

    def __init__(self, codes: frozenset[str], loose: bool, size: int):
        self.codes = codes
        self.loose = loose  # numbers outside arrays, None and arrays of objects too
        self.left = MOST_PER_BYTE * size

    def build(self, item: Any, levels: int) -> Any:
        """The item, if it may be read, with `levels` of lists below it at most."""
        self.left -= 1
        if self.left < 0:
            raise _Refused("the same lists over and over")
        if isinstance(item, list):
            return self._list(item, levels)
        if type(item) is _Parts:
            return self._array(item, levels)
        if self.loose and isinstance(item, _Scalar):
            return self._numbers(item.number_type, (), item.data, False)[()]
        if self.loose and (item is None or isinstance(item, int | float)):
            return item
        raise _Refused(f"a {type(item).__name__.lstrip('_')}")

    def _list(self, items: list, levels: int) -> list:
        if levels == 0:
            raise _Refused(f"lists more than {DEEPEST} deep")
        return [self.build(item, levels - 1) for item in items]

    def _array(self, parts: _Parts, levels: int) -> Any:
        _, shape, number_type, by_column, data = parts.state
        if self.loose and isinstance(number_type, _NumberType) and number_type.code in ("O8", "O4", "O"):
            return self._objects(shape, data, levels)
        return self._numbers(number_type, shape, data, bool(by_column))

    def _numbers(self, number_type: Any, shape: Any, data: Any, by_column: bool) -> np.ndarray:
        known = isinstance(number_type, _NumberType) and number_type.code in self.codes
        if not known or number_type.state[1] not in ("<", "|"):
            size = " of 64 bits" if self.codes == NUMBERS_OF_64_BITS else ""
            raise _Refused(f"an array of something else than numbers{size}")
        kind = np.dtype("<" + number_type.code)
        if not isinstance(data, bytes) or kind.itemsize * math.prod(shape) != len(data):
            raise _Refused("an array whose size is not what it says")
        return np.ndarray(shape, kind, buffer=data, order="F" if by_column else "C").copy(order="C")

    def _objects(self, shape: Any, items: Any, levels: int) -> Any:
        """An array of objects as lists, one level for each of its axes."""
        if not isinstance(items, list) or math.prod(shape) != len(items):
            raise _Refused("an array whose size is not what it says")
        if len(shape) > levels:
            raise _Refused(f"lists more than {DEEPEST} deep")
        array = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            array[index] = self.build(item, levels - len(shape))
        return array.reshape(shape).tolist()  # objects are listed row by row, however the array held them
