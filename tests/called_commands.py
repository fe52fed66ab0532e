"""Commands as a shell would call them, but in this process."""

import sys
from collections.abc import Callable

import pytest

from foveate import cli

Call = Callable[..., tuple[int, str, str]]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> Call:
    """`foveate` with these arguments: (exit code, standard output, standard error). Nothing compiled is kept."""
    monkeypatch.setenv("FOVEATE_CACHE", "")

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["foveate", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return call
