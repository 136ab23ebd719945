"""Engine of a connection, shared by both APIs: session, send buffer and subscriptions.

Runs on the loop's thread, except where noted. The reconnect loop passes it one transport after the
other; in between it buffers published messages and remembers the subscriptions to send again.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weft.client.channels.memberships import Memberships
from weft.client.connection import events as talk
from weft.client.connection.event_handlers import Hearing
from weft.client.connection.session import ClientDescription, ClientSession, goodbye_frame
from weft.client.connection.transport import SocketTransport
from weft.client.lanes.manager import LaneManager
from weft.client.lanes.require_direct import Required
from weft.client.options import Options
from weft.client.publish.pending_ack import Pending
from weft.client.publish.send_buffer import SendBuffer
from weft.client.publish.send_space import SendSpace
from weft.client.requests.runtime_grants import Enabling
from weft.client.status import Gap, Reporter, Statistics, Status, What
from weft.client.subscriptions.flow_control import Defer, Reading
from weft.client.subscriptions.registry import SubscriptionState
from weft.client.subscriptions.subscriptions import Subscriptions
from weft.errors import (
    BadKey,
    ConnectionLost,
    Draining,
    NotOpen,
    Overloaded,
    ProtocolError,
    Silent,
    SlowReader,
    WeftError,
)
from weft.wire.nonces import Nonces

LIBRARY = "weft-python"


class Engine:
    """Traffic of one client; see reconnect.py for its transports and calls.py for requests."""

    def __init__(self, options: Options, reporter: Reporter, defer: Defer) -> None:
        self.options = options
        self.reporter = reporter
        self.statistics = reporter.statistics
        self.defer = defer
        self.loop = asyncio.get_running_loop()
        self.session = ClientSession(
            ClientDescription(
                options.service,
                options.name,
                options.reachable_at,
                LIBRARY,
                options.key or "",
                knows_lanes=options.direct != "never",
            ),
            options.waiting_max,
            Nonces(os.urandom),
        )
        self.outgoing = SendBuffer(
            options.buffer_bytes, options.when_full, self._wake, self._began_to_drop
        )
        self.outgoing.on_ask = self._asks
        self.room = SendSpace(self.outgoing, options.waiting_max)
        self.subscriptions = Subscriptions(
            self.session, self.outgoing, reporter, options.waiting_max
        )
        self.memberships = Memberships(self.subscriptions, reporter)
        self.enabling = Enabling(self.session, reporter)
        self.line: SocketTransport | None = None
        self.opened = asyncio.Event()
        # Set while the owner closes it: received messages are dropped, buffered ones still sent.
        self.is_closing = False
        self.is_closed = False
        self.is_parting = False
        # Gateways that a GOODBYE recommends.
        self.elsewhere: tuple[str, ...] = ()
        # Address of the current or last gateway, and the reason why it was selected.
        self.address = ""
        self.why = ""
        # True between WELCOME and GOODBYE.
        self._is_sending = False
        self._is_about_to_flush = False
        self.reading = Reading(self.session, reporter, options.queue_bytes, defer)
        is_required = options.direct == "require"
        self.lanes = LaneManager(self, is_required=is_required, is_looking=options.look == "auto")
        self.required = Required(self.lanes.splitter) if is_required else None
        self._cause: WeftError | None = None
        # Why the last open connection was lost.
        self._lost: WeftError | None = None
        self._unsent = 0
        # Bytes that had been sent to the gateway at the last check.
        self._left = 0
        self._hearing = Hearing(self.subscriptions, self.memberships, reporter)
        self._on: dict[type[Any], Callable[[Any], None]] = self._hearing.on | {
            talk.Welcomed: self._welcomed,
            talk.News: self._told,
            talk.Pinged: self._pinged,
            talk.Parting: self._parts,
            talk.Relayed: lambda event: self.deal(self.lanes.merge(event.run)),
            talk.LaneTold: lambda event: self.lanes.word(event.frame),
            talk.LaneTail: lambda event: self.lanes.tail(event.frame),
            talk.ConnectionEnded: self._broken,
        }

    def __str__(self) -> str:
        """Return name, service and gateway for people."""
        session = self.session
        if self.is_closed:
            where = "closed"
        elif session.is_open and self.line is not None:
            where = f"at {session.gateway}, {self.line.address}"
        else:
            where = "not connected"
        return f"{session.name or 'unnamed'} of {self.options.service}, {where}"

    # Called by the transport.

    def received(self, line: SocketTransport, data: memoryview) -> None:
        """Process received bytes."""
        if line is not self.line:
            return
        self.statistics.received_bytes += len(data)
        self._deal(self.session.receive(data, self.loop.time()))
        self.reading.steer()

    def writable(self, line: SocketTransport) -> None:
        """Continue after the socket became writable."""
        if line is not self.line:
            return
        self.room.made()
        self.flush()

    def ended(self, line: SocketTransport, error: Exception | None) -> None:
        """Handle the end of a transport: fail pending replies, keep frames for the next one."""
        if line is not self.line:
            return
        self.line = None
        self.reading.line = None
        was_open = self.session.is_open
        cause = self._cause_of(line, error)
        # A broken socket does not report its unsent bytes: this is the upper bound.
        is_broken = error is not None and line.is_blocked
        self._unsent = self.outgoing.in_flight_bytes if is_broken else line.unsent_bytes
        self._stop_sending()
        self.lanes.lost()
        self.memberships.parted()
        self.subscriptions.dispatch.requests.lost()
        waiters = self.session.end()
        waiters += [pending.waiter for pending in self.outgoing.lost(self.session.inbox)]
        for waiter in waiters:
            waiter.lost(cause)
        self.room.made()
        if was_open:
            self._lost = cause
        if was_open and not self.is_closed:
            self.reporter.report(Status(What.DISCONNECTED, f"{line.address} was lost", cause))

    # Called by the reconnect loop.

    def begin(self, line: SocketTransport) -> None:
        """Start the handshake over a new transport."""
        self.line = line
        self.reading.line = line
        self.is_parting = False
        self.elsewhere = ()
        self.address = str(line.address)
        self._cause = None
        self._unsent = 0
        self._left = 0
        line.write(self.session.begin(self.loop.time()))

    def cause(self, line: SocketTransport) -> WeftError:
        """Return why a transport ended, or failed to connect."""
        return self._cause_of(line, None)

    def keep_alive(self) -> float:
        """Ping a silent gateway, drop one that stays silent; return seconds to the next call."""
        now = self.loop.time()
        if self.line is not None and self.line.is_resting:
            self.session.not_listening(now)
        if self.line is not None and self._is_moving(self.line):
            self.session.sending(now)
        try:
            ping = self.session.keep_alive(now)
            if ping:
                self._put_sign_of_life(ping)
        except (Silent, Overloaded) as error:
            self.fail(error)
        return max(self.session.keep_alive_at() - now, 0.0)

    def _is_moving(self, line: SocketTransport) -> bool:
        """Return whether bytes are waiting and some were sent since the last check."""
        waiting = line.unacknowledged_bytes()
        left = line.written_bytes - waiting
        has_moved = left > self._left
        self._left = left
        return has_moved and waiting > 0

    def fail(self, error: WeftError) -> None:
        """Abort the transport; pending replies fail with this error."""
        self._cause = self._cause or error
        self._stop_sending()
        if self.line is not None:
            self.line.abort()

    def say_goodbye(self) -> bool:
        """Send all buffered frames, even if the socket is blocked, followed by GOODBYE.

        Returns False if there is no open connection, or GOODBYE was already sent.
        """
        line = self.line
        if line is None or not self._is_sending:
            return False
        while size := self.outgoing.pass_on(self._writer(line)):
            self.statistics.sent_bytes += size
        self.lanes.finish_all()
        line.write(goodbye_frame())
        self._stop_sending()
        return True

    def refuse(self) -> None:
        """Refuse new frames; buffered ones may still be sent."""
        self.is_closing = self.is_closed = True
        self.reading.is_closing = True
        self._cause = self._cause or ConnectionLost("the connection was closed")
        self.outgoing.close()

    def close(self) -> int:
        """Abort the transport and end all subscriptions; return the number of unsent bytes."""
        self.refuse()
        line = self.line
        if line is not None:
            line.abort()
            self._unsent = line.unsent_bytes
        for pending in self.outgoing.take_pending():
            pending.waiter.failed(NotOpen("the connection was closed before this was sent"))
        self.lanes.close()
        self.subscriptions.clear()
        self.memberships.clear()
        unsent = self.outgoing.waiting_bytes + self._unsent
        self.room.made()
        # Tasks in until_open() find that the connection is closed.
        self.opened.set()
        return unsent

    # Called by the asyncio and the blocking API.

    def counted(self) -> Statistics:
        """Return the current counters."""
        dropped, refusals = self.outgoing.dropped, self.lanes.refusals
        return replace(self.statistics, dropped=dropped, lane_refusals=refusals)

    def listen(self, listening: SubscriptionState) -> None:
        """Add a subscription; see Subscriptions.add()."""
        self.subscriptions.add(listening)
        self.reading.steer()

    def unlisten(self, listening: SubscriptionState) -> None:
        """Remove a subscription."""
        try:
            self.subscriptions.remove(listening)
        except Overloaded as error:
            # A new connection subscribes only the registered patterns.
            self.fail(error)
        self.lanes.reconsider()

    def flush(self) -> None:
        """Send buffered frames until the socket is blocked."""
        line = self.line
        while (
            line is not None
            and self._is_sending
            and not line.is_blocked
            and self.lanes.may_send
            and (size := self.outgoing.pass_on(self._writer(line)))
        ):
            self.statistics.sent_bytes += size
            if not line.is_blocked:
                self.room.made()

    async def until_open(self) -> None:
        """Wait for an open connection.

        Raises:
            NotOpen: The connection was closed.
        """
        # It may be lost again before the waiting task runs.
        while not (self.opened.is_set() or self.is_closed):
            await self.opened.wait()
        if self.is_closed:
            raise NotOpen("the connection is closed")

    def put_and_flush(self, frame: bytes) -> bool:
        """Buffer a frame, if there is space, and send it at once, because its reply is awaited."""
        # Frames that other threads put meanwhile are part of the flush that follows.
        self._is_about_to_flush = True
        try:
            is_put = self.outgoing.put(frame)
        finally:
            self._is_about_to_flush = False
            self.flush()
        return is_put

    # Called by lanes.

    def tell_gateway(self, frame: bytes) -> None:
        """Send a frame to the gateway, after all frames sent before."""
        if self.line is not None and self._is_sending:
            self.line.write(frame)

    def deal(self, runs: list[list[bytes]]) -> None:
        """Deliver messages that arrived through a lane, or were held for one."""
        self._deal(self.session.sort(runs))

    def gone(self, replies: list[bytes], error: WeftError) -> None:
        """Fail requests whose responder on a lane is gone."""
        for reply in replies:
            waiter = self.session.waiter(reply)
            if waiter is not None:
                waiter.failed(error)

    def local_host(self) -> str:
        """Return the local address of the connection to the gateway."""
        return "" if self.line is None else self.line.local_host()

    def _writer(self, line: SocketTransport) -> Callable[[memoryview], object]:
        """Return the function that sends buffered frames: to the gateway, or split among lanes."""
        if not self.lanes.is_needed:
            return line.write
        return lambda view: self.lanes.split(view, line.write)

    def _deal(self, events: list[talk.Event]) -> None:
        deliver = self.subscriptions.dispatch.deliver
        try:
            for event in events:
                if type(event) is list:
                    deliver(event)
                else:
                    self._on[type(event)](event)
        except WeftError as error:
            self.fail(error)

    def _asks(self, pending: Pending) -> None:
        """Register the waiter of an acknowledged message, whose frame is written next."""
        self.session.question(pending.waiter, pending.subject, pending.reply)
        if pending.is_given_up:
            self.session.forget(pending.waiter)
        self.reading.steer()

    def _wake(self) -> None:
        if not self._is_about_to_flush:
            self.defer(self.flush)

    def _began_to_drop(self) -> None:
        self.reporter.report(
            Status(What.DROPPED, "published messages are dropped", self.outgoing.is_full())
        )

    def _stop_sending(self) -> None:
        self._is_sending = False
        self.subscriptions.is_asking = False
        self.opened.clear()

    def _cause_of(self, line: SocketTransport, error: Exception | None) -> WeftError:
        if self._cause is None:
            reason = f": {error}" if error is not None else " by the gateway"
            self._cause = ConnectionLost(f"the connection to {line.address} was ended{reason}")
        return self._cause

    # Handlers of session events.

    def _welcomed(self, _: talk.Welcomed) -> None:
        line = self.line
        if line is None:
            return
        self.statistics.connects += 1
        self.outgoing.body_limit_bytes = self.session.body_limit_bytes
        self.outgoing.prune()
        self.lanes.welcomed()
        # One write, before buffered frames: a client receives its own messages, too.
        lost = self.session.ended or self._lost
        line.write(self.enabling.ask_again() + self.subscriptions.ask_again(lost))
        self._is_sending = True
        self.subscriptions.is_asking = True
        line.welcomed.set_result(None)
        self.opened.set()
        self.reporter.report(
            Status(
                What.CONNECTED,
                f"connected to gateway {self.session.gateway} at {line.address}"
                f" as {self.session.name}",
            )
        )
        if self.statistics.connects > 1:
            detail = "messages may have been missed while disconnected"
            gap = Gap("reconnected", error=lost)
            self.reporter.report(Status(What.GAP, detail, lost, gap))
        self.memberships.welcomed()
        self.flush()

    def _told(self, event: talk.News) -> None:
        if isinstance(event.error, ProtocolError | SlowReader | Silent | BadKey):
            # The gateway now ends the connection, for this reason.
            self._cause = event.error
        self._hearing.refused(event)

    def _pinged(self, event: talk.Pinged) -> None:
        self._put_sign_of_life(event.pong)

    def _put_sign_of_life(self, frame: bytes) -> None:
        """Send a ping or pong, even while other frames wait for a lane."""
        if self.lanes.may_send:
            self.outgoing.put_control(frame)
        else:
            self.tell_gateway(frame)

    def _parts(self, event: talk.Parting) -> None:
        """Answer a GOODBYE with GOODBYE, so that queued frames in both directions still arrive."""
        self.is_parting = True
        self.elsewhere = event.elsewhere
        self._cause = Draining(f"the gateway closes the connection: {event.text or event.reason}")
        self.say_goodbye()
        line = self.line
        if line is not None:
            line.leave(self.options.timeout_s)

    def _broken(self, event: talk.ConnectionEnded) -> None:
        self.fail(event.error)
