"""Imports of Python and Cython sources, by the full names of modules."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = "weft"
_CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+[\w.]+[ \t]+)?c?import\b(?:[ \t]*\([^)]*\)|(?:\\\n|[^\n])*)", re.MULTILINE
)


class Import(NamedTuple):
    """One imported module by its full dotted name, and the line of the statement."""

    line: int
    module: str


def imports_in(source: str, path: Path) -> Iterator[Import]:
    """Every import in a Python source, at any depth; `path` is below src."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _origin(node, path)
            if module == PACKAGE:
                # `from weft import x` imports a module x or a public name: both start with weft.x.
                yield from (Import(node.lineno, f"{PACKAGE}.{alias.name}") for alias in node.names)
            else:
                yield Import(node.lineno, module)


def cython_imports_in(source: str, path: Path) -> Iterator[Import]:
    """Every import and cimport in a Cython source; a cimport is parsed as an import."""
    for statement in _CYTHON_IMPORT.finditer(source):
        python = re.sub(r"\bcimport\b", "import", statement[0].strip())
        before = source.count("\n", 0, statement.start())
        for line, module in imports_in(python, path):
            yield Import(before + line, module)


def _origin(node: ast.ImportFrom, path: Path) -> str:
    """The full name of the module in a `from` import, relative names resolved."""
    if node.level == 0:
        return node.module or ""
    # The last part is the name of the file, so one dot of a relative import removes only that.
    package = path.parts[: len(path.parts) - node.level]
    return ".".join([*package, *filter(None, [node.module])])
