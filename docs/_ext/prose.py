"""Docstrings as they are written here: plain prose, code in `backquotes`, formulas and lists indented.

Sphinx reads docstrings as reStructuredText, where *, _ and | have meanings that these do not have.
"""

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(`[^`]+`)")
SPECIAL = re.compile(r"([\\*_|])")
ITEM = re.compile(r"- ")


def marked_up(text: str) -> str:
    """A line of prose with its code marked as such and nothing else."""
    parts = CODE.split(text)
    return "".join(f"`{part}`" if CODE.fullmatch(part) else SPECIAL.sub(r"\\\1", part) for part in parts)


def translated(lines: list[str]) -> list[str]:
    """A docstring's lines in reStructuredText: paragraphs and lists as such, what is indented as it stands."""
    made: list[str] = []
    inside = item = False  # an indented block; a list's item, whose further lines are indented as well
    for line in lines:
        if not line.strip():
            item = False
            made.append("")
            continue
        indented = line[0].isspace() and not item
        if indented and not inside:
            made += ["", "::", ""]
        elif inside and not indented:
            made.append("")
        inside = indented
        if ITEM.match(line) and not item:
            made.append("")
        item = item or bool(ITEM.match(line))
        made.append(line if indented else marked_up(line))
    return [*made, ""]


def rewrite(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring in place, as autodoc wants it."""
    lines[:] = translated(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Have every docstring rewritten."""
    app.connect("autodoc-process-docstring", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
