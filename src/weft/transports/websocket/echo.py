"""`/{service}/_echo`: a WebSocket that echoes messages, for WebSocket test suites.

Enabled by `web.debug_echo`; needs no key and has no access to the service.
"""

from weft.errors import NotKnown
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import HttpServer
from weft.transports.websocket.websocket import (
    BINARY,
    TEXT,
    WebSocket,
    framed,
    handshake,
    open_socket,
)

DOOR = "_echo"


class Echoes:
    """Endpoint of echo WebSockets."""

    def __init__(self, house: HttpServer) -> None:
        self._house = house

    def answer(self, exchange: Exchange, door: HttpDoor) -> None:
        """Open a WebSocket."""
        if not self._house.rules.debug_echo:
            raise NotKnown("web.debug_echo is off")
        checked = handshake(self._house, exchange)
        if checked is not None:
            echo = Echo()
            echo.socket, unread = open_socket(self._house, door, checked, echo)
            if unread:
                echo.socket.received(unread)


class Echo:
    """One WebSocket that echoes messages; reading pauses while its client does not read."""

    def __init__(self) -> None:
        self.socket: WebSocket | None = None

    def message(self, data: bytes, is_text: bool) -> None:
        """Echo a message."""
        if self.socket is not None:
            self.socket.send(framed(TEXT if is_text else BINARY, data))

    def alive(self) -> None:
        """Do nothing."""

    def pay(self) -> None:
        """Do nothing: control frames cost nothing here."""

    def drained(self) -> None:
        """Do nothing."""

    def gone(self) -> None:
        """Called when the WebSocket is closed."""
        self.socket = None
