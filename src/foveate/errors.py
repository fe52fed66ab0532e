"""The one exception for a user's mistake: a sentence that says what is wrong, where, and what to do."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


class InputError(ValueError):
    """Data, settings or arguments that cannot be used as they are; the command line prints it in one line."""


def counted(number: int, thing: str) -> str:
    """'1 observer', '1,050 observers'."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def some_of(items: Sequence[Any], most: int = 5) -> str:
    """`items` in words, cut after `most` of them: '1, 2, 3 and 7 more'."""
    shown = ", ".join(str(item) for item in items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"


def instead_of(name: str, known: Iterable[str], most: int = 20) -> str:
    """What to say after a name that does not exist: the one that may be meant, or those that there are."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"do you mean {near[0]!r}?" if near else f"there are {some_of(names, most)}."
