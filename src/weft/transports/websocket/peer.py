"""A peer at the other end of a WebSocket, whatever it speaks there."""

from websockets.server import ServerProtocol

from weft.broker.service import Peer
from weft.errors import WeftError
from weft.transports.adapter_peer import Seat
from weft.transports.http.connection import HttpDoor
from weft.transports.http.server import House
from weft.transports.websocket.websocket import WebSocket, close_code, open_socket


class PeerSocket:
    """One peer and its WebSocket; how the one is said on the other is for those derived from it."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.socket: WebSocket | None = None
        self.seat: Seat = house.seat(self)

    @property
    def peer(self) -> Peer:
        """The peer at the other end."""
        return self.seat.peer

    def open(self, door: HttpDoor, checked: ServerProtocol) -> None:
        """Answer a handshake that was checked, and speak on its connection from now on."""
        self.socket, unread = open_socket(self.house, door, checked, self)
        if not self.socket.stream.is_open:
            self.gone()
            return
        self.seat.pour()
        if unread:
            self.socket.received(unread)

    def send(self, data: bytes) -> None:
        """Send bytes that are whole WebSocket frames."""
        if self.socket is not None:
            self.socket.send(data)

    def close(self, code: int, text: str) -> None:
        """Close the WebSocket, and say why."""
        if self.socket is not None:
            self.socket.close(code, text)

    def refuse(self, code: int, error: WeftError) -> None:
        """End it because of what the peer sent, which counts as an error."""
        self.house.refused(type(error).__name__)
        self.close(code, str(error))
        self.seat.end(error)

    # What the WebSocket says.

    def message(self, data: bytes, is_text: bool) -> None:
        """Say what a message says."""
        raise NotImplementedError

    def alive(self) -> None:
        """A sign of life came."""
        self.seat.heard()

    def pay(self) -> None:
        """Let a frame cost something that is no message by itself."""
        self.house.pinged(self.peer)

    def drained(self) -> None:
        """There is room again."""
        self.seat.pour()

    def gone(self) -> None:
        """The WebSocket is closed."""
        socket, self.socket = self.socket, None
        self.seat.end(None if socket is None else socket.error)

    # What the seat says.

    @property
    def has_room(self) -> bool:
        """Say if more can be told now."""
        return self.socket is not None and self.socket.has_room

    def tell(self, frames: bytes) -> None:
        """Tell of frames."""
        raise NotImplementedError

    def rest(self) -> None:
        """Take nothing in for now."""
        if self.socket is not None:
            self.socket.stream.pause()

    def go_on(self) -> None:
        """Take in again."""
        if self.socket is not None:
            self.socket.stream.resume()

    def over(self, error: WeftError | None) -> None:
        """The peer has left: close, and say why."""
        self.close(close_code(error), "" if error is None else str(error))
