"""Conversion of Python values to raw field values, with checks of types and nesting.

Messages and fields are RawValues: they already have their raw form and are used as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from weft.errors import BadField, shortened
from weft.wire.message.field_types import checked_text, default_kind, raw_scalar
from weft.wire.message.types import DEPTH_MAX, VALUES_MAX, Fields, FieldType

_MESSAGE = int(FieldType.MESSAGE)
_LIST = int(FieldType.LIST)
_DEPTH_MAX = DEPTH_MAX
_VALUES_MAX = VALUES_MAX


class RawValue:
    """Value with a field type, a raw form and, if it is a field, a name."""

    def raw_kind(self) -> int:
        """The number of its field type."""
        raise NotImplementedError

    def raw_name(self) -> str:
        """The name of a field, or an empty text."""
        return ""

    def raw_form(self) -> Any:
        """The raw form; see types.py."""
        raise NotImplementedError


def kind_of(value: object) -> int:
    """The default field type of a value.

    Raises:
        BadField: no field type holds the value.
    """
    kind = default_kind(value)
    if kind != 0:
        return kind
    if isinstance(value, RawValue):
        return value.raw_kind()
    if isinstance(value, Mapping):
        return _MESSAGE
    if isinstance(value, (list, tuple)):
        return _LIST
    raise BadField(f"no field type holds a {type(value).__name__}")


def raw_value(kind: int, value: Any, depth: int) -> Any:
    """Convert a value of this type to its raw form; `depth` is the level of the enclosing message.

    Raises:
        BadField: the type cannot hold the value, or it is over a limit.
    """
    raw = _raw_value(kind, value, depth)
    if isinstance(raw, Fields):
        _refuse_too_deep(depth + raw.depth)
        _refuse_too_many(1 + raw.total)
    return raw


def add_value(fields: Fields, name: str, value: object, depth: int) -> None:
    """Append a value with its default type.

    Raises:
        BadField: no type can hold it, or it is over a limit.
    """
    try:
        kind = default_kind(value)
        if kind != 0:
            fields.add(checked_text(name), kind, raw_scalar(kind, value))
        else:
            kind = kind_of(value)
            fields.add(checked_text(name), kind, raw_value(kind, value, depth))
    except BadField as error:
        error.within(f"[{len(fields)}]" if fields.is_list else str(name))
        raise


def fields_from_mapping(values: Mapping[str, Any], depth: int) -> Fields:
    """Convert a mapping to fields, in its order."""
    if not isinstance(values, Mapping):
        raise BadField(f"{type(values).__name__} is not a message or a mapping")
    fields = Fields(False)
    _refuse_too_deep(depth)
    for name, value in values.items():
        add_value(fields, name, value, depth)
    return fields


def fields_from_items(values: Iterable[Any], depth: int) -> Fields:
    """Convert a list to its items."""
    fields = Fields(True)
    _refuse_too_deep(depth)
    for value in values:
        add_value(fields, "", value, depth)
    return fields


def _raw_value(kind: int, value: Any, depth: int) -> Any:
    if isinstance(value, RawValue):
        if value.raw_kind() != kind:
            raise BadField(f"a {FieldType(value.raw_kind())} was given for a {FieldType(kind)}")
        if value.raw_name():
            raise BadField(
                f"the field {shortened(value.raw_name())} was given where only a value can be"
            )
        return value.raw_form()
    if kind == _MESSAGE:
        return fields_from_mapping(value, depth + 1)
    if kind == _LIST:
        if not isinstance(value, (list, tuple)):
            raise BadField(f"{type(value).__name__} is not a list or a tuple")
        return fields_from_items(value, depth + 1)
    return raw_scalar(kind, value)


def _refuse_too_deep(depth: int) -> None:
    # Before descending: a list that contains itself would recurse without end.
    if depth > _DEPTH_MAX:
        raise BadField(f"nesting {depth} deep is over the limit of {_DEPTH_MAX}")


def _refuse_too_many(count: int) -> None:
    if count > _VALUES_MAX:
        raise BadField(f"{count} values, nested ones counted, are over the limit of {_VALUES_MAX}")
