"""The reference of the command line, made from the program itself: `{foveate-commands}` stands for all of it."""

import re
import subprocess
import sys

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TYPER = (sys.executable, "-m", "typer", "foveate.cli", "utils", "docs", "--name", "foveate")


def reference() -> str:
    """What Typer says about every command, in Markdown; the page's own heading is left to the page."""
    told = subprocess.run(TYPER, capture_output=True, text=True, check=True).stdout
    without_heading = told.removeprefix("# `foveate`\n")
    return re.sub(r"^Example: (.*)$", r"**Example**:\n\n```console\n$ \1\n```", without_heading, flags=re.M)


class Commands(SphinxDirective):
    """Every command with its options and its example."""

    def run(self) -> list[nodes.Node]:
        """The sections, parsed as the page around them is."""
        return self.parse_text_to_nodes(reference(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("foveate-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
