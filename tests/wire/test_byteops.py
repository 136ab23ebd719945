import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire import byteops

# How each kind of word is read and written, a value, and that value's bytes.
WORDS = [
    (byteops.u32_at, byteops.put_u32, 0, "00000000"),
    (byteops.u32_at, byteops.put_u32, 0x01020304, "04030201"),
    (byteops.u32_at, byteops.put_u32, 0xFFFFFFFF, "ffffffff"),
    (byteops.i32_at, byteops.put_i32, 0x01020304, "04030201"),
    (byteops.i32_at, byteops.put_i32, -1, "ffffffff"),
    (byteops.i32_at, byteops.put_i32, -(1 << 31), "00000080"),
    (byteops.u64_at, byteops.put_u64, 0x0102030405060708, "0807060504030201"),
    (byteops.u64_at, byteops.put_u64, (1 << 64) - 1, "ffffffffffffffff"),
    (byteops.i64_at, byteops.put_i64, -2, "feffffffffffffff"),
    (byteops.i64_at, byteops.put_i64, -(1 << 63), "0000000000000080"),
    (byteops.f64_at, byteops.put_f64, 1.0, "000000000000f03f"),
    (byteops.f64_at, byteops.put_f64, -math.inf, "000000000000f0ff"),
]


@pytest.mark.parametrize(("read", "_write", "value", "encoded"), WORDS)
def test_a_word_is_read_little_endian_at_its_offset(
    read: Callable[..., float], _write: Callable[..., None], value: float, encoded: str
) -> None:
    assert read(b"\xaa\xbb\xcc" + bytes.fromhex(encoded) + b"\xdd", 3) == value


@pytest.mark.parametrize(("_read", "write", "value", "encoded"), WORDS)
def test_a_word_is_written_in_place_and_touches_nothing_else(
    _read: Callable[..., float], write: Callable[..., None], value: float, encoded: str
) -> None:
    data = bytearray(b"\xee" * 12)
    write(data, 2, value)
    word = bytes.fromhex(encoded)
    assert data == b"\xee\xee" + word + b"\xee" * (10 - len(word))


@pytest.mark.parametrize("buffer", [bytes, bytearray])
def test_words_are_read_from_bytes_and_from_bytearrays(buffer: type) -> None:
    assert byteops.u32_at(buffer(b"\x01\x00\x00\x00"), 0) == 1


def test_a_stretch_is_copied_over_a_stretch_of_another_buffer() -> None:
    data = bytearray(b"........")
    byteops.put_bytes(data, 2, b"abcdef", 1, 3)
    assert data == b"..bcd..."


def test_a_stretch_is_copied_within_one_buffer_if_they_are_apart() -> None:
    data = bytearray(b"abcd....")
    byteops.put_bytes(data, 4, data, 0, 4)
    assert data == b"abcdabcd"


def test_a_copy_of_nothing_changes_nothing() -> None:
    data = bytearray(b"abc")
    byteops.put_bytes(data, 3, b"", 0, 0)
    assert data == b"abc"


@pytest.mark.parametrize(
    ("at", "start", "length", "same"),
    [(0, 1, 3, True), (0, 1, 4, False), (1, 1, 2, False), (2, 4, 0, True)],
)
def test_stretches_are_the_same_if_all_their_bytes_are(
    at: int, start: int, length: int, same: bool
) -> None:
    assert byteops.same_bytes(b"abcX", at, b"_abcY", start, length) is same


@pytest.mark.parametrize("buffer", [bytes, bytearray])
def test_a_cut_is_bytes_of_its_own(buffer: type) -> None:
    found = byteops.cut(buffer(b"abcdef"), 1, 4)
    assert (type(found), found) == (bytes, b"bcd")


@pytest.mark.parametrize("buffer", [bytes, bytearray])
def test_text_is_read_as_utf8(buffer: type) -> None:
    assert byteops.text_at(buffer("<žluťoučký>".encode()), 1, 14) == "žluťoučký"


@pytest.mark.parametrize(
    "bad",
    [b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"],
    ids=["never a byte", "cut short", "overlong", "surrogate", "beyond unicode"],
)
def test_text_that_is_not_utf8_is_an_error(bad: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        byteops.text_at(b"a" + bad + b"z", 1, 1 + len(bad))


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (0, True),
        (-1, True),
        ((1 << 63) - 1, True),
        (1 << 63, False),
        (-(1 << 63), True),
        (-(1 << 63) - 1, False),
        (1 << 200, False),
    ],
)
def test_an_int64_is_what_fits_a_signed_64_bit_word(value: int, fits: bool) -> None:
    assert byteops.is_int64(value) is fits


@pytest.mark.parametrize(
    ("text", "has"), [("", True), ("a\0ž🧵", True), ("\ud800", False), ("a\udfff", False)]
)
def test_only_a_text_with_half_a_surrogate_pair_has_no_utf8(text: str, has: bool) -> None:
    assert byteops.has_utf8(text) is has


@given(st.text())
def test_a_text_fills_exactly_the_room_measured_for_it(text: str) -> None:
    size = byteops.text_size(text)
    data = bytearray(b"\xee" * (size + 2))
    byteops.put_text(data, 1, text)
    assert data == b"\xee" + text.encode() + b"\xee"


@pytest.mark.parametrize("power", [-745.0, -1.0, 0.0, 0.5, 700.0])
def test_exponential_is_e_to_a_power(power: float) -> None:
    assert byteops.exponential(power) == pytest.approx(math.e**power)


@pytest.mark.parametrize("text", ["", "plain", "nine bytes", "Zürich, 東京", "0123456é"])
def test_a_stretch_is_known_as_text(text: str) -> None:
    data = b"\xff" + text.encode() + b"\xff"
    assert byteops.is_text_at(data, 1, len(data) - 1)
    assert byteops.is_same_text(data, 1, len(data) - 1, text)
    assert not byteops.is_same_text(data, 1, len(data) - 1, text + "x")


@pytest.mark.parametrize("data", [b"\xff", b"01234567\xff", b"0123456\xc3", b"\xed\xa0\x80"])
def test_what_is_not_utf8_is_no_text(data: bytes) -> None:
    assert not byteops.is_text_at(data, 0, len(data))
    assert not byteops.is_same_text(data, 0, len(data), "\ud800x")


def test_room_is_as_large_as_asked_for_and_can_be_written_to() -> None:
    room = byteops.room_for(5)
    byteops.put_bytes(room, 0, b"abcde", 0, 5)
    assert room == bytearray(b"abcde")
