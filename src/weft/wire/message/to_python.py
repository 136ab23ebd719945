"""Conversion of fields to plain Python: dicts for programs, short text for people."""

from typing import Any

from weft.errors import shortened
from weft.wire.message.field_types import default_kind, moment, timestamp_text
from weft.wire.message.types import Fields, FieldType

# Limits of the text form of a message: fields or items, and levels.
_SHOWN_FIELDS = 16
_SHOWN_DEPTH = 4


def dict_from_fields(fields: Fields) -> dict[str, Any]:
    """A dict of the values; the first value of a name that occurs twice."""
    values: dict[str, Any] = {}
    for name, kind, raw in zip(fields.names, fields.kinds, fields.values, strict=True):
        if name not in values:
            values[name] = _plain_value(kind, raw)
    return values


def shown_fields(fields: Fields, depth: int = 1) -> list[str]:
    """The first fields as `name=value`, with the type where the value does not imply it."""
    shown = []
    for position in range(min(len(fields), _SHOWN_FIELDS)):
        kind, raw = fields.kinds[position], fields.values[position]
        value = shown_value(kind, raw, depth)
        if kind not in _TOLD_BY_THEIR_VALUE and kind != default_kind(raw):
            value = f"{FieldType(kind)}({value})"
        name = "" if fields.is_list else fields.names[position]
        if not name.isprintable() or len(name) > 64:
            name = shortened(name)
        shown.append(f"{name}={value}" if name else value)
    if len(fields) > _SHOWN_FIELDS:
        shown.append(f"… {len(fields) - _SHOWN_FIELDS} more")
    return shown


def shown_value(kind: int, raw: Any, depth: int = 1) -> str:
    """Format a value, shortened if it is long or deeply nested."""
    if kind in (FieldType.MESSAGE, FieldType.LIST):
        inner = ["…"] if depth >= _SHOWN_DEPTH else shown_fields(raw, depth + 1)
        return f"[{', '.join(inner)}]" if kind == FieldType.LIST else f"Message({', '.join(inner)})"
    if kind == FieldType.TIMESTAMP:
        return timestamp_text(raw)
    if kind == FieldType.STRING:
        return shortened(raw)
    if kind == FieldType.BLOB and len(raw) > 64:
        return f"{raw[:64]!r}… of {len(raw)} bytes"
    return repr(raw)


_TOLD_BY_THEIR_VALUE = (FieldType.MESSAGE, FieldType.LIST, FieldType.TIMESTAMP)


def _plain_value(kind: int, raw: Any) -> Any:
    if kind == FieldType.MESSAGE:
        return dict_from_fields(raw)
    if kind == FieldType.LIST:
        return [_plain_value(*item) for item in zip(raw.kinds, raw.values, strict=True)]
    if kind == FieldType.TIMESTAMP:
        return moment(raw)
    return raw
