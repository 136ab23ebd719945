"""What one peer has yet to be sent.

In a turn it is spans of the arena; the door gathers and sends them once, straight to the socket.
Only what the socket refuses is copied, into a backlog that is bounded in bytes and age. An outbox
never sends: the door that owns it does, in this order:

    if not outbox.is_behind():
        start = outbox.gather()                # arena.data[start : start + outbox.gathered]
        outbox.sent(socket.send(…))
    outbox.settle(now_ns)                      # after it, nothing points into the arena
    if outbox.is_cut: …                        # the bound was reached: end the connection
    while outbox.is_behind():                  # now, or when the socket is writable again
        outbox.taken(socket.send(outbox.take(65_536, now_ns)))
"""

from typing import Any

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.backlog import Backlog
from weft.broker.delivery.policy import Bounds, Policy
from weft.wire.byteops import cut, put_bytes, u32_at

_CUT = int(Policy.CUT)


class Outbox:
    """Bytes owed to one peer; `pending` of them are in the arena, the rest in the backlog.

    `owner` is the peer, `fd` the socket that its door sends to directly or -1, `busy` how many
    requests the peer has yet to answer. It is that of a distant peer if it is another gateway's.
    While it is away, because there is no way to that gateway or no connection to a tunnel's client,
    the peer is given no requests. It is crowded while much waits that must not be dropped.
    """

    def __init__(self, arena: Arena, bounds: Bounds) -> None:
        self.arena = arena
        self.owner: Any = None
        self.fd = -1
        self.busy = 0
        self.is_distant = False
        self.is_away = False
        self.bounds = bounds
        self.pending = 0
        self.gathered = 0
        self.is_cut = False
        self.is_crowded = False
        # Somebody waits until no more than this is kept that must not be dropped; -1: nobody does.
        self._ease_bytes = -1
        self._head = -1
        self._tail = -1
        # How many bytes of the first span finish a frame whose beginning was sent.
        self._unfinished = 0
        self._is_waiting = False
        self._backlog: Backlog | None = None
        # That of a reader that was cut, until something is sent to it last.
        self._cut: Backlog | None = None
        self._dropped_before = 0

    def push(self, start: int, length: int, policy: int) -> None:
        """Owe the peer whole frames that lie in the arena."""
        arena = self.arena
        tail = self._tail
        if start < 0 or length <= 0 or length > arena.fill - start:
            raise ValueError(
                f"{length} bytes from {start} are not among the {arena.fill} of this turn"
            )
        if self.is_cut:
            length = 0
        elif tail < 0:
            self._head = arena.add_span(start, length, policy)
            self._tail = self._head
            arena.in_use += 1
            self._wait()
        elif (
            # A run of frames costs its receiver as much as one.
            arena.starts[tail] + arena.lengths[tail] == start and arena.policies[tail] == policy
        ):
            arena.lengths[tail] += length
        else:
            self._tail = arena.add_span(start, length, policy)
            arena.nexts[tail] = self._tail
        self.pending += length

    def ends_at(self, end: int) -> bool:
        """Say if the last of what it was owed in this turn ends at an offset of the arena."""
        tail = self._tail
        return tail >= 0 and self.arena.starts[tail] + self.arena.lengths[tail] == end

    def hold(self, frames: bytes, now_ns: int) -> None:
        """Owe the peer whole frames that the arena has no room for; they must not be dropped."""
        if self.is_cut:
            return
        if self._head >= 0:
            self._keep_spans(now_ns)
        if self._backlog is None:
            self._backlog = Backlog(self.bounds)
        self._backlog.keep(frames, _CUT, now_ns)
        self._look_at_backlog()
        self._wait()

    def overtake(self, frames: bytes) -> None:
        """Owe a link whole control frames, before the envelopes of its backlog.

        Raises:
            ValueError: there is no backlog.
        """
        if self._backlog is None:
            raise ValueError(f"there is no backlog that {len(frames)} bytes could overtake")
        self._backlog.overtake(frames)
        self._look_at_backlog()
        self._wait()

    def gather(self) -> int:
        """Make `gathered` bytes of what is pending one stretch of the arena; return its start.

        Raises:
            ValueError: there is a backlog, which must go first.
        """
        if self._backlog is not None:
            raise ValueError(f"{self._backlog.size} bytes of backlog must go first")
        arena = self.arena
        span = self._head
        if span == self._tail:
            self.gathered = self.pending
            return arena.starts[span] if span >= 0 else 0
        at = arena.size
        room = arena.size
        while span >= 0 and arena.lengths[span] <= room:
            put_bytes(arena.data, at, arena.data, arena.starts[span], arena.lengths[span])
            at += arena.lengths[span]
            room -= arena.lengths[span]
            span = arena.nexts[span]
        self.gathered = at - arena.size
        return arena.size

    def sent(self, count: int) -> None:
        """So many of the gathered bytes are gone."""
        if not 0 <= count <= self.pending:
            raise ValueError(f"{count} bytes were not pending, {self.pending} were")
        arena = self.arena
        self.pending -= count
        while count > 0:
            span = self._head
            length = arena.lengths[span]
            if count < length:
                self._unfinished = self._unfinished_after(span, count)
                arena.starts[span] += count
                arena.lengths[span] = length - count
                return
            count -= length
            self._unfinished = 0
            self._head = arena.nexts[span]
        if self._head < 0 and self._tail >= 0:
            self._forget_spans()

    def settle(self, now_ns: int) -> None:
        """End the turn: keep, by policy and within the bounds, what was not sent."""
        self._is_waiting = False
        if self._head >= 0:
            self._keep_spans(now_ns)
        if self._backlog is not None:
            self.expire(now_ns)

    def take(self, limit_bytes: int, now_ns: int) -> memoryview:
        """About so many bytes of the backlog, to be sent next; taken() must follow."""
        if self._backlog is None:
            return memoryview(b"")
        return self._backlog.take(limit_bytes, now_ns)

    def taken(self, count: int) -> None:
        """So many bytes of what take() gave are gone."""
        if self._backlog is None:
            raise ValueError(f"{count} bytes were not taken")
        self._backlog.sent(count)
        self._look_at_backlog()

    def draw(self, limit_bytes: int, now_ns: int) -> bytes:
        """Take about so many bytes of the backlog, whole frames, for a door that keeps them itself.

        Everyone who was owed the same stretch of a turn draws the same object.
        """
        if self._backlog is None:
            return b""
        frames = self._backlog.draw(limit_bytes, now_ns)
        self._look_at_backlog()
        return frames

    def expire(self, now_ns: int) -> None:
        """Apply the bound in age to a backlog that nothing is added to."""
        if self._backlog is not None:
            self._backlog.expire(now_ns)
        self._look_at_backlog()

    def part(self, frames: bytes) -> bool:
        """Send these frames last to a reader that was cut; False if nothing more can be sent."""
        backlog = self._cut
        self._cut = None
        if backlog is None or backlog.is_torn:
            return False
        backlog.finish_with(frames)
        self._backlog = backlog
        return True

    def close(self) -> None:
        """Owe nothing, now and later: the peer is gone, but routes may know its outbox a while."""
        self.owner = None
        self.fd = -1
        if self._backlog is not None:
            self._backlog.close()
        self._forget_backlog()
        self.is_cut = True
        self._cut = None
        self._forget_spans()

    def is_behind(self) -> bool:
        """Say if there is a backlog; until it is sent, nothing may overtake it."""
        return self._backlog is not None

    def owed(self) -> int:
        """How many bytes the peer has yet to be sent, in the arena and in the backlog."""
        return self.pending + (0 if self._backlog is None else self._backlog.size)

    def cost(self) -> int:
        """How much memory the backlog takes; the bound in bytes is on this."""
        return 0 if self._backlog is None else self._backlog.cost

    def moved_ns(self) -> int:
        """When the peer last took some of the backlog, or it began; 0: there is none."""
        return 0 if self._backlog is None else self._backlog.moved_ns

    def paced_ns(self) -> int:
        """Return when the peer last took as much as a reader must in time, or its backlog began.

        0 if there is no backlog.
        """
        return 0 if self._backlog is None else self._backlog.paced_ns

    def give_up(self, problem: str) -> None:
        """Cut a reader that is behind; `problem` says why."""
        if self._backlog is not None and not self.is_cut:
            self._backlog.cut(problem)
            self._look_at_backlog()

    def dropped(self) -> int:
        """How many messages were dropped since this outbox was made."""
        if self._backlog is None or self.is_cut:
            return self._dropped_before
        return self._dropped_before + self._backlog.dropped

    def problem(self) -> str:
        """Why the reader was cut."""
        return "" if self._cut is None else self._cut.problem

    def stands_still(self, since_ns: int) -> bool:
        """Say if there is a backlog of which the peer took nothing since a time."""
        return self._backlog is not None and self._backlog.moved_ns < since_ns

    def ask_for_ease(self, low_bytes: int) -> None:
        """Have the budget's `is_eased` set once no more than this must not be dropped."""
        self._ease_bytes = max(self._ease_bytes, low_bytes)

    def is_eased(self) -> bool:
        """Say if nobody who asked for that waits for it any more."""
        return self._ease_bytes < 0

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.arena.waiting.append(self)

    def _keep_spans(self, now_ns: int) -> None:
        arena = self.arena
        span = self._head
        if self._backlog is None:
            self._backlog = Backlog(self.bounds)
        if self._unfinished > 0:
            start = arena.starts[span]
            self._backlog.begin(cut(arena.data, start, start + self._unfinished), now_ns)
            arena.starts[span] += self._unfinished
            arena.lengths[span] -= self._unfinished
        while span >= 0:
            self._backlog.keep_span(arena, span, now_ns)
            span = arena.nexts[span]
        self._forget_spans()

    def _forget_spans(self) -> None:
        if self._tail >= 0:
            self.arena.in_use -= 1
        self._head = -1
        self._tail = -1
        self._unfinished = 0
        self.pending = 0

    def _look_at_backlog(self) -> None:
        """Forget a backlog that is empty; note whether the reader is cut, and whether crowded."""
        backlog = self._backlog
        if backlog is None:
            return
        if backlog.is_cut:
            if not self.is_cut:
                self._cut = backlog
                self._dropped_before += backlog.dropped
                # What was pushed in this turn would follow half a frame.
                self.is_cut = True
                self._forget_spans()
            if backlog.size == 0:
                self._backlog = None
            self._ease()
            self._set_crowded(False)
        elif backlog.is_empty():
            self._forget_backlog()
        else:
            if backlog.firm <= self._ease_bytes:
                self._ease()
            if backlog.firm > self.bounds.high_bytes:
                self._set_crowded(True)
            elif backlog.firm <= self.bounds.low_bytes:
                self._set_crowded(False)

    def _forget_backlog(self) -> None:
        backlog = self._backlog
        if backlog is not None:
            self._dropped_before += 0 if self.is_cut else backlog.dropped
            self._backlog = None
        self._ease()
        self._set_crowded(False)

    def _ease(self) -> None:
        if self._ease_bytes >= 0:
            self._ease_bytes = -1
            self.bounds.budget.ease()

    def _set_crowded(self, is_crowded: bool) -> None:
        if is_crowded != self.is_crowded:
            self.is_crowded = is_crowded
            self.bounds.budget.crowded += 1 if is_crowded else -1

    def _unfinished_after(self, span: int, count: int) -> int:
        """How much of the frame that the first `count` bytes of a span end in is still to go."""
        arena = self.arena
        end = arena.starts[span] + count
        at = arena.starts[span] + self._unfinished
        while at < end:
            at += u32_at(arena.data, at)
        return at - end
