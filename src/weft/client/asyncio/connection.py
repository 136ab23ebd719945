"""The client for asyncio: `async with weft.connect("127.0.0.1:7411") as c: …`."""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextvars import Context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from weft.client.asyncio.channel import AsyncChannel
from weft.client.asyncio.subscription import (
    AsyncSubscription,
    AsyncSubscriptionContext,
    Handler,
    stop,
)
from weft.client.channels.channel_info import ChannelFacts, ChannelList
from weft.client.channels.requests import ChannelRequests
from weft.client.connection.connection_info import Face
from weft.client.connection.engine import Engine
from weft.client.connection.reconnect import ReconnectLoop
from weft.client.options import (
    ConnectOptions,
    GatherLimits,
    GatherOptions,
    Options,
    SubscribeOptions,
    SubscriptionOptions,
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
    """Connect to a gateway; await the result, or enter it with `async with`.

    Several addresses, or one string with commas, are tried in turn. `Options` documents the
    options.

    Raises:
        BadOption: Invalid address or option.
        Unreachable: No gateway answers, unless `wait=True`.
        Refused: A gateway rejected this client, unless `wait=True`.
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
        keeper = ReconnectLoop(engine, self._addresses)
        await keeper.open()
        return AsyncConnection(engine, keeper)


class AsyncConnection(AsyncPublishing, Face):
    """A connection to a gateway that reconnects by itself; created by connect()."""

    def __init__(self, engine: Engine, keeper: ReconnectLoop) -> None:
        self._engine = engine
        self._keeper = keeper
        self._calls = Calls(engine)
        self._channels = ChannelRequests(engine, self._calls)
        super().__init__(engine.outgoing, self._calls, engine.required)
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops = Loops()
        self._home = AsyncSubscriptionContext(self, engine, self._calls, self._own, self._loops)

    def subscribe(
        self,
        patterns: str | Iterable[str],
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> AsyncSubscription:
        """Subscribe to one or several patterns; see AsyncSubscription.

        Returns at once: `await subscription.ready()` waits for the confirmation of the gateway. A
        refusal is also raised by iteration and reported as a status. `SubscriptionOptions`
        documents the options.

        Raises:
            BadSubject: Invalid pattern or group.
            BadOption: Invalid option, or one that conflicts with another subscription.
            NotOpen: The connection is closed.
            Overloaded: Too many subscriptions.
        """
        return AsyncSubscription(self._home, patterns, made(SubscriptionOptions, options), handler)

    if TYPE_CHECKING:  # The result of publish() depends on `acknowledge`.

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
            """See publish/publisher.py."""

    async def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> AsyncReceived:
        """Send a request to one responder of a subject and return its answer.

        If the connection is lost meanwhile, the request may or may not have been handled: it fails,
        unless `resend` allows it to be sent twice. With `masked` the responder does not learn who
        sent it.

        Raises:
            NotKnown: The subject has no responder.
            ResponderGone: The responder disconnected before answering, or the request was lost.
            TimedOut: No answer within the timeout.
            ConnectionLost: The connection was lost, and `resend` was not set.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        return async_received(await self._calls.request(draft, timeout, resend=resend), self)

    async def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[AsyncReceived]:
        """Send a request to all subscribers of a subject; return the answers.

        `GatherLimits` documents when it ends. With `masked` responders do not learn the requester.

        Raises:
            ConnectionLost: The connection was lost meanwhile.
            Overloaded: The answers exceed `queue_bytes`.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        frames = await self._calls.gather(draft, made(GatherLimits, ending))
        return [async_received(frame, self) for frame in frames]

    async def enable(self, right: EnabledRight, pattern: str) -> None:
        """Let clients `publish`, `subscribe` or `request` a pattern while this connection is open.

        Requires a key of a service. After a reconnection the right is enabled again.

        Raises:
            BadOption: Unknown right.
            BadSubject: Invalid pattern.
            NotAllowed: This connection may not grant that right.
            TooMany: This connection has reached its limit of enabled patterns.
        """
        await self._calls.enable(right, pattern)

    async def disable(self, right: EnabledRight, pattern: str) -> None:
        """Revoke a right that enable() granted; ignored if it was not granted."""
        await self._calls.disable(right, pattern)

    async def direct(self, subject: str, timeout: float | None = None) -> None:
        """Send messages to a subject directly to their receivers, whatever their rate.

        Returns once all of them are reached directly: see docs/lanes.md.

        Raises:
            BadSubject: Invalid subject.
            NotDirect: A direct connection is not possible; the text gives the reason.
            TimedOut: Not established within the timeout.
        """
        await self._calls.direct(subject, timeout)

    async def open_channel(self, name: str, password: str | None = None) -> AsyncChannel:
        """Open a channel, with or without a password, and join it; see AsyncChannel.

        Only keys derived from the password are stored, and none of them is enough to join.

        Raises:
            BadSubject: Invalid name.
            BadOption: Empty password.
            ChannelExists: A channel of this name exists: join it.
            ChannelContested: Another client is opening it at the same time: try again.
            NoMajority: Too few gateways are reachable to open a channel with a password.
            NotAllowed: This connection may not open channels.
            TooMany: This connection has reached its limit of channels.
            UsageError: This connection is already a member.
        """
        membership = await self._channels.open(name, password)
        return AsyncChannel(self, self._home, self._channels, membership)

    async def join_channel(self, name: str, password: str | None = None) -> AsyncChannel:
        """Join an existing channel; see AsyncChannel.

        Raises:
            BadSubject: Invalid name.
            BadOption: Empty password.
            WrongPassword: No channel of this name with this password, or without one if not given.
            TooManyTries: Too many wrong passwords: wait for the time given in the text.
            NotAllowed: This connection may not join channels.
            TooMany: This connection has reached its limit of channels.
            UsageError: This connection is already a member.
            ProtocolError: The gateway failed to prove that it knows the password.
        """
        membership = await self._channels.join(name, password)
        return AsyncChannel(self, self._home, self._channels, membership)

    async def channels(self, limit: int = 100) -> ChannelList:
        """Return the channels without a password, or, for services and admins, all channels.

        Raises:
            BadOption: The limit is not positive.
        """
        return await self._channels.list(limit)

    async def channel_facts(self, name: str) -> ChannelFacts:
        """Return the owner of a channel, its gateway, and the gateways of its members.

        Raises:
            BadSubject: Invalid name.
            NotKnown: No such channel, or not visible to this connection.
        """
        return await self._channels.show(name)

    async def close_channel(self, name: str) -> None:
        """End a channel for all members; allowed to services and admins.

        Raises:
            BadSubject: Invalid name.
            NotKnown: No such channel.
            NotAllowed: This connection may not close it.
        """
        await self._channels.close_named(name)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until the gateway has processed all messages published before.

        Raises:
            TimedOut: No confirmation within the timeout.
            ConnectionLost: The connection was lost meanwhile.
        """
        await self._calls.flush(timeout)

    async def drain(self, timeout: float | None = None) -> None:
        """Unsubscribe, let handlers and loops process the received messages, and close.

        Raises:
            TimedOut: Not complete within the timeout.
            ConnectionLost: The connection was lost meanwhile, and undelivered messages with it.
            Overloaded: The gateway does not read, so the subscriptions could not be cancelled.
            NotOpen: The connection was closed before or meanwhile.
            UsageError: Called within a handler, which would wait for itself; the connection stays
                open in this case only.
        """
        if asyncio.current_task() in self._tasks:
            raise UsageError("drain() cannot be called in a handler, which would wait for itself")
        self._loops.finish(asyncio.current_task())
        try:
            await self._calls.drain(timeout)
        finally:
            await self.close()

    async def close(self) -> None:
        """Stop the handlers, send the buffered messages and disconnect. Idempotent.

        Waits at most `timeout_s` for the gateway to read them. Messages that are left then, or that
        are buffered while there is no connection, are lost: the status `closed` gives their number.
        If cancelled, it stops at once.
        """
        # Before the connection refuses messages: a handler may publish while it is being stopped.
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
