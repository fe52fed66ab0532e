"""A model in plain words and numbers, for files: which parts, which values, which priors; and back."""

from dataclasses import fields
from typing import Any

import equinox as eqx
import numpy as np

from foveate.errors import InputError
from foveate.model import choices, directions, durations, factors, mechanisms, places, policies, priors
from foveate.model.model import Model


def describe(model: Model) -> dict[str, Any]:
    """The model as something that JSON can hold."""
    return {
        "name": model.name,
        "policies": [_describe(policy) for policy in model.policies],
        "choice": _describe(model.choice),
        "priors": {name: _describe(prior) for name, prior in model.priors.items()},
        "ordered": model.ordered,
    } | ({} if model.durations is None else {"durations": _describe(model.durations)})


def _describe(part: eqx.Module) -> dict[str, Any]:
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {"class": type(part).__name__} | {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, eqx.Module):
        return _describe(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, bool | str) else np.asarray(value).tolist()


def restore(description: dict[str, Any], parts: tuple[type, ...] = ()) -> Model:
    """The model that was described; classes of one's own are given in `parts`."""
    known: dict[str, type] = {}
    for module in (policies, mechanisms, factors, directions, places, choices, durations, priors):
        known |= {name: it for name, it in vars(module).items() if isinstance(it, type) and issubclass(it, eqx.Module)}

    known |= {part.__name__: part for part in parts}  # one's own is meant where a name is the same

    def build(part: dict[str, Any]) -> Any:
        if part["class"] not in known:
            raise InputError(
                f"model {description['name']!r} has a part {part['class']!r} that foveate does not know: pass the "
                "class as parts=(...,)."
            )
        return known[part["class"]](**{name: built(value) for name, value in part.items() if name != "class"})

    def built(value: Any) -> Any:
        if isinstance(value, dict):
            return build(value)
        nested = isinstance(value, list) and any(isinstance(item, dict) for item in value)
        return tuple(build(item) for item in value) if nested else value

    return Model(
        tuple(build(part) for part in description["policies"]),
        build(description["choice"]),
        {name: build(prior) for name, prior in description["priors"].items()},
        description["name"],
        description.get("ordered", False),
        build(description["durations"]) if "durations" in description else None,
    )


def same_structure(model: Model, description: dict[str, Any]) -> bool:
    """Whether the model has the parts and priors that are described, whatever the present values of its parameters."""
    return _without_values(describe(model)) == _without_values(description)


def _without_values(description: dict[str, Any]) -> dict[str, Any]:
    """What stays of a description without the values of parameters, which are those that have a prior."""

    def structure(value: Any) -> Any:
        if isinstance(value, list):
            return [structure(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {name: structure(item) for name, item in value.items() if name not in description["priors"]}

    more = [description["durations"]] if "durations" in description else []
    parts = [structure(part) for part in (*description["policies"], description["choice"], *more)]
    ordered = description.get("ordered", False)
    return {"name": description["name"], "parts": parts, "priors": description["priors"], "ordered": ordered}
