"""Questions to the user of a command: an answer is understood at once, or asked for again."""

import math
import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from foveate.errors import InputError

Answer = TypeVar("Answer")
Understood = Callable[[str], Answer]  # what an answer means; an InputError says what is wrong with it


def can_ask() -> bool:
    """Whether somebody sits there who could answer."""
    return sys.stdin.isatty()


def answer_to(question: str, understood: Understood[Answer], default: str | None = None) -> Answer:
    """The first answer that is understood; a `default` is what Enter alone says."""

    def meant(answer: str) -> Answer:
        try:
            return understood(answer)
        except InputError as error:
            raise typer.BadParameter(str(error)) from error  # which is shown, and the question asked again

    return typer.prompt(question, default=default, show_default=bool(default), value_proc=meant)


def said_by(option: str, value: object, understood: Understood[Answer]) -> Answer:
    """What an option's value means; the error names the option."""
    words = f"{value:g}" if isinstance(value, float) else str(value)
    try:
        return understood(str(value))
    except InputError as error:
        raise InputError(f"{option} {words}: {error}") from error


def one_of(*allowed: str) -> Understood[str]:
    """One of a few words, in any case."""

    def understood(answer: str) -> str:
        word = answer.strip().lower()
        if word not in allowed:
            raise InputError(f"say {' or '.join(allowed)}.")
        return word

    return understood


def above_zero(answer: str) -> float:
    """A number above zero."""
    try:
        number = float(answer)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"give a number above 0{', with a decimal point' if ',' in answer else ''}.")
    return number


def or_nothing(understood: Understood[Answer]) -> Understood[Answer | None]:
    """The same, or None for an empty answer."""
    return lambda answer: understood(answer) if answer.strip() else None
