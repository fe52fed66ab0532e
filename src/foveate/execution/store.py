"""A folder of finished fits: one netCDF file per observer, and `run.json` with what they have in common.

Every file is written whole or not at all, so a run that is killed at any time leaves finished fits and at most a
temporary file, which the next run removes. Nothing that belongs to another run is ever written over.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jax
import numpy as np

from foveate.data.dataset import Observed, chosen_observers, fingerprint_of
from foveate.errors import InputError, some_of
from foveate.execution.graph import completed
from foveate.execution.places import Place
from foveate.execution.run import Run
from foveate.execution.tasks import FitTask
from foveate.inference.files import write_whole
from foveate.inference.fit import fit_each, observer_key
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Progress
from foveate.model.description import describe, same_structure

RUN = "run.json"
PREFIX, ENDING = "observer-", ".nc"

# What an interrupted write leaves behind.
LEFTOVER = re.compile(rf"\.({re.escape(RUN)}|{PREFIX}.*{re.escape(ENDING)})\.[0-9a-f]{{32}}\.tmp")

# File systems take names of up to 255 bytes, with the rest of a temporary file's name.
LONGEST_NAME = 150


@dataclass(frozen=True, eq=False)
class FitStore:
    """The fits of one run in a folder; `resume` opens one to fit, `read` one that is there."""

    folder: Path
    run: Run

    @classmethod
    def resume(cls, folder: str | Path, run: Run) -> "FitStore":
        """The store of a run: an empty or new folder, or one that holds fits of the same run. Writes nothing."""
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file; give the name of a folder.")
        if not (place / RUN).exists():
            others = (
                [it.name for it in sorted(place.iterdir()) if not LEFTOVER.fullmatch(it.name)] if place.exists() else []
            )
            if others:
                raise InputError(
                    f"{place} holds {some_of(others, 3)} and no {RUN}: it is not a folder of fits; nothing was "
                    "written: give a new or an empty one."
                )
            return cls(place, run)
        held = cls.read(place, tuple({type(part) for part in run.model.parts})).run
        differences = held.differences(run)
        if differences:
            raise InputError(
                f"{place} holds fits with {'; '.join(differences)}: nothing was overwritten; give another folder, or "
                "the settings that it was made with."
            )
        return cls(place, run)

    @classmethod
    def read(cls, folder: str | Path, parts: tuple[type, ...] = ()) -> "FitStore":
        """The store in a folder; `parts` are the policies and choices of one's own that its model is made of."""
        place = Path(folder)
        if not place.is_dir():
            raise InputError(f"there is no folder {place}; give one that `foveate fit` made.")
        file = place / RUN
        if not file.is_file():
            within = sorted({str(it.parent) for it in place.glob(f"*/*/*/{RUN}")})  # where studies keep theirs
            where = f", such as {within[0]}, one of {len(within)} with fits in it" if within else ""
            raise InputError(f"{place} holds no {RUN}: give a folder that `foveate fit` made{where}.")
        try:
            return cls(place, Run.from_dict(json.loads(file.read_text(encoding="utf-8")), parts))
        except InputError as error:
            raise InputError(f"{file}: {error}") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"{file} is not one that `foveate fit` wrote, or was changed: restore it, or fit into another folder."
            ) from error

    # --- reading ---------------------------------------------------------------------------------------------------

    def file_of(self, observer: int | str) -> Path:
        """Where the fit of an observer is, or will be: odd characters are written as %xx, as in web addresses."""
        name = quote(str(observer), safe="")
        same = [other for other in self.run.observers if str(other).casefold() == str(observer).casefold()]
        if len(same) > 1:  # some file systems do not tell 'Ann' from 'ann'
            name = "".join(map(_plain_or_hex, str(observer)))
        if len(name) > LONGEST_NAME:
            name = f"{name[:100]}-{hashlib.sha256(str(observer).encode()).hexdigest()[:32]}"
        return self.folder / f"{PREFIX}{name}{ENDING}"

    def finished(self) -> list[int | str]:
        """The observers whose fits are complete, in the order of the data."""
        return [observer for observer in self.run.observers if self.file_of(observer).exists()]

    def load(self, observer: int | str, data: str | None = None) -> Posterior:
        """The fit of an observer; a file that is damaged or belongs to another run is an error that names it.

        `data` is the fingerprint of what the fit has to have seen, for those who have the data at hand.
        """
        file = self.file_of(observer)
        parts = {type(part) for part in self.run.model.parts}
        posterior = Posterior.load(file, tuple(parts))
        differ = self._differences(posterior, observer, data)
        if differ:
            raise InputError(
                f"{file} belongs to another run than the rest of its folder (it differs in {', '.join(differ)}): "
                "delete it and fit again."
            )
        return posterior

    def _differences(self, posterior: Posterior, observer: int | str, data: str | None) -> list[str]:
        """In what a fit is not one of this run, in words."""
        run, samples, said = self.run, posterior.samples, posterior.provenance
        stamp, key = run.stamp, np.asarray(jax.random.key_data(observer_key(run.key, observer)))
        settings = stamp["settings"].items()
        same = {
            "observer": posterior.observer == observer,
            "model": same_structure(run.model, describe(posterior.model)),
            "seed": said.get("key") == key.ravel().tolist(),
            "data": data is None or said.get("data", data) == data,
            # where one sampler took over from another, it is the one that was asked for that counts
            "sampler": samples.settings.get("instead_of", samples.sampler) == run.sampler,
            "settings": all(samples.settings.get(name, value) == value for name, value in settings),
        }
        # Fits that were saved from Python have no stamp, but their version.
        theirs = said.get("run", stamp | {"version": said.get("versions", {}).get("foveate", run.version)})
        return [name for name in same | stamp if not same.get(name, True) or theirs.get(name) != stamp.get(name)]

    def load_all(self) -> list[Posterior]:
        """All finished fits, in the order of the data."""
        expected = {self.file_of(observer).name for observer in self.run.observers}
        strays = [it.name for it in sorted(self.folder.glob(f"{PREFIX}*{ENDING}")) if it.name not in expected]
        if strays:
            raise InputError(f"{self.folder} holds {some_of(strays, 3)} of no observer in its data: move it away.")
        return [self.load(observer) for observer in self.finished()]

    # --- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep the folder for oneself while writing, and remove what an interrupted run left behind."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder}: the folder cannot be made ({error.strerror}); give another.") from error
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise InputError(f"{self.folder}: nothing can be written there; give another folder, or its permissions.")
        with locked(self.folder):
            self.resume(self.folder, self.run)  # once more: another run may have been here in the meantime
            for file in self.folder.iterdir():
                if LEFTOVER.fullmatch(file.name):
                    file.unlink(missing_ok=True)
            yield

    def begin(self) -> None:
        """Write `run.json` if it is not there yet."""
        if not (self.folder / RUN).exists():
            write_whole(self.folder / RUN, self._write_run)

    def save(self, posterior: Posterior) -> Path:
        """Write a fit into its file, after `run.json` if that is not there yet."""
        file = self.file_of(posterior.observer)
        try:
            self.begin()
            return replace(posterior, provenance={**posterior.provenance, "run": self.run.stamp}).save(file)
        except OSError as error:
            raise InputError(
                f"{file} cannot be written ({error.strerror or error}); finished fits stay: mend that and go on."
            ) from error

    def _write_run(self, file: Path) -> None:
        file.write_text(json.dumps(self.run.to_dict(), indent=2) + "\n", encoding="utf-8")

    def fit_each(
        self,
        data: Observed,
        observers: Iterable[int | str] | None = None,
        *,
        workers: int | None = None,
        place: Place | None = None,
        report: Callable[[Any, Progress], None] | None = None,
    ) -> Iterator[Posterior]:
        """The fits of these observers (None: all): finished ones from their files, then the others as they come.

        `data` are those of the run. Each new fit is saved before it is given out. Which ones are fitted together, or
        were fitted before, changes nothing in the numbers; nor does a `place` other than threads of this process, of
        which there are `workers`.
        """
        if fingerprint_of(data) != self.run.data:
            raise InputError("these are not the data of the run: give the whole data set that it was made with.")
        wanted, run = chosen_observers(data, observers), self.run
        with self.writing():
            finished = [observer for observer in self.finished() if observer in wanted]
            seen = {observer: wanted[observer].fingerprint() for observer in finished}
            yield from [self.load(*it) for it in seen.items()]  # all at once: a damaged one ends it here
            missing = [observer for observer in wanted if observer not in finished]
            if not missing:
                return
            sampler = run.sampler
            if sampler == "hierarchy":
                raise InputError(f"{self.folder} holds a population: `foveate population` fits its observers together.")
            if place is not None:
                tasks = [FitTask(run, wanted[observer], {"observer": observer}) for observer in missing]
                with place:
                    for _, posterior in completed(tasks, place):
                        self.save(posterior)
                        yield posterior
                return
            for posterior in fit_each(
                run.model, data, run.key, observers=missing, sampler=sampler, workers=workers, report=report,
                **run.settings,
            ):  # fmt: skip
                self.save(posterior)
                yield posterior


def _plain_or_hex(letter: str) -> str:
    """A letter as it is if it is small, else its bytes as %xx."""
    return quote(letter, safe="") if not letter.isupper() else "".join(f"%{byte:02x}" for byte in letter.encode())


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the system lets go of it when this process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two runs at once would do the same work twice, and no harm
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing into {folder}: wait for it, or give another folder.") from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        with suppress(OSError):
            os.close(place)
