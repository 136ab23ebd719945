"""Holds the import layers that ARCHITECTURE.md draws in its `layers` block.

A line of the block is a layer, the lowest first. A module imports weft modules of its own name or
of a strictly lower layer. `weft/__init__.py` is the public face: it imports anything, and only the
highest layer, which uses weft as its users do, imports it.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from tools.style.imports import PACKAGE as FACE
from tools.style.imports import cython_imports_in, imports_in

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
BLOCK = re.compile(r"^```layers\n(.*?)^```", re.MULTILINE | re.DOTALL)

PURE = {"wire", "broker", "mesh", "lanes"}
# What these bring (waiting, sockets, clocks, chance, logs) comes into pure code as arguments.
IMPURE = {
    *("asyncio", "socket", "ssl", "selectors", "time", "random", "secrets"),
    *("logging", "threading", "os", "subprocess"),
}


def layers_in(text: str) -> dict[str, int]:
    """The height of every name in the `layers` block, the lowest 0."""
    block = BLOCK.search(text)
    assert block, "ARCHITECTURE.md has no fenced block with the info string `layers`"
    rows = [row.split() for row in block[1].splitlines() if row.strip()]
    names = [name for row in rows for name in row]
    assert len(names) == len(set(names)), "the `layers` block has a name twice"
    return {name: height for height, row in enumerate(rows) for name in row}


def name_of(path: Path) -> str:
    """The package or module directly under weft that a file belongs to."""
    return path.parts[1].partition(".")[0]


def top_name(module: str, layers: Mapping[str, int]) -> str:
    """The package or module directly under weft that an import is of, or the face."""
    name = module.split(".")[1] if "." in module else FACE
    return name if name in layers else FACE


def is_allowed(importer: str, imported: str, layers: Mapping[str, int]) -> bool:
    """Say if a module under `importer` may import one under `imported`."""
    if importer not in layers:
        return False
    if imported == FACE:
        return layers[importer] == max(layers.values())
    return importer == imported or layers[imported] < layers[importer]


def violations(source: str, path: Path, layers: Mapping[str, int]) -> list[str]:
    """Every import in one file that goes against the layers."""
    if path == Path(FACE, "__init__.py"):
        return []
    read = imports_in if path.suffix == ".py" else cython_imports_in
    return [
        f"src/{path}:{line} imports {module}"
        for line, module in read(source, path)
        if module.partition(".")[0] == FACE
        and not is_allowed(name_of(path), top_name(module, layers), layers)
    ]


def impurities(source: str, path: Path) -> list[str]:
    """Every import in one file of pure code that brings in the world outside."""
    if name_of(path) not in PURE:
        return []
    return [
        f"src/{path}:{line} imports {module}"
        for line, module in imports_in(source, path)
        if module.partition(".")[0] in IMPURE
    ]


def files(*suffixes: str) -> list[Path]:
    """Weft's files of these kinds, as paths below src."""
    return sorted(
        path.relative_to(SOURCE) for path in (SOURCE / FACE).rglob("*") if path.suffix in suffixes
    )


def text_of(path: Path) -> str:
    return (SOURCE / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawn() -> dict[str, int]:
    return layers_in((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def test_every_name_under_weft_has_a_layer(drawn: dict[str, int]) -> None:
    names = {name_of(path) for path in files(".py", ".pxd", ".pyx")} - {"__init__"}
    unnamed = sorted(names - drawn.keys())
    assert not unnamed, f"not in the `layers` block of ARCHITECTURE.md: {', '.join(unnamed)}"


def test_imports_go_down_the_layers(drawn: dict[str, int]) -> None:
    found = [each for path in files(".py") for each in violations(text_of(path), path, drawn)]
    assert not found, "\n".join(found)


def test_cimports_go_down_the_layers(drawn: dict[str, int]) -> None:
    paths = files(".pxd", ".pyx")
    found = [each for path in paths for each in violations(text_of(path), path, drawn)]
    assert not found, "\n".join(found)


def test_pure_code_imports_nothing_of_the_world_outside() -> None:
    found = [each for path in files(".py") for each in impurities(text_of(path), path)]
    assert not found, "\n".join(found)


EXAMPLE = layers_in("# A\n```layers\nerrors\ncore\nfabric dialects\ncli\n```\n")


def test_layers_are_read_from_the_lowest_up() -> None:
    assert EXAMPLE == {"errors": 0, "core": 1, "fabric": 2, "dialects": 2, "cli": 3}


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("core/a.py", "import weft.fabric.links", "1 imports weft.fabric.links"),
        ("core/a.py", "import json, weft.cli as c", "1 imports weft.cli"),
        ("core/a.py", "\nfrom weft.fabric import links", "2 imports weft.fabric"),
        ("core/a.py", "from weft import errors, fabric", "1 imports weft.fabric"),
        ("core/a.py", "from weft import Message", "1 imports weft.Message"),
        ("core/a.py", "import weft", "1 imports weft"),
        ("core/a.py", "from ..fabric.links import Link", "1 imports weft.fabric.links"),
        ("core/deep/a.py", "from ... import cli", "1 imports weft.cli"),
        ("core/__init__.py", "from .. import cli", "1 imports weft.cli"),
        ("errors.py", "from .core import frames", "1 imports weft.core"),
        ("core/a.py", "def f():\n    import weft.cli", "2 imports weft.cli"),
        ("core/a.py", "if TYPE_CHECKING:\n    from weft.cli import x", "2 imports weft.cli"),
        ("fabric/a.py", "import weft.dialects.tunnel", "1 imports weft.dialects.tunnel"),
        ("fabric/a.py", "import weft.stranger", "1 imports weft.stranger"),
        ("stranger.py", "import weft.errors", "1 imports weft.errors"),
        (
            "core/a.pxd",
            "\nfrom weft.fabric.links cimport (\n    A,\n)",
            "2 imports weft.fabric.links",
        ),
        ("core/a.pxd", "cimport cython\ncimport weft.cli.x", "2 imports weft.cli.x"),
        ("core/a.pxd", "from ..cli cimport x  # why", "1 imports weft.cli"),
        ("core/a.pxd", "from weft cimport errors, \\\n    cli", "1 imports weft.cli"),
        ("core/a.pyx", "from weft.cli import x", "1 imports weft.cli"),
    ],
)
def test_checker_catches_an_import_against_the_layers(path: str, source: str, found: str) -> None:
    assert violations(source, Path(FACE, path), EXAMPLE) == [f"src/weft/{path}:{found}"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("core/a.py", "from weft.core.b import c\nfrom . import d\nfrom .e import f"),
        ("core/__init__.py", "from . import a\nfrom .a import b\nfrom ..errors import WeftError"),
        ("fabric/a.py", "import weft.core.frames, weft.errors, weftage\nfrom weft import core"),
        ("cli/a.py", "import weft\nfrom weft import Message"),
        ("__init__.py", "from weft.cli import x\nfrom .fabric import y"),
        ("core/a.pxd", "from libc.stdint cimport int64_t\nfrom weft.core.b cimport (\n    C,\n)"),
    ],
)
def test_checker_lets_imports_down_the_layers_pass(path: str, source: str) -> None:
    assert violations(source, Path(FACE, path), EXAMPLE) == []


def test_checker_catches_the_world_outside_in_pure_code() -> None:
    source = "import os.path\nfrom datetime import datetime\ndef f():\n    from time import time"
    assert impurities(source, Path("weft/broker/a.py")) == [
        "src/weft/broker/a.py:1 imports os.path",
        "src/weft/broker/a.py:4 imports time",
    ]
    assert impurities(source, Path("weft/cli/a.py")) == []
