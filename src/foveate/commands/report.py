"""`foveate report`: a folder of results as one HTML file, with a viewer of its scan paths."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import Data
from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.data.dataset import Dataset
    from foveate.data.readings import Readings
    from foveate.report.folders import Results

HELP = (
    "Make one HTML file of a folder that `foveate fit`, `foveate compare` or `foveate reproduce` made: settings, "
    "convergence, data, parameters, tables, figures, and a viewer of every scan path with what the models expect at "
    "each step. The file needs no network and nothing beside it: send it to a colleague, or print it."
)
SHORT_HELP = "Make an HTML report of a folder of results."
EXAMPLE = "Example: foveate report fits --data example --out report.html"
READING = 0.3  # how far the bar is when the fits are read


def report(
    folder: Annotated[
        Path,
        typer.Argument(help="A folder that `foveate fit`, `compare` or `reproduce` made.", show_default=False),
    ],
    data: Data = None,
    out: Annotated[Path, typer.Option(help="The HTML file; an earlier report is replaced.")] = Path("report.html"),
    figures: Annotated[bool, typer.Option(help="Put the folder's figures into the page.")] = True,
) -> None:
    """Read the folder and its data, make the page, write it whole."""
    from foveate.commands.outputs import resumable

    said = resumable(out, lambda: _work(folder, data, out, figures))
    print(said)


def _work(folder: Path, source: str | None, out: Path, figures: bool) -> str:
    from foveate.commands.outputs import progress
    from foveate.commands.studies import part_of
    from foveate.execution.cache import keep_compiled
    from foveate.inference.files import write_whole
    from foveate.report.folders import read_results
    from foveate.report.make import payload, with_pictures
    from foveate.report.page import check_own, page

    check_own(out)
    keep_compiled()
    with progress(f"foveate report; the page will be {out}") as tell:
        results = read_results(folder, told=part_of(tell, 0.0, READING))
        each, readings, why = _data(results, source)
        told = part_of(tell, READING, 1.0)
        said = readings.said if readings is not None else ()
        found = payload(
            results,
            each,
            source=source if each is not None else None,
            said=said,
            with_figures=figures,
            why_no_data=why,
            told=told,
        )
        found = with_pictures(found, readings.pictures if readings is not None else {})
        text = page(found)
    try:
        write_whole(out, lambda file: file.write_bytes(text.encode("utf-8", "replace")))
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}); give another file with --out.") from error
    lines = [f"The report is {out}, {len(text) / 1e6:.1f} MB: open it in a browser."]
    wrong = found["convergence"]["fits"] - found["convergence"]["converged"]
    if wrong:
        lines.append(f"NOT CONVERGED: {wrong} of {found['convergence']['fits']} fits; they come first on the page.")
    if each is None:
        lines.append(f"It shows no scan paths: {why}")
    if readings is not None and readings.missing:
        lines.append(f"Warning: {readings.missing}")
    return "\n".join(lines)


def _data(results: "Results", source: str | None) -> "tuple[dict[Any, Dataset] | None, Readings | None, str]":
    """The observers' data with what reading them said, or none and why.

    Data that were asked for must be those of the fits; without --data, those that the folder or the environment names
    are taken if they are.
    """
    from foveate.report.folders import observers_data

    try:
        readings, every = _read(results, source)
        return observers_data(results, every), readings, ""
    except InputError as error:
        if source is not None:
            raise
        return None, None, str(error)


def _read(results: "Results", source: str | None) -> "tuple[Readings, dict[Any, Dataset]]":
    from foveate.commands.reading import chosen_observers, read
    from foveate.commands.reproduce import MAPS, each_with_maps
    from foveate.data.dataset import Dataset, each_observer

    asked = results.said.get("asked", {})
    readings = read(source if source is not None else asked.get("data"), results.cells)
    if asked.get("maps", MAPS[0]) != MAPS[0] and isinstance(readings.data, Dataset):
        return readings, each_with_maps(readings.data, list(results.observers), asked["maps"])
    every = each_observer(readings.data)
    if results.observers:
        return readings, every
    named = chosen_observers(readings.paths, str(asked.get("observers", "all")))
    return readings, {observer: every[observer] for observer in named}
