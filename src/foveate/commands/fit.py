"""`foveate fit`: posteriors of many observers, into a folder, with progress; resumes where it stopped."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.messages import INTERRUPTED, leave_at_once, say
from foveate.commands.options import Cells, Data, Observers, Ordered, Scheduler, Seed
from foveate.commands.outputs import FITTED
from foveate.errors import InputError, counted, instead_of

if TYPE_CHECKING:
    from foveate.data.dataset import Observed
    from foveate.execution.places import Place
    from foveate.execution.store import FitStore
    from foveate.inference.posterior import Posterior

HELP = (
    "Fit a model to each observer of a data set: draws of its parameters' posterior, in a folder with a file per "
    "observer. Interrupt it as you like (Ctrl-C, or worse): the same command goes on where it stopped, and gives the "
    "same numbers."
)
ESTIMATES = "estimates"  # the table of all parameters
SHORT_HELP = "Fit a model to each observer; resumes where it stopped."
EXAMPLE = "Example: foveate fit --data example --model local_saliency --out fits"


def fit(
    out: Annotated[Path, typer.Option(help="Folder for the fits: a new one, or one to go on with.")],
    model: Annotated[
        str, typer.Option(help="full, local_choice, fixed_choice, local_saliency or wayfarer.", metavar="NAME")
    ] = "full",
    data: Data = None,
    observers: Observers = "all",
    priors: Annotated[
        str | None, typer.Option(help="weak (the default) or published.", metavar="NAME", show_default=False)
    ] = None,
    repulsion: Annotated[
        str | None,
        typer.Option(help="released (the default), printed or none.", metavar="NAME", show_default=False),
    ] = None,
    ordered: Ordered = False,
    sampler: Annotated[
        str, typer.Option(help="auto, importance, nuts, gibbs, smc or laplace.", metavar="NAME")
    ] = "auto",
    cells: Cells = 64,
    seed: Seed = 1,
    draws: Annotated[
        int | None,
        typer.Option(min=4, help="Draws kept of each chain or replicate; without it the sampler's own number."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Observers fitted at the same time; without it one per core.")
    ] = None,
    scheduler: Scheduler = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the diagnoses as JSON instead of a table.")] = False,
) -> None:
    """Fit, show progress, print verdicts."""
    from foveate.commands.interruption import interruptible

    asked = {"priors": priors, "repulsion": repulsion, "ordered": ordered or None}
    settings = {name: value for name, value in asked.items() if value is not None}
    task = _Task(out)
    place = _cluster(workers, scheduler)
    try:
        interruptible(lambda: task.prepare(data, cells, observers, model, settings, sampler, draws, seed))
        posteriors = task.run(workers, place)
    except KeyboardInterrupt:
        leave_at_once(say(task.interrupted(), INTERRUPTED))
    _print(task.store, posteriors, as_json)


def _cluster(workers: int | None, scheduler: str | None) -> "Place | None":
    """The cluster of that scheduler, if one is named; without, observers are fitted in threads, with more progress."""
    if scheduler is None:
        return None
    from foveate.execution.places import place_for

    return place_for(workers, scheduler)


class _Task:
    """The command's work in its two parts, and what to say when it is interrupted."""

    store: "FitStore"
    data: "Observed"
    observers: list

    def __init__(self, out: Path):
        self.out, self.ready = out, False

    def prepare(
        self,
        source: str | None,
        cells: int,
        names: str,
        model: str,
        settings: dict[str, Any],
        sampler: str,
        draws: int | None,
        seed: int,
    ) -> None:
        """Read the data and open the store; every mistake of the user comes out here, before anything is fitted."""
        from foveate.commands.reading import chosen_observers, read
        from foveate.execution.cache import keep_compiled
        from foveate.execution.run import Run
        from foveate.execution.store import FitStore
        from foveate.inference.fit import chosen_sampler
        from foveate.inference.smc import PARTICLES_PER_NUMBER
        from foveate.model.catalogue import CATALOGUE, named_model

        if model not in CATALOGUE:  # of the models that there are, only those that can be fitted are offered
            raise InputError(f"no model {model!r}; {instead_of(model, FITTED)}")
        fitted = named_model(model, **settings)
        chosen = chosen_sampler(fitted, sampler)
        least = PARTICLES_PER_NUMBER * len(fitted.labels)  # said before fits begin
        if chosen == "smc" and draws is not None and draws < least:
            raise InputError(
                f"--draws {draws}: tempered SMC needs at least {least} for the {len(fitted.labels)} numbers of model "
                f"{model!r}; give {least} or more."
            )
        keep_compiled()
        readings = read(source, cells)
        self.data, self.observers = readings.data, chosen_observers(readings.paths, names)
        of_sampler = {} if draws is None else {"particles" if chosen == "smc" else "draws": draws}
        run = Run.of(fitted, self.data, seed, sampler=chosen, settings=of_sampler)
        self.store = FitStore.resume(self.out, run)
        self.ready = True

    def run(self, workers: int | None, place: "Place | None") -> list["Posterior"]:
        """Fit what is not finished, with progress; all fits that were asked for, in their order."""
        from foveate.commands.display import FitDisplay
        from foveate.commands.interruption import interruptible

        store, run = self.store, self.store.run
        before = set(store.finished()) & set(self.observers)
        found: dict[Any, Posterior] = {}
        opening = (
            f"foveate fit: model {run.model.name!r}, {counted(len(self.observers), 'observer')}, "
            f"{run.sampler} sampling, seed {run.seed}; the results go to {self.out}"
        )
        if before:
            opening += f"\n{len(before)} of {len(self.observers)} observers are finished already"
        with FitDisplay(opening, len(before), len(self.observers)) as display:

            def work() -> None:
                for posterior in store.fit_each(
                    self.data, self.observers, workers=workers, place=place, report=display.report
                ):
                    found[posterior.observer] = posterior
                    if posterior.observer not in before:
                        display.finish(posterior)

            interruptible(work)
            if len(before) == len(self.observers):
                display.say(f"nothing left to do: all {len(before)} observers are finished in {self.out}")
        return [found[observer] for observer in self.observers]

    def interrupted(self) -> str:
        """What is finished, and how to go on."""
        if not self.ready:
            return "interrupted before any fit began; run the same command again to start over."
        finished = len(set(self.store.finished()) & set(self.observers))
        return (
            f"interrupted; {finished} of {len(self.observers)} observers are finished in {self.out}: run the same "
            "command again to go on."
        )


def _print(store: "FitStore", posteriors: list["Posterior"], as_json: bool) -> None:
    from foveate.commands.studies import write_tables
    from foveate.commands.verdicts import as_record, estimates, print_verdicts, summary

    # Of all fits that are in the folder, also of observers that were not asked for this time.
    here = {posterior.observer: posterior for posterior in posteriors}
    every = [here[observer] if observer in here else store.load(observer) for observer in store.finished()]
    write_tables(store.folder, {ESTIMATES: estimates(every)})
    if as_json:
        run = store.run.to_dict() | {"folder": str(store.folder), "summary": summary(posteriors)}
        fits = [as_record(posterior) | {"file": str(store.file_of(posterior.observer))} for posterior in posteriors]
        wrong = sum(not posterior.converged for posterior in posteriors)
        print(json.dumps(run | {"not_converged": wrong, "fits": fits}))
        return
    print_verdicts(posteriors, f"Model {store.run.model.name!r}, {store.run.sampler} sampling, seed {store.run.seed}")
    print(
        f"The fits are in {store.folder}, all parameters with their intervals in {store.folder / ESTIMATES}.csv; "
        f"`foveate diagnose {store.folder}` shows this table again."
    )
