"""Options that most commands share: the gateway and service to connect to."""

import functools
import logging
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

import weft
from weft.cli.output import streams
from weft.cli.output.connection_status import Teller
from weft.client.asyncio.connection import Connecting
from weft.client.key_file import key_in
from weft.client.status import StatusCallback
from weft.errors import BadOption

DEFAULT_GATEWAY = "127.0.0.1:7411"
DEFAULT_SERVICE = "default"
# The text of a key; a file is better, because child processes do not inherit it.
KEY_VARIABLE = "WEFT_KEY"

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

# Silences the client's log: a Teller prints its events in the terms of the command line.
_SILENT = logging.getLogger("weft.cli")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True)
class CommandTarget:
    """Gateway and service, credentials, and the output format."""

    gateway: str
    service: str
    name: str
    tls_ca: str | None
    is_json: bool
    key_file: str | None = None
    is_closest: bool = False
    region: str = ""

    def open(self, on_status: StatusCallback | None = None) -> weft.Connection:
        """Return a blocking connection, whose status is printed on standard error.

        Raises:
            Unreachable: No gateway at this address.
        """
        return weft.Connection(
            self.gateway,
            service=self.service,
            name=self.name,
            key=self.key(),
            tls=self.tls(),
            closest=self.is_closest,
            region=self.region,
            on_status=on_status or Teller(),
            logger=_SILENT,
        )

    def connect(self) -> Connecting:
        """Return the same as `async with`, for a command with its own loop."""
        return weft.connect(
            self.gateway,
            service=self.service,
            name=self.name,
            key=self.key(),
            tls=self.tls(),
            closest=self.is_closest,
            region=self.region,
            on_status=Teller(),
            logger=_SILENT,
        )

    def key(self) -> str:
        """Return the key for the gateway; empty without one.

        Raises:
            BadOption: The file has no key.
        """
        return key_from(self.key_file)

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context for a tls:// gateway; None for the system's certificates.

        Raises:
            BadOption: The file has no certificates.
        """
        if self.tls_ca is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ssl.SSLError) as error:
            raise BadOption(f"--tls-ca {self.tls_ca} has no certificates: {error}") from error


def key_from(key_file: str | None) -> str:
    """Return the key in a file, or without one in the environment; empty if there is none.

    Raises:
        BadOption: The file has no key.
    """
    if key_file is None:
        return os.environ.get(KEY_VARIABLE, "").strip()
    return key_in(key_file, _warn_once)


def _warn_once(text: str) -> None:
    """Print a warning once per command, which may read its key several times."""
    context = click.get_current_context(silent=True)
    if context is not None:
        warned = context.meta.setdefault("weft.warned", set())
        if text in warned:
            return
        warned.add(text)
    streams.news(text)


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options to a command, which gets them as one `target`."""

    @functools.wraps(command)
    def with_target(**options: Any) -> Any:
        known = [name for name in CommandTarget.__dataclass_fields__ if name in options]
        target = CommandTarget(**{name: options.pop(name) for name in known})
        return command(target=target, **options)

    for option in reversed(_OPTIONS):
        option(with_target)
    return with_target


def closest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --closest and --region to a command; goes above target_options()."""
    is_closest = click.option(
        "--closest",
        "is_closest",
        is_flag=True,
        envvar="WEFT_CLOSEST",
        show_envvar=True,
        help="Ask the gateway for the closest one, and connect to it.",
    )
    return is_closest(REGION(command))


def gateway_option(text: str) -> Option:
    """Return the option `--gateway` with its help."""
    return click.option(
        "--gateway",
        metavar="HOST:PORT",
        envvar="WEFT_GATEWAY",
        default=DEFAULT_GATEWAY,
        show_default=True,
        show_envvar=True,
        help=text,
    )


def service_option(text: str) -> Option:
    """Return the option `--service` with its help."""
    return click.option(
        "--service",
        metavar="NAME",
        envvar="WEFT_SERVICE",
        default=DEFAULT_SERVICE,
        show_default=True,
        show_envvar=True,
        help=text,
    )


REGION: Option = click.option(
    "--region",
    metavar="REGION",
    envvar="WEFT_REGION",
    default="",
    show_envvar=True,
    help="The region of this machine: --closest tries its gateways first.",
)

TLS_CA: Option = click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    envvar="WEFT_TLS_CA",
    show_envvar=True,
    help="CA certificates to verify a tls:// gateway with (default: the system's).",
)

KEY_FILE: Option = click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    envvar="WEFT_KEY_FILE",
    show_envvar=True,
    help=f"File with the key, if the gateway has keys (default: the key in {KEY_VARIABLE}).",
)

_OPTIONS = (
    gateway_option("The gateway; tls://HOST:PORT for TLS."),
    service_option("The service to join."),
    click.option(
        "--name",
        metavar="NAME",
        envvar="WEFT_NAME",
        default="",
        show_envvar=True,
        help="The name of the connection, such as me.1 (default: chosen by the gateway).",
    ),
    TLS_CA,
    KEY_FILE,
    click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line."),
)
