"""What the program says on standard error, and its exit codes."""

import os
import sys
from typing import NoReturn

MISTAKE, INTERRUPTED = 2, 130  # exit codes


def say(message: str, code: int) -> int:
    """Print a message in one line, and give the exit code back."""
    print(f"foveate: {' '.join(message.split())}", file=sys.stderr)
    return code


def leave_at_once(code: int) -> NoReturn:
    """End the program without waiting for threads: a compiler that is at work cannot be asked to stop."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
