"""Batches of messages for the journal, and the acknowledgements that await them.

Messages are copied once, one after the other, into a batch: blocks of frames, each with space for
its header. The writer takes a whole batch and returns it; meanwhile the next one fills, so that
batches grow with the load. The position of a message in the journal is counted from 0 without
gaps. docs/journal.md defines the bytes.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.outbox import Outbox
from weft.broker.delivery.policy import Bounds
from weft.errors import BadSubject, JournalFailed
from weft.wire.buffer import Writer
from weft.wire.byteops import i64_at, put_bytes, u32_at
from weft.wire.subjects import is_pattern, matches

# Space for the header that journal/segment/blocks.py writes.
BLOCK_HEADER_BYTES = 40
# A block is complete at this size; the messages of one turn may exceed it.
BLOCK_BYTES = 256 << 10
# Flag of frames in journals only: the message entered at another gateway.
ARRIVED = 32
# Above this size of the batch, publishers are not read from until it is taken for writing.
HELD_MAX_BYTES = 8 << 20

_HEADER = BLOCK_HEADER_BYTES
_BLOCK = BLOCK_BYTES
_HELD_MAX = HELD_MAX_BYTES
_ARRIVED = ARRIVED
# Offset of the time in a frame.
_TIME = 24
# Drops nothing: frames are copied within the turn.
_BOUNDS = Bounds()


class DurabilityWaiter(Protocol):
    """Publisher, or other part, that awaits the durability of a message."""

    def owe(self, frames: bytes) -> None:
        """Send frames to it."""


class PausedPublisher(Protocol):
    """Publisher that is not read from."""

    def resume(self) -> None:
        """Resume reading."""


class PendingAcks:
    """OKs of one peer and turn, to be sent once the message at `position` is durable."""

    def __init__(self, peer: Any) -> None:
        self.position = 0
        self.peer = peer
        self.oks = Writer()


class BlockRange(NamedTuple):
    """Range of a batch: its header begins at `start`, its frames end at `end`."""

    start: int
    end: int
    first: int
    frames: int


class JournalBatch:
    """Blocks that are written at once: `data[start:end]`, complete except for block headers.

    `is_awaited`: an OK waits for it. The writer may set `lead`, the free space before the blocks
    when the batch is filled again, so that they are aligned for the disk.
    """

    def __init__(self) -> None:
        self.writer = Writer()
        self.blocks: list[BlockRange] = []
        self.is_awaited = False
        self.lead = 0
        # Latest time of a message, in ns since the epoch.
        self.latest_ns = 0

    @property
    def data(self) -> bytearray:
        """The blocks, one after the other, and the space around them."""
        return self.writer.data

    @property
    def start(self) -> int:
        """The offset of the first block."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """The end of the last block."""
        return self.blocks[-1].end

    @property
    def size(self) -> int:
        """The size of all blocks in bytes."""
        return self.end - self.start

    @property
    def next_position(self) -> int:
        """The position after its last message."""
        last = self.blocks[-1]
        return last.first + last.frames

    def clear(self) -> None:
        """Remove all blocks."""
        self.writer.cut_back(0)
        self.writer.reserve(self.lead)
        self.blocks.clear()
        self.is_awaited = False
        self.latest_ns = 0


class Journal:
    """The broker's side of one service's journal: collects batches and pending OKs.

    `write` takes a batch without blocking; written() returns it. `position` is that of the next
    message.

    Raises:
        BadSubject: invalid pattern.
    """

    def __init__(
        self,
        patterns: list[bytes],
        position: int,
        arena: Arena,
        write: Callable[[JournalBatch], None],
    ) -> None:
        for pattern in patterns:
            if not is_pattern(pattern):
                raise BadSubject(f"the pattern {pattern!r} is not legal")
        self.patterns = patterns
        self.position = position
        # Messages before this position are durable.
        self.safe = position
        # Messages that were not journaled, because of an error or a full batch.
        self.missed = 0
        # Whether messages of remote gateways are journaled, too.
        self.is_of_mesh = False
        self.is_failing = False
        self.problem = ""
        self._outbox = Outbox(arena, _BOUNDS)
        self._write = write
        self._batch = JournalBatch()
        self._spare: JournalBatch | None = JournalBatch()
        # Offset of the incomplete block's header, and the position of its first message.
        self._block = -1
        self._first = position
        # Position after the last copied message; later ones are still in the arena.
        self._kept = position
        # Latest time of a message that is not copied yet.
        self._latest_ns = 0
        self._asked: deque[PendingAcks] = deque()
        self._last: PendingAcks | None = None
        self._held: list[PausedPublisher] = []

    def wants(self, subject: bytes) -> bool:
        """Return whether the messages of a subject are journaled."""
        for pattern in self.patterns:  # noqa: SIM110  # a closure cannot be compiled here
            if matches(pattern, subject):
                return True
        return False

    def is_full(self) -> bool:
        """Return whether the batch is over its limit of 8 MiB."""
        return self._batch.writer.size > _HELD_MAX

    def is_clean(self) -> bool:
        """Return whether all messages are written."""
        return self._outbox.pending == 0 and self._is_empty() and self._spare is not None

    def take(self, start: int, end: int, count: int) -> None:
        """Append N whole frames of the arena."""
        if self.is_failing:
            self.missed += count
            return
        outbox = self._outbox
        outbox.push(start, end - start, 0)
        self.position += count
        # Frames of one call have the same stamp time.
        time_ns = i64_at(outbox.arena.data, start + _TIME)
        self._latest_ns = max(self._latest_ns, time_ns)

    def take_arrived(self, start: int, end: int, count: int) -> None:
        """Append frames of the arena that entered at another gateway, and mark the copies.

        They are not journaled if the batch is full: their publisher cannot be held from here.
        """
        if self.is_failing or self.is_full():
            self.missed += count
            return
        # Earlier messages of the turn come first.
        self._copy()
        writer = self._batch.writer
        if self._block < 0:
            self._block = writer.reserve(_HEADER)
        at = writer.reserve(end - start)
        put_bytes(writer.data, at, self._outbox.arena.data, start, end - start)
        while at < writer.size:
            writer.data[at + 5] |= _ARRIVED
            time_ns = i64_at(writer.data, at + _TIME)
            self._batch.latest_ns = max(self._batch.latest_ns, time_ns)
            at += u32_at(writer.data, at)
        self.position += count
        self._kept = self.position

    def hold(self, publisher: PausedPublisher) -> None:
        """Resume a publisher after the next batch was passed to the writer."""
        self._held.append(publisher)

    def ask(self, peer: DurabilityWaiter) -> Writer:
        """Return where to write the OK of a peer for the message that was appended last."""
        asked = self._last
        if asked is None or asked.peer is not peer:
            asked = PendingAcks(peer)
            self._last = asked
            self._asked.append(asked)
        asked.position = self.position - 1
        return asked.oks

    def keep(self) -> None:
        """End a turn: copy its messages, and pass the batch on unless the writer is busy."""
        self._copy()
        self._last = None
        if self._block >= 0 and self._batch.writer.size - self._block >= _BLOCK:
            self._end_block()
        self._pass_on()

    def written(self, batch: JournalBatch) -> None:
        """Take back a batch, written or failed, to be filled again."""
        batch.clear()
        self._spare = batch
        self._pass_on()

    def safe_until(self, position: int) -> None:
        """Send the OKs of all messages before a position, which are durable now."""
        self.safe = position
        asked = self._asked
        while asked:
            each = asked[0]
            if each.position >= position:
                return
            asked.popleft()
            each.peer.owe(each.oks.take())

    def failed(self, problem: str) -> list[PendingAcks]:
        """Stop journaling after an error; return the pending OKs, which are dropped here."""
        self._last = None
        self.is_failing = True
        self.problem = problem
        asked = list(self._asked)
        self._asked.clear()
        return asked

    def recovered(self) -> None:
        """Resume journaling after an error."""
        self.is_failing = False
        self.problem = ""

    def failure(self) -> JournalFailed:
        """The error of a message that requested an OK while the journal fails."""
        return JournalFailed(
            f"the journal cannot be written: {self.problem}; the message was not delivered"
        )

    def _copy(self) -> None:
        """Copy the messages appended so far from the arena to the batch."""
        outbox = self._outbox
        if outbox.pending == 0:
            return
        self._batch.is_awaited = self._batch.is_awaited or self._last is not None
        arena = outbox.arena
        writer = self._batch.writer
        if self._block < 0:
            self._block = writer.reserve(_HEADER)
        while outbox.pending > 0:
            start = outbox.gather()
            length = outbox.gathered
            at = writer.reserve(length)
            put_bytes(writer.data, at, arena.data, start, length)
            outbox.sent(length)
        self._kept = self.position
        self._batch.latest_ns = max(self._batch.latest_ns, self._latest_ns)
        self._latest_ns = 0

    def _is_empty(self) -> bool:
        return self._block < 0 and not self._batch.blocks

    def _pass_on(self) -> None:
        batch = self._batch
        if self._spare is None or self._is_empty():
            return
        if self._block >= 0:
            self._end_block()
        self._batch = self._spare
        self._spare = None
        self._write(batch)
        held, self._held = self._held, []
        for publisher in held:
            publisher.resume()

    def _end_block(self) -> None:
        count = self._kept - self._first
        self._batch.blocks.append(
            BlockRange(self._block, self._batch.writer.size, self._first, count)
        )
        self._first = self._kept
        self._block = -1
