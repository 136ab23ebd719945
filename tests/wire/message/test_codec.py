import math
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField, BadMessage, MessageTooBig
from weft.wire.buffer import Writer
from weft.wire.message.codec import (
    BodyReader,
    checked_length,
    decode_fields,
    encode_fields,
    put_fields,
)
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, VALUES_MAX, Fields, FieldType

STRING, INT32, MESSAGE = FieldType.STRING, FieldType.INT32, FieldType.MESSAGE
BOOL, BLOB, LIST, NULL = FieldType.BOOL, FieldType.BLOB, FieldType.LIST, FieldType.NULL
MIB = 1 << 20
HUGE = (1 << 31) - 1
# What refusing a body may allocate: the error, its text and the few fields before the bad one.
REFUSAL_LIMIT_BYTES = 64 << 10


def i32(value: int) -> bytes:
    return struct.pack("<i", value)


def text(value: bytes) -> bytes:
    return i32(len(value)) + value


def field(kind: int, value: bytes = b"", name: bytes = b"") -> bytes:
    return text(name) + bytes([kind]) + value


def body(*fields: bytes) -> bytes:
    return i32(len(fields)) + b"".join(fields)


def list_of(*items: bytes) -> bytes:
    return body(field(LIST, body(*items)))


def nested(depth: int, kind: int = MESSAGE) -> bytes:
    """A body whose innermost message or list is so deep."""
    level = i32(1) + (field(kind) if kind == MESSAGE else bytes([kind]))
    return i32(1) + field(kind) + level * (depth - 2) + i32(0) if depth > 1 else i32(0)


def made(is_list: bool, entries: list[tuple[str, int, Any]]) -> Fields:
    fields = Fields(is_list)
    for name, kind, raw in entries:
        fields.add(name, kind, raw)
    return fields


def shape(fields: Fields) -> tuple[Any, ...]:
    """All there is to fields, comparable: doubles by their bits, bools apart from ints."""
    values = [
        shape(raw)
        if isinstance(raw, Fields)
        else struct.pack("<d", raw)
        if isinstance(raw, float)
        else (type(raw), raw)
        for raw in fields.values
    ]
    counts = (fields.is_list, fields.depth, fields.total)
    return *counts, list(fields.names), bytes(fields.kinds), values


def integers(kind: FieldType, low: int, high: int) -> st.SearchStrategy[tuple[int, Any]]:
    return st.tuples(st.just(kind), st.integers(low, high - 1))


typed_scalars = st.one_of(
    st.tuples(st.just(STRING), st.text(max_size=8)),
    integers(INT32, -(1 << 31), 1 << 31),
    integers(FieldType.UINT32, 0, 1 << 32),
    integers(FieldType.INT64, -(1 << 63), 1 << 63),
    integers(FieldType.UINT64, 0, 1 << 64),
    integers(FieldType.TIMESTAMP, -(1 << 63), 1 << 63),
    st.tuples(st.just(FieldType.DOUBLE), st.floats()),
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(BLOB), st.binary(max_size=8)),
    st.just((NULL, None)),
)


def fields_of(typed: Any, is_list: bool) -> Any:
    names = st.just("") if is_list else st.text(max_size=3)
    entry = st.tuples(names, typed).map(lambda pair: (pair[0], *pair[1]))
    return st.lists(entry, max_size=5).map(lambda entries: made(is_list, entries))


any_typed = st.recursive(
    typed_scalars,
    lambda typed: st.one_of(
        st.tuples(st.just(MESSAGE), fields_of(typed, False)),
        st.tuples(st.just(LIST), fields_of(typed, True)),
    ),
    max_leaves=20,
)
any_fields = fields_of(any_typed, False)

# One of everything, with each text and blob long enough to be cut in the middle.
EVERYTHING = made(
    False,
    [
        ("text", STRING, "žluť"),
        ("i32", INT32, -2),
        ("u32", FieldType.UINT32, 0xFFFFFFFE),
        ("i64", FieldType.INT64, -3),
        ("u64", FieldType.UINT64, (1 << 64) - 3),
        ("double", FieldType.DOUBLE, -1.5),
        ("yes", BOOL, True),
        ("blob", BLOB, b"\0\xff\x80"),
        ("null", NULL, None),
        ("time", FieldType.TIMESTAMP, 1_769_860_800_000_000_001),
        ("list", LIST, made(True, [("", BOOL, False), ("", LIST, made(True, []))])),
        ("message", MESSAGE, made(False, [("", STRING, ""), ("", MESSAGE, made(False, []))])),
    ],
)
BODY = encode_fields(EVERYTHING)


@given(any_fields)
def test_decoding_what_was_encoded_gives_the_same_fields(fields: Fields) -> None:
    assert shape(decode_fields(encode_fields(fields))) == shape(fields)


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (1, "ž", "02000000c5be"),
        (2, -2, "feffffff"),
        (3, 0xFFFFFFFE, "feffffff"),
        (4, -2, "feffffffffffffff"),
        (5, (1 << 64) - 2, "feffffffffffffff"),
        (6, 1.0, "000000000000f03f"),
        (7, made(False, [("a", 17, None)]), "01000000 01000000 61 11"),
        (8, True, "01"),
        (8, False, "00"),
        (9, b"\xff\0", "02000000ff00"),
        (16, made(True, [("", 17, None), ("", 8, True)]), "02000000 11 08 01"),
        (17, None, ""),
        (18, -2, "feffffffffffffff"),
    ],
)
def test_a_field_is_its_name_its_type_and_its_value(kind: int, raw: object, value: str) -> None:
    encoded = encode_fields(made(False, [("né", kind, raw)]))
    assert encoded == bytes.fromhex("01000000 03000000 6ec3a9") + bytes([kind]) + bytes.fromhex(
        value
    )


def test_a_message_without_fields_is_four_zero_bytes() -> None:
    assert encode_fields(Fields(False)) == bytes(4)


def test_fields_are_appended_to_what_is_being_written() -> None:
    writer = Writer()
    writer.put(b"head")
    put_fields(writer, EVERYTHING)
    assert writer.take() == b"head" + BODY


def test_a_body_may_begin_at_an_offset() -> None:
    assert shape(decode_fields(b"header" + BODY, 6)) == shape(EVERYTHING)


def test_a_reader_reads_a_whole_body() -> None:
    assert shape(BodyReader(BODY, 0).read()) == shape(EVERYTHING)


@pytest.mark.parametrize("bits", ["7ff8000000000000", "fff8000000000001", "7ff0000000000001"])
def test_every_nan_keeps_its_bits(bits: str) -> None:
    encoded = body(field(FieldType.DOUBLE, bytes.fromhex(bits)[::-1]))
    fields = decode_fields(encoded)
    assert math.isnan(fields.values[0])
    assert encode_fields(fields) == encoded


@pytest.mark.req("MM-6")
@pytest.mark.parametrize("kind", [MESSAGE, LIST])
@pytest.mark.parametrize("depth", [1, 2, DEPTH_MAX])
def test_a_body_may_nest_to_the_depth_limit(kind: int, depth: int) -> None:
    assert decode_fields(nested(depth, kind)).depth == depth


def test_a_body_may_have_the_most_fields() -> None:
    assert len(decode_fields(body(*[field(NULL)] * FIELDS_MAX))) == FIELDS_MAX


def test_a_body_may_have_the_most_values() -> None:
    fields = decode_fields(list_of(*[bytes([NULL])] * (VALUES_MAX - 1)))
    assert fields.total == VALUES_MAX


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("length", range(len(BODY)))
def test_a_truncated_body_is_refused(length: int) -> None:
    with pytest.raises(BadMessage):
        decode_fields(BODY[:length])


@pytest.mark.req("MM-10")
@given(any_fields, st.data())
def test_any_truncated_body_is_refused(fields: Fields, data: st.DataObject) -> None:
    encoded = encode_fields(fields)
    length = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(BadMessage):
        decode_fields(encoded[:length])


@pytest.mark.req("MM-10")
@pytest.mark.parametrize("at", range(len(BODY)))
def test_a_flipped_bit_gives_another_message_or_is_refused(at: int) -> None:
    for bit in range(8):
        changed = BODY[:at] + bytes([BODY[at] ^ 1 << bit]) + BODY[at + 1 :]
        try:
            fields = decode_fields(changed)
        except BadMessage:
            continue
        assert encode_fields(fields) == changed


@pytest.mark.req("MM-10")
@given(any_fields, st.data())
def test_any_changed_byte_gives_another_message_or_is_refused(
    fields: Fields, data: st.DataObject
) -> None:
    changed = bytearray(encode_fields(fields))
    changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        again = decode_fields(bytes(changed))
    except BadMessage:
        return
    assert encode_fields(again) == changed


@pytest.mark.req("MM-10")
@given(st.binary(max_size=64))
def test_any_bytes_are_a_message_or_are_refused(data: bytes) -> None:
    try:
        fields = decode_fields(data)
    except BadMessage:
        return
    assert encode_fields(fields) == data


CANNOT_FIT = "cannot fit in the"
ANNOUNCED = "bytes are announced at offset"
HOSTILE = {
    "empty body": (b"", BadMessage, "4 bytes are announced at offset 0 where 0 are left"),
    "negative count": (i32(-1), BadMessage, "a count of -1 cannot fit in the 0 bytes left"),
    "most negative count": (i32(-HUGE - 1) + bytes(99), BadMessage, CANNOT_FIT),
    "huge count": (i32(HUGE) + bytes(99), BadMessage, CANNOT_FIT),
    "count one over what fits": (i32(4) + field(NULL) * 3 + bytes(4), BadMessage, CANNOT_FIT),
    "count that barely could fit": (i32(2) + field(NULL) + bytes(5), BadMessage, "field type 0"),
    "count short of what follows": (i32(1) + field(NULL) * 2, BadMessage, "5 bytes follow"),
    "negative nested count": (body(field(MESSAGE, i32(-1))), BadMessage, CANNOT_FIT),
    "huge nested count": (body(field(MESSAGE, i32(HUGE))), BadMessage, CANNOT_FIT),
    "negative list count": (body(field(LIST, i32(-1))), BadMessage, CANNOT_FIT),
    "huge list count": (body(field(LIST, i32(HUGE))), BadMessage, CANNOT_FIT),
    "list count one over": (body(field(LIST, i32(2) + b"\x11")), BadMessage, CANNOT_FIT),
    "negative name length": (i32(1) + i32(-1) + bytes(9), BadMessage, "length of -1 at offset 4"),
    "huge name length": (i32(1) + i32(HUGE) + bytes(9), BadMessage, ANNOUNCED),
    "negative string length": (body(field(STRING, i32(-7))), BadMessage, "-7 at offset 9 is neg"),
    "huge string length": (body(field(STRING, i32(HUGE))), BadMessage, ANNOUNCED),
    "string one over": (body(field(STRING, i32(4) + b"abc")), BadMessage, ANNOUNCED),
    "negative blob length": (body(field(BLOB, i32(-HUGE - 1))), BadMessage, "is negative"),
    "huge blob length": (body(field(BLOB, i32(HUGE))), BadMessage, ANNOUNCED),
    "blob one over": (body(field(BLOB, i32(4) + b"abc")), BadMessage, ANNOUNCED),
    "no room for a type": (i32(1) + text(b"a"), BadMessage, ANNOUNCED),
    "no room for a value": (body(field(INT32, b"abc")), BadMessage, ANNOUNCED),
    "bool of 2": (body(field(BOOL, b"\x02")), BadMessage, "a bool is 0 or 1, not 2"),
    "bool of 255": (body(field(BOOL, b"\xff")), BadMessage, "a bool is 0 or 1, not 255"),
    "trailing bytes": (BODY + b"\0", BadMessage, "1 bytes follow the message"),
    "two bodies": (bytes(8), BadMessage, "4 bytes follow the message"),
    "a field too many": (body(*[field(NULL)] * 4_097), MessageTooBig, "4097 fields"),
    "a nested field too many": (
        list_of(b"\x07" + body(*[field(NULL)] * 4_097)),
        MessageTooBig,
        "4097 fields",
    ),
    "a value too many": (list_of(*[bytes([NULL])] * 65_536), MessageTooBig, "65537 values"),
    "depth 17": (nested(17), MessageTooBig, "nesting is over the limit of 16"),
    "depth 17 of lists": (nested(17, LIST), MessageTooBig, "nesting is over the limit of 16"),
    "depth bomb": (nested(MIB // 9), MessageTooBig, "nesting is over the limit of 16"),
    "depth bomb of lists": (nested(MIB // 5, LIST), MessageTooBig, "nesting is over"),
    "width bomb": (list_of(*[b"\x11"] * (MIB - 13)), MessageTooBig, "1048564 values"),
    "width bomb of fields": (body(*[field(NULL)] * (MIB // 5)), MessageTooBig, "209715 fields"),
    "wide and deep bomb": (
        body(*[field(LIST, i32(MIB // 2) + b"\x11")] * 4_000, bytes(MIB // 2)),
        MessageTooBig,
        "528289 values",
    ),
}


@pytest.mark.req("MM-10")
@pytest.mark.parametrize(
    ("data", "error", "says"), [pytest.param(*case, id=name) for name, case in HOSTILE.items()]
)
def test_a_hostile_body_is_refused_by_name_and_memory_does_not_grow(
    data: bytes, error: type[BadMessage], says: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(error, match=says) as caught:
            decode_fields(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.type is error
    assert peak < REFUSAL_LIMIT_BYTES


@pytest.mark.req("MM-10")
def test_a_start_beyond_the_end_is_refused() -> None:
    with pytest.raises(BadMessage, match="where -1 are left"):
        decode_fields(b"abc", 4)


@pytest.mark.req("MM-5")
@pytest.mark.parametrize("kind", sorted(set(range(256)) - set(FieldType)))
def test_a_type_that_does_not_exist_is_refused(kind: int) -> None:
    with pytest.raises(BadMessage, match=f"there is no field type {kind}$"):
        decode_fields(body(field(kind, bytes(8))))


@pytest.mark.req("MM-9")
@pytest.mark.parametrize("place", ["name", "value", "nested name", "item"])
@pytest.mark.parametrize("bad", [b"\xff", b"ab\xc3", b"\xc0\x80", b"\xed\xa0\x80"], ids=bytes.hex)
def test_text_that_is_not_utf8_is_refused_wherever_it_is(bad: bytes, place: str) -> None:
    hostile = {
        "name": body(field(NULL, name=bad)),
        "value": body(field(STRING, text(bad))),
        "nested name": body(field(MESSAGE, body(field(NULL, name=bad)))),
        "item": list_of(bytes([STRING]) + text(bad)),
    }[place]
    with pytest.raises(BadMessage, match=f"a string of {len(bad)} bytes at offset .* is not UTF-8"):
        decode_fields(hostile)


def test_a_length_that_four_bytes_cannot_say_is_refused() -> None:
    assert checked_length((1 << 31) - 1) == (1 << 31) - 1
    with pytest.raises(BadField, match="2147483648 bytes is over the limit"):
        checked_length(1 << 31)


def test_a_body_does_not_begin_before_its_bytes() -> None:
    with pytest.raises(ValueError, match="cannot begin at -1"):
        decode_fields(bytes(8), -1)
