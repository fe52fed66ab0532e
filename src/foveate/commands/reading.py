"""The data and observers that a user names on the command line."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.data.readings import Readings
    from foveate.data.scanpaths import ScanPaths

EXAMPLE_DATA, SETTINGS_ENDING = "example", ".toml"


def read(source: str | None, cells: int) -> "Readings":
    """What a settings file names, the built-in example, or potsdam35 (None: the folder that the environment names)."""
    from foveate.data.dataset import Dataset
    from foveate.data.grid import Grid
    from foveate.data.readers.potsdam35 import VARIABLE, read_potsdam35
    from foveate.data.readers.sources import ENDINGS
    from foveate.data.readings import Readings, read_project

    if source is not None and source.endswith(SETTINGS_ENDING):
        from foveate.data.project import Project

        return read_project(Project.read(source), cells)
    if source == EXAMPLE_DATA:
        from foveate.example import example_data

        data = example_data().data
        grid = Grid(cells, cells, data.maps.grid.extent)
        return Readings.of(data if grid == data.maps.grid else Dataset(data.paths, data.maps.resample(grid)))
    if source is None and not os.environ.get(VARIABLE):
        raise InputError(
            f"no data: say --data FILE{SETTINGS_ENDING} for your own, --data FOLDER for potsdam35 (or set the "
            f"environment variable {VARIABLE} to it), or --data {EXAMPLE_DATA}."
        )
    if source is not None and (Path(source).suffix.lower() in ENDINGS or Path(source).is_file()):
        raise InputError(
            f"--data {source}: give a settings file (FILE{SETTINGS_ENDING}); `foveate init {source}` writes one for a "
            "table."
        )
    return Readings.of(read_potsdam35(source, cells=cells))


def chosen_observers(paths: "ScanPaths", names: str) -> list:
    """The observers that the user named, each once; those of the data are numbers or text. 1-6 is a range."""
    if names.strip() == "all":
        return paths.observers
    known = {str(observer): observer for observer in paths.observers}
    wanted = [name for part in names.split(",") if part.strip() for name in _written_out(part.strip(), known)]
    if not wanted:
        raise InputError(f"--observers {names!r}: say 'all', or names with commas between.")
    chosen = list(dict.fromkeys(known.get(name, name) for name in wanted))
    paths.select(observers=chosen)  # refuses unknown ones
    return chosen


def _written_out(name: str, known: dict) -> list[str]:
    """A range of numbers as its numbers, anything else as it is."""
    first, dash, last = name.partition("-")
    if name in known or not dash or not (first.isdecimal() and last.isdecimal()):
        return [name]
    if int(first) > int(last):
        raise InputError(f"--observers {name}: a range goes up, such as 1-6.")
    return [str(number) for number in range(int(first), int(last) + 1)]
