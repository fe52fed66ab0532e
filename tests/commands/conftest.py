"""What the tests of commands share."""

import pytest

from called_commands import Call, caller


@pytest.fixture
def foveate_command(monkeypatch, capsys) -> Call:
    """`foveate` with these arguments: (exit code, standard output, standard error)."""
    return caller(monkeypatch, capsys)
