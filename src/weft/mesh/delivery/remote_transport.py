"""Transport of a remote gateway: forwards its frames through the mesh."""

from weft.broker.service import Peer
from weft.mesh.delivery.sender import MeshSender
from weft.wire.byteops import u32_at
from weft.wire.frames import Kind

_PIECE_BYTES = 64 << 10
_POSTED = (int(Kind.MESSAGE), int(Kind.ERROR))


class Post:
    """Forwards frames as soon as they are queued for one remote gateway."""

    def __init__(self, outgoing: MeshSender) -> None:
        self._outgoing = outgoing
        self.peer: Peer

    def fall_behind(self) -> None:
        """Send all queued frames; any that a full link skips are retransmitted later."""
        outbox = self.peer.outbox
        while outbox.is_behind():
            frames = outbox.draw(_PIECE_BYTES, self._outgoing.service.now_ns)
            posted = _for_there(frames)
            if posted:
                self._outgoing.post(self.peer.number, posted)

    def press(self) -> None:
        """Do nothing: no backlog."""

    def resume(self) -> None:
        """Do nothing: reading is never paused."""

    def finish(self) -> None:
        """Do nothing: the peer does not end before its gateway is removed."""

    def abort(self) -> None:
        """Do nothing: no connection."""


def _for_there(frames: bytes) -> bytes:
    """Return the frames that are addressed to peers of the remote gateway."""
    kept = []
    at = 0
    while at < len(frames):
        end = at + u32_at(frames, at)
        if frames[at + 4] in _POSTED:
            kept.append(frames[at:end])
        at = end
    return frames if sum(map(len, kept)) == len(frames) else b"".join(kept)
