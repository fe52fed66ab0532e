"""What all fits of a folder have in common: the model, the data, the sampler and the seed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import jax
from jaxtyping import PRNGKeyArray

from foveate.data.dataset import Observed, each_observer, fingerprint_of
from foveate.errors import InputError, some_of
from foveate.inference.fit import Sampler, chosen_sampler
from foveate.model.description import describe, restore, same_structure
from foveate.model.model import Model

FORMAT = 1  # raised when a run of the old form can no longer be read
STAMPED = ("data", "seed", "sampler", "settings", "version")


@dataclass(frozen=True, eq=False)
class Run:
    """A model fitted to the observers of a data set, each by itself, with one seed and one sampler."""

    model: Model
    data: str  # fingerprint of the whole data set
    observers: tuple[int | str, ...]  # all in the data, fitted or not
    seed: int
    sampler: Sampler | Literal["hierarchy"]  # the latter fits all observers together, in a `PopulationStore`
    settings: Mapping[str, Any]  # of the sampler, where they are not its own defaults; JSON can hold them
    version: str

    @classmethod
    def of(
        cls,
        model: Model,
        data: Observed,
        seed: int,
        *,
        sampler: str = "auto",
        settings: Mapping[str, Any] | None = None,
    ) -> "Run":
        """The run of this version of foveate; for "auto" it names the sampler that will be used."""
        observers = tuple(each_observer(data))
        chosen = chosen_sampler(model, sampler)
        return cls(model, fingerprint_of(data), observers, seed, chosen, dict(settings or {}), version("foveate"))

    @property
    def key(self) -> PRNGKeyArray:
        """The key that every observer's own is made from."""
        return jax.random.key(self.seed)

    @property
    def stamp(self) -> dict[str, Any]:
        """What every fit of the run carries, beside its model: as JSON gives it back."""
        said = {name: getattr(self, name) for name in STAMPED} | {"settings": dict(self.settings)}
        return json.loads(json.dumps(said))

    def to_dict(self) -> dict[str, Any]:
        """The run as something that JSON can hold."""
        return {"format": FORMAT, "model": describe(self.model), "observers": list(self.observers)} | self.stamp

    @classmethod
    def from_dict(cls, said: Mapping[str, Any], parts: tuple[type, ...] = ()) -> "Run":
        """The run that `to_dict` wrote down; `parts` are policies and choices of one's own."""
        if said["format"] != FORMAT:
            raise InputError(f"the run has format {said['format']}, this version of foveate reads {FORMAT}.")
        return cls(
            model=restore(said["model"], parts),
            observers=tuple(said["observers"]),
            **{name: said[name] for name in STAMPED},
        )

    def differences(self, other: "Run") -> list[str]:
        """In what this run differs from another one, in words; none if the other's fits would be the same."""
        found = []
        if self.model.name != other.model.name:
            found.append(f"model {self.model.name!r}, not {other.model.name!r}")
        elif not same_structure(self.model, describe(other.model)):
            found.append(_difference(describe(self.model), describe(other.model)))
        elif self.sampler == "laplace" and describe(self.model) != describe(other.model):
            found.append("other values of the parameters, which climbs start from")
        if self.data != other.data:
            found.append("other data, or maps on another grid")
        for name in ("seed", "sampler"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                found.append(f"{name} {mine}, not {theirs}")
        if self.stamp["settings"] != other.stamp["settings"]:
            found.append(f"{_words(self.settings)}, not {_words(other.settings)}")
        if self.version != other.version:
            found.append(f"foveate {self.version}, not {other.version}")
        return found


def _difference(mine: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Which priors or which parts differ between two models of one name."""
    names = [name for name in mine["priors"] if mine["priors"][name] != theirs["priors"].get(name)]
    if names:
        return f"other priors for {some_of(names)}"
    classes = [" and ".join(part["class"] for part in (*said["policies"], said["choice"])) for said in (mine, theirs)]
    return f"{classes[0]}, not {classes[1]}" if classes[0] != classes[1] else "other constants in the model's parts"


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "the sampler's own settings"
