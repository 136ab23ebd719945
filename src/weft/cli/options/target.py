"""Which gateway and service a command talks to: the options that all of them share."""

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
# The text of a key itself; a file is better, as it does not show in what a process passes on.
KEY_VARIABLE = "WEFT_KEY"

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

# What the client would log is told by a Teller, in the words of the command line.
_SILENT = logging.getLogger("weft.cli")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, as whom, and how to print what comes."""

    gateway: str
    service: str
    name: str
    tls_ca: str | None
    is_json: bool
    key_file: str | None = None
    is_closest: bool = False
    region: str = ""

    def open(self, on_status: StatusCallback | None = None) -> weft.Connection:
        """A blocking connection; what becomes of it is told on standard error.

        Raises:
            Unreachable: no gateway answers there.
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
        """The same as `async with`, for a command with a loop of its own."""
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
        """What a gateway with keys is shown; empty if there is nothing to show.

        Raises:
            BadOption: the file holds no key.
        """
        return key_from(self.key_file)

    def tls(self) -> ssl.SSLContext | None:
        """How a tls:// gateway is checked; None for the system's certificates.

        Raises:
            BadOption: the file holds no certificates.
        """
        if self.tls_ca is None:
            return None
        try:
            return ssl.create_default_context(cafile=self.tls_ca)
        except (OSError, ssl.SSLError) as error:
            raise BadOption(f"--tls-ca {self.tls_ca} holds no certificates: {error}") from error


def key_from(key_file: str | None) -> str:
    """The key in a file, or in the environment if none is named; empty if there is none.

    Raises:
        BadOption: the file holds no key.
    """
    if key_file is None:
        return os.environ.get(KEY_VARIABLE, "").strip()
    return key_in(key_file, _warn_once)


def _warn_once(text: str) -> None:
    """Print a warning, unless this command has: it may read its key more than once."""
    context = click.get_current_context(silent=True)
    if context is not None:
        warned = context.meta.setdefault("weft.warned", set())
        if text in warned:
            return
        warned.add(text)
    streams.news(text)


def target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the shared options; it gets them as one `target`."""

    @functools.wraps(command)
    def with_target(**options: Any) -> Any:
        known = [name for name in Target.__dataclass_fields__ if name in options]
        target = Target(**{name: options.pop(name) for name in known})
        return command(target=target, **options)

    for option in reversed(_OPTIONS):
        option(with_target)
    return with_target


def closest_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command find the closest gateway itself; goes above target_options()."""
    is_closest = click.option(
        "--closest",
        "is_closest",
        is_flag=True,
        envvar="WEFT_CLOSEST",
        show_envvar=True,
        help="Ask the gateway for the closest one, and connect to that.",
    )
    return is_closest(REGION(command))


def gateway_option(text: str) -> Option:
    """`--gateway`, and what it is good for."""
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
    """`--service`, and what it is good for."""
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
    help="Where this is: gateways of the region are the first guess for the closest.",
)

TLS_CA: Option = click.option(
    "--tls-ca",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    envvar="WEFT_TLS_CA",
    show_envvar=True,
    help="The certificates that a tls:// gateway is checked against.",
)

KEY_FILE: Option = click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    envvar="WEFT_KEY_FILE",
    show_envvar=True,
    help=f"The file with the key for a gateway that has keys; {KEY_VARIABLE} may hold the key.",
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
        help="The name to announce, such as me.1; the gateway chooses one if there is none.",
    ),
    TLS_CA,
    KEY_FILE,
    click.option("--json", "is_json", is_flag=True, help="Print JSON, one object a line."),
)
