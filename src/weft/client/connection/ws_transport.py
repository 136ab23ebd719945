"""WebSocket connection to a gateway, for networks that pass only HTTP.

Carries the same frames, in messages of any size; its owner uses it like any other transport.
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
from weft.client.connection.transport import SocketTransport, TransportOwner, reach
from weft.errors import Unreachable
from weft.wire.address import Address

SUBPROTOCOL = "weft.binary"

_DATA = (Opcode.BINARY, Opcode.CONT)
_log = logging.getLogger("weft.client.websockets")
_log.setLevel(logging.CRITICAL)


class WebLine(SocketTransport):
    """Transport whose bytes are carried in WebSocket messages."""

    def __init__(self, address: Address, owner: TransportOwner, service: str, key: str) -> None:
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
        """Take the new transport and send the upgrade request."""
        super().connection_made(transport)
        # Disables direct writes: every message needs WebSocket framing.
        self._fd = -1
        request = self._talk.connect()
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        self._talk.send_request(request)
        self._flush()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the payload of received messages."""
        self._talk.receive_data(bytes(self._room[:nbytes]))
        for event in self._talk.events_received():
            if isinstance(event, Response):
                self._answered(event)
            elif isinstance(event, Frame) and event.opcode in _DATA and event.data:
                self._owner.received(self, memoryview(event.data))
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection, by either side."""
        if not self.opened.done():
            self.opened.set_exception(Unreachable(f"{self.address} closed the connection"))
        super().connection_lost(error)

    def write(self, data: bytes | memoryview) -> None:
        """Send bytes in one message; ignored after the end."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(Frame(Opcode.BINARY, bytes(data)).serialize(mask=True))

    def _answered(self, response: Response) -> None:
        """Handle the gateway's response to the upgrade request."""
        if self.opened.done():
            return
        if self._talk.handshake_exc is None:
            self.opened.set_result(None)
            return
        said = problem_in(bytes(response.body or b"")).partition("\n")[0]
        why = f"{response.status_code} {response.reason_phrase}"
        self.opened.set_exception(
            Unreachable(f"{self.address} refused the WebSocket: {why}{': ' if said else ''}{said}")
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
    address: Address, tls: ssl.SSLContext | None, owner: TransportOwner, service: str, key: str = ""
) -> WebLine:
    """Connect to a gateway's address, and open a WebSocket to a service.

    The upgrade request carries the key, too: a gateway may have to start the service for it.

    Raises:
        Unreachable: No answer, or a refusal of the WebSocket.
    """
    line = WebLine(address, owner, service, key)
    await reach(line, tls)
    try:
        await line.opened
    except BaseException:
        line.abort()
        raise
    return line
