"""Message bodies: `i32` field count, then per field a name, a type byte and a value.

The reader trusts no input: it compares every length with the bytes left before using it, refuses an
impossible count before allocating for it, and does not recurse into nested messages.
"""

from typing import Any

from weft.errors import BadField, BadMessage, MessageTooBig
from weft.wire.buffer import Writer
from weft.wire.byteops import (
    cut,
    f64_at,
    i32_at,
    i64_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    put_text,
    put_u32,
    put_u64,
    text_at,
    text_size,
    u32_at,
    u64_at,
)
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, VALUES_MAX, Fields, FieldType

_STRING = int(FieldType.STRING)
_INT32 = int(FieldType.INT32)
_UINT32 = int(FieldType.UINT32)
_INT64 = int(FieldType.INT64)
_UINT64 = int(FieldType.UINT64)
_DOUBLE = int(FieldType.DOUBLE)
_MESSAGE = int(FieldType.MESSAGE)
_BOOL = int(FieldType.BOOL)
_BLOB = int(FieldType.BLOB)
_LIST = int(FieldType.LIST)
_NULL = int(FieldType.NULL)
_TIMESTAMP = int(FieldType.TIMESTAMP)

_FIELDS_MAX = FIELDS_MAX
_DEPTH_MAX = DEPTH_MAX
_VALUES_MAX = VALUES_MAX
# Least bytes of a field: an empty name and a type byte; a list item is at least its type byte.
_FIELD_MIN_BYTES = 5
_LENGTH_MAX = (1 << 31) - 1


def encode_fields(fields: Fields) -> bytes:
    """Encode the body of a message."""
    writer = Writer()
    put_fields(writer, fields)
    return writer.take()


def put_fields(writer: Writer, fields: Fields) -> None:
    """Append the body of a message, or the items of a list."""
    count = len(fields.values)
    at = writer.reserve(4)
    put_i32(writer.data, at, count)
    for position in range(count):
        kind = fields.kinds[position]
        at = writer.reserve(1) if fields.is_list else put_string(writer, fields.names[position], 1)
        writer.data[at] = kind
        _put_value(writer, kind, fields.values[position])


def decode_fields(body: bytes, start: int = 0) -> Fields:
    """Decode the message body from an offset to the end of the bytes.

    Raises:
        BadMessage: invalid message; MessageTooBig if it is over a limit.
    """
    return BodyReader(body, start).read()


def checked_length(length: int) -> int:
    """Return a length if it fits its four bytes on the wire.

    Raises:
        BadField: over the limit of 2 GiB - 1.
    """
    if length > _LENGTH_MAX:
        raise BadField(f"a string or blob of {length} bytes is over the limit of {_LENGTH_MAX}")
    return length


class BodyReader:
    """Single-use decoder of one body."""

    def __init__(self, body: bytes, start: int) -> None:
        if start < 0:
            raise ValueError(f"a body cannot begin at {start}")
        self._body = body
        self._data = self._body
        self._at = start
        self._end = len(self._body)
        self._total = 0

    def read(self) -> Fields:
        """Read the whole body."""
        here = Fields(False)
        left = self._read_count(False)
        parents: list[Fields] = []
        parents_left: list[int] = []
        while left > 0 or parents:
            if left == 0:
                child = here
                here = parents.pop()
                left = parents_left.pop()
                here.adopt(child)
                continue
            left -= 1
            if not here.is_list:
                here.names.append(self._read_text())
            kind = self._read_byte()
            here.kinds.append(kind)
            here.total += 1
            if kind not in (_MESSAGE, _LIST):
                here.values.append(self._read_value(kind))
                continue
            if len(parents) + 2 > _DEPTH_MAX:
                raise MessageTooBig(f"nesting is over the limit of {_DEPTH_MAX}")
            child = Fields(kind == _LIST)
            here.values.append(child)
            parents.append(here)
            parents_left.append(left)
            here = child
            left = self._read_count(kind == _LIST)
        if self._at != self._end:
            raise BadMessage(f"{self._end - self._at} bytes follow the message")
        return here

    def _need(self, length: int) -> int:
        """Skip N bytes and return the offset of the first."""
        at = self._at
        if length > self._end - at:
            raise BadMessage(
                f"{length} bytes are announced at offset {at} where {self._end - at} are left"
            )
        self._at = at + length
        return at

    def _read_count(self, is_list: bool) -> int:
        at = self._need(4)
        count = i32_at(self._data, at)
        left = self._end - self._at
        if count < 0 or count > (left if is_list else left // _FIELD_MIN_BYTES):
            raise BadMessage(f"a count of {count} cannot fit in the {left} bytes left")
        if count > _FIELDS_MAX and not is_list:
            raise MessageTooBig(f"{count} fields are over the limit of {_FIELDS_MAX}")
        self._total += count
        if self._total > _VALUES_MAX:
            raise MessageTooBig(f"{self._total} values are over the limit of {_VALUES_MAX}")
        return count

    def _read_byte(self) -> int:
        at = self._need(1)
        return self._data[at]

    def _read_length(self) -> int:
        at = self._need(4)
        length = i32_at(self._data, at)
        if length < 0:
            raise BadMessage(f"a length of {length} at offset {at} is negative")
        return length

    def _read_text(self) -> str:
        length = self._read_length()
        at = self._need(length)
        try:
            return text_at(self._data, at, at + length)
        except UnicodeDecodeError as error:
            raise BadMessage(f"a string of {length} bytes at offset {at} is not UTF-8") from error

    def _read_value(self, kind: int) -> object:
        if kind == _STRING:
            return self._read_text()
        if kind in (_INT64, _TIMESTAMP):
            return i64_at(self._data, self._need(8))
        if kind == _DOUBLE:
            return f64_at(self._data, self._need(8))
        if kind == _INT32:
            return i32_at(self._data, self._need(4))
        if kind == _UINT32:
            return u32_at(self._data, self._need(4))
        if kind == _UINT64:
            return u64_at(self._data, self._need(8))
        return self._read_rare_value(kind)

    def _read_rare_value(self, kind: int) -> object:
        if kind == _BOOL:
            byte = self._read_byte()
            if byte > 1:
                raise BadMessage(f"a bool is 0 or 1, not {byte}")
            return byte == 1
        if kind == _BLOB:
            length = self._read_length()
            at = self._need(length)
            return cut(self._data, at, at + length)
        if kind == _NULL:
            return None
        raise BadMessage(f"there is no field type {kind}")


def put_string(writer: Writer, text: str, more: int) -> int:
    """Append a string and N bytes of free space; return the offset of that space."""
    length = checked_length(text_size(text))
    at = writer.reserve(4 + length + more)
    put_i32(writer.data, at, length)
    put_text(writer.data, at + 4, text)
    return at + 4 + length


def _put_value(writer: Writer, kind: int, raw: Any) -> None:
    if kind == _STRING:
        put_string(writer, raw, 0)
    elif kind in (_INT64, _TIMESTAMP):
        at = writer.reserve(8)
        put_i64(writer.data, at, raw)
    elif kind == _DOUBLE:
        at = writer.reserve(8)
        put_f64(writer.data, at, raw)
    elif kind == _INT32:
        at = writer.reserve(4)
        put_i32(writer.data, at, raw)
    elif kind == _UINT32:
        at = writer.reserve(4)
        put_u32(writer.data, at, raw)
    elif kind == _UINT64:
        at = writer.reserve(8)
        put_u64(writer.data, at, raw)
    else:
        _put_rare_value(writer, kind, raw)


def _put_rare_value(writer: Writer, kind: int, raw: Any) -> None:
    if kind == _BOOL:
        at = writer.reserve(1)
        writer.data[at] = raw is True
    elif kind == _BLOB:
        length = checked_length(len(raw))
        at = writer.reserve(4 + length)
        put_i32(writer.data, at, length)
        put_bytes(writer.data, at + 4, raw, 0, length)
    elif kind in (_MESSAGE, _LIST):
        put_fields(writer, raw)
