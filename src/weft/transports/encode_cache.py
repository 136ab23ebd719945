"""Cache of encoded frames, shared by all peers that receive the same frames."""

from collections.abc import Callable

from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind

_MESSAGE = int(Kind.MESSAGE)
_BYTES_MAX = 1 << 20


def is_message(frame: bytes) -> bool:
    """Return whether a whole frame is a MESSAGE, which most protocols encode alike for everyone."""
    return frame[4] == _MESSAGE


class Shared:
    """Encodings by protocol and frames, bounded in bytes; cleared whenever it is full."""

    def __init__(self, limit_bytes: int = _BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._known: dict[tuple[str, bytes], bytes] = {}
        self._size = 0

    def said(
        self,
        dialect: str,
        frames: bytes,
        put: Callable[[bytes], bytes],
        *,
        joint: bytes = b"",
        is_for_all: Callable[[bytes], bool] = is_message,
    ) -> bytes:
        """Return the encoding of these frames, from the cache or by calling `put` for each.

        Empty encodings are left out. The result is cached if `is_for_all` holds for every frame.
        """
        said = self.get(dialect, frames)
        if said is None:
            parts = each_frame(frames)
            said = joint.join([words for words in map(put, parts) if words])
            if all(map(is_for_all, parts)):
                self.keep(dialect, frames, said)
        return said

    def get(self, dialect: str, frames: bytes) -> bytes | None:
        """Return the cached encoding of these frames, or None."""
        return self._known.get((dialect, frames))

    def keep(self, dialect: str, frames: bytes, said: bytes) -> None:
        """Add an encoding to the cache, unless it is larger than the whole cache."""
        size = len(frames) + len(said)
        if size > self._limit_bytes or (dialect, frames) in self._known:
            return
        if self._size + size > self._limit_bytes:
            self._known.clear()
            self._size = 0
        self._known[(dialect, frames)] = said
        self._size += size
