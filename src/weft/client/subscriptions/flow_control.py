"""Whether the socket is read: while every reader has room, or an answer is awaited.

A handler may ask something and wait for the answer, which comes behind messages that its own full
queue has no room for. To stop reading then would be to wait for ever.
"""

import asyncio
import functools
from collections.abc import Callable

from weft.client.connection.session import Session
from weft.client.connection.transport import READ_BYTES, Line
from weft.client.lanes.transport import Wire
from weft.client.status import Reporter, Status, What
from weft.client.subscriptions.receive_window import GROUP_REST_BYTES, Intake

# Runs a call on the loop soon: `call_soon`, or `call_soon_threadsafe` if other threads use it.
Defer = Callable[..., object]


class Reading:
    """The flow into all the readers of one connection."""

    def __init__(
        self, session: Session, reporter: Reporter, queue_bytes: int, defer: Defer
    ) -> None:
        self.line: Line | None = None
        # Those of lanes, which other clients send by.
        self.wires: set[Wire] = set()
        self.is_closing = False
        self._session = session
        self._reporter = reporter
        self._queue_bytes = queue_bytes
        self._defer = defer
        self._intakes: set[Intake] = set()
        self._full: set[Intake] = set()

    def intake(self, limit_bytes: int, *, is_member: bool = False) -> Intake:
        """The bound of a new reader, perhaps a member of a group; 0: the connection's own."""
        rest_bytes = GROUP_REST_BYTES if is_member and not limit_bytes else 0
        intake = Intake(limit_bytes or self._queue_bytes, self, rest_bytes)
        self._intakes.add(intake)
        return intake

    def leave(self, intake: Intake) -> None:
        """A reader is gone, and with it its bound."""
        self._intakes.discard(intake)
        self._full.discard(intake)
        intake.leave()
        self.steer()

    def hold(self, intake: Intake) -> None:
        """An intake is full."""
        self._full.add(intake)
        self.steer()

    def ease(self, intake: Intake) -> None:
        """An intake has room again; on any thread."""
        self._defer(self._eased, intake)

    def overshoot_bytes(self) -> int:
        """How much may still come after reading has stopped."""
        return (1 + len(self.wires)) * (READ_BYTES + self._session.body_limit_bytes)

    def overflowed(self, refused: int) -> None:
        """A reader could not be given a message; reported for the first of several."""
        self._reporter.statistics.overflowed += 1
        if refused == 1:
            detail = "a subscription is full; what it misses will be announced to it"
            self._reporter.report(Status(What.GAP, detail))

    def steer(self) -> None:
        """Read or rest, as it must now be."""
        is_wanted = bool(self._full) and not self._session.awaited and not self.is_closing
        if self.line is not None:
            self.line.rest(is_wanted and self._session.is_open)
        for wire in self.wires:
            wire.rest(is_wanted or wire.is_early)

    async def until_taken(self) -> None:
        """Wait until every reader has taken and dealt with what it was given."""
        for intake in list(self._intakes):
            if intake not in self._intakes:
                # Its reader has gone while another was waited for.
                continue
            await self.until_empty(intake)

    async def until_empty(self, intake: Intake) -> None:
        """Wait until a reader has taken and dealt with what it was given, or is gone."""
        taken = asyncio.Event()
        tell = functools.partial(self._defer, taken.set)
        intake.when_empty(tell)
        try:
            await taken.wait()
        finally:
            intake.forget(tell)

    def _eased(self, intake: Intake) -> None:
        # It may have filled up again since it said so; then it has asked to hold again.
        if not intake.is_full:
            self._full.discard(intake)
            self.steer()
