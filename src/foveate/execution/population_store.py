"""A folder with a hierarchical fit: a file per observer as in every folder of fits, and `population.nc` beside them.

While it is fitted, `start.nc` holds the population that climbs found, and `chains.nc` all draws so far: a run that is
killed at any time goes on from there, with the same numbers in the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from foveate.data.dataset import Observed, each_observer, fingerprint_of
from foveate.errors import InputError
from foveate.execution.run import Run
from foveate.execution.store import FitStore
from foveate.inference.population import Population
from foveate.inference.population_chains import Checkpoint
from foveate.inference.population_files import (
    read_arrays,
    read_learnt,
    read_population,
    write_arrays,
    write_learnt,
    write_population,
)
from foveate.inference.population_posterior import SAMPLER, SETTINGS, PopulationPosterior, fit_population
from foveate.inference.samples import Report, silent
from foveate.model.model import Model

POPULATION, START, CHAINS = "population.nc", "start.nc", "chains.nc"


@dataclass(frozen=True, eq=False)
class PopulationStore:
    """A hierarchical fit in a folder; `resume` opens one to fit, `read` one that is there."""

    fits: FitStore  # of the observers: what reads a folder of fits reads this one

    @classmethod
    def resume(
        cls, folder: str | Path, model: Model, data: Observed, seed: int, settings: Mapping[str, int] | None = None
    ) -> "PopulationStore":
        """A new or empty folder, or one that holds this fit or its beginning; `settings` as `fit_population` has."""
        chosen = SETTINGS | dict(settings or {})
        unknown = [name for name in chosen if name not in SETTINGS]
        if unknown:
            raise InputError(f"a hierarchical fit has no setting {unknown[0]!r}; it has {', '.join(SETTINGS)}.")
        observers = tuple(each_observer(data))
        run = Run(model, fingerprint_of(data), observers, seed, SAMPLER, chosen, version("foveate"))
        return cls(FitStore.resume(folder, run))

    @classmethod
    def read(cls, folder: str | Path, parts: tuple[type, ...] = ()) -> "PopulationStore":
        """The fit in a folder; `parts` are the policies and choices of one's own that its model is made of."""
        fits = FitStore.read(folder, parts)
        if fits.run.sampler != SAMPLER:
            raise InputError(f"{folder} holds separate fits: give a folder that `foveate population` made.")
        return cls(fits)

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.fits.folder

    @property
    def finished(self) -> bool:
        """Whether the fit is complete."""
        return (self.folder / POPULATION).exists()

    def load(self) -> PopulationPosterior:
        """The population and its observers."""
        if not self.finished:
            raise InputError(f"{self.folder}: the fit is not finished; run `foveate population` again to go on.")
        posteriors = {observer: self.fits.load(observer) for observer in self.fits.run.observers}
        parts = tuple({type(part) for part in self.fits.run.model.parts})
        return read_population(self.folder / POPULATION, posteriors, parts)

    def fit(self, data: Observed, *, threads: int | None = None, report: Report = silent) -> PopulationPosterior:
        """The fit: from its files if it is finished, else from where it stopped."""
        run = self.fits.run
        if fingerprint_of(data) != run.data:
            raise InputError("these are not the data of the run: give the whole data set that it was made with.")
        with self.fits.writing():
            if self.finished:
                return self.load()
            self.fits.begin()
            start, chains = self.folder / START, self.folder / CHAINS
            population = read_learnt(start) if start.exists() else None
            held = Checkpoint.of(read_arrays(chains)[0]) if population is not None and chains.exists() else None

            def keep(found: Population | Checkpoint) -> None:
                if isinstance(found, Population):
                    write_learnt(start, found)
                else:
                    write_arrays(chains, found.arrays(), {})

            posterior = fit_population(
                run.model, data, run.key, threads=threads, report=report, population=population, start=held, keep=keep,
                **run.settings,
            )  # fmt: skip
            for own in posterior.posteriors.values():
                self.fits.save(own)
            write_population(self.folder / POPULATION, posterior)  # last: it says that all is there
            chains.unlink(missing_ok=True)
        return self.load()
