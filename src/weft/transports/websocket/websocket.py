"""WebSocket on an upgraded stream: whole messages in, frames out.

The sans-I/O protocol of the `websockets` package checks input; output is built here, because the
same bytes go to all peers.
"""

import codecs
import logging
from collections.abc import Iterable, Sequence
from typing import Protocol

from websockets.datastructures import Headers
from websockets.exceptions import NegotiationError, PayloadTooBig, ProtocolError
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Request as Handshake
from websockets.protocol import SERVER, State
from websockets.protocol import Protocol as Frames
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from weft.errors import (
    BadFrame,
    BadMessage,
    BadOption,
    ConnectionLost,
    FrameTooBig,
    InternalError,
    Overloaded,
    TooSlow,
    WeftError,
)
from weft.transports.http.connection import LINGER_S, HttpDoor
from weft.transports.http.exchange import Exchange
from weft.transports.http.server import HttpServer
from weft.transports.http.stream import Stream

# Limit of a message: the body limit times SIZE_FACTOR, plus SIZE_EXTRA for its envelope.
SIZE_FACTOR = 2
SIZE_EXTRA = 4096
PING = b"\x89\x00"
TEXT = 0x81
BINARY = 0x82

# Private close codes: below 4500 a client should reconnect, from there on it should not.
_COME_BACK = 4000
_STAY_AWAY = 4500

_CLOSE_TEXT_MAX = 123
# Headers of a refused handshake that name the requirements.
_TOLD = ("Allow", "Upgrade")
_VERSION = (("Sec-WebSocket-Version", "13"),)
_S = 1_000_000_000
_log = logging.getLogger("weft.transports.websockets")
_log.setLevel(logging.CRITICAL)


class WebSocketHandler(Protocol):
    """Receiver of a WebSocket's events."""

    def message(self, data: bytes, is_text: bool) -> None:
        """Called with a whole message."""

    def alive(self) -> None:
        """Called for a ping or a pong."""

    def pay(self) -> None:
        """Called to charge a ping or a fragment."""

    def drained(self) -> None:
        """Called when there is room again."""

    def gone(self) -> None:
        """Called once when the WebSocket is closed or broken by the other side."""


class WebSocketProtocol(Frames):
    """Protocol of a WebSocket that may be closed within a fragmented message.

    Control frames may come between fragments (RFC 6455, 5.4); `websockets` reports a close there as
    an error.
    """

    def recv_frame(self, frame: Frame) -> None:
        """Process a frame; a close discards an incomplete message."""
        if frame.opcode is Opcode.CLOSE:
            self.current_size = None
        super().recv_frame(frame)


class WebSocket:
    """One open WebSocket."""

    __slots__ = (
        "_conversation",
        "_decoder",
        "_fragments",
        "_held",
        "_house",
        "_is_over",
        "_is_text",
        "error",
        "listener",
        "stream",
    )

    def __init__(self, house: HttpServer, stream: Stream, conversation: WebSocketProtocol) -> None:
        self._house = house
        self._conversation = conversation
        self._fragments = bytearray()
        self._is_text = True
        # Closed by this side.
        self._is_over = False
        # Checks fragmented text: invalid UTF-8 closes the WebSocket at once.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        # Bytes of an incomplete message, as counted by weigh().
        self._held = 0
        self.stream = stream
        self.listener: WebSocketHandler | None = None
        # Protocol error of the other side.
        self.error: WeftError | None = None

    @property
    def has_room(self) -> bool:
        """Return whether more may be sent now."""
        return self.stream.has_room

    @property
    def farewell(self) -> int | None:
        """Return the close code of the other side; None if it sent no close frame."""
        said = self._conversation.close_rcvd
        return None if said is None else said.code

    def send(self, data: bytes) -> None:
        """Send bytes that are whole WebSocket frames."""
        self.stream.write(data)

    def take_over(self, door: HttpDoor) -> bytes:
        """Take over an HTTP connection; return its unread bytes, for received()."""
        unread = door.hand_over()
        if self.stream.is_open:
            self.stream.talk = self
            self._house.watch(self.stream)
        return unread

    def close(self, code: int, text: str = "") -> None:
        """Close with a code and a reason; later input is ignored."""
        self._is_over = True
        if self._conversation.state is State.OPEN and self.stream.is_open:
            reason = text.encode()[:_CLOSE_TEXT_MAX].decode(errors="ignore")
            self._conversation.send_close(code, reason)
            self._flush()
        self._linger()

    # Interface of a stream handler.

    def received(self, data: bytes) -> None:
        """Handle received bytes; whole messages before an error still count."""
        conversation = self._conversation
        conversation.receive_data(data)
        # A pong for each ping, in order; a close frame comes last.
        answers = iter(conversation.data_to_send())
        is_whole = False
        for event in conversation.events_received():
            if self._is_over or self.listener is None or not isinstance(event, Frame):
                continue
            if event.opcode is Opcode.PING:
                self.stream.write(next(answers))
            is_whole = self._take(event, self.listener) or is_whole
        # After our close frame, send no more pongs, only the end of the stream.
        is_silent = self._is_over and conversation.close_rcvd is None
        self._send_all([each for each in answers if not (each and is_silent)])
        if conversation.state is not State.OPEN:
            if conversation.parser_exc is not None:
                self._found(_error_of(conversation.parser_exc))
            self._linger()
            self._leave()
        else:
            self._weigh(is_whole)

    def ended(self) -> None:
        """Called when the peer sends no more: close."""
        self.stream.close()

    def drained(self) -> None:
        """Called when the stream has room again."""
        if self.listener is not None:
            self.listener.drained()

    def late(self) -> None:
        """Called at the deadline of a message, or of the other side's close."""
        if self._conversation.state is not State.OPEN:
            self.stream.close()
        else:
            limit_s = self._house.limits.frame_s
            self._fail(TooSlow(f"a message was not complete within {limit_s:g} s"))

    def is_ours(self, _data: bytes) -> bool:
        """Return True: a WebSocket stays with one service."""
        return True

    def lost(self) -> None:
        """Called when the stream is closed."""
        self._house.forget(self.stream)
        self._hold(0)
        self._leave()
        # Its parser is a generator that refers to itself: free it without the garbage collector.
        self._conversation.parser.close()

    def _take(self, frame: Frame, listener: WebSocketHandler) -> bool:
        """Handle a frame; return whether it completed a message."""
        if frame.opcode is Opcode.CLOSE:
            return False
        if frame.opcode in (Opcode.PING, Opcode.PONG):
            listener.alive()
            if frame.opcode is Opcode.PING:
                listener.pay()
            return False
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
            if frame.fin:
                return self._whole(listener, bytes(frame.data))
        else:
            listener.pay()
        self._fragments += frame.data
        if self._is_text and not self._is_utf8(bytes(frame.data), is_last=frame.fin):
            return False
        if frame.fin:
            whole, self._fragments = bytes(self._fragments), bytearray()
            listener.message(whole, self._is_text)
        return frame.fin

    def _whole(self, listener: WebSocketHandler, data: bytes) -> bool:
        if self._is_text:
            try:
                data.decode()
            except UnicodeDecodeError:
                self._refuse_text()
                return True
        listener.message(data, self._is_text)
        return True

    def _is_utf8(self, data: bytes, *, is_last: bool) -> bool:
        """Check the next fragment of a text; on invalid UTF-8 close and return False."""
        try:
            self._decoder.decode(data, is_last)
        except UnicodeDecodeError:
            self._refuse_text()
            return False
        return True

    def _refuse_text(self) -> None:
        self._fail(BadMessage("a text message must be UTF-8"), 1007)

    def _weigh(self, is_whole: bool) -> None:
        """Count the bytes of an incomplete message and set its deadline."""
        conversation = self._conversation
        held = len(conversation.reader.buffer) + len(self._fragments)
        if not held and conversation.current_size is None:
            self.stream.deadline_ns = 0
        elif is_whole or not self.stream.deadline_ns:
            limit_s = self._house.limits.frame_s
            self.stream.deadline_ns = self._house.now_ns + int(limit_s * _S)
        try:
            self._hold(held)
        except Overloaded as error:
            self._fail(error)

    def _hold(self, held: int) -> None:
        before, self._held = self._held, held
        if held != before:
            self._house.weigh(before, held)

    def _fail(self, error: WeftError, code: int = 0) -> None:
        """Close because of an error or a timeout of the other side."""
        self._found(error)
        self.close(code or close_code(error), str(error))
        self._leave()

    def _found(self, error: WeftError) -> None:
        """Record and count the first error."""
        if self.error is None:
            self.error = error
            self._house.refused(type(error).__name__)

    def _leave(self) -> None:
        listener, self.listener = self.listener, None
        if listener is not None:
            listener.gone()

    def _linger(self) -> None:
        """Set the deadline for the other side to take unsent bytes and to close."""
        limits = self._house.limits
        patience_s = limits.outbox_age_s if self.stream.unsent else LINGER_S
        self.stream.deadline_ns = self._house.now_ns + int(patience_s * _S)
        self._hold(0)

    def _flush(self) -> None:
        self._send_all(self._conversation.data_to_send())

    def _send_all(self, written: Iterable[bytes]) -> None:
        for data in written:
            if data:
                self.stream.write(data)
            else:
                self.stream.end()


def handshake(
    house: HttpServer, exchange: Exchange, subprotocols: tuple[str, ...] = ()
) -> ServerProtocol | None:
    """Check the handshake of a WebSocket; answer an invalid one and return None.

    The result's `subprotocol` is None if the request names none.
    """
    request = exchange.request
    # Without context takeover, idle WebSockets need no memory for compression.
    deflate = ServerPerMessageDeflateFactory(
        server_no_context_takeover=True, client_no_context_takeover=True
    )
    checked = ServerProtocol(
        subprotocols=[Subprotocol(name) for name in subprotocols],
        select_subprotocol=_chosen,
        extensions=[deflate] if house.rules.deflate else None,
        logger=_log,
    )
    headers = Headers(list(request.headers.items()))
    protocol = f"HTTP/{request.version}"
    asked = Handshake(request.door, headers, method=request.method, protocol=protocol)
    response = checked.accept(asked)
    if response.status_code != 101:
        house.refused("BadRequest")
        told = tuple((name, response.headers[name]) for name in _TOLD if name in response.headers)
        said = bytes(response.body or b"").decode(errors="replace").strip()
        exchange.refuse(BadOption(said), response.status_code, told + _VERSION)
        return None
    checked.send_response(response)
    return checked


def open_socket(
    house: HttpServer, door: HttpDoor, checked: ServerProtocol, listener: WebSocketHandler
) -> tuple[WebSocket, bytes]:
    """Complete a handshake; return the WebSocket, and unread bytes for its received()."""
    size = SIZE_FACTOR * house.service.run.body_limit + SIZE_EXTRA
    conversation = WebSocketProtocol(SERVER, max_size=size, logger=_log)
    conversation.extensions = checked.extensions
    socket = WebSocket(house, door.stream, conversation)
    socket.listener = listener
    unread = socket.take_over(door)
    for data in checked.data_to_send():
        socket.send(data)
    return socket, unread


def framed(kind: int, payload: bytes) -> bytes:
    """Return a message as one unmasked WebSocket frame."""
    length = len(payload)
    if length < 126:
        return bytes((kind, length)) + payload
    if length < 1 << 16:
        return bytes((kind, 126)) + length.to_bytes(2, "big") + payload
    return bytes((kind, 127)) + length.to_bytes(8, "big") + payload


def close_code(error: WeftError | None) -> int:
    """Return the close code of an error, which tells a client whether to reconnect."""
    if error is None:
        return 1000
    offset = error.number % 1000 + 100 * (error.number // 1000 - 1)
    return (_COME_BACK if isinstance(error, ConnectionLost) else _STAY_AWAY) + offset


def _error_of(failure: Exception) -> WeftError:
    """Return the WeftError for a protocol error of the other side."""
    if isinstance(failure, PayloadTooBig):
        return FrameTooBig("a message is over the size limit")
    if isinstance(failure, ProtocolError | UnicodeDecodeError):
        return BadFrame(f"invalid WebSocket frames: {failure}")
    return InternalError("failed to read a WebSocket")


def _chosen(checked: ServerProtocol, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    """Return the first subprotocol that both support; None if the client names none."""
    known = checked.available_subprotocols or []
    for each in offered:
        if each in known:
            return each
    if offered and known:
        raise NegotiationError(f"no common subprotocol: this gateway has {', '.join(known)}")
    return None
