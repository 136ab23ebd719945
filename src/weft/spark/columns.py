"""The columns of the table: what every message has, and fields of messages by name and type."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.core.frames import Flag
from weft.core.messages import Message
from weft.errors import WeftError, WrongType
from weft.journal.ranges import Range

STANDARD = (
    "subject string, reply string, payload binary, timestamp timestamp, origin bigint,"
    " publisher bigint, sequence bigint, node string, position bigint, service string, date date"
)

_FROM_JOURNAL = {
    *("subject", "reply", "payload", "timestamp", "origin", "publisher", "sequence", "position")
}
_BARE = int(Flag.BARE)


class BadColumn(WeftError):
    """A column that a message has no value for, or one of another type."""


def as_asked(batch: pa.RecordBatch, schema: pa.Schema, place: Range) -> pa.RecordBatch:
    """Messages as in parquet.SCHEMA, as the columns that were asked for.

    Raises:
        BadColumn: a field of a message is of another type than its column.
    """
    fields = [field for field in schema if not _is_standard(field.name)]
    typed = _fields_of(batch, fields) if fields else {}
    arrays = [
        typed[field.name] if field.name in typed else _standard(batch, field, place)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_standard(name: str) -> bool:
    return name in _FROM_JOURNAL or name in ("node", "service", "date")


def _standard(batch: pa.RecordBatch, field: pa.Field, place: Range) -> pa.Array:
    rows = batch.num_rows
    if field.name in _FROM_JOURNAL:
        array = batch.column(field.name)
    elif field.name == "date":
        array = pc.cast(batch.column("timestamp"), pa.date32())
    else:
        value = place.node if field.name == "node" else place.service
        array = pa.repeat(pa.scalar(value, pa.string()), rows)
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid as error:
        raise BadColumn(f"column {field.name!r} cannot be {field.type}: {error}") from error


def _fields_of(batch: pa.RecordBatch, fields: list[pa.Field]) -> dict[str, pa.Array]:
    """Columns made of the fields of messages; a message without one has null there."""
    names = [field.name for field in fields]
    values: dict[str, list[Any]] = {name: [] for name in names}
    rows = zip(batch.column("payload"), batch.column("flags"), strict=True)
    for payload, flags in rows:
        body = payload.as_py()
        message = None if flags.as_py() & _BARE else Message.from_body(body)
        for name in names:
            values[name].append(None if message is None else _plain(message.get(name)))
    return {field.name: _typed(field, values[field.name], batch) for field in fields}


def _plain(value: Any) -> Any:
    return value.to_dict() if isinstance(value, Message) else value


def _typed(field: pa.Field, values: list[Any], batch: pa.RecordBatch) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
        position, found = _first_wrong(field, values, batch)
        raise BadColumn(
            f"field {field.name!r} of the message at position {position} is {found!r}, which is"
            f" no {field.type}"
        ) from error


def _first_wrong(field: pa.Field, values: list[Any], batch: pa.RecordBatch) -> tuple[int, Any]:
    for row, value in enumerate(values):
        try:
            pa.array([value], field.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError):
            return batch.column("position")[row].as_py(), value
    raise WrongType(f"field {field.name!r} cannot be {field.type}")
