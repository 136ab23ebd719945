"""What was put into a dialect once for all who are owed the same frames."""

_BYTES_MAX = 1 << 20


class Shared:
    """Translations by dialect and frames; bounded, and the oldest are not missed."""

    def __init__(self, limit_bytes: int = _BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._known: dict[tuple[str, bytes], bytes] = {}
        self._size = 0

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
