"""A data set: scan paths and the map of every picture in them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.data.saliency import SaliencyMaps, check_pairing
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of


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
        if paths.forced.any():  # what is scored is a part of the data; without any the name is that of older versions
            digest.update(paths.forced[paths.real].tobytes())
        return digest.hexdigest()[:16]

    def split(self, pictures: Iterable) -> tuple["Dataset", "Dataset"]:
        """(data on all other pictures, data on these pictures): training and test data of a fold."""
        return tuple(Dataset(part, self.maps.select(part.pictures)) for part in self.paths.split(pictures))  # type: ignore[return-value]


# What many observers are fitted to: a data set whose maps are everybody's, or for each observer one with maps of their
# own, such as those made without their fixations.
Observed = Dataset | Mapping[Any, Dataset]


def each_observer(data: Observed) -> dict[Any, Dataset]:
    """The data set of every observer by itself, in their order."""
    if isinstance(data, Dataset):
        return {observer: data.select(observers=[observer]) for observer in data.paths.observers}
    if not isinstance(data, Mapping):
        raise InputError(f"data is a {type(data).__name__}: give a Dataset, or a dictionary of one for each observer.")
    for observer, own in data.items():
        if own.paths.observers != [observer]:
            raise InputError(f"the data of observer {observer!r} are of {some_of(own.paths.observers)}.")
    return dict(data)


def chosen_observers(data: Observed, observers: Iterable | None) -> dict[Any, Dataset]:
    """The same of these observers, in this order (None: all); an unknown one is an error."""
    each = each_observer(data)
    if observers is None:
        return each
    if isinstance(observers, str):
        raise InputError(f"observers = {observers!r}: give a list, [{observers!r}].")
    wanted = list(dict.fromkeys(observers))
    unknown = [name for name in wanted if name not in each]
    if unknown:
        raise InputError(f"observer {some_of(unknown)} not in the data; there are {some_of(list(each), 10)}.")
    return {name: each[name] for name in wanted}


def fingerprint_of(data: Observed) -> str:
    """`Dataset.fingerprint` of the data of many observers."""
    if isinstance(data, Dataset):
        return data.fingerprint()
    each = "".join(own.fingerprint() for own in data.values())
    return hashlib.sha256(each.encode()).hexdigest()[:16]
