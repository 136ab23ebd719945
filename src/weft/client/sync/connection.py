"""The blocking client: `with weft.Connection("127.0.0.1:7411") as c: …`.

Runs the asyncio engine on an event loop in a thread of its own. Callbacks run on a second thread,
so that they may block and use the connection, or within pump().
"""

import concurrent.futures
import contextvars
import functools
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

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
from weft.client.publish.publisher import BlockingPublishing
from weft.client.received import BlockingReceived, blocking_received
from weft.client.requests.calls import Calls, Draft, Identity
from weft.client.requests.runtime_grants import EnabledRight
from weft.client.status import Reporter
from weft.client.subscriptions.iteration import Loops
from weft.client.sync import at_exit
from weft.client.sync.callbacks import Callbacks
from weft.client.sync.channel import Channel
from weft.client.sync.dispatch_batch import Handler, check_plain
from weft.client.sync.loop_thread import OPENED_ELSEWHERE, Background
from weft.client.sync.subscription import Subscription, SyncSubscriptionContext, subscribed
from weft.errors import BadOption, NotOpen, UsageError
from weft.wire.address import DEFAULT_ADDRESS, addresses_from
from weft.wire.frames import Flag

__all__ = ["BlockingReceived", "Connection", "Subscription"]


class Connection(BlockingPublishing, Face):
    """A connection to a gateway that reconnects by itself; usable from any thread.

    A forked process cannot use it: there every call raises NotOpen, and close() does nothing.
    With `callbacks="pumped"` handlers and the status callback run only within pump().
    """

    def __init__(
        self,
        address: str | Iterable[str] = DEFAULT_ADDRESS,
        *,
        callbacks: Literal["thread", "pumped"] = "thread",
        **options: Unpack[ConnectOptions],
    ) -> None:
        """Connect; several addresses, or one string with commas, are tried in turn.

        Raises:
            BadOption: Invalid address or option.
            Unreachable: No gateway answers, unless `wait=True`.
            Refused: A gateway rejected this client, unless `wait=True`.
        """
        if callbacks not in ("thread", "pumped"):
            raise BadOption(f"callbacks is {callbacks!r}, neither 'thread' nor 'pumped'")
        self._options = made(Options, options)
        self._addresses = addresses_from(address)
        label = self._options.name or "weft client"
        self._background = Background(f"{label} loop")
        self._background.run(self._prepare(label))
        engine = self._engine
        # Holds no reference to this object: an unreferenced connection is finalized at once.
        acknowledged = _acknowledging(self._background, self._calls, engine)
        super().__init__(
            engine.outgoing, self._calls, acknowledged, engine.required, self._options.timeout_s
        )
        at_exit.remember(self)
        self._callbacks.start(None if callbacks == "pumped" else f"{label} callbacks")
        try:
            self._background.run(self._keeper.open())
        except BaseException:
            self.close()
            raise

    def subscribe(
        self,
        patterns: str | Iterable[str],
        handler: Handler | None = None,
        **options: Unpack[SubscribeOptions],
    ) -> Subscription:
        """Subscribe to one or several patterns; see Subscription.

        Returns when the gateway has confirmed it. `SubscriptionOptions` documents the options.

        Raises:
            BadSubject: Invalid pattern or group.
            BadOption: Invalid option, or one that conflicts with another subscription.
            UsageError: The handler is an async function, which would not be awaited.
            NotOpen: The connection is closed.
            TimedOut: The gateway did not answer within `timeout_s`.
            WeftError: The gateway refused the subscription.
        """
        check_plain(handler)
        wish = made(SubscriptionOptions, options)
        context = contextvars.copy_context()
        return self._background.run(subscribed(self._home, patterns, wish, handler, context))

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
        ) -> Identity: ...
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
        ) -> None: ...
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
        ) -> Identity | None: ...
        def publish(self, *_: Any, **__: Any) -> Any:
            """See publish/publisher.py."""

    def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> BlockingReceived:
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
        request = self._calls.request(draft, timeout, resend=resend)
        return blocking_received(self._background.run(request), self)

    def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[BlockingReceived]:
        """Send a request to all subscribers of a subject; return the answers.

        `GatherLimits` documents when it ends. With `masked` responders do not learn the requester.

        Raises:
            ConnectionLost: The connection was lost meanwhile.
            Overloaded: The answers exceed `queue_bytes`.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        gathering = self._calls.gather(draft, made(GatherLimits, ending))
        return [blocking_received(frame, self) for frame in self._background.run(gathering)]

    def enable(self, right: EnabledRight, pattern: str) -> None:
        """Let clients `publish`, `subscribe` or `request` a pattern while this connection is open.

        Requires a key of a service. After a reconnection the right is enabled again.

        Raises:
            BadOption: Unknown right.
            BadSubject: Invalid pattern.
            NotAllowed: This connection may not grant that right.
            TooMany: This connection has reached its limit of enabled patterns.
        """
        self._background.run(self._calls.enable(right, pattern))

    def disable(self, right: EnabledRight, pattern: str) -> None:
        """Revoke a right that enable() granted; ignored if it was not granted."""
        self._background.run(self._calls.disable(right, pattern))

    def direct(self, subject: str, timeout: float | None = None) -> None:
        """Send messages to a subject directly to their receivers, whatever their rate.

        Returns once all of them are reached directly: see docs/lanes.md.

        Raises:
            BadSubject: Invalid subject.
            NotDirect: A direct connection is not possible; the text gives the reason.
            TimedOut: Not established within the timeout.
        """
        self._background.run(self._calls.direct(subject, timeout))

    def open_channel(self, name: str, password: str | None = None) -> Channel:
        """Open a channel, with or without a password, and join it; see Channel.

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
        membership = self._background.run(self._channels.open(name, password))
        return Channel(self, self._home, self._channels, membership)

    def join_channel(self, name: str, password: str | None = None) -> Channel:
        """Join an existing channel; see Channel.

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
        membership = self._background.run(self._channels.join(name, password))
        return Channel(self, self._home, self._channels, membership)

    def channels(self, limit: int = 100) -> ChannelList:
        """Return the channels without a password, or, for services and admins, all channels.

        Raises:
            BadOption: The limit is not positive.
        """
        return self._background.run(self._channels.list(limit))

    def channel_facts(self, name: str) -> ChannelFacts:
        """Return the owner of a channel, its gateway, and the gateways of its members.

        Raises:
            BadSubject: Invalid name.
            NotKnown: No such channel, or not visible to this connection.
        """
        return self._background.run(self._channels.show(name))

    def close_channel(self, name: str) -> None:
        """End a channel for all members; allowed to services and admins.

        Raises:
            BadSubject: Invalid name.
            NotKnown: No such channel.
            NotAllowed: This connection may not close it.
        """
        self._background.run(self._channels.close_named(name))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the gateway has processed all messages published before.

        Raises:
            TimedOut: No confirmation within the timeout.
            ConnectionLost: The connection was lost meanwhile.
        """
        self._background.run(self._calls.flush(timeout))

    def pump(self, timeout: float | None = 0.0) -> int:
        """Run the queued callbacks on this thread and return how many messages and statuses ran.

        If none is queued, wait up to `timeout` seconds for one; with None without limit.

        Raises:
            UsageError: The connection was not created with `callbacks="pumped"`.
        """
        self._background.check()
        return self._callbacks.pump(timeout)

    def drain(self, timeout: float | None = None) -> None:
        """Unsubscribe, let callbacks and loops process the received messages, and close.

        Raises:
            TimedOut: Not complete within the timeout.
            ConnectionLost: The connection was lost meanwhile, and undelivered messages with it.
            Overloaded: The gateway does not read, so the subscriptions could not be cancelled.
            NotOpen: The connection was closed before or meanwhile.
            UsageError: Called within a callback, which would wait for itself; the connection stays
                open in this case only.
        """
        if self._callbacks.is_running_here():
            raise UsageError("drain() cannot be called in a callback, which would wait for itself")
        self._loops.finish(threading.get_ident())
        try:
            self._callbacks.run_until(self._background.submit(self._calls.drain(timeout)))
        finally:
            self.close()

    def close(self) -> None:
        """Send the buffered messages, disconnect and stop the threads. Idempotent.

        Waits at most `timeout_s` for the gateway to read them. Messages that are left then, or that
        are buffered while there is no connection, are lost: the status `closed` gives their number.
        """
        self._callbacks.discard()
        try:
            self._background.run(self._keeper.close())
        except NotOpen:
            # Closed before or by another thread, or this is a forked process.
            return
        self._callbacks.stop()
        self._background.stop()

    def begin_close(self) -> concurrent.futures.Future[None] | None:
        """Start to close at the exit of the program; None if already closed. See at_exit.py."""
        if not self._background.is_usable:
            return None
        self._callbacks.discard()
        try:
            return self._background.submit(self._keeper.close())
        except NotOpen:
            return None

    def __del__(self) -> None:
        background: Background | None = self.__dict__.get("_background")
        if background is None or not background.is_usable or "_keeper" not in self.__dict__:
            return
        at_exit.warn_of(self)
        background.abandon(functools.partial(_part, self._keeper, self._callbacks))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @functools.cached_property
    def _home(self) -> SyncSubscriptionContext:
        """Context of the subscriptions; it keeps a reference to this connection."""
        return SyncSubscriptionContext(
            self, self._engine, self._calls, self._background, self._callbacks, self._loops
        )

    async def _prepare(self, label: str) -> None:
        """Create, on the loop's thread, the objects that belong to it."""
        reporter = Reporter(self._options.logger, label)
        self._engine = Engine(self._options, reporter, self._background.defer)
        self._calls = Calls(self._engine)
        self._channels = ChannelRequests(self._engine, self._calls)
        self._keeper = ReconnectLoop(self._engine, self._addresses)
        self._callbacks = Callbacks(self._engine.reading.intake(0), reporter)
        outgoing = self._engine.outgoing
        self._background.on_fork(lambda: outgoing.forked(OPENED_ELSEWHERE))
        self._loops = Loops()
        if self._options.on_status is not None:
            reporter.tell = self._callbacks.teller(self._options.on_status)


def _acknowledging(
    background: Background, calls: Calls, engine: Engine
) -> Callable[[Draft], Identity]:
    """Return a function that publishes a message and waits for its acknowledgement."""
    timeout_s = engine.options.timeout_s

    def acknowledged(draft: Draft) -> Identity:
        # Buffered on the calling thread, in order with its other messages.
        deadline = time.monotonic() + timeout_s
        pending = calls.pending(draft)
        engine.outgoing.put_waiting(pending.frame, timeout_s, pending)
        left_s = max(deadline - time.monotonic(), 0.0)
        return background.run(calls.until_acknowledged(pending, draft.subject, left_s))

    return acknowledged


async def _part(keeper: ReconnectLoop, callbacks: Callbacks) -> None:
    """Close a connection that was finalized."""
    callbacks.discard()
    try:
        await keeper.close()
    finally:
        callbacks.end()
