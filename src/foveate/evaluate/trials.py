"""Many independent trials of a sampler, each from a key of its own, on all cores, kept in a file as they are done.

A trial draws a truth, makes data from it, and draws from the posterior; its outcome is the rank of the truth among the
draws. It depends on the key and on its index alone: a run may stop anywhere and go on later, in parts, in any order.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.samples import Progress, Report, silent
from foveate.threads import cores

INTERVAL = 0.9  # the share of the central interval that an outcome keeps


@dataclass(frozen=True, eq=False)
class Drawn:
    """The truth of one trial, draws of its posterior that are nearly independent, and what speaks against them."""

    truth: Float[np.ndarray, " quantity"]
    draws: Float[np.ndarray, "draw quantity"]
    problems: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)  # JSON can hold them


# One trial: from its key; it calls the second argument now and then, which may raise an exception to stop it.
Trial = Callable[[PRNGKeyArray, Report], Drawn]


@dataclass(frozen=True)
class Outcome:
    """The ranks of a trial's truth, one for every quantity; `problems` say why its draws may be wrong.

    `mean`, `low` and `high` are the mean of the draws and the ends of their central 90 % interval; files of earlier
    versions do not have them.
    """

    index: int
    ranks: tuple[int, ...]
    truth: tuple[float, ...]
    problems: tuple[str, ...]
    facts: Mapping[str, Any]
    seconds: float
    mean: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def ranks_outside(share: float, draws: int) -> int:
    """How many of the `draws` + 1 ranks lie on either side of the central ones that make up this share of them."""
    return max(1, round((1 - share) / 2 * (draws + 1)))


def rank_among(
    truth: Float[np.ndarray, " quantity"], draws: Float[np.ndarray, "draw quantity"], rng: np.random.Generator
) -> Int[np.ndarray, " quantity"]:
    """How many draws lie below the truth; where some equal it, any of the ranks that fit, with equal chances."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return below + rng.integers(0, equal + 1)


def thinned(draws: Float[np.ndarray, "draw quantity"], count: int) -> Float[np.ndarray, "kept quantity"]:
    """`count` of the draws, as far from each other as they can be."""
    if len(draws) < count:
        raise InputError(f"{len(draws)} draws are not enough for ranks among {count}: let the sampler draw more.")
    return draws[((np.arange(count) + 0.5) * len(draws) / count).astype(int)]


def run_trials(
    trial: Trial,
    key: PRNGKeyArray,
    indices: Iterable[int],
    *,
    draws: int,
    store: "Store | None" = None,
    workers: int | None = None,
    report: Report = silent,
) -> list[Outcome]:
    """The outcomes of the trials with these indices, in their order, each ranked among `draws` draws.

    Those in the store are not run again; every other goes there as soon as it is done. The first runs alone, so that
    what it compiles serves all. `report` is called when one is done.
    """
    wanted = list(indices)
    found = {} if store is None else {it.index: it for it in store.outcomes() if it.index in set(wanted)}
    stop = False

    def told(progress: Progress) -> None:
        if stop:
            raise KeyboardInterrupt

    def one(index: int) -> Outcome:
        started = time.perf_counter()
        own = jax.random.fold_in(key, index)
        try:
            drawn = trial(own, told)
        except Exception as error:
            error.add_note(f"in data set {index}")
            raise
        rng = np.random.default_rng([index, *np.asarray(jax.random.key_data(own)).ravel().tolist()])
        kept = thinned(drawn.draws, draws)
        ranks = rank_among(drawn.truth, kept, rng)
        tail, ordered = ranks_outside(INTERVAL, len(kept)), np.sort(kept, axis=0)
        low, high = ordered[tail - 1], ordered[-tail]
        seconds = round(time.perf_counter() - started, 3)
        numbers = [tuple(it.tolist()) for it in (kept.mean(axis=0), low, high)]
        return Outcome(
            index,
            tuple(ranks.tolist()),
            tuple(drawn.truth.tolist()),
            drawn.problems,
            dict(drawn.facts),
            seconds,
            *numbers,
        )

    def keep(outcome: Outcome) -> None:
        found[outcome.index] = outcome
        if store is not None:
            store.add(outcome)
        tell()

    def tell() -> None:
        troubled = sum(bool(it.problems) for it in found.values())
        report(Progress("calibrating", len(found), len(wanted), {"unconverged": troubled}))

    tell()
    missing = [index for index in wanted if index not in found]
    for index in missing[:1]:
        keep(one(index))
    with ThreadPoolExecutor(workers or cores()) as pool:
        waiting = {pool.submit(one, index) for index in missing[1:]}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    keep(future.result())
        finally:
            stop = True
            for future in waiting:
                future.cancel()
    return [found[index] for index in wanted]


@dataclass(frozen=True)
class Store:
    """Outcomes in a file, a line of JSON each; the first line says what they are outcomes of.

    A line is written in one go. A last line that was cut off by a crash is taken away; a file of something else is
    refused and left as it is.
    """

    path: Path
    header: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path, header: Mapping[str, Any]) -> "Store":
        """The store in this file, which is made if it does not exist."""
        header = json.loads(json.dumps(dict(header)))
        whole = _whole_lines(path)
        if not whole:
            if path.exists() and path.stat().st_size and not path.read_bytes().startswith(b'{"made_by": "foveate'):
                raise InputError(f"{path} was not made by foveate; nothing was written: give another folder.")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
            _append(path, header)
            return cls(path, header)
        try:
            present = json.loads(whole[0])
        except ValueError:
            present = None
        if present != header:
            differ = [name for name in header if not isinstance(present, dict) or present.get(name) != header[name]]
            raise InputError(
                f"{path} holds results of another calibration (it differs in {', '.join(differ) or 'its entries'}); "
                "nothing was written: give another folder, or the same settings to go on."
            )
        os.truncate(path, sum(len(line) + 1 for line in whole))
        return cls(path, header)

    def outcomes(self) -> list[Outcome]:
        """All that were kept, in the order in which they were done."""
        return [_outcome(json.loads(line)) for line in _whole_lines(self.path)[1:]]

    def add(self, outcome: Outcome) -> None:
        """Keep one more."""
        _append(self.path, asdict(outcome))


LISTS = ("ranks", "truth", "problems", "mean", "low", "high")


def _outcome(entry: dict[str, Any]) -> Outcome:
    lists: dict[str, Any] = {name: tuple(entry[name]) for name in LISTS if name in entry}
    return Outcome(**(entry | lists))


def _whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1] if path.exists() else []


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    with open(path, "ab", buffering=0) as file:
        file.write(json.dumps(entry).encode() + b"\n")
        os.fsync(file.fileno())
