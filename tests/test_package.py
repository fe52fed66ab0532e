"""The package's public names: all there, and where they are said to be."""

import ast
import subprocess
import sys
from pathlib import Path

import foveate


def imports_for_type_checkers() -> dict[str, str]:
    """Public name -> module, as the package's file tells type checkers."""
    tree = ast.parse(Path(foveate.__file__).read_text())
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    found = {}
    for node in ast.walk(guarded[0]):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("foveate."):
            found |= {alias.name: str(node.module) for alias in node.names}
    return found


def test_public_names_come_from_where_type_checkers_look():
    found = imports_for_type_checkers()
    assert set(found) == set(foveate.__all__)
    for name, home in found.items():
        assert getattr(foveate, name) is getattr(sys.modules[home], name)
    assert set(foveate.__all__) <= set(dir(foveate))


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, foveate; print([name for name in ('jax', 'pandas', 'matplotlib') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
