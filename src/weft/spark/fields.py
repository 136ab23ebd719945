"""Fields of messages as columns of given types.

Scalar types are read directly from the bodies. Nested types, and values of another type than their
column, are read as messages, which convert them or report the error.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import ProtocolError, WeftError, WrongType
from weft.journal.parquet.field_columns import FieldColumn, FieldReader, Form
from weft.spark.arrow_values import fit_for, plain
from weft.wire.byteops import i32_at
from weft.wire.frames import Flag
from weft.wire.message.message import Message

_BARE = int(Flag.BARE)
# Characters of a value in an error.
_SHOWN = 64
_ARROW_ERRORS = (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError)
_DAY_NS = 86_400_000_000_000
# For every type: its form, its bound, and the type that has this form.
_FORMS = {
    pa.bool_(): (Form.BOOL, 0, pa.bool_()),
    pa.int8(): (Form.INTEGER, 0, pa.int64()),
    pa.int16(): (Form.INTEGER, 0, pa.int64()),
    pa.int32(): (Form.INTEGER, 0, pa.int64()),
    pa.int64(): (Form.INTEGER, 0, pa.int64()),
    pa.float32(): (Form.DOUBLE, 1 << 24, pa.float64()),
    pa.float64(): (Form.DOUBLE, 1 << 53, pa.float64()),
    pa.string(): (Form.TEXT, 0, pa.string()),
    pa.binary(): (Form.BINARY, 0, pa.binary()),
    pa.timestamp("us", "UTC"): (Form.MOMENT, 1000, pa.timestamp("us", "UTC")),
    pa.timestamp("us"): (Form.MOMENT, 1000, pa.timestamp("us")),
    pa.date32(): (Form.MOMENT, _DAY_NS, pa.int64()),
}


class BadColumn(WeftError):
    """A message has no valid value for a column."""


def fields_of(
    batch: pa.RecordBatch, fields: list[pa.Field], malformed: set[int] | None = None
) -> dict[str, pa.Array]:
    """Return columns made of the fields of messages; a missing field is null.

    Args:
        batch: Messages with the columns payload, flags and position of parquet.SCHEMA.
        fields: Names and types.
        malformed: Receives the numbers of malformed rows: an invalid body, or a field of another
            type than its column, which becomes null. None to raise an error.

    Raises:
        BadColumn: A row is malformed, and `malformed` is None.
    """
    plain_ones = [field for field in fields if field.type in _FORMS]
    columns = [FieldColumn(_name(field), *_FORMS[field.type][:2]) for field in plain_ones]
    if FieldReader(columns).read(*_bodies(batch), batch.num_rows) >= 0:
        return by_messages(batch, fields, malformed)
    made: dict[str, pa.Array] = {}
    for field, column in zip(plain_ones, columns, strict=True):
        array = None if column.is_odd else _array(column, field.type, batch.num_rows)
        if array is not None:
            made[field.name] = array
    rest = [field for field in fields if field.name not in made]
    return made | by_messages(batch, rest, malformed) if rest else made


def by_messages(
    batch: pa.RecordBatch, fields: list[pa.Field], malformed: set[int] | None = None
) -> dict[str, pa.Array]:
    """Return the same as fields_of(), for any types, with an object per message."""
    names = [field.name for field in fields]
    values: list[list[Any]] = [[] for _ in fields]
    rows = zip(batch.column("payload"), batch.column("flags"), strict=True)
    for row, (payload, flags) in enumerate(rows):
        found: list[Any] = [None] * len(names)
        try:
            if not flags.as_py() & _BARE:
                found = _values_in(Message.from_body(payload.as_py()), names)
        except ProtocolError as error:
            if malformed is None:
                raise BadColumn(
                    f"the message at position {_position(batch, row)} cannot be read: {error}"
                ) from error
            malformed.add(row)
        for column, value in zip(values, found, strict=True):
            column.append(value)
    return {
        field.name: _typed(field, column, batch, malformed)
        for field, column in zip(fields, values, strict=True)
    }


def _name(field: pa.Field) -> bytes:
    # Lone surrogates are in no message, but may be in a schema.
    return str(field.name).encode(errors="surrogatepass")


def _bodies(batch: pa.RecordBatch) -> tuple[bytes, bytes, bytes]:
    """Return the offsets and bytes of the bodies, and their flags."""
    rows = batch.num_rows
    payload, flags = batch.column("payload"), batch.column("flags")
    if not rows:
        return bytes(4), b"", b""
    _, ends, data = payload.buffers()
    offsets = ends.slice(4 * payload.offset, 4 * (rows + 1)).to_pybytes()
    first, last = i32_at(offsets, 0), i32_at(offsets, 4 * rows)
    words = flags.buffers()[1].slice(8 * flags.offset, 8 * rows)
    return offsets, data.slice(first, last - first).to_pybytes(), words.to_pybytes()


def _array(column: FieldColumn, wanted: pa.DataType, rows: int) -> pa.Array | None:
    """Return a column as an array; None if its type cannot represent a value."""
    form = _FORMS[wanted][2]
    buffers = [pa.py_buffer(column.validity), pa.py_buffer(column.values)]
    if wanted in (pa.string(), pa.binary()):
        buffers.append(pa.py_buffer(column.texts.data))
    array = pa.Array.from_buffers(form, rows, buffers, column.nulls)
    if wanted == pa.date32():
        return array.cast(pa.int32()).view(wanted)
    try:
        return pc.cast(array, wanted)
    except pa.ArrowInvalid:
        return None


def _values_in(message: Message, names: list[str]) -> list[Any]:
    # A body is parsed on the first access: do one even if there are no columns.
    return [plain(message.get(name)) for name in names or [""]][: len(names)]


def _position(batch: pa.RecordBatch, row: int) -> int:
    position: int = batch.column("position")[row].as_py()
    return position


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _typed(
    field: pa.Field, values: list[Any], batch: pa.RecordBatch, malformed: set[int] | None
) -> pa.Array:
    fit = fit_for(field.type)
    try:
        return pa.array([fit(value) for value in values], field.type)
    except (WrongType, *_ARROW_ERRORS):
        fitted = _fitted(field, values, batch, malformed)
    try:
        return pa.array(fitted, field.type)
    except _ARROW_ERRORS as error:
        raise WrongType(f"field {field.name!r} cannot be {field.type}") from error


def _fitted(
    field: pa.Field, values: list[Any], batch: pa.RecordBatch, malformed: set[int] | None
) -> list[Any]:
    """Return the values one by one: null for malformed ones, if `malformed` is given."""
    fit = fit_for(field.type)
    fitted = []
    for row, value in enumerate(values):
        try:
            one = fit(value)
            pa.array([one], field.type)
        except (WrongType, *_ARROW_ERRORS) as error:
            if malformed is None:
                raise BadColumn(
                    f"field {field.name!r} of the message at position {_position(batch, row)} is"
                    f" {_shown(value)}, not a valid {field.type}"
                ) from error
            malformed.add(row)
            one = None
        fitted.append(one)
    return fitted
