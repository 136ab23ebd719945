from collections import OrderedDict
from datetime import UTC, datetime
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import BadField, BadMessage
from weft.wire.buffer import Writer
from weft.wire.message import codec
from weft.wire.message.flat_codec import dict_from_flat, find_flat, is_flat, put_flat, raw_at
from weft.wire.message.from_python import fields_from_mapping
from weft.wire.message.message import Field, Message
from weft.wire.message.to_python import dict_from_fields
from weft.wire.message.types import FIELDS_MAX

PLAIN: dict[str, Any] = {
    "text": "Zürich",
    "flag": True,
    "n": -5,
    "x": 1.5,
    "none": None,
    "blob": b"\x00\xff",
    "": "no name",
}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
EVERY_KIND = Message(
    Field.int32("i", -1),
    Field.uint32("u", 1 << 31),
    Field.uint64("U", 1 << 63),
    Field.timestamp("t", NOON),
    **{**PLAIN, "twice": 1},
)


class Level(IntEnum):
    HIGH = 3


def body_of(values: dict[str, Any]) -> bytes | None:
    writer = Writer()
    return writer.take() if put_flat(writer, values) else None


def long_way(values: dict[str, Any]) -> bytes:
    return codec.encode_fields(fields_from_mapping(values, 1))


def test_plain_values_are_the_bytes_that_the_long_way_gives() -> None:
    assert body_of(PLAIN) == long_way(PLAIN)
    assert body_of({}) == long_way({})


@pytest.mark.parametrize(
    "value",
    [
        [1],
        {"a": 1},
        Message(a=1),
        NOON,
        1 << 63,
        -(1 << 63) - 1,
        "\ud800",
        bytearray(b"x"),
        memoryview(b"x"),
        Level.HIGH,
        object(),
    ],
)
def test_what_is_not_plain_goes_the_long_way_and_leaves_nothing(value: object) -> None:
    writer = Writer()
    writer.put(b"before")
    assert not put_flat(writer, {"a": 1, "b": value})
    assert writer.take() == b"before"


@pytest.mark.parametrize("name", [1, "\ud800", None])
def test_a_name_that_is_no_text_goes_the_long_way(name: Any) -> None:
    assert body_of({name: 1}) is None


def test_as_many_fields_as_a_message_may_have_are_flat() -> None:
    values = {str(number): number for number in range(FIELDS_MAX)}
    body = body_of(values)
    assert body == long_way(values)
    assert is_flat(body, 0)
    assert body_of({**values, "more": 1}) is None


def test_every_kind_is_found_and_read_in_place() -> None:
    body = EVERY_KIND.encode()
    data = b"before" + body
    assert is_flat(data, 6)
    for field in codec.decode_fields(body).names:
        at = find_flat(data, 6, field)
        assert raw_at(data, at) == Message.from_body(body).fields(field)[0].raw_form()


def test_of_a_name_that_occurs_twice_the_first_counts() -> None:
    body = Message(Field("a", 1), Field("a", 2), Field("b", 3)).encode()
    assert raw_at(body, find_flat(body, 0, "a")) == 1
    assert dict_from_flat(body, 0) == {"a": 1, "b": 3}


@pytest.mark.parametrize("name", ["x", "te", "texts", "\ud800", "Zürich"])
def test_a_name_that_is_not_there_is_not_found(name: str) -> None:
    assert find_flat(Message(text="Zürich").encode(), 0, name) == -1


def test_a_dict_of_a_flat_body_is_that_of_its_fields() -> None:
    body = EVERY_KIND.encode()
    assert dict_from_flat(body, 0) == dict_from_fields(codec.decode_fields(body))
    assert dict_from_flat(body, 0)["t"] == NOON


@pytest.mark.parametrize("nested", [[1], {"b": 1}, [], {}])
def test_what_is_nested_is_not_flat(nested: object) -> None:
    assert not is_flat(Message(a=nested, b=1).encode(), 0)


@pytest.mark.parametrize("cut", range(len(EVERY_KIND.encode())))
def test_what_is_cut_short_is_not_flat(cut: int) -> None:
    assert not is_flat(EVERY_KIND.encode()[:cut], 0)
    assert not is_flat(EVERY_KIND.encode() + b"\x00", 0)


def agrees(body: bytes) -> bool:
    """Say if a body is flat; if it is, the long way reads the same."""
    if not is_flat(body, 0):
        return False
    # As text: what is no number is not equal to itself.
    assert repr(dict_from_flat(body, 0)) == repr(dict_from_fields(codec.decode_fields(body)))
    return True


@given(st.binary(max_size=60))
def test_no_bytes_are_flat_that_the_long_way_refuses(noise: bytes) -> None:
    agrees(noise)
    agrees(b"\x01\x00\x00\x00" + noise)


@given(st.data())
def test_no_changed_byte_is_flat_that_the_long_way_refuses(data: st.DataObject) -> None:
    body = bytearray(EVERY_KIND.encode())
    body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        codec.decode_fields(bytes(body))
    except BadMessage:
        assert not is_flat(bytes(body), 0)
    else:
        agrees(bytes(body))


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        max_size=6,
    )
)
def test_any_plain_values_come_back(values: dict[str, Any]) -> None:
    body = body_of(values)
    try:
        expected = long_way(values)
    except BadField:
        assert body is None
        return
    if body is None:
        return
    assert body == expected
    assert agrees(body)


def test_an_ordered_dict_is_no_plain_one_but_the_same_message() -> None:
    assert Message.from_dict(OrderedDict(PLAIN)) == Message(**PLAIN)
