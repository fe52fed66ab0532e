"""Pickles: what is read from them, and that nothing in them ever runs."""

import os
import pickle
import struct

import numpy as np
import pytest
from damage import byte_damage, few, many, sentence, several
from hypothesis import example, given
from hypothesis import strategies as st

from foveate.data.readers.pickles import nested_numbers, read_arrays
from foveate.errors import InputError

REMEDY = "give the folder"


class Hostile:
    """Unpickled in the usual way, this makes a folder."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return os.mkdir, (self.place,)


def write(file, thing, protocol=3):
    file.write_bytes(pickle.dumps(thing, protocol=protocol))
    return file


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: [[it], np.zeros((2, 3))]], ids=["bare", "in a list"])
def test_a_hostile_pickle_is_refused_and_does_not_run(tmp_path, protocol, wrap):
    trap = tmp_path / "trap"
    file = write(tmp_path / "hostile.p", wrap(Hostile(trap)), protocol)
    with pytest.raises(InputError, match=r"hostile\.p is refused.*mkdir") as caught:
        read_arrays(file, remedy=REMEDY)
    assert not trap.exists()
    assert "\n" not in str(caught.value)
    pickle.loads(file.read_bytes())  # it would have run
    assert trap.exists()


class Called:
    def __reduce__(self):
        return np.fromfile, ("anything",)


@pytest.mark.parametrize(
    "thing",
    [
        {"a": np.zeros(2)},
        (np.zeros(2),),
        "text",
        3.5,
        None,
        [np.zeros(2), None],
        np.array([{}], dtype=object),
        np.array(["text"]),
        np.zeros(2, dtype=np.float32),
        np.dtype("f8"),
        np.float64(1.0),
        Called(),
        [[[[np.zeros(2)]]]],
    ],
    ids=lambda it: type(it).__name__,
)
def test_anything_but_lists_of_arrays_of_numbers_is_refused(tmp_path, thing):
    with pytest.raises(InputError, match="only lists of NumPy arrays of numbers are read"):
        read_arrays(write(tmp_path / "other.p", thing), remedy=REMEDY)


def test_names_of_numpy_give_nothing_of_numpy(tmp_path):
    # an attribute of a name, a name given a state, and a bare name
    for program in (b"cnumpy\nndarray.tofile\n.", b"cnumpy\nndarray\n}b.", b"cnumpy\ndtype\n."):
        file = tmp_path / "program.p"
        file.write_bytes(b"\x80\x03" + program)
        with pytest.raises(InputError, match="is refused"):
            read_arrays(file, remedy=REMEDY)


@pytest.mark.parametrize("content", [b"", b"no pickle at all", pickle.dumps(np.zeros(9))[:-20]])
def test_a_broken_file_is_a_sentence(tmp_path, content):
    file = tmp_path / "broken.p"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.p is refused.*fetch the file anew"):
        read_arrays(file, remedy=REMEDY)


def test_a_list_within_itself_is_refused(tmp_path):
    endless: list = []
    endless.append(endless)
    with pytest.raises(InputError, match="lists more than 3 deep"):
        read_arrays(write(tmp_path / "endless.p", endless), remedy=REMEDY)


@pytest.mark.parametrize("protocol", [3, 4])
def test_arrays_come_back_as_they_were(tmp_path, protocol):
    arrays = [[np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(8.0).reshape(4, 2))], [np.zeros((2, 0))]]
    found = read_arrays(write(tmp_path / "arrays.p", arrays, protocol), remedy=REMEDY)
    for row, found_row in zip(arrays, found, strict=True):
        for array, found_array in zip(row, found_row, strict=True):
            np.testing.assert_array_equal(found_array, array)
            assert found_array.dtype == array.dtype
    one = read_arrays(write(tmp_path / "one.p", np.arange(4), protocol), remedy=REMEDY)
    np.testing.assert_array_equal(one, np.arange(4))


def test_a_file_that_is_not_there_is_named_with_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"gone\.p: there is no such file; give the folder\.$"):
        read_arrays(tmp_path / "gone.p", remedy=REMEDY)


# --- lists of numbers, as programs save ragged data ------------------------------------------------------------------


def nested(thing, protocol: int = 3):
    return nested_numbers(pickle.dumps(thing, protocol=protocol), "data.npy")


def ragged(*items) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    for index, item in enumerate(items):
        array[index] = item
    return array


@pytest.mark.parametrize("protocol", [3, 4])
@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        ([1, 2.5, None, True], [1, 2.5, None, True]),
        (ragged([[1.0, 2.0], [3]], [[4]]), [[[1.0, 2.0], [3]], [[4]]]),
        (np.array([[1, None], [3, 4], [5, 6]], dtype=object), [[1, None], [3, 4], [5, 6]]),
        (np.array([[1, None], [3, 4], [5, 6]], dtype=object).T, [[1, 3, 5], [None, 4, 6]]),
        ([np.float64(1.5), np.int64(7), np.float32(0.25)], [1.5, 7, 0.25]),
        (np.float64(1.5), 1.5),
        ([], []),
    ],
    ids=["numbers", "objects", "two axes", "by column", "NumPy numbers", "one number", "nothing"],
)
def test_lists_of_numbers_come_back_as_they_were(protocol, thing, expected):
    assert nested(thing, protocol) == expected


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "longdouble", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_arrays_of_every_number_type_come_back_as_they_were(kind):
    array = np.array([[0, 1, 1], [1, 0, 1]], dtype=kind)
    found = nested(ragged([array], [array[:0]]))
    np.testing.assert_array_equal(found[0][0], array)
    assert found[0][0].dtype == array.dtype
    assert found[1][0].shape == (0, 3)


@pytest.mark.parametrize(
    "thing",
    [
        {"a": 1},
        (1, 2),
        "text",
        b"bytes",
        1j,
        {1},
        ragged("text"),
        ragged({}),
        np.array(["text"]),
        np.zeros(2, dtype=">f8"),
        np.zeros(2, dtype="c16"),
        np.zeros(2, dtype="M8[s]"),
        np.zeros(2, dtype="i4,f8"),
        np.dtype("f8"),
        Called(),
        ragged(Called()),
        [[[[1.0]]]],
        np.array([[[[1]]]], dtype=object),
    ],
    ids=lambda it: f"{type(it).__name__} {getattr(it, 'dtype', '')}",
)
def test_anything_but_lists_arrays_and_numbers_is_refused(thing):
    with pytest.raises(InputError, match=r"^data\.npy is refused, for only lists, NumPy arrays and numbers are read"):
        nested(thing)


def test_a_hostile_element_of_an_array_does_not_run(tmp_path):
    trap = tmp_path / "trap"
    with pytest.raises(InputError, match="mkdir"):
        nested(ragged([1.0], Hostile(trap)))
    assert not trap.exists()


def test_lists_that_unfold_without_end_are_refused_before_they_do():
    items: list = [0] * 200
    for _ in range(2):
        items = [items] * 200  # eight million numbers in a kilobyte
    with pytest.raises(InputError, match="the same lists over and over"):
        nested(items)


def test_a_place_far_beyond_the_file_is_refused_before_room_is_made_for_it():
    program = b"\x80\x03]r" + struct.pack("<I", 2**31) + b"."
    with pytest.raises(InputError, match="more places than it has room for"):
        nested_numbers(program, "data.npy")


@pytest.mark.parametrize(
    "shape",
    [b"K\x03\x85", b"J\xfe\xff\xff\xff\x85", b"\x8a\x05\x00\x00\x00\x00\x10\x85", b"K\x01\x85"],
    ids=["(3,)", "(-2,)", "(2**36,)", "(1,)"],
)
@pytest.mark.parametrize("array", [ragged([2.0], [1.0]), np.array([2.0, 1.0])], ids=["objects", "numbers"])
def test_a_shape_that_is_not_that_of_the_data_is_refused(array, shape):
    data = pickle.dumps([array], protocol=3)
    assert data.count(b"K\x02\x85") == 1  # (2,)
    with pytest.raises(InputError, match="size is not what it says"):
        nested_numbers(data.replace(b"K\x02\x85", shape), "data.npy")


VALID = [
    pickle.dumps([[np.arange(3.0), np.arange(300)], [np.zeros((2, 2))]], protocol=3),
    pickle.dumps(ragged([[1.5, 2], [3]], [np.arange(4.0), np.float64(2.0)], None), protocol=4),
]


# Bytes that mean something in a pickle: calls, states, names.
CODES = st.sampled_from([b"R", b"b", b"o", b"\x81", b"\x92", b"c", b"0", b"j", b"r", b"."])
DAMAGE = several(byte_damage() | byte_damage(["insert"], new=CODES), 6)


def check(data: bytes) -> None:
    sentence(lambda: nested_numbers(data, "data.npy"))


@few
@given(st.sampled_from(VALID), DAMAGE)
@example(b"", bytes)
def test_a_damaged_pickle_is_a_sentence(data, change):
    check(change(data))


@pytest.mark.slow
@many
@given(st.sampled_from(VALID), DAMAGE)
def test_many_damaged_pickles_are_sentences(data, change):
    check(change(data))
