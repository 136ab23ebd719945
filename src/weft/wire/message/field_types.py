"""Python values as field values: the default type of a value, and the range of each type.

A value that its type cannot hold exactly is refused, never rounded or converted.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from weft.errors import BadField, shortened
from weft.wire.byteops import has_utf8, is_int64
from weft.wire.message.types import FieldType

_STRING = int(FieldType.STRING)
_INT64 = int(FieldType.INT64)
_DOUBLE = int(FieldType.DOUBLE)
_BOOL = int(FieldType.BOOL)
_BLOB = int(FieldType.BLOB)
_NULL = int(FieldType.NULL)
_TIMESTAMP = int(FieldType.TIMESTAMP)

_INT64_MIN = -(1 << 63)
_INT64_MAX = (1 << 63) - 1
_RANGES = {
    int(FieldType.INT32): (-(1 << 31), (1 << 31) - 1),
    int(FieldType.UINT32): (0, (1 << 32) - 1),
    int(FieldType.INT64): (_INT64_MIN, _INT64_MAX),
    int(FieldType.UINT64): (0, (1 << 64) - 1),
    int(FieldType.TIMESTAMP): (_INT64_MIN, _INT64_MAX),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def default_kind(value: object) -> int:
    """The default field type of a scalar; 0 if the value is not a scalar."""
    if isinstance(value, str):
        return _STRING
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INT64
    if isinstance(value, float):
        return _DOUBLE
    if value is None:
        return _NULL
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _BLOB
    if isinstance(value, datetime):
        return _TIMESTAMP
    return 0


def raw_scalar(kind: int, value: Any) -> object:
    """The raw form of a scalar of this type.

    Raises:
        BadField: the type cannot hold the value.
    """
    if kind == _STRING:
        return checked_text(value)
    if kind == _DOUBLE:
        return value if type(value) is float else _raw_double(value)
    if kind == _INT64 and type(value) is int and is_int64(value):
        return value
    if kind == _BLOB:
        return value if type(value) is bytes else _raw_blob(value)
    if kind in (_BOOL, _NULL):
        if default_kind(value) != kind:
            raise _misfit(kind, value)
        return value
    if kind == _TIMESTAMP and isinstance(value, datetime):
        return _raw_integer(kind, nanoseconds(value))
    return _raw_integer(kind, value)


def is_in_range(kind: int, value: Any) -> bool:
    """Return whether an integer type can hold an integer."""
    low, high = _RANGES[kind]
    return bool(low <= value <= high)


def checked_text(value: Any) -> str:
    """Return the text as a plain str, if it has a UTF-8 form.

    Raises:
        BadField: not a str, or it contains an unpaired surrogate.
    """
    if type(value) is not str:
        if not isinstance(value, str):
            raise _misfit(_STRING, value)
        # The characters themselves, whatever str() of a subclass returns.
        value = str.__str__(value)
    if not has_utf8(value):
        raise BadField(f"{shortened(value)} has no UTF-8 form: it holds half of a surrogate pair")
    text: str = value
    return text


def nanoseconds(moment: datetime) -> int:
    """Convert a datetime to ns since the epoch.

    Raises:
        BadField: no time zone.
    """
    if moment.utcoffset() is None:
        raise BadField(f"{moment!r} has no time zone; give an aware datetime")
    return (moment - _EPOCH) // _MICROSECOND * 1_000


def moment(time_ns: int) -> datetime:
    """Convert ns since the epoch to a datetime in UTC, rounded down to microseconds."""
    return _EPOCH + timedelta(microseconds=time_ns // 1_000)


def timestamp_text(time_ns: int) -> str:
    """Format a time as RFC 3339 in UTC, with as many decimals as needed."""
    whole = moment(time_ns).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f"{time_ns % 1_000_000_000:09d}".rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def _raw_integer(kind: int, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _misfit(kind, value)
    low, high = _RANGES[kind]
    if not low <= value <= high:
        # Python refuses to format a very long integer in decimal.
        shown = value if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
        raise BadField(f"{shown} is not in the range of {FieldType(kind)}: {low} … {high}")
    return int(value)


def _raw_double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _misfit(_DOUBLE, value)
    try:
        double = float(value)
    except OverflowError as error:
        raise BadField("an integer is over the range of a double") from error
    if double != value and value == value:  # noqa: PLR0124  # NaN is itself, and unequal to itself
        raise BadField(f"{value} has no exact double")
    return double


def _raw_blob(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise _misfit(_BLOB, value)
    return bytes(value)


def _misfit(kind: int, value: object) -> BadField:
    return BadField(f"{type(value).__name__} is not a value for a field of type {FieldType(kind)}")
