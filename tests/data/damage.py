"""Damage that files suffer on their way, for the tests of all readers.

What is drawn is a function from the bytes of a whole file to those of a damaged one. A reader may read what is left of
it, or refuse it with a sentence; nothing else may ever come out.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from foveate.errors import InputError

Change = Callable[[bytes], bytes]

# A reader's damaged files: some with every test run, and as many as are promised with the slow ones.
few = settings(max_examples=60)
many = settings(max_examples=10_000)

# No message needs more characters, however long what it complains of is.
LONGEST_MESSAGE = 2_000

# What stands where a number or a name should: nothing, too much, other scripts, signs that end lines elsewhere.
FIELDS = ("", ".", "nan", "-1", "0", "2", "1e999", "9" * 400, "1,5", "x" * 200_000, "ü", "\x00", "\u2028", "１２")


def sentence(read: Callable[[], Any]) -> str:
    """What is said about something that is read, checked to be one line that ends; nothing, if it can be read.

    Any exception but ours gets through.
    """
    try:
        read()
    except InputError as error:
        message = str(error)
        assert message.isprintable(), ascii(message)
        assert message.endswith("."), message
        assert len(message) < LONGEST_MESSAGE, message[:LONGEST_MESSAGE]
        return message
    return ""


# --- text ------------------------------------------------------------------------------------------------------------


def text_damage(
    separator: bytes, fields: Sequence[str] = (), whole: Sequence[Change] = (), reach: int = 2_000
) -> st.SearchStrategy[Change]:
    """Damage to a file of lines whose fields are split by the regular expression `separator`.

    `fields` are words that mean something in such a file, `whole` changes to all of it, beyond those that befall any
    text.
    """
    place = st.integers(0, reach)
    words = st.sampled_from([*FIELDS, *fields]) | st.text(st.characters(codec="utf-8"), max_size=8)
    return st.one_of(
        st.builds(lambda at: lambda data: data[: at % (len(data) + 1)], place),
        st.builds(_flipped, place, st.integers(0, 255)),
        st.builds(lambda line, field, new: _with_field(separator, line, field, new.encode()), place, place, words),
        st.builds(_swapped, place, place),
        st.builds(_without_line, place),
        st.builds(_with_line_twice, place),
        st.sampled_from([*WHOLE_TEXT, *whole]),
    )


WHOLE_TEXT: list[Change] = [
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\n", b"\r"),
    lambda data: data.replace(b".", b","),
    lambda data: data.replace(b"beach", "küste".encode("latin-1")),
    lambda data: data.decode("latin-1").encode("utf-16"),
    lambda data: data.decode("latin-1").encode("utf-16-le"),
    lambda data: data + data,
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data + "schräg\n".encode("latin-1"),
    lambda data: b"",
]


def _flipped(at: int, byte: int) -> Change:
    def change(data: bytes) -> bytes:
        place = at % max(len(data), 1)
        return data[:place] + bytes([byte]) + data[place + 1 :]

    return change


def _with_field(separator: bytes, line: int, field: int, new: bytes) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        words = re.split(b"(" + separator + b")", lines[line % len(lines)])
        words[2 * (field % (len(words) // 2 + 1))] = new  # between them stand the separators
        lines[line % len(lines)] = b"".join(words)
        return b"\n".join(lines)

    return change


def _swapped(one: int, other: int) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        here, there = one % len(lines), other % len(lines)
        lines[here], lines[there] = lines[there], lines[here]
        return b"\n".join(lines)

    return change


def _without_line(line: int) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        del lines[line % len(lines)]
        return b"\n".join(lines)

    return change


def _with_line_twice(line: int) -> Change:
    def change(data: bytes) -> bytes:
        lines = data.split(b"\n")
        return b"\n".join([*lines[: line % len(lines) + 1], *lines[line % len(lines) :]])

    return change


# --- bytes -----------------------------------------------------------------------------------------------------------


HEADER = 80  # first bytes of a file that say what it is


def byte_damage(
    kinds: Sequence[str] = ("cut", "change", "insert", "remove", "repeat", "swap"),
    new: st.SearchStrategy[bytes] = st.binary(min_size=1, max_size=6),  # noqa: B008
) -> st.SearchStrategy[Change]:
    """Damage to a file that is no text; `new` is what is changed to or put in, and 'header' changes its first bytes."""
    share = st.floats(0, 1)
    return st.builds(
        lambda how, place, other, new: lambda data: _damaged(data, how, place, other, new),
        st.sampled_from(list(kinds)),
        share,
        share,
        new,
    )


def _damaged(data: bytes, how: str, place: float, other: float, new: bytes) -> bytes:
    start, end = sorted((int(place * len(data)), int(other * len(data))))
    if how == "header":
        start = int(place * min(HEADER, len(data)))
    return {
        "cut": data[:start],
        "change": data[:start] + new + data[start + len(new) :],
        "header": data[:start] + new + data[start + len(new) :],
        "insert": data[:start] + new + data[start:],
        "remove": data[:start] + data[end:],
        "repeat": data[:end] + data[start:],
        "swap": data[end:] + data[start:end] + data[:start],
    }[how]


def all_of(changes: Sequence[Change]) -> Change:
    """One after the other."""

    def change(data: bytes) -> bytes:
        for one in changes:
            data = one(data)
        return data

    return change


def several(damage: st.SearchStrategy[Change], most: int) -> st.SearchStrategy[Change]:
    """One such damage after another, up to so many."""
    return st.lists(damage, min_size=1, max_size=most).map(all_of)
