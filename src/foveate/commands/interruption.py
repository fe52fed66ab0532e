"""Work that Ctrl-C stops at once, whatever it is doing."""

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# How long the main thread waits between two looks at the work: Ctrl-C is not heard while it waits on some systems.
LOOK_S = 0.2


def interruptible(work: Callable[[], T]) -> T:
    """The result of `work`, done in a thread of its own.

    Python hears Ctrl-C in the main thread only, and not while that compiles or computes. Here the main thread waits,
    so KeyboardInterrupt comes at once; the work then goes on until the program is left.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LOOK_S)
    if failure:
        raise failure[0]
    return result[0]
