"""How well held-out pictures are predicted from few and from many: by separate, pooled and hierarchical fits.

Test pictures are those of a fold. Of the other pictures the first few in an order that the seed gives are trained on;
smaller sets are parts of larger ones. Three kinds of fits see the same scan paths:

- *separate*: each observer alone, with the model's own priors;
- *pooled*: one set of parameters for all;
- *hierarchical*: each observer in a population that is learnt from all.

All are sampled in the same way: by chains (`inference/hierarchy.py`), which are exact, or, in a tenth of the time, by
weighted draws around tops given the learnt population (`inference/population_draws.py`). The score is that of the
posterior predictive density.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.data.dataset import Dataset, Observed, each_observer
from foveate.errors import InputError
from foveate.evaluate.compare import compare
from foveate.evaluate.fitted import Fitted
from foveate.evaluate.folds import Folds, random_folds
from foveate.evaluate.predictive import predictive_bits
from foveate.evaluate.trials import thinned
from foveate.inference.diagnosis import chain_diagnostics
from foveate.inference.draws import generator
from foveate.inference.files import write_whole
from foveate.inference.fit import observer_key
from foveate.inference.hierarchy import Sampler
from foveate.inference.likelihoods import AgainstGaussian, Likelihoods, Pooled, TargetLikelihoods, targets_of
from foveate.inference.population import TYPICAL_SPREAD, dispersed, hyperprior_of, learn_population, learnt
from foveate.inference.population_chains import checkpoints
from foveate.inference.population_draws import observer_draws
from foveate.inference.population_files import read_arrays, write_arrays
from foveate.inference.quadratic import Hyperprior
from foveate.inference.target import Target
from foveate.model.description import describe
from foveate.model.model import Model
from foveate.precision import double_precision
from foveate.threads import one_thread_each

KINDS = ("separate", "pooled", "hierarchical")
NUMBERS = (3, 6, 12, 24)
DRAWS = 50  # that predict
CHAINS, WEIGHTS = "chains", "weights"
SETTINGS: dict[str, dict[str, int]] = {
    CHAINS: {"chains": 4, "warmup": 80, "draws": 100},
    WEIGHTS: {"starts": 2, "rounds": 3, "count": 192, "draws": 50},
}
RESULTS = "learning_curves.json"
WORST = {CHAINS: "max_rhat", WEIGHTS: "median_pareto_k"}  # what is said of how far fits can be trusted

# Told of every part: what it is, how many are done, how many there are.
Told = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class LearningCurves:
    """The fits of an experiment in a folder, and their scores; whatever is there already is not done again."""

    folder: Path
    model: Model
    data: Mapping[Any, Dataset]  # of each observer
    folds: Folds
    chosen: tuple[int, ...]  # folds that are fitted
    numbers: tuple[int, ...]  # of training pictures
    seed: int
    settings: Mapping[str, int]
    by: str = CHAINS
    threads: int | None = None

    @classmethod
    def of(
        cls,
        folder: str | Path,
        model: Model,
        data: Observed,
        folds: Folds,
        *,
        seed: int,
        numbers: tuple[int, ...] = NUMBERS,
        chosen: tuple[int, ...] | None = None,
        settings: Mapping[str, int] | None = None,
        by: str = CHAINS,
        threads: int | None = None,
    ) -> "LearningCurves":
        """For so many training pictures each, in the chosen folds (None: all); sampled `by` "chains" or "weights"."""
        if by not in SETTINGS:
            raise InputError(f"by = {by!r}: say {' or '.join(SETTINGS)}.")
        hyperprior_of(model)
        each, some = each_observer(data), chosen or tuple(range(1, len(folds) + 1))
        made = cls(
            Path(folder), model, each, folds, some, tuple(sorted(set(numbers))), seed,
            SETTINGS[by] | dict(settings or {}), by, threads,
        )  # fmt: skip
        for fold in some:
            fewest = min(len(made._others(own, fold)) for own in each.values())
            if not made.numbers or not 1 <= made.numbers[0] <= made.numbers[-1] <= fewest:
                raise InputError(f"{numbers} training pictures: fold {fold} leaves {fewest}; give 1 to {fewest}.")
        return made

    def _others(self, own: Dataset, fold: int) -> list:
        """The pictures that an observer saw and the fold does not hold out, in the order of training."""
        held_out = set(self.folds.test_pictures[fold - 1])
        rest = [picture for picture in self.folds.pictures if picture not in held_out]
        order = [it for (it,) in random_folds(rest, len(rest), self.seed).test_pictures]
        seen = set(own.paths.pictures)
        return [picture for picture in order if picture in seen]

    def training(self, fold: int, number: int) -> dict[Any, Dataset]:
        """What fits see."""
        return {who: own.select(pictures=self._others(own, fold)[:number]) for who, own in self.data.items()}

    def test(self, observer: Any, fold: int) -> Dataset:
        """What is predicted."""
        return self.data[observer].select(pictures=self.folds.test_pictures[fold - 1])

    def file_of(self, kind: str, number: int, fold: int) -> Path:
        """Where the draws of a fit are, or will be."""
        return self.folder / f"{kind}-{number}-pictures-fold-{fold}.nc"

    def _stamp(self, kind: str, number: int, fold: int) -> dict[str, Any]:
        data = {str(who): own.fingerprint() for who, own in self.training(fold, number).items()}
        said = {"kind": kind, "model": describe(self.model), "seed": self.seed, "version": version("foveate")}
        return said | {"data": data, "by": self.by, "settings": dict(self.settings)}

    def _parts(self) -> list[tuple[int, int, str]]:
        return [(number, fold, kind) for number in self.numbers for fold in self.chosen for kind in KINDS]

    def check(self) -> None:
        """Refuse a folder that holds fits of other data or settings, before anything is written there."""
        for number, fold, kind in self._parts():
            file = self.file_of(kind, number, fold)
            if file.exists():
                self._read(file, self._stamp(kind, number, fold))

    def run(self, told: Told = lambda what, done, total: None) -> None:
        """Do the fits that are not there yet, each saved as soon as it is done."""
        parts = self._parts()
        for done, (number, fold, kind) in enumerate(parts):
            told(f"{kind} fits to {number} pictures, fold {fold}", done, len(parts))
            file, stamp = self.file_of(kind, number, fold), self._stamp(kind, number, fold)
            if file.exists():
                self._read(file, stamp)
                continue
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(self.seed), fold), number)
            seen = self.training(fold, number)
            if self.by == WEIGHTS:
                vectors, worst = weighted(kind, self.model, seen, key, self.settings, self.threads)
            else:
                vectors, worst = self._of_chains(kind, seen, key)
            write_arrays(file, {"vectors": vectors}, {"stamp": stamp, "worst": float(worst)})
        told("fits", len(parts), len(parts))

    def _of_chains(self, kind: str, seen: Mapping[Any, Dataset], key: PRNGKeyArray) -> tuple[np.ndarray, float]:
        """Draws of all chains, and their largest R-hat."""
        theta = sampled(kind, self.model, seen, key, self.settings, self.threads)
        flat = theta.reshape(-1, *theta.shape[2:])
        rhat = chain_diagnostics(theta.reshape(*theta.shape[:2], -1))[0].max()
        return thinned(flat.reshape(len(flat), -1), min(DRAWS, len(flat))).reshape(-1, *theta.shape[2:]), rhat

    def _read(self, file: Path, stamp: dict[str, Any]) -> tuple[np.ndarray, float]:
        arrays, header = read_arrays(file)
        if header["stamp"] != json.loads(json.dumps(stamp)):
            raise InputError(f"{file} is of other data, settings or another seed: give another folder.")
        return arrays["vectors"], header["worst"]

    def scores(self, number: int) -> pd.DataFrame:
        """Bits over uniform of every held-out step for every kind of fit: a table as `compare` takes it."""
        parts = []
        for fold in self.chosen:
            for kind in KINDS:
                vectors, _ = self._read(self.file_of(kind, number, fold), self._stamp(kind, number, fold))
                for place, observer in enumerate(self.data):
                    test = self.test(observer, fold)
                    own = vectors[:, place if kind != "pooled" else 0]
                    parts.append(predictive_bits(Fitted(self.model, own, True, {}), test).assign(model=kind))
        return pd.concat(parts, ignore_index=True)

    def results(self) -> dict[str, Any]:
        """Mean bits of every kind by number of training pictures, and all differences, with intervals of 95 %."""
        found = []
        for number in self.numbers:
            compared = compare(self.scores(number))
            worst = {
                kind: max(self._read(self.file_of(kind, number, fold), self._stamp(kind, number, fold))[1]
                          for fold in self.chosen)
                for kind in KINDS
            }  # fmt: skip
            rows: dict[str, Any] = {"models": compared.models.to_dict("records")}
            rows |= {"pairs": compared.pairs.to_dict("records")}
            found.append({"pictures": number, WORST[self.by]: worst, **rows})
        said = {"model": self.model.name, "seed": self.seed, "observers": len(self.data), "folds": list(self.chosen)}
        return said | {"by": self.by} | {"settings": dict(self.settings), "curves": found}

    def write(self) -> Path:
        """`results` as JSON in the folder."""
        text = json.dumps(self.results(), indent=2) + "\n"
        return write_whole(self.folder / RESULTS, lambda file: file.write_text(text, encoding="utf-8"))


@double_precision
@one_thread_each()
def sampled(
    kind: str,
    model: Model,
    data: Mapping[Any, Dataset],
    key: PRNGKeyArray,
    settings: Mapping[str, int],
    threads: int | None,
) -> Float[np.ndarray, "chain draw observer number"]:
    """Draws of every observer's vector (of one for all where they are pooled)."""
    targets, hyper = targets_of(model, data), hyperprior_of(model)
    for_start, for_chains = jax.random.split(key)
    starts = [dispersed(target, observer_key(for_start, who), 4) for who, target in targets.items()]
    likelihoods = _likelihoods(kind, targets.values(), hyper, threads)
    if kind == "hierarchical":
        population = learn_population(targets, for_start, threads=threads)
    else:
        population = learnt(likelihoods, hyper, starts[: likelihoods.observers], rounds=3, fixed=True)
    sampler = Sampler(likelihoods, hyper, population, fixed=kind != "hierarchical")
    words = np.asarray(jax.random.key_data(for_chains)).ravel().tolist()
    chains, warmup, draws = (settings[name] for name in ("chains", "warmup", "draws"))
    *_, held = checkpoints(sampler, words, chains=chains, warmup=warmup, draws=draws)
    return held.draws["theta"]


@double_precision
@one_thread_each()
def weighted(
    kind: str,
    model: Model,
    data: Mapping[Any, Dataset],
    key: PRNGKeyArray,
    settings: Mapping[str, int],
    threads: int | None,
) -> tuple[Float[np.ndarray, "draw observer number"], float]:
    """Weighted draws of every observer's vector (of one for all where they are pooled), and the median k-hat.

    Climbs begin on a cheaper density much like the likelihood. What is kept is by the likelihood itself: weights, and
    the population, which is learnt once more from where the first climbs ended.
    """
    targets, hyper = targets_of(model, data), hyperprior_of(model)
    for_start, for_draws = jax.random.split(key)
    spread = TYPICAL_SPREAD * np.asarray(hyper.width)
    starts = [_near(model, spread, observer_key(for_start, who), settings["starts"]) for who in targets]
    rough = _likelihoods(kind, [target.coarsened() for target in targets.values()], hyper, threads)
    fixed = kind != "hierarchical"
    population = learnt(rough, hyper, starts[: rough.observers], rounds=settings["rounds"], fixed=fixed)
    exact = _likelihoods(kind, targets.values(), hyper, threads)
    if not fixed:
        population = learnt(exact, hyper, [tops[:1] for tops in population.tops], rounds=1)
    count = settings["count"]
    found, shapes = observer_draws(exact, population, generator(for_draws), count=count, draws=settings["draws"])
    return found, float(np.median(shapes))


def _likelihoods(kind: str, targets: Iterable[Target], hyper: Hyperprior, threads: int | None) -> Likelihoods:
    """What observers' vectors are drawn from, beside the population's Gaussian."""
    if kind == "separate":
        densities = TargetLikelihoods(targets, threads, Target.log_density)
        return AgainstGaussian(densities, np.asarray(hyper.centre), np.asarray(hyper.width))
    each = TargetLikelihoods(targets, threads)
    # So many data are pooled that Gaussian priors of the same moments are as good as the model's own.
    return Pooled(each) if kind == "pooled" else each


def _near(model: Model, spread: np.ndarray, key: PRNGKeyArray, count: int) -> Float[np.ndarray, "start number"]:
    """The model's present values, which should be near what observers show, and places close by."""
    middle = np.asarray(model.to_real())
    away = np.asarray(jax.random.normal(key, (count - 1, len(middle))))
    return np.concatenate([middle[None], middle + spread * away])
