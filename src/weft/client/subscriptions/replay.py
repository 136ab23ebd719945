"""Replay of journal history followed by live messages, without a gap or duplicates.

Pages of the journal are requested one at a time, each after the one before was processed. At the
end of the journal the gateway is asked for live messages, which are held, and then for the records
that the journal got until that moment. Duplicates are recognized by origin and sequence number.
"""

import asyncio
from typing import Protocol

from weft.client.connection.engine import Engine
from weft.client.requests.calls import Calls, Draft
from weft.client.status import Gap
from weft.client.subscriptions.receive_window import ReceiveWindow
from weft.client.subscriptions.registry import Sink, SubscriptionState
from weft.errors import ConnectionLost, WeftError
from weft.wire.byteops import i64_at, u32_at, u64_at
from weft.wire.frame_splitting import each_message
from weft.wire.message.field_types import moment
from weft.wire.message.message import Message
from weft.wire.since import Since, beginning

QUESTION = "_WEFT.ask.history"

_ORIGIN = 8
_SEQUENCE = 16
_TIME = 24
# Delay after a temporary failure.
_AGAIN_S = 0.1


class ReplayTarget(Sink, Protocol):
    """Receiver of the messages, with the receive window that bounds it."""

    @property
    def intake(self) -> ReceiveWindow:
        """The receive window that bounds it."""


class Replay:
    """Sink of a subscription with `since`: replays history, then passes live messages through."""

    def __init__(self, reader: ReplayTarget, since: Since) -> None:
        self._reader = reader
        self._beginning = beginning(since)
        self._question = self._beginning
        self._is_live = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._refused = 0
        # The last sequence number of each origin that was passed on.
        self._last: dict[int, int] = {}
        self._last_ns = 0
        self._node = ""
        self._large = b""

    # Called by the engine.

    def put(self, frames: list[bytes]) -> None:
        """Pass live messages on, or hold them while the replay runs."""
        if self._is_live:
            self._reader.put(frames)
            return
        for frame in frames:
            if self._held_bytes + len(frame) > self._reader.intake.limit_bytes:
                self._refused += 1
            else:
                self._held.append(frame)
                self._held_bytes += len(frame)

    def missed(self, gap: Gap) -> None:
        """Pass a gap on; ignored during the replay, because the journal has those messages."""
        if self._is_live:
            self._reader.missed(gap)

    def ended(self) -> None:
        """Pass the end on."""
        self._reader.ended()

    async def run(self, listening: SubscriptionState, engine: Engine, calls: Calls) -> None:
        """Replay the history, subscribe, replay the records added meanwhile, and go live."""
        try:
            await self._catch_up(listening, engine, calls)
            if listening.is_open:
                engine.listen(listening)
                # Live messages start at the confirmation: the journal must be read up to there.
                await listening.confirmed.wait()
                await self._catch_up(listening, engine, calls)
        except WeftError as error:
            listening.failed(error)
            return
        if listening.is_open:
            self._go_live()

    async def _catch_up(self, listening: SubscriptionState, engine: Engine, calls: Calls) -> None:
        """Replay pages until the end of the journal at the time of the last request."""
        patterns = [pattern.decode() for pattern in listening.patterns]
        while listening.is_open:
            page = await self._ask(calls, patterns)
            if page is None:
                await asyncio.sleep(_AGAIN_S)
                continue
            listening.settled.set()
            self._hand_on(page)
            await engine.reading.until_empty(self._reader.intake)
            if page.get_int64("next") >= page.get_int64("head") and not page["left"]:
                return

    async def _ask(self, calls: Calls, patterns: list[str]) -> Message | None:
        """Return the next page, or None if it must be requested again later."""
        body = {"patterns": patterns, "offset": len(self._large), **self._question}
        try:
            answer = await calls.request(Draft(QUESTION, body), None, resend=True)
        except ConnectionLost:
            return None
        page = Message.from_frame(answer)
        node = page.get_string("node")
        if self._node and node != self._node:
            # Positions differ between gateways: continue by time and drop the duplicates.
            self._node = node
            self._large = b""
            self._question = {"time": moment(self._last_ns)} if self._last_ns else self._beginning
            return None
        return page

    def _hand_on(self, page: Message) -> None:
        self._node = page.get_string("node")
        self._question = {"position": page.get_int64("next")}
        data = self._large + page.get_blob("frames")
        left, missing = page.get_int64("left"), page.get_int64("missing")
        kept = [] if left else each_message(data)
        if missing:
            self._reader.missed(Gap("journal", missing))
        self._large = data if left else b""
        self._put_new(kept)

    def _go_live(self) -> None:
        held, self._held = self._held, []
        self._is_live = True
        self._put_new(held)
        if self._refused:
            self._reader.missed(Gap("full", self._refused))

    def _put_new(self, frames: list[bytes]) -> None:
        """Pass on frames that were not passed on before, one at a time."""
        for frame in frames:
            origin, sequence = u32_at(frame, _ORIGIN), u64_at(frame, _SEQUENCE)
            if sequence > self._last.get(origin, 0):
                self._last[origin] = sequence
                self._last_ns = i64_at(frame, _TIME)
                self._reader.put([frame])
