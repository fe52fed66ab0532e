"""Imports point one way: from what a user calls down to the data, never back."""

import ast
from pathlib import Path

import foveate

ROOT = Path(foveate.__file__).parent

# Each may import from those before it and from its own; parts of one entry do not know each other.
LAYERS = [
    {"errors"},
    {"precision", "compiled"},
    {"threads"},
    {"data"},
    {"model"},
    {"inference"},
    {"simulation"},
    {"execution"},
    {"example", "evaluate", "figures"},
    {"experiments", "pysaliency"},
    {"report"},
    {"demo"},
    {"commands"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def part_of(file: Path) -> str:
    """The package or top-level module that a file belongs to."""
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_parts(file: Path) -> set[str]:
    """The parts of foveate that a file imports, also inside functions."""
    names = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written out in full"
            # "from foveate import data" names a part, or something that the package itself offers
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    found = {name.split(".")[1] for name in names if name.startswith("foveate.")}
    return {part for part in found if part in RANK or (ROOT / part).exists() or (ROOT / f"{part}.py").exists()}


def modules() -> list[Path]:
    return [file for file in sorted(ROOT.rglob("*.py")) if file.parent != ROOT or file.name != "__init__.py"]


def test_every_part_has_a_layer():
    assert {part_of(file) for file in modules()} <= set(RANK)


def test_imports_point_only_to_the_left():
    for file in modules():
        for part in imported_parts(file) - {part_of(file)}:
            assert RANK[part] < RANK[part_of(file)], f"{file.relative_to(ROOT)} imports {part}"


def test_the_walk_sees_imports():
    """The test above would pass on nothing: some imports that are known to be there."""
    assert {"data", "errors"} <= imported_parts(ROOT / "model" / "steps.py")
    assert len(modules()) > 15
