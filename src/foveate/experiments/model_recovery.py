"""Could a comparison tell the models apart at all? Data simulated from each of them, and which model then wins.

Every model is fitted to every observer. From each such fit one data set is made: the observer's pictures, path
lengths and forced fixations (not scored there either), with one draw of the posterior. All models are fitted to half
of the pictures of every data set and compared in two ways: by what they predict on the other half (bits per fixation of
the posterior predictive density, as in `study.py`), and by their evidence on the first. Rows of the confusion matrix
are the models that made the data, columns those that won. Fits are in two folders, `observed` and `simulated`, and are
not done twice.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.stats import binomtest

from foveate.data.dataset import Dataset, Observed, each_observer
from foveate.errors import InputError
from foveate.evaluate.compare import compare
from foveate.evaluate.crossval import CrossValidation
from foveate.evaluate.fitted import Fitted, FittedFolds
from foveate.evaluate.folds import Folds, random_folds
from foveate.evaluate.scores import DRAWS, score_steps
from foveate.execution.foldfits import FoldFits
from foveate.execution.places import Place
from foveate.experiments.study import Tell, bits_of
from foveate.model.likelihood import log_likelihood
from foveate.model.model import Model
from foveate.model.steps import Steps
from foveate.simulation.simulate import simulate

ALL_PICTURES, HELD_OUT_HALF = 1, 1  # the only 'fold' of the first fits, and the fold that is scored of the second
FEWEST_HELD_OUT = 2  # pictures, so that a lead has a standard error
LEVEL = 0.95
SURE = 2.0  # standard errors


class Criterion(NamedTuple):
    """By what a winner is chosen: its words, and the unit of its differences."""

    title: str
    unit: str


CRITERIA = {
    "held_out": Criterion("held-out prediction", "bits per fixation"),
    "evidence": Criterion("evidence", "nats"),
}


def silent(words: str, done: float, total: float) -> None:
    """Tell nothing."""


@dataclass(frozen=True, eq=False)
class ModelRecovery:
    """Models, the observers whose data they imitate, and the first fits: of each model to all of an observer's data."""

    folder: Path
    data: Mapping[Any, Dataset]
    folds: Folds  # two: the first is held out
    observed: FoldFits

    @classmethod
    def of(cls, folder: str | Path, models: Mapping[str, Model], data: Observed, *, seed: int = 1) -> "ModelRecovery":
        """For all observers of a data set, or for each observer's own; writes nothing."""
        if len(models) < 2:
            raise InputError(f"{len(models)} model: to see whether models can be told apart, name at least two.")
        each = each_observer(data)
        pictures = dict.fromkeys(picture for own in each.values() for picture in own.paths.pictures)
        folds = random_folds(pictures, 2, seed)
        for observer, own in each.items():
            held_out = len(set(own.paths.pictures) & set(folds.test_pictures[HELD_OUT_HALF - 1]))
            if held_out < FEWEST_HELD_OUT or held_out == len(own.paths.pictures):
                raise InputError(
                    f"observer {observer} saw {len(own.paths.pictures)} pictures, of which {held_out} would be held "
                    f"out: {FEWEST_HELD_OUT} or more are needed there, and one to fit to; leave the observer out."
                )

        def training(model: str, fold: int, observer: Any) -> Dataset:
            return each[observer]

        where = Path(folder)
        fits = FoldFits(where / "observed", dict(models), tuple(each), (ALL_PICTURES,), seed, training)
        return cls(where, each, folds, fits)

    @property
    def data_sets(self) -> dict[str, tuple[str, Any]]:
        """The simulated data sets by name, 'full: ann': the model that makes it, and the observer that it imitates."""
        return {f"{model}: {observer}": (model, observer) for model in self.observed.models for observer in self.data}

    @property
    def fits(self) -> int:
        """How many fits there are to do, all in all."""
        return len(self.observed.fitted) * (len(self.data) + len(self.data_sets))

    def fit(self, place: Place, tell: Tell = silent) -> CrossValidation:
        """Do the fits that are missing, first those of observers, then those of what is simulated from them."""
        first = len(self.observed.fitted) * len(self.data)

        def told(before: int):
            def finished(task: Any, posterior: Any, done: int, total: int) -> None:
                tell(f"{before + done} of {self.fits} fits; {task.name}", before + done, self.fits)

            return finished

        self.observed.fit(place, told(0))
        validation = self.validation()
        validation.fits.fit(place, told(first))
        return validation

    def simulated(self) -> dict[str, Dataset]:
        """Every data set, as the posterior of its model and observer makes it; the first fits must be there."""
        found = {}
        for model, structure in self.observed.models.items():
            store = self.observed.store(model, ALL_PICTURES) if structure.labels else None
            for observer, own in self.data.items():
                name = f"{model}: {observer}"
                key = jax.random.fold_in(jax.random.key(self.observed.seed), zlib.crc32(name.encode()))
                for_draw, for_paths = jax.random.split(key)
                truth = structure if store is None else store.load(observer).models(1, for_draw)[0]
                paths = simulate({observer: truth}, own.maps, own.paths, for_paths)
                flags = {it: values for it, values in paths.columns.items() if it == "forced"}
                found[name] = Dataset(replace(paths, observer=np.full(len(paths), name), columns=flags), own.maps)
        return found

    def validation(self) -> CrossValidation:
        """All models on the simulated data sets, each taken as an observer: fitted without the held-out half."""
        return CrossValidation.of(
            self.folder / "simulated",
            self.observed.models,
            self.simulated(),
            self.folds,
            chosen_folds=(HELD_OUT_HALF,),
            seed=self.observed.seed,
        )

    def judge(self, validation: CrossValidation, *, draws: int = DRAWS, tell: Tell = silent) -> "Confusion":
        """Who wins on which data set, once the fits of `validation` are there."""
        names = list(validation.models)
        fitted = {name: FittedFolds.of(validation.fits, name, draws) for name in names}
        rows = []
        for done, (data_set, (truth, observer)) in enumerate(self.data_sets.items()):
            tell(f"scores of the data set {data_set}", done, len(self.data_sets))
            parts = {name: fitted[name].parts[HELD_OUT_HALF, data_set] for name in names}
            row = {"data_set": data_set, "truth": truth, "observer": observer}
            row |= _held_out(parts, validation.test(data_set, HELD_OUT_HALF), truth)
            row |= _evidence(parts, validation.fits.training(names[0], HELD_OUT_HALF, data_set), truth)
            rows.append(row | {"converged": all(part.converged for part in parts.values())})
        first = [row for name in names for row in FittedFolds.of(self.observed, name, 1).rows()]
        second = [row for name in names for row in fitted[name].rows()]
        fits = pd.concat({"observed": pd.DataFrame(first), "simulated": pd.DataFrame(second)}, names=["data"])
        about = (len(self.data), draws, validation.seed)
        return Confusion(tuple(names), pd.DataFrame(rows), fits.reset_index(level=0), *about)


def winner_and_rival(scores: Mapping[str, float], truth: str) -> tuple[str, str]:
    """The best model, and whom it is compared with: the true one, or the next best if the best is the true one."""
    order = sorted(scores, key=lambda name: -scores[name])
    return order[0], truth if order[0] != truth else order[1]


def _held_out(parts: Mapping[str, Fitted], test: Dataset, truth: str) -> dict[str, Any]:
    """Winner, lead and scores by the bits per fixation of what was held out."""
    scores = {name: score_steps(part.model, test, part.vectors) for name, part in parts.items()}
    comparison = compare(bits_of(scores))
    bits = dict(zip(comparison.models["model"], comparison.models["mean"], strict=True))
    winner, rival = winner_and_rival(bits, truth)
    lead, error = comparison.against_best().set_index("second").loc[rival, ["difference", "standard_error"]]
    found = {"winner_held_out": winner, "lead_held_out": lead, "lead_error_held_out": error}
    return found | {f"{name}_bits": bits[name] for name in parts}


def _evidence(parts: Mapping[str, Fitted], train: Dataset, truth: str) -> dict[str, Any]:
    """Winner, lead and log evidences of the training half; no winner where a sampler gave no evidence.

    The evidence of a model without parameters is its likelihood, which has no error.
    """
    nats, errors = {}, {}
    for name, part in parts.items():
        if part.model.labels:
            nats[name], errors[name] = (part.facts[it] for it in ("log_evidence_nats", "standard_error_nats"))
        else:
            steps = Steps.of(train, memory=part.model.memory, short="skip")
            nats[name], errors[name] = float(log_likelihood(part.model, steps)), 0.0
    found: dict[str, Any] = {"winner_evidence": None, "lead_evidence": np.nan, "lead_error_evidence": np.nan}
    if np.isfinite(list(nats.values())).all():
        winner, rival = winner_and_rival(nats, truth)
        error = float(np.hypot(errors[winner], errors[rival]))
        found = {"winner_evidence": winner, "lead_evidence": nats[winner] - nats[rival], "lead_error_evidence": error}
    return found | {f"{name}_evidence_nats": nats[name] for name in parts}


# --- counting --------------------------------------------------------------------------------------------------------


def share_of(wins: int, data_sets: int, level: float = LEVEL) -> tuple[float, float, float]:
    """A share with Wilson's interval."""
    if not data_sets:
        return np.nan, 0.0, 1.0
    low, high = binomtest(wins, data_sets).proportion_ci(level, method="wilson")
    return wins / data_sets, float(low), float(high)


def confusion_matrix(
    truth: Sequence[str], winner: Sequence[str], models: Sequence[str], lead: Sequence[float] | None = None
) -> pd.DataFrame:
    """For every true model and every winner how often it won: `wins`, `share` of the data sets, `low` and `high`.

    `lead` says by how much the winner of each data set is ahead: of the true model, or of the next best where the true
    one wins. Its mean and median stand in `mean_lead` and `median_lead`.
    """
    unknown = [name for name in (*truth, *winner) if name not in models]
    if unknown or len(truth) != len(winner):
        among = f", with {unknown[0]!r} among them" if unknown else ""
        raise InputError(
            f"{len(truth)} true models and {len(winner)} winners{among}: give one of each for every data set, out of "
            "the models."
        )
    leads = np.full(len(truth), np.nan) if lead is None else np.asarray(lead, dtype=np.float64)
    rows = []
    for made in models:
        of_truth = np.array([name == made for name in truth], dtype=bool)
        for won in models:
            both = of_truth & np.array([name == won for name in winner], dtype=bool)
            share, low, high = share_of(int(both.sum()), int(of_truth.sum()))
            row = {"truth": made, "winner": won, "wins": int(both.sum()), "data_sets": int(of_truth.sum())}
            row |= {"share": share, "low": low, "high": high}
            some = leads[both] if both.any() else np.array([np.nan])
            rows.append(row | {"mean_lead": float(some.mean()), "median_lead": float(np.median(some))})
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class Confusion:
    """Who won on which data set, and every fit behind it.

    `data_sets` has for each criterion the winner, its lead over the true model (over the next best, where the true one
    wins) and that lead's standard error: over pictures for held-out bits, of the sampler for evidence.
    """

    models: tuple[str, ...]
    data_sets: pd.DataFrame
    fits: pd.DataFrame
    observers: int
    draws: int
    seed: int

    @property
    def criteria(self) -> dict[str, Criterion]:
        """Those that there is a winner of every data set for: evidence only if all fits have one."""
        complete = self.data_sets.columns[self.data_sets.notna().all()]
        return {name: it for name, it in CRITERIA.items() if f"winner_{name}" in complete}

    @property
    def unconverged(self) -> int:
        """Fits with problems; they are in all results, and marked there."""
        return int(np.sum(~self.fits["converged"].to_numpy(dtype=bool))) if len(self.fits) else 0

    def matrix(self, criterion: str) -> pd.DataFrame:
        """The confusion matrix by a criterion, a row for each of its cells."""
        truth, winner, lead = self._found(criterion)
        return confusion_matrix(truth, winner, self.models, lead)

    def recovered(self, criterion: str) -> tuple[float, float, float]:
        """The share of all data sets whose true model wins, with Wilson's interval."""
        truth, winner, _ = self._found(criterion)
        return share_of(sum(map(str.__eq__, truth, winner)), len(truth))

    def words(self, criterion: str) -> str:
        """By how much a wrong model is ahead where it wins, in a sentence."""
        truth, winner, leads = self._found(criterion)
        wrong = np.array(truth) != np.array(winner)
        if not wrong.any():
            return "No data set is won by another model."
        lead, error = np.array(leads)[wrong], self.data_sets[f"lead_error_{criterion}"].to_numpy(dtype=float)[wrong]
        return (
            f"Where another model wins ({len(lead)} of {len(truth)}), it is ahead of the true one by "
            f"{np.median(lead):.3g} {CRITERIA[criterion].unit} (median; mean {lead.mean():.3g}, largest "
            f"{lead.max():.3g}), in {int((lead < SURE * error).sum())} of {len(lead)} by less than {SURE:g} standard "
            "errors."
        )

    def _found(self, criterion: str) -> tuple[list[str], list[str], list[float]]:
        """True model, winner and its lead, of every data set."""
        names = ("truth", f"winner_{criterion}", f"lead_{criterion}")
        return tuple(self.data_sets[name].tolist() for name in names)  # type: ignore[return-value]
