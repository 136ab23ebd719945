"""Flow control: read the socket while every receive window has space, or a reply is pending.

A handler may send a request and wait for the reply, which arrives behind messages that its own full
queue has no space for. Pausing reads then would deadlock.
"""

import asyncio
import functools
from collections.abc import Callable

from weft.client.connection.session import ClientSession
from weft.client.connection.transport import READ_BYTES, SocketTransport
from weft.client.lanes.transport import LaneTransport
from weft.client.status import Reporter, Status, What
from weft.client.subscriptions.receive_window import GROUP_REST_BYTES, ReceiveWindow

# Schedules a call on the loop: `call_soon`, or `call_soon_threadsafe` if other threads use it.
Defer = Callable[..., object]


class Reading:
    """Flow control of one connection over all its receive windows."""

    def __init__(
        self, session: ClientSession, reporter: Reporter, queue_bytes: int, defer: Defer
    ) -> None:
        self.line: SocketTransport | None = None
        # Transports of lanes, on which other clients send.
        self.wires: set[LaneTransport] = set()
        self.is_closing = False
        self._session = session
        self._reporter = reporter
        self._queue_bytes = queue_bytes
        self._defer = defer
        self._intakes: set[ReceiveWindow] = set()
        self._full: set[ReceiveWindow] = set()

    def intake(self, limit_bytes: int, *, is_member: bool = False) -> ReceiveWindow:
        """Return a new receive window; `limit_bytes` 0 means the connection's `queue_bytes`."""
        rest_bytes = GROUP_REST_BYTES if is_member and not limit_bytes else 0
        intake = ReceiveWindow(limit_bytes or self._queue_bytes, self, rest_bytes)
        self._intakes.add(intake)
        return intake

    def leave(self, intake: ReceiveWindow) -> None:
        """Remove a receive window with its subscription."""
        self._intakes.discard(intake)
        self._full.discard(intake)
        intake.leave()
        self.steer()

    def hold(self, intake: ReceiveWindow) -> None:
        """Pause reading for a window that is full."""
        self._full.add(intake)
        self.steer()

    def ease(self, intake: ReceiveWindow) -> None:
        """Resume reading for a window that has space again; callable on any thread."""
        self._defer(self._eased, intake)

    def overshoot_bytes(self) -> int:
        """Return how many bytes may still arrive after reading was paused."""
        return (1 + len(self.wires)) * (READ_BYTES + self._session.body_limit_bytes)

    def overflowed(self, refused: int) -> None:
        """Count a dropped message; report the first of a series (`refused` is 1)."""
        self._reporter.statistics.overflowed += 1
        if refused == 1:
            detail = (
                "the queue of a subscription is full; it will get a gap for the dropped messages"
            )
            self._reporter.report(Status(What.GAP, detail))

    def steer(self) -> None:
        """Pause or resume the transports according to the full windows and pending replies."""
        is_wanted = bool(self._full) and not self._session.awaited and not self.is_closing
        if self.line is not None:
            self.line.rest(is_wanted and self._session.is_open)
        for wire in self.wires:
            wire.rest(is_wanted or wire.is_early)

    async def until_taken(self) -> None:
        """Wait until every subscription has processed its received messages."""
        for intake in list(self._intakes):
            if intake not in self._intakes:
                # Its subscription was closed while another was waited for.
                continue
            await self.until_empty(intake)

    async def until_empty(self, intake: ReceiveWindow) -> None:
        """Wait until a subscription has processed its received messages, or is closed."""
        taken = asyncio.Event()
        tell = functools.partial(self._defer, taken.set)
        intake.when_empty(tell)
        try:
            await taken.wait()
        finally:
            intake.forget(tell)

    def _eased(self, intake: ReceiveWindow) -> None:
        # It may have filled up again since; then it has called hold() again.
        if not intake.is_full:
            self._full.discard(intake)
            self.steer()
