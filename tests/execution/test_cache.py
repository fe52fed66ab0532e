"""Compiled functions are kept where the user says, or not at all; never is that a reason to fail."""

from pathlib import Path

import jax
import pytest

from foveate.execution.cache import cache_folder, keep_compiled


@pytest.fixture
def updates(monkeypatch) -> dict:
    """What JAX is told, without telling it: these tests share one process with others."""
    told = {}
    monkeypatch.setattr(type(jax.config), "jax_compilation_cache_dir", None)  # which the tests themselves set
    monkeypatch.setattr(type(jax.config), "update", lambda _, name, value: told.update({name: value}))
    return told


def test_the_variable_moves_the_cache(monkeypatch, tmp_path, updates):
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "mine"))
    assert keep_compiled() == tmp_path / "mine"
    assert updates["jax_compilation_cache_dir"] == str(tmp_path / "mine")
    assert (tmp_path / "mine").is_dir()


def test_an_empty_variable_turns_it_off(monkeypatch, updates):
    monkeypatch.setenv("FOVEATE_CACHE", "")
    assert keep_compiled() is None
    assert updates == {}


def test_without_it_the_cache_is_in_the_users_own(monkeypatch, tmp_path):
    monkeypatch.delenv("FOVEATE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "foveate" / "jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "foveate" / "jax"


def test_a_folder_that_cannot_be_made_is_done_without(monkeypatch, tmp_path, updates):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FOVEATE_CACHE", str(tmp_path / "file" / "cache"))
    assert keep_compiled() is None
    assert updates == {}
