"""Field on the command line: `name:type=value`.

Without a type it is a string: types are never guessed. Messages, lists, blobs and timestamps are
written as in JSON.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from weft import Field, FieldType, Message
from weft.errors import BadField, shortened


def field_from_text(text: str) -> Field:
    """Return the field for a text `name:type=value`.

    Raises:
        BadField: Unknown type, or a value that the type does not allow.
    """
    head, equals, value = text.partition("=")
    name, colon, type_name = head.rpartition(":")
    if not colon:
        name, type_name = head, "string"
    if type_name not in _READERS:
        known = ", ".join(_READERS)
        raise BadField(f"there is no field type {shortened(type_name)} among {known}")
    if not equals and type_name != "null":
        raise BadField(f"field {shortened(text)} has no value: a field is name:type=value")
    try:
        return _READERS[type_name](name, value)
    except BadField as error:
        raise BadField(f"field {shortened(name)}: {error}") from error


def _string(name: str, value: str) -> Field:
    return Field.string(name, value)


def _integer(field_type: FieldType) -> Callable[[str, str], Field]:
    def read(name: str, value: str) -> Field:
        try:
            number = int(value)
        except ValueError as error:
            raise BadField(f"{shortened(value)} is not a whole number") from error
        return Field(name, number, field_type)

    return read


def _double(name: str, value: str) -> Field:
    try:
        return Field.double(name, float(value))
    except ValueError as error:
        raise BadField(f"{shortened(value)} is not a number") from error


def _bool(name: str, value: str) -> Field:
    if value not in ("true", "false"):
        raise BadField(f"{shortened(value)} is neither true nor false")
    return Field.bool(name, value == "true")


def _null(name: str, value: str) -> Field:
    if value:
        raise BadField(f"null has no value, not even {shortened(value)}")
    return Field.null(name)


def _blob(name: str, value: str) -> Field:
    if not value.startswith("@"):
        return _from_json(name, json.dumps({"$blob": value}), FieldType.BLOB)
    try:
        return Field.blob(name, Path(value[1:]).read_bytes())
    except OSError as error:
        raise BadField(f"{shortened(value[1:])} cannot be read: {error.strerror}") from error


def _timestamp(name: str, value: str) -> Field:
    if value == "now":
        return Field.timestamp(name, time.time_ns())
    return _from_json(name, json.dumps({"$timestamp": value}), FieldType.TIMESTAMP)


def _message(name: str, value: str) -> Field:
    return _from_json(name, value, FieldType.MESSAGE)


def _list(name: str, value: str) -> Field:
    return _from_json(name, value, FieldType.LIST)


def _from_json(name: str, value: str, wanted: FieldType) -> Field:
    fields = Message.from_json(f"{{{json.dumps(name)}:{value}}}").fields()
    # Reject a value such as `1, "other": 2`, which makes two fields.
    if len(fields) != 1 or fields[0].type != wanted:
        raise BadField(f"{shortened(value)} is not a {wanted} in JSON")
    return fields[0]


_READERS: dict[str, Callable[[str, str], Field]] = {
    "string": _string,
    "int32": _integer(FieldType.INT32),
    "uint32": _integer(FieldType.UINT32),
    "int64": _integer(FieldType.INT64),
    "uint64": _integer(FieldType.UINT64),
    "double": _double,
    "bool": _bool,
    "blob": _blob,
    "timestamp": _timestamp,
    "null": _null,
    "message": _message,
    "list": _list,
}
