"""What the frame around a received message says: where it came from, where to, and when."""

from weft.core.build import RawValue
from weft.core.frames import HEADER_BYTES
from weft.core.words import i64_at, text_at, u32_at, u64_at
from weft.errors import BadFrame

_HEADER = HEADER_BYTES


class Envelope(RawValue):
    """The header of the frame a message came in; all zero and empty if it was made here."""

    _frame: bytes | None

    @property
    def subject(self) -> str:
        """What it was sent to; empty if it was not received."""
        return "" if self._frame is None else _name_at(self._frame, _HEADER, self._frame[6])

    @property
    def reply(self) -> str:
        """Where an answer is awaited; empty if none is."""
        if self._frame is None:
            return ""
        return _name_at(self._frame, _HEADER + self._frame[6], self._frame[7])

    @property
    def origin(self) -> int:
        """The number of the gateway it entered at; 0 if it was not received."""
        return 0 if self._frame is None else u32_at(self._frame, 8)

    @property
    def publisher(self) -> int:
        """The number of the connection that published it, at its origin."""
        return 0 if self._frame is None else u32_at(self._frame, 12)

    @property
    def sequence(self) -> int:
        """Its number among the messages of its origin and service."""
        return 0 if self._frame is None else u64_at(self._frame, 16)

    @property
    def time(self) -> int:
        """When it entered, in ns since the epoch; 0 if it was not received."""
        return 0 if self._frame is None else i64_at(self._frame, 24)


def _name_at(frame: bytes, start: int, length: int) -> str:
    try:
        return text_at(frame, start, start + length)
    except UnicodeDecodeError as error:
        raise BadFrame(f"a name of {length} bytes is not UTF-8") from error
