"""Many tasks, done wherever there is room, each result handed over as soon as it is there."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from foveate.errors import InputError
from foveate.execution.places import Place
from foveate.execution.tasks import FitTask, perform
from foveate.inference.posterior import Posterior

AHEAD = 2  # tasks that are handed out for each that runs, so that no worker waits for the next
MOST_LOSSES = 3  # of one task, before it is taken to be what kills the workers


def completed(tasks: Sequence[FitTask], place: Place) -> Iterator[tuple[FitTask, Posterior]]:
    """Every task with its posterior, in the order in which they come.

    Results do not depend on the place. Tasks whose worker was lost are done again.
    """
    waiting: dict[Future, FitTask] = {}
    left, losses = list(reversed(tasks)), Counter[str]()
    try:
        while left or waiting:
            lost = _hand_out(left, waiting, place)
            done = wait(waiting, return_when=FIRST_COMPLETED).done if waiting else ()
            for future in done:
                task = waiting.pop(future)
                try:
                    posterior = future.result()
                except place.lost:
                    lost.append(task)
                else:
                    yield task, posterior
            if lost:  # the pool is gone, and all that was handed out with it
                lost += waiting.values()
                waiting.clear()
                losses.update(task.name for task in lost)
                _check(losses)
                left += reversed(lost)
                place.renew()
    except place.gone as error:
        raise InputError(
            f"nobody is left to do the fits ({type(error).__name__}); what is finished is saved: see to the workers "
            "and run the same command again."
        ) from error
    finally:
        for future in waiting:
            future.cancel()


def _hand_out(left: list[FitTask], waiting: dict[Future, FitTask], place: Place) -> list[FitTask]:
    """Submit tasks while there is room; those that found the workers gone."""
    while left and len(waiting) < AHEAD * place.size:
        task = left.pop()
        try:
            waiting[place.submit(perform, task)] = task
        except place.lost:
            return [task]
    return []


def _check(losses: Counter[str]) -> None:
    """Give up where the same task was there each time that a worker died."""
    name, count = losses.most_common(1)[0]
    if count > MOST_LOSSES:
        raise InputError(
            f"a worker process died {count} times while {name} was fitted or waiting, perhaps for want of memory: use "
            "fewer workers; what is finished is saved."
        )
