"""`foveate check`: what a table of fixations holds, in words and in a picture, and every problem in it."""

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import AsJson, Cells
from foveate.commands.plausibility import usual_or_not, warnings
from foveate.commands.reading import SETTINGS_ENDING
from foveate.errors import InputError, counted

if TYPE_CHECKING:
    from foveate.data.project import Project
    from foveate.data.readers.reports import ReadReport
    from foveate.data.readings import Readings
    from foveate.data.scanpaths import ScanPaths

HELP = (
    "Read the data that a settings file names, say in plain words what is in them, draw it, name every row that "
    "cannot be used as it is, and warn of numbers that no eye makes. Nothing is fitted."
)
SHORT_HELP = "Say what a table of fixations holds, and what is wrong with it."
EXAMPLE = "Example: foveate check study.toml --figure check"
FEWEST = 3  # fixations of a path in which there is something to predict
MOST_SHOWN = 10  # rows with a problem; --json has all


def check(
    settings: Annotated[
        Path, typer.Argument(help="A settings file, as `foveate init` writes it.", metavar="FILE", show_default=False)
    ],
    figure: Annotated[
        Path | None, typer.Option(help="Draw the data into this file (.png and .svg are written).", show_default=False)
    ] = None,
    cells: Cells = 64,
    as_json: AsJson = False,
) -> None:
    """Read, judge, draw, print."""
    from foveate.data.project import Project

    if settings.suffix != SETTINGS_ENDING:
        raise InputError(
            f"{settings}: give a settings file (FILE{SETTINGS_ENDING}); `foveate init {settings}` writes one for a "
            "table."
        )
    project = Project.read(settings)
    problems, report, paths = _problems(project)
    found = {"settings": str(settings), "problems": list(chain(*problems.values())), "rows": report.rows} | _contents(
        paths
    )
    readings = None if found["problems"] else _readings(project, cells)
    found["said"] = list(readings.said[1:]) if readings is not None else []
    found["cells"] = cells
    chosen = found["fixations"] > found["forced"]  # without any, maps have nothing to predict
    found["gain_bits"] = readings.gain_bits if readings is not None and chosen else None
    found["warnings"] = warnings(found, project.data.unit(settings.name), project.data.duration_unit)
    if readings is not None and readings.missing:
        found["warnings"].append(readings.missing)
    found["figures"] = _draw(paths, readings, figure) if figure is not None else []
    if as_json:
        print(json.dumps(found))
    else:
        print("\n".join(_words(found, {kind: len(rows) for kind, rows in problems.items()}, report)))
    if found["problems"]:
        raise typer.Exit(1)


def _problems(project: "Project") -> "tuple[dict[str, list[str]], ReadReport, ScanPaths]":
    """Every row that would stop a fit, each named, by what is wrong with it; and what is left without them.

    The report is of the rows that the settings leave out: no row is in both.
    """
    from dataclasses import replace

    from foveate.data.readers.reports import MISSING, OUTSIDE

    lenient = replace(project, data=replace(project.data, outside="drop", missing="drop", shortest=1))
    paths, report = lenient.paths()
    problems = {}
    for kind, rows, setting, words in (
        (OUTSIDE, report.outside, "outside", "lies outside the picture"),
        (MISSING, report.missing, "missing", "has no position"),
    ):
        if getattr(project.data, setting) == "error":
            problems[kind] = [f"{row}: {words}." for row in rows]
    left_out = tuple(row for row in report.left_out if row.why not in problems)
    short = [paths.name_of(path) for path in (paths.length < project.data.shortest).nonzero()[0]]
    problems["too short"] = [f"{name}: shorter than {project.data.shortest} fixations." for name in short]
    return problems, replace(report, left_out=left_out), paths


def _readings(project: "Project", cells: int) -> "Readings":
    from foveate.data.readings import read_project

    return read_project(project, cells)


def _contents(paths: "ScanPaths") -> dict[str, Any]:
    """The data in numbers."""
    import numpy as np

    from foveate.evaluate.saccades import Saccades

    amplitude, scored = Saccades.of(paths).amplitude_deg, paths.scored(FEWEST - 1)
    pictures_of = {who: len(set(paths.picture[paths.observer == who].tolist())) for who in paths.observers}
    return {
        "observers": len(paths.observers),
        "pictures": len(paths.pictures),
        "paths": len(paths),
        "fixations": paths.fixations,
        "forced": int(paths.forced.sum()),
        "steps": int(scored.sum()),
        "shortest_path": int(paths.length.min()),
        "longest_path": int(paths.length.max()),
        "paths_without_steps": int((~scored.any(axis=1)).sum()),
        "fewest_pictures": min(pictures_of.values()),
        "most_pictures": max(pictures_of.values()),
        "median_amplitude_deg": float(np.nanmedian(amplitude)) if len(amplitude) else None,
        "median_duration_s": None if paths.duration_s is None else float(np.nanmedian(paths.duration_s)),
        "width_deg": paths.extent.width_deg,
        "height_deg": paths.extent.height_deg,
    }


def _words(found: dict[str, Any], problems: dict[str, int], report: "ReadReport") -> list[str]:
    """What was found, in a few lines, and then what to do."""
    lines = str(report).splitlines()
    saw = f"{found['fewest_pictures']} to {found['most_pictures']}"
    if found["fewest_pictures"] == found["most_pictures"]:
        saw = f"{found['fewest_pictures']}"
    lines.append(
        f"{counted(found['observers'], 'observer')}, {counted(found['pictures'], 'picture')}; an observer saw {saw} of "
        f"them, with {found['shortest_path']} to {found['longest_path']} fixations on each."
    )
    forced = "; forced ones condition later ones and are not scored" if found["forced"] else ""
    none = f"; {counted(found['paths_without_steps'], 'path')} without any" if found["paths_without_steps"] else ""
    lines.append(f"{counted(found['steps'], 'fixation')} can be predicted (the third of a path and on{forced}){none}.")
    if found["median_amplitude_deg"] is not None:
        lines.append(
            f"The picture is {found['width_deg']:.4g} x {found['height_deg']:.4g} deg; half of all saccades are "
            f"shorter than {found['median_amplitude_deg']:.3g} deg, {usual_or_not(found['median_amplitude_deg'])}"
        )
    lines += found["said"]
    if found["figures"]:
        lines.append(f"The picture of it is {found['figures'][-1]}.")
    lines += [f"Warning: {it}" for it in found["warnings"]]
    if found["problems"]:
        kinds = ", ".join(f"{number:,} {kind}" for kind, number in problems.items() if number)
        lines.append(f"{counted(len(found['problems']), 'problem')}: {kinds}.")
        lines += [f"- {it}" for it in found["problems"][:MOST_SHOWN]]
        more = len(found["problems"]) - MOST_SHOWN
        if more > 0:
            lines.append(f"- and {more:,} more; --json lists all.")
        lines.append(
            'Mend these rows, or leave them out with outside = "drop" or missing = "drop" in [data] (and shorter '
            "paths with a smaller `shortest`)."
        )
    else:
        warned = f", with {counted(len(found['warnings']), 'warning')}" if found["warnings"] else ""
        lines.append(f"Ready{warned}: foveate fit --data {found['settings']} --out fits")
    return lines


def _draw(paths: "ScanPaths", readings: "Readings | None", file: Path) -> list[str]:
    from foveate.evaluate.saccades import Saccades
    from foveate.figures.overview import overview
    from foveate.figures.style import journal_style, save

    name = file.with_suffix("") if file.suffix in (".png", ".svg") else file
    try:
        name.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{name.parent}: the folder cannot be made ({error.strerror}); give another.") from error
    with journal_style():
        drawn = overview(paths, Saccades.of(paths).amplitude_deg, readings.pictures if readings is not None else {})
        return [str(it) for it in save(drawn, name.parent, name.name)]
