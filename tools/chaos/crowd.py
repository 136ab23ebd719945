"""All clients of a run: who is at which gateway, and how much they say."""

import asyncio
import random
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from tools.chaos.book import Book
from tools.chaos.clients import Client
from tools.chaos.gateways import Gateway
from tools.chaos.roles import (
    Listener,
    Publisher,
    Requester,
    Responder,
    Subscriber,
    Visitor,
)

# Of probes and requests, at each gateway; in messages a second.
PROBE_RATE = 50.0
ASK_RATE = 20.0
# Long enough for whatever settles by itself: gaps are announced well within it.
SETTLE_S = 20.0
_POLL_S = 0.02


class NotSettled(Exception):
    """Something that should be so in the end is not."""


class Crowd:
    """Publishers and subscribers at every gateway, of subjects that cross the mesh.

    `rate` is of all publishers together, in messages a second, probes and requests apart.
    """

    def __init__(self, gateways: list[Gateway], rate: float, chance: random.Random) -> None:
        self.book = Book()
        self._gateways = gateways
        self._chance = chance
        self.probers: list[Publisher] = []
        self.listeners: list[Listener] = []
        self._publishers: list[Publisher] = []
        self._subscribers: list[Subscriber] = []
        self._visitors: list[Visitor] = []
        self._requesters: list[Requester] = []
        self._responders: list[Responder] = []
        for gateway in gateways:
            self._man(gateway, rate / len(gateways))
        self._tasks: list[asyncio.Task[None]] = []

    def __iter__(self) -> Iterator[Client]:
        yield from (*self.probers, *self._publishers, *self._requesters, *self._responders)
        yield from self._hearers

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(client.keep()) for client in self]
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for client in self:
            client.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self:
            client.drop()

    async def begin(self) -> None:
        """Wait until everyone listens, speak, and wait until everyone is heard everywhere.

        Raises:
            NotSettled: it does not come to that.
        """
        await until(lambda: all(each.is_listening for each in self._hearers), "not all listen")
        loop = asyncio.get_running_loop()
        self._tasks += [loop.create_task(each.publish()) for each in self._speakers]
        self._tasks += [loop.create_task(each.ask()) for each in self._requesters]
        self._tasks += [loop.create_task(each.come_and_go()) for each in self._visitors]
        pairs = len(self._gateways) ** 2
        await until(lambda: len(self.book.probes) == pairs, "not everyone is heard everywhere")

    def firsts(self, time_ns: int) -> list[int]:
        """For each pair of gateways when a probe from after a time arrived; -1: none did."""
        places = range(len(self._gateways))
        return [self.book.first_after((one, two), time_ns) for one in places for two in places]

    async def until_flowing(self, time_ns: int) -> None:
        """Wait until probes from after a time went from everywhere to everywhere.

        Raises:
            NotSettled: it does not come to that.
        """
        await until(lambda: min(self.firsts(time_ns)) >= 0, "probes do not arrive everywhere")

    async def finish(self) -> None:
        """Say no more, and wait until everyone has heard the last of everyone.

        What one gateway sends to another arrives in order or is announced as lost: with the last
        probe everything that came before it is settled.

        Raises:
            NotSettled: it does not come to that.
        """
        for visitor in self._visitors:
            visitor.is_staying = True
        for requester in self._requesters:
            requester.is_quiet = True
        for publisher in self._publishers:
            publisher.is_quiet = True
        await until(lambda: not any(each.open for each in self._publishers), "no OK came")
        for prober in self.probers:
            prober.is_quiet = True
        await until(lambda: not any(each.open for each in self.probers), "no OK came")
        await until(lambda: not self._unheard(), self._silence)
        await asyncio.gather(*(client.flush() for client in self._hearers))

    async def until_answered(self) -> None:
        """Wait until every request was answered or refused.

        Raises:
            NotSettled: it does not come to that.
        """
        await until(lambda: not any(each.open for each in self._requesters), "requests are open")

    @property
    def _speakers(self) -> list[Publisher]:
        return [*self.probers, *self._publishers]

    @property
    def _hearers(self) -> list[Subscriber]:
        return [*self.listeners, *self._subscribers, *self._visitors]

    def _unheard(self) -> list[str]:
        """Between whom the last probe did not arrive, and was not announced as lost."""
        lasts = [(prober, *prober.last) for prober in self.probers]
        return [
            f"{prober.name} by {listener.name}"
            for listener in self.listeners
            for prober, life, counter in lasts
            if listener.reached.get(life, -1) < counter and prober.origin not in listener.missed
        ]

    def _silence(self) -> str:
        return f"the last probe was not heard: {', '.join(self._unheard())}"

    def _man(self, gateway: Gateway, rate: float) -> None:
        """Give a gateway its clients."""
        at, count, book = gateway.number, len(self._gateways), self.book
        data = [f"data.{at}.a", f"data.{at}.b", f"data.{at}.c.deep", f"work.{at}"]
        self.probers.append(Publisher(f"prober{at}", gateway, book, [f"probe.{at}"], PROBE_RATE))
        self._publishers.append(Publisher(f"publisher{at}", gateway, book, data, rate))
        self.listeners.append(Listener(f"listener{at}", gateway, book, ("probe.*",)))
        patterns = {
            "wide": ("data.>",),
            "middle": ("data.*.a", "data.*.c.>"),
            "exact": (f"data.{(at + 1) % count}.b",),
        }
        for name, wanted in patterns.items():
            self._subscribers.append(Subscriber(f"{name}{at}", gateway, book, wanted))
        # Not everywhere: what is for a group, or asked, has to go elsewhere from the others.
        if at % 2 == 0:
            self._subscribers.append(Subscriber(f"crew{at}", gateway, book, ("work.>",), "crew"))
            self._responders.append(Responder(f"responder{at}", gateway, book))
        wishes = [f"data.{each}.>" for each in range(count)]
        self._visitors.append(Visitor(f"visitor{at}", gateway, book, wishes, self._chance))
        self._requesters.append(Requester(f"requester{at}", gateway, book, ASK_RATE))


async def until(
    is_so: Callable[[], bool], problem: str | Callable[[], str], within_s: float = SETTLE_S
) -> None:
    """Wait until something is so.

    Raises:
        NotSettled: it never is.
    """
    try:
        async with asyncio.timeout(within_s):
            while not is_so():
                await asyncio.sleep(_POLL_S)
    except TimeoutError as error:
        said = problem if isinstance(problem, str) else problem()
        raise NotSettled(f"{said}, after {within_s:.0f} s") from error
