"""Native frames over a WebSocket: `weft.binary`, for clients that only get through as HTTP.

A message holds whole frames, one or several; the greeting is a frame, too, with the key in it.
"""

from weft.core.answers import end_with
from weft.doors.peer_socket import PeerSocket
from weft.doors.websocket import BINARY, framed
from weft.errors import BadFrame

SUBPROTOCOL = "weft.binary"


class FrameSocket(PeerSocket):
    """One peer that speaks frames."""

    def message(self, data: bytes, is_text: bool) -> None:
        """Say frames."""
        if is_text:
            self.close(1003, f"{SUBPROTOCOL} is binary")
            return
        self.seat.say(data)
        peer = self.peer
        if (peer.rest or peer.large_size) and not peer.is_over:
            end_with(peer, BadFrame("a WebSocket message holds whole frames"))

    def tell(self, frames: bytes) -> None:
        """Hand frames on as they are."""
        self.send(framed(BINARY, frames))
