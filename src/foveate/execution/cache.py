"""Compiled functions kept on disk between runs: a model that was compiled once starts at once the next time."""

import os
import tempfile
from pathlib import Path

import jax

VARIABLE = "FOVEATE_CACHE"

# What compiles faster than this is not worth a file.
SHORTEST_COMPILATION_S = 0.2


def cache_folder() -> Path | None:
    """Where compiled functions go: FOVEATE_CACHE (None if that is empty), or foveate/jax in the user's own cache."""
    if VARIABLE in os.environ:
        said = os.environ[VARIABLE].strip()
        return Path(said).expanduser() if said else None
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        return None
    return Path(home) / "foveate" / "jax"


def keep_compiled() -> Path | None:
    """Have JAX keep compiled functions; the folder, or None where nothing is kept.

    A program that has set JAX's own cache keeps its setting, and a folder that cannot be written is done without.
    """
    theirs = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if theirs:
        return Path(theirs)
    folder = cache_folder()
    if folder is None or not _can_write(folder):
        return None
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", SHORTEST_COMPILATION_S)
    return folder


def _can_write(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
