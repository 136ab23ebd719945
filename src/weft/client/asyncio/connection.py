"""The client for asyncio: `async with weft.connect("127.0.0.1:7411") as c: …`."""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from weft.client.asyncio.channel import AsyncChannel
from weft.client.asyncio.subscription import AsyncSubscription, Handler, Home, stop
from weft.client.channels.channel_info import ChannelFacts, ChannelList
from weft.client.channels.requests import Channels
from weft.client.connection.connection_info import Face
from weft.client.connection.engine import Engine
from weft.client.connection.reconnect import Keeper
from weft.client.options import (
    ConnectOptions,
    Gathering,
    GatherOptions,
    Options,
    SubscribeOptions,
    Wish,
    made,
)
from weft.client.publish.encode import Body
from weft.client.publish.publisher import AsyncPublishing
from weft.client.received import AsyncReceived, async_received
from weft.client.requests.calls import Calls, Draft, Identity
from weft.client.requests.runtime_grants import EnabledRight
from weft.client.status import Reporter
from weft.client.subscriptions.iteration import Loops
from weft.errors import UsageError
from weft.wire.address import DEFAULT_ADDRESS, Address, addresses_from
from weft.wire.frames import Flag

__all__ = ["AsyncConnection", "AsyncReceived", "AsyncSubscription", "Connecting", "connect"]


def connect(
    address: str | Iterable[str] = DEFAULT_ADDRESS, **options: Unpack[ConnectOptions]
) -> "Connecting":
    """Reach a gateway; to be awaited, or entered with `async with`.

    Several addresses, or one text with commas, are tried in turn. `Options` says what the options
    mean.

    Raises:
        BadOption: an address or an option cannot be.
        Unreachable: no gateway answers, unless `wait=True`.
        Refused: a gateway answers and will not have this client, likewise.
    """
    return Connecting(addresses_from(address), made(Options, options))


class Connecting:
    """A connection that is opened when it is awaited or entered."""

    def __init__(self, addresses: tuple[Address, ...], options: Options) -> None:
        self._addresses = addresses
        self._options = options
        self._connection: AsyncConnection | None = None

    def __await__(self) -> Generator[object, None, "AsyncConnection"]:
        return self._open().__await__()

    async def __aenter__(self) -> "AsyncConnection":
        self._connection = await self._open()
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._connection is not None:
            await self._connection.close()

    async def _open(self) -> "AsyncConnection":
        reporter = Reporter(
            self._options.logger, self._options.name or "weft client", self._options.on_status
        )
        engine = Engine(self._options, reporter, asyncio.get_running_loop().call_soon)
        keeper = Keeper(engine, self._addresses)
        await keeper.open()
        return AsyncConnection(engine, keeper)


class AsyncConnection(AsyncPublishing, Face):
    """A connection to a gateway that comes back by itself; made by connect()."""

    def __init__(self, engine: Engine, keeper: Keeper) -> None:
        self._engine = engine
        self._keeper = keeper
        self._calls = Calls(engine)
        self._channels = Channels(engine, self._calls)
        super().__init__(engine.outgoing, self._calls, engine.required)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops = Loops()
        self._home = Home(self, engine, self._calls, self._own, self._loops)

    def subscribe(
        self,
        patterns: str | Iterable[str],
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscription:
        """Hear what is published to a pattern, or to several; see AsyncSubscription.

        It returns at once: `await subscription.ready()` waits for the gateway's word. A refusal is
        also raised by iteration, and reported as a status. `Wish` says what the options mean.

        Raises:
            BadSubject: a pattern or the group is not legal.
            BadOption: an option cannot be, or disagrees with another subscription.
            NotOpen: the connection is closed.
            Overloaded: there are too many subscriptions.
        """
        return AsyncSubscription(self._home, patterns, made(Wish, options), handler)

    if TYPE_CHECKING:  # What publish() gives depends on what is asked of it.

        @overload
        def publish(
            self,
            subject: str,
            body: Body,
            *,
            reply: str = "",
            not_back: bool = False,
            masked: bool = False,
            acknowledge: Literal[True],
        ) -> Coroutine[Any, Any, Identity]: ...
        @overload
        def publish(
            self,
            subject: str,
            body: Body,
            *,
            reply: str = "",
            not_back: bool = False,
            masked: bool = False,
            acknowledge: Literal[False] = False,
        ) -> Coroutine[Any, Any, None]: ...
        @overload
        def publish(
            self,
            subject: str,
            body: Body,
            *,
            reply: str = "",
            not_back: bool = False,
            masked: bool = False,
            acknowledge: bool = False,
        ) -> Coroutine[Any, Any, Identity | None]: ...
        def publish(self, *_: Any, **__: Any) -> Any:
            """See publishing.py."""

    async def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> AsyncReceived:
        """Ask whoever serves a subject, and wait for the one answer.

        If the connection is lost meanwhile nobody knows how far the request came: it fails, unless
        `resend` says that it may be asked twice. With `masked` whoever answers does not learn whom.

        Raises:
            NotKnown: nobody serves the subject.
            ResponderGone: whoever had the request left before answering it, or it was lost.
            TimedOut: no answer came in time.
            ConnectionLost: the connection was lost, and `resend` was not set.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        return async_received(await self._calls.request(draft, timeout, resend=resend), self)

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[AsyncReceived]:
        """Ask everybody who hears a subject; the answers until `Gathering` says that it ends.

        With `masked` those who answer do not learn whom.

        Raises:
            ConnectionLost: the connection was lost meanwhile.
            Overloaded: the answers are more than `queue_bytes`.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        frames = await self._calls.gather(draft, made(Gathering, ending))
        return [async_received(frame, self) for frame in frames]

    async def enable(self, right: EnabledRight, pattern: str) -> None:
        """Let clients `publish`, `subscribe` or `request` a pattern, while this connection lasts.

        It takes a key of a service. When the connection comes back it is enabled again.

        Raises:
            BadOption: there is no such right.
            BadSubject: the pattern is not legal.
            NotAllowed: this connection may not give that right.
            TooMany: it has enabled as many as it may.
        """
        await self._calls.enable(right, pattern)

    async def disable(self, right: EnabledRight, pattern: str) -> None:
        """Take back what enable() gave; what it did not is no error."""
        await self._calls.disable(right, pattern)

    async def direct(self, subject: str, timeout: float | None = None) -> None:
        """Have what is published to a subject go straight to those who get it, whatever the rate.

        It returns once it does: see docs/lanes.md.

        Raises:
            BadSubject: it is not a subject.
            NotDirect: it cannot be, and why.
            TimedOut: it did not come to it in time.
        """
        await self._calls.direct(subject, timeout)

    async def open_channel(self, name: str, password: str | None = None) -> AsyncChannel:
        """Open a channel, with a password or without, and be in it; see AsyncChannel.

        Only keys made of the password are kept, and none of them can be sent to join with.

        Raises:
            BadSubject: the name is not legal.
            BadOption: the password is empty.
            ChannelExists: there is one already: join it.
            ChannelContested: somebody else opens it at this moment: try again.
            NoMajority: with a password, too few gateways can be reached.
            NotAllowed: this connection may not.
            TooMany: it is in as many as it may be.
            UsageError: it is in this one already.
        """
        membership = await self._channels.open(name, password)
        return AsyncChannel(self, self._home, self._channels, membership)

    async def join_channel(self, name: str, password: str | None = None) -> AsyncChannel:
        """Be in a channel that somebody opened; see AsyncChannel.

        Raises:
            BadSubject: the name is not legal.
            BadOption: the password is empty.
            WrongPassword: no channel of this name has this password, or needs none.
            TooManyTries: too many passwords were wrong: wait for as long as it says.
            NotAllowed: this connection may not.
            TooMany: it is in as many as it may be.
            UsageError: it is in this one already.
            ProtocolError: the gateway let us in and does not know the password.
        """
        membership = await self._channels.join(name, password)
        return AsyncChannel(self, self._home, self._channels, membership)

    async def channels(self, limit: int = 100) -> ChannelList:
        """The channels without a password, or for services and admins all of them.

        Raises:
            BadOption: the limit is not one.
        """
        return await self._channels.list(limit)

    async def channel_facts(self, name: str) -> ChannelFacts:
        """Who opened a channel, where, and where its members are.

        Raises:
            BadSubject: the name is not legal.
            NotKnown: there is no such channel, or it is not to be seen.
        """
        return await self._channels.show(name)

    async def close_channel(self, name: str) -> None:
        """End a channel for everybody, as a service or an admin may.

        Raises:
            BadSubject: the name is not legal.
            NotKnown: there is no such channel.
            NotAllowed: this connection may not.
        """
        await self._channels.close_named(name)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the gateway has dealt with everything that was published before.

        Raises:
            TimedOut: it did not say so in time.
            ConnectionLost: the connection was lost meanwhile.
        """
        await self._calls.flush(timeout)

    async def drain(self, timeout: float | None = None) -> None:
        """Ask for nothing more, let handlers and loops finish what came, and close.

        Raises:
            TimedOut: it could not all be done in time.
            ConnectionLost: the connection was lost meanwhile, and with it what was still to come.
            Overloaded: the gateway does not even read what takes the subscriptions back.
            NotOpen: it is closed already, or was meanwhile.
            UsageError: a handler would wait for itself; only then it stays open.
        """
        if asyncio.current_task() in self._tasks:
            raise UsageError("a handler cannot wait until it has finished: drain elsewhere")
        self._loops.finish(asyncio.current_task())
        try:
            await self._calls.drain(timeout)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop the handlers, send what is buffered and leave the gateway; harmless if done before.

        It waits as long as the gateway takes what is sent, at most `timeout_s`. What is left then,
        and whatever is buffered while there is no connection, is lost: the status `closed` says
        how much. If it is cancelled it stops at once.
        """
        # Before the connection refuses what they say: a handler that is stopped may say goodbye.
        self._engine.is_closing = True
        self._engine.subscriptions.finish()
        try:
            await stop(self._tasks)
        except BaseException:
            self._keeper.abandon()
            raise
        await self._keeper.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _own(
        self, work: Coroutine[object, object, None], context: Context | None
    ) -> asyncio.Task[None]:
        task = asyncio.create_task(work, context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
