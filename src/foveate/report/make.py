"""A report made from start to end: numbers out of a folder, the page from them, the size kept in bounds."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset
from foveate.data.readers.potsdam35 import VARIABLE
from foveate.report.command_line import without_folders
from foveate.report.figures import figures
from foveate.report.folders import Results, Told
from foveate.report.page import page
from foveate.report.payload import convergence, data_facts, opening, parameters
from foveate.report.pictures import embedded_pictures
from foveate.report.study_tables import study_sections
from foveate.report.viewer import viewer

MOST_BYTES = 15_000_000  # of the file

NO_FIGURES: dict[str, Any] = {"shown": [], "left_out": []}


def _silent(words: str, done: float, total: float) -> None:
    """Tell nothing."""


def payload(
    results: Results,
    each: Mapping[Any, Dataset] | None,
    *,
    source: str | None = None,
    said: tuple[str, ...] = (),
    with_figures: bool = True,
    why_no_data: str = "",
    told: Told = _silent,
) -> dict[str, Any]:
    """Everything that is on the page; without data there is no viewer, and `why_no_data` says why.

    `source` is what the data are called on the command line, and `said` what reading them said. A page is sent to
    others: it names files, but not where they lie on the machine that it is made on.
    """
    named = (source, results.said.get("asked", {}).get("data"), os.environ.get(VARIABLE), results.folder)
    why = without_folders(why_no_data, [it for it in named if it])
    data, notes = None, [f"No scan paths are shown: {why}"]
    if each is not None:
        data, notes = viewer(results, each, told)
    return {
        "about": opening(results, source),
        "convergence": convergence(results),
        "data": data_facts(results, each, said),
        "parameters": parameters(results),
        "tables": study_sections(results.folder) if results.is_study else [],
        "figures": figures(results.folder, results.said.get("figures", ())) if with_figures else NO_FIGURES,
        "viewer": data,
        "viewer_notes": notes,
    }


def with_pictures(found: dict[str, Any], files: Mapping[Any, Path], most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The same with the pictures that fit into what is left of the file's size."""
    if found["viewer"] is None or not files:
        return found
    shown = {str(picture): file for picture, file in files.items() if str(picture) in found["viewer"]["pictures"]}
    left = max(0, most_bytes - len(page(found).encode(errors="replace")) - 10_000)  # for notes and names
    images, said = embedded_pictures(shown, left)
    return found | {"viewer": found["viewer"] | {"images": images}, "viewer_notes": [*found["viewer_notes"], *said]}
