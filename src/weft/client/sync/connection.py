"""The blocking client: `with weft.Connection("127.0.0.1:7411") as c: …`.

It is the asyncio engine on a loop in a thread of its own. Callbacks run on a second thread, so that
they may block and call the connection, or wherever pump() is called.
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
from weft.client.sync.subscription import Home, Subscription, subscribed
from weft.errors import BadOption, NotOpen, UsageError
from weft.wire.address import DEFAULT_ADDRESS, addresses_from
from weft.wire.frames import Flag

__all__ = ["BlockingReceived", "Connection", "Subscription"]


class Connection(BlockingPublishing, Face):
    """A connection to a gateway that comes back by itself; any thread may use it.

    A process that is forked off cannot: there every call raises NotOpen, and close() does nothing.
    With `callbacks="pumped"` handlers and the status callback run only within pump().
    """

    def __init__(
        self,
        address: str | Iterable[str] = DEFAULT_ADDRESS,
        *,
        callbacks: Literal["thread", "pumped"] = "thread",
        **options: Unpack[ConnectOptions],
    ) -> None:
        """Connect; several addresses, or one text with commas, are tried in turn.

        Raises:
            BadOption: an address or an option cannot be.
            Unreachable: no gateway answers, unless `wait=True`.
            Refused: a gateway answers and will not have this client, likewise.
        """
        if callbacks not in ("thread", "pumped"):
            raise BadOption(f"callbacks is {callbacks!r}, neither 'thread' nor 'pumped'")
        self._options = made(Options, options)
        self._addresses = addresses_from(address)
        label = self._options.name or "weft client"
        self._background = Background(f"{label} loop")
        self._background.run(self._prepare(label))
        engine = self._engine
        # None of them knows this object: one that is dropped is gone at once.
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
        """Hear what is published to a pattern, or to several; see Subscription.

        It returns when the gateway has confirmed it. `Wish` says what the options mean.

        Raises:
            BadSubject: a pattern or the group is not legal.
            BadOption: an option cannot be, or disagrees with another subscription.
            UsageError: the handler is an async function, which nobody would await.
            NotOpen: the connection is closed.
            TimedOut: the gateway did not answer in `timeout_s`.
            WeftError: what the gateway said instead.
        """
        check_plain(handler)
        wish = made(Wish, options)
        context = contextvars.copy_context()
        return self._background.run(subscribed(self._home, patterns, wish, handler, context))

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
            """See publishing.py."""

    def send_request(
        self,
        subject: str,
        body: Body,
        timeout: float | None = None,
        *,
        resend: bool = False,
        masked: bool = False,
    ) -> BlockingReceived:
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
        request = self._calls.request(draft, timeout, resend=resend)
        return blocking_received(self._background.run(request), self)

    def gather(
        self, subject: str, body: Body, *, masked: bool = False, **ending: Unpack[GatherOptions]
    ) -> list[BlockingReceived]:
        """Ask everybody who hears a subject; the answers until `Gathering` says that it ends.

        With `masked` those who answer do not learn whom.

        Raises:
            ConnectionLost: the connection was lost meanwhile.
            Overloaded: the answers are more than `queue_bytes`.
        """
        draft = Draft(subject, body, flags=Flag.MASKED if masked else Flag.NONE)
        gathering = self._calls.gather(draft, made(Gathering, ending))
        return [blocking_received(frame, self) for frame in self._background.run(gathering)]

    def enable(self, right: EnabledRight, pattern: str) -> None:
        """Let clients `publish`, `subscribe` or `request` a pattern, while this connection lasts.

        It takes a key of a service. When the connection comes back it is enabled again.

        Raises:
            BadOption: there is no such right.
            BadSubject: the pattern is not legal.
            NotAllowed: this connection may not give that right.
            TooMany: it has enabled as many as it may.
        """
        self._background.run(self._calls.enable(right, pattern))

    def disable(self, right: EnabledRight, pattern: str) -> None:
        """Take back what enable() gave; what it did not is no error."""
        self._background.run(self._calls.disable(right, pattern))

    def direct(self, subject: str, timeout: float | None = None) -> None:
        """Have what is published to a subject go straight to those who get it, whatever the rate.

        It returns once it does: see docs/lanes.md.

        Raises:
            BadSubject: it is not a subject.
            NotDirect: it cannot be, and why.
            TimedOut: it did not come to it in time.
        """
        self._background.run(self._calls.direct(subject, timeout))

    def open_channel(self, name: str, password: str | None = None) -> Channel:
        """Open a channel, with a password or without, and be in it; see Channel.

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
        membership = self._background.run(self._channels.open(name, password))
        return Channel(self, self._home, self._channels, membership)

    def join_channel(self, name: str, password: str | None = None) -> Channel:
        """Be in a channel that somebody opened; see Channel.

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
        membership = self._background.run(self._channels.join(name, password))
        return Channel(self, self._home, self._channels, membership)

    def channels(self, limit: int = 100) -> ChannelList:
        """The channels without a password, or for services and admins all of them.

        Raises:
            BadOption: the limit is not one.
        """
        return self._background.run(self._channels.list(limit))

    def channel_facts(self, name: str) -> ChannelFacts:
        """Who opened a channel, where, and where its members are.

        Raises:
            BadSubject: the name is not legal.
            NotKnown: there is no such channel, or it is not to be seen.
        """
        return self._background.run(self._channels.show(name))

    def close_channel(self, name: str) -> None:
        """End a channel for everybody, as a service or an admin may.

        Raises:
            BadSubject: the name is not legal.
            NotKnown: there is no such channel.
            NotAllowed: this connection may not.
        """
        self._background.run(self._channels.close_named(name))

    def flush(self, timeout: float | None = None) -> None:
        """Wait until the gateway has dealt with everything that was published before.

        Raises:
            TimedOut: it did not say so in time.
            ConnectionLost: the connection was lost meanwhile.
        """
        self._background.run(self._calls.flush(timeout))

    def pump(self, timeout: float | None = 0.0) -> int:
        """Run the callbacks that are due on this thread; how many were.

        If none is, it waits for one: so many seconds, or with None however long it takes.

        Raises:
            UsageError: the connection was not made with `callbacks="pumped"`.
        """
        self._background.check()
        return self._callbacks.pump(timeout)

    def drain(self, timeout: float | None = None) -> None:
        """Ask for nothing more, let callbacks and loops finish what came, and close.

        Raises:
            TimedOut: it could not all be done in time.
            ConnectionLost: the connection was lost meanwhile, and with it what was still to come.
            Overloaded: the gateway does not even read what takes the subscriptions back.
            NotOpen: it is closed already, or was meanwhile.
            UsageError: a callback would wait for itself; only then it stays open.
        """
        if self._callbacks.is_running_here():
            raise UsageError("a callback cannot wait until it has finished: drain elsewhere")
        self._loops.finish(threading.get_ident())
        try:
            self._callbacks.run_until(self._background.submit(self._calls.drain(timeout)))
        finally:
            self.close()

    def close(self) -> None:
        """Send what is buffered, leave the gateway and stop; harmless if done before.

        It waits as long as the gateway takes what is sent, at most `timeout_s`. What is left then,
        and whatever is buffered while there is no connection, is lost: the status `closed` says
        how much.
        """
        self._callbacks.discard()
        try:
            self._background.run(self._keeper.close())
        except NotOpen:
            # It was closed before, another thread was faster, or this is a process forked off.
            return
        self._callbacks.stop()
        self._background.stop()

    def begin_close(self) -> concurrent.futures.Future[None] | None:
        """Begin to close, for a program that ends; None if it is closed. See at_exit.py."""
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
    def _home(self) -> Home:
        """What a subscription knows of its connection, which then is not just dropped."""
        return Home(self, self._engine, self._calls, self._background, self._callbacks, self._loops)

    async def _prepare(self, label: str) -> None:
        """Make, on the loop, what lives there."""
        reporter = Reporter(self._options.logger, label)
        self._engine = Engine(self._options, reporter, self._background.defer)
        self._calls = Calls(self._engine)
        self._channels = Channels(self._engine, self._calls)
        self._keeper = Keeper(self._engine, self._addresses)
        self._callbacks = Callbacks(self._engine.reading.intake(0), reporter)
        outgoing = self._engine.outgoing
        self._background.on_fork(lambda: outgoing.forked(OPENED_ELSEWHERE))
        self._loops = Loops()
        if self._options.on_status is not None:
            reporter.tell = self._callbacks.teller(self._options.on_status)


def _acknowledging(
    background: Background, calls: Calls, engine: Engine
) -> Callable[[Draft], Identity]:
    """What publishes a message and waits until the gateway has taken it."""
    timeout_s = engine.options.timeout_s

    def acknowledged(draft: Draft) -> Identity:
        # Buffered on the calling thread, as everything else that it publishes.
        deadline = time.monotonic() + timeout_s
        pending = calls.pending(draft)
        engine.outgoing.put_waiting(pending.frame, timeout_s, pending)
        left_s = max(deadline - time.monotonic(), 0.0)
        return background.run(calls.until_acknowledged(pending, draft.subject, left_s))

    return acknowledged


async def _part(keeper: Keeper, callbacks: Callbacks) -> None:
    """Close a connection that nobody has any more."""
    callbacks.discard()
    try:
        await keeper.close()
    finally:
        callbacks.end()
