"""Columns of the table: standard columns, and fields of messages by name and type.

Messages come from many publishers, and a field may have another type than its column. Such rows are
malformed, and handled by the modes of Spark's JSON source.
"""

import base64
import json
from enum import StrEnum
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import BadOption, ProtocolError
from weft.journal.read.arrow_batches import ALL_COLUMNS, Range
from weft.spark.fields import BadColumn, fields_of
from weft.wire.message.message import Message

STANDARD = (
    "subject string, reply string, payload binary, timestamp timestamp, origin bigint,"
    " publisher bigint, sequence bigint, node string, position bigint, service string, date date"
)

# Columns of the journal, not of the message.
_OF_PLACE = ("node", "service")
_STRINGS = (pa.string(),)
_INTEGERS = (pa.int64(), pa.int32(), pa.int16(), pa.int8())
# Types of the standard columns; the others are integers.
_TYPES = {
    **dict.fromkeys(("subject", "reply", *_OF_PLACE), _STRINGS),
    "payload": (pa.binary(), pa.string()),
    "timestamp": (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    "date": (pa.date32(),),
}
_OF_FIELDS = ("payload", "flags", "position")


class Mode(StrEnum):
    """Handling of malformed rows."""

    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"
    FAILFAST = "FAILFAST"


class Parsing(NamedTuple):
    """Options for columns made of message bodies."""

    mode: Mode = Mode.PERMISSIVE
    # Column for the body of a malformed row.
    corrupt: str = "_corrupt_record"
    # Columns that are fields of messages, although they have the name of a standard column.
    fields: frozenset[str] = frozenset()


class Layout:
    """Columns of a schema and their sources.

    Raises:
        BadOption: Invalid type of a column, or unknown column.
    """

    def __init__(self, schema: pa.Schema, parsing: Parsing) -> None:
        names = set(schema.names)
        if unknown := parsing.fields - names:
            raise BadOption(
                f"fieldColumns names {', '.join(sorted(unknown))}: the schema has no such column"
            )
        self._schema = schema
        self._mode = parsing.mode
        self._corrupt = parsing.corrupt if parsing.corrupt in names else None
        standard = [each for each in names - parsing.fields if is_standard(each)]
        self._standard = frozenset(standard) - {self._corrupt}
        self._fields = [field for field in schema if field.name not in {*standard, self._corrupt}]
        self._check()

    @property
    def needed(self) -> list[str]:
        """Columns of a journal that are needed for these."""
        needed = self._standard.intersection(ALL_COLUMNS)
        if "date" in self._standard:
            needed |= {"timestamp"}
        if self._has_bodies:
            needed |= {*_OF_FIELDS}
        return sorted(needed)

    def rows(self, batch: pa.RecordBatch, place: Range) -> tuple[pa.RecordBatch, list[int]]:
        """Return messages as these columns, and the positions of malformed ones.

        Args:
            batch: The columns `needed`, as in parquet.SCHEMA.
            place: The range that the messages are in.

        Raises:
            BadColumn: A message is malformed in mode FAILFAST, or a column is unreadable.
        """
        malformed: set[int] = set()
        typed: dict[str, pa.Array] = {}
        if self._has_bodies:
            is_strict = self._mode == Mode.FAILFAST
            typed = fields_of(batch, self._fields, None if is_strict else malformed)
        if self._corrupt is not None:
            typed[self._corrupt] = self._bodies(batch, malformed)
        arrays = [
            typed[field.name] if field.name in typed else _standard(batch, field, place)
            for field in self._schema
        ]
        made = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        positions = [batch.column("position")[row].as_py() for row in sorted(malformed)]
        if malformed and self._mode == Mode.DROPMALFORMED:
            kept = [row for row in range(batch.num_rows) if row not in malformed]
            made = made.take(pa.array(kept, pa.int64()))
        return made, positions

    @property
    def _has_bodies(self) -> bool:
        return bool(self._fields) or self._corrupt is not None

    def _check(self) -> None:
        for name in self._standard:
            found = self._schema.field(name).type
            types = _TYPES.get(name, _INTEGERS)
            if found not in types:
                raise BadOption(
                    f"column {name!r} is a standard column and cannot be {found}, only"
                    f" {' or '.join(map(str, types))}; the option fieldColumns={name} reads a"
                    " field of this name instead"
                )
        if self._corrupt is None:
            return
        found = self._schema.field(self._corrupt).type
        if found not in (pa.string(), pa.binary()):
            raise BadOption(
                f"column {self._corrupt!r} has bodies of malformed messages and cannot be {found},"
                " only string or binary; columnNameOfCorruptRecord gives it another name"
            )

    def _bodies(self, batch: pa.RecordBatch, malformed: set[int]) -> pa.Array:
        kind = self._schema.field(self._corrupt).type
        if not malformed:
            return pa.nulls(batch.num_rows, kind)
        bodies = [
            body.as_py() if row in malformed else None
            for row, body in enumerate(batch.column("payload"))
        ]
        if kind == pa.string():
            bodies = [None if body is None else _text_of(body) for body in bodies]
        return pa.array(bodies, kind)


def is_standard(name: str) -> bool:
    """Return whether every message has a column of this name."""
    return name in ALL_COLUMNS or name in _OF_PLACE or name == "date"


def _text_of(body: bytes) -> str:
    """Return a body as JSON; an invalid one as its bytes."""
    try:
        return Message.from_body(body).to_json()
    except ProtocolError:
        return json.dumps({"$blob": base64.b64encode(body).decode()})


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
