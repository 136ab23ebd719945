"""The mesh on loopback: a small proxy in front of each gateway is the network between them."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from tools.chaos.gateways import NAME, Gateway, Site
from tools.chaos.plan import FLAP, ISOLATE, KINDS, ONE_WAY, Fault
from tools.chaos.proxy import Proxy, Way, Weather


class Loopback:
    """So many gateways; others dial each at its proxy, clients directly."""

    name = "loopback"
    kinds = KINDS

    def __init__(self, count: int) -> None:
        self._count = count
        self._weather = Weather()
        self._proxies = [Proxy(each, self._weather, NAME) for each in range(count)]
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for proxy in self._proxies:
            await self._stack.enter_async_context(proxy)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def site(self, _number: int) -> Site:
        """Where a gateway runs."""
        return Site()

    def equip(self, gateway: Gateway) -> None:
        """Tell a gateway where others find it, and where it finds them."""
        gateway.settings["mesh.address"] = self._proxies[gateway.number].address

    def joined(self, number: int) -> str:
        """What others dial."""
        return self._proxies[number].address

    def ready(self, gateway: Gateway) -> None:
        """A gateway listens now."""
        self._proxies[gateway.number].target = gateway.address

    async def begin(self, fault: Fault) -> None:
        """Break links."""
        ways = self._ways(fault)
        if fault.kind == FLAP:
            for way in ways:
                await self._weather.refuse(way)
        else:
            await self._weather.stop(*ways)

    async def end(self, fault: Fault) -> None:
        """Mend them."""
        await self._weather.clear(*self._ways(fault))

    def _ways(self, fault: Fault) -> list[Way]:
        others = [fault.other]
        if fault.kind == ISOLATE:
            others = [each for each in range(self._count) if each != fault.gateway]
        ways = [Way(fault.gateway, other) for other in others]
        return ways if fault.kind == ONE_WAY else [*ways, *(way.back for way in ways)]
