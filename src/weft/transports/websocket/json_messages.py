"""Datagrams over a WebSocket: `weft.json`, the door that browsers come in by."""

from weft.errors import UnexpectedFrame, WeftError
from weft.transports.http.exchange import Request
from weft.transports.http.server import House
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
    """One peer that speaks datagrams."""

    def __init__(self, house: House, request: Request) -> None:
        """Greet a newcomer.

        Raises:
            WeftError: it is not let in.
        """
        super().__init__(house)
        self._datagrams = Datagrams(house.service.run.body_limit)
        house.greet(self.seat, request, f"websocket {SUBPROTOCOL}")

    def message(self, data: bytes, is_text: bool) -> None:
        """Say what datagrams say; what is wrong with one is told, and the others count."""
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
        """Tell of frames: what goes to many is put into words once."""
        self.send(self.house.shared.said(SUBPROTOCOL, frames, self._said))

    def _said(self, frame: bytes) -> bytes:
        if frame[4] == _PING:
            return PING
        return framed(TEXT, text_of(self._datagrams.told(frame)))

    def _refuse(self, error: WeftError, datagram: Datagram | None) -> None:
        self.house.charge(self.peer, error)
        self.send(framed(TEXT, text_of(error_datagram(error, datagram))))
