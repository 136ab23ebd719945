"""What was put into a dialect once for all who are owed the same frames."""

from collections.abc import Callable

from weft.wire.frame_splitting import each_frame
from weft.wire.frames import Kind

_MESSAGE = int(Kind.MESSAGE)
_BYTES_MAX = 1 << 20


def is_message(frame: bytes) -> bool:
    """Say if a whole frame is a message: most dialects say it the same to everyone."""
    return frame[4] == _MESSAGE


class Shared:
    """Translations by dialect and frames; bounded, and the oldest are not missed."""

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
        """What these frames are in a dialect, each `put` into words unless somebody had them so.

        What says nothing is left out. The words are for others, too, if every frame is for all.
        """
        said = self.get(dialect, frames)
        if said is None:
            parts = each_frame(frames)
            said = joint.join([words for words in map(put, parts) if words])
            if all(map(is_for_all, parts)):
                self.keep(dialect, frames, said)
        return said

    def get(self, dialect: str, frames: bytes) -> bytes | None:
        """What these frames are in a dialect, if somebody was told of them just now."""
        return self._known.get((dialect, frames))

    def keep(self, dialect: str, frames: bytes, said: bytes) -> None:
        """Remember a translation for the others."""
        size = len(frames) + len(said)
        if size > self._limit_bytes or (dialect, frames) in self._known:
            return
        if self._size + size > self._limit_bytes:
            self._known.clear()
            self._size = 0
        self._known[(dialect, frames)] = said
        self._size += size
