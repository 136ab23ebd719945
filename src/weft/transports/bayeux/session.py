"""Session of one Bayeux client: its adapter peer, and a connect that waits for messages.

Messages are sent in the answer to a connect, or directly over the WebSocket of the last connect;
with acknowledgements, only in answers to connects. Answers are sent after the turn that produced
them, because an answer may trigger the next request.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from weft.errors import Draining, Overloaded, Refused, Silent, TimedOut, WeftError
from weft.transports.bayeux.batch import BatchEntry, BayeuxBatch, array_of
from weft.transports.bayeux.delivery import Delivery
from weft.transports.bayeux.extensions import is_binary
from weft.transports.bayeux.protocol import (
    PendingAnswers,
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
from weft.transports.http.server import HttpServer
from weft.transports.replay_memory import Account
from weft.wire.frames import Flag, Frame, Kind, encode, parse

DIALECT = "bayeux"
BINARY_DIALECT = "bayeux with binary"
# WebSockets that one client may use at the same time.
LINES_MAX = 4

_GOODBYE = encode(Kind.GOODBYE)
_S = 1_000_000_000


class SessionSocket(Protocol):
    """WebSocket of a session."""

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""

    def send(self, text: bytes) -> None:
        """Send a text."""

    def leave(self, session: "BayeuxSession", error: WeftError | None) -> None:
        """Called when the session has ended or no longer uses this WebSocket."""

    def rest(self) -> None:
        """Pause input."""

    def go_on(self) -> None:
        """Resume input."""


class HeldConnect(NamedTuple):
    """Connect that is not answered yet, and its deadline."""

    asked: BatchEntry
    until_ns: int


class BayeuxSession:
    """One client; `known_by` is its secret id, `proof` the digest of its key."""

    def __init__(self, house: HttpServer, known_by: str, *, wants_acks: bool) -> None:
        self.known_by = known_by
        # The client supports the extension `binary`: announced or used.
        self.reads_binary = False
        self.proof = b""
        # Memory of queued messages; sessions.py sets the holder.
        self.account = Account(house.kept, "")
        self.is_over = False
        self._error: WeftError | None = None
        self.on_over: Callable[[BayeuxSession], None] | None = None
        self._house = house
        self._delivery = Delivery(is_acknowledged=wants_acks)
        self._conversation: PendingAnswers[BatchEntry] = PendingAnswers(
            house.service.run.body_limit
        )
        # All its WebSockets, and the one of the last connect.
        self._lines: dict[SessionSocket, None] = {}
        self._line: SessionSocket | None = None
        self._hold: HeldConnect | None = None
        self._is_connected = False
        self._farewell: list[BatchEntry] = []
        self._is_leaving = False
        self._is_resting = False
        self._parked: deque[bytes] = deque()
        self._parked_size = 0
        self._touched: dict[BayeuxBatch, None] = {}
        self._is_deferred = False
        self.seat = house.seat(self)
        self._expires_ns = 0
        self._count_down()

    @property
    def wants_acks(self) -> bool:
        """Return whether the client acknowledges batches."""
        return self._delivery.is_acknowledged

    @property
    def is_waiting(self) -> bool:
        """Return whether a connect waits for messages."""
        return self._hold is not None

    def is_holding(self, batch: BayeuxBatch) -> bool:
        """Return whether the connect that waits for messages is in this batch."""
        return self._hold is not None and self._hold.asked.batch is batch

    def advice(self) -> Said:
        """Return the `advice` of the normal state."""
        rules = self._house.rules
        return advice(
            "retry",
            rules.bayeux_interval_s,
            timeout=rules.bayeux_timeout_s,
            maxInterval=rules.bayeux_lost_s,
        )

    # Called by the dispatcher and WebSockets.

    def say(self, asked: BatchEntry) -> None:
        """Publish, subscribe or unsubscribe; answered once the service has answered.

        Raises:
            WeftError: invalid message, or the session has ended or is overloaded.
        """
        if self.is_over or self._is_leaving:
            raise unknown_client()
        if self._parked_size > self._house.limits.body_bytes:
            raise Overloaded("too many messages are waiting: try again in a moment")
        frame = self._conversation.frame(asked.message, asked)
        self.reads_binary = self.reads_binary or is_binary(asked.message)
        # It may be large, and the answer may take long.
        asked.message.pop("data", None)
        if self._is_resting:
            self._parked.append(frame)
            self._parked_size += len(frame)
        else:
            self.seat.say(frame)

    def connect(
        self, asked: BatchEntry, wait: Wait, line: SessionSocket | None, *, may_hold: bool
    ) -> None:
        """Answer a connect: now if there is a reason, otherwise once there is one."""
        self._house.pinged(self.seat.peer)
        self._end_hold()
        if wait.acked is not None:
            self._delivery.acknowledge(wait.acked)
            self.account.keep(self._delivery.size)
        self._line = line
        # There may be room again for frames in the outbox.
        self.seat.pour()
        timeout_s = self._house.rules.bayeux_timeout_s
        if wait.timeout_ms is not None:
            timeout_s = min(timeout_s, wait.timeout_ms / 1000)
        is_first, self._is_connected = not self._is_connected, True
        self._hold = HeldConnect(asked, self._house.now_ns + int(timeout_s * _S))
        if is_first or not may_hold or timeout_s <= 0 or self._delivery.is_owed or self.is_over:
            self._answer_connect({"advice": self.advice()} if is_first else {})

    def disconnect(self, asked: BatchEntry) -> None:
        """Leave once all earlier messages have their answers."""
        self._farewell.append(asked)
        self._is_leaving = True
        self._touch(asked.batch)

    def lost(self, batch: BayeuxBatch) -> None:
        """Called when the connection of a batch is lost: drop a connect that waits in it."""
        if self.is_holding(batch):
            self._hold = None
            self._count_down()

    def attach(self, line: SessionSocket) -> None:
        """Use a WebSocket, too; over LINES_MAX the oldest is let go."""
        self._lines[line] = None
        if len(self._lines) > LINES_MAX:
            oldest = next(each for each in self._lines if each is not self._line)
            del self._lines[oldest]
            oldest.leave(self, None)

    def line_lost(self, line: SessionSocket) -> None:
        """Called when a WebSocket is closed or serves another session; the client may reconnect."""
        self._lines.pop(line, None)
        if self._line is line:
            self._line = None
            self._hold = None
            self._count_down()
            self.seat.pour()

    def drained(self, line: SessionSocket) -> None:
        """Called when a WebSocket has room again."""
        if self._line is line:
            self._say_on(line)
            self.seat.pour()

    def sweep(self, now_ns: int) -> None:
        """Do periodic work; called about once a second."""
        # Liveness is decided by connects alone.
        self.seat.heard()
        if self._hold is not None:
            if self._hold.until_ns <= now_ns:
                self._answer_connect({}).settle()
        elif self._expires_ns <= now_ns:
            self.end(Silent(f"no connect within {self._house.rules.bayeux_lost_s:g} s"))

    def end(self, error: WeftError | None) -> None:
        """End the session at once."""
        self.seat.end(error)

    # Interface of an adapter.

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        if self._is_leaving:
            return True
        if self._line is not None and not self.wants_acks:
            return self._line.has_room
        rules = self._house.rules
        room = self.account.room(rules.bayeux_queue_bytes, rules, self._house.limits)
        return self._delivery.size < room

    def tell(self, frames: bytes) -> None:
        """Deliver messages, encoded once for all clients, and record answers."""
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
        """Pause input."""
        self._is_resting = True
        for line in self._lines:
            line.rest()

    def go_on(self) -> None:
        """Resume input."""
        self._is_resting = False
        for line in self._lines:
            line.go_on()
        self._defer()

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: fail pending messages."""
        self.is_over = True
        # Nothing more is sent: queued messages are dropped with the session.
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

    # Internal.

    def _said(self, data: bytes) -> bytes:
        """Return the message of a frame; empty for an answer, or if the client must not get it."""
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
        """Record the service's answer to a message."""
        answered = self._conversation.answered(frame)
        if answered is not None:
            asked, error = answered
            message = asked.message
            self._answer(asked, failed(message, error) if error else succeeded(message))

    def _answer(self, asked: BatchEntry, answer: Said) -> None:
        asked.answer = answer
        self._touch(asked.batch)

    def _touch(self, batch: BayeuxBatch) -> None:
        self._touched[batch] = None
        self._defer()

    def _defer(self) -> None:
        """Schedule _settle() for after this turn, in which no frame can be handled any more."""
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

    def _answer_connect(self, facts: Said) -> BayeuxBatch:
        """Answer the waiting connect, with all queued messages; return its batch, for settle()."""
        hold, self._hold = self._hold, None
        if hold is None:
            raise ValueError("no connect is waiting")
        batch = hold.asked.batch
        batch.delivered = self._take()
        if self.wants_acks:
            facts = facts | {"ext": {"ack": self._delivery.batch}}
        hold.asked.answer = succeeded(hold.asked.message, clientId=self.known_by, **facts)
        self._count_down()
        self.seat.pour()
        return batch

    def _end_hold(self) -> None:
        """Answer a waiting connect that was replaced by a newer one."""
        if self._hold is not None:
            asked, self._hold = self._hold.asked, None
            error = TimedOut("replaced by another connect of this client")
            self._answer(asked, failed(asked.message, error, advice=self.advice()))

    def _say_on(self, line: SessionSocket) -> None:
        """Send queued messages over a WebSocket, if it has room."""
        if self._delivery.is_owed and not self.wants_acks and line.has_room:
            line.send(array_of(self._take()))

    def _take(self) -> list[bytes]:
        pieces = self._delivery.take()
        self.account.keep(0 if self.is_over else self._delivery.size)
        return pieces

    def _count_down(self) -> None:
        """Start the timeout for the client's next connect."""
        rules = self._house.rules
        patience_s = rules.bayeux_interval_s + rules.bayeux_lost_s
        self._expires_ns = self._house.now_ns + int(patience_s * _S)
