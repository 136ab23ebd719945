"""Passages of prose in Python, Cython and Markdown files, with their line numbers.

Prose in code is docstrings and comments and, below src, string literals of three words or more:
log lines, error texts, command help. Prose in Markdown is everything outside code and link targets.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

WORD = re.compile(r"[A-Za-z']+")
_LITERAL_WORDS = 3
_LITERAL_OR_COMMENT = re.compile(
    r"""[rbfu]{0,2}(?:"{3}(?:\\.|[^\\])*?"{3}|'{3}(?:\\.|[^\\])*?'{3}"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|#(?P<comment>[^\n]*)""",
    re.DOTALL | re.IGNORECASE,
)
_FENCED = re.compile(r"^[ >]*(```+|~~~+).*?^[ >]*\1", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)
_TARGET = re.compile(r"(?<=\])\([^)\s]*\)")
_QUOTED = re.compile(r'"[^"\n]*"|\*[^*\n]+\*')
# Pages that quote the constructions that they advise against.
_QUOTING = ("STYLE.md",)


class Passage(NamedTuple):
    """Text and the line where it starts; `has_lines` if its line breaks are those of the source."""

    line: int
    text: str
    has_lines: bool = True

    def line_of(self, index: int) -> int:
        """Return the line of the character at an index of the text."""
        return self.line + (self.text.count("\n", 0, index) if self.has_lines else 0)


def passages_of(path: str, source: str) -> Iterator[Passage]:
    """Return the passages of a file; `path` is relative to the root."""
    suffix = Path(path).suffix
    if suffix == ".md":
        yield markdown_passage(source, is_quoting=path in _QUOTING)
        return
    yield from comments_in(source)
    if suffix == ".py":
        yield from strings_in(source, has_literals=path.startswith("src/"))


def markdown_passage(source: str, is_quoting: bool = False) -> Passage:
    """Return a page with its code, link targets and, if it quotes, its quotations blanked."""
    for pattern in (_FENCED, _INLINE, _TARGET, *([_QUOTED] if is_quoting else [])):
        source = pattern.sub(lambda found: "\n" * found[0].count("\n") or " ", source)
    return Passage(1, source)


def comments_in(source: str) -> Iterator[Passage]:
    """Return the comments of a file; those of adjacent lines are one passage."""
    start, lines = 0, list[str]()
    line, at = 1, 0
    for found in _LITERAL_OR_COMMENT.finditer(source):
        if found["comment"] is None:
            continue
        line += source.count("\n", at, found.start())
        at = found.start()
        if lines and line > start + len(lines):
            yield Passage(start, "\n".join(lines))
            lines = []
        if not lines:
            start = line
        lines.append(found["comment"])
    if lines:
        yield Passage(start, "\n".join(lines))


def strings_in(source: str, has_literals: bool) -> Iterator[Passage]:
    """Return the docstrings and, with `has_literals`, the other strings of a module."""
    docstrings, inside = set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                docstring = _docstring_of(node)
                if docstring is not None:
                    docstrings.add(id(docstring))
            case ast.JoinedStr() if has_literals:
                inside.update(id(part) for part in node.values)
                yield from _literal(node, _text_of(node))
            case ast.Constant(value=str(text)):
                if id(node) in docstrings:
                    yield _passage(node, text)
                elif has_literals and id(node) not in inside:
                    yield from _literal(node, text)


def _docstring_of(node: ast.AST) -> ast.Constant | None:
    match node:
        case (
            ast.Module(body=[ast.Expr(value=ast.Constant(value=str()) as found), *_])
            | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str()) as found), *_])
            | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str()) as found), *_])
            | ast.AsyncFunctionDef(body=[ast.Expr(value=ast.Constant(value=str()) as found), *_])
        ):
            return found
    return None


def _text_of(node: ast.JoinedStr) -> str:
    """The text of an f-string, with an ellipsis for each value."""
    return "".join(
        each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else "…"
        for each in node.values
    )


def _literal(node: ast.expr, text: str) -> Iterator[Passage]:
    if len(WORD.findall(text)) >= _LITERAL_WORDS:
        yield _passage(node, text)


def _passage(node: ast.expr, text: str) -> Passage:
    # Only a literal in triple quotes has as many line breaks as it has lines in the source.
    height = (node.end_lineno or node.lineno) - node.lineno
    return Passage(node.lineno, text, has_lines=text.count("\n") == height)


def read_sources(root: Path, extra: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield path and text of every file that is checked: src, the docs, and `extra` paths."""
    paths = {*_below(root / "src", is_prose), *(root / "docs").rglob("*.md"), *root.glob("*.md")}
    for path in extra:
        paths.update(_below(root / path, is_prose))
    for file in sorted(paths):
        yield file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")


def is_prose(path: Path) -> bool:
    """Return whether a file is of a kind whose prose is checked."""
    return path.suffix in (".py", ".pxd", ".md")


def _below(path: Path, is_wanted: Callable[[Path], bool]) -> Iterator[Path]:
    found = path.rglob("*") if path.is_dir() else [path]
    return (each for each in found if is_wanted(each) and "egg-info" not in str(each))
