"""One model fitted to parts of the pictures that each observer saw: halves of them, and subsets that grow.

*Halves.* Pictures are dealt into two halves, the same for all observers, as often as is asked for.

*Nested subsets.* The pictures of a smaller one are all in a larger one, again the same for all observers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveate.data.dataset import Dataset, Observed, each_observer
from foveate.errors import InputError, some_of
from foveate.evaluate.folds import random_folds
from foveate.execution.foldfits import FoldFits
from foveate.model.model import DRAWN_FROM_MAP, Model

FEWEST_OBSERVERS = 3  # two always lie on a line
FEWEST_PICTURES = 2  # of an observer in a half

# Folds 2k - 1 and 2k are the halves of split k, NESTED + n is the subset of n pictures: whatever is asked for later, a
# folder can be gone on with. A seed has as many orders of the pictures.
NESTED = 1000
MOST_SPLITS = NESTED // 2 - 1
ALL = 0  # stands for as many pictures as an observer saw


@dataclass(frozen=True, eq=False)
class PictureSubsets:
    """One model fitted to parts of what each observer saw: both halves of every split, and nested subsets.

    To `fits` every part is a fold; here that stands for the pictures that a fit sees.
    """

    data: Mapping[Any, Dataset]  # of each observer
    pictures: Mapping[int, tuple]  # of a half; of a nested subset all, in the order in which it grows
    fits: FoldFits

    @classmethod
    def of(
        cls,
        folder: str | Path,
        model: Model,
        data: Observed,
        *,
        seed: int,
        splits: int = 1,
        numbers: Iterable[int] = (),
    ) -> "PictureSubsets":
        """For all observers of a data set, or for each observer's own, with pictures dealt in an order from the seed.

        `numbers` says how many pictures the nested subsets have, ALL as many as an observer saw.
        """
        each = each_observer(data)
        every = sorted({picture for own in each.values() for picture in own.paths.pictures})
        if not model.labels:
            raise InputError(f"model {model.name!r} has no parameters: there is nothing to fit.")
        if len(each) < FEWEST_OBSERVERS:
            raise InputError(
                f"{len(each)} observer{'s' * (len(each) > 1)} ({some_of(list(each))}): reliability is how well "
                f"observers are told apart; give at least {FEWEST_OBSERVERS}."
            )
        if len(every) < 2 * FEWEST_PICTURES:
            raise InputError(f"{len(every)} pictures: each half needs {FEWEST_PICTURES} at least; give more pictures.")
        if not 1 <= splits <= MOST_SPLITS:
            raise InputError(f"{splits} splits: give 1 to {MOST_SPLITS}.")
        (fewest, who), *_, (most, _) = sorted((len(own.paths.pictures), observer) for observer, own in each.items())
        wanted = sorted({ALL if number == fewest == most else number for number in numbers})
        for number in wanted:
            if not 0 <= number <= min(fewest, NESTED - 1):
                raise InputError(f"{number} pictures: give 1 to {fewest}, as many as observer {who!r} saw, or all.")
        pictures: dict[int, tuple] = {}
        for split in range(1, splits + 1):
            pictures[2 * split - 1], pictures[2 * split] = random_folds(every, 2, NESTED * seed + split).test_pictures
        grown = random_folds(every, len(every), NESTED * seed).pictures
        pictures |= {NESTED + number: grown for number in wanted}

        def part(model: str, fold: int, observer: Any) -> Dataset:
            return each[observer].select(pictures=_seen(each[observer], pictures, fold))

        made = cls(
            each, pictures, FoldFits(Path(folder), {model.name: model}, tuple(each), tuple(pictures), seed, part)
        )
        made._check()
        return made

    @property
    def model(self) -> Model:
        """The one that is fitted."""
        return next(iter(self.fits.models.values()))

    @property
    def splits(self) -> list[int]:
        """Their numbers, from 1."""
        return [(fold + 1) // 2 for fold in self.fits.folds if fold < NESTED and fold % 2]

    def called(self, fold: int) -> str:
        """A part in words."""
        if fold < NESTED:
            return f"half {2 - fold % 2} of split {(fold + 1) // 2}"
        return "all pictures" if fold == NESTED + ALL else f"subset of {fold - NESTED}"

    def pictures_of(self, fold: int, observer: Any) -> list:
        """The pictures that a fit sees."""
        return _seen(self.data[observer], self.pictures, fold)

    def _check(self) -> None:
        """Refuse parts that are too small, before anything is fitted."""
        numbers = len(self.model.labels)
        for fold in self.fits.folds:
            for observer, own in self.data.items():
                where = f"observer {observer!r}, {self.called(fold)}"
                seen = self.pictures_of(fold, observer)
                if fold < NESTED and len(seen) < FEWEST_PICTURES:
                    raise InputError(
                        f"{where}: they saw {len(seen)} of its pictures, and a half needs {FEWEST_PICTURES} at least; "
                        "leave the observer out, or give another seed."
                    )
                steps = int(own.select(pictures=seen).paths.scored(DRAWN_FROM_MAP).sum())
                if steps < numbers:
                    raise InputError(
                        f"{where}: {steps} steps (fixations from the third on) to fit {numbers} numbers; there must "
                        "be at least as many: give more pictures, or leave the observer out."
                    )


def _seen(own: Dataset, pictures: Mapping[int, tuple], fold: int) -> list:
    """The pictures of a part that the observer saw."""
    there = set(own.paths.pictures)
    seen = [picture for picture in pictures[fold] if picture in there]
    return seen[: fold - NESTED] if fold > NESTED else seen
