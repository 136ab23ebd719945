"""Client side of the protocol: bytes in, events out; calls in, bytes out.

Does no I/O and has no clock or randomness: time and nonces are arguments. One session outlives its
connections: begin() starts the next one, end() returns the waiters to fail. The events do not
depend on how the bytes are split, and complete frames before an invalid one are processed.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weft.client.connection.events import (
    Answered,
    ConnectionEnded,
    Event,
    LaneTail,
    LaneTold,
    Late,
    MessagesLost,
    News,
    Parting,
    Pinged,
    RefusedRequest,
    Relayed,
    TakenBack,
    Welcomed,
)
from weft.client.requests.pending_replies import PendingReplies, Waiter
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
# A gateway that is silent for this long is pinged, and dropped after the same time again: a hung
# gateway is detected within 9 s, whatever its own ping interval is.
HEARTBEAT_S = 4.5
# A timer that is later than this was delayed because the program was blocked.
LATE_S = 1.0

_MESSAGE = int(Kind.MESSAGE)
_SUBJECT = frames.HEADER_BYTES
_FROM_GATEWAY = int(Flag.FROM_GATEWAY)
# Prefix of reply subjects for requests to the gateway itself; nonces contain no dot.
_OF_GATEWAY = b"g."


@dataclass(frozen=True, slots=True)
class ClientDescription:
    """Description of a client in CONNECT."""

    service: str
    name: str
    reachable_at: str
    library: str
    key: str = field(default="", repr=False)
    knows_lanes: bool = False


class ClientSession:
    """Protocol state of one client, over one connection after the other."""

    def __init__(self, greeting: ClientDescription, waiting_max: int, nonces: Nonces) -> None:
        self.name = greeting.name
        self.gateway = ""
        self.origin = 0
        self.publisher = 0
        self.inbox = b""
        self.body_limit_bytes = frames.BODY_LIMIT_BYTES
        self.ping_s = 0.0
        # Why the gateway ended the previous connection, if it reports that.
        self.ended: WeftError | None = None
        self.is_open = False
        self._greeting = greeting
        self._waiting = PendingReplies(waiting_max)
        self._nonces = nonces
        self._decoder = Decoder(GREETING_LIMIT_BYTES)
        self._answers = b""
        self._own_answers = b""
        self._first = bytearray()
        self._is_ended = True
        self._heard_at = 0.0
        self._pinged_at: float | None = None
        self._number = 0
        # Messages may have to wait for others on lanes, so they are sorted later.
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
        """The number of pending replies."""
        return len(self._waiting)

    def begin(self, now: float) -> bytes:
        """Return the CONNECT frame that starts a new connection."""
        self._decoder = Decoder(GREETING_LIMIT_BYTES)
        self._first.clear()
        self._is_ended = False
        self._heard_at = now
        self._pinged_at = None
        told: dict[str, object] = {"version": PROTOCOL_VERSION, "client": self._greeting.library}
        if self._greeting.reachable_at:
            told["address"] = self._greeting.reachable_at
        if self.inbox:
            # Known to the gateway and this client only: identifies the previous connection as ours.
            told["was"] = self.inbox.decode()
        if self._greeting.key:
            told["key"] = self._greeting.key
        if self._greeting.knows_lanes:
            told["lanes"] = LANES_VERSION
        body = Message.from_dict(told).encode()
        service = self._greeting.service.encode()
        return frames.encode(Kind.CONNECT, service, body, self._greeting.name.encode())

    def end(self) -> list[Waiter]:
        """End the connection; return the waiters whose replies were pending on it."""
        self.is_open = False
        self._is_ended = True
        return self._waiting.take_all()

    def receive(self, data: bytes | memoryview, now: float) -> list[Event]:
        """Return the events in received bytes, in order."""
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
            events.append(ConnectionEnded(error))
        return events

    def sort(self, runs: list[list[bytes]]) -> list[Event]:
        """Return the events in batches of frames of the same kind and subject, from any source."""
        events: list[Event] = []
        for run in runs:
            self._sort(run, events)
        return events

    def _sort(self, run: list[bytes], events: list[Event]) -> None:
        first = run[0]
        # Most subjects do not begin with `_`, so this check is all they cost; of the others only
        # messages to the own inbox are handled one by one.
        if first[4] == _MESSAGE and (
            first[_SUBJECT : _SUBJECT + 1] != b"_" or not first.startswith(self._answers, _SUBJECT)
        ):
            events.append(run)
        else:
            events += filter(None, map(self._other, run))

    def keep_alive(self, now: float) -> bytes:
        """Return the PING to send after a silence; empty if none is due.

        Raises:
            Silent: No answer to a PING within the same time again.
        """
        if now < self.keep_alive_at():
            return b""
        # A program that was blocked received nothing either: only an unanswered ping counts, and
        # only if its answer cannot be waiting in the socket.
        if self._pinged_at is not None and now < self.keep_alive_at() + LATE_S:
            silent_s = now - self._heard_at
            raise Silent(f"no data for {silent_s:.1f} s, and no answer to a ping")
        self._pinged_at = now
        return frames.encode(Kind.PING)

    def sending(self, now: float) -> None:
        """Restart the timeout of a ping: frames in front of it are still being sent."""
        if self._pinged_at is not None:
            self._pinged_at = now

    def keep_alive_at(self) -> float:
        """Return the time at which keep_alive() is due again."""
        since = self._heard_at if self._pinged_at is None else self._pinged_at
        return since + self.ping_s

    def not_listening(self, now: float) -> None:
        """Reset the silence timer: reading is paused on this side."""
        self._heard_at = now
        self._pinged_at = None

    def subscribe(self, waiter: Waiter, names: Sequence[bytes], group: bytes, body: bytes) -> bytes:
        """Return a SUBSCRIBE frame; the body has all patterns but the first, and the options."""
        self._waiting.add_question(waiter, (False, names[0], group))
        return frames.encode(Kind.SUBSCRIBE, names[0], body, group, Flag.ANSWER)

    def request(self, waiter: Waiter, *, of_gateway: bool = False) -> bytes:
        """Return a new reply subject; messages to it go to the waiter until forget().

        Args:
            waiter: Receives the answers.
            of_gateway: The request is for the gateway itself: only its answers are accepted.
        """
        reply = (self._own_answers if of_gateway else self._answers) + self._nonces.take()
        self._waiting.add_request(waiter, reply)
        return reply

    def check_waiting(self, more: int) -> None:
        """Check that one more reply may be pending, in addition to `more` that are not yet sent.

        Raises:
            Overloaded: The limit on pending replies is reached.
        """
        self._waiting.check(more)

    def question(self, waiter: Waiter, subject: bytes, reply: bytes) -> None:
        """Await OK or ERROR for a message that is sent now, after check_waiting()."""
        self._waiting.add_checked_question(waiter, (True, subject, reply))

    def ping(self, waiter: Waiter) -> bytes:
        """Return a PING frame whose PONG goes to the waiter."""
        self._number += 1
        body = Message(number=self._number).encode()
        self._waiting.add_ping(waiter, body)
        return frames.encode(Kind.PING, body=body)

    def waiter(self, reply: bytes) -> Waiter | None:
        """Return the waiter of a reply subject."""
        return self._waiting.request(reply)

    def forget(self, waiter: Waiter) -> None:
        """Remove a waiter."""
        self._waiting.forget(waiter)

    def withdraw(self, waiter: Waiter) -> None:
        """Remove a waiter whose frame was not sent."""
        self._waiting.withdraw(waiter)

    def _greeted(self, data: bytes | memoryview, events: list[Event]) -> bytes:
        """Read the first frame; return the bytes after it, to be read with the gateway's limit."""
        self._first += data
        self._decoder.feed(data)
        frame = self._decoder.next_frame()
        if frame is None:
            return b""
        if frame[4] == Kind.ERROR:
            raise _error_in(frame)
        if frame[4] != Kind.WELCOME:
            raise BadGreeting(f"the gateway answers CONNECT with a frame of kind {frame[4]}")
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
            raise BadGreeting(f"invalid WELCOME: {error}") from error
        if version != PROTOCOL_VERSION:
            raise BadGreeting(
                f"the gateway uses protocol version {version}, this client {PROTOCOL_VERSION}"
            )
        if not (self.inbox and 0 < ping_s < math.inf):
            raise BadGreeting(f"invalid inbox {self.inbox!r} or ping_s {ping_s} in WELCOME")
        self.ping_s = min(ping_s, HEARTBEAT_S)
        if not 0 < self.body_limit_bytes <= BODY_LIMIT_MAX_BYTES:
            raise BadGreeting(f"invalid body_limit {self.body_limit_bytes} in WELCOME")
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
            # The reply subject or the body continued with the bytes of the inbox.
            return [frame]
        if not frame[5] & _FROM_GATEWAY and subject.startswith(self._own_answers):
            return Late()
        waiter = self._waiting.request(subject)
        return Late() if waiter is None else Answered(waiter, frame)

    def _ok(self, frame: bytes) -> Event | None:
        parts = frames.parse(frame)
        # Only messages have a sequence number; it starts at 1.
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
            # Every SUBSCRIBE is sent with ANSWER: this error answers none, so it revokes.
            return TakenBack(parts.subject, parts.reply, error)
        else:
            return News(parts.subject.decode(errors="replace"), error)
        return None if waiter is None else RefusedRequest(waiter, error)

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
            raise BadMessage(f"invalid GAP: {error}") from error
        return MessagesLost(gap)

    def _goodbye(self, frame: bytes) -> Event:
        facts = _readable(frame)
        named = facts.get("elsewhere", [])
        elsewhere = tuple(map(str, named)) if isinstance(named, list) else ()
        return Parting(str(facts.get("reason", "")), str(facts.get("text", "")), elsewhere)


def unsubscribe_frame(names: Sequence[bytes], group: bytes) -> bytes:
    """Return the frame that unsubscribes patterns."""
    body = patterns_body(names[1:], {})
    return frames.encode(Kind.UNSUBSCRIBE, names[0], body, group)


def goodbye_frame() -> bytes:
    """Return the frame that announces the end of the connection."""
    return frames.encode(Kind.GOODBYE, body=Message(reason="closed", text="").encode())


def patterns_body(more: Sequence[bytes], options: dict[str, object]) -> bytes:
    """Return the body of SUBSCRIBE and UNSUBSCRIBE: further patterns, and options."""
    told = dict(options)
    if more:
        told["patterns"] = [name.decode() for name in more]
    return Message.from_dict(told).encode() if told else b""


def _readable(frame: bytes) -> Message:
    """Return the message in a control frame; its body may be empty."""
    parts = frames.parse(frame)
    return Message.from_frame(frame) if parts.body else _EMPTY_BODY


def _error_in(frame: bytes) -> WeftError:
    facts = _readable(frame)
    try:
        return error_from_wire(facts.get_int64("number"), facts.get_string("text"))
    except UsageError as error:
        raise BadMessage(f"invalid ERROR: {error}") from error


def _ended_in(welcome: Message) -> WeftError | None:
    """Return the reason in WELCOME for the end of the previous connection."""
    if "ended" not in welcome:
        return None
    return error_from_wire(welcome.get_int64("ended"), welcome.get_string("ended_text"))


_EMPTY_BODY = Message()
