"""`/{service}/_echo`: a WebSocket that says back what it hears, for suites that test WebSockets.

It is there only where `web.debug_echo` is on, and leads to nobody: no key is asked for it.
"""

from weft.errors import NotKnown
from weft.transports.http.connection import HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import House
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
    """The door."""

    def __init__(self, house: House) -> None:
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
    """One WebSocket that says back what it hears; who does not read is not read from."""

    def __init__(self) -> None:
        self.socket: WebSocket | None = None

    def message(self, data: bytes, is_text: bool) -> None:
        """Say it back."""
        if self.socket is not None:
            self.socket.send(framed(TEXT if is_text else BINARY, data))

    def alive(self) -> None:
        """Nobody minds."""

    def pay(self) -> None:
        """It is free."""

    def drained(self) -> None:
        """Nothing waits."""

    def gone(self) -> None:
        """It is closed."""
        self.socket = None
