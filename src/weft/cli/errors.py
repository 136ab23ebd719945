"""Errors as one sentence and an exit status.

0 success, 1 failure, 2 wrong usage, 130 ended by ^C, 141 standard output is closed.
"""

import re
import ssl
from collections.abc import Sequence
from difflib import get_close_matches

import click

from weft.cli.output.message_text import printable
from weft.errors import BadField, BadOption, BadSubject, WeftError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130
UNREAD = 141

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def sentence_of(error: Exception) -> str:
    """Return an error as a sentence: its kind, then its text."""
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "weft"
        return f"{_misuse(error)}; see '{where} --help'"
    if isinstance(error, click.ClickException):
        return error.format_message()
    text = printable(str(error)) or "no more is known"
    if isinstance(error, WeftError):
        kind = _WORD_START.sub(" ", type(error).__name__).lower()
        is_distrusted = isinstance(error.__cause__, ssl.SSLCertVerificationError)
        hint = "; --tls-ca names the authority to trust" if is_distrusted else ""
        return f"{kind}: {text}{hint}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"a fault in Weft itself: {type(error).__name__}: {text}; WEFT_DEBUG=1 shows where"


def exit_code_of(error: Exception) -> int:
    """Return the exit status for an error."""
    if isinstance(error, click.ClickException):
        return error.exit_code
    return MISUSED if isinstance(error, (BadSubject, BadField, BadOption)) else FAILED


def _misuse(error: click.UsageError) -> str:
    """Return the usage error, with a suggestion if there is one."""
    if isinstance(error, click.NoSuchOption):
        text = error.message
        hint = _negative_number(error) or _near(error.option_name, error.possibilities)
    elif isinstance(error, click.exceptions.NoSuchCommand):
        text, hint = error.message, _near(error.command_name, error.possibilities)
    else:
        text, hint = error.format_message(), ""
    return text[:1].lower() + text[1:].rstrip(".") + hint


def _near(name: str, possibilities: Sequence[str] | None) -> str:
    """Return a suggestion; compares without dashes, which make all options similar to click."""
    by_word = {each.lstrip("-"): each for each in possibilities or ()}
    near = [by_word[word] for word in get_close_matches(name.lstrip("-"), by_word)]
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def _negative_number(error: click.NoSuchOption) -> str:
    """Return a hint for a number that looks like an option, if the command takes a text."""
    context = error.ctx
    if context is None or not error.option_name[1:].isdecimal():
        return ""
    names = [each.name for each in context.command.params if isinstance(each, click.Argument)]
    if "text" not in names:
        return ""
    return f" (a negative number comes after --, as in '{context.command_path} -- SUBJECT -5')"
