"""The few primitives that the core says in C: words, room, copies and UTF-8 at an offset, and exp.

None of them checks a bound: callers compare lengths first. Compiled modules take the C bodies of
the same names in words.pxd.
"""

import math
from struct import Struct

_I32 = Struct("<i")
_I64 = Struct("<q")
_F64 = Struct("<d")

Bytes = bytes | bytearray


def room_for(size: int) -> bytearray:
    """So many bytes that nothing was written to: memory is taken up only where something is."""
    return bytearray(size)


def u32_at(data: Bytes, at: int) -> int:
    """The unsigned 32-bit word at an offset."""
    return int.from_bytes(data[at : at + 4], "little")


def i32_at(data: Bytes, at: int) -> int:
    """The signed 32-bit word at an offset."""
    return int(_I32.unpack_from(data, at)[0])


def u64_at(data: Bytes, at: int) -> int:
    """The unsigned 64-bit word at an offset."""
    return int.from_bytes(data[at : at + 8], "little")


def i64_at(data: Bytes, at: int) -> int:
    """The signed 64-bit word at an offset."""
    return int(_I64.unpack_from(data, at)[0])


def f64_at(data: Bytes, at: int) -> float:
    """The IEEE double at an offset."""
    return float(_F64.unpack_from(data, at)[0])


def put_u32(data: bytearray, at: int, value: int) -> None:
    """Write an unsigned 32-bit word."""
    data[at : at + 4] = value.to_bytes(4, "little")


def put_i32(data: bytearray, at: int, value: int) -> None:
    """Write a signed 32-bit word."""
    _I32.pack_into(data, at, value)


def put_u64(data: bytearray, at: int, value: int) -> None:
    """Write an unsigned 64-bit word."""
    data[at : at + 8] = value.to_bytes(8, "little")


def put_i64(data: bytearray, at: int, value: int) -> None:
    """Write a signed 64-bit word."""
    _I64.pack_into(data, at, value)


def put_f64(data: bytearray, at: int, value: float) -> None:
    """Write an IEEE double."""
    _F64.pack_into(data, at, value)


def put_bytes(data: bytearray, at: int, source: Bytes, start: int, length: int) -> None:
    """Copy a stretch of one buffer over a stretch of another, or of itself if they are apart."""
    data[at : at + length] = source[start : start + length]


def same_bytes(left: Bytes, at: int, right: Bytes, start: int, length: int) -> bool:
    """Say if two stretches hold the same bytes."""
    return left[at : at + length] == right[start : start + length]


def cut(data: Bytes, start: int, end: int) -> bytes:
    """A stretch as a bytes object of its own."""
    return bytes(data[start:end])


def text_at(data: Bytes, start: int, end: int) -> str:
    """A stretch as text; UnicodeDecodeError if it is not UTF-8."""
    return data[start:end].decode()


def is_text_at(data: Bytes, start: int, end: int) -> bool:
    """Say if a stretch is UTF-8."""
    try:
        data[start:end].decode()
    except UnicodeDecodeError:
        return False
    return True


def is_same_text(data: Bytes, start: int, end: int, text: str) -> bool:
    """Say if a stretch is a text as UTF-8; one without such a form is like no stretch."""
    return bool(data[start:end] == text.encode(errors="surrogatepass"))


def is_int64(value: int) -> bool:
    """Say if an int fits a signed 64-bit word."""
    return -(1 << 63) <= value < 1 << 63


def has_utf8(text: str) -> bool:
    """Say if a text has a UTF-8 form: half of a surrogate pair has none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_size(text: str) -> int:
    """How many bytes a text takes as UTF-8, which it must have a form in."""
    return len(text.encode())


def put_text(data: bytearray, at: int, text: str) -> None:
    """Write a text as UTF-8 into room that text_size() measured."""
    encoded = text.encode()
    data[at : at + len(encoded)] = encoded


def exponential(power: float) -> float:
    """E to a power."""
    return math.exp(power)
