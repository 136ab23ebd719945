from collections import ChainMap, UserDict
from datetime import UTC, datetime
from typing import Any

import pytest

from weft.errors import BadField
from weft.wire.message.from_python import (
    RawValue,
    add_value,
    fields_from_items,
    fields_from_mapping,
    kind_of,
    raw_value,
)
from weft.wire.message.message import Field, Message
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, Fields, FieldType

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CONTAINERS = [lambda inner: [inner], lambda inner: (inner,), lambda inner: {"inner": inner}]


class Celsius(RawValue):
    """A value of one's own that knows what it is on the wire."""

    def raw_kind(self) -> int:
        return FieldType.DOUBLE

    def raw_form(self) -> float:
        return 21.5


def type_name(value: object) -> str:
    return str(value) if isinstance(value, FieldType) else type(value).__name__


def nested(depth: int, container: Any) -> Any:
    value: Any = container(1)
    for _ in range(depth - 1):
        value = container(value)
    return value


def message_of_depth(depth: int) -> Message:
    message = Message(bottom=1)
    for _ in range(depth - 1):
        message = Message(inner=message)
    return message


def shape(fields: Fields) -> list[Any]:
    """What fields hold, as plain lists: (name, type, value) or, in a list, (type, value)."""
    values = [shape(raw) if isinstance(raw, Fields) else raw for raw in fields.values]
    if fields.is_list:
        return list(zip(fields.kinds, values, strict=True))
    return list(zip(fields.names, fields.kinds, values, strict=True))


@pytest.mark.parametrize("ask", [RawValue.raw_kind, RawValue.raw_form])
def test_a_raw_value_that_does_not_say_what_it_is_cannot_be_used(ask: Any) -> None:
    with pytest.raises(NotImplementedError):
        ask(RawValue())


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("text", FieldType.STRING),
        (True, FieldType.BOOL),
        (1, FieldType.INT64),
        (1.0, FieldType.DOUBLE),
        (b"bytes", FieldType.BLOB),
        (None, FieldType.NULL),
        (NOON, FieldType.TIMESTAMP),
        ({}, FieldType.MESSAGE),
        (UserDict(), FieldType.MESSAGE),
        ([], FieldType.LIST),
        ((), FieldType.LIST),
        (Message(), FieldType.MESSAGE),
        (Field.uint32("", 7), FieldType.UINT32),
        (Celsius(), FieldType.DOUBLE),
    ],
    ids=type_name,
)
def test_a_value_has_a_type_when_none_is_given(value: object, kind: FieldType) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize(
    "value", [object(), 1j, {1}, iter([1]), NOON.date(), range(3)], ids=type_name
)
def test_a_value_that_no_type_holds_is_refused(value: object) -> None:
    with pytest.raises(BadField, match=f"no field type holds a {type(value).__name__}"):
        kind_of(value)


def test_a_scalar_is_checked_against_the_type_given() -> None:
    assert raw_value(FieldType.UINT32, 7, 1) == 7


def test_a_scalar_that_the_type_given_cannot_hold_is_refused() -> None:
    with pytest.raises(BadField, match="-7 is not in the range of uint32"):
        raw_value(FieldType.UINT32, -7, 1)


@pytest.mark.parametrize("value", [Field.double("", 21.5), Celsius()], ids=["field", "own"])
def test_a_raw_value_is_taken_as_it_is(value: RawValue) -> None:
    assert raw_value(FieldType.DOUBLE, value, 1) == 21.5


def test_the_fields_of_a_message_are_taken_without_a_copy() -> None:
    message = Message(a=1)
    assert raw_value(FieldType.MESSAGE, message, 1) is message.raw_form()


@pytest.mark.req("MM-5")
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (FieldType.STRING, Field.int32("", 1), "a int32 was given for a string"),
        (FieldType.INT64, Field.int32("", 1), "a int32 was given for a int64"),
        (FieldType.LIST, Message(), "a message was given for a list"),
    ],
)
def test_a_raw_value_of_another_type_is_refused(kind: int, value: RawValue, text: str) -> None:
    with pytest.raises(BadField, match=text):
        raw_value(kind, value, 1)


@pytest.mark.parametrize("value", [[("a", 1)], "a", 1, None], ids=repr)
def test_what_is_no_mapping_is_no_message(value: object) -> None:
    with pytest.raises(BadField, match="is not a message or a mapping"):
        raw_value(FieldType.MESSAGE, value, 1)


@pytest.mark.parametrize("value", [{}, "abc", b"abc", 1, None, range(3)], ids=repr)
def test_what_is_no_list_or_tuple_is_no_list(value: object) -> None:
    with pytest.raises(BadField, match="is not a list or a tuple"):
        raw_value(FieldType.LIST, value, 1)


def test_a_value_is_added_under_its_default_type() -> None:
    fields = Fields(False)
    add_value(fields, "n", 1, 1)
    add_value(fields, "m", {"x": None}, 1)
    assert shape(fields) == [
        ("n", FieldType.INT64, 1),
        ("m", FieldType.MESSAGE, [("x", FieldType.NULL, None)]),
    ]


@pytest.mark.parametrize("value", [1, [1]], ids=["scalar", "container"])
@pytest.mark.parametrize("name", [1, None, b"n", "\ud800"], ids=repr)
def test_a_name_that_is_no_text_is_refused(name: Any, value: object) -> None:
    with pytest.raises(BadField):
        add_value(Fields(False), name, value, 1)


@pytest.mark.req("MM-4")
@pytest.mark.parametrize("mapping", [dict, UserDict, ChainMap])
def test_a_mapping_becomes_fields_in_its_order(mapping: type) -> None:
    fields = fields_from_mapping(mapping({"b": 1, "a": "x"}), 1)
    assert shape(fields) == [("b", FieldType.INT64, 1), ("a", FieldType.STRING, "x")]


@pytest.mark.parametrize("values", [[1, "x"], (1, "x"), iter([1, "x"])], ids=type_name)
def test_values_become_the_items_of_a_list(values: Any) -> None:
    fields = fields_from_items(values, 1)
    assert shape(fields) == [(FieldType.INT64, 1), (FieldType.STRING, "x")]


def test_a_value_inside_a_container_may_have_an_explicit_type() -> None:
    fields = fields_from_mapping({"n": [Field.int32("", 1)], "u": Field.uint32("", 2)}, 1)
    assert shape(fields) == [
        ("n", FieldType.LIST, [(FieldType.INT32, 1)]),
        ("u", FieldType.UINT32, 2),
    ]


@pytest.mark.req("MM-6")
@pytest.mark.parametrize("container", CONTAINERS, ids=["lists", "tuples", "dicts"])
def test_containers_nest_to_the_depth_limit(container: Any) -> None:
    fields = fields_from_mapping({"a": nested(DEPTH_MAX - 1, container)}, 1)
    assert fields.depth == DEPTH_MAX


@pytest.mark.req("MM-6")
@pytest.mark.parametrize("container", CONTAINERS, ids=["lists", "tuples", "dicts"])
@pytest.mark.parametrize("depth", [DEPTH_MAX, 10_000])
def test_containers_over_the_depth_limit_are_refused(container: Any, depth: int) -> None:
    with pytest.raises(BadField, match="nesting 17 deep is over the limit of 16"):
        fields_from_mapping({"a": nested(depth, container)}, 1)


@pytest.mark.req("MM-6")
def test_the_levels_above_a_value_count() -> None:
    with pytest.raises(BadField, match="nesting 17 deep"):
        raw_value(FieldType.LIST, [], DEPTH_MAX)


@pytest.mark.req("MM-6")
def test_a_message_with_the_levels_above_it_is_held_to_the_limit() -> None:
    with pytest.raises(BadField, match="nesting 17 deep"):
        raw_value(FieldType.MESSAGE, message_of_depth(DEPTH_MAX), 1)


@pytest.mark.req("MM-6")
@pytest.mark.parametrize("levels", [1, 5])
def test_a_message_inside_containers_is_held_to_the_limit(levels: int) -> None:
    inner = message_of_depth(DEPTH_MAX - levels + 1)
    with pytest.raises(BadField, match="nesting 17 deep"):
        fields_from_mapping(nested(levels, lambda value: {"a": inner if value == 1 else value}), 1)


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadField, match="over the limit of 16"):
        fields_from_items(endless, 1)


def test_a_dict_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    with pytest.raises(BadField, match="over the limit of 16"):
        fields_from_mapping(endless, 1)


def test_a_mapping_with_too_many_keys_is_refused() -> None:
    with pytest.raises(BadField, match="over the limit of 4096 fields"):
        fields_from_mapping(dict.fromkeys(map(str, range(FIELDS_MAX + 1))), 1)


@pytest.mark.parametrize("values", [{"a": object()}, {"a": [1, {"b": {1}}]}], ids=["top", "deep"])
def test_a_value_that_no_type_holds_is_refused_at_any_level(values: dict[str, Any]) -> None:
    with pytest.raises(BadField, match="no field type holds a"):
        fields_from_mapping(values, 1)


@pytest.mark.parametrize("value", [Field("b", 1), [Field("b", 1)], {"c": Field("b", 1)}], ids=repr)
def test_a_named_field_is_not_taken_for_a_value(value: object) -> None:
    with pytest.raises(BadField, match="the field 'b' was given where only a value can be"):
        fields_from_mapping({"a": value}, 1)


def test_a_value_that_no_message_could_hold_is_refused_by_itself() -> None:
    with pytest.raises(BadField, match="65537 values, nested ones counted, are over the limit"):
        raw_value(FieldType.LIST, [None] * 65_536, 1)


def test_a_dict_is_needed_where_a_message_is_made_of_one() -> None:
    with pytest.raises(BadField, match="list is not a message or a mapping"):
        Message.from_dict([("a", 1)])  # type: ignore[arg-type]  # what an untyped caller may do


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"a": object()}, "a"),
        ({"a": {"b": [1, {"c": 1 << 64}]}}, "a.b[1].c"),
        ({"a": [[object()]]}, "a[0][0]"),
        ({7: 1}, "7"),
    ],
)
def test_an_error_names_the_field(values: Any, path: str) -> None:
    with pytest.raises(BadField) as caught:
        fields_from_mapping(values, 1)
    assert caught.value.field == path
    assert str(caught.value).startswith(f"field {path!r}: ")


def test_an_error_of_a_field_names_it() -> None:
    with pytest.raises(BadField, match=r"^field 'n': .* is not in the range of int32"):
        Field.int32("n", 1 << 31)
