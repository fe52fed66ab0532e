"""Fit a model: from scan paths to a posterior per observer."""

import platform
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Literal, cast

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from foveate.compiled import make_room
from foveate.data.dataset import Dataset, Observed, chosen_observers
from foveate.errors import InputError, some_of
from foveate.inference.diagnosis import diagnose
from foveate.inference.gibbs import check_composition, gibbs
from foveate.inference.importance import importance
from foveate.inference.laplace import laplace, laplace_plan
from foveate.inference.modes import error_of_chains, find_modes
from foveate.inference.nuts import nuts
from foveate.inference.posterior import Posterior
from foveate.inference.proposal import learn_proposal
from foveate.inference.samples import Progress, Report, Samples, silent
from foveate.inference.smc import tempered
from foveate.inference.stack import Stack, targets_of_one_size, together
from foveate.inference.target import Target
from foveate.model.model import DRAWN_FROM_MAP, Model
from foveate.precision import check_key, double_precision
from foveate.threads import cores

Sampler = Literal["auto", "importance", "nuts", "gibbs", "smc", "laplace"]
SAMPLERS: tuple[str, ...] = ("auto", "importance", "nuts", "gibbs", "smc", "laplace")

# With more numbers than this a mixture cannot be learnt from draws any more, but from the curvature at tops.
FEW_NUMBERS = 10


@double_precision
def fit(
    model: Model,
    data: Dataset,
    key: PRNGKeyArray,
    *,
    sampler: Sampler = "auto",
    threads: int | None = None,
    report: Report = silent,
    **settings: Any,
) -> Posterior:
    """The posterior of a model's parameters given the scan paths of one observer.

    `sampler` "auto" is importance sampling for up to ten numbers and "laplace" beyond; `settings` go to the sampler
    (draws, chains or replicates, warmup ...). The same key gives the same numbers to the last bit, on any number of
    `threads` (None: one per core). Data of several observers: `fit_each`.
    """
    check_key(key)
    _check_model(model, sampler)
    if not isinstance(data, Dataset):
        raise InputError(f"data is a {type(data).__name__}: give a Dataset, Dataset(paths, maps).")
    if len(data.paths.observers) != 1:
        raise InputError(
            f"the data hold {len(data.paths.observers)} observers: fit_each fits each of them, and "
            "data.select(observers=[...]) picks one."
        )
    _check_steps(model, data)
    started = time.perf_counter()
    make_room()
    report(Progress("preparing", 0, 1))
    target = Target.of(model, data)
    samples = draw(target, key, sampler, threads or cores(), report, settings)
    return _posterior(model, target, data, key, samples, time.perf_counter() - started)


def _posterior(
    model: Model, target: Target, data: Dataset, key: PRNGKeyArray, samples: Samples, seconds: float
) -> Posterior:
    """Draws with their diagnosis and what they were made of; of the model as it was given, since the target's has
    JAX's arrays, which lose digits where a process without x64 reads them from another."""
    provenance = {
        "key": np.asarray(jax.random.key_data(key)).ravel().tolist(),
        "data": data.fingerprint(),
        "steps": target.steps.count,
        "pictures": len(data.paths.pictures),
        "grid": list(data.maps.grid.shape),
        "seconds": round(seconds, 3),
        **made_with(),
    }
    return Posterior(model, data.paths.observers[0], samples, diagnose(model.labels, samples), provenance)


def made_with() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "versions": {name: version(name) for name in ("foveate", "jax", "blackjax", "numpy", "arviz-stats")},
        "machine": f"{platform.machine()} {platform.system()}, {jax.default_backend()}",
    }


def draw(
    target: Target, key: PRNGKeyArray, sampler: str, threads: int, report: Report, settings: dict[str, Any]
) -> Samples:
    """Draws of a target by the sampler of this name."""
    chosen = chosen_sampler(target.model, sampler)
    with _settings_of(chosen):
        if chosen == "importance":
            return importance(target, key, threads=threads, report=report, **settings)
        if chosen == "laplace":
            return laplace(target, key, threads=threads, report=report, **settings)
        if chosen == "gibbs":
            return gibbs(target, key, report=report, **settings)
        if chosen == "smc":
            return tempered(target, key, report=report, **settings)
        return _nuts_between_modes(target, key, threads, report, settings)


@contextmanager
def _settings_of(chosen: str) -> Iterator[None]:
    """A setting that a sampler does not have is the user's mistake."""
    try:
        yield
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        unknown = str(error).split("'")[1]
        raise InputError(f"the {chosen} sampler has no setting {unknown!r}.") from error


def chosen_sampler(model: Model, sampler: str) -> Sampler:
    """The name of the sampler that fits this model: `sampler` itself, or what "auto" stands for."""
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: there are {some_of(list(SAMPLERS))}.")
    if not model.labels:
        raise InputError(f"model {model.name!r} has no parameters: there is nothing to fit.")
    if sampler == "gibbs":
        check_composition(model)
    if sampler == "auto":
        return "importance" if len(model.labels) <= FEW_NUMBERS else "laplace"
    return cast(Sampler, sampler)


def _nuts_between_modes(
    target: Target, key: PRNGKeyArray, threads: int, report: Report, settings: dict[str, Any]
) -> Samples:
    """NUTS with moves between modes; the proposal behind them is learnt first where there are few numbers."""
    for_proposal, for_chains = jax.random.split(key)
    if target.size > FEW_NUMBERS:
        return nuts(target, for_chains, report=report, **settings)
    proposal = learn_proposal(target, for_proposal, report, threads)
    found = nuts(target, for_chains, mixture=proposal.mixture, report=report, **settings)
    equal, log_density = np.zeros(found.real.shape[:2]), found.statistics["lp"]
    modes = find_modes(target, found.real, equal, log_density, proposal.mixture, error_of_chains)
    evaluations = found.evaluations + proposal.evaluations + modes.evaluations
    facts = {**found.facts, "exploration_log_evidence_nats": list(proposal.exploration_log_evidence_nats)}
    return Samples(**(vars(found) | {"modes": modes, "evaluations": evaluations, "facts": facts}))


def _check_model(model: Any, sampler: str) -> None:
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}: give a Model, such as foveate.named_model('full').")
    chosen_sampler(model, sampler)


def _check_steps(model: Model, data: Dataset) -> None:
    """Refuse an observer with fewer steps than the model has numbers, before anything is worked out."""
    steps = int(data.paths.scored(DRAWN_FROM_MAP).sum())
    if steps < len(model.labels):
        raise InputError(
            f"observer {some_of(data.paths.observers)}: {steps} steps (fixations from the third on) to fit the "
            f"{len(model.labels)} numbers of model {model.name!r}; there must be at least as many: leave the observer "
            "out, or give longer or more scan paths."
        )


# --- side by side ---------------------------------------------------------------------------------------------------


def fits_together(model: Model, sampler: str, data: Dataset) -> bool:
    """Whether a fit is best carried out side by side with others: on a GPU, by a sampler that is a plan, and where sums
    over the maps need no slow road (`Steps.in_batches`)."""
    batched = jax.default_backend() != "cpu" and bool((data.maps.values > 0).all())
    return batched and chosen_sampler(model, sampler) == "laplace"


def fit_together(
    model: Model, each: Sequence[Dataset], keys: Sequence[PRNGKeyArray], **settings: Any
) -> Iterator[tuple[int, Posterior]]:
    """The posteriors of many observers, or of one without several folds, in batches; each with its place, as soon as it
    is there. The same posteriors as those of `fit` with the sampler "laplace", within Monte Carlo error."""
    for data in each:
        _check_steps(model, data)
    started = time.perf_counter()
    make_room()
    targets = targets_of_one_size(model, each)
    with jax.enable_x64(True), _settings_of("laplace"):
        plans = [laplace_plan(target, key, **settings) for target, key in zip(targets, keys, strict=True)]
    for index, samples in together(plans, Stack.of(targets)):
        # They are worked on together: each has its share of the time.
        seconds = (time.perf_counter() - started) / len(each)
        yield index, _posterior(model, targets[index], each[index], keys[index], samples, seconds)


# --- many observers ------------------------------------------------------------------------------------------------


def observer_key(key: PRNGKeyArray, observer: int | str) -> PRNGKeyArray:
    """The key of one observer's fit: it depends on the observer's name alone, not on who else is fitted."""
    return jax.random.fold_in(key, zlib.crc32(str(observer).encode()))


def fit_each(
    model: Model,
    data: Observed,
    key: PRNGKeyArray,
    *,
    observers: Iterable | None = None,
    sampler: Sampler = "auto",
    workers: int | None = None,
    report: Callable[[Any, Progress], None] | None = None,
    **settings: Any,
) -> Iterator[Posterior]:
    """The posterior of every observer (None: all in the data), each as soon as it is there, on several cores.

    `data` is a data set, or one for each observer by name, where their maps differ.

    Which observers are fitted together, in which order and on how many `workers` (None: one per core) changes nothing.
    `report(observer, progress)` is called from the workers; an exception that it raises stops them all.
    """
    check_key(key)
    _check_model(model, sampler)
    parts = list(chosen_observers(data, observers).items())
    for _, part in parts:
        _check_steps(model, part)
    stop, compiled = False, threading.Event()

    def one(place: int, observer: Any, part: Dataset) -> Posterior:
        def told(progress: Progress) -> None:
            if stop:
                raise KeyboardInterrupt
            if progress.done > 0:
                compiled.set()
            if report is not None:
                report(observer, progress)

        # The first one compiles what all need: side by side each would compile it for itself.
        while place > 0 and not compiled.wait(0.2):
            if stop:
                raise KeyboardInterrupt
        try:
            return fit(model, part, observer_key(key, observer), sampler=sampler, threads=1, report=told, **settings)
        finally:
            compiled.set()

    with ThreadPoolExecutor(workers or cores()) as pool:
        waiting = {pool.submit(one, place, *part) for place, part in enumerate(parts)}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            stop = True
            for future in waiting:
                future.cancel()
