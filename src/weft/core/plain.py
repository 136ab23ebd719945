"""Fields as plain Python: dicts for programs, short text for people."""

from typing import Any

from weft.core.fields import Fields, FieldType
from weft.core.values import default_kind, moment

_SHOWN_MAX = 64


def dict_from_fields(fields: Fields) -> dict[str, Any]:
    """A dict of the values; of a name that occurs twice, the first."""
    values: dict[str, Any] = {}
    for name, kind, raw in zip(fields.names, fields.kinds, fields.values, strict=True):
        if name not in values:
            values[name] = _plain_value(kind, raw)
    return values


def shown_fields(fields: Fields) -> list[str]:
    """Each field as `name=value`, with its type where the value alone does not tell."""
    shown = []
    for name, kind, raw in zip(fields.names, fields.kinds, fields.values, strict=True):
        value = shown_value(kind, raw)
        if kind not in {FieldType.MESSAGE, FieldType.LIST, default_kind(_plain_value(kind, raw))}:
            value = f"{FieldType(kind)}({value})"
        shown.append(f"{name}={value}" if name else value)
    return shown


def shown_value(kind: int, raw: Any) -> str:
    """A value as a person would write it, cut short if it is long."""
    if kind == FieldType.MESSAGE:
        shown = f"Message({', '.join(shown_fields(raw))})"
    else:
        shown = repr(_plain_value(kind, raw))
    return shown if len(shown) <= _SHOWN_MAX else shown[: _SHOWN_MAX - 1] + "…"


def _plain_value(kind: int, raw: Any) -> Any:
    if kind == FieldType.MESSAGE:
        return dict_from_fields(raw)
    if kind == FieldType.LIST:
        return [_plain_value(*item) for item in zip(raw.kinds, raw.values, strict=True)]
    if kind == FieldType.TIMESTAMP:
        return moment(raw)
    return raw
