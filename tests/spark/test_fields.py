"""Fields as columns, without Spark: what is read in place against what messages say."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.spark.fields import BadColumn, by_messages, fields_of
from weft.wire.frames import Flag
from weft.wire.message.message import Field, Message
from weft.wire.message.types import FieldType

NAMES = ("a", "b", "städte", "")
PLAIN = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()),
)
UNUSUAL = (
    pa.list_(pa.int64()),
    pa.struct([("a", pa.int64())]),
    pa.decimal128(10, 2),
    pa.large_string(),
)
# Where types end, and where a double has no next integer.
EDGES = (0, 1, -1, 127, 128, -129, 2**15, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**53, 2**53 + 1)
INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([*EDGES, *(-edge for edge in EDGES)])


def made(kind: FieldType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Field]:
    return st.builds(Field, st.sampled_from(NAMES), values, st.just(kind))


SCALARS = st.one_of(
    made(FieldType.STRING, st.text(max_size=12)),
    made(FieldType.INT32, st.integers(-(2**31), 2**31 - 1)),
    made(FieldType.UINT32, st.integers(0, 2**32 - 1)),
    made(FieldType.INT64, INT64),
    made(FieldType.UINT64, st.integers(0, 2**64 - 1) | st.sampled_from([2**53, 2**63])),
    made(FieldType.DOUBLE, st.floats()),
    made(FieldType.BOOL, st.booleans()),
    made(FieldType.BLOB, st.binary(max_size=12)),
    made(FieldType.NULL, st.none()),
    made(FieldType.TIMESTAMP, INT64),
)
NESTED = st.one_of(
    made(FieldType.LIST, st.lists(st.integers(-5, 5) | st.text(max_size=3), max_size=3)),
    made(FieldType.LIST, st.lists(st.lists(st.integers(0, 9), max_size=2), max_size=2)),
    made(FieldType.MESSAGE, st.dictionaries(st.sampled_from(NAMES), INT64, max_size=2)),
)


def message_of(fields: list[Field]) -> bytes:
    return Message(*fields).encode()


def deep(levels: int) -> bytes:
    """A message with so many levels of lists in it."""
    return b"\1\0\0\0\1\0\0\0a" + b"\x10\1\0\0\0" * levels + b"\x11"


def damaged(body: bytes, at: int, byte: int, cut: int) -> bytes:
    broken = bytearray(body)
    broken[at % len(body)] = byte
    return bytes(broken[: len(body) - cut % len(body)])


WHOLE = st.builds(message_of, st.lists(SCALARS, max_size=6))
ANY = st.builds(message_of, st.lists(SCALARS | NESTED, max_size=6))
BROKEN = st.one_of(
    st.builds(damaged, ANY, st.integers(0), st.integers(0, 255), st.sampled_from([0, 0, 1, 5])),
    st.builds(lambda body, more: body + more, ANY, st.binary(min_size=1, max_size=9)),
    st.binary(max_size=40),
    st.builds(deep, st.integers(13, 18)),
)
COLUMNS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(PLAIN * 2 + UNUSUAL)),
    min_size=1,
    max_size=4,
    unique_by=lambda column: column[0],
)


def batch_of(bodies: list[bytes], flags: list[int] | None = None) -> pa.RecordBatch:
    """Bodies as a reader of a journal has them, with others before them in the same buffers."""
    before = [b"others", b""]
    rows = len(bodies)
    whole = pa.RecordBatch.from_pydict(
        {
            "payload": pa.array(before + bodies, pa.binary()),
            "flags": pa.array([0, 8, *(flags or [0] * rows)], pa.int64()),
            "position": pa.array(range(98, 100 + rows), pa.int64()),
        }
    )
    return whole.slice(2)


def outcome(how: Any, batch: pa.RecordBatch, fields: list[pa.Field], *more: Any) -> Any:
    try:
        columns = how(batch, fields, *more)
    except BadColumn as error:
        return str(error)
    for column in columns.values():
        column.validate(full=True)
    # As text, so that NaN is itself and -0.0 is not 0.0.
    return {
        name: (column.type, [repr(value) for value in plain(column).to_pylist()])
        for name, column in columns.items()
    }


def plain(column: pa.Array) -> pa.Array:
    """Moments as numbers: an integer taken for one may be beyond what Python has a date for."""
    if pa.types.is_date32(column.type):
        return column.view(pa.int32())
    return column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column


@given(st.lists(WHOLE, max_size=12), COLUMNS)
@settings(max_examples=300)
def test_plain_fields_are_what_messages_say(
    bodies: list[bytes], columns: list[tuple[str, pa.DataType]]
) -> None:
    fields = [pa.field(*column) for column in columns]
    batch = batch_of(bodies)
    assert outcome(fields_of, batch, fields) == outcome(by_messages, batch, fields)


@given(st.lists(st.tuples(ANY | BROKEN, st.sampled_from([0, 0, 0, 1, 8, 9])), max_size=8), COLUMNS)
@settings(max_examples=300)
def test_whatever_bodies_hold_it_comes_to_the_same(
    bodies: list[tuple[bytes, int]], columns: list[tuple[str, pa.DataType]]
) -> None:
    fields = [pa.field(*column) for column in columns]
    batch = batch_of([body for body, _ in bodies], [flags for _, flags in bodies])
    assert outcome(fields_of, batch, fields) == outcome(by_messages, batch, fields)


def read(bodies: list[bytes], name: str, kind: pa.DataType, flags: list[int] | None = None) -> Any:
    return fields_of(batch_of(bodies, flags), [pa.field(name, kind)])[name].to_pylist()


@pytest.mark.parametrize(
    ("field", "kind", "value"),
    [
        (Field("x", True), pa.bool_(), True),
        (Field.int32("x", -128), pa.int8(), -128),
        (Field.uint32("x", 2**32 - 1), pa.int64(), 2**32 - 1),
        (Field.uint64("x", 2**63 - 1), pa.int64(), 2**63 - 1),
        (Field("x", 2**53), pa.float64(), 2.0**53),
        (Field("x", 1.5), pa.float32(), 1.5),
        (Field("x", "München"), pa.string(), "München"),
        (Field("x", b"\xff"), pa.binary(), b"\xff"),
        (Field("x", "text"), pa.binary(), b"text"),
        (Field.timestamp("x", -1), pa.date32(), datetime(1969, 12, 31, tzinfo=UTC).date()),
        (
            Field.timestamp("x", 1_700_000_000_123_456_789),
            pa.timestamp("us", "UTC"),
            datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
        ),
    ],
)
def test_a_plain_field_is_read_without_a_message(
    field: Field, kind: pa.DataType, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.spark.fields.by_messages", None)
    bodies = [Message(other=[1, {"x": 2}]).encode(), Message(field).encode()]
    assert read(bodies, "x", kind) == [None, value]


def test_bare_bytes_have_no_fields() -> None:
    body = Message(x=1).encode()
    assert read([body, body], "x", pa.int64(), [Flag.BARE, 0]) == [None, 1]


def test_of_two_fields_of_a_name_the_first_counts() -> None:
    bodies = [Message(Field("x", 1), Field("x", 2)).encode()]
    bodies.append(Message(Field.null("x"), Field("x", "other")).encode())
    assert read(bodies, "x", pa.int64()) == [1, None]


def test_no_rows_are_no_values() -> None:
    assert read([], "x", pa.string()) == []


@pytest.mark.parametrize("kind", [pa.int8(), pa.decimal128(4, 1)])
def test_a_value_that_does_not_fit_is_named(kind: pa.DataType) -> None:
    bodies = [Message(x=1).encode(), Message(x="w" * 100).encode()]
    with pytest.raises(BadColumn) as raised:
        read(bodies, "x", kind)
    assert str(raised.value) == (
        f"field 'x' of the message at position 101 is '{'w' * 63}…, not a valid {kind}"
    )


def test_what_is_no_message_is_named_by_its_position() -> None:
    with pytest.raises(BadColumn, match=r"the message at position 101 cannot be read: .* left"):
        read([Message(x=1).encode(), b"\1\0\0\0"], "x", pa.int64())


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (2.0, pa.int64()),
        (True, pa.int64()),
        (1, pa.bool_()),
        (5, pa.timestamp("us", "UTC")),
        (5, pa.date32()),
        (2**53 + 1, pa.float64()),
        (1, pa.string()),
        (b"x", pa.string()),
        (1, pa.binary()),
        ("16.11.2026", pa.date32()),
        ("2026-02-30", pa.date32()),
        ("1E-99999999", pa.decimal128(10, 2)),
        ("1.234", pa.decimal128(10, 2)),
        ("NaN", pa.decimal128(10, 2)),
        (1.5, pa.decimal128(10, 2)),
        ([1.5], pa.list_(pa.int64())),
        ([5], pa.list_(pa.timestamp("us"))),
        ("abc", pa.list_(pa.string())),
        ([1], pa.struct([("a", pa.int64())])),
        ([1], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_a_field_of_another_type_is_neither_cut_nor_read_as_something_else(
    value: Any, kind: pa.DataType
) -> None:
    bodies = [Message().encode(), Message(x=value).encode()]
    with pytest.raises(BadColumn, match=re.escape(f"at position 101 is {value!r}, not a valid")):
        read(bodies, "x", kind)


LEVEL = pa.struct([("price", pa.float64()), ("orders", pa.list_(pa.int64()))])


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (
            [Message(price=1.5, orders=[1, 2]), Message(other=1)],
            pa.list_(LEVEL),
            [{"price": 1.5, "orders": [1, 2]}, {"price": None, "orders": None}],
        ),
        ([], pa.list_(LEVEL), []),
        (
            {"levels": [{"price": 2}]},
            pa.struct([("levels", pa.list_(LEVEL))]),
            {"levels": [{"price": 2.0, "orders": None}]},
        ),
        ({"a": 1, "b": 2}, pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", 2)]),
        ("2026-11-18", pa.date32(), date(2026, 11, 18)),
        (["0001-01-01"], pa.list_(pa.date32()), [date(1, 1, 1)]),
        ("12.30", pa.decimal128(10, 2), Decimal("12.30")),
        ("1E-7", pa.decimal128(10, 7), Decimal("0.0000001")),
        (12, pa.decimal128(10, 2), Decimal(12)),
    ],
)
def test_what_the_sink_writes_is_read_as_what_it_was(
    value: Any, kind: pa.DataType, expected: Any
) -> None:
    assert read([Message(x=value).encode()], "x", kind) == [expected]


@pytest.mark.parametrize("how", [fields_of, by_messages])
def test_malformed_rows_are_counted_and_the_others_are_read(how: Any) -> None:
    bodies = [Message(x=1, y=1), Message(x="one", y=2), Message(x=2**40, y=3), Message(y=4)]
    batch = batch_of([*(body.encode() for body in bodies), b"\1\0\0\0"])
    malformed: set[int] = set()
    found = how(batch, [pa.field("x", pa.int32()), pa.field("y", pa.int64())], malformed)
    assert found["x"].to_pylist() == [1, None, None, None, None]
    assert found["y"].to_pylist() == [1, 2, 3, 4, None]
    assert malformed == {1, 2, 4}


@given(st.lists(st.tuples(ANY | BROKEN, st.sampled_from([0, 0, 0, 1, 8, 9])), max_size=8), COLUMNS)
@settings(max_examples=200)
def test_malformed_rows_are_the_same_either_way(
    bodies: list[tuple[bytes, int]], columns: list[tuple[str, pa.DataType]]
) -> None:
    fields = [pa.field(*column) for column in columns]
    batch = batch_of([body for body, _ in bodies], [flags for _, flags in bodies])
    one: set[int] = set()
    two: set[int] = set()
    one_way = outcome(fields_of, batch, fields, one)
    assert one_way == outcome(by_messages, batch, fields, two)
    assert one == two
