"""Folds over pictures: every picture is held out once, with all that anybody looked at in it.

A fold takes whole pictures away, so that what was learnt from a picture is never tested on it. The training side is
made from the paths on the other pictures and from the maps of the other pictures only, so it cannot hold anything of
the held-out ones, as long as a picture's map was made from that picture's fixations (as those of `density_maps` and the
published ones of potsdam35 are). Two things are outside a fold's reach:

- A map made from all observers' fixations holds those that are scored in it. It is the same for all models, and too
  good for all of them. Leave-one-observer-out maps (`leave_one_out_maps`) do without: give every observer a data set
  with the maps of the others, `Dataset(paths of the observer, maps without the observer)`, and split that one. The same
  maps then serve for training and for testing, since parameters fitted on maps that hold the observer's own fixations
  lean too much on the map.
- What is chosen before the split is chosen with the held-out pictures in sight: choose a bandwidth on training paths.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS
from foveate.errors import InputError, some_of


@dataclass(frozen=True)
class Folds:
    """The test pictures of each fold; folds count from 1, and no picture is in two of them."""

    test_pictures: tuple[tuple[Any, ...], ...]
    seed: int | None = None  # from which they were drawn, if they were

    def __post_init__(self):
        """Refuse folds without pictures, pictures in two folds, and a single fold, which leaves nothing to train on."""
        object.__setattr__(self, "test_pictures", tuple(_names(pictures) for pictures in self.test_pictures))
        if len(self) < 2:
            raise InputError(f"{len(self)} folds: give at least two, so that something is left to train on.")
        for number, pictures in enumerate(self.test_pictures, start=1):
            if not pictures:
                raise InputError(f"fold {number} has no pictures; leave it out, or give it some.")
        twice = [picture for picture, count in Counter(self.pictures).items() if count > 1]
        if twice:
            raise InputError(f"picture {some_of(twice)} stands more than once in the folds; hold each out once.")

    def __len__(self) -> int:
        """Number of folds."""
        return len(self.test_pictures)

    @property
    def pictures(self) -> tuple:
        """All pictures, fold after fold."""
        return tuple(picture for pictures in self.test_pictures for picture in pictures)

    def fold_of(self, picture: Any) -> int:
        """The fold that holds this picture out."""
        for number, pictures in enumerate(self.test_pictures, start=1):
            if picture in pictures:
                return number
        raise InputError(f"picture {picture!r} is in no fold; there are {some_of(list(self.pictures), 10)}.")

    def split(self, data: Dataset, fold: int) -> tuple[Dataset, Dataset]:
        """(training data, test data) of a fold: all observers on the other pictures, all observers on these.

        Folds and data must be of the same pictures. Split before observers are selected: somebody may have seen only
        some of the pictures.
        """
        if not isinstance(data, Dataset):
            raise InputError(f"data is a {type(data).__name__}: give a Dataset, Dataset(paths, maps).")
        if not isinstance(fold, int | np.integer) or not 1 <= fold <= len(self):
            raise InputError(f"fold = {fold!r}: there are folds 1 to {len(self)}.")
        self._check(data)
        return data.split(self.test_pictures[int(fold) - 1])

    def splits(self, data: Dataset) -> Iterator[tuple[int, Dataset, Dataset]]:
        """(fold, training data, test data) of every fold."""
        for fold in range(1, len(self) + 1):
            yield (fold, *self.split(data, fold))

    def _check(self, data: Dataset) -> None:
        seen, held_out = set(data.paths.pictures), set(self.pictures)
        unknown = [picture for picture in self.pictures if picture not in seen]
        if unknown:
            raise InputError(
                f"picture {some_of(unknown)} of the folds not in the data; there are "
                f"{some_of(data.paths.pictures, 10)}. Make folds for these with random_folds(data.paths.pictures, ...)."
            )
        never = [picture for picture in data.paths.pictures if picture not in held_out]
        if never:
            raise InputError(
                f"picture {some_of(never)} of the data in no fold, so it would never be tested; add it to a fold, or "
                "leave it out with data.select(pictures=folds.pictures)."
            )


def potsdam35_folds() -> Folds:
    """The five folds of the published cross-validation of potsdam35."""
    return Folds(POTSDAM35_FOLDS)


def random_folds(pictures: Iterable[Any], count: int, seed: int) -> Folds:
    """`count` folds of these pictures, drawn from a seed; their sizes differ by one at most.

    Pictures are put into the order of a hash of the seed and their name, and dealt out. So the folds are the same with
    every version of every library, and do not depend on the order in which the pictures are given.
    """
    names = _names(pictures)
    if not isinstance(seed, int | np.integer):
        raise InputError(f"seed = {seed!r}: give a whole number.")
    twice = [picture for picture, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(f"picture {some_of(twice)} is given more than once; give each picture once.")
    if not isinstance(count, int | np.integer) or not 2 <= count <= len(names):
        raise InputError(
            f"{count} folds of {len(names)} pictures: give at least 2 folds, and at most as many as there are pictures."
        )
    order = sorted(names, key=lambda picture: hashlib.sha256(f"{seed} {picture!r}".encode()).digest())
    dealt = (order[first :: int(count)] for first in range(int(count)))
    return Folds(tuple(tuple(sorted(fold)) for fold in dealt), int(seed))


def _names(pictures: Iterable[Any]) -> tuple:
    """The pictures, NumPy's numbers and texts as Python's: they are equal, but are not written alike."""
    if isinstance(pictures, str):
        raise InputError(f"pictures = {pictures!r}: give a list, [{pictures!r}].")
    return tuple(picture.item() if isinstance(picture, np.generic) else picture for picture in pictures)
