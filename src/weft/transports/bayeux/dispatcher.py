"""Dispatcher of Bayeux messages from every connection type: each gets one answer, now or later.

The messages of a text are from one client. A connect that is alone may wait for messages; one
beside others is answered at once, so that it does not delay their answers.
"""

from dataclasses import dataclass
from typing import Protocol

from weft.errors import BadOption, NotOpen, NotYours, Refused, TooMany, WeftError
from weft.transports.bayeux import channels
from weft.transports.bayeux.batch import BatchEntry, BayeuxBatch
from weft.transports.bayeux.extensions import BINARY
from weft.transports.bayeux.protocol import (
    CALLBACK_POLLING,
    CROSS_ORIGIN_LONG_POLLING,
    LONG_POLLING,
    VERSION,
    WEBSOCKET,
    Said,
    advice,
    failed,
    greeting_of,
    succeeded,
    unknown_client,
    wait_of,
)
from weft.transports.bayeux.session import BayeuxSession, SessionSocket
from weft.transports.bayeux.sessions import Sessions
from weft.transports.http.exchange import Request
from weft.transports.http.server import HttpServer

# Seconds that a client should wait that was refused because of a limit.
_FULL_S = 10.0


class SweptLine(Protocol):
    """WebSocket, possibly without a session."""

    def sweep(self, now_ns: int) -> None:
        """Do periodic work."""


@dataclass(slots=True)
class BayeuxSender:
    """Sender of a text: a request, or a WebSocket and the request that opened it."""

    request: Request
    line: SessionSocket | None = None
    # URLs are logged and stored: they must not contain a key.
    is_in_url: bool = False
    # Session of the text's messages, once known.
    session: BayeuxSession | None = None


class Desk:
    """Dispatcher of messages to sessions."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self.sessions = Sessions(house)
        # All WebSockets, with and without a session.
        self.lines: set[SweptLine] = set()
        house.sweepers.append(self.sweep)

    @property
    def types(self) -> tuple[str, ...]:
        """The connection types that are enabled."""
        rules = self._house.rules
        elsewhere = (CROSS_ORIGIN_LONG_POLLING,) if rules.origins else ()
        scripts = (CALLBACK_POLLING,) if rules.jsonp else ()
        return (WEBSOCKET, LONG_POLLING, *elsewhere, *scripts)

    def sweep(self, now_ns: int) -> None:
        """Do periodic work of all sessions and WebSockets."""
        self.sessions.sweep(now_ns)
        for line in list(self.lines):
            line.sweep(now_ns)

    def deal(self, batch: BayeuxBatch, caller: BayeuxSender) -> None:
        """Handle the messages of a batch; it is answered once all have an answer."""
        for asked in batch.asked:
            try:
                self._take(asked, caller, is_alone=len(batch.asked) == 1)
            except WeftError as error:
                self._refuse(asked, caller, error)
        batch.settle()

    def _take(self, asked: BatchEntry, caller: BayeuxSender, *, is_alone: bool) -> None:
        message = asked.message
        channel = message["channel"]
        if channel == channels.HANDSHAKE:
            asked.answer = self._shake_hands(message, caller)
            return
        session = self._session(message, caller)
        if channel == channels.CONNECT:
            session.connect(asked, wait_of(message), caller.line, may_hold=is_alone)
        elif channel == channels.DISCONNECT:
            session.disconnect(asked)
        else:
            session.say(asked)

    def _session(self, message: Said, caller: BayeuxSender) -> BayeuxSession:
        """Return the session of a message."""
        known_by = message.get("clientId")
        session = self.sessions.find(known_by, caller.request)
        if session is None:
            raise unknown_client()
        if caller.session is not None and caller.session is not session:
            raise NotYours("all messages of a text must be from one client")
        caller.session = session
        return session

    def _shake_hands(self, message: Said, caller: BayeuxSender) -> Said:
        if caller.session is not None:
            raise BadOption("a text has at most one handshake, as its first message")
        shown = greeting_of(message, self.types)
        if shown.key and caller.is_in_url:
            raise BadOption("a key in a URL is kept in logs; use a ticket")
        session = self.sessions.open(shown, caller.request)
        caller.session = session
        had = {"ack": session.wants_acks, BINARY: session.reads_binary}
        ext = {name: True for name, has in had.items() if has}
        facts: Said = {"ext": ext} if ext else {}
        return succeeded(
            message,
            clientId=session.known_by,
            version=VERSION,
            minimumVersion=VERSION,
            supportedConnectionTypes=list(self.types),
            advice=session.advice(),
            **facts,
        )

    def _refuse(self, asked: BatchEntry, caller: BayeuxSender, error: WeftError) -> None:
        """Answer a message with an error, count it, and charge its client if known."""
        message = asked.message
        if caller.session is not None:
            self._house.charge(caller.session.seat.peer, error)
        else:
            self._house.refused(type(error).__name__)
        facts: Said = {}
        if message["channel"] == channels.HANDSHAKE:
            # A later attempt may succeed.
            is_full = isinstance(error, TooMany)
            is_final = isinstance(error, Refused | BadOption) and not is_full
            facts["advice"] = advice("none") if is_final else advice("handshake", _FULL_S)
            facts["supportedConnectionTypes"] = list(self.types)
        elif isinstance(error, NotOpen):
            facts["advice"] = advice("handshake", self._house.rules.bayeux_interval_s)
        asked.answer = failed(message, error, **facts)
