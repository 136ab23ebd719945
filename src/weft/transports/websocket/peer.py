"""Base class of adapter peers on a WebSocket, for every protocol."""

from websockets.server import ServerProtocol

from weft.broker.service import Peer
from weft.errors import WeftError
from weft.transports.adapter_peer import AdapterPeer
from weft.transports.http.connection import HttpDoor
from weft.transports.http.server import HttpServer
from weft.transports.websocket.websocket import WebSocket, close_code, open_socket


class PeerSocket:
    """One peer and its WebSocket; subclasses convert between messages and frames."""

    def __init__(self, house: HttpServer) -> None:
        self.house = house
        self.socket: WebSocket | None = None
        self.seat: AdapterPeer = house.seat(self)

    @property
    def peer(self) -> Peer:
        """The peer."""
        return self.seat.peer

    def open(self, door: HttpDoor, checked: ServerProtocol) -> None:
        """Complete a checked handshake and take over its connection."""
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
        """Close the WebSocket with a code and a reason."""
        if self.socket is not None:
            self.socket.close(code, text)

    def refuse(self, code: int, error: WeftError) -> None:
        """Close because of an error of the peer, and count it."""
        self.house.refused(type(error).__name__)
        self.close(code, str(error))
        self.seat.end(error)

    # Interface of a WebSocket's listener.

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle a message."""
        raise NotImplementedError

    def alive(self) -> None:
        """Record that the peer was active."""
        self.seat.heard()

    def pay(self) -> None:
        """Charge a control frame or a fragment."""
        self.house.pinged(self.peer)

    def drained(self) -> None:
        """Called when the WebSocket has room again."""
        self.seat.pour()

    def gone(self) -> None:
        """Called when the WebSocket is closed."""
        socket, self.socket = self.socket, None
        self.seat.end(None if socket is None else socket.error)

    # Interface of an adapter.

    @property
    def has_room(self) -> bool:
        """Return whether more can be sent now."""
        return self.socket is not None and self.socket.has_room

    def tell(self, frames: bytes) -> None:
        """Send frames."""
        raise NotImplementedError

    def rest(self) -> None:
        """Pause input."""
        if self.socket is not None:
            self.socket.stream.pause()

    def go_on(self) -> None:
        """Resume input."""
        if self.socket is not None:
            self.socket.stream.resume()

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: close, with the error as the reason."""
        self.close(close_code(error), "" if error is None else str(error))
