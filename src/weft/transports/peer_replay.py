"""Replay for adapter peers: history first, then live messages.

Requests pages of the journal one after the other. After the last page it subscribes, and queues
live messages while it requests the journal once more, so that no message is missed in between.
Duplicates are recognized by origin and sequence and dropped.
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

# Live messages queued between the subscription and the last page.
HELD_MAX_BYTES = 1 << 20
# Replays of one peer that may run at once.
RECALLS_MAX = 16

_QUESTION = b"_WEFT.ask.history"
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)


class Recall:
    """Replay of one subscription."""

    def __init__(self, wish: bytes, since: Since, reply: bytes) -> None:
        """Prepare a replay; `wish` is the SUBSCRIBE to send after the history.

        Raises:
            BadOption: invalid `since`, or the SUBSCRIBE is for a queue group.
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
        """Return the frame that requests the next page."""
        patterns = [pattern.decode() for pattern in self.patterns]
        facts = {"patterns": patterns, "offset": len(self._large), **self._question}
        body = Message.from_dict(facts).encode()
        return encode(Kind.MESSAGE, _QUESTION, body, self.reply, Flag.REQUEST)

    def page(self, data: bytes) -> list[bytes]:
        """Return the frames of a page to send; then send next_words(), or the replay is live.

        Raises:
            BadFrame: `frames` holds anything but whole messages.
            UsageError: a field is missing or has the wrong type.
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
        """Return the next request, after the SUBSCRIBE itself once all history was read."""
        if self.is_subscribed and not was_subscribed:
            return self.wish + self.question()
        return self.question()

    def holds(self, frame: bytes, subject: bytes) -> bool:
        """Queue a live message; return False if it is not for this subscription."""
        if not self.is_subscribed or not any(matches(each, subject) for each in self.patterns):
            return False
        if self._held_bytes + len(frame) > HELD_MAX_BYTES:
            self._refused += 1
        else:
            self._held.append(frame)
            self._held_bytes += len(frame)
        return True

    def _new(self, frames: list[bytes]) -> list[bytes]:
        """Return the messages that were not sent before."""
        fresh: list[bytes] = []
        for frame in frames:
            origin, sequence = u32_at(frame, 8), u64_at(frame, 16)
            if sequence > self._last.get(origin, 0):
                self._last[origin] = sequence
                fresh.append(frame)
        return fresh


class Recalls:
    """Replays of one peer."""

    def __init__(self, inbox: bytes, nonces: Nonces) -> None:
        self._inbox = inbox
        self._nonces = nonces
        self._running: dict[bytes, Recall] = {}
        # Frames to handle on behalf of the peer once a turn allows it.
        self.words: list[bytes] = []

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, wish: bytes, since: Since) -> None:
        """Begin the replay of a SUBSCRIBE.

        Raises:
            BadOption: invalid `since`, or a queue group.
            TooMany: RECALLS_MAX replays of this peer are running.
        """
        if len(self._running) >= RECALLS_MAX:
            raise TooMany(f"{RECALLS_MAX} replays are running, which is the limit")
        recall = Recall(wish, since, self._inbox + b"recall." + self._nonces.take())
        self._running[recall.reply] = recall
        self.words.append(recall.question())

    def pass_on(self, frames: bytes) -> bytes:
        """Return the frames to send now; pages of history are replaced by their messages."""
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
        """End a replay with an error; return the ERROR that answers its SUBSCRIBE."""
        # The peer sent a SUBSCRIBE and knows nothing of pages: the error must name SUBSCRIBE.
        wish = parse(self._running.pop(reply).wish)
        body = Message.from_dict(facts | {"kind": int(Kind.SUBSCRIBE)}).encode()
        return encode(Kind.ERROR, wish.subject, body, flags=wish.flags & Flag.ANSWER)

    def _turned(self, recall: Recall, data: bytes) -> list[bytes]:
        """Handle a page; request the next one unless the replay is live."""
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
