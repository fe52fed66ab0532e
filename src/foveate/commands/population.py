"""`foveate population`: a population and its observers fitted together, into a folder; resumes where it stopped."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.messages import INTERRUPTED, leave_at_once, say
from foveate.commands.options import AsJson, Cells, Data, Observers, Seed
from foveate.commands.outputs import FITTED
from foveate.errors import InputError, counted, instead_of

if TYPE_CHECKING:
    from foveate.execution.population_store import PopulationStore
    from foveate.inference.population_posterior import PopulationPosterior
    from foveate.inference.samples import Progress

HELP = (
    "Fit a model to all observers together: their parameters come from a population, which is learnt, so that an "
    "observer with few data takes more from the others. Makes a folder with a file per observer, as `foveate fit` "
    "does, and population.nc. Interrupt it as you like: the same command goes on where it stopped, with the same "
    "numbers."
)
SHORT_HELP = "Fit a population and its observers together; resumes where it stopped."
EXAMPLE = "Example: foveate population --data example --model local_saliency --out population"
TABLE = "population"

# Shares of the work that the stages take, roughly.
CLIMBING = 0.15
SAY_EVERY_S = 30.0  # where there is no terminal


def population(
    out: Annotated[Path, typer.Option(help="Folder for the fit: a new one, or one to go on with.")],
    model: Annotated[
        str, typer.Option(help="full, local_choice, fixed_choice or local_saliency.", metavar="NAME")
    ] = "full",
    data: Data = None,
    observers: Observers = "all",
    repulsion: Annotated[
        str | None,
        typer.Option(help="released (the default), printed or none.", metavar="NAME", show_default=False),
    ] = None,
    cells: Cells = 64,
    seed: Seed = 1,
    warmup: Annotated[int | None, typer.Option(min=20, help="Iterations in which chains learn.")] = None,
    draws: Annotated[int | None, typer.Option(min=4, help="Draws kept of each of four chains.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; without it one per core.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fit, show progress, print the population."""
    from foveate.commands.interruption import interruptible

    settings = {} if repulsion is None else {"repulsion": repulsion}
    asked = {name: value for name, value in (("warmup", warmup), ("draws", draws)) if value is not None}
    try:
        store, chosen = interruptible(lambda: _prepared(out, data, cells, observers, model, settings, asked, seed))
        if store.finished:
            say(f"nothing left to do: the fit is finished in {out}", 0)
        else:
            say(
                f"foveate population: model {store.fits.run.model.name!r}, "
                f"{counted(len(store.fits.run.observers), 'observer')}, seed {seed}; the results go to {out}",
                0,
            )
        with _Display() as display:
            posterior = interruptible(lambda: store.fit(chosen, threads=threads, report=display.report))
    except KeyboardInterrupt:
        leave_at_once(say(f"interrupted; run the same command again to go on with what is in {out}.", INTERRUPTED))
    _print(store, posterior, as_json)


def _prepared(
    out: Path,
    source: str | None,
    cells: int,
    names: str,
    model: str,
    settings: dict[str, Any],
    asked: dict[str, int],
    seed: int,
) -> tuple["PopulationStore", Any]:
    """Read the data and open the folder; every mistake of the user comes out here, before anything is fitted."""
    import jax

    from foveate.commands.reading import chosen_observers, read
    from foveate.data.dataset import Dataset
    from foveate.execution.cache import keep_compiled
    from foveate.execution.population_store import PopulationStore
    from foveate.inference.population_posterior import SETTINGS, checked
    from foveate.model.catalogue import CATALOGUE, named_model

    if model not in CATALOGUE:
        raise InputError(f"no model {model!r}; {instead_of(model, FITTED)}")
    fitted = named_model(model, **settings)
    keep_compiled()
    readings = read(source, cells)
    wanted = chosen_observers(readings.paths, names)
    data = readings.data
    data = data.select(observers=wanted) if isinstance(data, Dataset) else {name: data[name] for name in wanted}
    checked(fitted, data, jax.random.key(seed), **(SETTINGS | asked))
    return PopulationStore.resume(out, fitted, data, seed, asked), data


class _Display:
    """A bar in a terminal with the time that is left; elsewhere a line every so often."""

    def __init__(self):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console(stderr=True, highlight=False)
        self.terminal = console.is_terminal
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[left]}"),
            console=console, transient=True, disable=not self.terminal,
        )  # fmt: skip
        self.task = self.bar.add_task("preparing", total=1.0, left="")
        self.begun: tuple[float, float] | None = None  # when the first share of the work was told, and how large it was
        self.said = time.monotonic()

    def __enter__(self) -> "_Display":
        self.bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.stop()

    def report(self, progress: "Progress") -> None:
        """Show how far the fit is."""
        from foveate.commands.display import FACTS

        part = progress.done / max(progress.total, 1)
        share = {"preparing": 0.0, "climbing": CLIMBING * part}.get(progress.stage, CLIMBING + (1 - CLIMBING) * part)
        now = time.monotonic()
        self.begun = self.begun or (now, share)
        facts = [words.format(progress.facts[name]) for name, words in FACTS.items() if name in progress.facts]
        words = ", ".join([f"{progress.stage} {progress.done}/{progress.total}", *facts])
        since, first = self.begun
        left = ""
        if share - first > 0.02:
            minutes, seconds = divmod(round((now - since) * (1 - share) / (share - first)), 60)
            left = f"about {minutes // 60}:{minutes % 60:02}:{seconds:02} left"
        self.bar.update(self.task, description=words, completed=share, left=left)
        if not self.terminal and now - self.said > SAY_EVERY_S:
            self.said = now
            say(", ".join(filter(None, [words, left])), 0)


def _print(store: "PopulationStore", posterior: "PopulationPosterior", as_json: bool) -> None:
    from foveate.commands.studies import write_tables
    from foveate.commands.verdicts import as_record, estimates, print_verdicts, result_console

    posteriors = list(posterior.posteriors.values())
    table = posterior.table()
    write_tables(store.folder, {"estimates": estimates(posteriors), TABLE: table.reset_index()})
    if as_json:
        said = store.fits.run.to_dict() | {
            "folder": str(store.folder),
            "population": table.reset_index().to_dict("list"),
        }
        said |= {"diagnosis": posterior.diagnosis.to_dict(), "converged": posterior.converged}
        print(json.dumps(said | {"fits": [as_record(it) for it in posteriors]}))
        return
    print_verdicts(posteriors, f"Model {store.fits.run.model.name!r} in a population, seed {store.fits.run.seed}")
    console = result_console()
    for label, row in table.iterrows():
        console.print(
            f"{label}: median {row['median']:.3g} ({row['2.5%']:.3g} to {row['97.5%']:.3g}), 95 % of observers "
            f"{row['observers_low']:.3g} to {row['observers_high']:.3g}",
            markup=False,
        )
    console.print(f"Population: {posterior.diagnosis.verdict}", markup=False)
    print(f"The fits are in {store.folder}; the population is in {store.folder / TABLE}.csv and population.nc.")
