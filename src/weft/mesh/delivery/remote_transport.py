"""The door of another gateway: what it is owed is posted to it, wherever it is."""

from weft.broker.service import Peer
from weft.mesh.delivery.sender import Outgoing
from weft.wire.byteops import u32_at
from weft.wire.frames import Kind

_PIECE_BYTES = 64 << 10
_POSTED = (int(Kind.MESSAGE), int(Kind.ERROR))


class Post:
    """Takes what one distant peer is owed as soon as there is anything."""

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self.peer: Peer

    def fall_behind(self) -> None:
        """Send everything that is owed; what cannot be sent is counted, and asked for later."""
        outbox = self.peer.outbox
        while outbox.is_behind():
            frames = outbox.draw(_PIECE_BYTES, self._outgoing.service.now_ns)
            posted = _for_there(frames)
            if posted:
                self._outgoing.post(self.peer.number, posted)

    def press(self) -> None:
        """Nothing waits here."""

    def resume(self) -> None:
        """Nobody is held here."""

    def finish(self) -> None:
        """It is never over before it is parted with."""

    def abort(self) -> None:
        """There is nothing to close."""


def _for_there(frames: bytes) -> bytes:
    """Of whole frames those that somebody there is meant by."""
    kept = []
    at = 0
    while at < len(frames):
        end = at + u32_at(frames, at)
        if frames[at + 4] in _POSTED:
            kept.append(frames[at:end])
        at = end
    return frames if sum(map(len, kept)) == len(frames) else b"".join(kept)
