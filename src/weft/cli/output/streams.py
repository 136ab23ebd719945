"""Output of commands: results on standard output, everything else on standard error.

Colours, tables fitted to the window and progress bars are for terminals. Elsewhere lines are plain,
unwrapped, and flushed at once.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

import click
from rich.console import Console, RenderableType

from weft.cli.output.fitted_table import FittedTable

# Wider than any table, so that nothing is truncated or wrapped without a window.
_UNBOUNDED_COLUMNS = 4096

# DEL, the C1 controls (U+009B alone begins a terminal sequence), line and paragraph separators, and
# characters that change the direction of the following text.
_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def prepare() -> None:
    """Prepare both streams: line-buffered, and able to encode every character."""
    for stream in (sys.stdout, sys.stderr):
        # Tests and embedding programs may have put another kind of stream there.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal; a closed one is None."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def result(text: str) -> None:
    """Print one line of the result."""
    print(text, flush=True)


def json_result(text: str) -> None:
    """Print one line of JSON in UTF-8, with every character that could control a terminal escaped.

    JSON itself escapes only the control characters below U+0020.
    """
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and sys.stdout.encoding != "utf-8":
        reconfigure(encoding="utf-8", errors="backslashreplace")
    result(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def news(text: str) -> None:
    """Print a notice on standard error."""
    tell(f"weft: {text}")


def tell(text: str) -> None:
    """Print to standard error; continue if that is closed."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        let_nobody_read(sys.stderr)


def let_nobody_read(stream: TextIO) -> None:
    """Redirect a closed stream to /dev/null: flushing its buffer at exit would fail again."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def style(text: str, *, color: str | None = None, is_dim: bool = False) -> str:
    """Return a text in a colour if standard output is a terminal that supports it."""
    if not is_terminal(sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=color, dim=is_dim or None)


def console(stream: TextIO | None = None) -> Console:
    """Return a rich console that prints texts literally, without markup."""
    target = stream or sys.stdout
    is_seen = is_terminal(target)
    return Console(
        file=target,
        force_terminal=is_seen,
        width=None if is_seen else _UNBOUNDED_COLUMNS,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=not is_seen,
    )


def show(*parts: RenderableType) -> None:
    """Print tables and texts, without trailing spaces if it is not a terminal."""
    target = console()
    if target.is_terminal:
        for part in parts:
            target.print(part)
        return
    with target.capture() as captured:
        for part in parts:
            target.print(part)
    for line in captured.get().splitlines():
        result(line.rstrip())


def table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    spare: Sequence[str] = (),
) -> FittedTable:
    """Return a table of texts; columns whose name ends in a space are right-aligned numbers.

    Columns in `spare` are omitted if the window is too narrow, the first one first.
    """
    return FittedTable(title, columns, rows, spare)
