"""Files of hierarchical fits: netCDF files of named arrays, written whole or not at all, with a checksum."""

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np

from foveate.errors import InputError
from foveate.inference.files import write_whole
from foveate.inference.population import Population
from foveate.inference.population_posterior import PopulationPosterior, population_diagnosis
from foveate.inference.posterior import Posterior
from foveate.model.description import describe, restore

FORMAT = 1  # raised when a file of the old form can no longer be read
PLAIN = ("mean", "spread", "modes", "hessians", "slopes", "covariance")  # arrays of a learnt population


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Path:
    """Write arrays by name and something that JSON can hold."""
    values = {name: np.asarray(value) for name, value in arrays.items()}
    said = {"format": FORMAT, "checksum": _checksum(values), **header}

    # Not by xarray: while there is a Dask client in the process, it asks the cluster before it writes. And in memory
    # first: the HDF5 library takes the whole process with it when a disk is full.
    contents = BytesIO()
    with h5netcdf.File(contents, "w") as file:
        file.attrs["header"] = json.dumps(said)
        for name, it in values.items():
            axes = tuple(f"{name}_{axis}" for axis in range(it.ndim))
            file.dimensions.update(dict(zip(axes, it.shape, strict=True)))
            held = it.astype(np.int8) if it.dtype == bool else it  # which netCDF does not know
            file.create_variable(name, axes, held.dtype, data=held)
    return write_whole(path, lambda temporary: temporary.write_bytes(contents.getbuffer()))


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """What `write_arrays` wrote."""
    try:
        with h5netcdf.File(path, "r") as opened:
            arrays = {str(name): np.asarray(it[...]) for name, it in opened.variables.items()}
            header = json.loads(str(opened.attrs["header"]))
        fine = header["format"] == FORMAT and header["checksum"] == _checksum(arrays)
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise InputError(f"{path} is not a file that foveate wrote, or not all of it: delete it and go on.") from error
    if not fine:
        raise InputError(f"{path} is damaged, or of another version of foveate: delete it and go on.")
    return arrays, header


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name], dtype=np.float64).tobytes())
    return digest.hexdigest()


def write_learnt(path: Path, population: Population) -> Path:
    """Write what `learn_population` found."""
    arrays = {name: getattr(population, name) for name in PLAIN}
    arrays |= {"tops": np.concatenate(population.tops), "below_nats": np.concatenate(population.below_nats)}
    arrays |= {"counts": np.array([len(it) for it in population.tops]), "evaluations": np.array(population.evaluations)}
    return write_arrays(path, arrays, {})


def read_learnt(path: Path) -> Population:
    """The population in such a file."""
    arrays, _ = read_arrays(path)
    ends = np.cumsum(arrays["counts"])[:-1].astype(int)
    tops, below = (tuple(np.split(arrays[name], ends)) for name in ("tops", "below_nats"))
    return Population(
        **{name: arrays[name] for name in PLAIN}, tops=tops, below_nats=below, evaluations=int(arrays["evaluations"])
    )


def write_population(path: Path, posterior: PopulationPosterior) -> Path:
    """Write a population's own draws; its observers have files of their own."""
    statistics = {f"statistic_{name}": value for name, value in posterior.statistics.items()}
    header = {
        "model": describe(posterior.model),
        "labels": posterior.model.labels,
        "observers": list(posterior.posteriors),
        "provenance": dict(posterior.provenance),
        "diagnosis": posterior.diagnosis.to_dict(),
    }
    return write_arrays(path, {"mean": posterior.mean, "spread": posterior.spread, **statistics}, header)


def read_population(path: Path, posteriors: Mapping[Any, Posterior], parts: tuple[type, ...]) -> PopulationPosterior:
    """The population in such a file, with its observers' posteriors."""
    arrays, header = read_arrays(path)
    statistics = {
        name.removeprefix("statistic_"): value for name, value in arrays.items() if name.startswith("statistic_")
    }
    model, mean, spread = restore(header["model"], parts), arrays["mean"], arrays["spread"]
    diagnosis = population_diagnosis(model, mean, spread, statistics)
    return PopulationPosterior(model, mean, spread, statistics, posteriors, diagnosis, header["provenance"])
