"""A connection to a gateway through WebSocket, for where only HTTP gets through.

It carries the same frames, in messages of any size; to its owner it is a line like any other.
"""

import asyncio
import logging
import ssl

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from weft.client.connection.http_get import problem_in
from weft.client.connection.transport import Line, Owner, reach
from weft.errors import Unreachable
from weft.wire.address import Address

SUBPROTOCOL = "weft.binary"

_DATA = (Opcode.BINARY, Opcode.CONT)
_log = logging.getLogger("weft.client.websockets")
_log.setLevel(logging.CRITICAL)


class WebLine(Line):
    """A line whose bytes travel as WebSocket messages."""

    def __init__(self, address: Address, owner: Owner, service: str, key: str) -> None:
        super().__init__(address, owner)
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._key = key
        self._talk = ClientProtocol(
            parse_uri(f"{address}/{service}/ws"),
            subprotocols=[Subprotocol(SUBPROTOCOL)],
            max_size=None,
            logger=_log,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport that was made, and ask for a WebSocket."""
        super().connection_made(transport)
        # Whatever is written must be wrapped.
        self._fd = -1
        request = self._talk.connect()
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        self._talk.send_request(request)
        self._flush()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what is in the messages that arrived."""
        self._talk.receive_data(bytes(self._room[:nbytes]))
        for event in self._talk.events_received():
            if isinstance(event, Response):
                self._answered(event)
            elif isinstance(event, Frame) and event.opcode in _DATA and event.data:
                self._owner.received(self, memoryview(event.data))
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        """The end, from whichever side."""
        if not self.opened.done():
            self.opened.set_exception(Unreachable(f"{self.address} hung up"))
        super().connection_lost(error)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes, or copy them to be sent; after the end they go nowhere."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(Frame(Opcode.BINARY, bytes(data)).serialize(mask=True))

    def _answered(self, response: Response) -> None:
        """What the gateway says to the request for a WebSocket."""
        if self.opened.done():
            return
        if self._talk.handshake_exc is None:
            self.opened.set_result(None)
            return
        said = problem_in(bytes(response.body or b"")).partition("\n")[0]
        why = f"{response.status_code} {response.reason_phrase}"
        self.opened.set_exception(
            Unreachable(f"{self.address} gives no WebSocket: {why}{': ' if said else ''}{said}")
        )

    def _flush(self) -> None:
        for data in self._talk.data_to_send():
            if self._transport is None or self._transport.is_closing():
                return
            if data:
                self._transport.write(data)
            else:
                self._transport.close()


async def dial_web(
    address: Address, tls: ssl.SSLContext | None, owner: Owner, service: str, key: str = ""
) -> WebLine:
    """Connect to a gateway's address, and open a WebSocket to a service.

    The key is shown with the request, too: a gateway may have to start the service for it.

    Raises:
        Unreachable: nobody answers there, or with anything but a WebSocket.
    """
    line = WebLine(address, owner, service, key)
    await reach(line, tls)
    try:
        await line.opened
    except BaseException:
        line.abort()
        raise
    return line
