"""Queued frames of a slow consumer, bounded in bytes and age, dropped by policy.

Created when a socket first refuses bytes. Never exceeds its bound, and never drops silently:
dropped messages are counted and reported by GAP frames. Messages dropped to make room are reported
before all queued frames, refused messages at their place in the queue. Order is kept, also when a
newer message replaces an older one of its subject.
"""

from collections import OrderedDict

from weft.broker.delivery.arena import Arena
from weft.broker.delivery.chunk import KEPT_COST_BYTES, BacklogEntry, FrameChunk, piece_end
from weft.broker.delivery.drop_counts import Losses
from weft.broker.delivery.policy import (
    HOLE_COST_BYTES,
    HOLE_ORIGINS_MAX,
    Bounds,
    Policy,
    Reason,
)
from weft.wire.byteops import cut, u32_at
from weft.wire.frames import HEADER_BYTES, Kind

_LATEST = int(Policy.LATEST)
_DROP_OLD = int(Policy.DROP_OLD)
_DROP_NEW = int(Policy.DROP_NEW)
_CUT = int(Policy.CUT)
_FORWARD = int(Kind.FORWARD)
_SLOW = int(Reason.SLOW)
_OLD = int(Reason.OLD)
_CONFLATED = int(Reason.CONFLATED)
_HEADER = HEADER_BYTES
_KEPT_COST = KEPT_COST_BYTES
_HOLE_ORIGINS = HOLE_ORIGINS_MAX
_HOLE_COST = HOLE_COST_BYTES
_NOTHING = FrameChunk(b"")
_S = 1e9


class Backlog:
    """Frames in order; `cost` is the memory they take, never over the bound.

    `size` is the number of bytes still to send, without pending GAPs; `firm` the cost of frames
    that must not be dropped. `moved_ns` is when the reader last took bytes, or the backlog began;
    `paced_ns` when it had last taken another `pace_bytes`. After a disconnect `problem` is the
    reason. `is_torn`: a frame was sent in part and its rest is lost, so nothing more can be sent.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.cost = 0
        self.size = 0
        self.firm = 0
        self.dropped = 0
        self.is_cut = self.is_torn = False
        self.problem = ""
        self.moved_ns = 0
        self.paced_ns = 0
        self._losses = Losses(bounds.dropped)
        self._bounds = bounds
        self._budget = bounds.budget
        # On its way out and no longer droppable: it may have been sent in part.
        self._front = b""
        self._front_at = 0
        # The piece in front, if it is one; whether the front begins in the middle of a frame.
        self._front_piece: FrameChunk | None = None
        self._is_begun = False
        # When bytes were last offered to the reader; bytes taken since `paced_ns`.
        self._offered_ns = 0
        self._taken = 0
        self._kept: OrderedDict[int, BacklogEntry] = OrderedDict()
        # The same by policy: frames dropped to make room, frames dropped only by age, and frames
        # that must not be dropped.
        self._yielding: OrderedDict[int, BacklogEntry] = OrderedDict()
        self._staying: OrderedDict[int, BacklogEntry] = OrderedDict()
        self._firm: OrderedDict[int, BacklogEntry] = OrderedDict()
        self._yielding_cost = 0
        # Newest frame of each subject; number of holes, and the last one.
        self._latest: dict[bytes, int] = {}
        self._holes = 0
        self._hole: Losses | None = None
        self._is_hole_last = False
        self._number = 0
        # Control frames of a link, sent before the next queued batch.
        self._urgent: list[bytes] = []
        self._urgent_bytes = 0

    def begin(self, rest: bytes, now_ns: int) -> None:
        """Queue the rest of a frame that was sent in part; only for an empty backlog."""
        if not self.is_empty():
            raise ValueError(f"{self.size} bytes come before the rest of a frame")
        self._moved(now_ns)
        if len(rest) > self._bounds.keep_bytes:
            self.is_torn = True
            self.cut(f"{len(rest)} bytes of one frame are over {self._bounds.described()}")
            return
        self._front = rest
        self._front_at = 0
        self._is_begun = True
        self.size = len(rest)
        self.cost = len(rest)
        self._budget.charge(len(rest))

    def keep_span(self, arena: Arena, span: int, now_ns: int) -> None:
        """Queue the frames of a span, or drop messages by its policy."""
        at = arena.starts[span]
        end = at + arena.lengths[span]
        policy = arena.policies[span]
        while at < end and not self.is_cut:
            # Conflation is by subject, so each frame is a piece of its own there.
            most = 0 if policy == _LATEST else self._bounds.piece_bytes
            upto = piece_end(arena.data, at, end, most)
            self._keep(arena.shared_cut(at, upto - at), policy, now_ns)
            at = upto
        if at < end:
            self._count(cut(arena.data, at, end), _SLOW)

    def keep(self, frames: bytes, policy: int, now_ns: int) -> None:
        """Queue whole frames as one piece, or drop messages by the policy."""
        self._keep(FrameChunk(frames), policy, now_ns)

    def overtake(self, frames: bytes) -> None:
        """Queue whole frames before all queued batches, in order among themselves.

        Only for a link: a forwarding header stays together with the frames that it precedes.
        """
        if self.cost + len(frames) > self._bounds.keep_bytes:
            self.cut(f"{self.cost + len(frames)} bytes queued, over {self._bounds.described()}")
            return
        self._urgent.append(frames)
        self._count_urgent(len(frames))
        self.size += len(frames)

    def take(self, limit_bytes: int, now_ns: int) -> memoryview:
        """The next bytes to send, about `limit_bytes`; sent() must follow."""
        if self._front_at == len(self._front):
            self._refill(limit_bytes)
        self._offered_ns = now_ns
        return memoryview(self._front)[self._front_at :]

    def sent(self, count: int) -> None:
        """Remove N bytes, which take() returned and the caller sent."""
        if not 0 <= count <= len(self._front) - self._front_at:
            raise ValueError(f"{count} bytes were not taken")
        if count > 0:
            self.moved_ns = self._offered_ns
            self._taken += count
            if self._taken >= self._bounds.pace_bytes:
                self._taken = 0
                self.paced_ns = self._offered_ns
        self._front_at += count
        self.size -= count
        if self._front_at == len(self._front):
            self._drop_front()

    def draw(self, limit_bytes: int, now_ns: int) -> bytes:
        """Remove and return about `limit_bytes` of whole frames, as if they were sent.

        All backlogs with the same range of a turn return the same object.

        Raises:
            ValueError: the next frame was sent in part already.
        """
        if self._front_at > 0:
            raise ValueError(f"{self._front_at} bytes of the next frame were sent already")
        self.take(limit_bytes, now_ns)
        frames = self._front
        self.sent(len(frames))
        return frames

    def expire(self, now_ns: int) -> None:
        """Apply the age bound: drop messages that are too old, disconnect a stalled reader."""
        if self.is_cut:
            return
        age_ns = self._bounds.limit_age_ns
        oldest_ns = now_ns - age_ns
        if self.size > 0 and self.moved_ns < oldest_ns:
            self.cut(f"it took nothing for {age_ns / _S:g} s (outbox_age_s)")
        elif self._firm and self.paced_ns < oldest_ns:
            first: BacklogEntry = next(iter(self._firm.values()))
            if first.time_ns < oldest_ns:
                pace = f"it took less than {self._bounds.pace_bytes} bytes"
                self.cut(f"{pace} in {age_ns / _S:g} s (outbox_age_s)")
        self._drop_before(self._yielding, oldest_ns)
        self._drop_before(self._staying, oldest_ns)

    def cut(self, problem: str) -> None:
        """Disconnect this reader: drop everything but the rest of the frame sent in part."""
        rest, lost = self._begun()
        self._count(lost, _SLOW)
        for kept in self._kept.values():
            self._count(kept.piece.frames, _SLOW)
        # They stay counted, but are not reported one by one.
        self._losses.take()
        self.is_cut = True
        self.problem = problem
        self.close()
        self._set_last(rest)

    def finish_with(self, frames: bytes) -> None:
        """Queue the last frames of a disconnected reader."""
        rest = self._front[self._front_at :]
        self._drop_front()
        self._set_last(rest + frames)

    def close(self) -> None:
        """Drop everything and release all memory."""
        self._drop_front()
        for kept in self._kept.values():
            if kept.losses is None:
                self._budget.release(kept.piece)
                self._budget.charge(-_KEPT_COST)
            else:
                self._budget.charge(-_HOLE_COST)
        for kept_by in (self._kept, self._yielding, self._staying, self._firm, self._latest):
            kept_by.clear()
        self._urgent.clear()
        self._count_urgent(-self._urgent_bytes)
        self._hole = None
        self._yielding_cost = self._holes = self.firm = self.size = self.cost = 0

    def is_empty(self) -> bool:
        """Return whether nothing is left to send, not even a GAP."""
        return self.size == 0 and not self._kept and len(self._losses) == 0

    def _keep(self, piece: FrameChunk, policy: int, now_ns: int) -> None:
        if self.size == 0:
            self._moved(now_ns)
        frames = piece.frames
        subject = cut(frames, _HEADER, _HEADER + frames[6]) if policy == _LATEST else None
        kept = BacklogEntry(piece, policy, now_ns, subject)
        if not self._make_room(kept):
            if policy == _CUT:
                self._count(frames, _SLOW)
                self.cut(f"{self.cost + kept.cost} bytes queued, over {self._bounds.described()}")
            else:
                self._refuse(frames)
            return
        self._append(kept)
        self._is_hole_last = False
        self.cost += kept.cost
        self.size += len(frames)
        self._budget.hold(piece)
        self._budget.charge(_KEPT_COST)
        if subject is not None:
            self._latest[subject] = self._number

    def _append(self, kept: BacklogEntry) -> None:
        number = self._number = self._number + 1
        self._kept[number] = kept
        if kept.losses is not None:
            return
        if kept.policy <= _DROP_OLD:
            self._yielding[number] = kept
            self._yielding_cost += kept.cost
        elif kept.policy == _DROP_NEW:
            self._staying[number] = kept
        else:
            self._firm[number] = kept
            self.firm += kept.cost

    def _refuse(self, frames: bytes) -> None:
        """Count messages that are not queued, at their place in the queue."""
        bounds = self._bounds
        if self._hole is None or not self._is_hole_last:
            is_room = self.cost + _HOLE_COST <= bounds.keep_bytes
            if self._kept and is_room and self._holes < bounds.holes_max:
                hole = BacklogEntry(_NOTHING, _DROP_NEW, 0, None)
                hole.losses = self._hole = Losses(bounds.dropped, _HOLE_ORIGINS)
                self._append(hole)
                self._is_hole_last = True
                self._holes += 1
                self.cost += _HOLE_COST
                self._budget.charge(_HOLE_COST)
        if self._hole is None:
            self._count(frames, _SLOW)
        else:
            # If the hole is not last in the queue, they are reported too early, never too late.
            self.dropped += self._hole.count(frames, _SLOW)

    def _make_room(self, kept: BacklogEntry) -> bool:
        """Drop queued messages until this one fits; if it cannot fit, drop none: False."""
        bounds = self._bounds
        limit = self._budget.allowance()
        if kept.policy == _CUT:
            limit = min(limit, bounds.keep_bytes)
        else:
            limit = min(limit - limit // 8, bounds.drop_bytes) + self._holes * _HOLE_COST
        if kept.policy == _DROP_NEW:
            return self.cost + kept.cost <= limit
        if self.cost - self._yielding_cost + kept.cost > limit:
            return False
        if kept.subject is not None and kept.subject in self._latest:
            self._drop(self._latest[kept.subject], _CONFLATED)
        while self.cost + kept.cost > limit:
            self._drop(next(iter(self._yielding)), _SLOW)
        return True

    def _drop_before(self, those: "OrderedDict[int, BacklogEntry]", oldest_ns: int) -> None:
        while those:
            number = next(iter(those))
            kept = those[number]
            if kept.time_ns >= oldest_ns:
                return
            self._drop(number, _OLD)

    def _drop(self, number: int, reason: int) -> None:
        kept = self._remove(number)
        self.size -= len(kept.piece.frames)
        self._count(kept.piece.frames, reason)

    def _count(self, frames: bytes, reason: int) -> None:
        self.dropped += self._losses.count(frames, reason)

    def _remove(self, number: int) -> BacklogEntry:
        kept = self._kept.pop(number)
        if kept.policy <= _DROP_OLD:
            del self._yielding[number]
            self._yielding_cost -= kept.cost
        elif kept.policy == _DROP_NEW:
            del self._staying[number]
        else:
            del self._firm[number]
            self.firm -= kept.cost
        if kept.subject is not None:
            del self._latest[kept.subject]
        self.cost -= kept.cost
        self._budget.charge(-_KEPT_COST)
        self._budget.release(kept.piece)
        return kept

    def _refill(self, limit_bytes: int) -> None:
        # The front can no longer be dropped: it must not be most of the bound.
        limit_bytes = max(1, min(limit_bytes, self._bounds.piece_bytes))
        parts: list[bytes] = []
        length = self._put_news(parts, self._losses)
        last = _NOTHING
        while (self._kept or self._urgent) and length < limit_bytes:
            if self._urgent and self._is_between_envelopes():
                parts += self._urgent
                length += self._urgent_bytes
                self._urgent.clear()
                self._count_urgent(-self._urgent_bytes)
                continue
            number = next(iter(self._kept))
            kept = self._kept[number]
            if kept.losses is not None:
                length += self._put_hole(parts, number, kept.losses)
                continue
            last = self._remove(number).piece
            parts.append(last.frames)
            length += len(last.frames)
        self._front = b"".join(parts)
        self._front_at = 0
        self._is_begun = False
        self.cost += length
        if len(parts) == 1 and last.frames:
            self._front_piece = last
            self._budget.hold(last)
        else:
            self._budget.charge(length)

    def _is_between_envelopes(self) -> bool:
        """Return whether a batch begins next, or nothing is queued."""
        if not self._kept:
            return True
        kept = self._kept[next(iter(self._kept))]
        return kept.losses is None and kept.piece.frames[4] == _FORWARD

    def _count_urgent(self, count: int) -> None:
        self._urgent_bytes += count
        self.cost += count
        self._budget.charge(count)

    def _put_hole(self, parts: list[bytes], number: int, losses: Losses) -> int:
        del self._kept[number]
        self._holes -= 1
        if self._hole is losses:
            self._hole = None
        self.cost -= _HOLE_COST
        self._budget.charge(-_HOLE_COST)
        return self._put_news(parts, losses)

    def _put_news(self, parts: list[bytes], losses: Losses) -> int:
        news = losses.take()
        if news:
            parts.append(news)
        self.size += len(news)
        return len(news)

    def _drop_front(self) -> None:
        length = len(self._front)
        self.cost -= length
        piece = self._front_piece
        if piece is None:
            self._budget.charge(-length)
        else:
            self._budget.release(piece)
            self._front_piece = None
        self._front = b""
        self._front_at = 0
        self._is_begun = False

    def _set_last(self, frames: bytes) -> None:
        """Replace everything by these last frames."""
        self._front = frames
        self.size = len(frames)
        self.cost = len(frames)
        self._is_begun = True
        self._budget.charge(len(frames))

    def _begun(self) -> tuple[bytes, bytes]:
        """The rest of the frame that was sent in part, and the remainder of the front."""
        front = self._front
        if self._is_begun:
            return front[self._front_at :], b""
        at = 0
        while at < self._front_at:
            at += u32_at(front, at)
        return front[self._front_at : at], front[at:]

    def _moved(self, now_ns: int) -> None:
        self.moved_ns = self.paced_ns = now_ns
        self._taken = 0
