"""The client's side of the conversation with a gateway: bytes in, events out; verbs in, bytes out.

No I/O, no clock, no chance: time and unpredictable names come in as arguments. One session outlives
its connections: begin() starts the next one, end() says who waited in vain. Any split of the bytes
gives the same events, and whole frames before a bad one always count.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.client.connection.events import (
    Answered,
    Ended,
    Event,
    Failed,
    LaneTail,
    LaneTold,
    Late,
    Missed,
    News,
    Parting,
    Pinged,
    Relayed,
    TakenBack,
    Welcomed,
)
from weft.client.requests.pending_replies import Waiter, Waiting
from weft.client.status import Gap
from weft.errors import (
    BadGreeting,
    BadMessage,
    ProtocolError,
    Silent,
    UnexpectedFrame,
    UsageError,
    WeftError,
    error_from_wire,
)
from weft.wire import frames
from weft.wire.frames import BODY_LIMIT_MAX_BYTES, PROTOCOL_VERSION, Decoder, Flag, Kind
from weft.wire.lane_messages import VERSION as LANES_VERSION
from weft.wire.message.message import Message
from weft.wire.nonces import Nonces

GREETING_LIMIT_BYTES = 4096
# A gateway that says nothing for so long is pinged, and given up after as long again: a gateway
# that hangs is noticed within nine seconds, however long its own patience is.
HEARTBEAT_S = 4.5
# A timer that is later than this did not run because the program stood still.
LATE_S = 1.0

_MESSAGE = int(Kind.MESSAGE)
_SUBJECT = frames.HEADER_BYTES
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)
# What replies of the gateway itself have before their nonce, which has no dot.
_OF_GATEWAY = b"g."


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a client says of itself."""

    service: str
    name: str
    reachable_at: str
    library: str
    key: str = field(default="", repr=False)
    knows_lanes: bool = False


class Session:
    """One client's conversation, over one connection after the other."""

    def __init__(self, greeting: Greeting, waiting_max: int, nonces: Nonces) -> None:
        self.name = greeting.name
        self.gateway = ""
        self.origin = 0
        self.publisher = 0
        self.inbox = b""
        self.body_limit_bytes = frames.BODY_LIMIT_BYTES
        self.ping_s = 0.0
        # Why the gateway ended the connection before this one, if it did and says so.
        self.ended: WeftError | None = None
        self.is_open = False
        self._greeting = greeting
        self._waiting = Waiting(waiting_max)
        self._nonces = nonces
        self._decoder = Decoder(GREETING_LIMIT_BYTES)
        self._answers = b""
        self._own_answers = b""
        self._first = bytearray()
        self._is_ended = True
        self._heard_at = 0.0
        self._pinged_at: float | None = None
        self._number = 0
        # Messages may have to wait for others that come by lanes: they are sorted later.
        self.has_lanes = False
        self._on: dict[int, Callable[[bytes], Event | None]] = {
            Kind.MESSAGE: self._inbox_message,
            Kind.OK: self._ok,
            Kind.ERROR: self._error,
            Kind.PING: self._ping,
            Kind.PONG: self._pong,
            Kind.GAP: self._gap,
            Kind.GOODBYE: self._goodbye,
            Kind.LANE: LaneTold,
            Kind.TAIL: LaneTail,
        }

    @property
    def awaited(self) -> int:
        """How many answers are awaited."""
        return len(self._waiting)

    def begin(self, now: float) -> bytes:
        """The greeting that a new connection begins with."""
        self._decoder = Decoder(GREETING_LIMIT_BYTES)
        self._first.clear()
        self._is_ended = False
        self._heard_at = now
        self._pinged_at = None
        told: dict[str, object] = {"version": PROTOCOL_VERSION, "client": self._greeting.library}
        if self._greeting.reachable_at:
            told["address"] = self._greeting.reachable_at
        if self.inbox:
            # Known to the gateway and to us alone: by this it knows which connection was ours.
            told["was"] = self.inbox.decode()
        if self._greeting.key:
            told["key"] = self._greeting.key
        if self._greeting.knows_lanes:
            told["lanes"] = LANES_VERSION
        body = Message.from_dict(told).encode()
        service = self._greeting.service.encode()
        return frames.encode(Kind.CONNECT, service, body, self._greeting.name.encode())

    def end(self) -> list[Waiter]:
        """The connection is gone: whoever still awaits an answer over it."""
        self.is_open = False
        self._is_ended = True
        return self._waiting.take_all()

    def receive(self, data: bytes | memoryview, now: float) -> list[Event]:
        """What the bytes that arrived say, in order."""
        events: list[Event] = []
        if self._is_ended:
            return events
        self._heard_at = now
        self._pinged_at = None
        try:
            if not self.is_open:
                data = self._greeted(data, events)
            self._decoder.feed(data)
            next_run = self._decoder.next_run
            while self.is_open and (run := next_run()):
                if self.has_lanes and run[0][4] == _MESSAGE:
                    events.append(Relayed(run))
                else:
                    self._sort(run, events)
        except WeftError as error:
            self._is_ended = True
            events.append(Ended(error))
        return events

    def sort(self, runs: list[list[bytes]]) -> list[Event]:
        """What whole frames say, wherever they came from; runs that share kind and subject."""
        events: list[Event] = []
        for run in runs:
            self._sort(run, events)
        return events

    def _sort(self, run: list[bytes], events: list[Event]) -> None:
        first = run[0]
        # Most subjects do not begin with `_` and cost no more than this look; of those
        # that do, only what is in the own inbox is told apart one by one.
        if first[4] == _MESSAGE and (
            first[_SUBJECT : _SUBJECT + 1] != b"_" or not first.startswith(self._answers, _SUBJECT)
        ):
            events.append(run)
        else:
            events += filter(None, map(self._other, run))

    def keep_alive(self, now: float) -> bytes:
        """The PING to send if nothing was heard for long; empty while there is no need.

        Raises:
            Silent: nothing was heard for as long again.
        """
        if now < self.keep_alive_at():
            return b""
        # A program that stood still heard nothing either: only an unanswered ping counts, and not
        # one whose answer may have come and waits to be read.
        if self._pinged_at is not None and now < self.keep_alive_at() + LATE_S:
            silent_s = now - self._heard_at
            raise Silent(f"nothing was heard for {silent_s:.1f} s, and no ping answered")
        self._pinged_at = now
        return frames.encode(Kind.PING)

    def sending(self, now: float) -> None:
        """What waits to be sent moves: a ping may be behind it, and its time begins again."""
        if self._pinged_at is not None:
            self._pinged_at = now

    def keep_alive_at(self) -> float:
        """When keep_alive() is due again."""
        since = self._heard_at if self._pinged_at is None else self._pinged_at
        return since + self.ping_s

    def not_listening(self, now: float) -> None:
        """Silence does not count while this side does not read."""
        self._heard_at = now
        self._pinged_at = None

    def subscribe(self, waiter: Waiter, names: Sequence[bytes], group: bytes, body: bytes) -> bytes:
        """The frame that asks for patterns; the body names all but the first, and the options."""
        self._waiting.add_question(waiter, (False, names[0], group))
        return frames.encode(Kind.SUBSCRIBE, names[0], body, group, Flag.ANSWER)

    def request(self, waiter: Waiter, *, of_gateway: bool = False) -> bytes:
        """A new reply subject; what comes to it is for the waiter until forget() is called.

        Args:
            waiter: is told what comes.
            of_gateway: the gateway itself is asked: nobody else's answer counts.
        """
        reply = (self._own_answers if of_gateway else self._answers) + self._nonces.take()
        self._waiting.add_request(waiter, reply)
        return reply

    def check_waiting(self, more: int) -> None:
        """Make sure that one more answer may be awaited, beside others that are yet to be asked.

        Raises:
            Overloaded: it may not.
        """
        self._waiting.check(more)

    def question(self, waiter: Waiter, subject: bytes, reply: bytes) -> None:
        """Await the OK or ERROR for a message that is sent now, and was checked before."""
        self._waiting.add_checked_question(waiter, (True, subject, reply))

    def ping(self, waiter: Waiter) -> bytes:
        """A PING whose PONG is for the waiter."""
        self._number += 1
        body = Message(number=self._number).encode()
        self._waiting.add_ping(waiter, body)
        return frames.encode(Kind.PING, body=body)

    def waiter(self, reply: bytes) -> Waiter | None:
        """Whoever awaits messages to a reply subject."""
        return self._waiting.request(reply)

    def forget(self, waiter: Waiter) -> None:
        """Await nothing more for a waiter."""
        self._waiting.forget(waiter)

    def withdraw(self, waiter: Waiter) -> None:
        """Await nothing for a waiter whose frame was not sent after all."""
        self._waiting.withdraw(waiter)

    def _greeted(self, data: bytes | memoryview, events: list[Event]) -> bytes:
        """Read the first frame; what follows it is returned, to be read under the real limit."""
        self._first += data
        self._decoder.feed(data)
        frame = self._decoder.next_frame()
        if frame is None:
            return b""
        if frame[4] == Kind.ERROR:
            raise _error_in(frame)
        if frame[4] != Kind.WELCOME:
            raise BadGreeting(f"the gateway greets with a frame of kind {frame[4]}")
        self._learn(frame)
        events.append(Welcomed())
        self._decoder = Decoder(self.body_limit_bytes)
        rest = bytes(self._first[len(frame) :])
        self._first.clear()
        return rest

    def _learn(self, frame: bytes) -> None:
        facts = _readable(frame)
        try:
            version = facts.get_int64("version")
            self.gateway = facts.get_string("gateway")
            self.inbox = facts.get_string("inbox").encode()
            self.body_limit_bytes = facts.get_int64("body_limit")
            ping_s = facts.get_double("ping_s")
            self.ended = _ended_in(facts)
        except UsageError as error:
            raise BadGreeting(f"the gateway's welcome cannot be understood: {error}") from error
        if version != PROTOCOL_VERSION:
            raise BadGreeting(
                f"the gateway speaks version {version}, this client {PROTOCOL_VERSION}"
            )
        if not (self.inbox and 0 < ping_s < math.inf):
            raise BadGreeting(f"an inbox {self.inbox!r} and pings after {ping_s} s cannot be")
        self.ping_s = min(ping_s, HEARTBEAT_S)
        if not 0 < self.body_limit_bytes <= BODY_LIMIT_MAX_BYTES:
            raise BadGreeting(f"a body limit of {self.body_limit_bytes} bytes cannot be")
        self._answers = self.inbox + b"."
        self._own_answers = self._answers + _OF_GATEWAY
        self.name = facts.reply
        self.origin = facts.origin
        self.publisher = facts.publisher
        self.is_open = True

    def _other(self, frame: bytes) -> Event | None:
        handle = self._on.get(frame[4])
        if handle is None:
            raise UnexpectedFrame(f"a gateway does not send frames of kind {frame[4]}")
        return handle(frame)

    def _inbox_message(self, frame: bytes) -> Event:
        subject = frame[_SUBJECT : _SUBJECT + frame[6]]
        if not subject.startswith(self._answers):
            # It was the reply or the body that went on like it.
            return [frame]
        if not frame[5] & _FROM_GATEWAY and subject.startswith(self._own_answers):
            return Late()
        waiter = self._waiting.request(subject)
        return Late() if waiter is None else Answered(waiter, frame)

    def _ok(self, frame: bytes) -> Event | None:
        parts = frames.parse(frame)
        # Only a message is given a number; they start at 1.
        question = (parts.sequence > 0, parts.subject, parts.reply)
        waiter = self._waiting.take_question(question)
        return None if waiter is None else Answered(waiter, frame)

    def _error(self, frame: bytes) -> Event | None:
        error = _error_in(frame)
        parts = frames.parse(frame)
        if parts.flags & Flag.REQUEST:
            waiter = self._waiting.request(parts.reply)
        elif parts.flags & Flag.ANSWER:
            is_message = _readable(frame).get("kind") == _MESSAGE
            waiter = self._waiting.take_question((is_message, parts.subject, parts.reply))
        elif _readable(frame).get("kind") == Kind.SUBSCRIBE:
            # Every frame that asks for a subscription wants an answer: this is none.
            return TakenBack(parts.subject, parts.reply, error)
        else:
            return News(parts.subject.decode(errors="replace"), error)
        return None if waiter is None else Failed(waiter, error)

    def _ping(self, frame: bytes) -> Event:
        body = frames.parse(frame).body
        if len(body) > 64:
            raise ProtocolError(f"a ping of {len(body)} bytes is over the limit of 64")
        return Pinged(frames.encode(Kind.PONG, body=body))

    def _pong(self, frame: bytes) -> Event | None:
        waiter = self._waiting.take_ping(frames.parse(frame).body)
        return None if waiter is None else Answered(waiter, frame)

    def _gap(self, frame: bytes) -> Event:
        facts = _readable(frame)
        try:
            gap = Gap(facts.get_string("reason"), facts.get_uint64("count") or None, facts.origin)
        except UsageError as error:
            raise BadMessage(f"a gap that cannot be understood: {error}") from error
        return Missed(gap)

    def _goodbye(self, frame: bytes) -> Event:
        facts = _readable(frame)
        named = facts.get("elsewhere", [])
        elsewhere = tuple(map(str, named)) if isinstance(named, list) else ()
        return Parting(str(facts.get("reason", "")), str(facts.get("text", "")), elsewhere)


def unsubscribe_frame(names: Sequence[bytes], group: bytes) -> bytes:
    """The frame that takes patterns back."""
    body = patterns_body(names[1:], {})
    return frames.encode(Kind.UNSUBSCRIBE, names[0], body, group)


def goodbye_frame() -> bytes:
    """The frame that says that this client leaves."""
    return frames.encode(Kind.GOODBYE, body=Message(reason="closed", text="").encode())


def patterns_body(more: Sequence[bytes], options: dict[str, object]) -> bytes:
    """The body of SUBSCRIBE and UNSUBSCRIBE: more patterns, and what is asked of them."""
    told = dict(options)
    if more:
        told["patterns"] = [name.decode() for name in more]
    return Message.from_dict(told).encode() if told else b""


def _readable(frame: bytes) -> Message:
    """The message in a frame of control, whose body may be left out."""
    parts = frames.parse(frame)
    return Message.from_frame(frame) if parts.body else _EMPTY_BODY


def _error_in(frame: bytes) -> WeftError:
    facts = _readable(frame)
    try:
        return error_from_wire(facts.get_int64("number"), facts.get_string("text"))
    except UsageError as error:
        raise BadMessage(f"an error that cannot be understood: {error}") from error


def _ended_in(welcome: Message) -> WeftError | None:
    """What a welcome says of the end of the connection before."""
    if "ended" not in welcome:
        return None
    return error_from_wire(welcome.get_int64("ended"), welcome.get_string("ended_text"))


_EMPTY_BODY = Message()
