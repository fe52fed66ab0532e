"""Fit, simulate and judge generative models of scan paths: where a person looks next in a picture."""

from importlib.metadata import version

from foveate.data.dataset import Dataset
from foveate.data.density import choose_bandwidth, density_maps, leave_one_out_maps
from foveate.data.grid import Extent, Grid, PixelFrame
from foveate.data.readers.potsdam35 import POTSDAM35_FOLDS, potsdam35_leave_one_out, read_potsdam35
from foveate.data.readers.table import read_table
from foveate.data.saliency import SaliencyMaps
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError
from foveate.inference.point import maximum_a_posteriori
from foveate.model.catalogue import CATALOGUE, from_published, model, to_published
from foveate.model.history import History, Picture
from foveate.model.likelihood import log_likelihood, log_likelihoods, step_log_likelihoods, value_and_gradient
from foveate.model.model import Model
from foveate.model.steps import Steps

__version__ = version("foveate")

__all__ = [
    "CATALOGUE",
    "POTSDAM35_FOLDS",
    "Dataset",
    "Extent",
    "Grid",
    "History",
    "InputError",
    "Model",
    "Picture",
    "PixelFrame",
    "SaliencyMaps",
    "ScanPaths",
    "Steps",
    "choose_bandwidth",
    "density_maps",
    "from_published",
    "leave_one_out_maps",
    "log_likelihood",
    "log_likelihoods",
    "maximum_a_posteriori",
    "model",
    "potsdam35_leave_one_out",
    "read_potsdam35",
    "read_table",
    "step_log_likelihoods",
    "to_published",
    "value_and_gradient",
]
