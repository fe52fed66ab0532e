"""The command that made a folder, as one would type it again; and words that name files but not where they lie."""

import os
import re
import shlex
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.inference.fit import chosen_sampler
from foveate.model.catalogue import CATALOGUE, named_model
from foveate.model.description import describe
from foveate.model.model import Model
from foveate.report.folders import Results

CELLS = 64  # of a map along a side, unless a command says otherwise
# Where a path may begin in a sentence, and an absolute one: from a root, a drive or a server to a space or a sign.
BEGINS = r"(?<![\w.~/\\-])"
ABSOLUTE = re.compile(BEGINS + r"(?:[A-Za-z]:[/\\]|\\\\|/)[^\s'\"();:,]+")
FORMS = {"priors": ("weak", "published"), "repulsion": ("released", "printed", "none"), "ordered": (False, True)}


def command_line(results: Results, source: str | None = None) -> str | None:
    """The command; `source` are the data that were named for the page, if any. None for models of one's own."""
    asked = _fit(results, source) if not results.is_study else _study(results, source)
    if asked is None:
        return None
    words = [results.made_by]
    for name, value in asked.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words.append(f"{option} {shlex.quote(text)}")
    return " ".join([*words, f"--out {shlex.quote(results.folder.resolve().name)}"])


def name_alone(source: str | None) -> str | None:
    """The last part of where data lie: a report is sent to others, whom the rest of a path does not concern."""
    return None if source is None else Path(source).name


def without_folders(words: str, sources: Iterable[str | Path]) -> str:
    """The words with the last part of each absolute path in them alone, as `name_alone`; relative ones stay as typed.

    What lies beside or in one of the `sources` keeps the part of its path from there on. Where a path ends is known for
    those, for the working folder and the home, also if there are spaces in it; any other ends at a space.
    """
    parents = [place.parent for it in sources for place in (Path(it), Path(it).resolve())]
    home = Path(os.path.expanduser("~"))  # stays "~" where there is none
    known = {str(it) for it in (*parents, Path.cwd(), home) if it.is_absolute() and it.name}
    for folder in sorted(known, key=len, reverse=True):
        words = re.sub(rf"{BEGINS}{re.escape(folder)}[/\\]", "", words)
    return ABSOLUTE.sub(lambda found: re.split(r"[/\\]", found[0].rstrip("/\\"))[-1], words)


def _study(results: Results, source: str | None) -> dict[str, Any]:
    """What a study was asked, by its own word."""
    asked = dict(results.said.get("asked", {}))
    data = source if asked.get("data") is None else asked["data"]
    return {"data": None} | asked | {"data": name_alone(data), "draws": results.said.get("draws"), "seed": results.seed}


def _fit(results: Results, source: str | None) -> dict[str, Any] | None:
    """What `foveate fit` was asked, found by what it made: a folder of fits does not remember the words."""
    (name, model), said = next(iter(results.models.items())), results.said
    form = _form(name, model)
    if form is None:
        return None
    plain = {option: value for option, value in form.items() if value != FORMS[option][0]}
    own = set(said["settings"]) - {"draws", "particles"}
    if own:  # the sampler was given something that the command line has no option for
        return None
    everybody = len(results.observers) == len(said["observers"])
    return {
        "data": name_alone(source),
        "model": name,
        "observers": None if everybody else [str(it) for it in results.observers],
        **plain,
        "sampler": None if said["sampler"] == chosen_sampler(model, "auto") else said["sampler"],
        "cells": None if results.cells == CELLS else results.cells,
        "draws": said["settings"].get("draws", said["settings"].get("particles")),
        "seed": results.seed,
    }


def _form(name: str, model: Model) -> dict[str, Any] | None:
    """The settings with which the catalogue makes the same model; None if it does not."""
    if name not in CATALOGUE:
        return None
    described = describe(model)
    for values in product(*FORMS.values()):
        form = dict(zip(FORMS, values, strict=True))
        plain = {option: value for option, value in form.items() if value != FORMS[option][0]}
        try:
            if describe(named_model(name, **plain)) == described:
                return form
        except InputError:  # a model without that setting
            continue
    return None
