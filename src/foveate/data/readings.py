"""What a study starts from, wherever it was read: everybody's scan paths, and every observer's data with their maps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset, Observed, chosen_observers
from foveate.data.density import choose_bandwidth, density_maps, leave_one_out_maps
from foveate.data.grid import Grid
from foveate.data.project import Project
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

# Standard deviations that are tried for maps made from fixations, in degrees.
BANDWIDTHS_DEG = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)

# Endings of image files, in the order in which they are sought.
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff")


@dataclass(frozen=True, eq=False)
class Readings:
    """Scan paths of everybody, and the data of each observer; `said` has what reading them has to say, in lines."""

    paths: ScanPaths
    data: Observed
    said: tuple[str, ...] = ()
    pictures: Mapping[Any, Path] = field(default_factory=dict)  # files of the pictures themselves
    missing: str = ""  # a sentence on pictures without a file, where the settings name their folder

    @classmethod
    def of(cls, data: Dataset) -> "Readings":
        """A data set whose maps are everybody's."""
        return cls(data.paths, data)

    @property
    def grid(self) -> Grid:
        """The grid of all maps."""
        return self._parts[0].maps.grid

    @property
    def gain_bits(self) -> float:
        """What the maps tell of where fixations are: the mean of log2 p(cell) over the uniform density, in bits.

        Forced fixations do not count. Of maps made without the observer it is what they predict of that observer.
        """
        each = [part.maps.at(part.paths)[part.paths.scored(0)] for part in self._parts]
        return float(np.log2(np.concatenate(each) * self.grid.cells).mean())

    @property
    def _parts(self) -> list[Dataset]:
        return [self.data] if isinstance(self.data, Dataset) else list(self.data.values())

    def chosen(self, observers: Iterable | None) -> Observed:
        """The data of these observers (None: all)."""
        if isinstance(self.data, Dataset):
            return self.data if observers is None else self.data.select(observers=observers)
        return chosen_observers(self.data, observers)


CELLS = 64  # along each side of a map, unless the settings say otherwise


def read_settings(file: str | Path, *, cells: int | None = None) -> Readings:
    """What a settings file names, as the commands read it: `.paths` of everybody, `.data` with maps, `.said`.

    Where maps are made without each observer's own fixations, `.data` has a data set for every observer by name.
    """
    project = Project.read(file)
    return read_project(project, cells or project.study.cells or CELLS)


def read_project(project: Project, cells: int) -> Readings:
    """What the settings name: the table, and its maps with `cells` on each side."""
    paths, report = project.paths()
    grid = Grid(cells, cells, paths.extent)
    pictures = _pictures(project, paths)
    if project.maps.made_from == "images":
        maps = _from_images(project, paths, grid)
        return Readings(paths, Dataset(paths, maps), (str(report),), *pictures)
    bandwidth, words = _bandwidth(project, paths, grid)
    said, share = (str(report), words), project.maps.uniform_share
    if not project.maps.leave_one_out:
        return Readings(
            paths, Dataset(paths, density_maps(paths, grid, bandwidth, uniform_share=share)), said, *pictures
        )
    own = leave_one_out_maps(paths, grid, bandwidth, uniform_share=share)
    each = {}
    for observer in paths.observers:
        some = paths.select(observers=[observer])
        each[observer] = Dataset(some, own[observer].select(some.pictures))
    return Readings(paths, each, said, *pictures)


def _bandwidth(project: Project, paths: ScanPaths, grid: Grid) -> tuple[float, str]:
    """The Gaussian's standard deviation in degrees, and what to say of the maps."""
    who = "without the observer's own fixations" if project.maps.leave_one_out else "from all observers' fixations"
    wanted = project.maps.bandwidth_deg
    if not isinstance(wanted, str):
        return float(wanted), f"Maps {who}, smoothed with {wanted:g} deg."
    if len(paths.observers) < 2:
        raise InputError(
            f"{project.file.name}, [maps]: bandwidth_deg = 'best' needs two observers or more, and there is "
            f"{some_of(paths.observers)}; give a number of degrees."
        )
    found = choose_bandwidth(paths, grid, BANDWIDTHS_DEG, uniform_share=project.maps.uniform_share)
    gain = found.held_out_bits.max()
    return found.best_deg, (
        f"Maps {who}, smoothed with {found.best_deg:g} deg, the best of {some_of(BANDWIDTHS_DEG, 10)}: they predict "
        f"an observer who is left out with {gain:.2f} bits per fixation over uniform."
    )


def _from_images(project: Project, paths: ScanPaths, grid: Grid) -> SaliencyMaps:
    folder = project.beside(str(project.maps.folder))
    files = _files(folder, paths.pictures)
    missing = [picture for picture in paths.pictures if picture not in files]
    if missing:
        raise InputError(
            f"{folder}: no image of picture {some_of(missing)}; each map must be named after its picture, with one of "
            f"the endings {some_of(IMAGES, 10)}."
        )
    maps = SaliencyMaps.from_images(files, paths.extent).resample(grid)
    return maps.with_uniform_share(project.maps.uniform_share)


def _pictures(project: Project, paths: ScanPaths) -> tuple[dict[Any, Path], str]:
    """The pictures' own files, where the settings name their folder, and a sentence on those that have none."""
    if project.picture.folder is None:
        return {}, ""
    files = _files(project.beside(project.picture.folder), paths.pictures)
    without = [picture for picture in paths.pictures if picture not in files]
    if not without:
        return files, ""
    shown = "it is" if len(without) == 1 else "they are"
    return files, (
        f"{project.file.name}, [picture]: folder = {project.picture.folder!r} has no file for {len(without)} of "
        f"{len(paths.pictures)} pictures: {some_of(without)}; {shown} shown without background (name each file as the "
        "table names its picture)."
    )


def _files(folder: Path, pictures: Iterable) -> dict[Any, Path]:
    """The image file of every picture that has one in the folder: named after it, with or without an ending."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; check the name.")
    there = {file.name: file for file in folder.iterdir() if file.is_file()}
    found = {}
    for picture in pictures:
        names = [str(picture), *(f"{picture}{ending}" for ending in IMAGES)]
        known = next((there[name] for name in names if name in there), None)
        if known is not None:
            found[picture] = known
    return found
