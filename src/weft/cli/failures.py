"""What goes wrong, as one sentence and an exit code.

0 done, 1 it failed, 2 the command line is wrong, 130 ended by ^C, 141 nobody reads the output.
"""

import re

import click

from weft.cli.shown import printable
from weft.errors import BadField, BadOption, BadSubject, WeftError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130
UNREAD = 141

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def sentence_of(error: Exception) -> str:
    """The error in words: what kind it is, then what it says."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "weft"
        text = error.format_message().rstrip(".")
        return f"{_lower_first(text)}; see '{where} --help'"
    if isinstance(error, click.ClickException):
        return error.format_message()
    text = printable(str(error)) or "no more is known"
    if isinstance(error, WeftError):
        kind = _WORD_START.sub(" ", type(error).__name__).lower()
        return f"{kind}: {text}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"a fault in Weft itself: {type(error).__name__}: {text}; WEFT_DEBUG=1 shows where"


def exit_code_of(error: Exception) -> int:
    """The number that tells a script what kind of failure it was."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    return MISUSED if isinstance(error, (BadSubject, BadField, BadOption)) else FAILED


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
