"""Bayeux over a WebSocket: a connect that waits there holds up nothing else."""

from websockets.server import ServerProtocol

from weft.errors import BadOption, Draining, TooMany, TooSlow, UsageError, WeftError
from weft.transports.bayeux.batch import Batch
from weft.transports.bayeux.channels import CONNECT
from weft.transports.bayeux.dispatcher import Caller, Desk
from weft.transports.bayeux.protocol import messages_in
from weft.transports.bayeux.session import Session
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Request
from weft.transports.http.server import House
from weft.transports.websocket.websocket import TEXT, WebSocket, close_code, framed, open_socket

# Whoever speaks for nobody that is known is let go after so many attempts.
STRANGERS_MAX = 64

_S = 1_000_000_000


class BayeuxSocket:
    """One WebSocket, and the session that it last spoke for."""

    def __init__(self, house: House, desk: Desk, request: Request) -> None:
        self._house = house
        self._desk = desk
        self._request = request
        self._session: Session | None = None
        self._socket: WebSocket | None = None
        self._strangers = 0
        # While it speaks for nobody: since when.
        self._since_ns = house.now_ns

    def open(self, door: HttpDoor, checked: ServerProtocol) -> None:
        """Answer a handshake that was checked, and speak on its connection from now on."""
        self._socket, unread = open_socket(self._house, door, checked, self)
        self._desk.lines.add(self)
        if not self._socket.stream.is_open:
            self.gone()
        elif unread:
            self._socket.received(unread)

    def sweep(self, now_ns: int) -> None:
        """Close if nobody has spoken for too long; called about once a second."""
        limit_s = self._house.limits.greeting_s
        if self._session is None and now_ns - self._since_ns > limit_s * _S:
            self._refuse(TooSlow(f"no client spoke within {limit_s:g} s"))

    # What the WebSocket says.

    def message(self, data: bytes, is_text: bool) -> None:
        """Deal with messages; connects are answered apart from all others."""
        if not is_text:
            self._refuse(BadOption("Bayeux is text"))
            return
        try:
            messages = messages_in(data)
        except UsageError as error:
            self._refuse(error)
            return
        caller = Caller(self._request, line=self)
        connects = [each for each in messages if each["channel"] == CONNECT]
        others = [each for each in messages if each["channel"] != CONNECT]
        for part in (others, *([each] for each in connects)):
            if part:
                self._desk.deal(Batch(part, self.send), caller)
        self._speaks_for(caller.session)

    def alive(self) -> None:
        """A sign of life; connects say more."""

    def pay(self) -> None:
        """Let a frame cost something that is no message by itself."""
        if self._session is not None:
            self._house.pinged(self._session.seat.peer)
        else:
            self._speaks_for(None)

    def drained(self) -> None:
        """There is room again."""
        if self._session is not None:
            self._session.drained(self)

    def gone(self) -> None:
        """The WebSocket is closed."""
        self._socket = None
        self._desk.lines.discard(self)
        session, self._session = self._session, None
        if session is not None:
            session.line_lost(self)

    # What a session says.

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""
        return self._socket is not None and self._socket.has_room

    def send(self, text: bytes) -> None:
        """Send a text."""
        if self._socket is not None:
            self._socket.send(framed(TEXT, text))

    def leave(self, session: Session, error: WeftError | None) -> None:
        """The session goes on elsewhere, or not at all: someone else may follow on this line."""
        if self._session is session:
            self._session = None
            self._since_ns = self._house.now_ns
            if isinstance(error, Draining):
                self._close(error)

    def rest(self) -> None:
        """Take nothing in for now."""
        if self._socket is not None:
            self._socket.stream.pause()

    def go_on(self) -> None:
        """Take in again."""
        if self._socket is not None:
            self._socket.stream.resume()

    def _speaks_for(self, session: Session | None) -> None:
        """Note who a text was of; whoever was nobody is a stranger."""
        if session is None:
            self._strangers += 1
            if self._strangers > STRANGERS_MAX:
                self._refuse(TooMany(f"{STRANGERS_MAX} texts spoke for no client that is known"))
        elif not session.is_over and session is not self._session:
            if self._session is not None:
                self._session.line_lost(self)
            self._strangers = 0
            self._session = session
            session.attach(self)

    def _refuse(self, error: WeftError) -> None:
        """Count what no answer could be given to, and close."""
        if self._socket is not None:
            self._house.refused(type(error).__name__)
            self._close(error)

    def _close(self, error: WeftError) -> None:
        if self._socket is not None:
            self._socket.close(close_code(error), str(error))
            self.gone()
