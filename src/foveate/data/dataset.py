"""A data set: scan paths and the map of every picture in them."""

from collections.abc import Iterable
from dataclasses import dataclass

from foveate.data.saliency import SaliencyMaps, check_pairing
from foveate.data.scanpaths import ScanPaths


@dataclass(frozen=True, eq=False)
class Dataset:
    """Scan paths with a saliency map for each picture; the pairing is checked on creation."""

    paths: ScanPaths
    maps: SaliencyMaps

    def __post_init__(self):
        """Refuse pictures without a map, maps without a picture, and maps that are zero at a fixation."""
        check_pairing(self.paths, self.maps)
        self.maps.at(self.paths)

    def __repr__(self) -> str:
        """What is in here, in a line."""
        return f"Dataset({self.paths}, {self.maps})"

    def select(self, observers: Iterable | None = None, pictures: Iterable | None = None) -> "Dataset":
        """These observers' paths on these pictures, with the maps that they need (None: all)."""
        paths = self.paths.select(observers, pictures)
        return Dataset(paths, self.maps.select(paths.pictures))

    def split(self, pictures: Iterable) -> tuple["Dataset", "Dataset"]:
        """(data on all other pictures, data on these pictures): training and test data of a fold."""
        return tuple(Dataset(part, self.maps.select(part.pictures)) for part in self.paths.split(pictures))  # type: ignore[return-value]
