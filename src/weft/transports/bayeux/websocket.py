"""Bayeux over a WebSocket, where a waiting connect does not delay other answers."""

from websockets.server import ServerProtocol

from weft.errors import BadOption, Draining, TooMany, TooSlow, UsageError, WeftError
from weft.transports.bayeux.batch import BayeuxBatch
from weft.transports.bayeux.channels import CONNECT
from weft.transports.bayeux.dispatcher import BayeuxSender, Desk
from weft.transports.bayeux.protocol import messages_in
from weft.transports.bayeux.session import BayeuxSession
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Request
from weft.transports.http.server import HttpServer
from weft.transports.websocket.websocket import TEXT, WebSocket, close_code, framed, open_socket

# Texts without a known client after which a WebSocket is closed.
STRANGERS_MAX = 64

_S = 1_000_000_000


class BayeuxSocket:
    """One WebSocket, and the session of its last text."""

    def __init__(self, house: HttpServer, desk: Desk, request: Request) -> None:
        self._house = house
        self._desk = desk
        self._request = request
        self._session: BayeuxSession | None = None
        self._socket: WebSocket | None = None
        self._strangers = 0
        # While it has no session: since when.
        self._since_ns = house.now_ns

    def open(self, door: HttpDoor, checked: ServerProtocol) -> None:
        """Complete a checked handshake and take over its connection."""
        self._socket, unread = open_socket(self._house, door, checked, self)
        self._desk.lines.add(self)
        if not self._socket.stream.is_open:
            self.gone()
        elif unread:
            self._socket.received(unread)

    def sweep(self, now_ns: int) -> None:
        """Close if there was no session for too long; called about once a second."""
        limit_s = self._house.limits.greeting_s
        if self._session is None and now_ns - self._since_ns > limit_s * _S:
            self._refuse(TooSlow(f"no message of a known client within {limit_s:g} s"))

    # Interface of a WebSocket's listener.

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle messages; connects are answered separately from all others."""
        if not is_text:
            self._refuse(BadOption("Bayeux messages are text, not binary"))
            return
        try:
            messages = messages_in(data)
        except UsageError as error:
            self._refuse(error)
            return
        caller = BayeuxSender(self._request, line=self)
        connects = [each for each in messages if each["channel"] == CONNECT]
        others = [each for each in messages if each["channel"] != CONNECT]
        for part in (others, *([each] for each in connects)):
            if part:
                self._desk.deal(BayeuxBatch(part, self.send), caller)
        self._speaks_for(caller.session)

    def alive(self) -> None:
        """Do nothing: liveness is decided by connects."""

    def pay(self) -> None:
        """Charge a control frame or a fragment."""
        if self._session is not None:
            self._house.pinged(self._session.seat.peer)
        else:
            self._speaks_for(None)

    def drained(self) -> None:
        """Called when there is room again."""
        if self._session is not None:
            self._session.drained(self)

    def gone(self) -> None:
        """Called when the WebSocket is closed."""
        self._socket = None
        self._desk.lines.discard(self)
        session, self._session = self._session, None
        if session is not None:
            session.line_lost(self)

    # Interface for a session.

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""
        return self._socket is not None and self._socket.has_room

    def send(self, text: bytes) -> None:
        """Send a text."""
        if self._socket is not None:
            self._socket.send(framed(TEXT, text))

    def leave(self, session: BayeuxSession, error: WeftError | None) -> None:
        """Called when the session leaves this WebSocket, which another client may then use."""
        if self._session is session:
            self._session = None
            self._since_ns = self._house.now_ns
            if isinstance(error, Draining):
                self._close(error)

    def rest(self) -> None:
        """Pause input."""
        if self._socket is not None:
            self._socket.stream.pause()

    def go_on(self) -> None:
        """Resume input."""
        if self._socket is not None:
            self._socket.stream.resume()

    def _speaks_for(self, session: BayeuxSession | None) -> None:
        """Record the session of a text; over STRANGERS_MAX texts without one, close."""
        if session is None:
            self._strangers += 1
            if self._strangers > STRANGERS_MAX:
                self._refuse(TooMany(f"{STRANGERS_MAX} texts had no known client"))
        elif not session.is_over and session is not self._session:
            if self._session is not None:
                self._session.line_lost(self)
            self._strangers = 0
            self._session = session
            session.attach(self)

    def _refuse(self, error: WeftError) -> None:
        """Count an error that has no answer, and close."""
        if self._socket is not None:
            self._house.refused(type(error).__name__)
            self._close(error)

    def _close(self, error: WeftError) -> None:
        if self._socket is not None:
            self._socket.close(close_code(error), str(error))
            self.gone()
