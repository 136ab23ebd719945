"""One Bayeux client as the gateway knows it: its seat, and the connect that waits for messages.

What it is owed goes out in the answer to a connect, or straight to the WebSocket that its last
connect came by, unless it acknowledges what it gets: then only connects will do. Answers are given
after the turn that brought them, because an answer may let the next request in.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from weft.errors import Draining, Overloaded, Refused, Silent, TimedOut, WeftError
from weft.transports.bayeux.batch import Asked, Batch, array_of
from weft.transports.bayeux.delivery import Delivery
from weft.transports.bayeux.extensions import is_binary
from weft.transports.bayeux.protocol import (
    Conversation,
    Said,
    Wait,
    advice,
    failed,
    succeeded,
    text_of,
    told_gap,
    told_message,
    unknown_client,
)
from weft.transports.http.server import House
from weft.transports.replay_memory import Account
from weft.wire.frames import Flag, Frame, Kind, encode, parse

DIALECT = "bayeux"
BINARY_DIALECT = "bayeux with binary"
# On so many WebSockets one client may speak.
LINES_MAX = 4

_GOODBYE = encode(Kind.GOODBYE)
_S = 1_000_000_000


class Line(Protocol):
    """A WebSocket that a client speaks on."""

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""

    def send(self, text: bytes) -> None:
        """Send a text."""

    def leave(self, session: "Session", error: WeftError | None) -> None:
        """The session goes on elsewhere, or not at all."""

    def rest(self) -> None:
        """Take nothing in for now."""

    def go_on(self) -> None:
        """Take in again."""


class Hold(NamedTuple):
    """A connect that is not answered yet, and until when it may wait."""

    asked: Asked
    until_ns: int


class Session:
    """One client; `known_by` is what nobody else can know, `proof` stands for the key it showed."""

    def __init__(self, house: House, known_by: str, *, wants_acks: bool) -> None:
        self.known_by = known_by
        # It has the extension `binary`: it said so, or used it.
        self.reads_binary = False
        self.proof = b""
        # Of what it is owed: whoever lets it in says what it counts for.
        self.account = Account(house.kept, "")
        self.is_over = False
        self._error: WeftError | None = None
        self.on_over: Callable[[Session], None] | None = None
        self._house = house
        self._delivery = Delivery(is_acknowledged=wants_acks)
        self._conversation: Conversation[Asked] = Conversation(house.service.run.body_limit)
        # All that it speaks on, and the one that its last connect came by.
        self._lines: dict[Line, None] = {}
        self._line: Line | None = None
        self._hold: Hold | None = None
        self._is_connected = False
        self._farewell: list[Asked] = []
        self._is_leaving = False
        self._is_resting = False
        self._parked: deque[bytes] = deque()
        self._parked_size = 0
        self._touched: dict[Batch, None] = {}
        self._is_deferred = False
        self.seat = house.seat(self)
        self._expires_ns = 0
        self._count_down()

    @property
    def wants_acks(self) -> bool:
        """Say if the client acknowledges what it gets."""
        return self._delivery.is_acknowledged

    @property
    def is_waiting(self) -> bool:
        """Say if a connect waits for messages."""
        return self._hold is not None

    def is_holding(self, batch: Batch) -> bool:
        """Say if the connect that waits for messages is in this batch."""
        return self._hold is not None and self._hold.asked.batch is batch

    def advice(self) -> Said:
        """What the client should do as long as all is well."""
        rules = self._house.rules
        return advice(
            "retry",
            rules.bayeux_interval_s,
            timeout=rules.bayeux_timeout_s,
            maxInterval=rules.bayeux_lost_s,
        )

    # What the client says.

    def say(self, asked: Asked) -> None:
        """Publish, subscribe or unsubscribe; answered when the core has answered.

        Raises:
            WeftError: it cannot be said.
        """
        if self.is_over or self._is_leaving:
            raise unknown_client()
        if self._parked_size > self._house.limits.body_bytes:
            raise Overloaded("messages before this one must be taken first: try again in a moment")
        frame = self._conversation.frame(asked.message, asked)
        self.reads_binary = self.reads_binary or is_binary(asked.message)
        # It may be large, and the answer may be long in coming.
        asked.message.pop("data", None)
        if self._is_resting:
            self._parked.append(frame)
            self._parked_size += len(frame)
        else:
            self.seat.say(frame)

    def connect(self, asked: Asked, wait: Wait, line: Line | None, *, may_hold: bool) -> None:
        """Answer a connect, now if there is a reason to, else when there is one."""
        self._house.pinged(self.seat.peer)
        self._end_hold()
        if wait.acked is not None:
            self._delivery.acknowledge(wait.acked)
            self.account.keep(self._delivery.size)
        self._line = line
        # There may be room again for what waits in the outbox.
        self.seat.pour()
        timeout_s = self._house.rules.bayeux_timeout_s
        if wait.timeout_ms is not None:
            timeout_s = min(timeout_s, wait.timeout_ms / 1000)
        is_first, self._is_connected = not self._is_connected, True
        self._hold = Hold(asked, self._house.now_ns + int(timeout_s * _S))
        if is_first or not may_hold or timeout_s <= 0 or self._delivery.is_owed or self.is_over:
            self._answer_connect({"advice": self.advice()} if is_first else {})

    def disconnect(self, asked: Asked) -> None:
        """Leave when everything said before has its answer."""
        self._farewell.append(asked)
        self._is_leaving = True
        self._touch(asked.batch)

    def lost(self, batch: Batch) -> None:
        """Whoever a batch came from is gone: a connect in it waits no longer."""
        if self.is_holding(batch):
            self._hold = None
            self._count_down()

    def attach(self, line: Line) -> None:
        """The client speaks on a WebSocket; of too many the oldest is let go."""
        self._lines[line] = None
        if len(self._lines) > LINES_MAX:
            oldest = next(each for each in self._lines if each is not self._line)
            del self._lines[oldest]
            oldest.leave(self, None)

    def line_lost(self, line: Line) -> None:
        """A WebSocket is closed, or another's: the client may come back by a new one."""
        self._lines.pop(line, None)
        if self._line is line:
            self._line = None
            self._hold = None
            self._count_down()
            self.seat.pour()

    def drained(self, line: Line) -> None:
        """A WebSocket has room again."""
        if self._line is line:
            self._say_on(line)
            self.seat.pour()

    def sweep(self, now_ns: int) -> None:
        """Do what is due; called about once a second."""
        # If it is alive is told by its connects alone.
        self.seat.heard()
        if self._hold is not None:
            if self._hold.until_ns <= now_ns:
                self._answer_connect({}).settle()
        elif self._expires_ns <= now_ns:
            self.end(Silent(f"no connect within {self._house.rules.bayeux_lost_s:g} s"))

    def end(self, error: WeftError | None) -> None:
        """The session is over, at once."""
        self.seat.end(error)

    # What the seat says.

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        if self._is_leaving:
            return True
        if self._line is not None and not self.wants_acks:
            return self._line.has_room
        rules = self._house.rules
        room = self.account.room(rules.bayeux_queue_bytes, rules, self._house.limits)
        return self._delivery.size < room

    def tell(self, frames: bytes) -> None:
        """Deliver messages, and take note of answers: what goes to many is put into words once."""
        dialect = BINARY_DIALECT if self.reads_binary else DIALECT
        said = self._house.shared.said(dialect, frames, self._said, joint=b",")
        if said and not self._is_leaving:
            self._delivery.add(said)
            self.account.keep(self._delivery.size)
            if self._line is not None and not self.wants_acks:
                self._say_on(self._line)
            elif self._hold is not None:
                self._defer()

    def rest(self) -> None:
        """Take nothing in for now."""
        self._is_resting = True
        for line in self._lines:
            line.rest()

    def go_on(self) -> None:
        """Take in again."""
        self._is_resting = False
        for line in self._lines:
            line.go_on()
        self._defer()

    def over(self, error: WeftError | None) -> None:
        """The session has ended: nobody waits for an answer any longer."""
        self.is_over = True
        # Nothing is told any more, and what is owed goes with the session.
        self.account.keep(0)
        if self.on_over is not None:
            self.on_over(self)
        is_refused = isinstance(error, Refused)
        again = advice("none" if is_refused else "handshake", self._house.rules.bayeux_interval_s)
        why = error or unknown_client()
        for asked in self._conversation.take_all():
            self._answer(asked, failed(asked.message, why, advice=again))
        if self._hold is not None:
            asked, self._hold = self._hold.asked, None
            if self._farewell:
                none = advice("none", 0)
                self._answer(asked, succeeded(asked.message, clientId=self.known_by, advice=none))
            else:
                self._answer(asked, failed(asked.message, why, advice=again))
        for asked in self._farewell:
            self._answer(asked, succeeded(asked.message, clientId=self.known_by))
        self._line = None
        self._error = error
        self._defer()

    # Helpers.

    def _said(self, data: bytes) -> bytes:
        """What a frame says to the client; nothing if it is an answer, or not for it."""
        frame = parse(data)
        if frame.kind == Kind.MESSAGE:
            try:
                return text_of(told_message(data, frame, reads_binary=self.reads_binary))
            except WeftError as error:
                self._house.refused(type(error).__name__)
        elif frame.kind == Kind.GAP:
            return text_of(told_gap(frame))
        elif frame.kind == Kind.GOODBYE:
            self._is_leaving = True
            self._defer()
        elif frame.flags & Flag.ANSWER:
            self._note(frame)
        return b""

    def _note(self, frame: Frame) -> None:
        """Take note of the core's answer."""
        answered = self._conversation.answered(frame)
        if answered is not None:
            asked, error = answered
            message = asked.message
            self._answer(asked, failed(message, error) if error else succeeded(message))

    def _answer(self, asked: Asked, answer: Said) -> None:
        asked.answer = answer
        self._touch(asked.batch)

    def _touch(self, batch: Batch) -> None:
        self._touched[batch] = None
        self._defer()

    def _defer(self) -> None:
        """Do the rest after this turn, in which nothing more can be said."""
        if not self._is_deferred:
            self._is_deferred = True
            self._house.turn.later(self._settle)

    def _settle(self) -> None:
        self._is_deferred = False
        while self._parked and not self._is_resting and not self.is_over:
            frame = self._parked.popleft()
            self._parked_size -= len(frame)
            self.seat.say(frame)
        touched, self._touched = self._touched, {}
        for batch in touched:
            batch.settle()
        if self._hold is not None and self._delivery.is_owed and not self._is_leaving:
            self._answer_connect({}).settle()
        if self.is_over:
            lines, self._lines = self._lines, {}
            for line in lines:
                line.leave(self, self._error)
        elif self._is_leaving and not self._conversation:
            if self._farewell:
                self.seat.say(_GOODBYE)
            else:
                self.end(Draining("this gateway is closing down"))

    def _answer_connect(self, facts: Said) -> Batch:
        """Answer the connect that waits, with all there is to deliver; its batch is to settle."""
        hold, self._hold = self._hold, None
        if hold is None:
            raise ValueError("no connect waits")
        batch = hold.asked.batch
        batch.delivered = self._take()
        if self.wants_acks:
            facts = facts | {"ext": {"ack": self._delivery.batch}}
        hold.asked.answer = succeeded(hold.asked.message, clientId=self.known_by, **facts)
        self._count_down()
        self.seat.pour()
        return batch

    def _end_hold(self) -> None:
        """Answer a connect that waits and has been overtaken by another: the newest counts."""
        if self._hold is not None:
            asked, self._hold = self._hold.asked, None
            error = TimedOut("another connect of this client came after it")
            self._answer(asked, failed(asked.message, error, advice=self.advice()))

    def _say_on(self, line: Line) -> None:
        """Send what is owed to a WebSocket, as far as it has room."""
        if self._delivery.is_owed and not self.wants_acks and line.has_room:
            line.send(array_of(self._take()))

    def _take(self) -> list[bytes]:
        pieces = self._delivery.take()
        self.account.keep(0 if self.is_over else self._delivery.size)
        return pieces

    def _count_down(self) -> None:
        """From now on the client has so long for its next connect."""
        rules = self._house.rules
        patience_s = rules.bayeux_interval_s + rules.bayeux_lost_s
        self._expires_ns = self._house.now_ns + int(patience_s * _S)
