"""Text files, decoded as a whole, so that a mistake is named by its line and place; and complaints in one line."""

from pathlib import Path

from foveate.errors import InputError

# Characters of another library's complaint that a message repeats.
LONGEST_REASON = 200

_MARKS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_text(place: Path, called: str) -> str:
    """The text of a UTF-8 file, line ends as they are; `called` is the file's name in messages."""
    try:
        raw = place.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{called}: there is no such file; check the name and the folder.") from error
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise InputError(f"{called} cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + raw.count(b"\n", 0, error.start)
        kind = " but UTF-16" if raw.startswith(_MARKS_OF_UTF_16) else ""
        raise InputError(
            f"{called} is not UTF-8 text{kind} (byte {error.start}, in line {line}); save it as UTF-8."
        ) from error
    nul = text.find("\x00")
    if nul >= 0:
        raise InputError(
            f"{called}, line {1 + text.count(chr(10), 0, nul)}: there is a NUL byte, as no text has; the file is "
            "damaged or in UTF-16: save it anew, as UTF-8."
        )
    return text.removeprefix("\ufeff")


def reason_of(error: BaseException) -> str:
    """What another library complains of: its first line, which may hold a piece of a damaged file."""
    lines = str(error).strip().splitlines()
    words = lines[0] if lines else type(error).__name__
    words = words if words.isprintable() else ascii(words)
    return words if len(words) <= LONGEST_REASON else f"{words[:LONGEST_REASON]}..."
