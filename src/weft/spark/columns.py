"""The columns of the table: what every message has, and fields of messages by name and type."""

import pyarrow as pa
import pyarrow.compute as pc

from weft.journal.ranges import ALL_COLUMNS, Range
from weft.spark.fields import BadColumn, fields_of

STANDARD = (
    "subject string, reply string, payload binary, timestamp timestamp, origin bigint,"
    " publisher bigint, sequence bigint, node string, position bigint, service string, date date"
)

# Of the place where a message was found, and not of the message.
_OF_PLACE = ("node", "service")


def columns_for(schema: pa.Schema) -> list[str]:
    """The columns of a journal that these are made of."""
    names = {field.name for field in schema}
    needed = names.intersection(ALL_COLUMNS)
    if "date" in names:
        needed.add("timestamp")
    if not all(map(_is_standard, names)):
        needed |= {"payload", "flags", "position"}
    return sorted(needed)


def as_asked(batch: pa.RecordBatch, schema: pa.Schema, place: Range) -> pa.RecordBatch:
    """Messages as the columns that were asked for.

    Args:
        batch: what columns_for() says, as in parquet.SCHEMA.
        schema: the columns.
        place: where the messages were found.

    Raises:
        BadColumn: a field of a message is of another type than its column, or cannot be read.
    """
    fields = [field for field in schema if not _is_standard(field.name)]
    typed = fields_of(batch, fields) if fields else {}
    arrays = [
        typed[field.name] if field.name in typed else _standard(batch, field, place)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_standard(name: str) -> bool:
    return name in ALL_COLUMNS or name in _OF_PLACE or name == "date"


def _standard(batch: pa.RecordBatch, field: pa.Field, place: Range) -> pa.Array:
    rows = batch.num_rows
    if field.name in ALL_COLUMNS:
        array = batch.column(field.name)
    elif field.name == "date":
        array = pc.cast(batch.column("timestamp"), pa.date32())
    else:
        value = place.node if field.name == "node" else place.shelf.service
        array = pa.repeat(pa.scalar(value, pa.string()), rows)
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid as error:
        raise BadColumn(f"column {field.name!r} cannot be {field.type}: {error}") from error
