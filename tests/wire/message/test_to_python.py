import math
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.wire.message.codec import encode_fields
from weft.wire.message.field_types import nanoseconds, timestamp_text
from weft.wire.message.from_python import fields_from_items, fields_from_mapping
from weft.wire.message.message import Field
from weft.wire.message.to_python import dict_from_fields, shown_fields, shown_value
from weft.wire.message.types import Fields, FieldType

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)

microseconds = st.datetimes(
    datetime(1678, 1, 1), datetime(2262, 1, 1), timezones=st.just(UTC)
)  # a datetime knows nothing finer
scalars = st.one_of(
    st.text(max_size=6),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(),
    st.booleans(),
    st.none(),
    st.binary(max_size=6),
    microseconds,
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def fields_of(**named: Any) -> Fields:
    return fields_from_mapping(named, 1)


def same(left: Any, right: Any) -> bool:
    """Equal in value and in type at every level, a NaN to itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return struct.pack("<d", left) == struct.pack("<d", right)
    return bool(left == right)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_a_dict_comes_back_with_its_values_types_and_order(mapping: dict[str, Any]) -> None:
    assert same(dict_from_fields(fields_from_mapping(mapping, 1)), mapping)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_fields_of_default_types_come_back_from_a_dict(mapping: dict[str, Any]) -> None:
    fields = fields_from_mapping(mapping, 1)
    again = fields_from_mapping(dict_from_fields(fields), 1)
    assert encode_fields(again) == encode_fields(fields)


@pytest.mark.req("MM-4")
def test_of_a_name_that_occurs_twice_the_dict_has_the_first() -> None:
    fields = Fields(False)
    for name, number in [("b", 1), ("a", 2), ("b", 3)]:
        fields.add(name, FieldType.INT64, number)
    assert list(dict_from_fields(fields).items()) == [("b", 1), ("a", 2)]


def test_a_timestamp_in_a_dict_is_a_datetime_at_any_level() -> None:
    assert dict_from_fields(fields_of(a=NOON, b=[NOON], c={"d": NOON})) == {
        "a": NOON,
        "b": [NOON],
        "c": {"d": NOON},
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x", "a='x'"),
        (1, "a=1"),
        (1.5, "a=1.5"),
        (math.nan, "a=nan"),
        (True, "a=True"),
        (None, "a=None"),
        (b"\xff", "a=b'\\xff'"),
        ([1, {"b": 2}], "a=[1, Message(b=2)]"),
        ({"b": 1, "c": {}}, "a=Message(b=1, c=Message())"),
        (Field.int64("", 7), "a=7"),
    ],
    ids=str,
)
def test_a_value_of_a_default_type_is_shown_as_it_is_written(value: object, shown: str) -> None:
    assert shown_fields(fields_of(a=value)) == [shown]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Field.int32("", 7), "a=int32(7)"),
        (Field.uint32("", 7), "a=uint32(7)"),
        (Field.uint64("", 7), "a=uint64(7)"),
        ({"b": Field.uint32("", 7)}, "a=Message(b=uint32(7))"),
    ],
    ids=str,
)
def test_a_type_is_shown_where_the_value_does_not_tell(value: object, shown: str) -> None:
    assert shown_fields(fields_of(a=value)) == [shown]


@pytest.mark.req("MM-4")
def test_every_field_is_shown_in_order() -> None:
    assert shown_fields(fields_of(b=1, a="x")) == ["b=1", "a='x'"]


def test_a_timestamp_is_shown_as_people_write_it() -> None:
    assert shown_fields(fields_of(a=NOON)) == [f"a={timestamp_text(nanoseconds(NOON))}"]
    assert shown_value(FieldType.TIMESTAMP, 1_500_000_000) == "1970-01-01T00:00:01.5Z"


@pytest.mark.parametrize(
    ("kind", "raw", "shown"),
    [
        (FieldType.STRING, "x" * 64, repr("x" * 64)),
        (FieldType.STRING, "x" * 65, repr("x" * 64) + "…"),
        (FieldType.BLOB, b"x" * 64, repr(b"x" * 64)),
        (FieldType.BLOB, b"x" * 65, repr(b"x" * 64) + "… of 65 bytes"),
        (
            FieldType.LIST,
            fields_from_items(range(17), 1),
            f"{list(range(16))}"[:-1] + ", … 1 more]",
        ),
        (FieldType.LIST, fields_from_items([[[[1]]]], 1), "[[[[…]]]]"),
    ],
    ids=["short text", "long text", "short blob", "long blob", "many items", "deep"],
)
def test_what_is_long_many_or_deep_is_cut_short(kind: FieldType, raw: object, shown: str) -> None:
    assert shown_value(kind, raw) == shown


@pytest.mark.parametrize(
    ("name", "shown"), [("n" * 64, "n" * 64), ("n" * 65, repr("n" * 64) + "…"), ("\n", repr("\n"))]
)
def test_a_name_is_shown_in_one_short_line(name: str, shown: str) -> None:
    assert shown_fields(fields_of(**{name: 1})) == [f"{shown}=1"]


def test_a_hostile_message_is_shown_in_few_characters() -> None:
    inner: object = 1
    for _ in range(10):
        inner = {f"{number}{'n' * 1000}": inner for number in range(2)}
    assert len(shown_value(FieldType.MESSAGE, fields_of(a=inner))) < 5_000
