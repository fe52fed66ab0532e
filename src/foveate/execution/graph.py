"""Many tasks, done wherever there is room, each result handed over as soon as it is there."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from foveate.errors import InputError
from foveate.execution.places import Place
from foveate.execution.tasks import FitTask, perform, perform_together
from foveate.inference.fit import fits_together
from foveate.inference.posterior import Posterior

AHEAD = 2  # tasks that are handed out for each that runs, so that no worker waits for the next
MOST_LOSSES = 3  # of one task, before it is taken to be what kills the workers
LOOK_S = 10.0  # how often a place is asked whether there is still anybody to wait for


def completed(tasks: Sequence[FitTask], place: Place) -> Iterator[tuple[FitTask, Posterior]]:
    """Every task with its posterior, in the order in which they come.

    Results do not depend on the place. Tasks that were lost with whoever computed them are done again. Those that are
    best done side by side, on a GPU of this machine, are done so first.
    """
    batched = {
        task for task in tasks if place.on_this_machine and fits_together(task.run.model, task.run.sampler, task.data)
    }
    for some in _of_one_kind(task for task in tasks if task in batched):
        yield from perform_together(some)
    waiting: dict[Future, FitTask] = {}
    left, losses = [task for task in reversed(tasks) if task not in batched], Counter[str]()
    try:
        while left or waiting:
            try:
                _hand_out(left, waiting, place)
                for future in _done(waiting, place):
                    posterior = _result(future, waiting[future], place)
                    yield waiting.pop(future), posterior
            except place.lost as error:  # the pool or the scheduler is gone, and all that was handed out with it
                lost = list(waiting.values())
                losses.update(task.name for task in lost or left[-1:])
                name, count = losses.most_common(1)[0]
                if count > MOST_LOSSES:
                    raise InputError(_given_up(name, f"{count} times", place)) from error
                left += reversed(lost)
                waiting.clear()
                place.renew()
    finally:
        for future in waiting:
            future.cancel()


def _of_one_kind(tasks: Iterable[FitTask]) -> list[list[FitTask]]:
    """Tasks of the same model, sampler and grid, of whatever observers and folds."""
    kinds: dict[tuple, list[FitTask]] = {}
    for task in tasks:
        kinds.setdefault((id(task.run.model), str(task.run.settings), task.data.maps.grid), []).append(task)
    return list(kinds.values())


def _hand_out(left: list[FitTask], waiting: dict[Future, FitTask], place: Place) -> None:
    """Submit tasks while there is room."""
    room = AHEAD * place.size
    while left and len(waiting) < room:
        waiting[place.submit(perform, left[-1])] = left[-1]
        left.pop()


def _done(waiting: dict[Future, FitTask], place: Place) -> list[Future]:
    """What has come within a while, results before failures: none that is there shall be done again."""
    done = wait(waiting, LOOK_S, return_when=FIRST_COMPLETED).done
    if not done:
        place.check()
    return sorted(done, key=lambda future: future.cancelled() or future.exception() is not None)


def _result(future: Future, task: FitTask, place: Place) -> Posterior:
    try:
        return future.result()
    except place.deadly as error:
        raise InputError(_given_up(task.name, "every time", place)) from error


def _given_up(name: str, how_often: str, place: Place) -> str:
    return (
        f"{place.lost_in_words} {how_often} while {name} was fitted or waiting, {place.advice}; what is finished is "
        "saved: run the same command again to go on."
    )
