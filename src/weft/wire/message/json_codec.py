"""Conversion between messages and JSON objects.

Strings, booleans, null, objects and arrays stay as they are. A number without fraction or exponent
is an int64 (a uint64 beyond its range), any other a double. Types that JSON lacks are objects of
one key: `{"$blob": base64}`, `{"$timestamp": RFC 3339}`, `{"$double": "NaN"}`. A nested message
whose only field has such a name gets one more `$`, so that no two messages have the same JSON.
"""

import base64
import binascii
import json
import math
import re
from datetime import datetime
from typing import Any

from weft.errors import BadField, shortened
from weft.wire.message.field_types import checked_text, nanoseconds, raw_scalar, timestamp_text
from weft.wire.message.types import DEPTH_MAX, Fields, FieldType

_TYPED = re.compile(r"\$+(blob|timestamp|double)")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_UNUSUAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_INT64_MAX = (1 << 63) - 1


def json_from_fields(fields: Fields) -> str:
    """Format the fields as a JSON object; the first value of a name that occurs twice."""
    return json.dumps(_object(fields), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def data_from_fields(fields: Fields) -> Any:
    """Convert a message to JSON data: a single unnamed value is itself, anything else an object."""
    if not _is_one_value(fields):
        return _escaped(_object(fields))
    if fields.kinds[0] != FieldType.MESSAGE:
        return _value(fields.kinds[0], fields.values[0])
    return _object(fields.values[0])


def fields_from_data(value: Any) -> Fields:
    """Convert JSON data to fields; the inverse of data_from_fields().

    Raises:
        BadField: a value that no field can hold, or over a limit of messages.
    """
    # An object is the message itself, any other value is a field in it.
    kind, raw = _kind_and_raw(value, 0 if isinstance(value, dict) else 1)
    if kind == FieldType.MESSAGE:
        fields: Fields = raw
        if not _is_one_value(fields):
            return fields
        # `{"": 7}` would be read back as 7, so it is nested one level deeper.
        kind, raw = _kind_and_raw(value, 1)
    fields = Fields(False)
    fields.add("", kind, raw)
    return fields


def fields_from_json(text: str | bytes) -> Fields:
    """Parse a JSON object into fields.

    Raises:
        BadField: not a JSON object, a key occurs twice, or over a limit.
    """
    value = json_value(text)
    if not isinstance(value, dict):
        raise BadField(f"a message is a JSON object, not {_json_type(value)}")
    return _fields(value, 1)


def json_value(text: str | bytes) -> Any:
    """Parse a JSON text strictly.

    Raises:
        BadField: not JSON, or a key occurs twice.
    """
    try:
        # json.loads() decodes bytes as UTF-16 if they look like it.
        decoded = text if isinstance(text, str) else str(text, "utf-8")
        return _DECODER.decode(decoded)
    except RecursionError as error:
        raise BadField(f"nesting is over the limit of {DEPTH_MAX}") from error
    except BadField:
        raise
    except (TypeError, ValueError) as error:
        raise BadField(f"not JSON: {error}") from error


def _is_one_value(fields: Fields) -> bool:
    """Return whether the fields are one unnamed value, at any depth of unnamed messages."""
    while len(fields.names) == 1 and not fields.names[0]:
        if fields.kinds[0] != FieldType.MESSAGE:
            return True
        fields = fields.values[0]
    return False


def _object(fields: Fields) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, kind, raw in zip(fields.names, fields.kinds, fields.values, strict=True):
        if name not in values:
            values[name] = _value(kind, raw)
    return values


def _value(kind: int, raw: Any) -> Any:
    if kind == FieldType.MESSAGE:
        return _escaped(_object(raw))
    if kind == FieldType.LIST:
        return [_value(*item) for item in zip(raw.kinds, raw.values, strict=True)]
    if kind == FieldType.BLOB:
        return {"$blob": base64.b64encode(raw).decode()}
    if kind == FieldType.TIMESTAMP:
        return {"$timestamp": timestamp_text(raw)}
    if kind == FieldType.DOUBLE and not math.isfinite(raw):
        return {"$double": "NaN" if math.isnan(raw) else "Infinity" if raw > 0 else "-Infinity"}
    return raw


def _escaped(values: dict[str, Any]) -> dict[str, Any]:
    if len(values) == 1:
        [(name, value)] = values.items()
        if _TYPED.fullmatch(name):
            return {"$" + name: value}
    return values


def _fields(values: dict[str, Any], depth: int) -> Fields:
    _refuse_too_deep(depth)
    fields = Fields(False)
    for name, value in values.items():
        kind, raw = _kind_and_raw(value, depth)
        fields.add(checked_text(name), kind, raw)
    return fields


def _items(values: list[Any], depth: int) -> Fields:
    _refuse_too_deep(depth)
    fields = Fields(True)
    for value in values:
        kind, raw = _kind_and_raw(value, depth)
        fields.add("", kind, raw)
    return fields


def _kind_and_raw(value: Any, depth: int) -> tuple[int, Any]:
    if isinstance(value, dict):
        if len(value) == 1:
            [(name, inner)] = value.items()
            if name in _TYPED_READERS:
                return _TYPED_READERS[name](inner)
            if _TYPED.fullmatch(name):
                value = {name[1:]: inner}
        return FieldType.MESSAGE, _fields(value, depth + 1)
    if isinstance(value, list):
        return FieldType.LIST, _items(value, depth + 1)
    if isinstance(value, str):
        return FieldType.STRING, checked_text(value)
    if value is None:
        return FieldType.NULL, None
    if isinstance(value, bool):
        return FieldType.BOOL, value
    if isinstance(value, float):
        return FieldType.DOUBLE, _finite(value)
    kind = FieldType.INT64 if value <= _INT64_MAX else FieldType.UINT64
    return kind, raw_scalar(kind, value)


def _read_blob(text: Any) -> tuple[int, Any]:
    if not isinstance(text, str):
        raise BadField(f"$blob is a base64 string, not {_json_type(text)}")
    if len(text) % 4 != 0:
        raise BadField(f"$blob is not base64: {len(text)} characters are not a multiple of 4")
    try:
        return FieldType.BLOB, binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise BadField(f"$blob is not base64: {error}") from error


def _read_timestamp(text: Any) -> tuple[int, Any]:
    return FieldType.TIMESTAMP, raw_scalar(FieldType.TIMESTAMP, _ns_from_text(text))


def _read_double(text: Any) -> tuple[int, Any]:
    if not isinstance(text, str) or text not in _UNUSUAL_DOUBLES:
        raise BadField(f"$double is one of {', '.join(_UNUSUAL_DOUBLES)}")
    return FieldType.DOUBLE, _UNUSUAL_DOUBLES[text]


_TYPED_READERS = {"$blob": _read_blob, "$timestamp": _read_timestamp, "$double": _read_double}


def _ns_from_text(text: Any) -> int:
    found = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise BadField("$timestamp is RFC 3339 with a time zone: 2026-01-31T12:00:00.5Z")
    whole, fraction, zone = found.groups()
    try:
        second = datetime.fromisoformat(whole + zone)
    except ValueError as error:
        raise BadField(f"$timestamp is not a valid time: {error}") from error
    return nanoseconds(second) + int((fraction or "0").ljust(9, "0"))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise BadField(f"the key {shortened(name)} occurs twice in a JSON object")
        values[name] = value
    return values


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise BadField("a number is over the range of a double")
    return value


def _refuse_constant(name: str) -> None:
    raise BadField(f'not JSON: {name}; a non-finite double is {{"$double": "{name}"}}')


def _refuse_too_deep(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise BadField(f"nesting {depth} deep is over the limit of {DEPTH_MAX}")


def _json_type(value: object) -> str:
    names = {str: "a string", list: "an array", dict: "an object", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")


# Shared: json.loads() would create one for each text.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
