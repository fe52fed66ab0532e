"""A few quick fits as tasks: three observers of the example on a coarse grid, one policy."""

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.grid import Grid
from foveate.example import example_data
from foveate.execution.run import Run
from foveate.execution.tasks import FitTask
from foveate.inference.posterior import Posterior
from foveate.model.catalogue import named_model

CELLS, OBSERVERS = 16, ("ann", "ben", "cleo")


def coarse_data(observers: tuple[str, ...] = OBSERVERS) -> Dataset:
    data = example_data().data.select(observers=list(observers))
    return Dataset(data.paths, data.maps.resample(Grid(CELLS, CELLS, data.maps.grid.extent)))


def small_tasks() -> list[FitTask]:
    data = coarse_data()
    run = Run.of(named_model("local_saliency"), data, seed=3)
    return [FitTask(run, data.select(observers=[name]), {"observer": name}) for name in data.paths.observers]


def draws_of(found: list[tuple[FitTask, Posterior]]) -> dict[str, np.ndarray]:
    return {str(task.observer): posterior.samples.real for task, posterior in found}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """To the last bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
