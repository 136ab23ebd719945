"""Splitter: sends published frames to the gateway or through lanes, in order.

All frames of a client have one order, and each batch gets a path. A path switch is sent on both
paths, see receive_stream.py. Alternating between messages that must go through the gateway and
others would cost a switch each: after a message through the gateway the others follow for 2 ms.
"""

from collections.abc import Callable

from weft.client.lanes.send_stream import Out, frames_in, switch_frame
from weft.wire.frame_senders import replies_in
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, Flag, Kind, Run, Stamp

# Time for which messages follow one that went through the gateway.
FOLLOW_S = 0.002
# Sequence numbers of lane messages are separate from those of gateways.
FIRST_SEQUENCE = (1 << 63) + 1
# Limit on stored reply subjects; answers to older messages go through the gateway.
REPLIES_MAX = 65_536

_MESSAGE = int(Kind.MESSAGE)
_REQUEST = int(Flag.REQUEST)
# Only a gateway can acknowledge messages, or hide the requester.
_OF_GATEWAYS = int(Flag.ANSWER | Flag.MASKED)
_INBOX = b"_INBOX."
_OF_THE_GATEWAY = b"_WEFT."

Write = Callable[[memoryview], object]


class Direct:
    """Route through lanes: its receivers, and the counts since the last report."""

    def __init__(self, subject: bytes, outs: list[Out], answering: list[Out]) -> None:
        self.subject = subject
        self.outs = outs
        # Receivers that may get requests.
        self.answering = answering
        self.messages = 0
        self.bytes = 0
        self._turn = 0

    def next_out(self) -> list[Out]:
        """Return the receiver of the next request, in turn; empty if none answers."""
        self._turn += 1
        return self.answering[self._turn % len(self.answering) :][:1] if self.answering else []


class Splitter:
    """Selects the path of each message of one connection.

    If lanes are required, messages that would have to go through the gateway are dropped and
    counted.
    """

    def __init__(self, *, is_required: bool = False) -> None:
        self.is_required = is_required
        self.dropped = 0
        # Requests and answers sent through lanes, after which a message is expected soon.
        self.exchanges = 0
        # Routes by subject; and lanes by reply subject of received messages, the oldest first.
        self.routes: dict[bytes, Direct] = {}
        self._replies: dict[bytes, Out] = {}
        self.stamp = Stamp(0, 0, FIRST_SEQUENCE)
        # Inbox of this connection: lane messages may have no other reply subjects.
        self.own_inbox = b""
        # Reply subjects of requests sent through a lane: the number of the responder.
        self.asked: dict[bytes, int] = {}
        self._outs: list[Out] = []
        self._run = Run(BODY_LIMIT_MAX_BYTES)
        self._follow_until = 0.0

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to split."""
        return self.is_required or bool(self._outs)

    @property
    def is_full(self) -> bool:
        """Whether the window of a lane is full."""
        return any(out.is_full for out in self._outs)

    def add(self, out: Out) -> None:
        """Add a lane."""
        self._outs.append(out)

    def remove(self, out: Out) -> None:
        """Remove a lane, whose routes must be removed before."""
        if out in self._outs:
            self._outs.remove(out)
        self.forget_replies(out)

    def note_replies(self, replies: list[bytes], out: Out) -> None:
        """Send answers to messages that came through a lane back through it.

        All of these reply subjects are in the inbox of the peer: other messages may have further
        receivers. Requests that came through the gateway are answered there.
        """
        for reply in replies:
            self._replies[reply] = out
        while len(self._replies) > REPLIES_MAX:
            del self._replies[next(iter(self._replies))]

    def forget_replies(self, out: Out) -> None:
        """Send answers through the gateway instead of this lane."""
        for reply in [reply for reply, each in self._replies.items() if each is out]:
            del self._replies[reply]

    def split(self, data: bytearray, size: int, write: Write, now: float) -> None:
        """Send whole frames on their paths; `write` sends to the gateway."""
        run = self._run
        at = 0
        kept = 0
        with memoryview(data) as view:
            while run.read(data, at, size):
                at = run.end
                if run.kind != _MESSAGE:
                    continue
                subject = run.subject(data)
                outs = self._lanes_for(subject)
                replies = self._replies_of(view) if outs and run.has_reply else []
                if outs and not self._must_follow(outs, now) and self._is_own(subject, replies):
                    _write(write, view, kept, run.start)
                    kept = at
                    self._count(subject)
                    self._send(data, view, outs, write)
                    if run.flags & _REQUEST:
                        self.asked.update(dict.fromkeys(replies, outs[0].peer))
                elif self.is_required and not subject.startswith(_OF_THE_GATEWAY):
                    _write(write, view, kept, run.start)
                    kept = at
                    self.dropped += run.count
                elif outs or _is_for_anyone(subject):
                    if not outs:
                        self._follow_until = now + FOLLOW_S
                    _write(write, view, kept, run.start)
                    kept = run.start
                    self._return(write)
            _write(write, view, kept, size)

    def leave(self, out: Out, write: Callable[[bytes], object]) -> None:
        """Switch a lane back to the gateway."""
        if out.is_by_lane:
            out.switch()
            write(switch_frame([out]))

    def _lanes_for(self, subject: bytes) -> list[Out]:
        """Return the lanes that the batch may use; empty if it must go through the gateway."""
        direct = self.routes.get(subject)
        if direct is not None:
            return direct.next_out() if self._run.flags & _REQUEST else direct.outs
        out = self._replies.get(subject)
        return [] if out is None else [out]

    def _must_follow(self, outs: list[Out], now: float) -> bool:
        """Return whether the batch must go through the gateway, for its flags or the order."""
        if self._run.flags & _OF_GATEWAYS:
            return True
        return now < self._follow_until and not all(out.is_by_lane for out in outs)

    def _replies_of(self, view: memoryview) -> list[bytes]:
        return replies_in(frames_in(bytes(view[self._run.start : self._run.end])))

    def _is_own(self, subject: bytes, replies: list[bytes]) -> bool:
        """Return whether the reply subjects of the batch are permitted on lanes.

        Only the gateway knows who may use the inbox of others. An answer has the requester's inbox
        as its subject, and expects no reply through the lane.
        """
        if not replies:
            return True
        return subject in self.routes and all(map(self._is_in_own_inbox, replies))

    def _is_in_own_inbox(self, reply: bytes) -> bool:
        return reply.startswith(self.own_inbox)

    def _count(self, subject: bytes) -> None:
        direct = self.routes.get(subject)
        if direct is not None:
            direct.messages += self._run.count
            direct.bytes += self._run.end - self._run.start
        if direct is None or self._run.flags & _REQUEST:
            self.exchanges += self._run.count

    def _send(self, data: bytearray, view: memoryview, outs: list[Out], write: Write) -> None:
        run = self._run
        changed = [out for out in outs if not out.is_by_lane]
        if changed:
            for out in changed:
                out.switch()
            write(memoryview(switch_frame(changed)))
        run.stamp(data, self.stamp)
        stretch = bytes(view[run.start : run.end])
        for out in outs:
            out.send(stretch, run.count)

    def _return(self, write: Write) -> None:
        """Switch all lanes back to the gateway."""
        changed = [out for out in self._outs if out.is_by_lane]
        if changed:
            for out in changed:
                out.switch()
            write(memoryview(switch_frame(changed)))


def _is_for_anyone(subject: bytes) -> bool:
    """Return whether a message through the gateway may reach receivers of a lane."""
    return not subject.startswith((_INBOX, _OF_THE_GATEWAY))


def _write(write: Write, view: memoryview, start: int, end: int) -> None:
    if end > start:
        write(view[start:end])
