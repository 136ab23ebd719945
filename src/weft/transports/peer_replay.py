"""History first, then what comes live, for peers that cannot ask for it themselves.

Pages of the journal are asked for one after the other. At the end of them the subscription is made,
and what comes live is held while the journal is asked once more: so nothing is left out at the
seam, and what is in both is known by its origin and sequence and told once.
"""

from typing import Any

from weft.errors import BadOption, TooMany, WeftError
from weft.wire.byteops import u32_at, u64_at
from weft.wire.frame_splitting import each_frame, each_message
from weft.wire.frames import Flag, Kind, encode, parse
from weft.wire.message.message import Message
from weft.wire.nonces import Nonces
from weft.wire.since import Since, beginning
from weft.wire.subjects import matches

# What may come live between the subscription and the last page.
HELD_MAX_BYTES = 1 << 20
# How many of its subscriptions may be in the past at once.
RECALLS_MAX = 16

_QUESTION = b"_WEFT.ask.history"
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)


class Recall:
    """One subscription that begins in the past."""

    def __init__(self, wish: bytes, since: Since, reply: bytes) -> None:
        """Begin with the SUBSCRIBE that is to be said at the seam.

        Raises:
            BadOption: the beginning is none, or the wish is that of a queue group.
        """
        frame = parse(wish)
        if frame.reply:
            raise BadOption("a member of a queue group has no history")
        options = Message.from_body(frame.body) if frame.body else Message()
        more = options.get_list("patterns") if "patterns" in options else []
        self.wish = wish
        self.reply = reply
        self.patterns = [frame.subject, *(str(pattern).encode() for pattern in more)]
        self.is_subscribed = False
        self.is_live = False
        self._question = beginning(since)
        self._large = b""
        self._last: dict[int, int] = {}
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._refused = 0

    def question(self) -> bytes:
        """The frame that asks for the next page."""
        patterns = [pattern.decode() for pattern in self.patterns]
        facts = {"patterns": patterns, "offset": len(self._large), **self._question}
        body = Message.from_dict(facts).encode()
        return encode(Kind.MESSAGE, _QUESTION, body, self.reply, Flag.REQUEST)

    def page(self, data: bytes) -> list[bytes]:
        """What a page gives to tell; then either say next_words(), or it is live.

        Raises:
            BadFrame: it holds something else than whole messages.
            UsageError: a field is missing, or of another type.
        """
        page = Message.from_frame(data)
        after, head = page.get_int64("next"), page.get_int64("head")
        left, missing = page.get_int64("left"), page.get_int64("missing")
        frames = self._large + page.get_blob("frames")
        kept = [] if left else each_message(frames)
        self._question = {"position": after}
        self._large = frames if left else b""
        told = [_gap("journal", missing)] if missing else []
        told += self._new(kept)
        if after >= head and not left:
            if self.is_subscribed:
                self.is_live = True
                told += self._new(self._held)
                if self._refused:
                    told.append(_gap("slow", self._refused))
            self.is_subscribed = True
        return told

    def next_words(self, was_subscribed: bool) -> bytes:
        """What to say after a page: the wish, once the past is over, and the next question."""
        if self.is_subscribed and not was_subscribed:
            return self.wish + self.question()
        return self.question()

    def holds(self, frame: bytes, subject: bytes) -> bool:
        """Keep what came live until its time has come; False if it is not for this one."""
        if not self.is_subscribed or not any(matches(each, subject) for each in self.patterns):
            return False
        if self._held_bytes + len(frame) > HELD_MAX_BYTES:
            self._refused += 1
        else:
            self._held.append(frame)
            self._held_bytes += len(frame)
        return True

    def _new(self, frames: list[bytes]) -> list[bytes]:
        """Those that were not told before."""
        fresh: list[bytes] = []
        for frame in frames:
            origin, sequence = u32_at(frame, 8), u64_at(frame, 16)
            if sequence > self._last.get(origin, 0):
                self._last[origin] = sequence
                fresh.append(frame)
        return fresh


class Recalls:
    """The subscriptions of one peer that are not live yet."""

    def __init__(self, inbox: bytes, nonces: Nonces) -> None:
        self._inbox = inbox
        self._nonces = nonces
        self._running: dict[bytes, Recall] = {}
        # What is to be said for the peer, when that is possible.
        self.words: list[bytes] = []

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, wish: bytes, since: Since) -> None:
        """Recall the past of what a SUBSCRIBE asks for, and then make the subscription.

        Raises:
            BadOption: the beginning is none.
            TooMany: of this peer.
        """
        if len(self._running) >= RECALLS_MAX:
            raise TooMany(f"{RECALLS_MAX} subscriptions are in the past already")
        recall = Recall(wish, since, self._inbox + b"recall." + self._nonces.take())
        self._running[recall.reply] = recall
        self.words.append(recall.question())

    def pass_on(self, frames: bytes) -> bytes:
        """What of these frames, and of the past that they bring, is to be told now."""
        if not self._running:
            return frames
        told: list[bytes] = []
        for frame in each_frame(frames):
            told += self._passed(frame)
        return b"".join(told)

    def _passed(self, data: bytes) -> list[bytes]:
        frame = parse(data)
        if frame.kind == Kind.MESSAGE:
            recall = self._running.get(frame.subject)
            if recall is not None and frame.flags & _FROM_GATEWAY:
                return self._turned(recall, data)
            holders = [each.holds(data, frame.subject) for each in self._running.values()]
            return [] if any(holders) else [data]
        if frame.kind == Kind.ERROR and frame.reply in self._running:
            return [self._refused(frame.reply, Message.from_body(frame.body).to_dict())]
        return [data]

    def _refused(self, reply: bytes, facts: dict[str, Any]) -> bytes:
        """End a recall with an error; return the frame that answers the SUBSCRIBE it was for."""
        # Nobody asked for a page: it is the subscription that cannot be had.
        wish = parse(self._running.pop(reply).wish)
        body = Message.from_dict(facts | {"kind": int(Kind.SUBSCRIBE)}).encode()
        return encode(Kind.ERROR, wish.subject, body, flags=wish.flags & Flag.ANSWER)

    def _turned(self, recall: Recall, data: bytes) -> list[bytes]:
        """Turn a page."""
        was_subscribed = recall.is_subscribed
        try:
            told = recall.page(data)
        except WeftError as error:
            facts = {"number": error.number, "name": type(error).__name__, "text": str(error)}
            return [self._refused(recall.reply, facts)]
        if recall.is_live:
            del self._running[recall.reply]
        else:
            self.words.append(recall.next_words(was_subscribed))
        return told


def _gap(reason: str, count: int) -> bytes:
    return encode(Kind.GAP, body=Message(reason=reason, count=count).encode())
