"""What all tests share: shapes are checked while they run, and the real data are read once."""

import os
from importlib.util import find_spec
from pathlib import Path

# What is compiled once is not compiled again: by the other worker, by a program that a test starts, by the next run.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")

import jaxtyping
import pytest
from hypothesis import settings
from hypothesis.configuration import set_hypothesis_home_dir

# Before the hook: what checks shapes cannot be compiled by Numba.
import foveate.model.modulated_entry  # noqa: F401

jaxtyping.install_import_hook("foveate", "checked_types.check")

set_hypothesis_home_dir(".pytest_cache/hypothesis")  # beside pytest's own, which git ignores
settings.register_profile("foveate", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("foveate")

# foveate does not need pysaliency: `make test-pysaliency` runs what does, in an environment of its own.
collect_ignore = [] if find_spec("pysaliency") else ["with_pysaliency"]


def pytest_collection_modifyitems(items):
    """Files of few long tests come first, so that no worker waits for the other at the end; and those that start
    programs at different times, so that one reads what the other has compiled."""
    long = ("test_cli", "execution", "commands", "statistical", "test_docs")
    items.sort(key=lambda item: next((i for i, word in enumerate(long) if word in item.nodeid), len(long)))


@pytest.fixture(autouse=True)
def room_for_what_is_compiled():
    """One process runs many tests, each of which compiles functions of its own: those of one file alone may take most
    of the room."""
    from foveate.compiled import make_room

    make_room()


@pytest.fixture
def unchecked_types(monkeypatch):
    """As a user runs it: a wrong argument reaches our own message, not the type checker's."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="session")
def potsdam35_folder() -> Path:
    """The real data; without them a test is skipped, but never where a green light depends on it."""
    folder = os.environ.get("FOVEATE_POTSDAM35")
    if not folder:
        missing = "the environment variable FOVEATE_POTSDAM35 does not name the potsdam35 folder"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return Path(folder)


@pytest.fixture(scope="session")
def potsdam35(potsdam35_folder):
    """All paths, with the published maps on 64 x 64 cells."""
    from foveate.data.readers.potsdam35 import read_potsdam35

    return read_potsdam35(potsdam35_folder)


@pytest.fixture(scope="session")
def potsdam35_fine(potsdam35_folder):
    """All paths, with the published maps as they are: 128 x 128 cells."""
    from foveate.data.readers.potsdam35 import read_potsdam35

    return read_potsdam35(potsdam35_folder, cells=128)
