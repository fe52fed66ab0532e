"""A data set: scan paths and the map of every picture in them."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

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

    def fingerprint(self) -> str:
        """A short name for exactly these scan paths and maps: equal data give equal names, other data other ones."""
        paths, maps, digest = self.paths, self.maps, hashlib.sha256()
        digest.update(repr((paths.observer.tolist(), paths.picture.tolist(), paths.length.tolist())).encode())
        digest.update(repr((list(maps.pictures), maps.grid)).encode())
        for values in (paths.x_deg[paths.real], paths.y_deg[paths.real], maps.values):
            digest.update(np.ascontiguousarray(values, dtype=np.float64).tobytes())
        return digest.hexdigest()[:16]

    def split(self, pictures: Iterable) -> tuple["Dataset", "Dataset"]:
        """(data on all other pictures, data on these pictures): training and test data of a fold."""
        return tuple(Dataset(part, self.maps.select(part.pictures)) for part in self.paths.split(pictures))  # type: ignore[return-value]
