import pytest

from weft.errors import BadField
from weft.wire.message.types import DEPTH_MAX, FIELDS_MAX, VALUES_MAX, Fields, FieldType

FEW, MANY = 3, 40  # many: enough names for an index to be made


def message(*names: str) -> Fields:
    fields = Fields(False)
    for number, name in enumerate(names):
        fields.add(name, FieldType.INT64, number)
    return fields


def nulls(count: int) -> Fields:
    items = Fields(True)
    for _ in range(count):
        items.add("", FieldType.NULL, None)
    return items


def nested(depth: int) -> Fields:
    fields = message()
    for _ in range(depth - 1):
        outer = message()
        outer.add("inner", FieldType.MESSAGE, fields)
        fields = outer
    return fields


@pytest.mark.req("MM-5")
def test_the_types_have_their_numbers_on_the_wire() -> None:
    assert {str(kind): int(kind) for kind in FieldType} == {
        "string": 1,
        "int32": 2,
        "uint32": 3,
        "int64": 4,
        "uint64": 5,
        "double": 6,
        "message": 7,
        "bool": 8,
        "blob": 9,
        "list": 16,
        "null": 17,
        "timestamp": 18,
    }


@pytest.mark.parametrize("is_list", [False, True])
def test_new_fields_are_empty_and_one_level_deep(is_list: bool) -> None:
    fields = Fields(is_list)
    assert (fields.is_list, len(fields), fields.depth, fields.total) == (is_list, 0, 1, 0)


@pytest.mark.req("MM-4")
def test_fields_keep_their_order_and_their_duplicates() -> None:
    fields = message("b", "a", "b")
    assert (fields.names, fields.values) == (["b", "a", "b"], [0, 1, 2])
    assert list(fields.kinds) == [FieldType.INT64] * 3


def test_the_items_of_a_list_have_no_names() -> None:
    items = Fields(True)
    items.add("ignored", FieldType.STRING, "x")
    assert (items.names, items.values, len(items)) == ([], ["x"], 1)


@pytest.mark.req("MM-4")
@pytest.mark.parametrize("count", [FEW, MANY])
def test_the_first_of_a_name_is_found(count: int) -> None:
    fields = message(*(f"n{i // 2}" for i in range(count)))
    assert fields.find("n1") == 2


@pytest.mark.parametrize("count", [0, FEW, MANY])
def test_a_name_that_is_not_there_is_not_found(count: int) -> None:
    assert message(*map(str, range(count))).find("missing") == -1


@pytest.mark.parametrize("count", [FEW, MANY])
def test_every_name_is_found_at_its_position(count: int) -> None:
    fields = message(*map(str, range(count)))
    assert [fields.find(name) for name in fields.names] == list(range(count))


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_field_added_after_a_look_up_is_found(count: int) -> None:
    fields = message(*map(str, range(count)))
    fields.find("0")
    fields.add("late", FieldType.NULL, None)
    assert fields.find("late") == count


def test_nothing_is_found_by_name_in_a_list() -> None:
    assert nulls(MANY).find("") == -1


def test_the_total_counts_every_nested_value() -> None:
    fields = message("a", "b")
    fields.add("list", FieldType.LIST, nulls(5))
    fields.add("message", FieldType.MESSAGE, message("c"))
    assert fields.total == 2 + 1 + 5 + 1 + 1


def test_the_depth_is_that_of_the_deepest_branch() -> None:
    fields = message()
    fields.add("deep", FieldType.MESSAGE, nested(4))
    fields.add("shallow", FieldType.MESSAGE, nested(2))
    assert fields.depth == 5


def test_adopting_counts_the_values_and_levels_of_a_child() -> None:
    fields = message("a")
    fields.adopt(nulls(7))
    assert (fields.total, fields.depth, len(fields)) == (8, 2, 1)


@pytest.mark.req("MM-6")
def test_nesting_to_the_depth_limit_is_allowed() -> None:
    assert nested(DEPTH_MAX).depth == DEPTH_MAX == 16


@pytest.mark.req("MM-6")
def test_nesting_over_the_depth_limit_is_refused() -> None:
    with pytest.raises(BadField, match="nesting 17 deep is over the limit of 16"):
        nested(DEPTH_MAX + 1)


def test_a_message_has_room_for_the_most_fields() -> None:
    assert len(message(*("n" for _ in range(FIELDS_MAX)))) == FIELDS_MAX == 4_096


def test_one_field_over_the_limit_is_refused_and_not_kept() -> None:
    fields = message(*("n" for _ in range(FIELDS_MAX)))
    with pytest.raises(BadField, match="4096"):
        fields.add("one more", FieldType.NULL, None)
    assert len(fields) == FIELDS_MAX


def test_a_list_may_have_more_items_than_a_message_fields() -> None:
    assert len(nulls(FIELDS_MAX + 1)) == FIELDS_MAX + 1


def test_a_message_has_room_for_the_most_values() -> None:
    fields = message()
    fields.add("list", FieldType.LIST, nulls(VALUES_MAX - 1))
    assert fields.total == VALUES_MAX == 65_536


def test_one_nested_value_over_the_limit_is_refused() -> None:
    with pytest.raises(BadField, match="65537 values"):
        message().add("list", FieldType.LIST, nulls(VALUES_MAX))
