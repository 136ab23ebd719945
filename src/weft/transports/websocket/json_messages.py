"""JSON datagrams over a WebSocket: `weft.json`, as browsers use it."""

from weft.errors import UnexpectedFrame, WeftError
from weft.transports.http.exchange import Request
from weft.transports.http.server import HttpServer
from weft.transports.json.datagrams import (
    Datagram,
    Datagrams,
    datagrams_in,
    error_datagram,
    since_of,
    text_of,
)
from weft.transports.websocket.peer import PeerSocket
from weft.transports.websocket.websocket import PING, TEXT, framed
from weft.wire.frames import Kind

SUBPROTOCOL = "weft.json"

_PING = int(Kind.PING)


class DatagramSocket(PeerSocket):
    """One peer that sends datagrams over a WebSocket."""

    def __init__(self, house: HttpServer, request: Request) -> None:
        """Authenticate.

        Raises:
            WeftError: the peer was refused.
        """
        super().__init__(house)
        self._datagrams = Datagrams(house.service.run.body_limit)
        house.greet(self.seat, request, f"websocket {SUBPROTOCOL}")

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle datagrams; an invalid one is answered with an error, the others still count."""
        if not is_text:
            self.refuse(1003, UnexpectedFrame(f"{SUBPROTOCOL} is text"))
            return
        if self.peer.is_over:
            return
        try:
            datagrams = datagrams_in(data)
        except WeftError as error:
            self._refuse(error, None)
            return
        for datagram in datagrams:
            try:
                self._say(datagram)
            except WeftError as error:
                self._refuse(error, datagram)

    def _say(self, datagram: Datagram) -> None:
        since = since_of(datagram)
        frame = self._datagrams.frame(datagram)
        if since is None:
            self.seat.say(frame)
        else:
            self.seat.recall(frame, since)

    def tell(self, frames: bytes) -> None:
        """Send frames as datagrams; each frame is encoded once for all peers."""
        self.send(self.house.shared.said(SUBPROTOCOL, frames, self._said))

    def _said(self, frame: bytes) -> bytes:
        if frame[4] == _PING:
            return PING
        return framed(TEXT, text_of(self._datagrams.told(frame)))

    def _refuse(self, error: WeftError, datagram: Datagram | None) -> None:
        self.house.charge(self.peer, error)
        self.send(framed(TEXT, text_of(error_datagram(error, datagram))))
