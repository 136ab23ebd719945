"""Middleman over a WebSocket: the first message is a key, each later one a command.

Until the key is accepted nothing is sent; with a refused key the connection is closed without a
reason.
"""

from weft.broker.replies import end_with
from weft.errors import (
    BadKey,
    ConnectionLost,
    Draining,
    Refused,
    TimedOut,
    UnexpectedFrame,
    UsageError,
    WeftError,
)
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import HttpServer
from weft.transports.middleman.protocol import gist
from weft.transports.middleman.translator import MiddlemanTalk, error_frame, is_for_all
from weft.transports.websocket.peer import PeerSocket
from weft.transports.websocket.websocket import PING, TEXT, close_code, framed, handshake
from weft.wire.frame_splitting import greeting
from weft.wire.frames import Kind

# In characters; checked before anything else.
KEY_MAX = 512
# Close code for a refused key, without a reason.
NOT_LET_IN = 1008

_DIALECT = "middleman"
_NOT_TEXT = 1003
_WELCOME = int(Kind.WELCOME)
_PING = int(Kind.PING)
_GOODBYE = int(Kind.GOODBYE)
_S = 1_000_000_000


class MiddlemanDoor:
    """Endpoint `/{service}/middleman`."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house
        self._sockets: set[MiddlemanSocket] = set()
        house.sweepers.append(self._sweep)

    def answer(self, exchange: Exchange, door: HttpDoor) -> None:
        """Open a WebSocket."""
        checked = handshake(self._house, exchange)
        if checked is not None:
            speaker = MiddlemanSocket(self._house, self._sockets)
            self._sockets.add(speaker)
            speaker.open(door, checked)

    def _sweep(self, now_ns: int) -> None:
        """Expire old requests."""
        oldest_ns = now_ns - int(self._house.limits.request_s * _S)
        for each in self._sockets:
            each.expire(oldest_ns)


class MiddlemanSocket(PeerSocket):
    """One peer that uses middleman; an entry of `others` until it has left."""

    def __init__(self, house: HttpServer, others: "set[MiddlemanSocket]") -> None:
        super().__init__(house)
        self._others = others
        self._is_let_in = False
        body_limit = house.service.run.body_limit
        self._talk = MiddlemanTalk(self.peer.inbox, body_limit, self._token)

    def expire(self, oldest_ns: int) -> None:
        """Send a timeout error for each request older than a time."""
        for asked in self._talk.expire(oldest_ns):
            late = TimedOut(f"no answer within {self.house.limits.request_s:g} s")
            self.peer.owe(error_frame(late, asked.target, asked.request_id))

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle the key, or a command; an error is sent to the peer."""
        self.seat.heard()
        if self.peer.is_over:
            return
        if not is_text:
            wrong = UnexpectedFrame("middleman is text")
            if self._is_let_in:
                self.refuse(_NOT_TEXT, wrong)
            else:
                end_with(self.peer, wrong)
        elif self.peer.is_greeted:
            self._say(data.decode())
        else:
            self._greet(data.decode())

    def tell(self, frames: bytes) -> None:
        """Send frames as messages; those for many peers are encoded once."""
        shared = self.house.shared
        said = shared.said(_DIALECT, frames, self._said, is_for_all=is_for_all)
        if said:
            self.send(said)

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: close; without a reason if its key was not accepted."""
        self._others.discard(self)
        if self._is_let_in:
            super().over(error)
        elif error is None or isinstance(error, ConnectionLost):
            self.close(close_code(error), "")
        else:
            self.close(NOT_LET_IN, "")

    def _greet(self, text: str) -> None:
        key = text.removesuffix("\n").removesuffix("\r")
        if len(key) > KEY_MAX:
            end_with(self.peer, BadKey(f"a key has at most {KEY_MAX} characters"))
        else:
            self.seat.say(greeting(self.house.service.name, _DIALECT, key=key))

    def _say(self, text: str) -> None:
        house, peer = self.house, self.peer
        try:
            frame = self._talk.frame(text, house.now_ns, house.limits.requests)
        except (UsageError, Refused) as error:
            house.charge(peer, error)
            # By the outbox: it is bounded, and keeps the order.
            peer.owe(error_frame(error, *gist(text)))
        else:
            self.seat.say(frame)

    def _said(self, frame: bytes) -> bytes:
        kind = frame[4]
        if kind == _WELCOME:
            self._is_let_in = True
        if not self._is_let_in:
            return b""
        if kind == _PING:
            return PING
        if kind == _GOODBYE:
            # Middleman has no message that asks a client to leave: send ERR and disconnect.
            self.peer.end(Draining("this gateway is closing down"))
        house = self.house
        text = self._talk.told(frame, house.now_ns, house.limits.requests)
        return framed(TEXT, text.encode()) if text else b""

    def _token(self) -> str:
        nonces = self.house.nonces
        return (nonces.take() + nonces.take()).decode()
