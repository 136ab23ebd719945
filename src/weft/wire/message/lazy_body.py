"""Lazily decoded body of a message: bytes and fields, each derived from the other on first use.

A received message keeps its frame, and with it origin, subjects and time.
"""

from weft.errors import BadFrame
from weft.wire.buffer import Writer
from weft.wire.byteops import cut, i64_at, text_at, u32_at, u64_at
from weft.wire.frames import HEADER_BYTES, Flag
from weft.wire.message.codec import decode_fields, encode_fields, put_fields
from weft.wire.message.flat_codec import find_flat, is_flat
from weft.wire.message.from_python import RawValue
from weft.wire.message.types import Fields, FieldType

_MESSAGE = int(FieldType.MESSAGE)
_BLOB = int(FieldType.BLOB)
_BARE = int(Flag.BARE)
_HEADER = HEADER_BYTES


class LazyBody(RawValue):
    """Message held as a frame, a body, fields, or several of these.

    The header fields are zero or empty if the message was not received.
    """

    _frame: bytes | None
    _body: bytes | None
    _fields: Fields | None
    # The bytes of a flat message and the offset of its body, once `_look()` has checked them.
    _flat: bytes | None
    _flat_start: int
    _is_looked_at: bool

    @property
    def subject(self) -> str:
        """The subject that it was sent to; empty if it was not received."""
        return "" if self._frame is None else _name_at(self._frame, _HEADER, self._frame[6])

    @property
    def reply(self) -> str:
        """The reply subject; empty if no reply is expected."""
        if self._frame is None:
            return ""
        return _name_at(self._frame, _HEADER + self._frame[6], self._frame[7])

    @property
    def origin(self) -> int:
        """The number of the gateway that its publisher sent it to; 0 if it was not received."""
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
        """When the gateway received it, in ns since the epoch; 0 if it was not received."""
        return 0 if self._frame is None else i64_at(self._frame, 24)

    def encode(self) -> bytes:
        """The body as bytes."""
        if self._body is None:
            if self._frame is not None and not self._frame[5] & _BARE:
                self._body = cut(self._frame, _body_start(self._frame), len(self._frame))
            else:
                self._body = encode_fields(self._read())
        return self._body

    def put(self, writer: Writer) -> None:
        """Append the body to a writer, encoding in place."""
        if self._fields is None:
            writer.put(self.encode())
        else:
            put_fields(writer, self._fields)

    def raw_kind(self) -> int:
        """The number of the message type."""
        return _MESSAGE

    def raw_form(self) -> Fields:
        """The fields; see types.py."""
        return self._read()

    def _bare_body(self) -> bytes | None:
        """The body of a frame that carries bare bytes; None otherwise."""
        if self._frame is None or not self._frame[5] & _BARE:
            return None
        return cut(self._frame, _body_start(self._frame), len(self._frame))

    def _find_flat(self, name: str) -> int:
        """The offset of the type of a named field in `_flat`; -1 if there is none.

        -2 if the message is not flat, so that its fields must be decoded.
        """
        flat = self._flat if self._is_looked_at else self._look()
        return -2 if flat is None else find_flat(flat, self._flat_start, name)

    def _look(self) -> bytes | None:
        """Check whether the message is flat; return its bytes, or None."""
        if self._frame is None:
            source = self._body
            start = 0
        else:
            source = None if self._frame[5] & _BARE else self._frame
            start = _body_start(self._frame)
        if source is not None and not is_flat(source, start):
            source = None
        self._flat = source
        self._flat_start = start
        # Set last: another thread may be reading, too.
        self._is_looked_at = True
        return source

    def _read(self) -> Fields:
        if self._fields is None:
            if self._frame is None:
                self._fields = decode_fields(self._body or b"")
            elif self._frame[5] & _BARE:
                # Complete before it is assigned: another thread may be reading, too.
                fields = Fields(False)
                fields.add("", _BLOB, self._bare_body())
                self._fields = fields
            else:
                self._fields = decode_fields(self._frame, _body_start(self._frame))
        return self._fields


def _name_at(frame: bytes, start: int, length: int) -> str:
    try:
        return text_at(frame, start, start + length)
    except UnicodeDecodeError as error:
        raise BadFrame(f"a name of {length} bytes is not UTF-8") from error


def _body_start(frame: bytes) -> int:
    return _HEADER + frame[6] + frame[7]
