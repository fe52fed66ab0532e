"""Fitted models as models of pysaliency, to be scored by its tools and beside its models.

foveate does not depend on pysaliency: it is imported when a name from here is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError

if TYPE_CHECKING:
    from foveate.pysaliency.model import ScanpathModel, ScanpathSaliencyMapModel
    from foveate.pysaliency.stimuli import pictures_by_file, pictures_in_order

__all__ = ["ScanpathModel", "ScanpathSaliencyMapModel", "pictures_by_file", "pictures_in_order"]

# Its release imports torch and pkg_resources without asking for them.
INSTALL = "install it with pip install pysaliency torch 'setuptools<81'."

_HOMES = {
    "ScanpathModel": "model",
    "ScanpathSaliencyMapModel": "model",
    "pictures_by_file": "stimuli",
    "pictures_in_order": "stimuli",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'foveate.pysaliency' has no attribute {name!r}")
    try:  # this by itself, so that a mistake of our own is not taken for a missing package
        import_module("pysaliency.models")
    except ImportError as error:
        raise InputError(
            f"foveate.pysaliency needs pysaliency, which cannot be imported ({error}): {INSTALL}"
        ) from error
    return getattr(import_module(f"foveate.pysaliency.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
