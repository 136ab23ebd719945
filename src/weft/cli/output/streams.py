"""Where a command's words go: results to standard output, everything else to standard error.

Colours, tables that fit the window and progress bars are for terminals. Elsewhere lines are plain,
as long as they need to be, and written at once.
"""

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

import click
from rich.console import Console, RenderableType

from weft.cli.output.fitted_table import FittedTable

# Wider than any table, so that nothing is cut or wrapped where no window sets a width.
_UNBOUNDED_COLUMNS = 4096

# DEL, the C1 controls (U+009B alone begins a terminal sequence), line and paragraph separators, and
# what changes the direction of the text that follows.
_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def prepare() -> None:
    """Make both streams fit for people and pipes: line by line, and no character stops them."""
    for stream in (sys.stdout, sys.stderr):
        # Tests and embedding programs may have put another kind of stream there.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    """Say if a person is looking at the stream; a closed one is None."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def result(text: str) -> None:
    """Print one line of what was asked for."""
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
    """Tell something besides the result, on standard error."""
    tell(f"weft: {text}")


def tell(text: str) -> None:
    """Print to standard error; if nobody reads that, it is no reason to end."""
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        let_nobody_read(sys.stderr)


def let_nobody_read(stream: TextIO) -> None:
    """Lead a stream nowhere: what is in its buffer would fail once more when the process ends."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def style(text: str, *, color: str | None = None, is_dim: bool = False) -> str:
    """A text in a colour if standard output is a terminal that may have them."""
    if not is_terminal(sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=color, dim=is_dim or None)


def console(stream: TextIO | None = None) -> Console:
    """A rich console that takes every text as it is: names of others are no markup."""
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
    """Print tables and texts; without the padding that only a terminal needs."""
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
    """A table of texts; columns whose name ends in a space are numbers and stand to the right.

    Those that are `spare` are left out where the window is too narrow, the first one first.
    """
    return FittedTable(title, columns, rows, spare)
