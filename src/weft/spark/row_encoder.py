"""Encoding of table rows as messages.

Column `subject` is the subject of a row, `reply` its reply subject. A column `payload` is the whole
body; without one every other column is a field of the message, and null omits the field.
"""

from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import pyarrow as pa

from weft.client.publish.encode import message_frame
from weft.errors import BadOption, WeftError
from weft.wire.frames import Flag, Kind, encode
from weft.wire.subjects import checked_subject

_BARE = int(Flag.BARE)
# Spark's own batches have up to 64 MiB, and Python objects take several times that.
_PART_BYTES = 4 << 20

Value = Callable[[Any], Any]


class BadRow(WeftError):
    """A row that is not a valid message."""


class Rows:
    """Encoder of the rows of one schema.

    `subject` applies to all rows: a column of this name is then a field like any other.

    Raises:
        BadOption: The columns do not make a message.
    """

    def __init__(self, schema: pa.Schema, subject: str | None) -> None:
        names = set(schema.names)
        if subject is None and "subject" not in names:
            raise BadOption("no subject: add a column 'subject', or set the option subject")
        own = {"reply", "payload"}
        if subject is None:
            own.add("subject")
        if "payload" in names:
            # Flags of the payload; without a payload, a field like any other.
            own.add("flags")
        _check_kinds(schema, own)
        self._subject = subject
        self._has_payload = "payload" in names
        self._has_flags = self._has_payload and "flags" in names
        self._fields = {
            field.name: _value_of(field.type) for field in schema if field.name not in own
        }
        if self._has_payload and self._fields:
            raise BadOption(
                f"with a column 'payload' there can be no fields: {', '.join(self._fields)}"
            )

    def frames(self, batch: pa.RecordBatch) -> Iterator[bytes]:
        """Yield the rows of a batch, one frame each.

        Raises:
            BadRow: Invalid row; the text has its number.
        """
        for number, row in enumerate(_rows_of(batch)):
            try:
                yield self._frame(row)
            except WeftError as error:
                raise BadRow(f"row {number} cannot be a message: {error}") from error

    def _frame(self, row: dict[str, Any]) -> bytes:
        subject = row["subject"] if self._subject is None else self._subject
        if subject is None:
            raise BadOption("its subject is null")
        reply = row.get("reply") or ""
        if self._has_payload:
            return self._with_payload(row, subject, reply)
        fields = {
            name: value_of(row[name])
            for name, value_of in self._fields.items()
            if row[name] is not None
        }
        return message_frame(subject, fields, reply)

    def _with_payload(self, row: dict[str, Any], subject: str, reply: str) -> bytes:
        payload = row["payload"]
        if payload is None:
            raise BadOption("its payload is null")
        if self._has_flags and row["flags"] is None:
            raise BadOption("its flags are null")
        if self._has_flags and not row["flags"] & _BARE:
            # The body of another message, encoded.
            to = checked_subject(reply) if reply else b""
            return encode(Kind.MESSAGE, checked_subject(subject), payload, to)
        return message_frame(subject, payload, reply)


def _rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield rows as dicts, converting about _PART_BYTES at a time."""
    parts = -(-batch.nbytes // _PART_BYTES)
    rows = max(batch.num_rows // max(parts, 1), 1)
    for start in range(0, batch.num_rows, rows):
        yield from batch.slice(start, rows).to_pylist()


def _check_kinds(schema: pa.Schema, own: set[str]) -> None:
    if "flags" in own.intersection(schema.names):
        kind = schema.field("flags").type
        if not pa.types.is_integer(kind):
            raise BadOption(f"column 'flags' beside 'payload' is {kind}; it must be an integer")
    for name in {"subject", "reply"}.intersection(own, schema.names):
        kind = schema.field(name).type
        if not pa.types.is_string(kind):
            raise BadOption(f"column {name!r} is {kind}; it must be a string")
    if "payload" in schema.names:
        kind = schema.field("payload").type
        if not pa.types.is_binary(kind) and not pa.types.is_string(kind):
            raise BadOption(f"column 'payload' is {kind}; it must be binary or a string")


def _value_of(kind: pa.DataType) -> Value:
    """Return the conversion of a column's values to values of a field."""
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return lambda moment: moment.replace(tzinfo=UTC)
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return str
    if pa.types.is_map(kind):
        item = _value_of(kind.item_type)
        return lambda pairs: {str(key): _or_none(item, value) for key, value in pairs}
    if pa.types.is_list(kind):
        item = _value_of(kind.value_type)
        return lambda items: [_or_none(item, value) for value in items]
    if pa.types.is_struct(kind):
        inner = {each.name: _value_of(each.type) for each in kind}
        return lambda row: {name: _or_none(inner[name], value) for name, value in row.items()}
    if pa.types.is_duration(kind) or pa.types.is_interval(kind):
        raise BadOption(f"a column of type {kind} has no field type: cast it to another")
    return lambda value: value


def _or_none(value_of: Value, value: Any) -> Any:
    return None if value is None else value_of(value)
