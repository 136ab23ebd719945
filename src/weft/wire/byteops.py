"""Primitives that are C in the compiled core: integers, copies and UTF-8 at an offset.

None of them checks bounds: callers compare lengths first. Compiled modules use the C bodies of
the same names in byteops.pxd.
"""

import math
from struct import Struct

_I32 = Struct("<i")
_I64 = Struct("<q")
_F64 = Struct("<d")

Bytes = bytes | bytearray


def room_for(size: int) -> bytearray:
    """Allocate a buffer of N bytes."""
    return bytearray(size)


def u32_at(data: Bytes, at: int) -> int:
    """The little-endian unsigned 32-bit integer at an offset."""
    return int.from_bytes(data[at : at + 4], "little")


def i32_at(data: Bytes, at: int) -> int:
    """The little-endian signed 32-bit integer at an offset."""
    return int(_I32.unpack_from(data, at)[0])


def u64_at(data: Bytes, at: int) -> int:
    """The little-endian unsigned 64-bit integer at an offset."""
    return int.from_bytes(data[at : at + 8], "little")


def i64_at(data: Bytes, at: int) -> int:
    """The little-endian signed 64-bit integer at an offset."""
    return int(_I64.unpack_from(data, at)[0])


def f64_at(data: Bytes, at: int) -> float:
    """The little-endian IEEE double at an offset."""
    return float(_F64.unpack_from(data, at)[0])


def put_u32(data: bytearray, at: int, value: int) -> None:
    """Write an unsigned 32-bit integer."""
    data[at : at + 4] = value.to_bytes(4, "little")


def put_i32(data: bytearray, at: int, value: int) -> None:
    """Write a signed 32-bit integer."""
    _I32.pack_into(data, at, value)


def put_u64(data: bytearray, at: int, value: int) -> None:
    """Write an unsigned 64-bit integer."""
    data[at : at + 8] = value.to_bytes(8, "little")


def put_i64(data: bytearray, at: int, value: int) -> None:
    """Write a signed 64-bit integer."""
    _I64.pack_into(data, at, value)


def put_f64(data: bytearray, at: int, value: float) -> None:
    """Write an IEEE double."""
    _F64.pack_into(data, at, value)


def put_bytes(data: bytearray, at: int, source: Bytes, start: int, length: int) -> None:
    """Copy a range between two buffers, or between two disjoint ranges of one."""
    data[at : at + length] = source[start : start + length]


def same_bytes(left: Bytes, at: int, right: Bytes, start: int, length: int) -> bool:
    """Return whether two ranges hold the same bytes."""
    return left[at : at + length] == right[start : start + length]


def cut(data: Bytes, start: int, end: int) -> bytes:
    """Copy a range into a bytes object."""
    return bytes(data[start:end])


def text_at(data: Bytes, start: int, end: int) -> str:
    """Decode a range; raises UnicodeDecodeError if it is not UTF-8."""
    return data[start:end].decode()


def is_text_at(data: Bytes, start: int, end: int) -> bool:
    """Return whether a range is valid UTF-8."""
    try:
        data[start:end].decode()
    except UnicodeDecodeError:
        return False
    return True


def is_same_text(data: Bytes, start: int, end: int, text: str) -> bool:
    """Return whether a range is the UTF-8 form of a text; False if the text has none."""
    return bool(data[start:end] == text.encode(errors="surrogatepass"))


def is_int64(value: int) -> bool:
    """Return whether an int fits a signed 64-bit integer."""
    return -(1 << 63) <= value < 1 << 63


def has_utf8(text: str) -> bool:
    """Return whether a text has a UTF-8 form: an unpaired surrogate has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_size(text: str) -> int:
    """The number of bytes of a text as UTF-8; the text must have a UTF-8 form."""
    return len(text.encode())


def put_text(data: bytearray, at: int, text: str) -> None:
    """Write a text as UTF-8 into space that text_size() measured."""
    encoded = text.encode()
    data[at : at + len(encoded)] = encoded


def exponential(power: float) -> float:
    """Return e to a power."""
    return math.exp(power)
