"""What a slow reader is owed: whole frames, bounded in bytes and age, dropped by policy.

Made when a socket first refuses bytes. Never holds more than its bound, whatever is offered in
whatever order, and never forgets in silence: what it drops is counted, and announced by GAP frames
that go out before anything else it holds. Order is kept, also when a newer message replaces an
older one of its subject.
"""

from collections import OrderedDict

from weft.core.arena import Arena
from weft.core.bounds import KEPT_COST_BYTES, Bounds, Policy, Reason
from weft.core.frames import HEADER_BYTES, Kind
from weft.core.losses import Losses
from weft.core.words import Bytes, cut, u32_at

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


class Kept:
    """Whole frames that wait together under one policy."""

    def __init__(self, frames: bytes, policy: int, time_ns: int, subject: bytes | None) -> None:
        self.frames = frames
        self.cost = len(frames) + _KEPT_COST
        self.policy = policy
        self.time_ns = time_ns
        self.subject = subject


class Backlog:
    """Frames kept in order; `cost` is the memory they take, never over the bound.

    `size` is how many bytes have yet to be sent, without news of losses.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.cost = 0
        self.size = 0
        self.is_cut = False
        self.losses = Losses(bounds.dropped)
        self._bounds = bounds
        # On its way out and no longer droppable: part of it may have been sent.
        self._front = b""
        self._front_at = 0
        # When the reader last took something, or had taken everything; when it was last offered it.
        self.moved_ns = 0
        self._offered_ns = 0
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        # Those of the kept that may give way to others, and the newest frame of each subject.
        self._yielding: OrderedDict[int, Kept] = OrderedDict()
        self._yielding_cost = 0
        self._latest: dict[bytes, int] = {}
        self._number = 0
        # Control frames of a link, which go before the next envelope that waits.
        self._urgent: list[bytes] = []
        self._urgent_bytes = 0

    def begin(self, rest: bytes, now_ns: int) -> None:
        """Take the rest of a frame whose beginning was sent; only for an empty backlog."""
        if not self.is_empty():
            raise ValueError(f"{self.size} bytes come before the rest of a frame")
        self._front = rest
        self._front_at = 0
        self.moved_ns = now_ns
        self.size = len(rest)
        self.cost = len(rest)
        if self.cost > self._bounds.keep_bytes:
            self.cut()

    def keep_span(self, arena: Arena, span: int, now_ns: int) -> None:
        """Keep the frames of a span for later, or drop what its policy says must go."""
        at = arena.starts[span]
        end = at + arena.lengths[span]
        policy = arena.policies[span]
        while at < end and not self.is_cut:
            # Conflation is by subject, so there each frame is kept by itself.
            most = 0 if policy == _LATEST else self._bounds.piece_bytes
            piece_end = _piece_end(arena.data, at, end, most)
            self.keep(arena.shared_cut(at, piece_end - at), policy, now_ns)
            at = piece_end

    def keep(self, frames: bytes, policy: int, now_ns: int) -> None:
        """Keep whole frames for later as one piece, or drop what the policy says must go."""
        if self.size == 0:
            self.moved_ns = now_ns
        subject = cut(frames, _HEADER, _HEADER + frames[6]) if policy == _LATEST else None
        kept = Kept(frames, policy, now_ns, subject)
        if not self._make_room(kept):
            self.losses.count(frames, _SLOW)
            if policy == _CUT:
                self.cut()
            return
        number = self._number
        self._number = number + 1
        self._kept[number] = kept
        self.cost += kept.cost
        self.size += len(frames)
        if subject is not None:
            self._latest[subject] = number
        if policy <= _DROP_OLD:
            self._yielding[number] = kept
            self._yielding_cost += kept.cost

    def overtake(self, frames: bytes) -> None:
        """Keep whole frames that go before all envelopes that wait, and in order among themselves.

        Only for a link: the frames that an envelope announces are not parted from it.
        """
        if self.cost + len(frames) > self._bounds.keep_bytes:
            self.cut()
            return
        self._urgent.append(frames)
        self._urgent_bytes += len(frames)
        self.size += len(frames)
        self.cost += len(frames)

    def take(self, limit_bytes: int, now_ns: int) -> memoryview:
        """What to send next: about so many bytes, followed by a call of sent()."""
        if self._front_at == len(self._front):
            self._refill(limit_bytes)
        self._offered_ns = now_ns
        return memoryview(self._front)[self._front_at :]

    def sent(self, count: int) -> None:
        """So many bytes of what take() gave are gone."""
        if not 0 <= count <= len(self._front) - self._front_at:
            raise ValueError(f"{count} bytes were not taken")
        if count > 0:
            self.moved_ns = self._offered_ns
        self._front_at += count
        self.size -= count
        if self._front_at == len(self._front):
            self.cost -= len(self._front)
            self._front = b""
            self._front_at = 0

    def draw(self, limit_bytes: int, now_ns: int) -> bytes:
        """Take about so many bytes, whole frames, that are as good as sent.

        Everyone who was owed the same stretch of a turn draws the same object.

        Raises:
            ValueError: part of what is next was sent already.
        """
        if self._front_at > 0:
            raise ValueError(f"{self._front_at} bytes of what is next were sent already")
        self.take(limit_bytes, now_ns)
        frames = self._front
        self.sent(len(frames))
        return frames

    def expire(self, now_ns: int) -> None:
        """Apply the bound in age: drop what waited too long, cut who took nothing for so long."""
        oldest_ns = now_ns - self._bounds.limit_age_ns
        if self.size > 0 and self.moved_ns < oldest_ns:
            self.cut()
        while self._kept:
            number = next(iter(self._kept))
            kept = self._kept[number]
            if kept.time_ns >= oldest_ns:
                break
            if kept.policy == _CUT:
                self.cut()
            else:
                self._drop(number, _OLD)

    def cut(self) -> None:
        """Give up on this reader: hold nothing and take nothing more."""
        for kept in self._kept.values():
            self.losses.count(kept.frames, _SLOW)
        # They stay counted, but there is nobody left to tell.
        self.losses.take()
        self.is_cut = True
        self.cost = 0
        self.size = 0
        self._front = b""
        self._front_at = 0
        self._kept.clear()
        self._yielding.clear()
        self._yielding_cost = 0
        self._latest.clear()
        self._urgent.clear()
        self._urgent_bytes = 0

    def is_empty(self) -> bool:
        """Say if nothing is owed, not even the news of a loss."""
        return self.size == 0 and len(self.losses) == 0

    def _make_room(self, kept: Kept) -> bool:
        """Let others give way to this one; False if it does not fit, and then nobody has."""
        limit = self._bounds.keep_bytes if kept.policy == _CUT else self._bounds.drop_bytes
        if kept.policy == _DROP_NEW:
            return self.cost + kept.cost <= limit
        if self.cost - self._yielding_cost + kept.cost > limit:
            return False
        if kept.subject is not None and kept.subject in self._latest:
            self._drop(self._latest[kept.subject], _CONFLATED)
        while self.cost + kept.cost > limit:
            self._drop(next(iter(self._yielding)), _SLOW)
        return True

    def _drop(self, number: int, reason: int) -> None:
        kept = self._remove(number)
        self.cost -= kept.cost
        self.size -= len(kept.frames)
        self.losses.count(kept.frames, reason)

    def _remove(self, number: int) -> Kept:
        kept = self._kept.pop(number)
        if kept.policy <= _DROP_OLD:
            del self._yielding[number]
            self._yielding_cost -= kept.cost
        if kept.subject is not None:
            del self._latest[kept.subject]
        return kept

    def _refill(self, limit_bytes: int) -> None:
        # What is on its way can no longer give way: never let that be most of the bound.
        limit_bytes = max(1, min(limit_bytes, self._bounds.piece_bytes))
        news = self.losses.take()
        parts = [news] if news else []
        length = len(news)
        self.size += length
        self.cost += length
        while (self._kept or self._urgent) and length < limit_bytes:
            if self._urgent and self._is_between_envelopes():
                parts += self._urgent
                length += self._urgent_bytes
                self._urgent.clear()
                self._urgent_bytes = 0
                continue
            kept = self._remove(next(iter(self._kept)))
            parts.append(kept.frames)
            length += len(kept.frames)
            self.cost -= _KEPT_COST
        self._front = b"".join(parts)
        self._front_at = 0

    def _is_between_envelopes(self) -> bool:
        """Return whether what is kept next begins an envelope, or nothing is kept."""
        if not self._kept:
            return True
        kept = self._kept[next(iter(self._kept))]
        return kept.frames[4] == _FORWARD


def _piece_end(data: Bytes, at: int, end: int, most: int) -> int:
    """The end of as many whole frames as fit in so many bytes, and of one at least."""
    last = at + u32_at(data, at)
    while last < end and last - at + u32_at(data, last) <= most:
        last += u32_at(data, last)
    return last
