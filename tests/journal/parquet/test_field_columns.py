import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import ProtocolError
from weft.journal.parquet.field_columns import FieldColumn, FieldReader, Form
from weft.wire.message.flat_codec import is_flat
from weft.wire.message.message import Message
from weft.wire.message.types import VALUES_MAX


def laid(bodies: list[bytes], start: int = 0) -> tuple[bytes, bytes, bytes, int]:
    """Bodies as Arrow lays them out."""
    ends = [start]
    for body in bodies:
        ends.append(ends[-1] + len(body))
    rows = len(bodies)
    return struct.pack(f"<{rows + 1}i", *ends), b"".join(bodies), bytes(8 * rows), rows


def numbers(column: FieldColumn, rows: int) -> list[int | None]:
    values = memoryview(column.values).cast("q").tolist()
    known = column.validity
    return [values[row] if known[row >> 3] >> (row & 7) & 1 else None for row in range(rows)]


def is_message(body: bytes) -> bool:
    try:
        len(Message.from_body(body))
    except ProtocolError:
        return False
    return True


def nested(levels: int, values: int) -> bytes:
    """A message with so many levels in all, the last a list of so many nulls."""
    lists = b"\x10\1\0\0\0" * (levels - 2)
    items = b"\x10" + struct.pack("<i", values) + b"\x11" * values
    return b"\1\0\0\0\1\0\0\0a" + lists + items


def test_a_reader_can_be_used_again() -> None:
    column = FieldColumn(b"n", Form.INTEGER)
    reader = FieldReader([column])
    for rows in (20, 3, 100):
        bodies = [Message(n=row, m=1).encode() for row in range(rows)]
        assert reader.read(*laid(bodies, start=77)) == -1
        assert numbers(column, rows) == list(range(rows))
        assert column.nulls == 0


def test_a_column_that_was_odd_is_not_in_the_next_bodies() -> None:
    column = FieldColumn(b"n", Form.INTEGER)
    reader = FieldReader([column])
    seen = []
    for value in ("one", 1):
        assert reader.read(*laid([Message(n=value).encode(), Message(n=1).encode()])) == -1
        seen.append(column.is_odd)
    assert seen == [True, False]
    assert numbers(column, 2) == [1, 1]


@given(st.binary(max_size=60))
def test_the_row_of_what_is_no_message_is_told(body: bytes) -> None:
    reader = FieldReader([FieldColumn(b"n", Form.INTEGER)])
    whole = Message(n=1).encode()
    assert reader.read(*laid([whole, body, whole])) == (-1 if is_message(body) else 1)


@pytest.mark.parametrize(
    "body",
    [
        nested(16, 1),
        nested(17, 1),
        nested(2, VALUES_MAX - 1),
        nested(2, VALUES_MAX),
        Message(n={"n": [1, {"n": "x"}, None]}).encode(),
        struct.pack("<i", 4096) + b"\0\0\0\0\x11" * 4096,
        struct.pack("<i", 4097) + b"\0\0\0\0\x11" * 4097,
        struct.pack("<i", -1),
        struct.pack("<i", 2**31 - 1) + b"\0\0\0\0\x11",
        b"\1\0\0\0" + struct.pack("<i", 2**31 - 1) + b"a\x11",
        b"\1\0\0\0\0\0\0\0\x07" + struct.pack("<i", 4097) + b"\0\0\0\0\x11" * 4097,
        b"\1\0\0\0\0\0\0\0\x10" + struct.pack("<i", -5),
        b"\1\0\0\0\1\0\0\0\xff\x11",
        b"\1\0\0\0\0\0\0\0",
        b"\1\0\0\0\0\0\0\0\x08\x02",
        b"\1\0\0\0\0\0\0\0\x13",
        b"\0\0\0\0\0",
        b"\0\0\0",
        b"",
    ],
)
@pytest.mark.parametrize("cut", [0, 1])
def test_limits_are_those_of_messages(body: bytes, cut: int) -> None:
    body = body[: len(body) - cut]
    assert FieldReader([]).read(*laid([body])) == (-1 if is_message(body) else 0)


@given(st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=9)), st.data())
def test_every_cut_is_noticed(values: dict[str, int | str], data: st.DataObject) -> None:
    body = Message.from_dict(values).encode()
    assert is_flat(body, 0)
    cut = data.draw(st.integers(0, len(body) - 1))
    # What follows in the same buffer must not be taken for the rest of it.
    bodies = [body[:cut], body[cut:] + body]
    assert FieldReader([FieldColumn(b"a", Form.TEXT)]).read(*laid(bodies)) == 0


@pytest.mark.parametrize(
    ("offsets", "flags", "rows", "why"),
    [
        ((0, 4, 9), 16, 2, "row 1 is at 4 … 9, outside of 8 bytes"),
        ((0, 4, 3), 16, 2, "row 1 is at 4 … 3, outside of 8 bytes"),
        ((4, 0, 8), 16, 2, "row 0 is at 0 … -4, outside of 8 bytes"),
        ((-(2**31), 2**31 - 1), 8, 1, "row 0"),
        ((0, 4), 16, 2, "offsets or flags of 2 rows are not all there"),
        ((0, 4, 8), 15, 2, "offsets or flags of 2 rows are not all there"),
        ((0, 4), 16, -1, "offsets or flags of -1 rows are not all there"),
    ],
)
def test_offsets_that_lie_are_refused(
    offsets: tuple[int, ...], flags: int, rows: int, why: str
) -> None:
    words = struct.pack(f"<{len(offsets)}i", *offsets)
    with pytest.raises(ValueError, match=why):
        FieldReader([FieldColumn(b"n", Form.TEXT)]).read(words, bytes(8), bytes(flags), rows)


def test_a_moment_needs_a_unit() -> None:
    with pytest.raises(ValueError, match="units of 0 ns"):
        FieldColumn(b"t", Form.MOMENT)
