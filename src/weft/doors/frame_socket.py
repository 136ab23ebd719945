"""Native frames over a WebSocket: `weft.binary`, for clients that only get through as HTTP.

Messages are pieces of one stream of frames, wherever they are cut; the greeting is a frame, too,
with the key in it.
"""

from weft.core.frames import HEADER_BYTES, NAME_MAX_BYTES
from weft.core.words import u32_at
from weft.doors.house import House
from weft.doors.peer_socket import PeerSocket
from weft.doors.websocket import BINARY, framed

SUBPROTOCOL = "weft.binary"


_NAMES_BYTES = HEADER_BYTES + 2 * NAME_MAX_BYTES


class FrameSocket(PeerSocket):
    """One peer that speaks frames."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._rest = b""

    def message(self, data: bytes, is_text: bool) -> None:
        """Say frames."""
        if is_text:
            self.close(1003, f"{SUBPROTOCOL} is binary")
            return
        data = self._rest + data
        end = self._whole(data)
        self._rest = data[end:]
        if end:
            self.seat.say(data[:end])

    def _whole(self, data: bytes) -> int:
        """Where the last whole frame ends; what cannot be one is left to the core to refuse."""
        limits = self.house.limits
        body_bytes = limits.body_bytes if self.peer.is_greeted else limits.greeting_bytes
        at = 0
        while len(data) - at >= 4:
            size = u32_at(data, at)
            if not HEADER_BYTES <= size <= body_bytes + _NAMES_BYTES:
                return len(data)
            if size > len(data) - at:
                break
            at += size
        return at

    def tell(self, frames: bytes) -> None:
        """Hand frames on as they are."""
        self.send(framed(BINARY, frames))
