"""Failover during a partition: a subscription receives nothing twice, and never goes back."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from tests.gateway.meshes import LIMIT_S, wanted
from tests.journeys.mesh_of import Proxy, client, gateway, linked, until
from tests.journeys.running import RunningGateway
from tools.chaos import proxy as chaos
from tools.chaos.gateways import NAME
from tools.chaos.proxy import Way, Weather

import weft

# The gateway of the publisher, and the first and the second address of the subscriber.
HOME, FIRST, SECOND = range(3)
COUNT = 3


class Network:
    """Three gateways with a proxy in front of each, so that any of them can be cut off."""

    def __init__(self, gateways: list[RunningGateway], weather: Weather) -> None:
        self.gateways = gateways
        self._weather = weather

    async def cut_off(self, number: int) -> None:
        """Break all links of one gateway, and wait until all have noticed."""
        others = [each for each in range(COUNT) if each != number]
        for other in others:
            await self._weather.refuse(Way(number, other))
        await until(lambda mesh: mesh["links"] == 0, self.gateways[number])
        rest = [self.gateways[other] for other in others]
        await until(lambda mesh: mesh["links"] == 1, *rest)

    async def heal(self, number: int) -> None:
        """Let its links be made again."""
        others = [each for each in range(COUNT) if each != number]
        ways = [Way(number, other) for other in others]
        await self._weather.clear(*ways, *(way.back for way in ways))
        await linked(*self.gateways)


class Received:
    """What one subscription was given: numbers, and `None` where a gap was announced."""

    def __init__(self) -> None:
        self.events: list[int | None] = []

    def take(self, message: weft.AsyncReceived) -> None:
        self.events.append(message["number"])

    def miss(self, _: weft.Gap) -> None:
        self.events.append(None)

    async def until(self, number: int) -> None:
        async with asyncio.timeout(LIMIT_S):
            while number not in self.events:
                await asyncio.sleep(0.01)

    def check(self) -> None:
        """Nothing came twice or went back, and what is missing was announced."""
        numbers = [each for each in self.events if each is not None]
        assert numbers == sorted(set(numbers))
        for before, after in zip(self.events, self.events[1:], strict=False):
            assert before is None or after is None or after == before + 1


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[Network]:
    """Three gateways that are linked with each other."""
    weather = Weather()
    async with AsyncExitStack() as stack:
        proxies = [chaos.Proxy(number, weather, NAME) for number in range(COUNT)]
        for each in proxies:
            await stack.enter_async_context(each)
        with gateways_behind(folder, proxies) as made:
            await linked(*made)
            yield Network(made, weather)


@contextmanager
def gateways_behind(folder: Path, proxies: list[chaos.Proxy]) -> Iterator[list[RunningGateway]]:
    made: list[RunningGateway] = []
    with ExitStack() as stack:
        for number, before in enumerate(proxies):
            mesh = f'address = "{before.address}"\njoin = ["{proxies[HOME].address}"]'
            made.append(stack.enter_context(gateway(folder, f"{NAME}{number}", mesh)))
            host, _, port = made[-1].address.rpartition(":")
            before.target = (host, int(port))
        yield made


async def say(publisher: weft.AsyncConnection, numbers: range) -> None:
    for number in numbers:
        await publisher.publish("news", weft.Message(number=number))
    await publisher.flush()


@pytest.mark.req("MM-12", "MM-25")
@pytest.mark.parametrize("partitioned", [FIRST, SECOND])
async def test_after_a_partition_and_a_failover_nothing_comes_twice_or_goes_back(
    tmp_path: Path, partitioned: int
) -> None:
    async with network(tmp_path) as mesh, Proxy() as before_first, AsyncExitStack() as stack:
        home, first, second = mesh.gateways
        before_first.lead_to(first.address)
        addresses = [before_first.address, second.address]
        subscriber = await stack.enter_async_context(
            weft.connect(addresses, timeout_s=LIMIT_S, backoff_cap_s=0.2)
        )
        received, others = Received(), [Received(), Received()]
        subscription = subscriber.subscribe("news", received.take, on_gap=received.miss)
        # Those who stay: for their gateways messages are kept during the partition.
        for place, other in zip((first, second), others, strict=True):
            stays = await stack.enter_async_context(client(place))
            stays.subscribe("news", other.take, on_gap=other.miss)
        publisher = await stack.enter_async_context(client(home))
        await subscription.ready()
        await wanted(publisher, "news", first_name := f"{NAME}1", f"{NAME}2")
        assert subscriber.gateway == first_name

        await say(publisher, range(100))
        await received.until(99)
        await mesh.cut_off(partitioned)
        await say(publisher, range(100, 200))
        if partitioned == SECOND:
            await received.until(199)
        before_first.behind = ("", 0)
        before_first.cut()
        async with asyncio.timeout(LIMIT_S):
            while subscriber.gateway != f"{NAME}2" or None not in received.events:
                await asyncio.sleep(0.01)
        await say(publisher, range(200, 300))
        await mesh.heal(partitioned)
        await say(publisher, range(300, 400))
        for each in (received, *others):
            await each.until(399)
            each.check()
        repeated = subscriber.statistics.repeated
        assert (repeated > 0) == (partitioned == SECOND)
