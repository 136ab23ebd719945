"""Interface between a front and its services, which run in own processes or inline."""

from collections.abc import Callable, Collection
from typing import Protocol

from weft.errors import NoSuchService, WeftError
from weft.gateway.config.settings import Settings
from weft.gateway.front.fd_passing import AS_FRAMES
from weft.gateway.http.report import ServiceReport
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import MeshMembership
from weft.mesh.candidates import Candidate

# Executes an admin command that concerns the whole gateway and returns a sentence about it.
# Raises BadOption with the reason if it cannot.
Fulfil = Callable[[str, str], str]

# Service of clients that name none.
DEFAULT_SERVICE = "default"
# Service of a key that opens all of them.
EVERY_SERVICE = "*"
# Name of no service: a decoy gives the answer that every service gives without a valid key.
DECOY = ""


class Services(Protocol):
    """The services of one gateway.

    `on_return` takes back a connection whose next request is not for the service that owns it; it
    is set before the first connection is passed on.
    """

    on_return: Callable[[int], None] | None
    # Connects the services to a mesh; set before they are started. None: no mesh.
    membership: MeshMembership | None
    # Executes commands that concern the whole gateway; None: not supported.
    fulfil: Fulfil | None

    @property
    def connections(self) -> int:
        """Number of connections, including those being passed."""

    @property
    def not_up(self) -> list[str]:
        """Services that are not up."""

    @property
    def silent(self) -> list[str]:
        """Services whose worker does not report turns of its event loop."""

    @property
    def running(self) -> list[str]:
        """Running services."""

    async def start(self) -> None:
        """Start the services named in the settings."""

    def give(self, service: str, fd: int, way: int = AS_FRAMES) -> None:
        """Pass an unread connection to its service, which owns it from now on.

        Raises:
            NoSuchService: This gateway does not run the service.
            WeftError: The service would have to be started, and check_start() refuses that.
            Overloaded: The service accepts no more connections for now.
        """

    def has(self, service: str) -> bool:
        """Return whether a service runs, so that a connection does not start it."""

    def end_idle(self) -> None:
        """Stop services that were unused for `idle_s`; called about once a second."""

    def change(self, settings: Settings) -> None:
        """Apply new settings."""

    def set_keys(self, keys: Records | None) -> None:
        """Send every service its keys if they changed.

        None trusts every client.
        """

    async def report(self) -> dict[str, ServiceReport]:
        """Return the status of every service, within a timeout."""

    async def nodes(self, service: str) -> tuple[Candidate, ...] | None:
        """Return the gateways of a service; None if it does not run here or does not answer."""

    async def drain(self, within_s: float) -> None:
        """Ask clients to reconnect elsewhere, flush and stop, within the timeout."""

    async def close(self) -> None:
        """Stop all services immediately."""


def fulfilled(fulfil: Fulfil | None, verb: str, value: str) -> tuple[str, str]:
    """Execute a command; return a problem or a sentence about the result."""
    if fulfil is None:
        return f"{verb} is not supported here: this gateway is part of another program", ""
    try:
        return "", fulfil(verb, value)
    except WeftError as error:
        return str(error), ""


def keys_of(service: str, keys: Records | None) -> Records | None:
    """Return the keys that open a service; None if there are no keys at all."""
    return None if keys is None else tuple(each for each in keys if each.is_for(service))


def begun(settings: Settings) -> tuple[str, ...]:
    """Return the services that start with the gateway: those named in the settings.

    Without names, a gateway of a mesh starts the default service, so that other gateways reach its
    clients through it before the first client connects.
    """
    if settings.services or not settings.mesh.is_asked_for:
        return tuple(settings.services)
    return (DEFAULT_SERVICE,)


def admit(
    service: str, running: Collection[str], settings: Settings, keys: Records | None = None
) -> None:
    """Check that a service may accept new connections, and may be started if it does not run.

    Services named in the settings always may; services no longer named end with their connections.
    Slots are reserved for services named in keys: no other service takes the last ones.

    Raises:
        NoSuchService: The settings do not allow it.
    """
    if settings.services and service not in settings.services:
        raise NoSuchService(f"this gateway does not run a service {service!r}")
    if service in settings.services or service in running:
        return
    if len(running) >= settings.services_max:
        raise NoSuchService(
            f"this gateway runs {len(running)} services already and will not start {service!r}"
        )
    named = {each.service for each in keys or ()} - {EVERY_SERVICE}
    kept = len(named.difference(running))
    if service not in named and len(running) + kept >= settings.services_max:
        raise NoSuchService(
            f"this gateway runs {len(running)} services, reserves slots for {kept} named in keys,"
            f" and will not start {service!r}: services_max is {settings.services_max}"
        )
