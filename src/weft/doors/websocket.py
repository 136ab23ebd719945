"""A WebSocket on a stream that was upgraded: whole messages in, frames out.

What comes in is checked by the `websockets` package, whose protocol has no I/O; what goes out is
put together here, because the same bytes go to everyone.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from websockets.datastructures import Headers
from websockets.exceptions import NegotiationError
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import SERVER
from websockets.protocol import Protocol as Conversation
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from weft.core.service import Peer
from weft.doors.exchange import Exchange
from weft.doors.house import House
from weft.doors.http import LINGER_S, HttpDoor
from weft.doors.stream import Stream
from weft.errors import ConnectionLost, WeftError

# A message may come in so many fragments.
FRAGMENTS_MAX = 4096
# What a dialect takes more than the body of the message that it says.
SIZE_FACTOR = 2
SIZE_EXTRA = 4096
PING = b"\x89\x00"
TEXT = 0x81
BINARY = 0x82

# Close codes of ours: below 4500 to come back is of use, from there on it is not.
_COME_BACK = 4000
_STAY_AWAY = 4500

_CLOSE_TEXT_MAX = 123
_S = 1_000_000_000
_log = logging.getLogger("weft.doors.websockets")
_log.setLevel(logging.CRITICAL)


class Listener(Protocol):
    """Whoever a WebSocket is for."""

    @property
    def peer(self) -> Peer:
        """The peer at the other end."""

    def message(self, data: bytes, is_text: bool) -> None:
        """A whole message came."""

    def alive(self) -> None:
        """A ping was answered."""

    def drained(self) -> None:
        """There is room again."""

    def gone(self) -> None:
        """The WebSocket is closed; said once."""


class WebSocket:
    """One WebSocket that is open."""

    __slots__ = ("_conversation", "_fragments", "_house", "_is_text", "listener", "stream")

    def __init__(self, house: House, stream: Stream, conversation: Conversation) -> None:
        self._house = house
        self._conversation = conversation
        self._fragments: list[bytes] = []
        self._is_text = True
        self.stream = stream
        self.listener: Listener | None = None

    @property
    def has_room(self) -> bool:
        """Say if more may be sent now."""
        return self.stream.has_room

    def send(self, data: bytes) -> None:
        """Send bytes that are whole WebSocket frames."""
        self.stream.write(data)

    def take_over(self, door: HttpDoor) -> None:
        """Own the connection of a door, and what came on it already."""
        unread = door.hand_over()
        self.stream.talk = self
        self._house.watch(self.stream)
        if unread:
            self.received(unread)

    def close(self, code: int, text: str = "") -> None:
        """Say why it ends, and end it."""
        if self._conversation.close_sent is None and self.stream.is_open:
            reason = text.encode()[:_CLOSE_TEXT_MAX].decode(errors="ignore")
            self._conversation.send_close(code, reason)
            self._flush()
        self.stream.deadline_ns = self._house.now_ns + LINGER_S * _S

    # What the stream says.

    def received(self, data: bytes) -> None:
        """Take in bytes."""
        conversation = self._conversation
        conversation.receive_data(data)
        for event in conversation.events_received():
            if isinstance(event, Frame):
                self._take(event)
        if conversation.parser_exc is not None:
            self._house.refused(type(conversation.parser_exc).__name__)
        self._flush()

    def ended(self) -> None:
        """Nothing more will come."""
        self.stream.close()

    def drained(self) -> None:
        """There is room again."""
        if self.listener is not None:
            self.listener.drained()

    def late(self) -> None:
        """It was closed, and the other side does not follow."""
        self.stream.close()

    def is_ours(self, _data: bytes) -> bool:
        """Say that it is: a WebSocket is for one service."""
        return True

    def lost(self) -> None:
        """It is closed."""
        self._house.forget(self.stream)
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.gone()

    def _take(self, frame: Frame) -> None:
        listener = self.listener
        if listener is None or self._conversation.close_sent is not None:
            return
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            if frame.opcode is not Opcode.CONT:
                self._is_text = frame.opcode is Opcode.TEXT
            if frame.fin and not self._fragments:
                self._whole(listener, bytes(frame.data))
                return
            self._fragments.append(bytes(frame.data))
            if frame.fin:
                whole = b"".join(self._fragments)
                self._fragments = []
                self._whole(listener, whole)
            elif len(self._fragments) > FRAGMENTS_MAX:
                self.close(1009, f"a message has at most {FRAGMENTS_MAX} fragments")
        elif frame.opcode is Opcode.PONG:
            listener.alive()
        elif frame.opcode is Opcode.PING:
            self._house.pinged(listener.peer)

    def _whole(self, listener: Listener, data: bytes) -> None:
        if self._is_text:
            try:
                data.decode()
            except UnicodeDecodeError:
                self._house.refused("BadText")
                self.close(1007, "a text message is UTF-8")
                return
        listener.message(data, self._is_text)

    def _flush(self) -> None:
        for data in self._conversation.data_to_send():
            if data:
                self.stream.write(data)
            else:
                self.stream.deadline_ns = self._house.now_ns + LINGER_S * _S
                self.stream.end()


def handshake(
    house: House, exchange: Exchange, subprotocols: tuple[str, ...] = ()
) -> ServerProtocol | None:
    """Check that a request asks for a WebSocket properly; None if not, and that is answered.

    Its `subprotocol` is None if the request names none.
    """
    request = exchange.request
    deflate = ServerPerMessageDeflateFactory(server_no_context_takeover=True)
    checked = ServerProtocol(
        subprotocols=[Subprotocol(name) for name in subprotocols],
        select_subprotocol=_chosen,
        extensions=[deflate] if house.rules.deflate else None,
        logger=_log,
    )
    headers = Headers(list(request.headers.items()))
    asked = Handshake(request.door, headers, method=request.method)
    response = checked.accept(asked)
    if response.status_code != 101:
        house.refused("BadRequest")
        exchange.answer(response.status_code, bytes(response.body or b""))
        return None
    checked.send_response(response)
    return checked


def open_socket(house: House, door: HttpDoor, checked: ServerProtocol) -> WebSocket:
    """Answer a handshake; whoever opens it sets its listener, and has it take_over() the door."""
    size = SIZE_FACTOR * house.service.run.body_limit + SIZE_EXTRA
    conversation = Conversation(SERVER, max_size=size, logger=_log)
    conversation.extensions = checked.extensions
    socket = WebSocket(house, door.stream, conversation)
    for data in checked.data_to_send():
        door.stream.write(data)
    return socket


def framed(kind: int, payload: bytes) -> bytes:
    """A message as one WebSocket frame of a server."""
    length = len(payload)
    if length < 126:
        return bytes((kind, length)) + payload
    if length < 1 << 16:
        return bytes((kind, 126)) + length.to_bytes(2, "big") + payload
    return bytes((kind, 127)) + length.to_bytes(8, "big") + payload


def close_code(error: WeftError | None) -> int:
    """The code that says why a WebSocket is closed, and if to come back is of use."""
    if error is None:
        return 1000
    offset = error.number % 1000 + 100 * (error.number // 1000 - 1)
    return (_COME_BACK if isinstance(error, ConnectionLost) else _STAY_AWAY) + offset


def _chosen(checked: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """The first that both know; None if the client names none, and takes what comes."""
    known = checked.available_subprotocols or []
    for each in offered:
        if each in known:
            return each
    if offered and known:
        raise NegotiationError(f"the subprotocols here are {', '.join(known)}")
    return None
