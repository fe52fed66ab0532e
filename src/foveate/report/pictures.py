"""The pictures themselves, made small enough to be embedded in a page."""

import base64
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SIZES_PX = (640, 480, 320, 200)  # longest sides that are tried, the first that all pictures fit in is taken
QUALITY = 72
PREFIX = "data:image/jpeg;base64,"


def embedded_pictures(files: Mapping[Any, Path], most_bytes: int) -> tuple[dict[str, str], list[str]]:
    """Pictures as JPEG by name, as text of `most_bytes` in all at most; and sentences on what was left out."""
    found: dict[str, str] = {}
    broken: list[str] = []
    for size in SIZES_PX:
        found, broken = {}, []
        for picture, file in files.items():
            text = _jpeg(file, size)
            if text is None:
                broken.append(str(picture))
            else:
                found[str(picture)] = text
            if sum(map(len, found.values())) > most_bytes and size != SIZES_PX[-1]:
                break  # too large: the next size
        else:
            if sum(map(len, found.values())) <= most_bytes:
                return found, _words(len(files), 0, broken)
    kept: dict[str, str] = {}
    for picture, text in found.items():
        if sum(map(len, kept.values())) + len(text) <= most_bytes:
            kept[picture] = text
    return kept, _words(len(files), len(found) - len(kept), broken)


def _words(total: int, left_out: int, broken: list[str]) -> list[str]:
    said = []
    if left_out:
        said.append(
            f"{left_out} of {total} pictures were left out, to keep the file below 15 MB; their maps stand for them."
        )
    if broken:
        said.append(f"{len(broken)} of {total} pictures could not be read as images and were left out.")
    return said


def _jpeg(file: Path, size: int) -> str | None:
    """The picture with this many pixels along its longer side at most; None if it cannot be read."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            small = image.convert("RGB")
            small.thumbnail((size, size))
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    held = io.BytesIO()
    small.save(held, "JPEG", quality=QUALITY, optimize=True)
    return PREFIX + base64.b64encode(held.getvalue()).decode()
