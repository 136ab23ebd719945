"""A connection to a web door that says what no browser would, and notes what it hears."""

import json
from typing import Any

from tests.attacks.stranger import Stranger
from tests.transports.houses import HOST, UPGRADE, framed, get, text
from websockets.frames import CLOSE, Frame, Opcode
from websockets.protocol import CLIENT
from websockets.protocol import Protocol as Conversation

WS = b"/default/ws"


class WebStranger(Stranger):
    """One WebSocket; it has shaken hands, properly unless told otherwise."""

    def __init__(self, port: int, *headers: bytes, is_greeted: bool = True) -> None:
        super().__init__(port, get(WS, HOST, *UPGRADE, *headers))
        head = b""
        while b"\r\n\r\n" not in head:
            data = self._receive()
            assert data, head
            head += data
        self.head, _, rest = head.partition(b"\r\n\r\n")
        assert self.head.startswith(b"HTTP/1.1 101 "), self.head
        self._conversation = Conversation(CLIENT, max_size=None)
        self._heard: list[Frame] = []
        self._take(rest)
        if is_greeted:
            self.welcome = self.told()["welcome"]

    def tell(self, *datagrams: object) -> None:
        """Send datagrams, each a message."""
        self.send(*(text(json.dumps(each)) for each in datagrams))

    def told(self) -> dict[str, Any]:
        """The next datagram; pings between them are left unanswered."""
        while (frame := self.frame()) is not None and frame.opcode is Opcode.PING:
            pass
        assert frame is not None, "the connection ended"
        assert frame.opcode is Opcode.TEXT, frame
        datagram: dict[str, Any] = json.loads(bytes(frame.data))
        return datagram

    def told_until_pong(self) -> list[dict[str, Any]]:
        """Everything that the gateway has to say to what was sent so far."""
        self.tell({"ping": "so far"})
        heard = []
        while (datagram := self.told()) != {"pong": "so far"}:
            heard.append(datagram)
        return heard

    def frame(self) -> Frame | None:
        """The next frame; None at the end of the connection."""
        while not self._heard:
            data = self._receive()
            if not data:
                return None
            self._take(data)
        return self._heard.pop(0)

    def hear_close(self) -> int:
        """The code that it is closed with, 0 if it just ends; what comes before is passed over."""
        while (frame := self.frame()) is not None:
            if frame.opcode is CLOSE:
                return int.from_bytes(bytes(frame.data)[:2], "big")
        return 0

    def close(self, code: int = 1000) -> None:
        """Close it as a browser does."""
        self.send(framed(Opcode.CLOSE, code.to_bytes(2, "big")))

    def _take(self, data: bytes) -> None:
        self._conversation.receive_data(data)
        received = self._conversation.events_received()
        self._heard += [event for event in received if isinstance(event, Frame)]
