"""Fit, simulate and judge generative models of scan paths: where a person looks next in a picture.

Every public name is imported when it is first used: the command line shows its help without waiting for JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import version

    from foveate.data.dataset import Dataset
    from foveate.data.density import choose_bandwidth, density_maps, leave_one_out_maps
    from foveate.data.grid import Extent, Grid, PixelFrame
    from foveate.data.readers.eyelink import read_eyelink
    from foveate.data.readers.frames import read_frame, read_pymovements
    from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS, potsdam35_leave_one_out, read_potsdam35
    from foveate.data.readers.pysaliency_hdf5 import read_pysaliency
    from foveate.data.readers.pysaliency_writing import write_pysaliency
    from foveate.data.readers.released import read_released
    from foveate.data.readers.saccade_tables import read_saccade_table
    from foveate.data.readers.scenewalk import read_scenewalk, read_scenewalk_maps
    from foveate.data.readers.table import read_table
    from foveate.data.readings import read_settings
    from foveate.data.saliency import SaliencyMaps
    from foveate.data.scanpaths import ScanPaths
    from foveate.errors import InputError
    from foveate.evaluate.bayes_factors import bayes_factors, evidence_table
    from foveate.evaluate.calibration import calibrate
    from foveate.evaluate.compare import best_shares, compare
    from foveate.evaluate.contrasts import contrast_conditions, contrast_groups
    from foveate.evaluate.crossval import CrossValidation
    from foveate.evaluate.folds import Folds, potsdam35_folds, random_folds
    from foveate.evaluate.predictive_checks import PredictiveChecks, predictive_checks
    from foveate.evaluate.scores import bits_per_fixation, score_posterior, score_steps
    from foveate.evaluate.statistics import compare_saccades
    from foveate.evaluate.weights import stacking
    from foveate.example import example_data
    from foveate.execution.cluster import Cluster
    from foveate.execution.places import Here, Processes
    from foveate.execution.population_store import PopulationStore
    from foveate.execution.store import FitStore
    from foveate.experiments.model_recovery import ModelRecovery
    from foveate.experiments.picture_subsets import PictureSubsets
    from foveate.experiments.recovery import recover
    from foveate.experiments.reliability import reliability
    from foveate.experiments.study import judge
    from foveate.inference.fit import fit, fit_each
    from foveate.inference.point import maximum_a_posteriori
    from foveate.inference.pointwise import loo, pointwise_log_likelihood, policy_probabilities, waic
    from foveate.inference.population import learn_population
    from foveate.inference.population_posterior import PopulationPosterior, fit_population
    from foveate.inference.posterior import Posterior
    from foveate.model.catalogue import CATALOGUE, from_published, named_model, to_published
    from foveate.model.history import History, Picture
    from foveate.model.likelihood import log_likelihood, log_likelihoods, step_log_likelihoods, value_and_gradient
    from foveate.model.model import Model
    from foveate.model.steps import Steps
    from foveate.simulation.predictive import prior_predictive
    from foveate.simulation.simulate import simulate

    __version__ = version("foveate")

__all__ = [
    "CATALOGUE",
    "POTSDAM35_FOLDS",
    "Cluster",
    "CrossValidation",
    "Dataset",
    "Extent",
    "FitStore",
    "Folds",
    "Grid",
    "Here",
    "History",
    "InputError",
    "Model",
    "ModelRecovery",
    "Picture",
    "PictureSubsets",
    "PixelFrame",
    "PopulationPosterior",
    "PopulationStore",
    "Posterior",
    "PredictiveChecks",
    "Processes",
    "SaliencyMaps",
    "ScanPaths",
    "Steps",
    "bayes_factors",
    "best_shares",
    "bits_per_fixation",
    "calibrate",
    "choose_bandwidth",
    "compare",
    "compare_saccades",
    "contrast_conditions",
    "contrast_groups",
    "density_maps",
    "evidence_table",
    "example_data",
    "fit",
    "fit_each",
    "fit_population",
    "from_published",
    "judge",
    "learn_population",
    "leave_one_out_maps",
    "log_likelihood",
    "log_likelihoods",
    "loo",
    "maximum_a_posteriori",
    "named_model",
    "pointwise_log_likelihood",
    "policy_probabilities",
    "potsdam35_folds",
    "potsdam35_leave_one_out",
    "predictive_checks",
    "prior_predictive",
    "random_folds",
    "read_eyelink",
    "read_frame",
    "read_potsdam35",
    "read_pymovements",
    "read_pysaliency",
    "read_released",
    "read_saccade_table",
    "read_scenewalk",
    "read_scenewalk_maps",
    "read_settings",
    "read_table",
    "recover",
    "reliability",
    "score_posterior",
    "score_steps",
    "simulate",
    "stacking",
    "step_log_likelihoods",
    "to_published",
    "value_and_gradient",
    "waic",
    "write_pysaliency",
]

# Where each public name lives; a test holds it together with the imports above, which type checkers read.
_HOMES = {
    "foveate.data.dataset": ("Dataset",),
    "foveate.data.density": (
        "choose_bandwidth",
        "density_maps",
        "leave_one_out_maps",
    ),
    "foveate.data.grid": (
        "Extent",
        "Grid",
        "PixelFrame",
    ),
    "foveate.data.readers.potsdam35": (
        "POTSDAM35_FOLDS",
        "potsdam35_leave_one_out",
        "read_potsdam35",
    ),
    "foveate.data.readers.eyelink": ("read_eyelink",),
    "foveate.data.readers.frames": ("read_frame", "read_pymovements"),
    "foveate.data.readers.pysaliency_hdf5": ("read_pysaliency",),
    "foveate.data.readers.pysaliency_writing": ("write_pysaliency",),
    "foveate.data.readers.released": ("read_released",),
    "foveate.data.readers.saccade_tables": ("read_saccade_table",),
    "foveate.data.readers.scenewalk": ("read_scenewalk", "read_scenewalk_maps"),
    "foveate.data.readers.table": ("read_table",),
    "foveate.data.readings": ("read_settings",),
    "foveate.data.saliency": ("SaliencyMaps",),
    "foveate.data.scanpaths": ("ScanPaths",),
    "foveate.errors": ("InputError",),
    "foveate.evaluate.bayes_factors": (
        "bayes_factors",
        "evidence_table",
    ),
    "foveate.evaluate.calibration": ("calibrate",),
    "foveate.evaluate.compare": (
        "best_shares",
        "compare",
    ),
    "foveate.evaluate.contrasts": (
        "contrast_conditions",
        "contrast_groups",
    ),
    "foveate.evaluate.crossval": ("CrossValidation",),
    "foveate.evaluate.folds": (
        "Folds",
        "potsdam35_folds",
        "random_folds",
    ),
    "foveate.evaluate.scores": (
        "bits_per_fixation",
        "score_posterior",
        "score_steps",
    ),
    "foveate.evaluate.predictive_checks": ("PredictiveChecks", "predictive_checks"),
    "foveate.evaluate.statistics": ("compare_saccades",),
    "foveate.evaluate.weights": ("stacking",),
    "foveate.example": ("example_data",),
    "foveate.execution.cluster": ("Cluster",),
    "foveate.execution.places": (
        "Here",
        "Processes",
    ),
    "foveate.execution.population_store": ("PopulationStore",),
    "foveate.execution.store": ("FitStore",),
    "foveate.experiments.model_recovery": ("ModelRecovery",),
    "foveate.experiments.picture_subsets": ("PictureSubsets",),
    "foveate.experiments.recovery": ("recover",),
    "foveate.experiments.reliability": ("reliability",),
    "foveate.experiments.study": ("judge",),
    "foveate.inference.fit": (
        "fit",
        "fit_each",
    ),
    "foveate.inference.point": ("maximum_a_posteriori",),
    "foveate.inference.pointwise": (
        "loo",
        "pointwise_log_likelihood",
        "policy_probabilities",
        "waic",
    ),
    "foveate.inference.population": ("learn_population",),
    "foveate.inference.population_posterior": (
        "PopulationPosterior",
        "fit_population",
    ),
    "foveate.inference.posterior": ("Posterior",),
    "foveate.model.catalogue": (
        "CATALOGUE",
        "from_published",
        "named_model",
        "to_published",
    ),
    "foveate.model.history": (
        "History",
        "Picture",
    ),
    "foveate.model.likelihood": (
        "log_likelihood",
        "log_likelihoods",
        "step_log_likelihoods",
        "value_and_gradient",
    ),
    "foveate.model.model": ("Model",),
    "foveate.model.steps": ("Steps",),
    "foveate.simulation.predictive": ("prior_predictive",),
    "foveate.simulation.simulate": ("simulate",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "pysaliency":  # a package of names that need another one: see there
        return import_module("foveate.pysaliency")
    if name == "__version__":
        return import_module("importlib.metadata").version("foveate")
    raise AttributeError(f"module 'foveate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, "__version__"})
