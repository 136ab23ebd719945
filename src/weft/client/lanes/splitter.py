"""What a client publishes, split between the gateway and its lanes.

Everything leaves a client in one order, and here each run of messages gets its way. A change of way
is said on both, see lane_in.py. Whoever mixes messages that must go through the gateway with those
that need not would change all the time: after a message through the gateway the others follow it
there for a moment.
"""

from collections.abc import Callable

from weft.client.lanes.send_stream import Out, frames_in, switch_frame
from weft.wire.frame_senders import replies_in
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, Flag, Kind, Run, Stamp

# How long messages follow one that went through the gateway.
FOLLOW_S = 0.002
# Lanes number what goes by them apart from what a gateway numbers.
FIRST_SEQUENCE = (1 << 63) + 1
# Answers to older messages than this go through the gateway.
REPLIES_MAX = 65_536

_MESSAGE = int(Kind.MESSAGE)
_REQUEST = int(Flag.REQUEST)
# What only a gateway can do: confirm, or hide who asks.
_OF_GATEWAYS = int(Flag.ANSWER | Flag.MASKED)
_INBOX = b"_INBOX."
_OF_THE_GATEWAY = b"_WEFT."

Write = Callable[[memoryview], object]


class Direct:
    """A route that goes by lanes: whoever gets it, and what was sent since it was last told."""

    def __init__(self, subject: bytes, outs: list[Out], answering: list[Out]) -> None:
        self.subject = subject
        self.outs = outs
        # Those who may be asked, and not only told.
        self.answering = answering
        self.messages = 0
        self.bytes = 0
        self._turn = 0

    def next_out(self) -> list[Out]:
        """Whoever is given the next request; nobody if none of them answers."""
        self._turn += 1
        return self.answering[self._turn % len(self.answering) :][:1] if self.answering else []


class Splitter:
    """Where each message of one connection goes.

    If lanes are required nothing that is published goes through the gateway: what would have to is
    dropped, and counted.
    """

    def __init__(self, *, is_required: bool = False) -> None:
        self.is_required = is_required
        self.dropped = 0
        # Questions and answers that went by lanes: what follows them is waited for.
        self.exchanges = 0
        # By subject; and where answers are awaited to what came by a lane, the oldest first.
        self.routes: dict[bytes, Direct] = {}
        self._replies: dict[bytes, Out] = {}
        self.stamp = Stamp(0, 0, FIRST_SEQUENCE)
        # Where this connection awaits answers: by a lane it may have them sent nowhere else.
        self.own_inbox = b""
        # Replies of requests that went by a lane: the number of whoever was asked.
        self.asked: dict[bytes, int] = {}
        self._outs: list[Out] = []
        self._run = Run(BODY_LIMIT_MAX_BYTES)
        self._follow_until = 0.0

    @property
    def is_needed(self) -> bool:
        """Say if there is anything to split."""
        return self.is_required or bool(self._outs)

    @property
    def is_full(self) -> bool:
        """Say if as much is under way to someone as may be."""
        return any(out.is_full for out in self._outs)

    def add(self, out: Out) -> None:
        """Know of a lane."""
        self._outs.append(out)

    def remove(self, out: Out) -> None:
        """Send nothing more by a lane; its routes must be gone."""
        if out in self._outs:
            self._outs.remove(out)
        self.forget_replies(out)

    def note_replies(self, replies: list[bytes], out: Out) -> None:
        """Have answers to messages that came by a lane go back by it.

        All of these lie in the inbox of whoever is there: anything else that is published may be
        for others, too. What was asked through the gateway is answered there: it waits for that.
        """
        for reply in replies:
            self._replies[reply] = out
        while len(self._replies) > REPLIES_MAX:
            del self._replies[next(iter(self._replies))]

    def forget_replies(self, out: Out) -> None:
        """Have answers go through the gateway."""
        for reply in [reply for reply, each in self._replies.items() if each is out]:
            del self._replies[reply]

    def split(self, data: bytearray, size: int, write: Write, now: float) -> None:
        """Send whole frames on their ways; `write` has bytes sent to the gateway."""
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
        """Send through the gateway again, from here on."""
        if out.is_by_lane:
            out.switch()
            write(switch_frame([out]))

    def _lanes_for(self, subject: bytes) -> list[Out]:
        """The lanes that the run could go by; none if it is for the gateway."""
        direct = self.routes.get(subject)
        if direct is not None:
            return direct.next_out() if self._run.flags & _REQUEST else direct.outs
        out = self._replies.get(subject)
        return [] if out is None else [out]

    def _must_follow(self, outs: list[Out], now: float) -> bool:
        """Say if the run must go through the gateway: it asks for that, or others just did."""
        if self._run.flags & _OF_GATEWAYS:
            return True
        return now < self._follow_until and not all(out.is_by_lane for out in outs)

    def _replies_of(self, view: memoryview) -> list[bytes]:
        return replies_in(frames_in(bytes(view[self._run.start : self._run.end])))

    def _is_own(self, subject: bytes, replies: list[bytes]) -> bool:
        """Say if answers to a run may be awaited where its frames say.

        Only a gateway knows who may have them sent to others. An answer has its asker's inbox for a
        subject, and awaits nothing by the lane.
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
        """Go on through the gateway, to everyone."""
        changed = [out for out in self._outs if out.is_by_lane]
        if changed:
            for out in changed:
                out.switch()
            write(memoryview(switch_frame(changed)))


def _is_for_anyone(subject: bytes) -> bool:
    """Say if a message through the gateway may reach those who are sent others by a lane."""
    return not subject.startswith((_INBOX, _OF_THE_GATEWAY))


def _write(write: Write, view: memoryview, start: int, end: int) -> None:
    if end > start:
        write(view[start:end])
