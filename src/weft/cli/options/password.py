"""Options for a channel's password: from a file, a prompt or the environment.

Never from the command line itself, which every user of the machine can read.
"""

import functools
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from weft.cli.options.body import standard_input
from weft.cli.output import streams
from weft.errors import BadOption

PASSWORD_VARIABLE = "WEFT_CHANNEL_PASSWORD"  # noqa: S105  # the name of a variable
# Larger than any sensible password.
PASSWORD_MAX_BYTES = 4096

_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class PasswordSource:
    """Options on the command line about the password."""

    password_file: str | None
    ask_password: bool

    def password(self) -> str | None:
        """Return the password; None for a channel without one.

        Raises:
            BadOption: The password is missing or invalid.
        """
        if self.password_file is not None:
            if self.ask_password:
                raise click.UsageError("give one of --password-file and --ask-password")
            return _line(self._bytes(self.password_file))
        if self.ask_password:
            asked: str = click.prompt("password", hide_input=True, err=True)
            return asked
        return os.environ.get(PASSWORD_VARIABLE) or None

    def _bytes(self, path: str) -> bytes:
        if path == "-":
            if sys.stdin is None:
                raise BadOption("there is no standard input to read a password from")
            return standard_input().readline(PASSWORD_MAX_BYTES + 1)
        try:
            with Path(path).open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                data = file.read(PASSWORD_MAX_BYTES + 1)
        except OSError as error:
            raise BadOption(f"password file {path} cannot be read: {error.strerror}") from error
        if mode & _OTHERS:
            streams.news(
                f"password file {path} has mode {mode:04o}, which gives other users access;"
                f" chmod 600 {path}"
            )
        return data


def password_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the password options to a command, which gets them as one `source`."""

    @functools.wraps(command)
    def with_source(**options: Any) -> Any:
        names = PasswordSource.__dataclass_fields__
        source = PasswordSource(**{name: options.pop(name) for name in names})
        return command(source=source, **options)

    for option in reversed(_OPTIONS):
        option(with_source)
    return with_source


def _line(data: bytes) -> str:
    """Return the single line of a password file, without its end."""
    if len(data) > PASSWORD_MAX_BYTES:
        raise BadOption(f"the password has more than {PASSWORD_MAX_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadOption("the password is not UTF-8") from error
    password = text.removesuffix("\n").removesuffix("\r")
    if "\n" in password:
        raise BadOption("the password file has more than one line")
    return password


_OPTIONS = (
    click.option(
        "--password-file",
        metavar="FILE",
        help="The file with the channel's password; - for a line of standard input."
        f" {PASSWORD_VARIABLE} may hold it instead.",
    ),
    click.option("--ask-password", is_flag=True, help="Ask for the password at the terminal."),
)
