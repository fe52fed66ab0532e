"""The paper's recovery experiment: simulate with known parameters, fit, and see whether the fit finds them.

One observer looks at every picture; ten chains start far apart. Truths and priors are those of the paper's Figure 4
for the full model, and of the released configurations for its rivals, in px^2 of the released coordinates.
"""

from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.data.dataset import Dataset
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError, some_of
from foveate.experiments.part_models import PART_MODELS, part_model
from foveate.inference.draws import generator
from foveate.inference.fit import fit
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Report, silent
from foveate.inference.starts import dispersed_starts
from foveate.inference.target import Target, log_densities
from foveate.model.catalogue import PUBLISHED_FULL, from_published
from foveate.model.model import Model
from foveate.model.priors import Normal, Prior
from foveate.precision import check_key
from foveate.simulation.plans import Plan
from foveate.simulation.simulate import Stacked, simulate_plan

RecoverySampler = Literal["nuts", "importance", "gibbs"]
SAMPLERS: tuple[str, ...] = ("nuts", "importance", "gibbs")

SHORTEST_PATH, LONGEST_PATH = 30, 36  # fixations
CHAINS = 10
INTERVAL = 0.95

# (row, column) in px^2; Local Choice's b and s0 for saliency as a probability per cell of the 64 x 64 grid.
VARIANCES_PX2: dict[str, Any] = {"epsilon": (25, 35), "xi": (230, 280)}
TRUTHS: dict[str, dict[str, Any]] = {
    "full": VARIANCES_PX2 | {"b": 0.2, "s0": 3.0},
    "local_choice": VARIANCES_PX2 | {"b": 3500.0, "s0": 0.001},
    "fixed_choice": VARIANCES_PX2 | {"rho": 0.5},
    "local_saliency": {"xi": VARIANCES_PX2["xi"]},
}

# Where they differ from the published ones: all models have the full model's priors on their variances here.
VARIANCE_PRIORS: dict[str, Prior] = {name: PUBLISHED_FULL[name] for name in VARIANCES_PX2}
FULL_PRIORS: dict[str, Prior] = {"b": Normal(1.5, 1.0), "s0": Normal(2.5, 1.0)}

# Short chains: there are ten of them. Gibbs crawls in epsilon and needs many more sweeps than it keeps.
SETTINGS: dict[str, dict[str, Any]] = {
    "nuts": {"warmup": 400, "draws": 400},
    "importance": {"draws": 400},
    "gibbs": {"warmup": 2000, "draws": 1000, "thin": 8},
}

# Places drawn for each chain's start, of which the first with a finite density is taken.
TRIALS = 8


@dataclass(frozen=True, eq=False)
class Recovery:
    """A posterior fitted to data whose parameters are known, and where these lie in it."""

    truth: Model  # with the experiment's priors
    posterior: Posterior

    @property
    def truths(self) -> Float[np.ndarray, " number"]:
        """The true value of every number of the model."""
        return np.concatenate([np.ravel(value) for value in self.truth.parameters.values()])

    @property
    def quantiles(self) -> Float[np.ndarray, " number"]:
        """Share of the draws below the truth, number by number."""
        numbers = self.posterior.numbers.reshape(-1, len(self.posterior.labels))
        return (numbers < self.truths).mean(axis=0)

    @property
    def inside(self) -> np.ndarray:
        """Whether the truth lies in the central 95 % interval of each number."""
        tail = (1 - INTERVAL) / 2
        return (self.quantiles >= tail) & (self.quantiles <= 1 - tail)

    def table(self) -> pd.DataFrame:
        """Truth, posterior and where the one lies in the other, a row for every number."""
        found = self.posterior.table()
        columns = {"truth": self.truths, "quantile": self.quantiles, "inside": self.inside}
        return pd.concat([pd.DataFrame(columns, index=found.index), found], axis=1)

    @property
    def verdict(self) -> str:
        """In words: how many truths were found, and whether the fit can be trusted."""
        missed = [label for label, found in zip(self.posterior.labels, self.inside, strict=True) if not found]
        words = (
            f"{len(self.inside) - len(missed)} of {len(self.inside)} true values lie in their {INTERVAL:.0%} interval"
        )
        words += f" (not {some_of(missed)})" if missed else ""
        return f"{words}; {self.posterior.diagnosis.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """As something that JSON can hold."""
        rows = self.table().astype(object).to_dict(orient="index")
        return {
            "model": self.truth.name,
            "sampler": self.posterior.samples.sampler,
            "settings": dict(self.posterior.samples.settings),
            "provenance": dict(self.posterior.provenance),
            "numbers": rows,
            "converged": self.posterior.converged,
            "verdict": self.verdict,
        }


def recovery_model(name: str) -> Model:
    """The model of this name with the experiment's true values and priors; a small one of `part_models` as it is."""
    if name in PART_MODELS:
        return part_model(name)
    if name not in TRUTHS:
        raise InputError(f"no recovery experiment for model {name!r}; there are {some_of(list(TRUTHS))}.")
    truth = from_published(name, **TRUTHS[name])
    priors = VARIANCE_PRIORS | (FULL_PRIORS if name == "full" else {})
    return truth.with_priors({parameter: prior for parameter, prior in priors.items() if parameter in truth.priors})


def recovery_data(truth: Model, maps: SaliencyMaps, key: PRNGKeyArray) -> Dataset:
    """Scan paths of one observer on all pictures, simulated with the truth."""
    for_lengths, for_paths = jax.random.split(key)
    plan = Plan.everyone([1], list(maps.pictures), LONGEST_PATH)
    rng = generator(for_lengths)
    length = rng.integers(SHORTEST_PATH, LONGEST_PATH, endpoint=True, size=len(maps))
    return Dataset(simulate_plan(Stacked.of({1: truth}), maps, replace(plan, length=length), for_paths), maps)


def split_key(key: PRNGKeyArray) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """The experiment's keys: for the data, for the starts and for the fit."""
    for_data, for_starts, for_fit = jax.random.split(key, 3)
    return for_data, for_starts, for_fit


def recover(
    name: str,
    maps: SaliencyMaps,
    key: PRNGKeyArray,
    *,
    chains: int = CHAINS,
    sampler: RecoverySampler = "nuts",
    threads: int | None = None,
    report: Report = silent,
    **settings: Any,
) -> Recovery:
    """The recovery experiment for the model of this name; `settings` go to the sampler, beside those of `SETTINGS`."""
    check_key(key)
    if sampler not in SAMPLERS:
        raise InputError(f"sampler = {sampler!r}: there are {some_of(list(SAMPLERS))}.")
    truth = recovery_model(name)
    for_data, for_starts, for_fit = split_key(key)
    data = recovery_data(truth, maps, for_data)
    chosen = SETTINGS[sampler] | settings
    if sampler == "importance":
        chosen |= {"replicates": chains}
    else:
        chosen |= {"chains": chains, "starts": far_apart(Target.of(truth, data), for_starts, chains)}
    posterior = fit(truth, data, for_fit, sampler=sampler, threads=threads, report=report, **chosen)
    return Recovery(truth, posterior)


def recover_once(file: Path, name: str, maps: SaliencyMaps, key: PRNGKeyArray, **settings: Any) -> Recovery:
    """As `recover`, the posterior kept in a file; one that is there is not fitted again, nor taken if of other data."""
    if not file.exists():
        found = recover(name, maps, key, **settings)
        found.posterior.save(file)
        return found
    posterior, truth = Posterior.load(file), recovery_model(name)
    if posterior.provenance["data"] != recovery_data(truth, maps, split_key(key)[0]).fingerprint():
        raise InputError(f"{file} was fitted to other data than these: give another folder, or delete it.")
    ours = version("foveate")
    if (theirs := posterior.provenance.get("versions", {}).get("foveate", ours)) != ours:
        raise InputError(f"{file} was fitted by foveate {theirs}, this is {ours}: delete it to fit again.")
    return Recovery(truth, posterior)


def far_apart(target: Target, key: PRNGKeyArray, chains: int) -> Float[np.ndarray, "chain number"]:
    """Dispersed starts for chains, all where the posterior density is finite."""
    places = dispersed_starts(target, key, TRIALS * chains)
    finite = places[np.isfinite(log_densities(target, places))]
    if len(finite) < chains:
        raise InputError(f"only {len(finite)} of {len(places)} starts have a finite density; run fewer chains.")
    return finite[:chains]
