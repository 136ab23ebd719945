"""Public message type: named, typed fields in order, decoded on first use.

A message is immutable, so one may be published many times and shared by threads. A received one
keeps its frame and decodes it when a field is first accessed.
"""

import builtins
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from weft.errors import BadField, NoSuchField, ProtocolError, WrongType, shortened
from weft.wire.buffer import Spare
from weft.wire.byteops import Bytes
from weft.wire.frames import check_whole
from weft.wire.message.field_types import checked_text, is_in_range, moment
from weft.wire.message.flat_codec import dict_from_flat, put_flat, raw_at
from weft.wire.message.from_python import (
    RawValue,
    add_value,
    fields_from_mapping,
    kind_of,
    raw_value,
)
from weft.wire.message.json_codec import fields_from_json, json_from_fields
from weft.wire.message.lazy_body import LazyBody
from weft.wire.message.to_python import dict_from_fields, shown_fields, shown_value
from weft.wire.message.types import Fields, FieldType

_STRING = int(FieldType.STRING)
_INT32 = int(FieldType.INT32)
_UINT32 = int(FieldType.UINT32)
_INT64 = int(FieldType.INT64)
_UINT64 = int(FieldType.UINT64)
_DOUBLE = int(FieldType.DOUBLE)
_MESSAGE = int(FieldType.MESSAGE)
_BOOL = int(FieldType.BOOL)
_BLOB = int(FieldType.BLOB)
_LIST = int(FieldType.LIST)
_TIMESTAMP = int(FieldType.TIMESTAMP)

_NUMBERS = (_INT32, _UINT32, _INT64, _UINT64, _DOUBLE)
_MISSING = object()
_spare = Spare()


class Field(RawValue):
    """One named, typed value: `Field("temp", 21.5)`, or explicitly `Field.uint32("n", 7)`."""

    def __init__(self, name: str, value: object, type: FieldType | None = None) -> None:  # noqa: A002
        """Create a field; without a type, the value's Python type decides.

        Raises:
            BadField: the type cannot hold the value.
        """
        self.name = checked_text(name)
        try:
            self._kind = kind_of(value) if type is None else _checked_kind(type)
            self._raw = raw_value(self._kind, value, 1)
        except BadField as error:
            error.within(self.name)
            raise

    @staticmethod
    def string(name: str, value: str) -> "Field":
        """A UTF-8 string."""
        return Field(name, value, FieldType.STRING)

    @staticmethod
    def int32(name: str, value: int) -> "Field":
        """A signed 32-bit integer."""
        return Field(name, value, FieldType.INT32)

    @staticmethod
    def uint32(name: str, value: int) -> "Field":
        """An unsigned 32-bit integer."""
        return Field(name, value, FieldType.UINT32)

    @staticmethod
    def int64(name: str, value: int) -> "Field":
        """A signed 64-bit integer; the default type of an int."""
        return Field(name, value, FieldType.INT64)

    @staticmethod
    def uint64(name: str, value: int) -> "Field":
        """An unsigned 64-bit integer."""
        return Field(name, value, FieldType.UINT64)

    @staticmethod
    def double(name: str, value: float) -> "Field":
        """An IEEE double."""
        return Field(name, value, FieldType.DOUBLE)

    @staticmethod
    def bool(name: str, value: bool) -> "Field":
        """True or false."""
        return Field(name, value, FieldType.BOOL)

    @staticmethod
    def blob(name: str, value: bytes | bytearray | memoryview) -> "Field":
        """Opaque bytes."""
        return Field(name, value, FieldType.BLOB)

    @staticmethod
    def message(name: str, value: "Message | Mapping[str, Any]") -> "Field":
        """A message within the message."""
        return Field(name, value, FieldType.MESSAGE)

    @staticmethod
    def list(name: str, value: "list[Any] | tuple[Any, ...]") -> "Field":
        """A list; an item that needs an explicit type is given as an unnamed Field."""
        return Field(name, value, FieldType.LIST)

    @staticmethod
    def null(name: str) -> "Field":
        """A name with no value."""
        return Field(name, None, FieldType.NULL)

    @staticmethod
    def timestamp(name: str, value: datetime | int) -> "Field":
        """A time, given as an aware datetime or as ns since the epoch."""
        return Field(name, value, FieldType.TIMESTAMP)

    def raw_kind(self) -> int:
        """The number of its type."""
        return self._kind

    def raw_name(self) -> str:
        """Its name."""
        return self.name

    def raw_form(self) -> Any:
        """Its raw value; see types.py."""
        return self._raw

    @property
    def type(self) -> FieldType:
        """The type on the wire."""
        return FieldType(self._kind)

    @property
    def value(self) -> Any:
        """The value in Python: a message is a Message, a timestamp is a datetime in UTC."""
        return _python_value(self._kind, self._raw)

    def __eq__(self, other: object) -> builtins.bool:
        if not isinstance(other, Field):
            return NotImplemented
        return Message(self) == Message(other)

    def __hash__(self) -> int:
        return hash(Message(self))

    def __repr__(self) -> str:
        return f"Field.{self.type}({self.name!r}, {shown_value(self._kind, self._raw)})"


class Message(LazyBody):
    """Named, typed fields in order: `Message(city="London", temp=21.5)`.

    Fields that need an explicit type come first, as Field objects. A name may occur twice: look-up
    gives the first, iteration gives all. Two messages are equal if their bodies are the same bytes.
    """

    def __init__(self, /, *fields: Field, **named: Any) -> None:
        """Create a message from fields and from names with values.

        Raises:
            BadField: a value has no field type, or the message is over a limit.
        """
        self._frame = None
        self._body: bytes | None = None
        self._fields: Fields | None = None
        self._flat: bytes | None = None
        self._flat_start = 0
        self._is_looked_at = False
        if not fields and self._has_body_of(named):
            return
        made = Fields(False)
        for field in fields:
            if not isinstance(field, Field):
                raise _not_a_field(field)
            made.add(field.name, field.raw_kind(), field.raw_form())
        for name, value in named.items():
            add_value(made, name, value, 1)
        self._fields = made

    @staticmethod
    def from_frame(frame: Bytes) -> "Message":
        """The message in one whole frame, as a decoder returns it; it is not decoded yet.

        Raises:
            BadFrame: not one whole frame.
        """
        return message_in(bytes(frame))

    @staticmethod
    def from_body(body: Bytes) -> "Message":
        """The message with this body, which is not decoded yet."""
        return _made(None, bytes(body), None)

    @staticmethod
    def from_payload(payload: bytes) -> "Message":
        """A message of bare bytes: one unnamed blob."""
        return Message(Field("", payload, FieldType.BLOB))

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Message":
        """A message with a field for every key, in order."""
        return _wrapped(fields_from_mapping(values, 1))

    @staticmethod
    def from_json(text: str | bytes) -> "Message":
        """A message from a JSON object.

        Raises:
            BadField: not a JSON object, a key occurs twice, or over a limit.
        """
        return _wrapped(fields_from_json(text))

    def to_dict(self) -> dict[str, Any]:
        """A dict of the values; the first value of a name that occurs twice."""
        flat = self._flat if self._is_looked_at else self._look()
        if flat is not None:
            return dict_from_flat(flat, self._flat_start)
        return dict_from_fields(self._read())

    def to_json(self) -> str:
        """Format the values as a JSON object; the first value of a name that occurs twice."""
        return json_from_fields(self._read())

    @property
    def payload(self) -> bytes:
        """The bytes of a message that was published as bare bytes.

        Raises:
            WrongType: the message has named or other fields.
        """
        bare = self._bare_body()
        if bare is not None:
            return bare
        fields = self._read()
        if len(fields) != 1 or fields.names[0] != "" or fields.kinds[0] != _BLOB:
            raise WrongType("this message is not bare bytes: it has fields of its own")
        payload: bytes = fields.values[0]
        return payload

    def __getitem__(self, name: str) -> Any:
        value = self.get(name, _MISSING)
        if value is _MISSING:
            raise self._lacks(name)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """The value of the first field of this name, or the default if there is none."""
        position = self._find_flat(name)
        flat = self._flat
        if position >= 0 and flat is not None:
            return _python_value(flat[position], raw_at(flat, position))
        if position == -1:
            return default
        fields = self._read()
        position = fields.find(name)
        if position < 0:
            return default
        return _python_value(fields.kinds[position], fields.values[position])

    def get_string(self, name: str) -> str:
        """The value of a string field; WrongType if it is another type."""
        return self._get(name, _STRING)

    def get_int32(self, name: str) -> int:
        """The value as an int32; WrongType if it is not a number or not exactly an int32."""
        return self._get(name, _INT32)

    def get_uint32(self, name: str) -> int:
        """The value as a uint32; WrongType if it is not a number or not exactly a uint32."""
        return self._get(name, _UINT32)

    def get_int64(self, name: str) -> int:
        """The value as an int64; WrongType if it is not a number or not exactly an int64."""
        return self._get(name, _INT64)

    def get_uint64(self, name: str) -> int:
        """The value as a uint64; WrongType if it is not a number or not exactly a uint64."""
        return self._get(name, _UINT64)

    def get_double(self, name: str) -> float:
        """The value as a double; WrongType if it is not a number or not exactly a double."""
        return self._get(name, _DOUBLE)

    def get_bool(self, name: str) -> bool:
        """The value of a bool field; WrongType if it is another type."""
        return self._get(name, _BOOL)

    def get_blob(self, name: str) -> bytes:
        """The value of a blob field; WrongType if it is another type."""
        return self._get(name, _BLOB)

    def get_message(self, name: str) -> "Message":
        """The message in a message field; WrongType if it is another type."""
        return _wrapped(self._get(name, _MESSAGE))

    def get_list(self, name: str) -> list[Any]:
        """The values of a list field; WrongType if it is another type."""
        return _list_from_fields(self._get(name, _LIST))

    def get_timestamp(self, name: str) -> datetime:
        """The time in a timestamp field; WrongType if it is another type."""
        return moment(self._get(name, _TIMESTAMP))

    def get_timestamp_ns(self, name: str) -> int:
        """The ns since the epoch in a timestamp field, which a datetime would round down to µs."""
        return self._get(name, _TIMESTAMP)

    def fields(self, name: str | None = None) -> list[Field]:
        """All fields in order, or all of one name."""
        fields = self._read()
        return [
            _field(fields.names[i], fields.kinds[i], fields.values[i])
            for i in range(len(fields))
            if name is None or fields.names[i] == name
        ]

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields())

    def __len__(self) -> int:
        return len(self._read())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._read().find(name) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        try:
            parts = [] if self._frame is None else [repr(self.subject)]
            return f"Message({', '.join(parts + shown_fields(self._read()))})"
        except ProtocolError as error:
            return f"<Message that cannot be read: {error}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._frame is not None:
            return Message.from_frame, (self._frame,)
        return Message.from_body, (self.encode(),)

    def _has_body_of(self, values: dict[str, Any]) -> bool:
        """Encode the values as a flat body if possible; return whether they were."""
        writer = _spare.take()
        is_put = put_flat(writer, values)
        if is_put:
            self._body = writer.take()
            self._flat = self._body
            self._is_looked_at = True
        _spare.give(writer)
        return is_put

    def _get(self, name: str, kind: int) -> Any:
        position = self._find_flat(name)
        flat = self._flat
        if position >= 0 and flat is not None:
            if flat[position] != kind:
                return _converted(name, flat[position], kind, raw_at(flat, position))
            return raw_at(flat, position)
        fields = self._read()
        position = fields.find(name)
        if position < 0:
            raise self._lacks(name)
        if fields.kinds[position] != kind:
            return _converted(name, fields.kinds[position], kind, fields.values[position])
        return fields.values[position]

    def _lacks(self, name: str) -> NoSuchField:
        if self._bare_body() is not None:
            return NoSuchField(f"no field {shortened(name)} in bare bytes: use payload")
        names = ", ".join(shortened(known) for known in self._read().names[:8])
        return NoSuchField(f"no field {shortened(name)} among {names or 'no fields'}")


def _not_a_field(given: object) -> BadField:
    hint = ": Message.from_dict() takes it" if isinstance(given, Mapping) else ""
    return BadField(f"{type(given).__name__} is not a Field{hint}")


def message_in(frame: bytes) -> Message:
    """The message in one whole frame; see Message.from_frame()."""
    check_whole(frame)
    return _made(frame, None, None)


def _converted(name: str, found: int, wanted: int, value: Any) -> Any:
    """Convert a number to another numeric type, if that type holds it exactly.

    Raises:
        WrongType: it does not, or one of the types is not numeric.
    """
    described = f"field {shortened(name)} has type {FieldType(found)}"
    if found not in _NUMBERS or wanted not in _NUMBERS:
        raise WrongType(f"{described}, not {FieldType(wanted)}")
    try:
        number = float(value) if wanted == _DOUBLE else int(value)
    except (OverflowError, ValueError):
        # Infinities and NaN have no integer form.
        number = None
    if number != value or not (wanted == _DOUBLE or is_in_range(wanted, number)):
        raise WrongType(f"{described}, and {FieldType(wanted)} cannot hold its value {value}")
    return number


def _made(frame: bytes | None, body: bytes | None, fields: Fields | None) -> Message:
    message = Message.__new__(Message)
    message._frame = frame
    message._body = body
    message._fields = fields
    message._flat = None
    message._flat_start = 0
    message._is_looked_at = False
    return message


def _wrapped(fields: Fields) -> Message:
    return _made(None, None, fields)


def _field(name: str, kind: int, raw: Any) -> Field:
    field = Field.__new__(Field)
    field.name = name
    field._kind = kind
    field._raw = raw
    return field


def _checked_kind(kind: int) -> int:
    try:
        return int(FieldType(kind))
    except ValueError as error:
        raise BadField(f"there is no field type {kind!r}") from error


def _python_value(kind: int, raw: Any) -> Any:
    if kind == _MESSAGE:
        return _wrapped(raw)
    if kind == _LIST:
        return _list_from_fields(raw)
    if kind == _TIMESTAMP:
        return moment(raw)
    return raw


def _list_from_fields(items: Fields) -> list[Any]:
    return [_python_value(items.kinds[i], items.values[i]) for i in range(len(items))]
