import math
import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.build import fields_from_mapping
from weft.core.codec import encode_fields
from weft.core.fields import Fields, FieldType
from weft.core.messages import Field
from weft.core.plain import dict_from_fields, shown_fields, shown_value

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SHOWN_MAX = 64

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
        ([1, {"b": 2}], "a=[1, {'b': 2}]"),
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


def test_a_timestamp_is_shown_as_a_datetime() -> None:
    assert shown_value(FieldType.TIMESTAMP, 0).startswith("datetime.datetime(1970, 1, 1, 0, 0, ")


@pytest.mark.parametrize("length", [0, SHOWN_MAX - 2])
def test_a_value_that_is_short_enough_is_shown_whole(length: int) -> None:
    assert shown_value(FieldType.STRING, "x" * length) == repr("x" * length)


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (FieldType.STRING, "x" * (SHOWN_MAX - 1)),
        (FieldType.BLOB, bytes(100_000)),
        (FieldType.MESSAGE, fields_of(**{f"n{number}": number for number in range(100)})),
    ],
    ids=["string", "blob", "message"],
)
def test_a_long_value_is_cut_short(kind: FieldType, raw: object) -> None:
    shown = shown_value(kind, raw)
    assert (len(shown), shown[-1]) == (SHOWN_MAX, "…")
