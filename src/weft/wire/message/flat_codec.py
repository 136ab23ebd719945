"""Encoding and decoding of flat messages in place; most messages are flat.

A flat message has only scalar fields. Values are looked up in the encoded body, which is_flat() has
validated, without a list of fields in between. Nested or unusual values take the general path in
codec.py.
"""

from typing import Any

from weft.wire.buffer import Writer
from weft.wire.byteops import (
    cut,
    f64_at,
    has_utf8,
    i32_at,
    i64_at,
    is_int64,
    is_same_text,
    is_text_at,
    put_bytes,
    put_f64,
    put_i32,
    put_i64,
    text_at,
    u32_at,
    u64_at,
)
from weft.wire.message.codec import checked_length, put_string
from weft.wire.message.field_types import moment
from weft.wire.message.types import FIELDS_MAX, FieldType

_STRING = int(FieldType.STRING)
_INT32 = int(FieldType.INT32)
_UINT32 = int(FieldType.UINT32)
_INT64 = int(FieldType.INT64)
_UINT64 = int(FieldType.UINT64)
_DOUBLE = int(FieldType.DOUBLE)
_BOOL = int(FieldType.BOOL)
_BLOB = int(FieldType.BLOB)
_NULL = int(FieldType.NULL)
_TIMESTAMP = int(FieldType.TIMESTAMP)

_FIELDS_MAX = FIELDS_MAX


def put_flat(writer: Writer, values: dict[str, Any]) -> bool:
    """Append the body of a message with a field for every key.

    Returns False, with nothing appended, if a name is not a str or a value is not a str, bool,
    float, bytes, None or 64-bit int; the general path then encodes it or raises.

    Raises:
        BadField: a text or blob is over the limit.
    """
    if len(values) > _FIELDS_MAX:
        return False
    start = writer.reserve(4)
    put_i32(writer.data, start, len(values))
    for name, value in values.items():
        if not (type(name) is str and has_utf8(name) and _put_field(writer, name, value)):
            writer.cut_back(start)
            return False
    return True


def is_flat(data: bytes, start: int) -> bool:
    """Return whether the bytes from an offset to the end are exactly the body of a flat message."""
    end = len(data)
    if end - start < 4:
        return False
    left = i32_at(data, start)
    if left < 0 or left > _FIELDS_MAX:
        return False
    at = start + 4
    while left > 0:
        at = after_text(data, at, end)
        if at < 0 or at >= end:
            return False
        at = after_value(data, at, end)
        if at < 0:
            return False
        left -= 1
    return at == end


def find_flat(data: bytes, start: int, name: str) -> int:
    """The offset of the type of the first field with a name in a flat body; -1 if there is none."""
    left = i32_at(data, start)
    at = start + 4
    while left > 0:
        name_end = at + 4 + i32_at(data, at)
        if is_same_text(data, at + 4, name_end, name):
            return name_end
        at = _skip(data, name_end)
        left -= 1
    return -1


def raw_at(data: bytes, at: int) -> Any:
    """The raw value of the field whose type is at an offset; see types.py."""
    kind = data[at]
    at += 1
    if kind == _STRING:
        return text_at(data, at + 4, at + 4 + i32_at(data, at))
    if kind in (_INT64, _TIMESTAMP):
        return i64_at(data, at)
    if kind == _DOUBLE:
        return f64_at(data, at)
    if kind == _BOOL:
        return data[at] == 1
    if kind == _INT32:
        return i32_at(data, at)
    if kind == _UINT32:
        return u32_at(data, at)
    if kind == _UINT64:
        return u64_at(data, at)
    if kind == _BLOB:
        return cut(data, at + 4, at + 4 + i32_at(data, at))
    return None


def dict_from_flat(data: bytes, start: int) -> dict[str, Any]:
    """A dict of the values of a flat body; the first value of a name that occurs twice."""
    values: dict[str, Any] = {}
    left = i32_at(data, start)
    at = start + 4
    while left > 0:
        name_end = at + 4 + i32_at(data, at)
        name = text_at(data, at + 4, name_end)
        if name not in values:
            raw = raw_at(data, name_end)
            values[name] = moment(raw) if data[name_end] == _TIMESTAMP else raw
        at = _skip(data, name_end)
        left -= 1
    return values


def after_text(data: bytes, at: int, end: int) -> int:
    """The end of the text whose length is at an offset; -1 if it is invalid or incomplete."""
    after = _after_blob(data, at, end)
    return after if after >= 0 and is_text_at(data, at + 4, after) else -1


def _after_blob(data: bytes, at: int, end: int) -> int:
    """The end of the blob whose length is at an offset; -1 if it is incomplete."""
    if end - at < 4:
        return -1
    length = i32_at(data, at)
    return at + 4 + length if 0 <= length <= end - at - 4 else -1


def after_value(data: bytes, at: int, end: int) -> int:
    """The end of the value whose type is at an offset; -1 if it is invalid or nested."""
    kind = data[at]
    at += 1
    size = 0
    if kind in (_INT64, _DOUBLE, _TIMESTAMP, _UINT64):
        size = 8
    elif kind in (_INT32, _UINT32):
        size = 4
    elif kind == _STRING:
        return after_text(data, at, end)
    elif kind == _BLOB:
        return _after_blob(data, at, end)
    elif kind == _BOOL:
        return at + 1 if at < end and data[at] <= 1 else -1
    elif kind != _NULL:
        return -1
    return at + size if size <= end - at else -1


def _skip(data: bytes, at: int) -> int:
    """The end of the value whose type is at an offset, in a body known to be flat."""
    kind = data[at]
    if kind in (_STRING, _BLOB):
        return at + 5 + i32_at(data, at + 1)
    if kind in (_INT32, _UINT32):
        return at + 5
    if kind == _BOOL:
        return at + 2
    return at + 1 if kind == _NULL else at + 9


def _put_field(writer: Writer, name: str, value: Any) -> bool:
    """Append a field; return False if the general path must encode the value."""
    kind = type(value)
    if kind is str:
        if not has_utf8(value):
            return False
        _put_name(writer, name, _STRING, 0)
        put_string(writer, value, 0)
    elif kind is float:
        at = _put_name(writer, name, _DOUBLE, 8)
        put_f64(writer.data, at, value)
    elif kind is int:
        if not is_int64(value):
            return False
        at = _put_name(writer, name, _INT64, 8)
        put_i64(writer.data, at, value)
    elif kind is bool:
        at = _put_name(writer, name, _BOOL, 1)
        writer.data[at] = value is True
    elif value is None:
        _put_name(writer, name, _NULL, 0)
    elif kind is bytes:
        length = checked_length(len(value))
        at = _put_name(writer, name, _BLOB, 4 + length)
        put_i32(writer.data, at, length)
        put_bytes(writer.data, at + 4, value, 0, length)
    else:
        return False
    return True


def _put_name(writer: Writer, name: str, kind: int, size: int) -> int:
    """Append a name, the type of its value and N bytes of free space; return the space's offset."""
    at = put_string(writer, name, 1 + size)
    writer.data[at] = kind
    return at + 1
