"""Frames over a WebSocket: `weft.binary`, for clients that can connect only over HTTP.

WebSocket messages are pieces of one stream of frames, cut anywhere; the HELLO with the key is a
frame, too.
"""

from weft.broker.replies import end_with
from weft.errors import Overloaded, UnexpectedFrame, WeftError
from weft.transports.http.server import HttpServer
from weft.transports.websocket.peer import PeerSocket
from weft.transports.websocket.websocket import BINARY, framed
from weft.wire.byteops import u32_at
from weft.wire.frames import HEADER_BYTES, NAME_MAX_BYTES

SUBPROTOCOL = "weft.binary"

_SIZE_BYTES = 4


class FrameSocket(PeerSocket):
    """One peer that sends frames over a WebSocket."""

    def __init__(self, house: HttpServer) -> None:
        super().__init__(house)
        # Bytes of an incomplete frame, the size to wait for, and the size that weigh() counted.
        self._rest = bytearray()
        self._needed = _SIZE_BYTES
        self._held = 0
        self._frame_max = HEADER_BYTES + 2 * NAME_MAX_BYTES + house.service.run.body_limit

    def message(self, data: bytes, is_text: bool) -> None:
        """Handle a piece of the stream of frames."""
        if is_text:
            self.refuse(1003, UnexpectedFrame(f"{SUBPROTOCOL} is binary"))
            return
        self._rest += data
        end = self._whole() if len(self._rest) >= self._needed else 0
        if end:
            frames = bytes(self._rest[:end])
            del self._rest[:end]
            self.seat.say(frames)
        self._mind_rest(is_new=end > 0)

    def tell(self, frames: bytes) -> None:
        """Send frames unchanged."""
        self.send(framed(BINARY, frames))

    def over(self, error: WeftError | None) -> None:
        """Called when the peer has left: release the incomplete frame."""
        self._rest.clear()
        self._hold()
        super().over(error)

    def _whole(self) -> int:
        """Return where the last whole frame ends; the service refuses frames of invalid size."""
        data = self._rest
        at = 0
        self._needed = _SIZE_BYTES
        while len(data) - at >= _SIZE_BYTES:
            size = u32_at(data, at)
            if not HEADER_BYTES <= size <= self._frame_max:
                return len(data)
            if size > len(data) - at:
                self._needed = size
                break
            at += size
        return at

    def _mind_rest(self, *, is_new: bool) -> None:
        """Count the bytes of an incomplete frame and start its timeout."""
        peer = self.peer
        if peer.is_over:
            return
        if self._rest and (is_new or not peer.rest_ns):
            peer.rest_ns = self.house.now_ns
        try:
            self._hold()
        except Overloaded as error:
            end_with(peer, error)

    def _hold(self) -> None:
        before, self._held = self._held, len(self._rest)
        if self._held != before:
            self.house.weigh(before, self._held)
