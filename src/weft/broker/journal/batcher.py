"""What of a service is kept: its newest messages, and who waits until they are safe.

Messages are copied once, one after the other, into a batch: blocks of frames, each with room for
its header. Whoever writes takes a whole batch and gives it back; meanwhile the next one is filled,
so the more there is to write, the more is written at once. A message of the journal has a position,
counted from 0 without a gap. docs/journal.md explains the bytes.
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

# Room for what journal/segment/blocks.py writes there.
BLOCK_HEADER_BYTES = 40
# A block of this size is complete; it may be larger by what one turn brings.
BLOCK_BYTES = 256 << 10
# A flag that frames have in journals only: this one entered at another gateway.
ARRIVED = 32
# Over this, whoever publishes to the journal is no longer read from until it was written.
HELD_MAX_BYTES = 8 << 20

_HEADER = BLOCK_HEADER_BYTES
_BLOCK = BLOCK_BYTES
_HELD_MAX = HELD_MAX_BYTES
_ARRIVED = ARRIVED
# Where the time is in a frame.
_TIME = 24
# It drops nothing: what is owed is copied in the same turn.
_BOUNDS = Bounds()


class Waiting(Protocol):
    """Whoever asked to be told when a message is safe."""

    def owe(self, frames: bytes) -> None:
        """Send it this."""


class Held(Protocol):
    """Whoever is not read from for now."""

    def resume(self) -> None:
        """Read again."""


class Asked:
    """Who is told what when the message at a position is safe: of one turn, all its OKs."""

    def __init__(self, peer: Any) -> None:
        self.position = 0
        self.peer = peer
        self.oks = Writer()


class Block(NamedTuple):
    """Frames of a batch: its header begins at `start`, the frames end at `end`."""

    start: int
    end: int
    first: int
    frames: int


class Batch:
    """What is written at once: `data[start:end]` are the blocks, all but their headers.

    `is_awaited` says that somebody waits until it is safe. Whoever writes may set the `lead`: how
    much room is left before the blocks when it is filled again, so that they begin where the disk
    would have them.
    """

    def __init__(self) -> None:
        self.writer = Writer()
        self.blocks: list[Block] = []
        self.is_awaited = False
        self.lead = 0
        # The latest time of a message, since the epoch.
        self.latest_ns = 0

    @property
    def data(self) -> bytearray:
        """The blocks, one after the other, and room around them."""
        return self.writer.data

    @property
    def start(self) -> int:
        """Where its first block begins."""
        return self.blocks[0].start

    @property
    def end(self) -> int:
        """Where its last block ends."""
        return self.blocks[-1].end

    @property
    def size(self) -> int:
        """How many bytes the blocks have."""
        return self.end - self.start

    @property
    def next_position(self) -> int:
        """The position after its last message."""
        last = self.blocks[-1]
        return last.first + last.frames

    def clear(self) -> None:
        """Be empty again."""
        self.writer.cut_back(0)
        self.writer.reserve(self.lead)
        self.blocks.clear()
        self.is_awaited = False
        self.latest_ns = 0


class Journal:
    """The journal of one service, as far as it concerns its turns.

    `write` takes a batch, at once and without waiting; written() gives it back. `position` is that
    of the next message.

    Raises:
        BadSubject: a pattern that the grammar forbids.
    """

    def __init__(
        self,
        patterns: list[bytes],
        position: int,
        arena: Arena,
        write: Callable[[Batch], None],
    ) -> None:
        for pattern in patterns:
            if not is_pattern(pattern):
                raise BadSubject(f"the pattern {pattern!r} is not legal")
        self.patterns = patterns
        self.position = position
        # Everything before it is as safe as was asked for.
        self.safe = position
        # Messages that were not kept, because nothing could be.
        self.missed = 0
        # Whether what comes from other gateways is kept, too, or only where it entered.
        self.is_of_mesh = False
        self.is_failing = False
        self.problem = ""
        self._outbox = Outbox(arena, _BOUNDS)
        self._write = write
        self._batch = Batch()
        self._spare: Batch | None = Batch()
        # Where the header of the unfinished block is, and its first position.
        self._block = -1
        self._first = position
        # The position after what was copied; what was taken in this turn comes after it.
        self._kept = position
        # The latest time of what was taken and not copied.
        self._latest_ns = 0
        self._asked: deque[Asked] = deque()
        self._last: Asked | None = None
        self._held: list[Held] = []

    def wants(self, subject: bytes) -> bool:
        """Say if the messages of a subject are kept."""
        for pattern in self.patterns:  # noqa: SIM110  # a closure cannot be compiled here
            if matches(pattern, subject):
                return True
        return False

    def is_full(self) -> bool:
        """Say if more is waiting to be written than should."""
        return self._batch.writer.size > _HELD_MAX

    def is_clean(self) -> bool:
        """Say if everything that was taken is written."""
        return self._outbox.pending == 0 and self._is_empty() and self._spare is not None

    def take(self, start: int, end: int, count: int) -> None:
        """Keep so many whole frames that lie in the arena."""
        if self.is_failing:
            self.missed += count
            return
        outbox = self._outbox
        outbox.push(start, end - start, 0)
        self.position += count
        # Those that are taken at once were stamped at once.
        time_ns = i64_at(outbox.arena.data, start + _TIME)
        self._latest_ns = max(self._latest_ns, time_ns)

    def take_arrived(self, start: int, end: int, count: int) -> None:
        """Keep frames of the arena that entered elsewhere, and say so in the copy.

        They are missed where more waits to be written than should: nobody can be told to wait.
        """
        if self.is_failing or self.is_full():
            self.missed += count
            return
        # What was taken before them comes before them.
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

    def hold(self, publisher: Held) -> None:
        """Tell a publisher to resume when there is room."""
        self._held.append(publisher)

    def ask(self, peer: Waiting) -> Writer:
        """Where to write what a peer is told when the message that was taken last is safe."""
        asked = self._last
        if asked is None or asked.peer is not peer:
            asked = Asked(peer)
            self._last = asked
            self._asked.append(asked)
        asked.position = self.position - 1
        return asked.oks

    def keep(self) -> None:
        """End a turn: copy what was taken, and have it written unless that is being done."""
        self._copy()
        self._last = None
        if self._block >= 0 and self._batch.writer.size - self._block >= _BLOCK:
            self._end_block()
        self._pass_on()

    def written(self, batch: Batch) -> None:
        """A batch was written, or never will be: it may be filled again."""
        batch.clear()
        self._spare = batch
        self._pass_on()

    def safe_until(self, position: int) -> None:
        """Tell whoever asked that everything before a position is safe."""
        self.safe = position
        asked = self._asked
        while asked:
            each = asked[0]
            if each.position >= position:
                return
            asked.popleft()
            each.peer.owe(each.oks.take())

    def failed(self, problem: str) -> list[Asked]:
        """Nothing can be kept for now; whoever waits for it is to be told so, and is forgotten."""
        self._last = None
        self.is_failing = True
        self.problem = problem
        asked = list(self._asked)
        self._asked.clear()
        return asked

    def recovered(self) -> None:
        """Messages can be kept again."""
        self.is_failing = False
        self.problem = ""

    def failure(self) -> JournalFailed:
        """The error that says so."""
        return JournalFailed(
            f"the journal cannot be written: {self.problem}; the message was not delivered"
        )

    def _copy(self) -> None:
        """Copy what was taken so far."""
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
        self._batch.blocks.append(Block(self._block, self._batch.writer.size, self._first, count))
        self._first = self._kept
        self._block = -1
