"""Both faces of the client behind one, so that a journey is written once and made by each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack

import weft
from weft.client.options import ConnectOptions, GatherOptions, SubscribeOptions
from weft.client.publish.encode import Body
from weft.client.requests.calls import Identity
from weft.client.status import Statistics, Status, What
from weft.errors import TimedOut

# Long enough for anything that works.
LIMIT_S = 15.0

Addresses = str | list[str]
Reply = Callable[[weft.Received], Body]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Each blocking call of a journey holds one until it returns.
_THREADS = ThreadPoolExecutor(64, "journey")


class Hearing(Protocol):
    """A subscription without a handler."""

    async def next(self, timeout: float = LIMIT_S) -> weft.Received:
        """The next message."""

    async def close(self) -> None:
        """Hear nothing more."""


class Client(Protocol):
    """One connection; every call returns when the gateway has done its part."""

    @property
    def name(self) -> str: ...
    @property
    def gateway(self) -> str: ...
    @property
    def is_connected(self) -> bool: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def statuses(self) -> "Statuses": ...
    async def subscribe(
        self, patterns: str | Iterable[str], **options: Unpack[SubscribeOptions]
    ) -> Hearing: ...
    async def answer(
        self, patterns: str | Iterable[str], reply: Reply, **options: Unpack[SubscribeOptions]
    ) -> None: ...
    async def publish(
        self,
        subject: str,
        body: Body,
        *,
        reply: str = "",
        not_back: bool = False,
        masked: bool = False,
    ) -> None: ...
    async def acknowledged(self, subject: str, body: Body) -> Identity: ...
    async def request(
        self,
        subject: str,
        body: Body,
        timeout: float = LIMIT_S,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> weft.Received: ...
    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[weft.Received]: ...
    async def respond(self, message: weft.Received, body: Body) -> None: ...
    async def flush(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


class Statuses:
    """What a connection told its owner, in order."""

    def __init__(self) -> None:
        self.all: list[Status] = []
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    def note(self, status: Status) -> None:
        """The status callback; on any thread."""
        self._loop.call_soon_threadsafe(self._add, status)

    async def until(self, what: What, count: int = 1) -> Status:
        """Wait until something was told so many times; the last of them."""
        async with asyncio.timeout(LIMIT_S):
            while len(found := self.of(what)) < count:
                self._news.clear()
                await self._news.wait()
        return found[count - 1]

    def of(self, what: What) -> list[Status]:
        return [status for status in self.all if status.what is what]

    def _add(self, status: Status) -> None:
        self.all.append(status)
        self._news.set()


class AsyncHearing:
    def __init__(self, subscription: weft.AsyncSubscription) -> None:
        self._subscription = subscription

    async def next(self, timeout: float = LIMIT_S) -> weft.Received:
        return await self._subscription.next(timeout)

    async def close(self) -> None:
        await self._subscription.close()


class AsyncClient:
    """weft.connect()."""

    def __init__(self, connection: weft.AsyncConnection, statuses: Statuses) -> None:
        self._connection = connection
        self.statuses = statuses

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def gateway(self) -> str:
        return self._connection.gateway

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    @property
    def statistics(self) -> Statistics:
        return self._connection.statistics

    async def subscribe(
        self, patterns: str | Iterable[str], **options: Unpack[SubscribeOptions]
    ) -> Hearing:
        subscription = self._connection.subscribe(patterns, **options)
        await subscription.ready()
        return AsyncHearing(subscription)

    async def answer(
        self, patterns: str | Iterable[str], reply: Reply, **options: Unpack[SubscribeOptions]
    ) -> None:
        async def handler(message: Any) -> None:
            await message.respond(reply(message))

        await self._connection.subscribe(patterns, handler, **options).ready()

    async def publish(
        self,
        subject: str,
        body: Body,
        *,
        reply: str = "",
        not_back: bool = False,
        masked: bool = False,
    ) -> None:
        options = {"not_back": not_back, "masked": masked}
        await self._connection.publish(subject, body, reply=reply, **options)

    async def acknowledged(self, subject: str, body: Body) -> Identity:
        return await self._connection.publish(subject, body, acknowledge=True)

    async def request(
        self,
        subject: str,
        body: Body,
        timeout: float = LIMIT_S,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> weft.Received:
        return await self._connection.send_request(
            subject, body, timeout, resend=resend, masked=masked
        )

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[weft.Received]:
        return list(await self._connection.gather(subject, body, masked=masked, **ending))

    async def respond(self, message: Any, body: Body) -> None:
        await message.respond(body)

    async def flush(self) -> None:
        await self._connection.flush()

    async def drain(self) -> None:
        await self._connection.drain()

    async def close(self) -> None:
        await self._connection.close()


class BlockingHearing:
    def __init__(self, subscription: weft.Subscription) -> None:
        self._subscription = subscription

    async def next(self, timeout: float = LIMIT_S) -> weft.Received:
        return await in_thread(self._subscription.next, timeout)

    async def close(self) -> None:
        await in_thread(self._subscription.close)


class BlockingClient:
    """weft.Connection, each of its calls on a thread."""

    def __init__(self, connection: weft.Connection, statuses: Statuses) -> None:
        self._connection = connection
        self.statuses = statuses

    @property
    def name(self) -> str:
        return self._connection.name

    @property
    def gateway(self) -> str:
        return self._connection.gateway

    @property
    def is_connected(self) -> bool:
        return self._connection.is_connected

    @property
    def statistics(self) -> Statistics:
        return self._connection.statistics

    async def subscribe(
        self, patterns: str | Iterable[str], **options: Unpack[SubscribeOptions]
    ) -> Hearing:
        return BlockingHearing(await in_thread(self._connection.subscribe, patterns, **options))

    async def answer(
        self, patterns: str | Iterable[str], reply: Reply, **options: Unpack[SubscribeOptions]
    ) -> None:
        def handler(message: Any) -> None:
            message.respond(reply(message))

        await in_thread(self._connection.subscribe, patterns, handler, **options)

    async def publish(
        self,
        subject: str,
        body: Body,
        *,
        reply: str = "",
        not_back: bool = False,
        masked: bool = False,
    ) -> None:
        options = {"not_back": not_back, "masked": masked}
        await in_thread(lambda: self._connection.publish(subject, body, reply=reply, **options))

    async def acknowledged(self, subject: str, body: Body) -> Identity:
        return await in_thread(lambda: self._connection.publish(subject, body, acknowledge=True))

    async def request(
        self,
        subject: str,
        body: Body,
        timeout: float = LIMIT_S,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> weft.Received:
        return await in_thread(
            self._connection.send_request, subject, body, timeout, resend=resend, masked=masked
        )

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[weft.Received]:
        return list(
            await in_thread(lambda: self._connection.gather(subject, body, masked=masked, **ending))
        )

    async def respond(self, message: Any, body: Body) -> None:
        await in_thread(message.respond, body)

    async def flush(self) -> None:
        await in_thread(self._connection.flush)

    async def drain(self) -> None:
        await in_thread(self._connection.drain)

    async def close(self) -> None:
        await in_thread(self._connection.close)


class Connect:
    """Connects clients of one face, to one gateway unless another is named."""

    def __init__(self, face: str, address: str) -> None:
        self._face = face
        self._address = address

    @asynccontextmanager
    async def __call__(
        self, address: Addresses = "", **options: Unpack[ConnectOptions]
    ) -> AsyncIterator[Client]:
        client = await self.open(address, **options)
        try:
            yield client
        finally:
            await client.close()

    async def open(self, address: Addresses = "", **options: Unpack[ConnectOptions]) -> Client:
        statuses = Statuses()
        options = {"on_status": statuses.note, "timeout_s": LIMIT_S, **options}
        where = address or self._address
        if self._face == "asyncio":
            return AsyncClient(await weft.connect(where, **options), statuses)
        return BlockingClient(await in_thread(weft.Connection, where, **options), statuses)


async def in_thread(
    function: Callable[_Arguments, _Result], *args: _Arguments.args, **kwargs: _Arguments.kwargs
) -> _Result:
    """Call what blocks, and let the test's loop go on meanwhile."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_THREADS, partial(function, *args, **kwargs))


async def taken(hearing: Hearing, count: int) -> list[weft.Received]:
    """The next so many messages."""
    return [await hearing.next() for _ in range(count)]


async def rest(client: Client, hearing: Hearing) -> list[weft.Received]:
    """All that has come by now, and whatever the gateway had for this client before."""
    await client.flush()
    messages: list[weft.Received] = []
    while True:
        try:
            messages.append(await hearing.next(0))
        except TimedOut:
            return messages


def texts(messages: Iterable[weft.Received]) -> list[str]:
    return [message.text for message in messages]
