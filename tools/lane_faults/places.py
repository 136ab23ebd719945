"""Where gateway and receivers are: all on loopback, or each in a network namespace of its own."""

import asyncio
import subprocess
from types import TracebackType
from typing import Protocol, Self

from tools.chaos.gateways import Gateway, Site
from tools.chaos.namespaces import NAME, Namespaces

from weft.broker.auth.keys import ANY_SERVICE
from weft.gateway.keys.manage import make_key, new_record

# The address of the tool itself, where the publishers are, and an interface that leads there.
_HERE = "10.77.2.254"
_INTERFACE = "clients"
# Nobody has this address: what is sent there is lost, and nobody is told.
_NOBODY = "02:00:00:00:00:01"


class Place(Protocol):
    """A network for a gateway and receivers."""

    name: str
    can_stall: bool

    def site(self) -> Site:
        """Where the gateway runs."""

    def equip(self, gateway: Gateway) -> None:
        """Give the gateway what it needs there."""

    def command(self, receiver: int) -> tuple[str, ...]:
        """What the command of a receiver begins with."""

    async def stall(self, receiver: int, seconds: float) -> None:
        """Let nothing go from a receiver to publishers for a while, and tell nobody."""


class Loopback:
    """Everything on the machine itself."""

    name = "loopback"
    can_stall = False

    def __init__(self, _receivers: int) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def site(self) -> Site:
        """Where the gateway runs."""
        return Site()

    def equip(self, gateway: Gateway) -> None:
        """Nothing is needed."""

    def command(self, _receiver: int) -> tuple[str, ...]:
        """It runs as it is."""
        return ()

    async def stall(self, _receiver: int, _seconds: float) -> None:
        """Not here: lanes have no network of their own."""


class Apart:
    """The gateway and each receiver in a namespace, publishers in that of the tool."""

    name = NAME
    can_stall = True

    def __init__(self, receivers: int) -> None:
        self._namespaces = Namespaces(receivers + 1)

    async def __aenter__(self) -> Self:
        await self._namespaces.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._namespaces.__aexit__(kind, error, trace)

    def site(self) -> Site:
        """Where the gateway runs."""
        return self._namespaces.site(0)

    def equip(self, gateway: Gateway) -> None:
        """Give clients from elsewhere a key."""
        gateway.key = make_key(gateway.data, new_record("faults", "admin", ANY_SERVICE)).text

    def command(self, receiver: int) -> tuple[str, ...]:
        """It runs in its namespace."""
        return self._namespaces.site(receiver + 1).command

    async def stall(self, receiver: int, seconds: float) -> None:
        """Have it send what is for publishers to nobody; the gateway is at another address."""
        at = (_HERE, "dev", _INTERFACE)
        command = self.command(receiver)
        await _run(*command, "ip", "neighbour", "replace", *at, "lladdr", _NOBODY)
        try:
            await asyncio.sleep(seconds)
        finally:
            await _run(*command, "ip", "neighbour", "del", *at)


async def _run(*command: str) -> None:
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
