"""Bayeux messages dealt with, however they came: each gets one answer, now or later.

A text speaks for one client. A connect that came alone may wait for messages; beside others it is
answered with them, so that no answer waits for want of messages.
"""

from dataclasses import dataclass
from typing import Protocol

from weft.errors import BadOption, NotOpen, NotYours, Refused, TooMany, WeftError
from weft.transports.bayeux import channels
from weft.transports.bayeux.batch import Asked, Batch
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
from weft.transports.bayeux.session import Line, Session
from weft.transports.bayeux.sessions import Sessions
from weft.transports.http.exchange import Request
from weft.transports.http.server import House

# Until a client that was turned away for want of room should try again.
_FULL_S = 10.0


class SweptLine(Protocol):
    """A WebSocket that somebody should speak on."""

    def sweep(self, now_ns: int) -> None:
        """Do what is due."""


@dataclass(slots=True)
class Caller:
    """Whoever a text came from: a request, or a WebSocket and the request that opened it."""

    request: Request
    line: Line | None = None
    # What is in a URL is kept in logs: no key belongs there.
    is_in_url: bool = False
    # Who the text speaks for, as far as is known.
    session: Session | None = None


class Desk:
    """What is done with messages."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.sessions = Sessions(house)
        # Every WebSocket, whoever speaks on it.
        self.lines: set[SweptLine] = set()
        house.sweepers.append(self.sweep)

    @property
    def types(self) -> tuple[str, ...]:
        """The ways to connect that are open."""
        rules = self._house.rules
        elsewhere = (CROSS_ORIGIN_LONG_POLLING,) if rules.origins else ()
        scripts = (CALLBACK_POLLING,) if rules.jsonp else ()
        return (WEBSOCKET, LONG_POLLING, *elsewhere, *scripts)

    def sweep(self, now_ns: int) -> None:
        """Let everyone do what is due."""
        self.sessions.sweep(now_ns)
        for line in list(self.lines):
            line.sweep(now_ns)

    def deal(self, batch: Batch, caller: Caller) -> None:
        """Deal with the messages of a batch; it is settled as soon as all are answered."""
        for asked in batch.asked:
            try:
                self._take(asked, caller, is_alone=len(batch.asked) == 1)
            except WeftError as error:
                self._refuse(asked, caller, error)
        batch.settle()

    def _take(self, asked: Asked, caller: Caller, *, is_alone: bool) -> None:
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

    def _session(self, message: Said, caller: Caller) -> Session:
        """Who a message is from."""
        known_by = message.get("clientId")
        session = self.sessions.find(known_by, caller.request)
        if session is None:
            raise unknown_client()
        if caller.session is not None and caller.session is not session:
            raise NotYours("a text speaks for one client")
        caller.session = session
        return session

    def _shake_hands(self, message: Said, caller: Caller) -> Said:
        if caller.session is not None:
            raise BadOption("a text has one handshake, before all else")
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

    def _refuse(self, asked: Asked, caller: Caller, error: WeftError) -> None:
        """Say what was wrong, count it, and let it cost whoever is known to have said it."""
        message = asked.message
        if caller.session is not None:
            self._house.charge(caller.session.seat.peer, error)
        else:
            self._house.refused(type(error).__name__)
        facts: Said = {}
        if message["channel"] == channels.HANDSHAKE:
            # There may be room for it later.
            is_full = isinstance(error, TooMany)
            is_final = isinstance(error, Refused | BadOption) and not is_full
            facts["advice"] = advice("none") if is_final else advice("handshake", _FULL_S)
            facts["supportedConnectionTypes"] = list(self.types)
        elif isinstance(error, NotOpen):
            facts["advice"] = advice("handshake", self._house.rules.bayeux_interval_s)
        asked.answer = failed(message, error, **facts)
