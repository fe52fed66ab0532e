"""The posterior of one observer's parameters: draws, how they were made, and whether to trust them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray

from foveate.errors import InputError
from foveate.inference.diagnosis import Diagnosis
from foveate.inference.samples import Samples
from foveate.model.model import Model
from foveate.model.parts import AXES
from foveate.precision import check_key, double_precision


@dataclass(frozen=True, eq=False)
class Posterior:
    """Equally weighted draws of a model's parameters given one observer's scan paths.

    `samples` is what the sampler returned, on the real line; `draws` are the parameters themselves. Everything that is
    made from a posterior carries its diagnosis along: a fit that has not converged says so wherever it is shown.
    """

    model: Model  # its structure and priors; the parameter values are those that it was given with
    observer: int | str
    samples: Samples
    diagnosis: Diagnosis
    provenance: Mapping[str, Any]  # seed or key, data fingerprint, steps, versions, seconds; JSON can hold it

    def __repr__(self) -> str:
        """The model, the observer and the verdict, in a line."""
        chains, draws = self.samples.real.shape[:2]
        return (
            f"Posterior({self.model.name!r}, observer {self.observer}, {chains} x {draws} draws by "
            f"{self.samples.sampler}; {self.diagnosis.verdict})"
        )

    @property
    def converged(self) -> bool:
        """Whether the diagnosis found nothing against the draws."""
        return self.diagnosis.converged

    @cached_property
    def draws(self) -> dict[str, Float[np.ndarray, "chain draw ..."]]:
        """The draws of every parameter by name: variances as (chain, draw, axis), others as (chain, draw)."""
        return parameters_of(self.model, self.samples.real)

    @property
    def labels(self) -> list[str]:
        """A label for every number: 'epsilon_row', ..., in the order of `table`."""
        return self.model.labels

    @property
    def numbers(self) -> Float[np.ndarray, "chain draw number"]:
        """The draws as one array, a column for every label."""
        chains, draws = self.samples.real.shape[:2]
        return np.concatenate(
            [np.zeros((chains, draws, 0)), *(it.reshape(chains, draws, -1) for it in self.draws.values())], axis=-1
        )

    def table(self) -> pd.DataFrame:
        """Mean, standard deviation, 95 % interval, R-hat and ESS of every number, one row each."""
        values = self.numbers.reshape(-1, len(self.labels))
        low, middle, high = np.quantile(values, [0.025, 0.5, 0.975], axis=0)
        return pd.DataFrame(
            {
                "mean": values.mean(axis=0),
                "sd": values.std(axis=0, ddof=1),
                "2.5%": low,
                "median": middle,
                "97.5%": high,
                "rhat": self.diagnosis.rhat,
                "ess_bulk": self.diagnosis.ess_bulk,
                "ess_tail": self.diagnosis.ess_tail,
            },
            index=pd.Index(self.labels, name="parameter"),
        )

    def modes(self) -> pd.DataFrame:
        """The modes with their mass, its Monte Carlo error and the best draw of each; empty if they are not known."""
        found = self.samples.modes
        if found is None:
            return pd.DataFrame(columns=pd.Index(["mass", "mass_error", "log_density_nats", *self.labels]))
        tops = parameters_of(self.model, found.top[None])
        numbers = np.concatenate([it.reshape(len(found.mass), -1) for it in tops.values()], axis=-1)
        columns = {"mass": found.mass, "mass_error": found.mass_error, "log_density_nats": found.log_density}
        return pd.DataFrame(columns | dict(zip(self.labels, numbers.T, strict=True)))

    def disordered_share(self) -> float:
        """Share of the draws in which epsilon exceeds xi on some axis (the paper wants xi > epsilon on both)."""
        if not {"epsilon", "xi"} <= set(self.draws):
            return 0.0
        return float((self.draws["epsilon"] >= self.draws["xi"]).any(axis=-1).mean())

    @double_precision
    def models(self, count: int, key: PRNGKeyArray) -> list[Model]:
        """`count` models with parameters drawn from the posterior, without repeating a draw while there are others."""
        check_key(key)
        flat = self.samples.real.reshape(-1, len(self.labels))
        if count < 1:
            raise InputError(f"count = {count}: give the number of models, 1 or more.")
        chosen = np.asarray(jax.random.choice(key, len(flat), (count,), replace=count > len(flat)))
        return [self.model.from_real(jnp.asarray(flat[row])) for row in chosen]

    @double_precision
    def mean_model(self) -> Model:
        """The model at the mean of the draws on the real line: one point, for pictures; it may lie between modes."""
        return self.model.from_real(jnp.asarray(self.samples.real.reshape(-1, len(self.labels)).mean(axis=0)))

    def to_arviz(self):
        """The draws and sampler statistics as ArviZ's DataTree."""
        from arviz_base import from_dict

        labels = self.model.labels_of
        several = {name: value for name, value in self.draws.items() if value.ndim > 2}
        pairs = [name for name in several if labels[name] == [f"{name}_{axis}" for axis in AXES]]
        others = {name: f"{name}_number" for name in several if name not in pairs}
        draws = {name: value.reshape(*value.shape[:2], -1) if name in others else value
                 for name, value in self.draws.items()}  # fmt: skip
        return from_dict(
            {"posterior": draws, "sample_stats": dict(self.samples.statistics)},
            dims={name: ["axis"] for name in pairs} | {name: [dim] for name, dim in others.items()},
            coords=({"axis": list(AXES)} if pairs else {}) | {dim: labels[name] for name, dim in others.items()},
            attrs={"posterior": {"observer": str(self.observer), "model": self.model.name,
                                 "verdict": self.diagnosis.verdict}},
        )  # fmt: skip

    def save(self, path: str | Path) -> Path:
        """Write the posterior to a netCDF file; all of it or nothing."""
        from foveate.inference.files import save

        return save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, parts: tuple[type, ...] = ()) -> "Posterior":
        """The posterior in a file; `parts` are the policies and choices of one's own that its model is made of."""
        from foveate.inference.files import load

        return load(Path(path), parts)


def parameters_of(model: Model, real: Float[np.ndarray, "*batch number"]) -> dict[str, np.ndarray]:
    """Every parameter by name, for vectors on the real line with any leading axes."""
    found, first = {}, 0
    with jax.enable_x64(True):
        for name, value in model.parameters.items():
            shape = np.shape(value)
            part = real[..., first : first + int(np.size(value))].reshape(*real.shape[:-1], *shape)
            first += int(np.size(value))
            found[name] = np.asarray(model.priors[name].from_real(jnp.asarray(part)))
    return found
