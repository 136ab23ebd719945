"""History first, then what comes live: no message is left out at the seam, and none comes twice.

Pages of the journal are asked for, each when the one before it was taken. When the end is reached
the gateway is asked for what comes live, which is held, and then for what the journal got until
then. What is in both is known by its origin and sequence.
"""

import asyncio
from typing import Protocol

from weft.client.connection.engine import Engine
from weft.client.requests.calls import Calls, Draft
from weft.client.status import Gap
from weft.client.subscriptions.receive_window import Intake
from weft.client.subscriptions.registry import Listening, Sink
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
# After a failure that may pass.
_AGAIN_S = 0.1


class Reader(Sink, Protocol):
    """Where the messages go, and how much of them waits there to be taken."""

    @property
    def intake(self) -> Intake:
        """What bounds it."""


class Replay:
    """The sink of a subscription that begins in the past."""

    def __init__(self, reader: Reader, since: Since) -> None:
        self._reader = reader
        self._beginning = beginning(since)
        self._question = self._beginning
        self._is_live = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._refused = 0
        # The last sequence of each origin that was handed on.
        self._last: dict[int, int] = {}
        self._last_ns = 0
        self._node = ""
        self._large = b""

    # What the engine calls.

    def put(self, frames: list[bytes]) -> None:
        """Messages came live."""
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
        """Messages did not come live; until then, the journal has them."""
        if self._is_live:
            self._reader.missed(gap)

    def ended(self) -> None:
        """Nothing more comes."""
        self._reader.ended()

    async def run(self, listening: Listening, engine: Engine, calls: Calls) -> None:
        """Hand on what was kept, and from then on what comes live."""
        try:
            await self._catch_up(listening, engine, calls)
            if listening.is_open:
                engine.listen(listening)
                # What comes live is heard from then on, and the journal must reach as far.
                await listening.confirmed.wait()
                await self._catch_up(listening, engine, calls)
        except WeftError as error:
            listening.failed(error)
            return
        if listening.is_open:
            self._go_live()

    async def _catch_up(self, listening: Listening, engine: Engine, calls: Calls) -> None:
        """Hand on page after page, until there is nothing that was kept before it was asked for."""
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
        """The next page; None if it may be had later."""
        body = {"patterns": patterns, "offset": len(self._large), **self._question}
        try:
            answer = await calls.request(Draft(QUESTION, body), None, resend=True)
        except ConnectionLost:
            return None
        page = Message.from_frame(answer)
        node = page.get_string("node")
        if self._node and node != self._node:
            # Positions are a gateway's own: ask this one by time. What is known is left out.
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
        """Hand on what was not handed on before, in runs of one subject."""
        for frame in frames:
            origin, sequence = u32_at(frame, _ORIGIN), u64_at(frame, _SEQUENCE)
            if sequence > self._last.get(origin, 0):
                self._last[origin] = sequence
                self._last_ns = i64_at(frame, _TIME)
                self._reader.put([frame])
