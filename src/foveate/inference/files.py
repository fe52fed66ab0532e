"""Posteriors as netCDF files: written whole or not at all, and refused when they are anything else.

The groups `posterior` and `sample_stats` are ArviZ's own, so that ArviZ reads the file by itself. What only foveate
needs (the draws on the real line, importance weights, modes, the model and the provenance) lies in `foveate`.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr

from foveate.errors import InputError
from foveate.inference.diagnosis import diagnose
from foveate.inference.modes import Modes
from foveate.inference.posterior import Posterior
from foveate.inference.samples import Samples, Weighted
from foveate.model.description import describe, restore

FORMAT = 2  # raised when a file of the old form can no longer be read


def write_whole(path: Path, write) -> Path:
    """Let `write(temporary)` make a file, then put it in its place in one step: a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)  # a full disk does not say which file it was
        raise
    finally:
        temporary.unlink(missing_ok=True)
    return path


def save(posterior: Posterior, path: Path) -> Path:
    """Write a posterior to `path`."""
    tree = posterior.to_arviz()
    tree["foveate"] = xr.DataTree(_our_group(posterior))
    # Made in memory first: the HDF5 library takes the whole process with it when a disk is full.
    contents = cast(memoryview, tree.to_netcdf(engine="h5netcdf"))
    return write_whole(path, lambda temporary: temporary.write_bytes(contents))


def _our_group(posterior: Posterior) -> xr.Dataset:
    samples = posterior.samples
    arrays: dict[str, Any] = {"real": (("chain", "draw", "number"), samples.real)}
    if samples.weighted is not None:
        arrays["weighted_real"] = (("replicate", "weighted_draw", "number"), samples.weighted.real)
        arrays["log_weight"] = (("replicate", "weighted_draw"), samples.weighted.log_weight)
    if samples.modes is not None:
        modes = samples.modes
        arrays["mode_top"] = (("mode", "number"), modes.top)
        arrays["mode_label"] = (("label_replicate", "label_draw"), modes.label)
        for name in ("log_density", "mass", "mass_error"):
            arrays[f"mode_{name}"] = (("mode",), getattr(modes, name))
    header = {
        "format": FORMAT,
        "model": describe(posterior.model),
        "observer": posterior.observer,
        "sampler": samples.sampler,
        "settings": dict(samples.settings),
        "statistics": sorted(samples.statistics),
        "evaluations": samples.evaluations,
        "mode_evaluations": samples.modes.evaluations if samples.modes is not None else 0,
        "log_evidence_nats": samples.log_evidence_nats,
        "facts": dict(samples.facts),
        "provenance": dict(posterior.provenance),
        "diagnosis": posterior.diagnosis.to_dict(),
    }
    header["checksum"] = _checksum({name: values for name, (_, values) in arrays.items()}, samples.statistics)
    labels = np.array(posterior.labels, dtype=str)
    return xr.Dataset(arrays, coords={"number": labels}, attrs={"header": json.dumps(header)})


def _checksum(*groups: Mapping[str, np.ndarray]) -> str:
    """A text that changes with any number in the arrays: HDF5 itself does not see that a disk has lost some."""
    digest = hashlib.sha256()
    for arrays in groups:
        for name in sorted(arrays):
            digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def load(path: Path, parts: tuple[type, ...] = ()) -> Posterior:
    """The posterior in a file that `save` wrote."""
    if not path.is_file():
        raise InputError(f"there is no file {path}: posteriors are written by `foveate fit` and Posterior.save.")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as opened:
            tree = opened.load()
        group = tree["foveate"].to_dataset()
        header = json.loads(group.attrs["header"])
        held = tree["sample_stats"].to_dataset() if header["statistics"] else {}
        statistics = {name: held[name].values for name in header["statistics"]}
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{path} is not a posterior that foveate wrote, or not all of it: delete it and fit again."
        ) from error
    if header["format"] != FORMAT:
        raise InputError(
            f"{path} has format {header['format']}, this version of foveate reads {FORMAT}: delete it and fit again."
        )
    if header["checksum"] != _checksum({str(name): group[name].values for name in group.data_vars}, statistics):
        raise InputError(f"{path} is damaged: its numbers are not those that were written; delete it and fit again.")
    model = restore(header["model"], parts)
    evidence = header["log_evidence_nats"]
    samples = Samples(
        real=group["real"].values,
        sampler=header["sampler"],
        settings=header["settings"],
        statistics=statistics,
        evaluations=header["evaluations"],
        weighted=Weighted(group["weighted_real"].values, group["log_weight"].values) if "log_weight" in group else None,
        log_evidence_nats=tuple(evidence) if evidence is not None else None,
        modes=_modes(group, header["mode_evaluations"]),
        facts=header["facts"],
    )
    diagnosis = diagnose(model.labels, samples)
    return Posterior(model, header["observer"], samples, diagnosis, header["provenance"])


def _modes(group: xr.Dataset, evaluations: int) -> Modes | None:
    if "mode_top" not in group:
        return None
    values = {name: group[f"mode_{name}"].values for name in ("top", "log_density", "mass", "mass_error", "label")}
    return Modes(**values, evaluations=evaluations)
