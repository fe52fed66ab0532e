"""Fits as tasks: each a piece of work that stands for itself, whatever computes it, and where."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.data.dataset import Dataset
from foveate.execution.cache import keep_compiled
from foveate.execution.run import Run
from foveate.inference.fit import chosen_sampler, fit, fit_together, observer_key
from foveate.inference.posterior import Posterior


@dataclass(frozen=True, eq=False)
class FitTask:
    """One model fitted to one observer's data; `where` says in words and numbers which of the tasks it is."""

    run: Run
    data: Dataset
    where: Mapping[str, Any]  # such as model, fold and observer: what the task is called in messages

    @property
    def observer(self) -> int | str:
        """Whose data these are."""
        return self.data.paths.observers[0]

    @property
    def name(self) -> str:
        """The task in words."""
        return ", ".join(f"{kind} {value}" for kind, value in self.where.items())


def perform(task: FitTask) -> Posterior:
    """The posterior of a task: the same to the last bit in this process, in another, or on a cluster of one kind."""
    keep_compiled()
    run = task.run
    key = observer_key(run.key, task.observer)
    sampler = chosen_sampler(run.model, run.sampler)
    return fit(run.model, task.data, key, sampler=sampler, threads=1, **run.settings)


def perform_together(tasks: Sequence[FitTask]) -> Iterator[tuple[FitTask, Posterior]]:
    """Every task with its posterior, as soon as it is there: fits of one model and sampler, side by side."""
    keep_compiled()
    run = tasks[0].run
    keys = [observer_key(task.run.key, task.observer) for task in tasks]
    for place, posterior in fit_together(run.model, [task.data for task in tasks], keys, **run.settings):
        yield tasks[place], posterior
