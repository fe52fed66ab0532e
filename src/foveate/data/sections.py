"""Sections of a settings file as dataclasses: every name and every kind of value is checked, and named in messages."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from foveate.errors import InputError, instead_of, some_of

Section = TypeVar("Section")


def check_known(where: str, said: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    """Refuse a name that does not exist, with the one that may be meant."""
    for name in said:
        if name not in known:
            raise InputError(f"{where}: there is no {what} {name!r}; {instead_of(name, known)}")


def section(kind: type[Section], name: str, said: Any, file: str) -> Section:
    """A section as its dataclass, every name and type checked."""
    where = f"{file}, [{name}]"
    if not isinstance(said, Mapping):
        raise InputError(f"{file}: {name} is a section; write [{name}] and its settings below.")
    of_type = get_type_hints(kind)
    hints = {it.name: of_type[it.name] for it in fields(kind)}  # type: ignore[arg-type]
    check_known(where, said, hints, "setting")
    for setting, value in said.items():
        if not _fits(value, hints[setting]):
            raise InputError(f"{where}: {setting} = {value!r}; give {_words(hints[setting])}.")
    needed = [it.name for it in fields(kind) if it.default is MISSING and it.name not in said]  # type: ignore[arg-type]
    if needed:
        raise InputError(f"{where}: {some_of(needed)} missing; it must be said, since it is never guessed.")
    return kind(**said)


def _choices(hint: Any) -> tuple[Any, ...]:
    every = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(it for it in every if it is not type(None))


def _fits(value: Any, hint: Any) -> bool:
    for kind in _choices(hint):
        if get_origin(kind) is list:
            if isinstance(value, list) and all(_fits(item, get_args(kind)[0]) for item in value):
                return True
        elif kind is float:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return True
        elif type(value) is kind:
            return True
    return False


_NAMES = {str: "text in quotes", float: "a number", int: "a whole number", bool: "true or false"}
_LISTS = {str: "text in quotes", float: "numbers", int: "whole numbers"}


def _words(hint: Any) -> str:
    return " or ".join(
        f"a list of {_LISTS[get_args(kind)[0]]}" if get_origin(kind) is list else _NAMES[kind]
        for kind in _choices(hint)
    )
