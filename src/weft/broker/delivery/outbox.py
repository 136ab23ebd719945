"""Outbound queue of one peer: spans of the arena, then a backlog.

Within a turn it holds spans of the arena, which the transport gathers and writes to the socket
once. Only bytes that the socket refuses are copied, into a backlog bounded in bytes and age. An
outbox does no I/O: the transport that owns it calls, in this order:

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
    """Queued bytes of one peer; `pending` of them are in the arena, the rest in the backlog.

    `owner` is the peer, `fd` the socket that its transport writes to directly or -1, `busy` the
    number of requests that the peer has to answer. `is_distant`: the peer is a remote gateway.
    `is_away`: that gateway is unreachable, or the client of a tunnel is not connected, so the peer
    gets no requests. `is_crowded`: many bytes are queued that must not be dropped.
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
        # Limit on bytes that must not be dropped for setting the budget's `is_eased`; -1: unset.
        self._ease_bytes = -1
        self._head = -1
        self._tail = -1
        # How many bytes of the first span finish a frame that was sent in part.
        self._unfinished = 0
        self._is_waiting = False
        self._backlog: Backlog | None = None
        # Backlog of a disconnected reader, until its last frames are queued.
        self._cut: Backlog | None = None
        self._dropped_before = 0

    def push(self, start: int, length: int, policy: int) -> None:
        """Queue whole frames that lie in the arena."""
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
            # Consecutive frames are merged: a run costs its receiver as much as one frame.
            arena.starts[tail] + arena.lengths[tail] == start and arena.policies[tail] == policy
        ):
            arena.lengths[tail] += length
        else:
            self._tail = arena.add_span(start, length, policy)
            arena.nexts[tail] = self._tail
        self.pending += length

    def ends_at(self, end: int) -> bool:
        """Return whether the last frame queued in this turn ends at an offset of the arena."""
        tail = self._tail
        return tail >= 0 and self.arena.starts[tail] + self.arena.lengths[tail] == end

    def hold(self, frames: bytes, now_ns: int) -> None:
        """Queue whole frames that do not fit in the arena; they are never dropped."""
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
        """Queue control frames of a link before the batches of its backlog.

        Raises:
            ValueError: no backlog.
        """
        if self._backlog is None:
            raise ValueError(f"there is no backlog for {len(frames)} bytes to overtake")
        self._backlog.overtake(frames)
        self._look_at_backlog()
        self._wait()

    def gather(self) -> int:
        """Make `gathered` of the pending bytes contiguous in the arena; return their offset.

        Raises:
            ValueError: there is a backlog, which must be sent first.
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
        """Remove N of the gathered bytes, which the caller sent."""
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
        """End the turn: move unsent frames to the backlog, by policy and within the bounds."""
        self._is_waiting = False
        if self._head >= 0:
            self._keep_spans(now_ns)
        if self._backlog is not None:
            self.expire(now_ns)

    def take(self, limit_bytes: int, now_ns: int) -> memoryview:
        """About `limit_bytes` of the backlog, to be sent next; taken() must follow."""
        if self._backlog is None:
            return memoryview(b"")
        return self._backlog.take(limit_bytes, now_ns)

    def taken(self, count: int) -> None:
        """Remove N bytes, which take() returned and the caller sent."""
        if self._backlog is None:
            raise ValueError(f"{count} bytes were not taken")
        self._backlog.sent(count)
        self._look_at_backlog()

    def draw(self, limit_bytes: int, now_ns: int) -> bytes:
        """Remove and return about `limit_bytes` of whole frames, for a transport that queues.

        All outboxes with the same range of a turn return the same object.
        """
        if self._backlog is None:
            return b""
        frames = self._backlog.draw(limit_bytes, now_ns)
        self._look_at_backlog()
        return frames

    def expire(self, now_ns: int) -> None:
        """Apply the age bound to a backlog to which nothing is added."""
        if self._backlog is not None:
            self._backlog.expire(now_ns)
        self._look_at_backlog()

    def part(self, frames: bytes) -> bool:
        """Queue the last frames of a disconnected reader; False if nothing more can be sent."""
        backlog = self._cut
        self._cut = None
        if backlog is None or backlog.is_torn:
            return False
        backlog.finish_with(frames)
        self._backlog = backlog
        return True

    def close(self) -> None:
        """Drop everything, now and later: the peer is gone, but cached routes may refer to this."""
        self.owner = None
        self.fd = -1
        if self._backlog is not None:
            self._backlog.close()
        self._forget_backlog()
        self.is_cut = True
        self._cut = None
        self._forget_spans()

    def is_behind(self) -> bool:
        """Return whether there is a backlog, which must be sent first."""
        return self._backlog is not None

    def owed(self) -> int:
        """The number of bytes queued in the arena and in the backlog."""
        return self.pending + (0 if self._backlog is None else self._backlog.size)

    def cost(self) -> int:
        """The memory of the backlog, which the bound in bytes limits."""
        return 0 if self._backlog is None else self._backlog.cost

    def moved_ns(self) -> int:
        """When the peer last took bytes of the backlog, or it began; 0 without a backlog."""
        return 0 if self._backlog is None else self._backlog.moved_ns

    def paced_ns(self) -> int:
        """Return when the peer last took `pace_bytes`, or its backlog began.

        0 without a backlog.
        """
        return 0 if self._backlog is None else self._backlog.paced_ns

    def give_up(self, problem: str) -> None:
        """Disconnect a reader that has a backlog; `problem` is the reason."""
        if self._backlog is not None and not self.is_cut:
            self._backlog.cut(problem)
            self._look_at_backlog()

    def dropped(self) -> int:
        """The number of messages dropped since this outbox was created."""
        if self._backlog is None or self.is_cut:
            return self._dropped_before
        return self._dropped_before + self._backlog.dropped

    def problem(self) -> str:
        """Why the reader was disconnected."""
        return "" if self._cut is None else self._cut.problem

    def stands_still(self, since_ns: int) -> bool:
        """Return whether there is a backlog of which the peer took nothing since a time."""
        return self._backlog is not None and self._backlog.moved_ns < since_ns

    def ask_for_ease(self, low_bytes: int) -> None:
        """Set the budget's `is_eased` once at most this much is queued that must not be dropped."""
        self._ease_bytes = max(self._ease_bytes, low_bytes)

    def is_eased(self) -> bool:
        """Return whether no call of ask_for_ease() is pending."""
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
        """Remove an empty backlog; update whether the reader is disconnected, and crowded."""
        backlog = self._backlog
        if backlog is None:
            return
        if backlog.is_cut:
            if not self.is_cut:
                self._cut = backlog
                self._dropped_before += backlog.dropped
                # Frames pushed in this turn would follow an incomplete frame.
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
        """The bytes left of the frame in which the first `count` bytes of a span end."""
        arena = self.arena
        end = arena.starts[span] + count
        at = arena.starts[span] + self._unfinished
        while at < end:
            at += u32_at(arena.data, at)
        return at - end
