"""What a front needs of whoever runs the services, in processes of their own or inline."""

from collections.abc import Callable, Collection
from typing import Protocol

from weft.errors import NoSuchService, WeftError
from weft.gateway.config.settings import Settings
from weft.gateway.front.fd_passing import AS_FRAMES
from weft.gateway.http.report import ServiceReport
from weft.gateway.keys.key_file import Records
from weft.gateway.mesh.membership import Membership
from weft.mesh.candidates import Candidate

# Does what an administrator wants of the whole gateway: what it did, in a sentence.
# Raises BadOption if that cannot be done, and why.
Fulfil = Callable[[str, str], str]

# Everybody's: clients that name no service come to it.
DEFAULT_SERVICE = "default"
# What a key names that opens all of them.
EVERY_SERVICE = "*"
# The name of no service: a decoy answers as every service would whoever has no key for it.
DECOY = ""


class Services(Protocol):
    """The services of one gateway.

    `on_return` takes a connection back whose next request is not for the service it was given to;
    it is set before the first is given.
    """

    on_return: Callable[[int], None] | None
    # What makes them part of a mesh; set before they are started. None: nothing does.
    membership: Membership | None
    # Does what is commanded of the whole gateway; None: nobody does.
    fulfil: Fulfil | None

    @property
    def connections(self) -> int:
        """How many connections they have, those on their way included."""

    @property
    def not_up(self) -> list[str]:
        """The services that cannot take part at the moment."""

    @property
    def silent(self) -> list[str]:
        """The services whose worker makes no turns at the moment."""

    @property
    def running(self) -> list[str]:
        """The services that run."""

    async def start(self) -> None:
        """Start the services that the settings name."""

    def give(self, service: str, fd: int, way: int = AS_FRAMES) -> None:
        """Pass a connection of which nothing was read to its service, which owns it from now on.

        Raises:
            NoSuchService: this gateway does not run it.
            WeftError: it would have to be started, and check_start() has a reason not to.
            Overloaded: it does not keep up with newcomers.
        """

    def has(self, service: str) -> bool:
        """Return whether a service runs, so that nothing has to be started for a connection."""

    def end_idle(self) -> None:
        """End services that nobody has used for `idle_s`; called about once a second."""

    def change(self, settings: Settings) -> None:
        """Go by these settings from now on."""

    def set_keys(self, keys: Records | None) -> None:
        """Let every service be told who may come in, unless it was told already.

        None trusts everyone.
        """

    async def report(self) -> dict[str, ServiceReport]:
        """Every service in numbers; bounded in time."""

    async def nodes(self, service: str) -> tuple[Candidate, ...] | None:
        """The gateways of a service; None if it does not run here, or does not say in time."""

    async def drain(self, within_s: float) -> None:
        """Ask everyone to go elsewhere, send what they are owed, and end; bounded in time."""

    async def close(self) -> None:
        """End what is left, at once."""


def fulfilled(fulfil: Fulfil | None, verb: str, value: str) -> tuple[str, str]:
    """What came of something that was commanded: a problem, or a sentence."""
    if fulfil is None:
        return f"{verb} cannot be done here: this gateway is part of another program", ""
    try:
        return "", fulfil(verb, value)
    except WeftError as error:
        return str(error), ""


def keys_of(service: str, keys: Records | None) -> Records | None:
    """The keys that open a service; None if there are no keys at all."""
    return None if keys is None else tuple(each for each in keys if each.is_for(service))


def begun(settings: Settings) -> tuple[str, ...]:
    """The services that are started with a gateway: those that the settings name.

    Where they name none, a gateway of a mesh has the one that is everybody's from the first: others
    could not reach its clients through it before somebody came.
    """
    if settings.services or not settings.mesh.is_asked_for:
        return tuple(settings.services)
    return (DEFAULT_SERVICE,)


def admit(
    service: str, running: Collection[str], settings: Settings, keys: Records | None = None
) -> None:
    """Make sure that newcomers to a service may be let in, and that it may be started if need be.

    One that the settings name always is: those that they no longer name end with their connections.
    Places are kept for those that keys name: no other service takes the last ones.

    Raises:
        NoSuchService: the settings do not allow it.
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
            f"this gateway runs {len(running)} services, keeps places for {kept} that keys name,"
            f" and will not start {service!r}: services_max is {settings.services_max}"
        )
