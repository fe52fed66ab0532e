"""The numbers of a report, out of a folder's results: plain dictionaries, lists, text and numbers, nothing of HTML.

A table is {"columns": [{"name", "kind"}], "rows": [[cell]], "marked": [bool], "scales": [text]}; rows of one scale have
their intervals drawn on a common one. Kinds of cells: "text"; "number", a float or None with the text to show, [value,
text]; "interval", [value, low, high], or with a number to set beside it, [value, low, high, observed].
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from foveate.data.dataset import Dataset
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, counted, some_of
from foveate.evaluate.saccades import Saccades
from foveate.figures.labels import symbol, unit
from foveate.model.catalogue import TITLES
from foveate.model.description import describe
from foveate.model.model import DRAWN_FROM_MAP
from foveate.report.command_line import command_line, name_alone
from foveate.report.folders import Fit, Results

Table = dict[str, Any]


def title_of(model: str) -> str:
    """A model's name as pages show it."""
    return TITLES.get(model, model)


def number(value: Any, digits: int = 3) -> list:
    """A cell of kind "number": the value to sort by and its text; what is not finite is a dash."""
    found = float(value)
    if not np.isfinite(found):
        return [None, "–"]
    text = f"{found:,.0f}" if abs(found) >= 1000 else f"{found:.{digits}f}"
    return [found, (text if float(text.replace(",", "")) else text.lstrip("-")).replace("-", "−")]


def table(
    columns: Sequence[tuple[str, str]],
    rows: list[list],
    marked: Sequence[bool] | None = None,
    scales: Sequence[str] | None = None,
) -> Table:
    """A table, its columns given as (name, kind)."""
    return {
        "columns": [{"name": name, "kind": kind} for name, kind in columns],
        "rows": rows,
        "marked": [False] * len(rows) if marked is None else list(marked),
        "scales": [""] * len(rows) if scales is None else list(scales),
    }


# --- what was done ---------------------------------------------------------------------------------------------------


def opening(results: Results, source: str | None = None) -> dict[str, Any]:
    """Title, command, settings, seed, versions and date of a folder; `source` are the data named for the page."""
    names = [title_of(name) for name in results.models]
    who = counted(len(results.observers) or int(results.said.get("observers", 0)), "observer")
    if results.is_study:
        title = f"{counted(len(names), 'model')} compared on held-out pictures, {who}"
        if results.made_by == "foveate reproduce":
            title = f"The paper done again: {title}"
    else:
        title = f"{names[0]}, fitted to {who}"
    return {
        "title": title,
        "folder": results.folder.resolve().name,
        "made_by": results.made_by,
        "command": command_line(results, source),
        "settings": _settings(results),
        "seed": results.seed,
        "versions": _versions(results),
        "when": results.when.strftime("%Y-%m-%d %H:%M"),
    }


def _settings(results: Results) -> list[list[str]]:
    """(name, value) of everything that the numbers depend on."""
    said = results.said
    rows = [["made by", results.made_by], ["seed", str(results.seed)]]
    if results.is_study:
        rows += [
            [name.replace("_", " "), _words(name_alone(value) if name == "data" else value)]
            for name, value in said.get("asked", {}).items()
            if name != "cells"
        ]
        rows += [["draws that predict", _words(said.get("draws"))]]
    else:
        rows += [["model", results.fits[0].model], ["sampler", _words(said["sampler"])]]
        own = said["settings"] or results.fits[0].posterior.samples.settings
        rows += [[f"sampler's {name.replace('_', ' ')}", _words(value)] for name, value in own.items()]
        rows += [["fingerprint of the data", said["data"]]]
    rows += [["cells of a map", f"{results.cells} × {results.cells}"]]
    for name, model in results.models.items():
        described = describe(model)
        parts = ", ".join(part["class"] for part in (*described["policies"], described["choice"]))
        priors = "; ".join(f"{symbol(it)} ~ {_prior(prior)}" for it, prior in described["priors"].items())
        order = ", epsilon below xi" if described["ordered"] else ""
        rows += [[f"{title_of(name)}: parts", parts], [f"{title_of(name)}: priors", priors + order or "none"]]
    return rows


def _prior(prior: Mapping[str, Any]) -> str:
    return (
        f"{prior['class']}({', '.join(f'{name} {_words(value)}' for name, value in prior.items() if name != 'class')})"
    )


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    return f"{value:g}" if isinstance(value, float) else "–" if value is None else str(value)


def _versions(results: Results) -> dict[str, str]:
    """Of the packages that made the numbers, and of foveate that made the page."""
    made = results.said.get("versions") or (results.fits[0].posterior.provenance.get("versions", {}))
    return {str(name): str(it) for name, it in made.items()} | {"this page": f"foveate {version('foveate')}"}


# --- convergence -----------------------------------------------------------------------------------------------------


def convergence(results: Results) -> dict[str, Any]:
    """How many fits have converged, the worst numbers, and a table of all fits with problems first."""
    fits = sorted(results.fits, key=lambda fit: fit.diagnosis.converged)
    bad = [fit for fit in fits if not fit.diagnosis.converged]
    over = [fit for fit in fits if fit.posterior.samples.settings.get("instead_of")]
    return {
        "fits": len(fits),
        "converged": len(fits) - len(bad),
        "worst_rhat": max((fit.diagnosis.max_rhat for fit in fits), default=None),
        "least_ess": min((fit.diagnosis.min_ess for fit in fits), default=None),
        "noted": sum(bool(fit.diagnosis.notes) for fit in fits),
        "taken_over": len(over),
        "missing": [str(it) for it in results.missing],
        "table": _fit_table(fits, results.is_study),
    }


def _fit_table(fits: list[Fit], is_study: bool) -> Table:
    columns = [("observer", "text")]
    columns += [("model", "text"), ("fold", "number")] if is_study else []
    columns += [("verdict", "text"), ("R-hat", "number"), ("bulk ESS", "number"), ("tail ESS", "number")]
    columns += [("Pareto k", "number"), ("diverging", "number"), ("modes", "number"), ("steps", "number")]
    columns += [("seconds", "number"), ("remarks", "text")]
    rows = []
    for fit in fits:
        found, said, nan = fit.diagnosis, fit.posterior.provenance, np.nan
        row = [str(fit.observer)]
        row += [title_of(fit.model), number(fit.fold, 0)] if is_study else []
        sampler = fit.posterior.samples
        over = f"{sampler.sampler} took over from {sampler.settings['instead_of']}." if _over(fit) else ""
        row += [
            "converged" if found.converged else "NOT CONVERGED",
            number(found.max_rhat),
            number(min(found.ess_bulk, default=nan), 0),
            number(min(found.ess_tail, default=nan), 0),
            number(nan if found.pareto_k is None else found.pareto_k, 2),
            number(found.divergences if found.acceptance is not None else nan, 0),
            number(nan if fit.modes is None else fit.modes, 0),
            number(said.get("steps", nan), 0),
            number(said.get("seconds", nan), 1),
            " ".join([*found.problems, *(f"Note: {note}" for note in found.notes), over]).strip(),
        ]
        rows.append(row)
    return table(columns, rows, [not fit.diagnosis.converged for fit in fits])


def _over(fit: Fit) -> bool:
    return bool(fit.posterior.samples.settings.get("instead_of"))


# --- data ------------------------------------------------------------------------------------------------------------


def data_facts(results: Results, each: Mapping[Any, Dataset] | None, said: Sequence[str] = ()) -> dict[str, Any]:
    """What the fits have seen, as (name, value); without the data themselves, what the fits remember of them."""
    if each is None:
        seen = [fit.posterior.provenance for fit in results.fits]
        steps = sorted({int(it["steps"]) for it in seen if "steps" in it})
        facts = [["observers", some_of(results.observers, 40)]]
        if steps:
            facts.append(["scored steps of a fit", f"{steps[0]:,} to {steps[-1]:,}"])
        return {"facts": [*facts, ["cells of a map", f"{results.cells} × {results.cells}"]], "said": list(said)}
    paths = [own.paths for own in each.values()]
    lengths = np.concatenate([it.length for it in paths])
    steps = sum(int(it.scored(DRAWN_FROM_MAP).sum()) for it in paths)
    pictures = in_order({picture for it in paths for picture in it.pictures})
    amplitude = np.concatenate([_amplitudes_deg(it) for it in paths])
    grid, middle = next(iter(each.values())).maps.grid, np.median(lengths)
    whose = "the same for all" if shared_maps(each) else "each observer their own"
    long_deg = np.quantile(amplitude, 0.95)
    facts = [
        ["observers", f"{len(each)}: {some_of(list(each), 40)}"],
        ["pictures", f"{len(pictures)}: {some_of(pictures, 40)}"],
        ["scan paths", f"{len(lengths):,}, of {lengths.min()} to {lengths.max()} fixations, median {middle:g}"],
        ["fixations", f"{lengths.sum():,}"],
        ["scored steps", f"{steps:,} (the third fixation of a path and on, but for forced ones)"],
        ["saccade amplitude", f"median {np.median(amplitude):.1f} deg, 95 % below {long_deg:.1f} deg"],
        ["picture", f"{grid.extent.width_deg:.4g} × {grid.extent.height_deg:.4g} deg"],
        ["maps", f"{grid.rows} × {grid.columns} cells, {whose}"],
    ]
    durations = [it.duration_s[it.real] for it in paths if it.duration_s is not None]
    if durations:
        facts.insert(5, ["fixation duration", f"median {1000 * np.median(np.concatenate(durations)):.0f} ms"])
    return {"facts": facts, "said": list(said)}


def in_order(names: Iterable[Any]) -> list:
    """Numbers by size, then text by its letters."""
    return sorted(names, key=lambda it: (isinstance(it, str), it))


def _amplitudes_deg(paths: ScanPaths) -> np.ndarray:
    try:
        return Saccades.of(paths).amplitudes_deg
    except InputError:  # somebody who made none
        return np.zeros(0)


def shared_maps(each: Mapping[Any, Dataset]) -> bool:
    """Whether all observers saw a picture with the same map."""
    first: dict[Any, np.ndarray] = {}
    for own in each.values():
        for picture, values in zip(own.maps.pictures, own.maps.values, strict=True):
            if not np.array_equal(first.setdefault(picture, values), values):
                return False
    return True


# --- parameters ------------------------------------------------------------------------------------------------------


def parameters(results: Results) -> list[dict[str, Any]]:
    """For each model a table with a row for every fit: the mean and 95 % interval of each number."""
    found = []
    for name in results.models:
        fits = [fit for fit in results.fits if fit.model == name]
        if not fits:
            continue
        labels = fits[0].posterior.labels
        columns = [("observer", "text")] + ([("fold", "number")] if results.is_study else [])
        columns += [(f"{symbol(it)}{f' ({unit(it)})' if unit(it) else ''}", "interval") for it in labels]
        rows = []
        for fit in fits:
            cells = [[float(it) for it in fit.table.loc[label, ["mean", "2.5%", "97.5%"]]] for label in labels]
            rows.append([str(fit.observer), *([number(fit.fold, 0)] if results.is_study else []), *cells])
        marked = [not fit.diagnosis.converged for fit in fits]
        found.append({"title": title_of(name), "table": table(columns, rows, marked)})
    return found
