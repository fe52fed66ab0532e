"""The parts of a model, however they are nested: a modulated policy holds a policy and factors."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import equinox as eqx
import numpy as np

from foveate.model.history import Array

AXES = ("row", "column")

P = TypeVar("P", bound=eqx.Module)


def _held(part: eqx.Module) -> Iterator[tuple[str, Any]]:
    """Names and values of the fields that are no settings."""
    return ((it.name, getattr(part, it.name)) for it in fields(part) if not it.metadata.get("static", False))


def _inside(value: Any) -> tuple[eqx.Module, ...]:
    """The parts that a field holds: itself, or those of a tuple; none if it holds a parameter."""
    if isinstance(value, eqx.Module):
        return (value,)
    return value if isinstance(value, tuple) else ()


def is_held(value: Any) -> bool:
    """Whether a field holds parts, not a parameter."""
    return isinstance(value, eqx.Module | tuple)


def every_part(*parts: eqx.Module) -> Iterator[eqx.Module]:
    """The parts and all that they hold, outermost first."""
    for part in parts:
        yield part
        for _, value in _held(part):
            yield from every_part(*_inside(value))


def duration_readers(*parts: eqx.Module) -> list[str]:
    """The classes, among these parts and all that they hold, that depend on how long the present fixation lasts."""
    return [type(part).__name__ for part in every_part(*parts) if getattr(part, "reads_duration", False)]


def own_parameters(part: eqx.Module) -> Iterator[tuple[str, Array]]:
    """Names and values of the parameters of a part alone."""
    return ((name, value) for name, value in _held(part) if not is_held(value))


def parameters_of(part: eqx.Module) -> Iterator[tuple[str, Array]]:
    """Names and values of the parameters of a part and of all that it holds, in the order of the fields."""
    for name, value in _held(part):
        if is_held(value):
            for inner in _inside(value):
                yield from parameters_of(inner)
        else:
            yield name, value


def number_labels(name: str, value: Array) -> list[str]:
    """A label for every number of a parameter: a pair has one for each axis, other arrays are counted."""
    size = int(np.prod(np.shape(value)))
    if np.shape(value) == ():
        return [name]
    return [f"{name}_{axis}" for axis in (AXES if np.shape(value) == (len(AXES),) else range(size))]


def with_values(part: P, values: Mapping[str, Any]) -> P:
    """The part with other values for some of its parameters and of those that it holds."""
    changed: dict[str, Any] = {}
    for name, value in _held(part):
        if isinstance(value, eqx.Module):
            changed[name] = with_values(value, values)
        elif isinstance(value, tuple):
            changed[name] = tuple(with_values(inner, values) for inner in value)
        elif name in values:
            changed[name] = values[name]
    return replace(part, **changed)
